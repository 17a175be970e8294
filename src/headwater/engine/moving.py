"""Where relations lie, and how they get there: sending away, dividing anew, and bringing home.

What lies away already goes from partition to partition in tasks (`headwater.engine.moves`): the process that owns the
warehouse says what is to be done, and lists what was. What is at home is written from there, and what has to be at home
becomes tables. All of it is done inside the caller's transaction.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from headwater.emit.layout import sql, store_table
from headwater.emit.maintain import row_columns, stored_columns
from headwater.engine import faults, part_book
from headwater.engine.failures import broken, unwritten
from headwater.engine.holding import held_fields
from headwater.engine.moves import Division, Gathering, Move, Moved, carry_out_here, grouped, shared_out
from headwater.engine.rounds import Job, divide
from headwater.engine.schedule import Schedule
from headwater.engine.segment_files import above, broken_one, of_other_size, path_list
from headwater.engine.sending import SENDING, written
from headwater.engine.showing import Kinds, show, show_or_say, shown
from headwater.engine.spent_files import SpentFiles
from headwater.engine.tasks import PARTITIONS, CopyPlan, kinds_of
from headwater.errors import UserError
from headwater.plan.statistics import ROWS
from headwater.store.catalog import Catalog
from headwater.store.segments import Segment, Segments
from headwater.store.storage import storage_of

if TYPE_CHECKING:
    from headwater.engine.away import Runner
    from headwater.engine.engine import Engine

#: So many bytes are divided anew in this process: to have tasks do it takes longer.
FEW_BYTES = 4 << 20
_KIND = "SELECT table_type FROM information_schema.tables WHERE table_schema = 'data' AND table_name = ?"


class Moving:
    """What lies away from home, and in which copies."""

    def __init__(
        self,
        engine: Engine,
        runner: Runner,
        partitions: int,
        folder: str | Path,
        memory: Callable[[], int | None] = lambda: None,
    ) -> None:
        """Look at what lies away.

        Args:
            engine: whose.
            runner: carries out tasks.
            partitions: into how many parts what lies away is divided.
            folder: where it lies.
            memory: how many bytes the engine may take in a task's process, if somebody has said so.
        """
        self._engine = engine
        self.runner = runner
        self.folder = str(folder)
        self.memory = memory
        self.partitions = partitions
        self.segments = Segments(engine.connection)
        self._jobs: dict[int, tuple[Schedule, list[Job]]] = {}
        self._sizes: dict[str, float] = {}
        #: What was decided by, if the transaction under way decides anew.
        self._sizes_before: dict[str, float] | None = None
        #: Which of its files may go, and when.
        self.files = SpentFiles(self.folder)
        #: What was known of rows that are not stored once each, of views of parts that the transaction brings home.
        self._multiple_before: dict[str, set[int]] = {}
        #: How often a view of parts was brought home.
        self.brought = 0
        #: What the transaction under way decides anew; None for all.
        self._unsettled: set[str] | None = None
        #: Copies that are divided into another number of parts, in the transaction under way.
        self._otherwise: frozenset[str] = frozenset()
        #: How copies are written, as was last decided.
        self.copies: Mapping[str, CopyPlan] = {}
        self._primary: set[str] = set()

    # -- what goes where -----------------------------------------------------------------------------------------------

    def jobs(self, schedule: Schedule, catalog: Catalog) -> list[Job]:
        """The rounds of an epoch; there is a last one without tasks."""
        found = self._jobs.get(id(schedule))
        if found is None or found[0] is not schedule:
            if len(self._jobs) > 4:
                self._jobs.clear()
            found = self._jobs[id(schedule)] = schedule, divide(schedule, catalog, self._rows_of)
            plans = [job.plan for job in found[1] if job.plan is not None]
            self.copies = {name: one for plan in plans for name, one in plan.copies.items()}
            self._primary = {copy for plan in plans for copy in plan.primary.values()}
        return found[1]

    def _rows_of(self, relation: str) -> float:
        """How many rows a relation had when the catalogue last changed: everything lies as was decided then."""
        if relation not in self._sizes:
            self._sizes[relation] = self._count(relation)
        return self._sizes[relation]

    def _count(self, relation: str) -> float:
        """About how many rows a relation has; one without any is taken for a large one, as the planner does."""
        copies = self.segments.copies_of(relation)
        if copies:
            return float(max(self.segments.rows(one) for one in copies)) or ROWS
        query = "SELECT estimated_size FROM duckdb_tables() WHERE schema_name = 'data' AND table_name = ?"
        found = self._engine.connection.execute(query, [relation]).fetchone()
        return float(found[0] or ROWS) if found else 1000.0

    # -- sending away, and bringing home -------------------------------------------------------------------------------

    def arrange(self, catalog: Catalog, epoch: int) -> None:
        """Let everything lie where the schedule of a catalogue needs it, inside the caller's transaction."""
        engine = self._engine
        schedule = engine.schedule_for(catalog)
        self._jobs.clear()
        if self._sizes_before is None:
            self._sizes_before = dict(self._sizes)
        for relation in list(self._sizes) if self._unsettled is None else self._unsettled:
            self._sizes.pop(relation, None)
        jobs = self.jobs(schedule, catalog)
        plans = [job.plan for job in jobs if job.plan is not None]
        frozen = _suspended_maps(catalog) - {name for plan in plans for name in plan.primary}
        needed = {name: one for plan in plans for name, one in plan.copies.items()}
        self._show_otherwise(catalog)
        primary = {relation: plan.copies[copy] for plan in plans for relation, copy in plan.primary.items()}
        ours = catalog.map_names | held_fields(catalog).keys() | _parts(catalog)
        self.bring_home((ours & self.relations) - primary.keys() - frozen)
        there = set(self.segments.relations)
        self._write(
            [needed[name] for name in sorted(needed) if name not in there or self._is_stale(needed[name])], epoch
        )
        self._otherwise = frozenset()
        stale = {one for one in there - needed.keys() if self.segments.relations[one] not in frozen}
        for relation, copy in primary.items():
            if self._is_table(relation):
                engine.connection.execute(f"DROP TABLE {sql(store_table(relation))}")
                engine.access.rewritten(relation)
            self._show_again(relation, copy.name, copy.kinds)
        faults.reach("sent away")
        self.segments.drop(engine.connection, stale)

    def settle_only(self, relations: Set[str]) -> None:
        """Let the transaction under way decide anew how some relations lie; others lie as they do."""
        self._unsettled = set(relations)

    def _is_stale(self, copy: CopyPlan) -> bool:
        """Whether a copy is divided into another number of parts; one that lies everywhere or in one place is not."""
        return copy.name in self._otherwise and f"${PARTITIONS}" in (copy.partition or "")

    def _show_otherwise(self, catalog: Catalog) -> None:
        """Let readers at home see what they should, where the folder is another one, or files are not those listed."""
        columns = {one.name: stored_columns(one) for program in catalog.programs for one in program.maps}
        columns |= {name: row_columns(fields) for name, fields in held_fields(catalog).items()}
        columns |= {one.name: row_columns(one.fields) for one in catalog if one.parts is not None}
        for relation in sorted(columns.keys() & self.relations):
            copies = self.segments.copies_of(relation)
            seen = shown(self._engine.connection, relation)
            if seen is None:
                continue
            same = [copy for copy in copies if seen == set(self.segments.paths(copy))]
            if not same or of_other_size(self.segments.of(same[0])) is not None:
                segments = self.segments.of((same or copies)[0])
                kinds = kinds_of(columns[relation])
                show_or_say(self._engine.connection, relation, kinds, segments, self._floor(relation))

    def _show_again(self, relation: str, copy: str, kinds: Kinds) -> None:
        """Let readers at home see a copy, unless they do."""
        if shown(self._engine.connection, relation) != set(self.segments.paths(copy)):
            show_or_say(self._engine.connection, relation, kinds, self.segments.of(copy), self._floor(relation))

    # -- writing copies ------------------------------------------------------------------------------------------------

    def _write(self, copies: Sequence[CopyPlan], epoch: int) -> None:
        """Write copies of what relations hold: in tasks from another copy, or from what is at home."""
        sources = {one.name: self._sources(one) for one in copies}
        left = [one for one in copies if sources[one.name]]
        size = sum(one.size for copy in left for there in sources[copy.name][0].values() for one in there)
        # To look at a warehouse Spark is not started, but to divide it otherwise it may be.
        in_tasks = size >= FEW_BYTES and (bool(self._otherwise) or self.runner.ready)
        found: dict[str, list[tuple[int, Segment]]] = {}
        while left:
            broken_ones: dict[str, tuple[str, str]] = {}
            moved = self._redivide(
                {one.name: (one, sources[one.name][0]) for one in left}, epoch, in_tasks, broken_ones
            )
            found |= moved
            left = []
            for copy in (one for one in copies if one.name in broken_ones):
                del sources[copy.name][0]
                if sources[copy.name]:
                    left.append(copy)
                elif not self._is_table(copy.relation):
                    raise broken(*broken_ones[copy.name])
        for copy in copies:
            if copy.name not in found:
                self._begin(copy)
                self._export(copy, epoch)
        for copy in copies:
            if copy.name in found:
                self._begin(copy)
                for partition, segment in found[copy.name]:
                    self.segments.add(self._engine.connection, copy.name, partition, segment)
                if not self._is_table(copy.relation):
                    self._engine.access.rewritten(copy.relation)

    def _begin(self, copy: CopyPlan) -> None:
        """List a copy without segments."""
        if copy.name in self.segments.relations:
            self.segments.clear(self._engine.connection, copy.name)
        else:
            self.segments.begin_copy(self._engine.connection, copy.name, copy.relation)

    def _sources(self, copy: CopyPlan) -> list[Mapping[int, tuple[Segment, ...]]]:
        """The segments from which a copy can be written, itself first, by partition."""
        names = sorted(self.segments.copies_of(copy.relation), key=lambda one: one != copy.name)
        return [self.segments.listed[one] for one in names]

    def _export(self, copy: CopyPlan, epoch: int) -> None:
        """Write a copy of what a relation holds at home."""
        connection = self._engine.connection
        means = self.partitions, self.folder, epoch, self.files.attempt(), time.time_ns()
        for partition, segment in written(connection, copy, *means):
            self.segments.add(connection, copy.name, partition, segment)

    def _redivide(
        self,
        wanted: Mapping[str, tuple[CopyPlan, Mapping[int, tuple[Segment, ...]]]],
        epoch: int,
        in_tasks: bool,
        broken_ones: dict[str, tuple[str, str]],
    ) -> dict[str, list[tuple[int, Segment]]]:
        """Let the rows of segments go where copies need them; returns the partitions of these, with their segments.

        Args:
            wanted: copies, and what they are written from, by partition.
            epoch: the last one.
            in_tasks: whether tasks do it.
            broken_ones: takes the copies for which a segment could not be read, with its name and why.
        """
        attempt, generation = self.files.attempt(), time.time_ns()
        places = self.runner.places if in_tasks else 1
        memory = self.memory() if in_tasks else None
        on_the_way = f"{self.folder}/{SENDING}/{attempt}"
        try:
            divisions: list[Division] = []
            for copy, partitions in wanted.values():
                floor = self._floor(copy.relation)
                for share in grouped(partitions, places):
                    means = copy, share, self.partitions, f"{on_the_way}/{copy.name}", memory, floor
                    divisions.append(Division(len(divisions), *means))
            files: dict[tuple[str, int], list[tuple[str, int]]] = {}
            rows = dict.fromkeys(wanted, 0)
            for one in self._carried_out(divisions, places, in_tasks):
                name = divisions[one.number].copy.name
                if one.broken is not None:
                    broken_ones[name] = one.broken
                rows[name] += one.rows
                for partition, path, size in one.files:
                    files.setdefault((name, partition), []).append((path, size))
            faults.reach("rows divided")
            gatherings: list[Gathering] = []
            for (name, partition), there in sorted(files.items()):
                if name not in broken_ones:
                    paths, size = tuple(path for path, _ in there), sum(each for _, each in there)
                    where = self.folder, epoch, attempt, generation, memory
                    gatherings.append(Gathering(len(gatherings), wanted[name][0], partition, paths, size, *where))
            found: dict[str, list[tuple[int, Segment]]] = {name: [] for name in wanted if name not in broken_ones}
            for one in self._carried_out(gatherings, places, in_tasks):
                assert one.segment is not None
                found[gatherings[one.number].copy.name].append((gatherings[one.number].partition, one.segment))
            for name, there_now in found.items():
                if sum(one.rows for _, one in there_now) != rows[name]:
                    raise _unmoved(f"of {rows[name]:,} rows for {name} not all have arrived")
            self._remove_others(attempt, found)
            return found
        finally:
            storage_of(self.folder).remove_tree(on_the_way)

    def _remove_others(self, attempt: str, found: Mapping[str, Sequence[tuple[int, Segment]]]) -> None:
        """Remove segments of an attempt that nobody has reported: tasks may have been run twice."""
        reported = {one.path for there in found.values() for _, one in there}
        storage = storage_of(self.folder)
        others = [one for one in storage.segments(self.folder, attempt) if one not in reported]
        storage.remove(one for one in others if one.split("/")[-3] in found)

    def _carried_out(self, moves: Sequence[Move], places: int, in_tasks: bool) -> list[Moved]:
        """Have work done; what could not be, because of a segment that cannot be read, says so."""
        if not moves:
            return []
        shares = shared_out(moves, lambda one: one.size, places)
        here = f"{storage_of(self.folder).scratch(self.folder)}/{SENDING}"
        done = self.runner.run_moves(shares) if in_tasks else carry_out_here(shares, here)
        for one in done:
            if one.unwritten is not None:
                raise unwritten(one.unwritten)
            if one.problem is not None and one.broken is None:
                raise _unmoved(one.problem)
        if sorted(one.number for one in done) != list(range(len(moves))):
            raise _unmoved("not all tasks have said what they did")
        return done

    # -- bringing home -------------------------------------------------------------------------------------------------

    def bring_home(self, relations: Set[str], lost: Mapping[str, str] | None = None) -> None:
        """Let what lies away be tables again, inside the caller's transaction.

        Args:
            relations: which; of those that are tables anyway, what lies away as well is given up.
            lost: those of which no copy can be read, with what makes their tables, which are left empty.
        """
        connection = self._engine.connection
        for relation in sorted(relations):
            copies = self.segments.copies_of(relation)
            if not copies:
                continue
            if not self._is_table(relation):
                table, there = sql(store_table(relation)), sql(store_table(f"{relation}#home"))
                if lost is None or relation not in lost:
                    connection.execute(f"CREATE TABLE {there} AS SELECT * FROM {self._source(relation, copies, lost)}")
                connection.execute(f"DROP VIEW {table}")
                if lost is not None and relation in lost:
                    connection.execute(lost[relation])
                else:
                    connection.execute(f"ALTER TABLE {there} RENAME TO {table.split('.', 1)[1]}")
                    self.note_multiple(relation)
                self._engine.access.rewritten(relation)
            self.segments.drop(connection, copies)
        faults.reach("brought home")

    def _source(self, relation: str, copies: Sequence[str], lost: Mapping[str, str] | None) -> str:
        """What to read a relation from: a copy, and one that is whole if some may not be."""
        for copy in copies:
            found = self.segments.of(copy)
            if found and (lost is None or broken_one(found, deep=True) is None):
                return f"read_parquet({path_list(found)}){above(self._floor(relation))}"
        return sql(store_table(relation))

    def note_multiple(self, relation: str) -> None:
        """Find out which parts of a view that was brought home have rows that are not stored once each."""
        book = self._engine.book
        if relation in book.frontiers:
            self.brought += 1
            self._multiple_before.setdefault(relation, set(book.multiple.get(relation, ())))
            book.multiple[relation] = part_book.note_multiple(self._engine.connection, relation)

    def damaged(self, relations: Set[str]) -> set[str]:
        """Of some relations that lie away, also if they are tables, those of which a copy cannot be read."""
        copies = {one: self.segments.copies_of(one) for one in relations}
        return {
            relation
            for relation, names in copies.items()
            if any(broken_one(self.segments.of(copy), deep=True) is not None for copy in names)
        }

    def unreadable(self, relations: Set[str]) -> set[str]:
        """Of some relations that lie away, those of which no copy can be read."""
        lost: set[str] = set()
        for relation in relations:
            copies = self.segments.copies_of(relation)
            if not copies or self._is_table(relation):
                continue
            if all(broken_one(self.segments.of(copy), deep=True) is not None for copy in copies):
                lost.add(relation)
        return lost

    def drop(self, relation: str) -> bool:
        """Drop a relation that lies away, inside the caller's transaction; whether it does."""
        copies = self.segments.copies_of(relation)
        self.segments.drop(self._engine.connection, copies)
        if not copies or self._is_table(relation):
            return False
        self._engine.connection.execute(f"DROP VIEW IF EXISTS {sql(store_table(relation))}")
        return True

    def repartition(self, partitions: int) -> None:
        """Divide everything into another number of parts, inside the caller's transaction; `arrange` does it."""
        self._otherwise = frozenset(self.segments.relations)
        self.partitions = partitions
        self._jobs.clear()

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        return self._engine.connection

    @property
    def relations(self) -> set[str]:
        """What lies away."""
        return set(self.segments.relations.values())

    def holds(self, relation: str) -> bool:
        """Whether the rows of a relation are away, and not at home."""
        with self._engine.lock:
            return bool(self.segments.copies_of(relation)) and not self._is_table(relation)

    def _is_table(self, relation: str) -> bool:
        found = self._engine.connection.execute(_KIND, [relation]).fetchone()
        return found is not None and found[0] == "BASE TABLE"

    def show(self, relation: str, copy: CopyPlan) -> None:
        """Let readers at home see what counts of a relation."""
        show(self._engine.connection, relation, copy.kinds, self.segments.of(copy.name), self._floor(relation))

    def show_from(self, relation: str, floor: int) -> None:
        """Let readers at home see no parts of a view before one, inside the caller's transaction."""
        copy = next(one for one in self.copies.values() if one.relation == relation and one.name in self._primary)
        show(self._engine.connection, relation, copy.kinds, self.segments.of(copy.name), floor)

    def _floor(self, relation: str) -> int | None:
        """The oldest part that is kept of a relation, if others were deleted."""
        return self._engine.book.frontier(relation).kept


def _parts(catalog: Catalog) -> set[str]:
    return {one.name for one in catalog if one.parts is not None}


def _suspended_maps(catalog: Catalog) -> set[str]:
    return {each.name for one in catalog if one.program and one.suspended for each in one.program.maps}


def _unmoved(reason: str) -> UserError:
    return UserError("HW479", f"tasks that divide segments anew failed: {reason}", hint="nothing changed; try again")
