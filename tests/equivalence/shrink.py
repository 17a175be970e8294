"""Makes a failing case small: tries smaller cases, keeps those that still fail in the same way.

Each pass proposes cases that are simpler in one respect, boldest first. A proposal need not make sense: one whose SQL
no longer resolves fails in another way, and is dropped for that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from .bags import DELETING, IGNORED, repaired
from .case import ARRIVING, Case, Epoch, Operation, Relation, Row
from .check import Outcome, check
from .shrink_sql import inlined, simpler_queries
from .values import simplest

Pass = Callable[[Case], Iterator[Case]]


def shrink(
    case: Case, kind: str, seconds: float = 60.0, run: Callable[[Case], Outcome] = check
) -> tuple[Case, Outcome | None]:
    """The smallest case found in that time whose failure is of the same kind, and what running it showed.

    The time is the processor's: what is found does not depend on what else the machine does. The outcome is None if
    nothing smaller was found.
    """
    deadline = time.process_time() + seconds
    tried = {str(case)}
    best: Outcome | None = None
    progress = True
    while progress:
        progress = False
        for propose in PASSES:
            found = _exhaust(propose, case, kind, run, tried, deadline)
            if found is not None:
                case, best = found
                progress = True
        if time.process_time() > deadline:
            break
    return case, best


def _exhaust(
    propose: Pass, case: Case, kind: str, run: Callable[[Case], Outcome], tried: set[str], deadline: float
) -> tuple[Case, Outcome] | None:
    """Apply one pass until none of its proposals fails in the same way any more."""
    best: tuple[Case, Outcome] | None = None
    proposals = propose(case)
    while (proposal := next(proposals, None)) is not None and time.process_time() < deadline:
        candidate = repaired(proposal)
        text = str(candidate)
        if text in tried:
            continue
        tried.add(text)
        outcome = run(candidate)
        if outcome.failure is not None and outcome.failure.kind == kind:
            best = candidate, outcome
            proposals = propose(candidate)
    return best


def removals(n: int) -> Iterator[range]:
    """Parts of a list of n to leave out: halves, quarters, ... single entries; later ones first."""
    size = n
    while size:
        for start in range(n - size, -1, -size):
            yield range(start, start + size)
        size //= 2


T = TypeVar("T")


def _without(items: tuple[T, ...], part: range) -> tuple[T, ...]:
    return tuple(item for i, item in enumerate(items) if i not in part)


def _with(items: tuple[T, ...], at: int, item: T) -> tuple[T, ...]:
    return (*items[:at], item, *items[at + 1 :])


# Passes


def drop_views(case: Case) -> Iterator[Case]:
    for part in removals(len(case.views)):
        yield replace(case, views=_without(case.views, part))


def drop_epochs(case: Case) -> Iterator[Case]:
    for part in removals(len(case.epochs)):
        views = tuple(replace(v, created=v.created - sum(1 for i in part if i < v.created)) for v in case.views)
        yield replace(case, epochs=_without(case.epochs, part), clocks=_without(case.clocks, part), views=views)


def merge_epochs(case: Case) -> Iterator[Case]:
    """Two neighbours as one; statements cannot share an epoch."""
    for i in range(len(case.epochs) - 1):
        merged = case.epochs[i] + case.epochs[i + 1]
        if not any(operation.is_statement for operation in merged):
            views = tuple(replace(v, created=v.created - (v.created > i + 1)) for v in case.views)
            clocks = _without(case.clocks, range(i, i + 1))
            yield replace(case, epochs=(*case.epochs[:i], merged, *case.epochs[i + 2 :]), clocks=clocks, views=views)


def stop_clock(case: Case) -> Iterator[Case]:
    """A clock that never advances, or not in one epoch, or not before it."""
    if case.clocks:
        yield replace(case, clocks=())
    for i in range(1, len(case.clocks)):
        before, now = case.clocks[i - 1], case.clocks[i]
        if before != now:
            yield replace(case, clocks=_with(case.clocks, i, before))
            yield replace(case, clocks=_with(case.clocks, i - 1, now))


def drop_operations(case: Case) -> Iterator[Case]:
    for i, epoch in enumerate(case.epochs):
        for part in removals(len(epoch)):
            yield _with_epoch(case, i, _without(epoch, part))


def drop_rows(case: Case) -> Iterator[Case]:
    for i, j, operation in _operations(case):
        for part in removals(len(operation.rows)):
            yield _with_operation(case, i, j, replace(operation, rows=_without(operation.rows, part)))


def plain_operations(case: Case) -> Iterator[Case]:
    """Inserts through the row API instead of SQL and of upsert."""
    for i, j, operation in _operations(case):
        if operation.kind in ("insert_values", "upsert"):
            yield _with_operation(case, i, j, replace(operation, kind="insert"))


def create_earlier(case: Case) -> Iterator[Case]:
    for i, view in enumerate(case.views):
        if view.created:
            yield replace(case, views=_with(case.views, i, replace(view, created=0)))


def plain_views(case: Case) -> Iterator[Case]:
    for i, view in enumerate(case.views):
        if view.strategy:
            yield replace(case, views=_with(case.views, i, replace(view, strategy=None)))


def inline_views(case: Case) -> Iterator[Case]:
    """A view's query in place of its name in the views over it, and the view gone."""
    for i, view in enumerate(case.views):
        others = tuple(replace(v, query=inlined(v.query, view.name, view.query)) for v in case.views if v is not view)
        if any(new.query != old.query for new, old in zip(others, _without(case.views, range(i, i + 1)), strict=True)):
            yield replace(case, views=others)


def simplify_queries(case: Case) -> Iterator[Case]:
    for i, view in enumerate(case.views):
        for query in simpler_queries(view.query):
            yield replace(case, views=_with(case.views, i, replace(view, query=query)))


def drop_relations(case: Case) -> Iterator[Case]:
    for relation in case.relations:
        epochs = tuple(tuple(o for o in epoch if o.relation != relation.name) for epoch in case.epochs)
        relations = tuple(other for other in case.relations if other is not relation)
        yield replace(case, relations=relations, epochs=epochs)


def drop_columns(case: Case) -> Iterator[Case]:
    for relation in case.relations:
        for at in range(len(relation.columns)):
            if len(relation.columns) > 1:
                yield _without_column(case, relation, at)


def plain_relations(case: Case) -> Iterator[Case]:
    """Tables without keys, columns that may be NULL."""
    for i, relation in enumerate(case.relations):
        nullable = tuple(replace(c, nullable=True) for c in relation.columns)
        plainly = replace(relation, sequence=None)
        for plainer in (replace(plainly, key=()), plainly, replace(relation, columns=nullable)):
            if plainer != relation and not relation.codes:
                yield replace(case, relations=_with(case.relations, i, plainer))
        if relation.codes:
            yield _without_codes(case, relation)


def simplify_values(case: Case) -> Iterator[Case]:
    """One value in place of another, everywhere in a column: a row must stay the same row in all operations."""
    for relation in case.relations:
        for at, column in enumerate(relation.columns):
            plain = simplest(column.type)
            if column.nullable:
                plain = (*plain, None)
            held = {row[at] for _, _, o in _operations(case) for row in _full_rows(o, relation)}
            for old in sorted(held, key=repr):
                rank = plain.index(old) if old in plain else len(plain)
                for new in plain[:rank]:
                    yield _with_value(case, relation, at, old, new)


PASSES: tuple[Pass, ...] = (
    drop_epochs,
    drop_views,
    drop_relations,
    drop_operations,
    drop_rows,
    # Only once few rows are left: a query's edits are many, and each costs a run.
    inline_views,
    simplify_queries,
    create_earlier,
    plain_views,
    plain_operations,
    merge_epochs,
    stop_clock,
    drop_columns,
    plain_relations,
    simplify_values,
)


# Parts of a case


def _operations(case: Case) -> list[tuple[int, int, Operation]]:
    return [(i, j, operation) for i, epoch in enumerate(case.epochs) for j, operation in enumerate(epoch)]


def _with_epoch(case: Case, at: int, epoch: Epoch) -> Case:
    return replace(case, epochs=_with(case.epochs, at, epoch))


def _with_operation(case: Case, i: int, j: int, operation: Operation) -> Case:
    return _with_epoch(case, i, _with(case.epochs[i], j, operation))


def _changed(case: Case, relation: Relation, change: Callable[[Operation], Operation]) -> Case:
    epochs = tuple(tuple(change(o) if o.relation == relation.name else o for o in epoch) for epoch in case.epochs)
    return replace(case, epochs=epochs)


def _full_rows(operation: Operation, relation: Relation) -> tuple[Row, ...]:
    return operation.rows if operation.relation == relation.name and operation.kind != "delete_keys" else ()


def _without_column(case: Case, relation: Relation, at: int) -> Case:
    name = relation.names[at]
    cut = range(at, at + 1)

    def change(operation: Operation) -> Operation:
        rows = operation.rows
        if operation.kind != "delete_keys":
            rows = tuple(_without(row, cut) for row in rows)
        elif name in relation.key:
            place = relation.key.index(name)
            rows = tuple(_without(row, range(place, place + 1)) for row in rows)
        pairs = (tuple(pair for pair in part if pair[0] != name) for part in (operation.assign, operation.where))
        assign, where = pairs
        return replace(operation, rows=rows, assign=assign, where=where)

    narrower = replace(
        relation,
        columns=_without(relation.columns, cut),
        key=tuple(k for k in relation.key if k != name),
        sequence=None if relation.sequence == name else relation.sequence,
    )
    relations = tuple(narrower if each is relation else each for each in case.relations)
    return replace(_changed(case, relation, change), relations=relations)


def _without_codes(case: Case, relation: Relation) -> Case:
    """Rows that come, without what says so; others are left out."""

    def change(operation: Operation) -> Operation:
        if operation.kind not in ARRIVING:
            return operation
        coming = [row[:-1] for row in operation.rows if row[-1] not in (*DELETING, *IGNORED)]
        return replace(operation, rows=tuple(coming))

    relations = tuple(replace(each, codes=False) if each is relation else each for each in case.relations)
    return replace(_changed(case, relation, change), relations=relations)


def _with_value(case: Case, relation: Relation, at: int, old: object, new: object) -> Case:
    name = relation.names[at]

    def swap(value: object) -> object:
        return new if value is old or value == old else value

    def change(operation: Operation) -> Operation:
        rows = operation.rows
        if operation.kind != "delete_keys":
            rows = tuple(_with(row, at, swap(row[at])) for row in rows)
        elif name in relation.key:
            place = relation.key.index(name)
            rows = tuple(_with(row, place, swap(row[place])) for row in rows)
        assign, where = (
            tuple((n, swap(v)) if n == name else (n, v) for n, v in part)
            for part in (operation.assign, operation.where)
        )
        return replace(operation, rows=rows, assign=assign, where=where)

    return _changed(case, relation, change)
