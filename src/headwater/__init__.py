"""Headwater keeps SQL views fresh while data streams in.

>>> import headwater as hw
>>> db = hw.connect()
>>> _ = db.execute("CREATE TABLE t (g STRING, x INT); CREATE VIEW v AS SELECT g, sum(x) AS s FROM t GROUP BY g")
>>> _ = db.insert("t", [{"g": "a", "x": 1}, {"g": "a", "x": 2}])
>>> db.query("SELECT * FROM v").to_pylist()
[{'g': 'a', 's': 3}]
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from headwater.builder import EpochBuilder
from headwater.database import SPARK_ROWS, Database
from headwater.engine.engine import Clock, Epoch, wall_clock
from headwater.errors import HeadwaterError, InternalError, NotSupported, Source, Span, UserError
from headwater.placement import check_arguments
from headwater.plan.explain import Explanation
from headwater.results import Result
from headwater.serve.cache import CACHE_BYTES
from headwater.serve.remote import RemoteDatabase
from headwater.serve.subscribe import Subscription
from headwater.serve.wire import UNREACHABLE
from headwater.store.warehouse import WarehouseInUse
from headwater.version import VERSION

#: How long `connect` waits for a process that has a warehouse open and does not answer.
_PATIENCE_SECONDS = 5.0

__version__ = VERSION

__all__ = [
    "Database",
    "Epoch",
    "EpochBuilder",
    "Explanation",
    "HeadwaterError",
    "InternalError",
    "NotSupported",
    "RemoteDatabase",
    "Result",
    "Source",
    "Span",
    "Subscription",
    "UserError",
    "connect",
]


def connect(
    path: str | Path = ":memory:",
    *,
    placement: str | None = None,
    clock: Clock | None = None,
    cache_bytes: int = CACHE_BYTES,
    spark_rows: int = SPARK_ROWS,
    spark: Mapping[str, object] | None = None,
    partitions: int | None = None,
    memory: str | None = None,
    segments: str | None = None,
    storage: Mapping[str, object] | None = None,
) -> Database | RemoteDatabase:
    """Open a warehouse, making it if there is none.

    Args:
        path: a folder, or `:memory:`.
        placement: where changes come from and programs run: `inline`, through this API and in this process;
            `driver`, the same with a pipeline on Spark beside it; or `tasks`, programs in tasks on Spark, and what
            they maintain in files beside the warehouse. A warehouse moves when it is opened with another one; by
            default it stays in tasks if it is, and is `inline` otherwise.
        clock: gives each epoch its time; the wall clock by default.
        cache_bytes: how many bytes of results of queries are kept in memory; 0 keeps none.
        spark_rows: with a placement on Spark, queries that read more rows than this run there.
        spark: with placement `tasks`, settings for Spark, unless it runs already.
        partitions: with placement `tasks`, into how many parts maps are divided; by default as they are, and at first
            as many as Spark runs tasks at once.
        memory: how much DuckDB may take in this process, such as `8GB`, most of the machine's by default. What it needs
            besides, it puts on disk for the time being.
        segments: with placement `tasks`, where what they maintain lies: a folder, or an address such as
            `s3://bucket/prefix`, which all executors reach. It moves when the warehouse is opened with another one; by
            default it stays where it is, at first beside the warehouse.
        storage: how such an address is reached, for the package that does: keys, the address of a server, and the
            like; by default what the environment says. It is not written down.

    Returns:
        The warehouse; or, while another process has it open, a connection to that process with the same methods.
    """
    check_arguments(placement, partitions, segments, storage)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return Database(
                path,
                clock=clock or wall_clock,
                placement=placement,
                cache_bytes=cache_bytes,
                spark_rows=spark_rows,
                spark=spark,
                partitions=partitions,
                memory=memory,
                segments=segments,
                storage=storage,
            )
        except WarehouseInUse as busy:
            try:
                return RemoteDatabase(busy.folder)
            except UserError as error:
                # The other process may not listen yet, or may have stopped and not given up its lock yet.
                if error.code != UNREACHABLE or time.monotonic() > deadline:
                    raise error from busy
        time.sleep(0.05)
