"""What goes between the warehouse's process and tasks, and between tasks: orders, parcels of rows, reports."""

from __future__ import annotations

import json
import uuid
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa

from headwater.engine.part_orders import PartOrder
from headwater.engine.segment_files import quoted
from headwater.engine.spending import Spending
from headwater.engine.tasks import PARTITIONS, Shipment
from headwater.store.segments import ALL, Listed, Segment

#: A message between tasks holds about so many bytes at most: Spark moves it as one value.
MESSAGE_BYTES = 8 << 20

#: So many rows are taken out of a table at a time.
BATCH_ROWS = 250_000

#: The folder of changes that are wanted at home.
RETURNED = "returned"


class Feed(NamedTuple):
    """A file with a change that comes from home to a room."""

    level: int
    room: int
    partition: int
    table: str
    path: str


@dataclass(frozen=True)
class Order:
    """What tasks need to know of the epoch that they work on.

    Attributes:
        epoch: its number.
        attempt: a name that no other attempt has.
        partitions: how many there are.
        folder: where segments are.
        clock: statements that say what the clock reads; none if nothing follows it.
        advanced: whether it has advanced.
        batches: relations whose change is rows that come, each once.
        returned: relations whose change is wanted at home.
        segments: what counts of each copy, by partition.
        feeds: what comes from home.
        ticking: synchronised relations whose policy ticks.
        memory: how many bytes the engine may take in a task's process; None for its own default.
        together: how many partitions a worker's process takes in an epoch, about.
        parts: which parts are built.
        opening: of the warehouse, by a name that no other has: its folder may have been put back meanwhile.
        counted: the runs of tasks by which the last epoch was done.
    """

    epoch: int
    attempt: str
    partitions: int
    folder: str
    clock: tuple[str, ...] = ()
    advanced: bool = False
    batches: frozenset[str] = frozenset()
    returned: frozenset[str] = frozenset()
    segments: Listed = field(default_factory=dict)
    feeds: tuple[Feed, ...] = ()
    memory: int | None = None
    together: int = 1
    ticking: frozenset[str] = frozenset()
    parts: PartOrder = field(default_factory=PartOrder)
    opening: str = ""
    counted: frozenset[str] = frozenset()


class Parcel(NamedTuple):
    """Rows on their way to a room; at level 0, what a task reports.

    Attributes:
        level: of the room, or 0.
        partition: where it goes; of a report, where it comes from.
        room: its number.
        table: where the rows go.
        data: the rows, as an Arrow stream.
        run: by which run of a task it was sent: a task may be run several times.
    """

    level: int
    partition: int
    room: int
    table: str
    data: bytes
    run: str


@dataclass
class Report:
    """What a task has done.

    Attributes:
        segments: what it has written: copy, partition, and the segment.
        changed: how many rows have changed of each relation that it settled.
        returned: files with changes that are wanted at home, by relation.
        parts: what has happened to parts of views that it built: the view, the part, how many rows more or less, and
            whether each came once.
        failed: the view that could not take a value, the code, and the reason.
        refused: the code, message and hint of an error that is the epoch's own.
        broken: the segment that could not be read, and why.
        unwritten: why something could not be written, if the disk is full.
        run: a name that no other run of a task has.
        took: the runs of tasks whose parcels it took.
        spending: where its time went.
    """

    segments: list[tuple[str, int, Segment]] = field(default_factory=list)
    changed: dict[str, int] = field(default_factory=dict)
    returned: list[tuple[str, str]] = field(default_factory=list)
    failed: tuple[str, str, str] | None = None
    broken: tuple[str, str] | None = None
    unwritten: str | None = None
    run: str = field(default_factory=lambda: uuid.uuid4().hex[:16])
    took: list[str] = field(default_factory=list)
    spending: Spending = field(default_factory=Spending)
    parts: list[tuple[str, int, int, bool]] = field(default_factory=list)
    refused: tuple[str, str, str | None] | None = None

    def pack(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def unpack(data: bytes) -> Report:
        found = json.loads(data)
        segments = [(copy, partition, Segment(*one)) for copy, partition, one in found["segments"]]
        failed = tuple(found["failed"]) if found["failed"] else None
        broken = tuple(found["broken"]) if found["broken"] else None
        returned = [tuple(one) for one in found["returned"]]
        return Report(
            segments,
            found["changed"],
            returned,
            failed,
            broken,
            found["unwritten"],
            found["run"],
            found["took"],
            Spending(**found["spending"]),
            [(relation, part, rows, single) for relation, part, rows, single in found["parts"]],
            tuple(found["refused"]) if found["refused"] else None,
        )


def is_whole(reports: Sequence[Report], tasks: int) -> bool:
    """Whether reports are those of one epoch: one of each task, and what each took is what those reported have sent.

    A task that is run again, because its output was lost, may say the same in other words: a sum of DOUBLE depends on
    the order of what is added. Had one reader taken the first output and another the second, they would not agree.
    """
    runs = {one.run for one in reports}
    return len(reports) == tasks and all(runs.issuperset(one.took) for one in reports)


def messages(
    connection: duckdb.DuckDBPyConnection, ship: Shipment, partitions: int, size: int = MESSAGE_BYTES
) -> Generator[tuple[int, bytes], None, None]:
    """The rows of a table, for each partition that they go to, in messages of a bounded size; see `divided`."""
    with closing(divided(connection, ship, partitions)) as pieces:
        for partition, rows in pieces:
            step = max(1, int(rows.num_rows * size / max(rows.nbytes, 1)))
            for start in range(0, rows.num_rows, step):
                data = _packed(rows.slice(start, step))
                for each in range(partitions) if partition == ALL else (partition,):
                    yield each, data


def divided(
    connection: duckdb.DuckDBPyConnection, ship: Shipment, partitions: int, most: int = BATCH_ROWS
) -> Generator[tuple[int, pa.Table], None, None]:
    """The rows of a table by the partition that they go to, some at a time.

    Whoever does not take all of them must close it: until then the connection does nothing else.
    """
    items = ", ".join(quoted(text) for text in ship.columns)
    if ship.partition is None:
        with connection.sql(f"SELECT {items} FROM {ship.table}").to_arrow_reader(most) as batches:
            for batch in batches:
                yield ALL, pa.Table.from_batches([batch])
        return
    # Each batch is put in order by itself: to let DuckDB sort all costs more, where most changes are one batch.
    where = f"CAST({ship.partition.replace(f'${PARTITIONS}', str(partitions))} AS INTEGER)"
    with connection.sql(f'SELECT {items}, {where} AS "#to" FROM {ship.table}').to_arrow_reader(most) as batches:
        for batch in batches:
            to = batch.column("#to").to_numpy()
            yield from apart(pa.Table.from_batches([batch]).drop_columns(["#to"]), to, partitions)


def apart(rows: pa.Table, to: np.ndarray, partitions: int) -> Iterator[tuple[int, pa.Table]]:
    """Rows by the partition that each goes to."""
    if partitions > 1:
        order = np.argsort(to, kind="stable")
        to, rows = to[order], rows.take(pa.array(order))
    bounds = [0, *(np.flatnonzero(np.diff(to)) + 1).tolist(), len(to)]
    for start, end in pairwise(bounds):
        if end > start:
            yield int(to[start]), rows.slice(start, end - start)


def _packed(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed
