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

import duckdb

from headwater.algebra.lifting import Lifted, lifted
from headwater.algebra.lone_rows import Lone, lone_groups, with_lone_rows
from headwater.algebra.parts import PartQuery, Reference
from headwater.algebra.simplify import simplify
from headwater.emit.duckdb import Emitter
from headwater.emit.layout import Fill
from headwater.emit.parts import (
    PartSQL,
    RangeSQL,
    changed_rows,
    differ_in,
    part_statements,
    range_statements,
    rows_of_part,
    withdrawal,
)
from headwater.engine.dating import Arrived
from headwater.engine.part_book import Book, Change, Frontier, save
from headwater.engine.workspace import Workspace, delta_of
from headwater.plan.parts import PartProgram
from headwater.store.catalog import Catalog, Relation

#: A part with fewer rows is grouped at once.
MANY_ROWS = 10_000
#: So many parts later it is looked again whether rows are alone in their groups.
PATIENCE = 31

#: Several parts are built by one statement if there are so many, and not more, of so many rows at most on average.
FEW_PARTS = 3
MOST_AT_ONCE = 10_000
LARGE_PART = 50_000

#: Appends to a store: its name, the statement, the values it takes, and the view on whose behalf; says how many rows.
Append = Callable[[str, str, Mapping[str, object], str], int]


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
        catalog: Catalog,
        workspace: Workspace,
        book: Book,
        epoch: int,
        append: Append,
        renewed: Set[str] = frozenset(),
    ) -> None:
        """Begin.

        Args:
            connection: the writer's.
            catalog: of the epoch.
            workspace: with the deltas of the epoch.
            book: as of the epoch before. It is written in; `undo` takes that back.
            epoch: under which number parts are stored.
            append: carries out the statements that store them.
            renewed: views of which all parts are built again.
        """
        self._connection = connection
        self._catalog = catalog
        self._workspace = workspace
        self._epoch = epoch
        self._append = append
        #: Times that streams are told by ADVANCE STREAM, in microseconds since 1970.
        self.told: Mapping[str, int] = {}
        #: What has come to streams with event time.
        self.arrived: Mapping[str, Arrived] = {}
        self._renewed = renewed
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
        came = self.arrived.get(stream.name)
        if came is not None and came.latest is not None:
            if came.rows:
                self._note(Change(stream.name, part, rows, True) for part, rows in sorted(came.rows.items()))
                oldest = min(came.rows)
                frontier = replace(frontier, first=oldest if frontier.first is None else min(frontier.first, oldest))
            frontier = frontier.advanced(came.latest, stream.length)
        if stream.name in self.told:
            frontier = frontier.advanced(self.told[stream.name], stream.length)
        self.book.frontiers[stream.name] = frontier

    def _note(self, changes: Iterable[Change]) -> None:
        noted = list(changes)
        self._mixed += self.book.apply(noted)
        self._noted += noted
        self.changes += noted
        for one in noted:
            self._changed.setdefault(one.relation, set()).add(one.part)

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
        program = view.parts
        assert program is not None
        frontier = self.book.frontier(view.name)
        if frontier.first is None or frontier.next is None:
            first = self._where_all_is_there(program, self._oldest(program))
            if first is None:
                return False
            frontier = Frontier(first, first)
        else:
            frontier, fresh = self._go_back(program, statements, frontier)
            assert frontier.first is not None and frontier.next is not None
            built = set(range(frontier.first, frontier.next))
            due = built if view.name in self._renewed else self._affected(program, frontier)
            for part in self._changed.get(program.view, set()) & set(fresh):
                due |= program.update.affected(program.view, part, fresh.stop, frontier.next)
            due |= {fresh.stop} if fresh else set()  # it was the first part, and follows from others now
            self._again(program, statements, due - set(fresh), frontier)
        self._go_on(program, statements, frontier)
        return bool(self._changed.get(view.name))

    def _go_back(self, program: PartProgram, statements: PartStatements, frontier: Frontier) -> tuple[Frontier, range]:
        """Let a view that begins with the oldest part of its sources begin earlier, if rows for an older one have come.

        Returns:
            Where it is then, and the parts that were built for it.
        """
        older = self._oldest(program) if program.backfill else None
        first = frontier.first
        assert first is not None
        if older is None or older >= first or frontier.oldest != first or self._has_lost(program.initialize, older):
            return frontier, range(0)
        for part in range(older, first):
            self._evaluate(program, statements, part, older, fresh=True)
        return replace(frontier, first=older), range(older, first)

    def begin(self, view: Relation, statements: PartStatements) -> None:
        """Build the first parts of a view that is made in this epoch, if what they read is complete."""
        program = view.parts
        assert program is not None
        first = self._where_all_is_there(program, self._oldest(program) if program.backfill else self._newest(program))
        if first is not None:
            self._go_on(program, statements, Frontier(first, first))

    def _go_on(self, program: PartProgram, statements: PartStatements, frontier: Frontier) -> None:
        """Build parts as long as what they read is complete."""
        first, part = frontier.first, frontier.next
        assert first is not None and part is not None
        while self._is_ready(program, program.query_of(part, first), part):
            until = self._range(program, statements, part) if part > first else part
            if until == part:
                self._evaluate(program, statements, part, first, fresh=True)
                until = part + 1
            part = until
        self.book.frontiers[program.view] = replace(frontier, next=part)

    def _ready_until(self, program: PartProgram, part: int) -> int:
        """The first part from one on that is not ready, as far as one statement builds parts."""
        until = part + 1
        while until - part < MOST_AT_ONCE and self._is_ready(program, program.update, until):
            until += 1
        return until

    def _range(self, program: PartProgram, statements: PartStatements, part: int) -> int:
        """Build several small parts from one on by one statement, if that can be; returns the first that is left."""
        query = statements.lifted
        until = self._ready_until(program, part) if query is not None else part
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
        waiting = sorted(due)
        while waiting:
            part = heapq.heappop(waiting)
            if part < frontier.oldest or self._has_lost(program.query_of(part, frontier.first), part):
                continue
            if not self._evaluate(program, statements, part, frontier.first, fresh=False):
                continue
            for later in program.update.affected(program.view, part, part + 1, frontier.next):
                if later not in due:
                    due.add(later)
                    heapq.heappush(waiting, later)

    def _affected(self, program: PartProgram, frontier: Frontier) -> set[int]:
        """The parts that are built and read something that has changed."""
        first, following = frontier.first, frontier.next
        assert first is not None and following is not None
        whole = program.initialize.whole | program.update.whole
        if any(self._workspace.rows(delta_of(name)) or self._changed.get(name) for name in whole):
            return set(range(first, following))
        found: set[int] = set()
        for relation in program.sources:
            for part in self._changed.get(relation, ()):
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
        added = self._append(program.view, run.fresh if fresh else run.again, values, program.view)
        if added:
            rows = added if fresh and run.single else self._rows(statements, part) - held
            self._note([Change(program.view, part, rows, fresh and run.single)])
        return added > 0

    def _single(self, ranges: Iterable[tuple[Reference, range]], query: PartQuery) -> frozenset[str]:
        """The relations of which all that a query reads is stored row by row: no relation that it reads whole is."""
        ranges = list(ranges)
        mixed = {one.relation for one, parts in ranges if not self.book.is_single(one.relation, parts)}
        return frozenset(one.relation for one, _ in ranges) - mixed - query.whole

    def _alone(
        self, statements: PartStatements, initial: bool, single: frozenset[str], bounds: list[int]
    ) -> frozenset[Lone]:
        """Groupings of parts that change nothing; to look for them costs about a third of what it saves.

        Where several rows of a group were found, it is not looked for a while.
        """
        found: set[Lone] = set()
        for lone in statements.lone(initial):
            key = lone.relation, bounds[lone.bound], lone.columns
            if lone.relation not in single or self.book.rows.get(lone.relation, {}).get(key[1], 0) < MANY_ROWS:
                continue
            if key not in self._seen:
                if statements.patience.get(lone, 0) > 0:
                    statements.patience[lone] -= 1
                    continue
                query = differ_in(lone.relation, lone.columns)
                [(self._seen[key],)] = self._connection.execute(query, {"part": key[1]}).fetchall()
                statements.patience[lone] = 0 if self._seen[key] else PATIENCE
            if self._seen[key]:
                found.add(lone)
        return frozenset(found)

    def _rows(self, statements: PartStatements, part: int) -> int:
        """How many rows a part has by what is stored of it."""
        [(rows,)] = self._connection.execute(statements.count, {"part": part}).fetchall()
        return int(rows or 0)

    # -- what is due ---------------------------------------------------------------------------------------------------

    def _is_ready(self, program: PartProgram, query: PartQuery, part: int) -> bool:
        """Whether all parts of other relations that a part reads are complete."""
        for one in query.references:
            if one.relation == program.view:
                continue
            following = self.book.frontier(one.relation).next
            if following is None or one.last.at(part) >= following:
                return False
        return True

    def _has_lost(self, query: PartQuery, part: int) -> bool:
        """Whether a part reads parts that were deleted."""
        return any(self.book.frontier(name).has_lost(parts) for name, parts in query.read_by(part))

    def _where_all_is_there(self, program: PartProgram, part: int | None) -> int | None:
        """The first part from one on with which a view can begin: what it and the next one read is not deleted.

        None if what it reads is not complete yet.
        """
        while part is not None and self._is_ready(program, program.initialize, part):
            if not self._has_lost(program.initialize, part) and not self._has_lost(program.update, part + 1):
                return part
            part = part + 1 if part <= self._last(program) else None
        return None

    def _last(self, program: PartProgram) -> int:
        """The part in which the last complete part of a source ends."""
        lasts = [0]
        for name in program.sources:
            following, source = self.book.frontier(name).next, self._catalog.find(name)
            if following is not None and source is not None and source.length is not None:
                lasts.append(following * source.length // program.length)
        return max(lasts)

    def _oldest(self, program: PartProgram) -> int | None:
        """The part in which the oldest part of a source begins."""
        firsts = []
        for name in program.sources:
            first, source = self.book.frontier(name).oldest, self._catalog.find(name)
            if first is not None and source is not None and source.length is not None:
                firsts.append(first * source.length // program.length)
        return min(firsts, default=None)

    def _newest(self, program: PartProgram) -> int | None:
        """The newest part for which all that INITIALIZE reads is complete; the oldest, if there is none yet."""
        oldest, part = self._oldest(program), None
        read = {one.relation for one in program.initialize.references} or program.sources
        for name in read:
            following, source = self.book.frontier(name).next, self._catalog.find(name)
            if following is None or source is None or source.length is None:
                return None
            last = following * source.length // program.length
            part = last if part is None else min(part, last)
        if oldest is None or part is None:
            return None
        while part > oldest and not self._is_ready(program, program.initialize, part):
            part -= 1
        return part
