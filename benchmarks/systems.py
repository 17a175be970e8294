"""The ways to a view's contents that are measured beside each other, with one face.

An epoch is taken by `follow`, `lay_out` and `apply`, of which only `apply` is measured.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from tests.equivalence.bags import Bag
from tests.equivalence.references import transpiled
from tests.queries.harness import total_order

import headwater as hw
from benchmarks.changes import Changes
from benchmarks.disk import usage
from headwater.plan.program import Program

#: What each system may take, so that one of them does not stop the others.
LIMITS = ("SET memory_limit = '6GB'", "SET max_temp_directory_size = '20GB'")
STRATEGIES = ("tree", "viewlet", "viewlet naive", "first order", "re-evaluate", "recompute")
CHOSEN = "chosen"
DUCKDB = "DuckDB recompute"
SPARK = "Spark recompute"
HARD_CODED = "hard-coded"


@dataclass(frozen=True)
class Query:
    """A view to be kept.

    Attributes:
        name: what it is called in figures.
        text: the query, in Spark's SQL.
        schema: CREATE statements for what it reads.
        keys: a column that is unique, for each table from which rows are deleted; Headwater is not told.
    """

    name: str
    text: str
    schema: str
    keys: Mapping[str, str] = field(default_factory=dict)


class System(ABC):
    """One way to a view's contents."""

    name: str
    #: Whether an epoch's time says nothing about what came before, so that it need not be taken every time.
    recomputes = False

    #: The sizes of epochs that are measured; None for all.
    sizes: tuple[int, ...] | None = None

    def follow(self, epoch: Changes) -> None:  # noqa: B027 - most have nothing to do
        """Take an epoch as far as it is not measured; every epoch."""

    def lay_out(self) -> None:  # noqa: B027
        """Make ready for `apply`; not measured either."""

    def adapt(self) -> None:  # noqa: B027
        """Change plans by what was seen so far, and come to rest; not measured either."""

    @abstractmethod
    def apply(self, epoch: Changes) -> None:
        """What is measured; if `recomputes`, not of every epoch."""

    @abstractmethod
    def contents(self) -> Bag:
        """The view's rows, now."""

    @abstractmethod
    def interrupt(self) -> None:
        """Stop what `apply` is doing; called from another thread."""

    def state_bytes(self) -> int | None:
        """What it keeps on disk."""
        return None

    @property
    def program(self) -> Program | None:
        """The maintenance program, if it has one."""
        return None

    @abstractmethod
    def close(self) -> None: ...


class Headwater(System):
    """Headwater in this process, with a warehouse on disk."""

    def __init__(self, folder: Path, query: Query, strategy: str = CHOSEN) -> None:
        self.name = strategy
        self._folder = folder / f"headwater {strategy}"
        db = hw.connect(self._folder)
        assert isinstance(db, hw.Database)
        self.db = db
        try:
            with db.engine.lock:
                for setting in LIMITS:
                    db.engine.connection.execute(setting)
            db.execute(query.schema)
            clause = "" if strategy == CHOSEN else f"STRATEGY '{strategy}'"
            db.execute(f"CREATE VIEW answer {clause} AS {query.text}")
        except BaseException:
            db.close()
            raise

    def apply(self, epoch: Changes) -> None:
        with self.db.epoch() as operations:
            for name, table in epoch.insert.items():
                operations.insert(name, table)
            for name, table in epoch.delete.items():
                operations.delete(name, table)
        if operations.committed is None or operations.committed.suspended:
            raise AssertionError(f"{self.name} could not take an epoch: {operations.committed}")

    def adapt(self) -> None:
        """Who has not been told how to maintain the view may change its mind, as far as the rows are still there.

        And whatever was begun in the background comes to its end.
        """
        if self.name == CHOSEN:
            try:
                self.db.execute("ALTER VIEW answer REPLAN")
            except hw.HeadwaterError as error:
                if error.code != "HW506":
                    raise
        self.db.consolidator.wait(60)

    def contents(self) -> Bag:
        return bag(self.db.query("SELECT * FROM answer"))

    def interrupt(self) -> None:
        self.db.engine.connection.interrupt()

    def state_bytes(self) -> int:
        with self.db.engine.lock:
            self.db.engine.connection.execute("FORCE CHECKPOINT")
        return usage(self._folder).bytes

    @property
    def program(self) -> Program | None:
        return self.db.find("answer").program

    def close(self) -> None:
        self.db.close()


class DuckRecompute(System):
    """DuckDB evaluates the query over plain tables in memory; that these follow the changes is not measured."""

    name = DUCKDB
    recomputes = True

    def __init__(self, query: Query) -> None:
        self._keys = query.keys
        self._con = duckdb.connect()
        self._con.execute(LIMITS[0])
        # DuckDB multiplies short decimals as 64-bit integers, which overflow: money is wide there.
        self._con.execute(re.sub(r"DECIMAL\([68], ?([02])\)", r"DECIMAL(19,\1)", in_duckdb(query.schema)))
        self._query = total_order(transpiled(query.text)).sql("duckdb")

    def follow(self, epoch: Changes) -> None:
        for name, table in epoch.insert.items():
            self._con.register("new_rows", table)
            self._con.execute(f"INSERT INTO {name} SELECT * FROM new_rows")
        for name, table in epoch.delete.items():
            self._con.register("old_rows", table)
            key = self._keys[name]
            self._con.execute(f"DELETE FROM {name} WHERE {key} IN (SELECT {key} FROM old_rows)")

    def apply(self, epoch: Changes) -> None:
        self._con.sql(self._query).to_arrow_table()

    def contents(self) -> Bag:
        return bag(self._con.sql(self._query).to_arrow_table())

    def tables(self) -> dict[str, pa.Table]:
        names = self._con.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        return {name: self._con.table(name).to_arrow_table() for (name,) in names}

    def interrupt(self) -> None:
        self._con.interrupt()

    def close(self) -> None:
        self._con.close()


class SparkRecompute(System):
    """Spark evaluates the query over Parquet files of the rows of the moment; writing these is not measured."""

    name = SPARK
    recomputes = True
    sizes = (100_000,)

    def __init__(self, folder: Path, query: Query, session: Any) -> None:
        self._rows = DuckRecompute(query)
        self._folder, self._query, self._session = folder / "spark", query.text, session
        self._folder.mkdir(parents=True)
        self._layouts = 0

    def follow(self, epoch: Changes) -> None:
        self._rows.follow(epoch)

    def lay_out(self) -> None:
        self._layouts += 1  # Spark remembers files by their names
        for name, table in self._rows.tables().items():
            file = self._folder / f"{name}-{self._layouts}.parquet"
            pq.write_table(table, file)
            (self._folder / f"{name}-{self._layouts - 1}.parquet").unlink(missing_ok=True)
            self._session.read.parquet(str(file)).createOrReplaceTempView(name)

    def apply(self, epoch: Changes) -> None:
        self._session.sql(self._query).toArrow()

    def contents(self) -> Bag:
        self.lay_out()
        return bag(self._session.sql(self._query).toArrow())

    def interrupt(self) -> None:
        self._session.sparkContext.cancelAllJobs()

    def close(self) -> None:
        self._rows.close()


class HardCoded(System):
    """The DuckDB transaction that an engineer would write for one view, in a durable file.

    It stores what this view needs and no more, checks nothing, and knows what the workload does: that nothing is NULL,
    which keys are unique, and which tables rows are deleted from.
    """

    name = HARD_CODED
    #: The columns it takes of each table.
    READS: ClassVar[Mapping[str, list[str]]]
    #: The tables from which rows are deleted.
    DELETES: ClassVar[tuple[str, ...]] = ()
    #: The tables it keeps.
    TABLES: str
    #: What shows the view's rows.
    ANSWER: str

    def __init__(self, folder: Path) -> None:
        self._file = folder / "hard-coded.duckdb"
        self.con = duckdb.connect(str(self._file))
        for setting in (*LIMITS, "SET preserve_insertion_order = false"):
            self.con.execute(setting)
        self.con.execute(self.TABLES)
        self._none: dict[str, pa.Table] = {}  #: the load has rows of all tables, and so the types of each

    def given(self, epoch: Changes) -> None:
        """Name the epoch's rows `new_...` and `old_...`; where there are none, no rows."""
        for name, columns in self.READS.items():
            if name in epoch.insert:
                self._none.setdefault(name, epoch.insert[name].slice(0, 0))
            self.con.register(f"new_{name}", epoch.insert.get(name, self._none[name]).select(columns))
        for name in self.DELETES:
            self.con.register(f"old_{name}", epoch.delete.get(name, self._none[name]).select(self.READS[name]))

    def apply(self, epoch: Changes) -> None:
        self.given(epoch)
        self.con.execute("BEGIN")
        try:
            self.maintain()
            self.con.execute("COMMIT")
        except BaseException:
            self.con.execute("ROLLBACK")
            raise

    @abstractmethod
    def maintain(self) -> None:
        """The statements of the transaction."""

    def contents(self) -> Bag:
        return bag(self.con.sql(self.ANSWER).to_arrow_table())

    def interrupt(self) -> None:
        self.con.interrupt()

    def state_bytes(self) -> int:
        self.con.execute("FORCE CHECKPOINT")
        return usage(self._file).bytes + usage(self._file.with_name(f"{self._file.name}.wal")).bytes

    def close(self) -> None:
        self.con.close()


def bag(table: pa.Table) -> Bag:
    """A table's rows, and how often each is there."""
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def in_duckdb(schema: str) -> str:
    """Our CREATE statements as DuckDB reads them."""
    return schema.replace("STRING", "VARCHAR").replace("CREATE STREAM", "CREATE TABLE")
