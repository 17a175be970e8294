"""Views of parts in an epoch: which parts are due, which must be evaluated again, and in which order.

(Yang, Golab and Ozsu, "ViewDF: Declarative Incremental View Maintenance for Streaming Data", sections 4.1 and 4.3.)
A part is built as soon as all that it reads is complete. Rows for complete parts make the parts that read them be
evaluated again, oldest first; a part that comes out as it was touches nothing further. The paper keeps a bitmap for
the next part of each view, with a bit for every part that it needs; as parts become complete in order, a comparison
with the next part of each source says the same.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import duckdb

from headwater.algebra.lifting import Lifted, lifted
from headwater.algebra.lone_rows import Lone, lone_groups, with_lone_rows
from headwater.algebra.parts import PartQuery, Reference
from headwater.algebra.simplify import simplify
from headwater.emit.duckdb import Emitter
from headwater.emit.layout import Fill
from headwater.emit.part_runs import CopySQL, copying
from headwater.emit.parts import (
    PartSQL,
    RangeSQL,
    changed_rows,
    part_statements,
    range_statements,
    rows_of_part,
    withdrawal,
)
from headwater.engine.dating import Coming
from headwater.engine.due_parts import Due
from headwater.engine.failures import ViewFailed
from headwater.engine.ground import NOTHING_DONE
from headwater.engine.lone import LoneRows
from headwater.engine.part_book import Book, Change, Frontier, save
from headwater.engine.part_runs import Alike, Neighbours, Stretches
from headwater.engine.workspace import delta_of
from headwater.errors import UserError
from headwater.plan.parts import PartProgram
from headwater.store.catalog import Relation

#: So many parts later it is looked again whether rows are alone in their groups.
PATIENCE = 31

#: Several parts are built by one statement if there are so many, and not more, of so many rows at most on average.
FEW_PARTS = 3
MOST_AT_ONCE = 10_000
LARGE_PART = 50_000
#: So many rows at most are copied from a part to those after it at once.
MOST_COPIED = 20_000_000
#: So many parts that are built are compared with the one before them at first, and then twice as many, and so on.
AT_FIRST = 8
#: No part is as late as this one.
FAR = 1 << 62

#: Appends to a store: its name, the statement, the values it takes, and the view on whose behalf; says how many rows.
Append = Callable[[str, str, Mapping[str, object], str], int]


class Filled(Protocol):
    """Knows how many rows the temporary tables of an epoch have."""

    def rows(self, table: str) -> int: ...


@dataclass(frozen=True)
class PartStatements:
    """The statements of a view of parts, emitted when they are first needed."""

    relation: Relation
    emitter: Emitter
    _made: dict[tuple[bool, frozenset[str], frozenset[Lone]], PartSQL] = field(default_factory=dict, compare=False)
    _ranges: dict[frozenset[str], RangeSQL] = field(default_factory=dict, compare=False)
    _lone: dict[bool, tuple[Lone, ...]] = field(default_factory=dict, compare=False)
    #: How many parts to evaluate before it is looked again whether rows are alone in their groups.
    patience: dict[Lone, int] = field(default_factory=dict, compare=False)
    lone_rows: LoneRows = field(default_factory=LoneRows, compare=False)

    def evaluating(self, initial: bool, single: frozenset[str], lone: frozenset[Lone] = frozenset()) -> PartSQL:
        """What evaluates a part, when what is read of some relations is there once, row by row.

        Args:
            initial: by INITIALIZE, not UPDATE.
            single: those relations.
            lone: groupings in which every row is alone.
        """
        key = initial, single, lone
        if key not in self._made:
            query = self._query(initial)
            query = with_lone_rows(query, lone) if lone else query
            emitter = self.emitter if self.emitter.careful else self.emitter.for_single(single)
            self._made[key] = part_statements(self.relation.name, self.relation.fields, query, emitter)
        return self._made[key]

    @cached_property
    def lifted(self) -> Lifted | None:
        """UPDATE for a range of parts, if there is such a query."""
        if self.emitter.careful:
            return None
        made = lifted(self._query(False), self.relation.name)
        return replace(made, query=simplify(made.query)) if made is not None else None

    def building_range(self, single: frozenset[str]) -> RangeSQL:
        """What builds a range of parts, when what is read of some relations is there once, row by row."""
        if single not in self._ranges:
            assert self.lifted is not None
            emitter = self.emitter.for_single(single)
            fields = self.relation.fields
            self._ranges[single] = range_statements(self.relation.name, fields, self.lifted.query, emitter)
        return self._ranges[single]

    def lone(self, initial: bool) -> tuple[Lone, ...]:
        """Groups of parts that may have one row each."""
        if self.emitter.careful:
            return ()
        if initial not in self._lone:
            self._lone[initial] = lone_groups(self._query(initial))
        return self._lone[initial]

    def _query(self, initial: bool) -> PartQuery:
        program = self.relation.parts
        assert program is not None
        return program.initialize if initial else program.update

    @cached_property
    def copying(self) -> CopySQL:
        """What lets many parts hold what one holds."""
        return copying(self.relation.name, self.relation.fields, self.emitter)

    @cached_property
    def change(self) -> Fill:
        """What fills the change of the view from what is stored in an epoch."""
        return changed_rows(self.relation.name, self.relation.fields)

    @cached_property
    def withdrawal(self) -> str:
        """What takes that out of the store."""
        return withdrawal(self.relation.name)

    @cached_property
    def count(self) -> str:
        """How many rows a part has."""
        return rows_of_part(self.relation.name)


class PartRound:
    """What one attempt at an epoch does to parts; nothing counts before it is committed."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        catalog: Neighbours,
        workspace: Filled,
        book: Book,
        epoch: int,
        append: Append,
        coming: Coming,
        renewed: Set[str] = frozenset(),
        is_away: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """Begin.

        Args:
            connection: the writer's.
            catalog: of the epoch, as far as it is needed.
            workspace: knows of the deltas of the epoch.
            book: as of the epoch before. It is written in; `undo` takes that back.
            epoch: under which number parts are stored.
            append: carries out the statements that store them.
            coming: what comes to streams with event time; it is complete when the first stream is looked at.
            renewed: views of which all parts are built again.
            is_away: whether a view of parts lies away: segments are added up when they are put together, so nobody
                knows whether its rows are stored once each.
        """
        self._connection = connection
        self._catalog = catalog
        self._workspace = workspace
        self._epoch = epoch
        self._append = append
        self._coming = coming
        self._renewed = renewed
        self._is_away = is_away
        self._before = dict(book.frontiers)
        self._lines = book.lines
        self.book = book
        self.changes: list[Change] = []
        self._mixed: list[Change] = []
        self._noted: list[Change] = []
        #: Of parts and columns of theirs: whether no two rows agree in these.
        self._seen: dict[tuple[str, int, tuple[str, ...]], bool] = {}
        #: The parts that have changed in this epoch, by relation.
        self._changed: dict[str, set[int]] = {}
        self._alike = Alike(connection, catalog, book)
        self._due = Due(catalog, book)

    @property
    def lenient(self) -> bool:
        """Whether what cannot be done suspends a view; else the epoch is refused."""
        return self._coming.lenient

    def save(self) -> None:
        """Write what was done, inside the epoch's transaction."""
        self.book.lines += len(self.changes)
        save(self._connection, self._before, self.book.frontiers, self.changes, self._epoch)

    def undo(self) -> None:
        """The epoch has not come to be."""
        self.book.take_back(self._noted, self._mixed, self._before)
        self.book.lines = self._lines

    # -- streams -----------------------------------------------------------------------------------------------------

    def arrive(self, stream: Relation) -> None:
        """Take note of what has come to a stream with event time."""
        assert stream.time is not None
        frontier = self.book.frontier(stream.name)
        came = self._coming.arrived.get(stream.name)
        if came is not None and came.latest is not None:
            if came.rows:
                self._note(Change(stream.name, part, rows, True) for part, rows in sorted(came.rows.items()))
                oldest = min(came.rows)
                frontier = replace(frontier, first=oldest if frontier.first is None else min(frontier.first, oldest))
            frontier = frontier.advanced(came.latest, stream.length)
        if stream.name in self._coming.told:
            frontier = frontier.advanced(self._coming.told[stream.name], stream.length)
        self.book.frontiers[stream.name] = frontier

    def _note(self, changes: Iterable[Change]) -> None:
        noted = list(changes)
        self._mixed += self.book.apply(noted)
        self._noted += noted
        self.changes += noted
        for one in noted:
            self._changed.setdefault(one.relation, set()).add(one.part)
        for relation in {one.relation for one in noted}:
            self._alike.changed(relation)

    def begin_anew(self, stream: Relation) -> None:
        """A stream is stored from now on: what it had before is gone."""
        frontier = self.book.frontier(stream.name)
        held = self.book.rows.get(stream.name, {})
        gone = [Change(stream.name, part, -rows, True) for part, rows in held.items()]
        self.book.apply(gone)
        self._noted += gone  # to be undone, and not to be saved: these lines are erased
        self.book.frontiers[stream.name] = Frontier(next=frontier.next, watermark=frontier.watermark)

    # -- views -------------------------------------------------------------------------------------------------------

    def follow(self, view: Relation, statements: PartStatements) -> bool:
        """Build the parts of a view that are due, and build again what follows from parts that changed.

        Returns:
            Whether anything was stored.
        """
        before, after = self.book.frontier(view.name), self.foreseen(view)
        if after is None:
            return False
        self.carry_out(view, statements, before, after)
        return bool(self._changed.get(view.name))

    def foreseen(self, view: Relation) -> Frontier | None:
        """How far a view will be when all parts are built that are due; None if it cannot begin yet.

        That follows from how far others are, whatever rows there are.
        """
        program = view.parts
        assert program is not None
        frontier = self.book.frontier(view.name)
        if frontier.first is None or frontier.next is None:
            first = self._due.where_all_is_there(program, self._due.oldest(program))
            return self._gone_on(program, Frontier(first, first)) if first is not None else None
        return self._gone_on(program, self._gone_back(program, frontier))

    def _gone_back(self, program: PartProgram, frontier: Frontier) -> Frontier:
        """Let a view that begins with the oldest part of its sources begin earlier, if rows for an older one came."""
        older, first = self._due.oldest(program) if program.backfill else None, frontier.first
        assert first is not None
        if older is None or older >= first or frontier.oldest != first or self._due.has_lost(program.initialize, older):
            return frontier
        return replace(frontier, first=older)

    def _gone_on(self, program: PartProgram, frontier: Frontier) -> Frontier:
        """Let it go on as long as what its parts read is complete."""
        first, part = frontier.first, frontier.next
        assert first is not None and part is not None
        if part == first:
            until = self._due.ready_until(program, program.initialize, range(first, first + 1))
            until = self._due.ready_until(program, program.update, range(until, FAR)) if until > first else first
        else:
            until = self._due.ready_until(program, program.update, range(part, FAR))
        return replace(frontier, next=until)

    def carry_out(self, view: Relation, statements: PartStatements, before: Frontier, after: Frontier) -> None:
        """Build what is due by how far a view was and will be, and build again what follows from parts that changed."""
        program = view.parts
        assert program is not None and after.first is not None and after.next is not None
        begin = after.first
        if before.first is not None and before.next is not None:
            fresh, begin = range(after.first, before.first), before.next
            self._build(program, statements, fresh, after.first)
            frontier = replace(before, first=after.first)
            built = set(range(after.first, before.next))
            due = built if view.name in self._renewed else self._affected(program, frontier)
            for part in self._changed.get(program.view, set()) & set(fresh):
                due |= program.update.affected(program.view, part, fresh.stop, before.next)
            due |= {fresh.stop} if fresh else set()  # it was the first part, and follows from others now
            self._again(program, statements, due - set(fresh), frontier)
        self._build(program, statements, range(begin, after.next), after.first)
        self.book.frontiers[program.view] = after

    def begin(self, view: Relation, statements: PartStatements) -> None:
        """Build the first parts of a view that is made in this epoch, if what they read is complete."""
        program = view.parts
        assert program is not None
        first = self._due.where_all_is_there(
            program, self._due.oldest(program) if program.backfill else self._due.newest(program)
        )
        if first is not None:
            after = self._gone_on(program, Frontier(first, first))
            self.carry_out(view, statements, Frontier(), after)

    def build_anew(self, view: Relation, statements: PartStatements) -> bool:
        """Build all parts of a view, of whose rows nothing is stored; False if something that they read was deleted."""
        program, frontier = view.parts, self.book.frontier(view.name)
        assert program is not None
        first, oldest, following = frontier.first, frontier.oldest, frontier.next
        if first is None or oldest is None or following is None:
            return True
        parts = range(oldest, following)
        if any(self._due.has_lost(program.query_of(part, first), part) for part in parts):
            return False
        self._build(program, statements, parts, first)
        return True

    def came(self, changes: Iterable[Change]) -> None:
        """Take note of what has happened to parts elsewhere."""
        self._note(changes)

    def _build(self, program: PartProgram, statements: PartStatements, parts: range, first: int) -> None:
        """Build parts for which all is there: many at once, by copying the one before, or one after the other."""
        stretches = Stretches(self._alike, program)
        part = parts.start
        while part < parts.stop:
            until = self._range(program, statements, range(part, parts.stop)) if part > first else part
            if until == part and part > first + 1:
                until = stretches.until(part, parts.stop, FEW_PARTS)
                self._copy(program, statements, range(part, until))
            if until == part:
                self._evaluate(program, statements, part, first, fresh=True)
                until = part + 1
            part = until

    def _copy(self, program: PartProgram, statements: PartStatements, parts: range) -> None:
        """Let new parts hold what the one before them holds."""
        view, model = program.view, parts.start - 1
        rows = self.book.rows.get(view, {}).get(model, 0)
        if parts:
            self._alike.note(view, model, parts.stop - 1)
        if not parts or not rows:
            return
        if rows * len(parts) > MOST_COPIED:
            raise self._too_many(program, parts, rows)
        single = self.book.is_single(view, range(model, model + 1))
        run = statements.copying.fresh if single else statements.copying.netted
        given = {"part": model, "first": parts.start, "last": parts.stop - 1, "epoch": self._epoch}
        self._append(view, run, given, view)
        self._note(Change(view, part, rows, single) for part in parts)

    def _too_many(self, program: PartProgram, parts: range, rows: int) -> Exception:
        stream = min(program.sources)
        why = (
            f"{len(parts):,} parts in a row, from {program.shown(parts.start)} on, would each hold the {rows:,} rows of"
            f" the part before them: more than {MOST_COPIED:,} rows at once"
        )
        if self._coming.lenient:
            return ViewFailed(program.view, "HW338", why)
        hint = f"correct the time of the row, or ADVANCE STREAM {stream} in steps; {NOTHING_DONE}"
        return UserError("HW338", f"view {program.view}: {why}", hint=hint)

    def _range(self, program: PartProgram, statements: PartStatements, parts: range) -> int:
        """Build the first of some small parts by one statement, if that can be; returns the first that is left."""
        query, part = statements.lifted, parts.start
        until = min(parts.stop, part + MOST_AT_ONCE)
        if query is None or until - part < FEW_PARTS:
            return part
        bounds = query.bounds(part, until - 1)
        ranges = list(zip(query.references, map(range, bounds[::2], (one + 1 for one in bounds[1::2])), strict=True))
        rows = sum(self.book.rows_in(one.relation, parts) for one, parts in ranges)
        if rows > (until - part) * LARGE_PART:
            return part
        if not rows and program.update.is_empty_over_nothing:
            return until
        run = statements.building_range(self._single(ranges, program.update))
        values: dict[str, object] = {f"p{place}": bounds[place] for place in run.bounds}
        if self._append(program.view, run.fresh, {**values, "epoch": self._epoch}, program.view):
            given = {"epoch": self._epoch, "first": part, "last": until - 1}
            found = self._connection.execute(run.rows, given).fetchall()
            self._note(Change(program.view, one, count, run.single) for one, count in found)
        return until

    def _again(self, program: PartProgram, statements: PartStatements, due: set[int], frontier: Frontier) -> None:
        """Evaluate parts again, oldest first, and later parts of the same view that read one that has changed.

        Parts that read something that was deleted, or were deleted themselves, are final.
        """
        assert frontier.first is not None and frontier.next is not None and frontier.oldest is not None
        waiting, following = sorted(due), frontier.next
        stretches, size, done = Stretches(self._alike, program), AT_FIRST, 0
        while waiting:
            part = heapq.heappop(waiting)
            if (
                part < done
                or part < frontier.oldest
                or self._due.has_lost(program.query_of(part, frontier.first), part)
            ):
                continue
            size, done = 2 * size if part == done else AT_FIRST, part + 1
            if part > frontier.first + 1:
                done = max(done, stretches.until(part, min(following, part + size), FEW_PARTS))
            if done > part + 1:
                changed = self._copy_again(program, statements, range(part, done))
            else:
                changed = [part] if self._evaluate(program, statements, part, frontier.first, fresh=False) else []
            for later in self._following(program, changed, range(done, following)):
                if later not in due:
                    due.add(later)
                    heapq.heappush(waiting, later)

    def _copy_again(self, program: PartProgram, statements: PartStatements, parts: range) -> list[int]:
        """Let parts that are built hold what the one before them holds; returns those that have changed."""
        view, model = program.view, parts.start - 1
        given = {"first": parts.start, "last": parts.stop - 1, "epoch": self._epoch}
        self._alike.note(view, model, parts.stop - 1)
        if not self._append(view, statements.copying.again, {**given, "part": model}, view):
            return []
        held = self.book.rows.get(view, {})
        rows = held.get(model, 0)
        changed = sorted(one for (one,) in self._connection.execute(statements.copying.found, given).fetchall())
        self._note([Change(view, part, rows - held.get(part, 0), False) for part in changed])
        return changed

    def _following(self, program: PartProgram, changed: Iterable[int], parts: range) -> set[int]:
        """Some later parts of a view that read parts of it that have changed."""
        own = [one.first.least_from(parts.start) for one in program.update.references if one.relation == program.view]
        begin = min((one for one in own if one is not None), default=parts.stop)
        found: set[int] = set()
        for part in changed:
            if part >= begin:
                found |= program.update.affected(program.view, part, parts.start, parts.stop)
        return found

    def _affected(self, program: PartProgram, frontier: Frontier) -> set[int]:
        """The parts that are built and read something that has changed."""
        first, following = frontier.first, frontier.next
        assert first is not None and following is not None
        whole = program.initialize.whole | program.update.whole
        if any(self._workspace.rows(delta_of(name)) or self._changed.get(name) for name in whole):
            return set(range(first, following))
        found: set[int] = set()
        for relation in program.sources:
            source = self._catalog.find(relation)
            assert source is not None and source.length is not None
            reach = following * program.length // source.length  # what is later, no part that is built has read
            for part in self._changed.get(relation, ()):
                if part > reach:
                    continue
                found |= program.update.affected(relation, part, first + 1, following)
                found |= program.initialize.affected(relation, part, first, first + 1)
        return found

    def _evaluate(self, program: PartProgram, statements: PartStatements, part: int, first: int, fresh: bool) -> bool:
        """Evaluate a part and store it, or what is different of it; whether anything was stored."""
        query = program.query_of(part, first)
        bounds = query.bounds(part)
        ranges = [(one, range(a, b + 1)) for one, a, b in zip(query.references, bounds[::2], bounds[1::2], strict=True)]
        held = self.book.rows.get(program.view, {}).get(part, 0)
        is_empty = query.is_empty_over_nothing and (fresh or not held)
        if is_empty and not any(self.book.has_rows(one.relation, parts) for one, parts in ranges):
            return False
        single = self._single(ranges, query)
        initial = query is program.initialize
        run = statements.evaluating(initial, single, self._alone(statements, initial, single, bounds))
        values: dict[str, object] = {f"p{place}": bounds[place] for place in run.bounds}
        values |= {"part": part, "epoch": self._epoch}
        try:
            added = self._append(program.view, run.fresh if fresh else run.again, values, program.view)
        except ViewFailed as failed:
            raise ViewFailed(failed.view, failed.code, f"{failed.reason}, in {program.shown(part)}") from failed
        if added:
            rows = added if fresh and run.single else self._rows(statements, part) - held
            self._note([Change(program.view, part, rows, fresh and run.single)])
        return added > 0

    def _single(self, ranges: Iterable[tuple[Reference, range]], query: PartQuery) -> frozenset[str]:
        """The relations of which all that a query reads is stored row by row: no relation that it reads whole is."""
        ranges = list(ranges)
        mixed = {one.relation for one, parts in ranges if not self.book.is_single(one.relation, parts)}
        mixed |= {one.relation for one, _ in ranges if self._is_away(one.relation)}
        return frozenset(one.relation for one, _ in ranges) - mixed - query.whole

    def _alone(
        self, statements: PartStatements, initial: bool, single: frozenset[str], bounds: list[int]
    ) -> frozenset[Lone]:
        """Groupings of parts that change nothing; to look for them costs a third of what it saves, or less.

        Where several rows of a group were found, it is not looked for a while.
        """
        found: set[Lone] = set()
        for lone in statements.lone(initial):
            key = lone.relation, bounds[lone.bound], lone.columns
            if lone.relation not in single:
                continue
            if key not in self._seen:
                if statements.patience.get(lone, 0) > 0:
                    statements.patience[lone] -= 1
                    continue
                rows = self.book.rows.get(lone.relation, {}).get(key[1], 0)
                self._seen[key] = statements.lone_rows.are(self._connection, *key, rows)
                statements.patience[lone] = 0 if self._seen[key] else PATIENCE
            if self._seen[key]:
                found.add(lone)
        return frozenset(found)

    def _rows(self, statements: PartStatements, part: int) -> int:
        """How many rows a part has by what is stored of it."""
        [(rows,)] = self._connection.execute(statements.count, {"part": part}).fetchall()
        return int(rows or 0)
