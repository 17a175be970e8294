"""Runs the part of an epoch that one task does: the rooms of its level, over its partition.

A task is a function of what it is told and of committed segments: it reads these, takes what other tasks have sent it,
runs its steps, writes new segments under names that nobody else uses, and says what it wrote. Nothing of that counts
before the warehouse's own commit lists it, so a task may be run twice, or die, and nothing is lost or counted twice.

What lies in a room is kept between epochs in the worker's process, as long as it stays; it is brought up to date from
the segments that have come since, or made anew from all of them.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain

import duckdb
import pyarrow as pa

from headwater.algebra.clock import CLOCK
from headwater.algebra.parts import PART
from headwater.emit.layout import EPOCH, sql, store_table
from headwater.engine.failures import ViewFailed, is_full, is_value_error, translate
from headwater.engine.holding import Holding, releases
from headwater.engine.meetings import Meetings
from headwater.engine.merges import first_behind
from headwater.engine.parcels import MESSAGE_BYTES, RETURNED, Feed, Order, Parcel, Report, messages
from headwater.engine.room_parts import RoomParts
from headwater.engine.segment_files import (
    above,
    broken_one,
    copy_to,
    order_by,
    other_than_listed,
    path_list,
    put_together,
    segment_path,
    unpacked,
)
from headwater.engine.spending import Spending
from headwater.engine.tasks import PARTITIONS, CopyPlan, RoomPlan, Run, Shipment, Step, Store, TaskPlan
from headwater.engine.workers import STORES_SHARE, Cached, Lying, Worker
from headwater.errors import UserError
from headwater.store.segments import ALL, Segment
from headwater.store.storage import Storage, storage_of

#: A table is read again from segments when it has so many times their rows, and some more.
DEAD, FEW_ROWS = 2, 10_000


class _Blamed(Exception):
    """A view's statement could not take a value."""


def run_task(
    mine: Worker, plan: TaskPlan, order: Order, level: int, partition: int, parcels: Iterable[Parcel]
) -> Generator[Parcel, None, None]:
    """Do what is to be done at a level in a partition; gives what goes on to others, and a report at last."""
    rooms = {one.number: one for one in plan.levels[level - 1]}
    storage = storage_of(order.folder)
    storage.lend(mine.instance)
    task = _Task(mine, plan, order, level, partition)
    try:
        for parcel in parcels:
            if parcel.level != level:
                yield parcel
            else:
                task.take(rooms[parcel.room], parcel)
        task.take_rest(rooms)
        for feed in order.feeds:
            if feed.level == level and feed.partition in (partition, ALL):
                task.take_file(rooms[feed.room], feed)
        for room in rooms.values():
            builds = room.parts.keys() & order.parts.building
            if room.number in task.open or order.advanced or builds or releases(room, order, partition):
                yield from task.run(room)
        storage.settle()
    except _Blamed:
        _let_settle(storage)
    except BaseException as error:
        task.give_up()
        _let_settle(storage)
        if not isinstance(error, Exception) or not is_full(error):
            raise
        task.report.unwritten = str(error).strip().split("\n", 1)[0]  # Spark need not try again
    if task.report.failed is not None or task.report.broken is not None or task.report.refused is not None:
        task.give_up()
    yield Parcel(0, partition, 0, "report", task.report.pack(), task.report.run)


def _let_settle(storage: Storage) -> None:
    """Wait for what is on its way, whatever comes of it: who removes what a task has written must find all of it."""
    with contextlib.suppress(Exception):
        storage.settle()


class _Task:
    def __init__(self, mine: Worker, plan: TaskPlan, order: Order, level: int, partition: int) -> None:
        self._worker, self._plan, self._order = mine, plan, order
        self._level, self._partition = level, partition
        self.report = Report(spending=Spending(level=level, partition=partition))
        self._on = self.report.spending.on
        self.open: dict[int, Cached] = {}
        self._rows: dict[tuple[int, str], int] = {}
        #: Parcels that are not in their tables yet, by room and table.
        self._waiting: dict[tuple[int, str], list[bytes]] = {}
        #: Views of parts whose change is in their store already.
        self._stored: set[str] = set()

    def _key(self, room: int) -> tuple[object, ...]:
        order = self._order
        return order.folder, order.opening, self._plan.identity, order.partitions, self._level, room, self._partition

    def give_up(self) -> None:
        """What the rooms hold now is nothing to begin with."""
        for number in self.open:
            self._worker.forget(self._key(number))

    def _enter(self, room: RoomPlan) -> Cached:
        """A room with its temporary tables, empty, and its stores as they were committed."""
        if room.number not in self.open:
            self.open[room.number] = cached = self._worker.room(self._key(room.number))
            for table, statement in room.tables.items():
                if cached.filled is None or table in cached.filled:
                    cached.connection.execute(statement)
            cached.filled = set()
            cached.connection.execute(f"SET VARIABLE {PARTITIONS} = {self._order.partitions}")
        return self.open[room.number]

    def take(self, room: RoomPlan, parcel: Parcel) -> None:
        """Take rows for a table; some parcels wait, because many rows are taken as quickly as few."""
        if parcel.run not in self.report.took:
            self.report.took.append(parcel.run)
        waiting = self._waiting.setdefault((room.number, parcel.table), [])
        waiting.append(parcel.data)
        if sum(map(len, waiting)) >= MESSAGE_BYTES:
            self._take_waiting(room, parcel.table)

    def take_rest(self, rooms: Mapping[int, RoomPlan]) -> None:
        """Take what has waited."""
        for number, table in list(self._waiting):
            self._take_waiting(rooms[number], table)

    def _take_waiting(self, room: RoomPlan, table: str) -> None:
        with self._on("take"), contextlib.ExitStack() as stack:
            parcels = self._waiting.pop((room.number, table))
            readers = [stack.enter_context(pa.ipc.open_stream(one)) for one in parcels]
            self._insert(room, table, pa.RecordBatchReader.from_batches(readers[0].schema, chain(*readers)))

    def take_file(self, room: RoomPlan, feed: Feed) -> None:
        # Some rows at a time.
        with self._on("take"), storage_of(feed.path).stream(feed.path) as source, pa.ipc.open_stream(source) as reader:
            self._insert(room, feed.table, reader)

    def _insert(self, room: RoomPlan, table: str, arriving: pa.RecordBatchReader) -> None:
        # DuckDB finds the rows by the name that they have here: to register them takes as long as to insert some.
        found = self._enter(room).connection.execute(f"INSERT INTO {table} SELECT * FROM arriving").fetchone()
        self._count(room, table, int(found[0]) if found else 0)

    def _count(self, room: RoomPlan, table: str, rows: int) -> None:
        key = room.number, table
        self._rows[key] = self._rows.get(key, 0) + rows
        filled = self.open[room.number].filled
        if rows and filled is not None:
            filled.add(table)

    def run(self, room: RoomPlan) -> Iterator[Parcel]:
        order, cached = self._order, self._enter(room)
        for statement in order.clock:
            cached.connection.execute(statement)
        with self._on("load"):
            left = self._left_in_files()
            for store in room.stores:
                if store.copy in left:
                    self._look_at(cached, store)
                else:
                    self._bring_up_to_date(cached, store)
            cached.size = sum(unpacked(one.segments) for one in cached.stores.values() if not one.left)
        self._worker.make_room([self._key(number) for number in self.open])
        changed: set[str] = set()
        parts = self._parts(room, cached)
        for step in room.steps:
            with self._on("settle"):
                self._settle(room, cached, step, changed)
                if parts is not None and step.parts is not None:
                    self._build(room, cached, step, parts)
            if step.relation == CLOCK:
                if order.advanced:
                    changed.add(CLOCK)
                    with self._on("follow"):
                        self._follow(room, cached, step)
                continue
            rows = self._rows.get((room.number, step.delta), 0)
            if not rows:
                continue
            changed.add(step.relation)
            if parts is not None:
                parts.came(step.relation, step.delta)
            with self._on("follow"):
                self._follow(room, cached, step)
            segment = None
            if step.segment is not None:
                with self._on("write"):
                    segment = self._write(cached, step)
            if step.append:
                with self._on("append"):
                    self._append(cached, step, segment, rows)
            if step.settled:
                self.report.changed[step.relation] = rows
                if step.relation in order.returned:
                    self._return(cached, step)
            for ship in step.ships:
                yield from self._ship(cached, ship)
        if parts is not None:
            parts.remember()
        for ship in room.ships:
            if self._rows.get((room.number, ship.table)):
                yield from self._ship(cached, ship)

    def _parts(self, room: RoomPlan, cached: Cached) -> RoomParts | None:
        """What is known of parts in a room where some are built."""
        steps, order = room.parts, self._order
        if not steps.keys() & order.parts.views.keys():
            return None
        rows = lambda table: self._rows.get((room.number, table), 0)  # noqa: E731
        with self._on("load"):
            return RoomParts(cached, steps.values(), order.parts, order.epoch, rows)

    def _build(self, room: RoomPlan, cached: Cached, step: Step, parts: RoomParts) -> None:
        """Build the parts of a view that are due, and let its change be what that has stored.

        What follows from the change may read the store as it was, so it is taken out again if there is anything.
        """
        assert step.parts is not None
        statements, epoch = step.parts.statements, self._order.epoch
        try:
            parts.build(step.parts)
        except ViewFailed as failed:
            self.report.failed = failed.view, failed.code, failed.reason
            raise _Blamed from failed
        except UserError as refused:
            self.report.refused = refused.code, refused.message, refused.hint
            raise _Blamed from refused
        found = cached.connection.execute(statements.change.more, {"epoch": epoch}).fetchone()
        self._count(room, step.delta, int(found[0]) if found else 0)
        if step.runs:
            cached.connection.execute(statements.withdrawal, {"epoch": epoch})
        else:
            self._stored.add(step.relation)
        mine = [one for one in parts.built() if one.relation == step.relation]
        self.report.parts += [(one.relation, one.part, one.rows, one.single) for one in mine]

    def _settle(self, room: RoomPlan, cached: Cached, step: Step, changed: set[str]) -> None:
        if step.holds is not None:
            self._hold(room, cached, step, step.holds)
        if step.settle is None:
            return
        due = bool(set(step.inputs) & changed) if step.due is None else self._rows.get((room.number, step.due), 0) > 0
        if due:
            self._run(room, cached, step.settle, step.settle.insert)

    def _hold(self, room: RoomPlan, cached: Cached, step: Step, holds: Holding) -> None:
        """Let what comes to a synchronised relation wait, or release what waits."""
        coming = self._rows.get((room.number, holds.coming), 0)
        lying = cached.stores[holds.waiting]
        if step.relation not in self._order.ticking:
            if coming:
                wait = Step(holds.waiting, holds.coming, rows=holds.rows, segment=holds.copy)
                self._append(cached, wait, self._write(cached, wait), coming)
            return
        release = holds.release(coming > 0, waits=bool(lying.segments))
        if release is not None:
            self._count(room, step.delta, _count_of(cached.connection, release))
        if lying.segments and not lying.left:
            cached.connection.execute(f"DELETE FROM {lying.table}")
            lying.rows = 0
        lying.segments, lying.own = [], None
        lying.changed()

    def _follow(self, room: RoomPlan, cached: Cached, step: Step) -> None:
        batch = step.relation in self._order.batches
        changed = self._rows.get((room.number, step.delta), 0)
        meetings = Meetings(cached.connection, step.met, changed, partial(_rows_in, cached))
        for run in step.runs:
            with self._reading_files(cached):
                narrow = run.narrow if meetings.meet(run.narrow) else None
            form = narrow or run
            self._run(room, cached, run, form.coming if batch and form.coming is not None else form.insert)
        meetings.close()

    def _run(self, room: RoomPlan, cached: Cached, run: Run, statement: str) -> None:
        try:
            found = _count_of(cached.connection, statement)
        except duckdb.Error as error:
            if not is_value_error(error):
                with self._reading_files(cached):
                    raise
            if run.view is None:
                raise
            told = translate(error)
            self.report.failed = (run.view, told.code, told.message)
            raise _Blamed from error
        self._count(room, run.table, found)

    # -- stores --------------------------------------------------------------------------------------------------------

    def _wanted(self, store: Store) -> tuple[Segment, ...]:
        return self._order.segments.get(store.copy, {}).get(ALL if store.everywhere else self._partition, ())

    def _bring_up_to_date(self, cached: Cached, store: Store) -> None:
        """Let a table hold what is committed of a store.

        What is there up to an epoch at which both what is there and what is wanted have a boundary is the same; what
        came later goes, and what is missing is read. Segments are added up when they are put together and the table is
        not, so it is read again when it has become much longer than they are.
        """
        lying = cached.stores.setdefault(store.relation, Lying())
        if lying.left:
            cached.connection.execute(f"DROP VIEW {sql(store_table(store.relation))}")
            cached.connection.execute(f"DROP TABLE {_coming(store.relation)}")
            lying = cached.stores[store.relation] = Lying()
        wanted = self._wanted(store)
        there = list(lying.segments)
        known = lying.run in self._order.counted  # then what it appended is what some task has written
        if lying.own is not None and not known and lying.own.path not in {one.path for one in wanted}:
            there = [one for one in there if one.path != lying.own.path]
        lying.own = None
        if wanted and there and wanted[-1].generation != there[-1].generation:
            there = []
        common = {one.last for one in there} & {one.last for one in wanted}
        upto = max(common, default=None)
        connection, table = cached.connection, sql(store_table(store.relation))
        many = lying.rows > FEW_ROWS + DEAD * sum(one.rows for one in wanted)
        if lying.table is None or upto is None or many:
            connection.execute(store.create.replace("CREATE TABLE", "CREATE OR REPLACE TABLE", 1))
            lying.rows, missing = 0, wanted
            lying.changed()
        else:
            if lying.segments[-1].last > upto:
                lying.changed()
                lying.rows -= _count_of(connection, f'DELETE FROM {table} WHERE "{EPOCH}" > {upto}')
            missing = tuple(one for one in wanted if one.first > upto)
        floor = self._order.parts.floor(store.relation)
        if floor is not None and floor != lying.floor:
            lying.changed()
            lying.rows -= _count_of(connection, f'DELETE FROM {table} WHERE "{PART}" < {floor}')
        lying.floor = floor
        if missing:
            self._look_over(connection, missing)
            lying.changed()
            with self._reading(missing):
                query = f"INSERT INTO {table} SELECT * FROM read_parquet({path_list(missing)}){above(floor)}"
                lying.rows += _count_of(connection, query)
        lying.table, lying.segments = table, list(wanted)

    def _look_over(self, connection: duckdb.DuckDBPyConnection, segments: Sequence[Segment]) -> None:
        """If a segment that is read for the first time is not the file that was listed, the report says so."""
        self.report.broken = other_than_listed(connection, segments)
        if self.report.broken is not None:
            raise _Blamed

    @contextlib.contextmanager
    def _reading(self, segments: Iterable[Segment]) -> Iterator[None]:
        """If what is done fails because a segment cannot be read, the report says which."""
        try:
            yield
        except duckdb.Error as error:
            self.report.broken = broken_one([one for one in segments if one.path], error)
            if self.report.broken is None:
                raise
            raise _Blamed from error

    def _reading_files(self, cached: Cached) -> contextlib.AbstractContextManager[None]:
        """The same for the segments that are read as they lie."""
        return self._reading(one for each in cached.stores.values() if each.left for one in each.segments)

    def _left_in_files(self) -> set[str]:
        """The copies that are read from their files in each epoch: the largest, until the others fit into memory."""
        sizes: dict[str, int] = {}
        for level in self._plan.levels:
            for room in level:
                for store in room.stores:  # the same may lie in several rooms, each with a table of its own
                    sizes[store.copy] = sizes.get(store.copy, 0) + unpacked(self._wanted(store))
        rooms = [room for level in self._plan.levels for room in level]
        built = {store.copy for room in rooms for store in room.stores if store.relation in room.parts}
        share = self._worker.memory * STORES_SHARE / max(1, self._order.together)
        left: set[str] = set()
        total = sum(sizes.values())
        for copy in sorted(sizes, key=lambda one: (-sizes[one], one)):
            if total <= share:
                break
            if copy in built:  # parts are stored one after the other, and read by those after them
                continue
            left.add(copy)
            total -= sizes[copy]
        return left

    def _look_at(self, cached: Cached, store: Store) -> None:
        """Let a view show what is committed of a store, and what comes to it in this epoch."""
        lying = cached.stores.setdefault(store.relation, Lying())
        wanted = self._wanted(store)
        connection, table, coming = cached.connection, sql(store_table(store.relation)), _coming(store.relation)
        if lying.table is not None and not lying.left:
            connection.execute(f"DROP TABLE {table}")
        connection.execute(store.create.replace("CREATE TABLE", "CREATE OR REPLACE TABLE", 1).replace(table, coming, 1))
        kept = above(self._order.parts.floor(store.relation))
        files = f" UNION ALL SELECT * FROM read_parquet({path_list(wanted)}){kept}" if wanted else ""
        self._look_over(connection, [one for one in wanted if one not in lying.segments])
        with self._reading(wanted):
            connection.execute(f"CREATE OR REPLACE VIEW {table} AS SELECT * FROM {coming}{files}")
        lying.table, lying.segments, lying.own, lying.left = coming, list(wanted), None, True
        lying.changed()

    def _append(self, cached: Cached, step: Step, segment: Segment | None, rows: int) -> None:
        lying, epoch = cached.stores[step.relation], self._order.epoch
        lying.changed()
        if step.relation in self._stored:
            lying.rows += rows
        else:
            query = f"INSERT INTO {lying.table} SELECT *, {epoch} FROM ({step.rows}) AS change"
            lying.rows += _count_of(cached.connection, query)
        own = segment or Segment("", self._order.epoch, self._order.epoch, 0, 0, _generation(lying.segments))
        lying.segments = [*(one for one in lying.segments if one.last < own.first), own]
        lying.own, lying.run = own, self.report.run

    def _write(self, cached: Cached, step: Step) -> Segment | None:
        """Write a change as a segment, together with those before it if nobody has put them together for long."""
        copy = self._plan.copies[step.segment or ""]
        partition = ALL if copy.partition is None else self._partition
        if copy.partition is None and self._partition != 0:
            return None
        epoch = self._order.epoch
        rows = f'SELECT *, {epoch} AS "{EPOCH}" FROM ({step.rows}) AS change{order_by(copy)}'
        there = self._order.segments.get(copy.name, {}).get(partition, ())
        path = self._path(copy, partition)
        written = copy_to(cached.connection, rows, path)
        segment = Segment(path, epoch, epoch, written, storage_of(path).size_written(path), _generation(there))
        first = first_behind(copy, partition, (*there, segment))
        if first is not None:
            segment = self._merge(copy, partition, (*there[first:], segment))
        self.report.segments.append((copy.name, partition, segment))
        return segment

    def _merge(self, copy: CopyPlan, partition: int, files: tuple[Segment, ...]) -> Segment:
        """Put segments together, of which the last is new."""
        path, new = self._path(copy, partition), files[-1]
        storage = storage_of(path)
        storage.settle()
        connection = self._worker.instance.cursor()
        try:
            with self._reading(files):
                written = put_together(connection, copy, files, path, self._order.parts.floor(copy.relation))
        finally:
            connection.close()
        storage.remove([new.path])
        return Segment(path, files[0].first, new.last, written, storage.size_written(path), new.generation)

    def _path(self, copy: CopyPlan, partition: int) -> str:
        return segment_path(self._order.folder, copy.name, partition, self._order.epoch, self._order.attempt)

    # -- what goes out -------------------------------------------------------------------------------------------------

    def _return(self, cached: Cached, step: Step) -> None:
        folder = f"{self._order.folder}/{RETURNED}/{self._order.attempt}"
        storage_of(folder).make_folder(folder)
        path = f"{folder}/{uuid.uuid4().hex}.parquet"
        copy_to(cached.connection, step.rows, path)
        self.report.returned.append((step.relation, path))

    def _ship(self, cached: Cached, ship: Shipment) -> Iterator[Parcel]:
        with contextlib.closing(messages(cached.connection, ship, self._order.partitions)) as sent:
            while True:
                with self._on("send"):
                    found = next(sent, None)
                if found is None:
                    return
                partition, data = found
                self.report.spending.sent += len(data)
                yield Parcel(ship.level, partition, ship.room, ship.table, data, self.report.run)


def _coming(relation: str) -> str:
    """The table of what comes in an epoch to a store that is left in its files."""
    return sql(store_table(f"{relation}#coming"))


def _rows_in(cached: Cached, relation: str) -> int:
    """About how many rows a store has."""
    lying = cached.stores[relation]
    return sum(one.rows for one in lying.segments) if lying.left else lying.rows


def _count_of(connection: duckdb.DuckDBPyConnection, statement: str) -> int:
    """Run a statement; returns how many rows it changed."""
    found = connection.execute(statement).fetchone()
    return int(found[0]) if found else 0


def _generation(segments: Iterable[Segment]) -> int:
    return max((one.generation for one in segments), default=0)
