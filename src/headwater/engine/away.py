"""Epochs whose maps lie away: the side of the process that owns the warehouse.

What is at home (base relations, some views of parts) happens here as ever. For the rest, changes are written to files
that tasks read, a runner carries out the tasks of all levels, and what they report is listed in the transaction of the
epoch. Whatever is not an ordinary epoch is done at home: the maps that it fills are tables until they are sent away,
inside the same transaction.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import logging
import pickle
import shutil
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import duckdb
import pyarrow as pa

from headwater.emit.functions.clock import set_clock
from headwater.emit.layout import Fill, sql, store_table
from headwater.emit.maintain import row_columns, stored_columns
from headwater.engine import faults, part_book
from headwater.engine.failures import AWAY, ViewFailed, broken, is_full, unwritten
from headwater.engine.holding import held_fields, is_due, note_waiting, ticking
from headwater.engine.merges import Merge, Merged
from headwater.engine.parcels import RETURNED, Feed, Order, Report, divided, is_whole
from headwater.engine.part_book import Change
from headwater.engine.part_orders import part_order
from headwater.engine.parts import PartRound
from headwater.engine.rounds import Job, divide, pieces
from headwater.engine.schedule import Schedule
from headwater.engine.segment_files import above, attempt_of, broken_one, of_other_size, path_list
from headwater.engine.sending import SENDING, written
from headwater.engine.showing import Kinds, show, show_or_say, shown
from headwater.engine.spending import Epochs
from headwater.engine.synchronising import Round
from headwater.engine.tasks import CopyPlan, TaskPlan, kinds_of
from headwater.engine.workspace import Workspace, delta_of
from headwater.errors import UserError
from headwater.plan.statistics import ROWS
from headwater.store.catalog import Catalog
from headwater.store.segments import Segments

if TYPE_CHECKING:
    from headwater.engine.engine import Engine

log = logging.getLogger("headwater")

FOLDER = AWAY
#: Files that count no longer are removed after so many seconds: somebody may still read them.
GRACE_SECONDS = 60.0
#: What tasks leave that died, or were run twice, is looked for after so many seconds, and removed if it is as old.
SWEEP_SECONDS = 600.0
#: So often the tasks of an epoch are run until what they report goes together.
MOST_RUNS = 4
_KIND = "SELECT table_type FROM information_schema.tables WHERE table_schema = 'data' AND table_name = ?"


class Runner(Protocol):
    """Carries out tasks."""

    @property
    def places(self) -> int:
        """How many tasks it carries out at a time, each in a process of its own."""
        ...

    def run(self, plan: str, order: str, levels: int, partitions: int) -> list[bytes]:
        """Run the tasks of all levels of a plan; returns what they report.

        Args:
            plan: the file with the plan.
            order: the file with what they need to know of the epoch.
            levels: how many there are.
            partitions: how many tasks a level has.
        """
        ...

    @property
    def ready(self) -> bool:
        """Whether it can carry out tasks now: nothing is started only to put segments together."""
        ...

    def run_merges(self, shares: Sequence[Sequence[Merge]]) -> list[Merged]:
        """Put segments together, each share in a task of its own, beside the tasks of epochs; from any thread."""
        ...

    def stop_merges(self) -> None:
        """Give up what is being put together, if that can be done; from any thread."""
        ...


class Away:
    """What lies away from home, and the epochs that change it."""

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
        self._written: set[str] = set()
        self._spent: list[tuple[float, str]] = []
        #: Files that somebody reads, and how many do.
        self._held: Counter[str] = Counter()
        #: Theirs: who reads must not wait for an epoch.
        self._holding = threading.Lock()
        self._swept = time.monotonic()
        #: What the transaction under way writes: attempts of tasks, and files of our own.
        self._attempts: list[str] = []
        #: What was known of rows that are not stored once each, of views of parts that the transaction brings home.
        self._multiple_before: dict[str, set[int]] = {}
        #: How often a view of parts was brought home.
        self.brought = 0
        #: What is being put together beside the epochs: attempts whose files are in no list yet.
        self.merging: set[str] = set()
        #: Whether what is listed is not known: a commit has failed, and the file cannot be read.
        self.unsure = False
        #: A name that no other opening of a warehouse has.
        self.opening = uuid.uuid4().hex[:12]
        #: The runs of tasks by which the last epoch was done.
        self._runs: set[str] = set()
        #: How copies are written, as was last decided.
        self.copies: Mapping[str, CopyPlan] = {}
        #: What has changed in the epoch under way, and is yet to be seen at home.
        self._unseen: dict[str, CopyPlan] = {}
        self._primary: set[str] = set()
        #: Where the time of the last epoch went.
        self.spending = Epochs()
        Path(self.folder).mkdir(parents=True, exist_ok=True)
        self.remove_leftovers()

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

    # -- an epoch ------------------------------------------------------------------------------------------------------

    def flow(
        self,
        schedule: Schedule,
        catalog: Catalog,
        workspace: Workspace,
        epoch: int,
        net: bool,
        clock: dt.datetime,
        round_: Round,
        parts: PartRound,
    ) -> set[str]:
        """Carry changes through all rounds; returns the names of the relations that changed."""
        engine = self._engine
        before = engine.last_clock or dt.datetime.min
        self.spending.begin()
        self._unseen.clear()
        # Tasks of every round begin with what there was before the epoch: what an earlier round did comes as changes.
        listed = {copy: dict(partitions) for copy, partitions in self.segments.listed.items()}
        counted, self._runs = frozenset(self._runs), set()
        for job in self.jobs(schedule, catalog):
            with self.spending.home.on("home"):
                for piece, changed in pieces(job.home, self._unseen.keys()):
                    engine.flow(piece, workspace, epoch, {}, net, clock, round_, parts)
                    if changed is not None:
                        self.show(changed, self._unseen.pop(changed))
            if job.plan is None:
                continue
            advanced = schedule.follows_clock and clock > before
            views = {one.name for one in catalog if one.name in job.names}
            kept = {one.name for one in schedule.stages if one.keep is not None and one.name in job.names}
            observed = views if engine.observers else views & engine.hub.wanted
            order = Order(
                epoch,
                self.attempt(),
                self.partitions,
                self.folder,
                clock_of(engine, schedule, clock),
                advanced,
                frozenset(name for name in job.plan.feeds if workspace.is_batch(delta_of(name))),
                frozenset(observed | kept | job.wanted),
                {copy: listed[copy] for copy in job.plan.reads if copy in listed},
                memory=self.memory(),
                together=self.together,
                ticking=ticking(round_, schedule, job.names),
                parts=part_order((one for one in schedule.stages if one.parts and one.name in job.names), parts),
                opening=self.opening,
                counted=counted,
            )
            workspace.changed |= self._run(job, order, workspace, parts)
            note_waiting(self, job.plan, order, round_)
        return workspace.changed

    def attempt(self) -> str:
        """A name for what is about to be written: if the transaction under way is undone, that is removed."""
        self._attempts.append(uuid.uuid4().hex[:12])
        return self._attempts[-1]

    def _run(self, job: Job, order: Order, workspace: Workspace, parts: PartRound) -> set[str]:
        assert job.plan is not None
        room = Path(order.folder) / "epochs" / order.attempt
        try:
            room.mkdir(parents=True)
            with self.spending.home.on("feed"):
                feeds = self._feed(job.plan, order, workspace, room)
            if not (feeds or order.advanced or order.parts.building or is_due(job.plan, order)):
                return set()
            order = replace(order, feeds=feeds)
            (room / "order").write_bytes(pickle.dumps(order))
            faults.reach("tasks begin")
            with self.spending.home.on("job"):
                reports = self.reports(job.plan, str(room / "order"))
            self.spending.tasks += [one.spending for one in reports]
            faults.reach("tasks done")
            with self.spending.home.on("list"):
                return self._take(job, reports, workspace, parts)
        except OSError as error:
            if is_full(error):
                raise unwritten(str(error)) from error
            raise
        finally:
            shutil.rmtree(room, ignore_errors=True)
            shutil.rmtree(Path(order.folder) / RETURNED / order.attempt, ignore_errors=True)

    def reports(self, plan: TaskPlan, order: str) -> list[Report]:
        """Run the tasks of an epoch until what they report goes together."""
        for _ in range(MOST_RUNS):
            levels = len(plan.levels)
            found = self.runner.run(self._plan_file(plan), order, levels, self.partitions)
            reports = [Report.unpack(one) for one in found]
            if is_whole(reports, levels * self.partitions):
                return reports
            log.warning("tasks were run again after others had taken what they sent: all are run again")
        raise UserError(
            "HW479",
            f"the tasks of an epoch failed: in {MOST_RUNS} runs some were lost after others had taken what they sent",
            hint="nothing changed; try again when executors stay longer",
        )

    def forget_plan(self, plan: TaskPlan) -> None:
        """Tasks will not need a plan again."""
        self._written.discard(plan.identity)
        (Path(self.folder) / "plans" / plan.identity).unlink(missing_ok=True)

    @property
    def together(self) -> int:
        """How many partitions a worker's process takes in an epoch, about."""
        return -(-self.partitions // max(1, self.runner.places))

    def _plan_file(self, plan: TaskPlan) -> str:
        path = Path(self.folder) / "plans" / plan.identity
        if plan.identity not in self._written:
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_suffix(f".{uuid.uuid4().hex[:8]}")
            partial.write_bytes(pickle.dumps(plan))
            partial.replace(path)
            self._written.add(plan.identity)
        return str(path)

    def _feed(self, plan: TaskPlan, order: Order, workspace: Workspace, room: Path) -> tuple[Feed, ...]:
        """Write the changes that come from home to files, by room and partition."""
        feeds: list[Feed] = []
        for relation, ships in plan.feeds.items():
            if not workspace.rows(delta_of(relation)):
                continue
            for ship in ships:
                with contextlib.closing(divided(self._engine.connection, ship, order.partitions)) as rows:
                    for partition, pieces in groupby(rows, key=itemgetter(0)):
                        path = str(room / f"{len(feeds)}.arrow")
                        _write(path, (one for _, one in pieces))
                        feeds.append(Feed(ship.level, ship.room, partition, ship.table, path))
        return tuple(feeds)

    def _take(self, job: Job, reports: Sequence[Report], workspace: Workspace, parts: PartRound) -> set[str]:
        """List what tasks have written, and let the changes that are wanted at home be known."""
        assert job.plan is not None
        raise_what_failed(reports)
        changed: set[str] = set()
        returned: dict[str, list[str]] = {}
        connection = self._engine.connection
        for report in reports:
            self._runs.add(report.run)
            changed |= report.changed.keys()
            for copy, partition, segment in report.segments:
                self.segments.add(connection, copy, partition, segment)
            for relation, path in report.returned:
                returned.setdefault(relation, []).append(path)
        for relation, paths in returned.items():
            files = ", ".join(f"'{path}'" for path in paths)
            table = delta_of(relation)
            query = f"SELECT * FROM read_parquet([{files}])"
            workspace.fill(
                Fill(table, f"CREATE OR REPLACE TEMPORARY TABLE {table} AS {query}", f"INSERT INTO {table} {query}")
            )
        parts.came(_added_up(reports))
        for relation in changed & job.plan.primary.keys():
            lies = job.plan.copies[job.plan.primary[relation]]
            if relation in job.awaited:
                self._unseen[relation] = lies
            else:
                self.show(relation, lies)
        self._tell(job.plan, reports)
        return changed

    def _tell(self, plan: TaskPlan, reports: Sequence[Report]) -> None:
        """Let the engine know what has come to stores that it sees through views."""
        engine = self._engine
        primary = {copy: relation for relation, copy in plan.primary.items()}
        for report in reports:
            for copy, _, segment in report.segments:
                if copy not in primary:
                    continue
                engine.note_touched({primary[copy]})
                engine.appended[primary[copy]] = engine.appended.get(primary[copy], 0) + segment.rows
                if segment.first < segment.last:  # put together with others: what was noted of epochs does not hold
                    engine.access.rewritten(primary[copy])
                else:
                    engine.access.appended(primary[copy], segment.rows, segment.last)

    # -- sending away, and bringing home -------------------------------------------------------------------------------

    def arrange(self, catalog: Catalog, epoch: int) -> None:
        """Let everything lie where the schedule of a catalogue needs it, inside the caller's transaction."""
        engine = self._engine
        schedule = engine.schedule_for(catalog)
        self._jobs.clear()
        if self._sizes_before is None:
            self._sizes_before = dict(self._sizes)
        self._sizes.clear()
        jobs = self.jobs(schedule, catalog)
        plans = [job.plan for job in jobs if job.plan is not None]
        frozen = _suspended_maps(catalog) - {name for plan in plans for name in plan.primary}
        needed = {name: one for plan in plans for name, one in plan.copies.items()}
        self._show_otherwise(catalog)
        primary = {relation: plan.copies[copy] for plan in plans for relation, copy in plan.primary.items()}
        ours = catalog.map_names | held_fields(catalog).keys() | _parts(catalog)
        self.bring_home((ours & self.relations) - primary.keys() - frozen)
        there = set(self.segments.relations)
        for name in sorted(needed.keys() - there):
            self._export(needed[name], epoch)
        stale = {one for one in there - needed.keys() if self.segments.relations[one] not in frozen}
        for relation, copy in primary.items():
            if self._is_table(relation):
                engine.connection.execute(f"DROP TABLE {sql(store_table(relation))}")
                engine.access.rewritten(relation)
            self._show_again(relation, copy.name, copy.kinds)
        faults.reach("sent away")
        self.segments.drop(engine.connection, stale)

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

    def _export(self, copy: CopyPlan, epoch: int) -> None:
        """Write a copy of what a relation holds, at home or in another copy."""
        connection = self._engine.connection
        self.segments.begin_copy(connection, copy.name, copy.relation)
        means = self.partitions, self.folder, epoch, self.attempt(), time.time_ns()
        for partition, segment in written(connection, copy, *means):
            self.segments.add(connection, copy.name, partition, segment)

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
        """Divide everything into another number of parts, inside the caller's transaction; `arrange` does the rest."""
        self.bring_home(self.relations)
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

    # -- files ---------------------------------------------------------------------------------------------------------

    def committed(self) -> None:
        """A transaction is done: what it replaced may go after a while."""
        self.segments.committed()
        self._attempts.clear()
        self._multiple_before.clear()
        self._sizes_before = None
        now = time.monotonic()
        self._spent += [(now, path) for path in self.segments.spent]
        self.segments.spent.clear()
        kept: list[tuple[float, str]] = []
        with self._holding:
            for since, path in self._spent:
                if since < now - GRACE_SECONDS and path not in self._held:
                    Path(path).unlink(missing_ok=True)
                else:
                    kept.append((since, path))
        self._spent = kept
        if self._swept < now - SWEEP_SECONDS:
            self._sweep(time.time() - SWEEP_SECONDS)

    def hold(self, paths: Sequence[str]) -> None:
        """Somebody reads some files: they stay until these are released, whether they count or not."""
        with self._holding:
            self._held.update(paths)

    def release(self, paths: Sequence[str]) -> None:
        with self._holding:
            self._held -= Counter(paths)

    def look_again(self) -> None:
        """Look at what is listed in the file: perhaps it is not what was thought."""
        self.segments = Segments(self._engine.connection)
        self.unsure = False

    def undone(self, perhaps_not: bool = False) -> None:
        """A transaction is undone: what it wrote counts nowhere.

        Args:
            perhaps_not: it ended in the midst of its commit, so what is listed decides.
        """
        self._runs.clear()
        self.segments.undone()
        self._engine.book.multiple |= self._multiple_before
        self._multiple_before.clear()
        self._jobs.clear()
        if self._sizes_before is not None:
            self._sizes, self._sizes_before = self._sizes_before, None
        if perhaps_not:
            try:
                self.look_again()
            except duckdb.Error:  # what was written is removed when it is known that it does not count
                self.unsure = True
                self._attempts.clear()
        listed = {path for copy in self.segments.relations for path in self.segments.paths(copy)}
        for attempt in self._attempts:
            for path in self.written_by(attempt):
                if str(path) not in listed:
                    path.unlink(missing_ok=True)
            shutil.rmtree(Path(self.folder) / RETURNED / attempt, ignore_errors=True)
        self._attempts.clear()

    def written_by(self, attempt: str) -> Iterator[Path]:
        """The segments that an attempt has left, whether they count or not."""
        return Path(self.folder).glob(f"segments/*/*/*-{attempt}-*.parquet")

    def remove_leftovers(self) -> None:
        """Remove what attempts that never counted have left."""
        self._sweep(None)
        for name in ("epochs", RETURNED, SENDING, "plans"):
            shutil.rmtree(Path(self.folder) / name, ignore_errors=True)
        self._written.clear()

    def _sweep(self, before: float | None) -> None:
        """Remove segments that count nowhere; those that were written before a moment, if one is given."""
        self._swept = time.monotonic()
        listed = {path for copy in self.segments.relations for path in self.segments.paths(copy)}
        listed |= {path for _, path in self._spent}
        for path in Path(self.folder).glob("segments/*/*/*.parquet"):
            if attempt_of(str(path)) in self.merging:
                continue
            with contextlib.suppress(OSError):
                if str(path) not in listed and (before is None or path.stat().st_mtime < before):
                    path.unlink()


def bring_all_home(engine: Engine) -> None:
    """Let a warehouse whose maps lie away have them in its file again, inside the caller's transaction."""
    if Segments(engine.connection).relations and engine.warehouse.folder is not None:
        away = Away(engine, Nobody(), 1, engine.warehouse.folder.resolve() / FOLDER)
        away.bring_home(away.relations)


class Nobody:
    """Runs no tasks."""

    places, ready = 1, False

    def run(self, plan: str, order: str, levels: int, partitions: int) -> list[bytes]:
        raise AssertionError("there are no tasks")

    def run_merges(self, shares: Sequence[Sequence[Merge]]) -> list[Merged]:
        raise AssertionError("there are no tasks")

    def stop_merges(self) -> None:
        pass


def raise_what_failed(reports: Sequence[Report]) -> None:
    """Raise what tasks report to have failed, if any has."""
    for report in reports:
        if report.broken is not None:
            raise broken(*report.broken)
        if report.unwritten is not None:
            raise unwritten(report.unwritten)
        if report.refused is not None:
            code, message, hint = report.refused
            raise UserError(code, message, hint=hint)
        if report.failed is not None:
            raise ViewFailed(*report.failed)


def _write(path: str, pieces: Iterator[pa.Table]) -> None:
    """Write rows to a file of Arrow's."""
    first = next(pieces)
    with pa.OSFile(path, "wb") as sink, pa.ipc.new_stream(sink, first.schema) as writer:
        for piece in chain([first], pieces):
            writer.write_table(piece)


def _parts(catalog: Catalog) -> set[str]:
    return {one.name for one in catalog if one.parts is not None}


def _added_up(reports: Sequence[Report]) -> list[Change]:
    """What has happened to parts in all partitions."""
    found: dict[tuple[str, int], tuple[int, bool]] = {}
    for report in reports:
        for relation, part, rows, single in report.parts:
            before, all_single = found.get((relation, part), (0, True))
            found[relation, part] = before + rows, all_single and single
    return [Change(*key, *one) for key, one in sorted(found.items())]


def _suspended_maps(catalog: Catalog) -> set[str]:
    return {each.name for one in catalog if one.program and one.suspended for each in one.program.maps}


def clock_of(engine: Engine, schedule: Schedule, clock: dt.datetime) -> tuple[str, ...]:
    if not schedule.follows_clock:
        return ()
    before = engine.last_clock if engine.last_clock is not None else dt.datetime(1970, 1, 1)
    return tuple(set_clock(variable, moment) for variable, moment in (("now", clock), ("before", before)))
