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
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import duckdb
import pyarrow as pa

from headwater.emit.functions.clock import set_clock
from headwater.emit.layout import Fill
from headwater.engine import faults
from headwater.engine.failures import AWAY, ViewFailed, broken, is_full, unwritten
from headwater.engine.holding import is_due, note_waiting, ticking
from headwater.engine.merges import Merge, Merged
from headwater.engine.moves import Move, Moved
from headwater.engine.moving import Moving
from headwater.engine.parcels import RETURNED, Feed, Order, Report, divided, is_whole
from headwater.engine.part_book import Change
from headwater.engine.part_orders import part_order
from headwater.engine.parts import PartRound
from headwater.engine.rounds import Job, pieces
from headwater.engine.schedule import Schedule
from headwater.engine.segment_files import in_quotes
from headwater.engine.spending import Epochs
from headwater.engine.spent_files import EPOCHS, PLANS
from headwater.engine.synchronising import Round
from headwater.engine.tasks import CopyPlan, TaskPlan
from headwater.engine.workspace import Workspace, delta_of
from headwater.errors import UserError
from headwater.store.catalog import Catalog
from headwater.store.segments import Segments
from headwater.store.storage import storage_of

if TYPE_CHECKING:
    from headwater.engine.engine import Engine

log = logging.getLogger("headwater")

FOLDER = AWAY
#: So often the tasks of an epoch are run until what they report goes together.
MOST_RUNS = 4


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

    def run_moves(self, shares: Sequence[Sequence[Move]]) -> list[Moved]:
        """Let rows go to other partitions, each share in a task of its own."""
        ...


class Away(Moving):
    """What lies away from home, and the epochs that change it."""

    def __init__(
        self,
        engine: Engine,
        runner: Runner,
        partitions: int,
        folder: str | Path,
        memory: Callable[[], int | None] = lambda: None,
    ) -> None:
        """Look at what lies away; see `Moving`."""
        super().__init__(engine, runner, partitions, folder, memory)
        self._written: set[str] = set()
        #: Whether what is listed is not known: a commit has failed, and the file cannot be read.
        self.unsure = False
        #: A name that no other opening of a warehouse has.
        self.opening = uuid.uuid4().hex[:12]
        #: The runs of tasks by which the last epoch was done.
        self._runs: set[str] = set()
        #: What has changed in the epoch under way, and is yet to be seen at home.
        self._unseen: dict[str, CopyPlan] = {}
        #: Where the time of the last epoch went.
        self.spending = Epochs()
        storage_of(self.folder).make_folder(self.folder)
        self.files.remove_leftovers(self._listed)

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
                self.files.attempt(),
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

    def _run(self, job: Job, order: Order, workspace: Workspace, parts: PartRound) -> set[str]:
        assert job.plan is not None
        storage, room = storage_of(order.folder), f"{order.folder}/{EPOCHS}/{order.attempt}"
        try:
            with self.spending.home.on("feed"), storage.filling(room) as here:
                feeds = self._feed(job.plan, order, workspace, room, here)
                if not (feeds or order.advanced or order.parts.building or is_due(job.plan, order)):
                    return set()
                (Path(here) / "order").write_bytes(pickle.dumps(replace(order, feeds=feeds)))
            faults.reach("tasks begin")
            with self.spending.home.on("job"):
                reports = self.reports(job.plan, f"{room}/order")
            self.spending.tasks += [one.spending for one in reports]
            faults.reach("tasks done")
            with self.spending.home.on("list"):
                return self._take(job, reports, workspace, parts)
        except OSError as error:
            if is_full(error):
                raise unwritten(str(error)) from error
            raise
        finally:
            storage.remove_tree(room)
            if order.returned:
                storage.remove_tree(f"{order.folder}/{RETURNED}/{order.attempt}")

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
        path = f"{self.folder}/{PLANS}/{plan.identity}"
        storage_of(path).remove([path])

    @property
    def together(self) -> int:
        """How many partitions a worker's process takes in an epoch, about."""
        return -(-self.partitions // max(1, self.runner.places))

    def _plan_file(self, plan: TaskPlan) -> str:
        path = f"{self.folder}/{PLANS}/{plan.identity}"
        if plan.identity not in self._written:
            storage_of(path).write(path, pickle.dumps(plan))
            self._written.add(plan.identity)
        return path

    def _feed(self, plan: TaskPlan, order: Order, workspace: Workspace, room: str, here: str) -> tuple[Feed, ...]:
        """Write the changes that come from home to files, by room and partition.

        Args:
            plan: what tasks do.
            order: of the epoch.
            workspace: has the changes.
            room: the folder where tasks find them.
            here: where they are written.
        """
        feeds: list[Feed] = []
        for relation, ships in plan.feeds.items():
            if not workspace.rows(delta_of(relation)):
                continue
            for ship in ships:
                with contextlib.closing(divided(self._engine.connection, ship, order.partitions)) as rows:
                    for partition, pieces in groupby(rows, key=itemgetter(0)):
                        name = f"{len(feeds)}.arrow"
                        _write(f"{here}/{name}", (one for _, one in pieces))
                        feeds.append(Feed(ship.level, ship.room, partition, ship.table, f"{room}/{name}"))
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
            files = ", ".join(f"'{in_quotes(path)}'" for path in paths)
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

    # -- the end of a transaction --------------------------------------------------------------------------------------

    def committed(self) -> None:
        """A transaction is done: what it replaced may go after a while."""
        self.segments.committed()
        self._multiple_before.clear()
        self._sizes_before = self._unsettled = None
        self.files.committed(self.segments.spent, lambda: self._listed)
        self.segments.spent.clear()

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
        self._otherwise, self._unsettled = frozenset(), None
        if self._sizes_before is not None:
            self._sizes, self._sizes_before = self._sizes_before, None
        if perhaps_not:
            try:
                self.look_again()
            except duckdb.Error:  # what was written is removed when it is known that it does not count
                self.unsure = True
        self.files.undone(self._listed if not (perhaps_not and self.unsure) else None)

    @property
    def _listed(self) -> set[str]:
        """The files that count."""
        return {path for copy in self.segments.relations for path in self.segments.paths(copy)}


def bring_all_home(engine: Engine, folder: str) -> None:
    """Let a warehouse whose maps lie away have them in its file again, inside the caller's transaction.

    Args:
        engine: whose.
        folder: where they lie.
    """
    if Segments(engine.connection).relations:
        away = Away(engine, Nobody(), 1, folder)
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

    def run_moves(self, shares: Sequence[Sequence[Move]]) -> list[Moved]:
        raise AssertionError("there are no tasks")


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


def _added_up(reports: Sequence[Report]) -> list[Change]:
    """What has happened to parts in all partitions."""
    found: dict[tuple[str, int], tuple[int, bool]] = {}
    for report in reports:
        for relation, part, rows, single in report.parts:
            before, all_single = found.get((relation, part), (0, True))
            found[relation, part] = before + rows, all_single and single
    return [Change(*key, *one) for key, one in sorted(found.items())]


def clock_of(engine: Engine, schedule: Schedule, clock: dt.datetime) -> tuple[str, ...]:
    if not schedule.follows_clock:
        return ()
    before = engine.last_clock if engine.last_clock is not None else dt.datetime(1970, 1, 1)
    return tuple(set_clock(variable, moment) for variable, moment in (("now", clock), ("before", before)))
