"""New maps are filled in tasks: what their inputs hold comes to them in slices, as if it came as changes.

The schedule is cut down to the maps that are to be filled. Whatever else these read (base relations, views and maps
that there are already) counts as settled at home, so that the plan of tasks is made by the same code as that of an
epoch, with the same statements. Maps begin with what they hold over empty inputs; statements are multilinear, so what
has come to a map after the last slice is what its definition yields over all rows.

All that tasks write on the way is known to them alone: it is listed in the orders of slices, and nowhere else. Slices
have numbers of their own, above the last epoch's. At the end the segments of each new copy are put together into one,
all rows of which have come in the last epoch, as they would if the map had been filled at home; only these are listed,
in the caller's transaction. The rest is removed. Copies of inputs that there are already are not touched: those that
rooms hold on the way are others, under the same names.
"""

from __future__ import annotations

import contextlib
import pickle
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import pyarrow as pa

from headwater.algebra.nodes import Node, Scan
from headwater.emit.duckdb import Emitter
from headwater.emit.layout import EPOCH, MULTIPLICITY, sql, store_table
from headwater.emit.maintain import create_map, first_fill
from headwater.engine import faults
from headwater.engine.away import MOST_RUNS, Away, clock_of, raise_what_failed
from headwater.engine.engine import Engine
from headwater.engine.failures import ViewFailed, is_full, is_value_error, translate, unwritten
from headwater.engine.history import History
from headwater.engine.merges import Merge, Merged
from headwater.engine.moves import shared_out
from headwater.engine.parcels import BATCH_ROWS, Feed, Order, Report, apart
from headwater.engine.placing import Placing
from headwater.engine.rebuild import without
from headwater.engine.schedule import Schedule, Stage
from headwater.engine.segment_files import quoted
from headwater.engine.sending import written
from headwater.engine.shapes import living, shape_of
from headwater.engine.spent_files import EPOCHS
from headwater.engine.stepwise import bound_to_home
from headwater.engine.tasks import PARTITIONS, CopyPlan, Shipment, TaskPlan, task_plan
from headwater.engine.workers import FILLING
from headwater.errors import UserError
from headwater.plan.program import Map, Program
from headwater.plan.statistics import ROWS
from headwater.store.catalog import Catalog
from headwater.store.segments import ALL, Segment
from headwater.store.storage import storage_of

#: What is filled from fewer rows is filled at home, which takes about a second then; jobs on Spark take longer.
FEWEST_ROWS = 1_000_000
#: So many rows of inputs come to each partition at a time, about.
SLICE_ROWS = 1_000_000
#: So many files are written at once.
_MOST_FILES = 256


@dataclass(frozen=True)
class Source:
    """What is sent of an input.

    Attributes:
        relation: its name.
        query: its rows, as they are stored, none of which another one takes back.
        rows: how many, about.
        each_once: all of them are rows that come, each once.
    """

    relation: str
    query: str
    rows: int
    each_once: bool = False


@dataclass(frozen=True)
class Filling:
    """How maps are filled in tasks.

    Attributes:
        schedule: cut down to these maps.
        plan: what tasks do in each slice.
        sources: what is sent, least rows first.
        grows: each slice is twice as large as the one before: some of what was done for one is done again for the next.
    """

    schedule: Schedule
    plan: TaskPlan
    sources: tuple[Source, ...]
    grows: bool

    @property
    def rows(self) -> int:
        return sum(one.rows for one in self.sources)


def plan_filling(engine: Engine, program: Program, names: Set[str], after: Catalog) -> Filling | str:
    """How some new maps of a program can be filled in tasks; or why they are filled at home.

    Args:
        engine: whose.
        program: of the view.
        names: the maps.
        after: the catalogue with the view.
    """
    if engine.away is None:
        return "programs do not run in tasks"
    if not names:
        return "all of its maps are there already"
    if names & engine.catalog.map_names:
        return "some of its maps are there already, and not up to date"
    if names & bound_to_home(after.programs):
        return "its maps are read amid the steps of an epoch"
    maps = [one for one in program.maps if one.name in names]
    told = History(engine.catalog, frozenset(names))
    if any(told.told(one.definition) != (one.definition, frozenset()) for one in maps):
        return "rows that are not kept are had from sums in other maps"
    stages = {one.name: one for one in engine.schedule_for(after).stages}
    inputs = {name for one in maps for name in one.definition.relations} - names
    if not inputs <= stages.keys():
        return "it reads a view that is suspended"
    sources: list[Source] = []
    for name in inputs:
        source = _source(engine, name, maps, after)
        if isinstance(source, str):
            return source
        sources += [source] if source is not None else []
    rows = {one.relation: one.rows for one in sources}
    if sum(rows.values()) < max(1, FEWEST_ROWS):
        return "its inputs have few rows"
    schedule = _reduced(engine.schedule_for(after), names)
    placed = Placing(schedule, after, lambda name: float(rows.get(name, ROWS)) or 1.0, names, {}).plan()
    plan = task_plan(placed, schedule, after)
    if plan.primary.keys() != names:
        return "some of its maps are not stored"
    sources = [one for one in sources if one.relation in plan.feeds]
    again = any(one.keys is not None or program.recomputes(one.name) for one in maps)
    return Filling(schedule, plan, tuple(sorted(sources, key=lambda one: (one.rows, one.relation))), again)


def _reduced(schedule: Schedule, names: Set[str]) -> Schedule:
    """A schedule in which only some maps follow their inputs; all else is as if it were settled at home."""
    stages: list[Stage] = []
    for one in schedule.stages:
        triggers = tuple(each for each in one.triggers if each.target.name in names)
        if one.name in names:
            stages.append(replace(one, triggers=triggers, keep=None))
        else:
            stages.append(Stage(one.name, one.view, None, False, frozenset(), triggers, None))
    return replace(schedule, stages=tuple(stages))


def _source(engine: Engine, name: str, maps: Sequence[Map], after: Catalog) -> Source | str | None:
    """What is sent of an input; None if it holds nothing, or why that cannot be said."""
    before = engine.catalog.find(name)
    if before is not None and not engine.catalog.keeps(before):
        return None
    if before is None and name not in engine.catalog.map_names:
        return f"{name} is made with it"
    table, where = sql(store_table(name)), ""
    if before is not None and before.flows:
        since = {scan.since for one in maps for scan in _scans(one.definition) if scan.relation == name}
        if len(since) > 1:
            return f"it reads stream {name} from different epochs on"
        if max(since, default=0) >= engine.epoch:
            return None
        if before.retain is None:
            return f"stream {name} does not retain all rows that it has seen"
        where = f' WHERE "{EPOCH}" > {max(since, default=0)}'
    found = engine.connection.execute(
        f'SELECT count(*), coalesce(sum("{MULTIPLICITY}"), 0), min("{MULTIPLICITY}"), max("{MULTIPLICITY}") '
        f"FROM {table}{where}"
    ).fetchone()
    assert found is not None
    entries, rows, least, most = found
    shape = shape_of(after, name)
    if not entries:
        return None
    if shape is not None and (shape.totals or shape.picks):
        return Source(name, sql(living(name, shape)), entries)
    if shape is not None and least < 0:
        return Source(name, sql(living(name, shape)), int(rows)) if rows else None
    return Source(name, f"SELECT * FROM {table}{where}", entries, least == most == 1)


def _scans(node: Node) -> list[Scan]:
    return [one for one in node.walk() if isinstance(one, Scan)]


def fill(engine: Engine, program: Program, filling: Filling, after: Catalog) -> None:
    """Fill maps in tasks and list what they hold, inside the caller's transaction.

    Raises:
        ViewFailed: a statement could not take a value; perhaps it would in a state that is there in the end.
        UserError: tasks, or files, failed.
    """
    assert engine.away is not None
    work = _Work(engine, engine.away, program, filling, after)
    try:
        work.begin()
        work.send()
        work.adopt()
    except OSError as error:
        if is_full(error):
            raise unwritten(str(error)) from error
        raise
    finally:
        work.close()


class _Work:
    """The slices of a filling, and what they have written so far."""

    def __init__(self, engine: Engine, away: Away, program: Program, filling: Filling, after: Catalog) -> None:
        self._engine, self._away, self._after = engine, away, after
        self._plan, self._filling, self._program = filling.plan, filling, program
        self._maps = [one for one in program.maps if one.name in filling.plan.primary]
        self._epoch = engine.epoch
        self._attempt = away.files.attempt()
        #: No worker has met rooms of this name; they are given up when epochs go on.
        self._opening = f"{away.opening}{FILLING}{uuid.uuid4().hex[:12]}"
        self._listed: dict[str, dict[int, tuple[Segment, ...]]] = {}
        self._runs: frozenset[str] = frozenset()
        self._batches = frozenset(one.relation for one in filling.sources if one.each_once)
        self._clock = clock_of(engine, filling.schedule, engine.last_clock or engine.present())
        self._storage = storage_of(away.folder)
        self._folder = f"{away.folder}/{EPOCHS}/{self._attempt}"
        self._memory = away.memory()

    def close(self) -> None:
        """Remove what was needed on the way."""
        self._engine.built = None
        self._storage.remove_tree(self._folder)
        self._away.forget_plan(self._plan)
        self._storage.remove(self._storage.segments(self._away.folder, self._attempt))

    # -- what maps hold over empty inputs ------------------------------------------------------------------------------

    def begin(self) -> None:
        """Let maps hold what they do over empty inputs: a total of no rows is a row."""
        connection, names = self._engine.connection, self._plan.primary.keys()
        inputs = frozenset(name for one in self._maps for name in one.definition.relations) - names
        emitter = Emitter(self._after.grouped)
        for statement in self._clock:
            connection.execute(statement)
        for one in self._maps:
            connection.execute(create_map(one))
            empty = Map(one.name, without(one.definition, inputs))
            try:
                query = first_fill(empty, emitter, self._program.recomputes(one.name))
                found = connection.execute(query, {"epoch": self._epoch}).fetchone()
            except duckdb.Error as error:
                if not is_value_error(error):
                    raise
                told = translate(error)
                raise ViewFailed(self._program.view, told.code, told.message) from error
            if found is not None and found[0]:
                self._send_away(one.name)
        for one in reversed(self._maps):
            connection.execute(f"DROP TABLE {sql(store_table(one.name))}")

    def _send_away(self, relation: str) -> None:
        means = self._away.partitions, self._away.folder, self._epoch, self._attempt, time.time_ns()
        for copy in self._plan.copies.values():
            if copy.relation == relation:
                for partition, segment in written(self._engine.connection, copy, *means):
                    self._listed.setdefault(copy.name, {})[partition] = (segment,)

    # -- slices --------------------------------------------------------------------------------------------------------

    def send(self) -> None:
        """Let everything come."""
        rows, done, number = SLICE_ROWS * self._away.partitions, 0, 0
        pieces = _Pieces(self._engine, self._filling, self._away.partitions)
        with contextlib.closing(pieces):
            while True:
                number += 1
                folder = f"{self._folder}/{number}"
                with self._storage.filling(folder) as here:
                    taken, feeds = pieces.take(rows, folder, here)
                    if not taken:
                        return
                    (Path(here) / "order").write_bytes(pickle.dumps(self._order(number, feeds)))
                self._carry_out(f"{folder}/order")
                self._storage.remove_tree(folder)
                done += taken
                rows *= 2 if self._filling.grows else 1
                self._engine.built = 100.0 * min(1.0, done / max(1, self._filling.rows))
                faults.reach("slice done")

    def _order(self, number: int, feeds: tuple[Feed, ...]) -> Order:
        return Order(
            self._epoch + number,
            self._attempt,
            self._away.partitions,
            self._away.folder,
            self._clock,
            batches=self._batches,
            segments=self._listed,
            feeds=feeds,
            memory=self._memory,
            together=self._away.together,
            opening=self._opening,
            counted=self._runs,
        )

    def _carry_out(self, order: str) -> None:
        reports = self._away.reports(self._plan, order)
        raise_what_failed(reports)
        self._runs = frozenset(one.run for one in reports)
        self._take(reports)

    def _take(self, reports: Sequence[Report]) -> None:
        for report in reports:
            for copy, partition, segment in report.segments:
                partitions = self._listed.setdefault(copy, {})
                there = partitions.get(partition, ())
                kept = tuple(one for one in there if one.first < segment.first)
                partitions[partition] = (*kept, segment)
                self._storage.remove(one.path for one in there[len(kept) :])  # their rows are in the new one

    # -- what counts ---------------------------------------------------------------------------------------------------

    def adopt(self) -> None:
        """List what new copies hold, each in one segment a partition."""
        away, connection = self._away, self._engine.connection
        copies = [one for one in self._plan.copies.values() if self._counts(one)]
        attempt = away.files.attempt()
        found = self._put_together(copies, attempt)
        for copy in copies:
            away.segments.begin_copy(connection, copy.name, copy.relation)
            for partition, segment in sorted(found.get(copy.name, {}).items()):
                away.segments.add(connection, copy.name, partition, segment)
        for relation, name in self._plan.primary.items():
            away.show(relation, self._plan.copies[name])
            self._engine.access.rewritten(relation)
        faults.reach("slices listed")

    def _counts(self, copy: CopyPlan) -> bool:
        """Whether a copy is a new one, whose rows have come in no epoch that matters.

        Of a stream, and of a view that there is already, somebody may want to know in which epoch rows came.
        """
        if copy.relation in self._plan.primary:
            return True
        relation = self._after.find(copy.relation)
        plain = relation is not None and relation.program is None and relation.parts is None and relation.policy is None
        return plain and relation is not None and not relation.flows and copy.name not in self._away.segments.relations

    def _put_together(self, copies: Sequence[CopyPlan], attempt: str) -> Mapping[str, Mapping[int, Segment]]:
        away = self._away
        anew = self._epoch, time.time_ns()
        merges = [
            Merge(copy, partition, segments, away.folder, attempt, self._memory, anew=anew)
            for copy in copies
            for partition, segments in self._listed.get(copy.name, {}).items()
        ]
        found: dict[str, dict[int, Segment]] = {}
        for one in self._merged(merges) if merges else ():
            if one.segment is None:
                full = OSError(one.problem)
                if is_full(full):
                    raise full
                raise UserError("HW479", f"tasks that fill a view failed: {one.problem}", hint="nothing changed")
            if one.segment.rows:
                found.setdefault(one.key[0], {})[one.key[1]] = one.segment
        kept = {one.path for each in found.values() for one in each.values()}
        # Also by tasks that were run twice.
        self._storage.remove([one for one in self._storage.segments(away.folder, attempt) if one not in kept])
        return found

    def _merged(self, merges: Sequence[Merge]) -> list[Merged]:
        shares = shared_out(merges, lambda one: one.size, max(1, self._away.runner.places))
        for left in reversed(range(MOST_RUNS)):
            try:
                # Spark knows by the thread what is done beside epochs, and may be given up; this must not be ours.
                with ThreadPoolExecutor(1) as beside:
                    return beside.submit(self._away.runner.run_merges, shares).result()
            except UserError as error:
                if error.code != "HW479" or not left:
                    raise
        raise AssertionError("the last run either ends or fails")


class _Pieces:
    """The rows of all inputs, some at a time, in files for the rooms and partitions that they go to."""

    def __init__(self, engine: Engine, filling: Filling, partitions: int) -> None:
        self._plan, self._partitions = filling.plan, partitions
        self._connection = engine.warehouse.reader()
        self._batches = self._read(filling.sources)

    def close(self) -> None:
        self._batches.close()  # type: ignore[attr-defined]
        self._connection.close()

    def take(self, rows: int, folder: str, here: str) -> tuple[int, tuple[Feed, ...]]:
        """Write about so many rows; returns how many there were, and their files.

        Args:
            rows: how many.
            folder: where tasks find the files.
            here: where they are written.
        """
        taken = 0
        with _Files(folder, here) as files:
            for relation, batch in self._batches:
                taken += batch.num_rows
                self._divide(relation, batch, files)
                if taken >= rows:
                    break
        return taken, tuple(files.feeds)

    def _read(self, sources: Sequence[Source]) -> Iterator[tuple[str, pa.RecordBatch]]:
        for source in sources:
            ships = self._plan.feeds[source.relation]
            items = [quoted(text) for text in ships[0].columns]
            for number, ship in enumerate(ships):
                if ship.partition is not None:
                    where = ship.partition.replace(f"${PARTITIONS}", str(self._partitions))
                    items.append(f"CAST({where} AS INTEGER) AS {quoted(_to(number))}")
            query = f"SELECT {', '.join(items)} FROM ({source.query}) AS source"
            most = min(BATCH_ROWS, SLICE_ROWS)
            with self._connection.sql(query).to_arrow_reader(most) as batches:
                for batch in batches:
                    yield source.relation, batch

    def _divide(self, relation: str, batch: pa.RecordBatch, files: _Files) -> None:
        ships = self._plan.feeds[relation]
        rows = pa.Table.from_batches([batch]).select(list(ships[0].columns))
        for number, ship in enumerate(ships):
            if ship.partition is None:
                files.write(ship, ALL, rows)
                continue
            for partition, some in apart(rows, batch.column(_to(number)).to_numpy(), self._partitions):
                files.write(ship, partition, some)


def _to(number: int) -> str:
    return f"#to{number}"


class _Files:
    """Files that rows are written to, by where they go."""

    def __init__(self, folder: str, here: str) -> None:
        self._folder, self._here = folder, here
        self._open = contextlib.ExitStack()
        self._writers: dict[tuple[Shipment, int], pa.RecordBatchStreamWriter] = {}
        self.feeds: list[Feed] = []

    def __enter__(self) -> _Files:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def write(self, ship: Shipment, partition: int, rows: pa.Table) -> None:
        if (ship, partition) not in self._writers:
            if len(self._writers) >= _MOST_FILES:
                self._open.close()
                self._writers.clear()
            name = f"{len(self.feeds)}.arrow"
            sink = self._open.enter_context(pa.OSFile(f"{self._here}/{name}", "wb"))
            self._writers[ship, partition] = self._open.enter_context(pa.ipc.new_stream(sink, rows.schema))
            self.feeds.append(Feed(ship.level, ship.room, partition, ship.table, f"{self._folder}/{name}"))
        self._writers[ship, partition].write_table(rows)
