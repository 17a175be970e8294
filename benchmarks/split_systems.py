"""The ways to a view over streaming lines that are measured beside each other, each with a file of its own on disk."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
from sqlglot import parse_one
from tests.equivalence.references import transpiled

from benchmarks import tpch
from benchmarks.disk import usage
from benchmarks.hard_coded.split import PROGRAMS
from benchmarks.refreshing import AUTO, Refreshed
from benchmarks.systems import DUCKDB, HARD_CODED, LIMITS, in_duckdb
from benchmarks.workloads.tpch import Data

STREAM = "lineitem"


@dataclass(frozen=True)
class Streamed:
    """A query over lines that stream, and tables that are there before.

    Attributes:
        name: the query.
        text: in Spark's SQL, without ORDER BY and LIMIT.
        columns: of each relation, with their types.
        tables: the rows of all relations but the stream.
        lines: the rows of the stream, in the order in which they come.
    """

    name: str
    text: str
    columns: Mapping[str, Mapping[str, str]]
    tables: Mapping[str, pa.Table]
    lines: pa.Table

    def schema(self, relation: str) -> str:
        return ", ".join(f"{column} {of}" for column, of in self.columns[relation].items())


def streamed(name: str, data: Data) -> Streamed:
    """One of the queries of the suite tpch, as the paper has it."""
    text = tpch.QUERIES[name]
    tree = parse_one(text.text, read="spark")
    for clause in ("order", "limit"):
        tree.set(clause, None)
    columns = {table: text.columns[table] for table in text.tables}
    tables = {table: data.table(table, columns[table]) for table in columns if table != STREAM}
    return Streamed(name, tree.sql("spark"), columns, tables, data.table(STREAM, columns[STREAM]))


class SplitSystem(ABC):
    """One way to the view."""

    name: str

    @abstractmethod
    def insert(self, lines: pa.Table) -> None:
        """Take lines; they are on disk when it returns."""

    @abstractmethod
    def read(self) -> pa.Table:
        """The view's rows, with all lines that were taken: what has to be done for that is done now."""

    @abstractmethod
    def rest(self) -> None:
        """Come to rest, before something is measured."""

    def learn(self) -> None:  # noqa: B027
        """Decide anew how to go on, by what was seen since this was done last."""

    @abstractmethod
    def state_bytes(self) -> int:
        """What is on disk."""

    @abstractmethod
    def close(self) -> None: ...


class Headwater(SplitSystem):
    """Headwater; the lines are a stream without RETAIN, the tables are STATIC."""

    def __init__(self, folder: Path, query: Streamed, mode: str) -> None:
        self.name = mode
        self._inner = Refreshed(folder, mode)
        db = self._inner.db
        try:
            db.execute(f"CREATE STREAM {STREAM} ({query.schema(STREAM)})")
            for table, rows in query.tables.items():
                db.execute(f"CREATE STATIC TABLE {table} ({query.schema(table)})")
                db.insert(table, rows)
            self._inner.create({"answer": query.text})
        except BaseException:
            db.close()
            raise

    def insert(self, lines: pa.Table) -> None:
        epoch = self._inner.db.insert(STREAM, lines)
        if epoch.suspended:
            raise AssertionError(f"{self.name} could not take lines: {epoch}")

    def read(self) -> pa.Table:
        return self._inner.read("answer")

    def rest(self) -> None:
        self._inner.rest()

    def learn(self) -> None:
        if self.name == AUTO:
            self._inner.db.execute("ALTER VIEW answer REPLAN")

    def state_bytes(self) -> int:
        return self._inner.state_bytes()

    def close(self) -> None:
        self._inner.close()


class _Duck(SplitSystem):
    """DuckDB alone."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / f"{self.name}.duckdb"
        self.con = duckdb.connect(str(self._file))
        for setting in (*LIMITS, "SET threads = 2", "SET preserve_insertion_order = false"):
            self.con.execute(setting)

    def rest(self) -> None:
        self.con.execute("CHECKPOINT")

    def state_bytes(self) -> int:
        self.rest()
        return usage(self._file).bytes + usage(self._file.with_name(f"{self._file.name}.wal")).bytes

    def close(self) -> None:
        self.con.close()


class Deferred(_Duck):
    """Stores the lines, and evaluates the query when it is asked for."""

    name = DUCKDB

    def __init__(self, folder: Path, query: Streamed) -> None:
        super().__init__(folder)
        for table in query.columns:
            self.con.execute(in_duckdb(f"CREATE TABLE {table} ({query.schema(table)})"))
        for table, rows in query.tables.items():
            self.con.register("given", rows)
            self.con.execute(f"INSERT INTO {table} FROM given")
            self.con.unregister("given")
        self._query = transpiled(query.text).sql("duckdb")

    def insert(self, lines: pa.Table) -> None:
        self.con.register("chunk", lines)
        self.con.execute(f"INSERT INTO {STREAM} FROM chunk")

    def read(self) -> pa.Table:
        return self.con.sql(self._query).to_arrow_table()


class HardCoded(_Duck):
    """Split maintenance by hand: the answer is computed when it is asked for, and kept until lines come. No checks."""

    name = HARD_CODED
    #: Below this it is not worth the while to add up.
    LEAST = 100_000

    def __init__(self, folder: Path, query: Streamed) -> None:
        super().__init__(folder)
        self._program = PROGRAMS[query.name]
        for table, rows in query.tables.items():
            self.con.register(f"given_{table}", rows)
        for name, made in self._program.fixed.items():
            self.con.execute(f"CREATE TABLE {name} AS {made}")
        self.con.register("chunk", query.lines.slice(0, 0))
        self.con.execute(f"CREATE TABLE partial AS {self._program.partial}")
        self._rows, self._limit = 0, self.LEAST
        self._kept: pa.Table | None = None

    def insert(self, lines: pa.Table) -> None:
        self._kept = None
        self.con.register("chunk", lines)
        self.con.execute("BEGIN")
        [(added,)] = self.con.execute(f"INSERT INTO partial {self._program.partial}").fetchall()
        self._rows += added
        if self._rows > self._limit:
            self.con.execute(f"CREATE OR REPLACE TABLE partial AS {self._program.folded}")
            [(self._rows,)] = self.con.execute("SELECT count(*) FROM partial").fetchall()
            self._limit = max(self.LEAST, 2 * self._rows)
        self.con.execute("COMMIT")

    def read(self) -> pa.Table:
        if self._kept is None:
            self._kept = self.con.sql(self._program.answer).to_arrow_table()
        return self._kept


class Recomputed:
    """What the view holds after any number of lines."""

    def __init__(self, query: Streamed) -> None:
        self._con = duckdb.connect()
        self._con.execute(LIMITS[0])
        for table, rows in query.tables.items():
            self._con.register("given", rows)
            self._con.execute(f"CREATE TABLE {table} AS FROM given")
        self._lines, self._query = query.lines, transpiled(query.text).sql("duckdb")

    def answer(self, lines: int) -> pa.Table:
        self._con.register(STREAM, self._lines.slice(0, lines))
        return self._con.sql(self._query).to_arrow_table()

    def close(self) -> None:
        self._con.close()
