"""Makes a failing story small: tries smaller ones, keeps those that still fail in the same way."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

from ..shrink import _with, _without, removals
from .case import Case, Change, Row, Step, View
from .check import Outcome, check

Pass = Callable[[Case], Iterator[Case]]


def shrink(
    case: Case, kind: str, seconds: float = 60.0, run: Callable[[Case], Outcome] = check
) -> tuple[Case, Outcome | None]:
    """The smallest case found in that time whose failure is of the same kind, and what running it showed."""
    deadline = time.process_time() + seconds
    tried = {str(case)}
    best: Outcome | None = None
    progress = True
    while progress and time.process_time() < deadline:
        progress = False
        for propose in PASSES:
            proposals = propose(case)
            while (proposal := next(proposals, None)) is not None and time.process_time() < deadline:
                candidate = _repaired(proposal)
                if str(candidate) in tried:
                    continue
                tried.add(str(candidate))
                outcome = run(candidate)
                if outcome.failure is not None and outcome.failure.kind == kind:
                    case, best, progress = candidate, outcome, True
                    proposals = propose(candidate)
    return case, best


def _repaired(case: Case) -> Case:
    """The case without rows that are deleted and not there."""
    held: dict[str, Counter[Row]] = {}
    steps = []
    for step in case.steps:
        changes = []
        for change in step.changes:
            there = held.setdefault(change.relation, Counter())
            rows = change.rows
            if change.kind == "delete":
                wanted = Counter(rows)
                rows = tuple(row for row in (wanted & there).elements())
            if step.kind == "epoch":
                there.update(rows) if change.kind == "insert" else there.subtract(rows)
            if rows or not change.rows:
                changes.append(replace(change, rows=rows))
        steps.append(replace(step, changes=tuple(changes)))
    return replace(case, steps=tuple(steps))


def drop_steps(case: Case) -> Iterator[Case]:
    for part in removals(len(case.steps)):

        def moved(at: int | None, part: range = part) -> int | None:
            return None if at is None else at - sum(1 for i in part if i < at)

        views = tuple(replace(v, created=moved(v.created) or 0, dropped=moved(v.dropped)) for v in case.views)
        yield replace(case, steps=_without(case.steps, part), views=views)


def drop_views(case: Case) -> Iterator[Case]:
    for part in removals(len(case.views)):
        gone = [case.views[i].name for i in part]
        views = list(_without(case.views, part))
        while lost := [view for view in views if any(view.reads(name) for name in gone)]:
            gone += [view.name for view in lost]
            views = [view for view in views if view not in lost]
        steps = tuple(step for step in case.steps if step.kind != "refresh" or step.target not in gone)
        if len(steps) == len(case.steps):
            yield replace(case, views=tuple(views))


def drop_relations(case: Case) -> Iterator[Case]:
    for relation in case.relations:
        if any(view.reads(relation.name) for view in case.views) or len(case.relations) == 1:
            continue
        steps = tuple(
            replace(step, changes=tuple(one for one in step.changes if one.relation != relation.name))
            for step in case.steps
            if step.target != relation.name
        )
        if len(steps) == len(case.steps):
            yield replace(case, relations=tuple(one for one in case.relations if one is not relation), steps=steps)


def drop_changes(case: Case) -> Iterator[Case]:
    for i, step in enumerate(case.steps):
        for part in removals(len(step.changes)):
            yield _with_step(case, i, replace(step, changes=_without(step.changes, part)))


def drop_rows(case: Case) -> Iterator[Case]:
    for i, step in enumerate(case.steps):
        for j, change in enumerate(step.changes):
            for part in removals(len(change.rows)):
                yield _with_change(case, i, j, replace(change, rows=_without(change.rows, part)))


def plain_views(case: Case) -> Iterator[Case]:
    """Views that are there from the beginning, stay, and have plainer queries."""
    for i, view in enumerate(case.views):
        below = max((other.created for other in case.views if view.reads(other.name) and other is not view), default=0)
        for plainer in (replace(view, created=below), replace(view, dropped=None), *_plainer(view)):
            if plainer != view:
                yield replace(case, views=_with(case.views, i, plainer))


def _plainer(view: View) -> Iterator[View]:
    if not view.update:
        return
    itself = rf"\b{view.name}\["
    if not re.search(itself, view.update):
        yield replace(view, initialize=_with_variable(view.update, "i"))
    yield replace(view, update=_with_variable(view.initialize, "j"))
    names = sorted({*re.findall(r"\b(\w+)\[", view.initialize), *re.findall(r"\b(\w+)\[", view.update)} - {view.name})
    for name in names:
        yield replace(view, initialize=f"SELECT k, g, CAST(v AS BIGINT) AS v FROM {name}[i]")
        yield replace(view, update=f"SELECT k, g, CAST(v AS BIGINT) AS v FROM {name}[j]")


def _with_variable(query: str, variable: str) -> str:
    return re.sub(r"\[([^\]]*)\]", lambda one: re.sub(r"\b[ij]\b", variable, one[0]), query)


def plain_case(case: Case) -> Iterator[Case]:
    if case.disk:
        yield replace(case, disk=False)
    for i, relation in enumerate(case.relations):
        for plainer in (replace(relation, lateness=None), replace(relation, retain=True)):
            if plainer != relation:
                yield replace(case, relations=_with(case.relations, i, plainer))


def merge_epochs(case: Case) -> Iterator[Case]:
    for i in range(len(case.steps) - 1):
        one, other = case.steps[i : i + 2]
        if one.kind == other.kind == "epoch":
            views = tuple(replace(v, created=v.created - (v.created > i + 1)) for v in case.views if v.dropped is None)
            if len(views) == len(case.views):
                merged = replace(one, changes=one.changes + other.changes)
                yield replace(case, steps=(*case.steps[:i], merged, *case.steps[i + 2 :]), views=views)


PASSES: tuple[Pass, ...] = (
    drop_steps,
    drop_views,
    drop_relations,
    drop_changes,
    drop_rows,
    plain_case,
    plain_views,
    merge_epochs,
)


def _with_step(case: Case, at: int, step: Step) -> Case:
    return replace(case, steps=_with(case.steps, at, step))


def _with_change(case: Case, i: int, j: int, change: Change) -> Case:
    return _with_step(case, i, replace(case.steps[i], changes=_with(case.steps[i].changes, j, change)))
