"""The ways to a view of parts that are measured beside each other: Headwater, a recomputation, and a program by hand.

Each has a file of its own on disk and the same room. First the past is loaded, then a view is begun, then parts come.
What is measured is `take`, from the arrival of a part's rows until its result is committed and can be read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

import duckdb
import pyarrow as pa

import headwater as hw
from benchmarks.part_views import PartView
from benchmarks.systems import HARD_CODED, LIMITS
from benchmarks.workloads.measurements import FIRST, SECONDS, end_of

VIEWDF, NAIVE = "ViewDF", "naive"
SETTINGS = (*LIMITS, "SET threads = 2")
COLUMNS = "ts TIMESTAMP, src VARCHAR, dest VARCHAR, loss INTEGER"


class PartSystem(ABC):
    """One way to a view of parts."""

    name: str
    #: Whether the time for a part says nothing about the one before, so that it need not be taken every time.
    recomputes = False

    @abstractmethod
    def load(self, part: int, rows: pa.Table) -> None:
        """Take a part of the past, before any view is there."""

    @abstractmethod
    def begin(self, view: PartView, part: int) -> None:
        """Keep another view from now on; `part` is the last one that came."""

    @abstractmethod
    def take(self, part: int, rows: pa.Table) -> None:
        """Take a part."""

    @abstractmethod
    def answer(self, part: int) -> pa.Table:
        """The result as of a part that was taken."""

    @abstractmethod
    def close(self) -> None: ...


class ViewDF(PartSystem):
    """Headwater in this process, with a warehouse on disk."""

    name = VIEWDF

    def __init__(self, folder: Path) -> None:
        db = hw.connect(folder / VIEWDF)
        assert isinstance(db, hw.Database)
        self.db = db
        self._view: PartView | None = None
        with db.engine.lock:
            for setting in SETTINGS:
                db.engine.connection.execute(setting)
        db.execute(
            "CREATE STREAM M (ts TIMESTAMP, src STRING NOT NULL, dest STRING NOT NULL, loss INT NOT NULL) "
            f"TIMESTAMP BY ts PARTITION LENGTH {SECONDS} RETAIN ALL"
        )

    def load(self, part: int, rows: pa.Table) -> None:
        self.take(part, rows)

    def begin(self, view: PartView, part: int) -> None:
        before = list(self._view.views.items()) if self._view is not None else []
        after = list(view.views.items())
        same = 0
        while same < min(len(before), len(after)) and before[same] == after[same]:
            same += 1
        for name, _ in reversed(before[same:]):
            self.db.execute(f"DROP VIEW {name}")
        for _, statement in after[same:]:
            self.db.execute(statement)
        self._view = view
        self.db.consolidator.wait(600)

    def take(self, part: int, rows: pa.Table) -> None:
        with self.db.epoch() as epoch:
            epoch.insert("M", rows)
            epoch.advance_stream("M", end_of(part))

    def answer(self, part: int) -> pa.Table:
        assert self._view is not None
        columns = ", ".join(self._view.columns)
        return self.db.query(f"SELECT {columns} FROM answer WHERE PART = {FIRST + part}")

    def close(self) -> None:
        self.db.close()


class _Plain(PartSystem):
    """DuckDB alone."""

    def __init__(self, folder: Path) -> None:
        self.con = duckdb.connect(str(folder / f"{self.name}.duckdb"))
        for setting in (*SETTINGS, "SET preserve_insertion_order = false"):
            self.con.execute(setting)

    def answer(self, part: int) -> pa.Table:
        return self.con.sql(f"SELECT * EXCLUDE (part) FROM answer WHERE part = {part}").to_arrow_table()

    def close(self) -> None:
        self.con.close()


class Naive(_Plain):
    """Stores what comes in one table, and evaluates the query over the parts that count. The result is stored, too."""

    recomputes = True

    def __init__(self, folder: Path, name: str = NAIVE) -> None:
        self.name = name
        super().__init__(folder)
        self.con.execute(f"CREATE TABLE M (part BIGINT, {COLUMNS})")

    def load(self, part: int, rows: pa.Table) -> None:
        self.con.register("rows", rows)
        self.con.execute(f"INSERT INTO M SELECT {part}, * FROM rows")
        self.con.unregister("rows")

    def begin(self, view: PartView, part: int) -> None:
        self._view = view
        query = view.recomputed[self.name].format(first=0, last=-1)
        self.con.execute(f"CREATE OR REPLACE TABLE answer AS SELECT 0::BIGINT AS part, * FROM ({query})")

    def take(self, part: int, rows: pa.Table) -> None:
        query = self._view.recomputed[self.name].format(first=part - self._view.back + 1, last=part)
        self.con.execute("BEGIN")
        self.load(part, rows)
        self.con.execute(f"INSERT INTO answer SELECT {part}, * FROM ({query})")
        self.con.execute("COMMIT")


class HardCoded(_Plain):
    """The DuckDB transaction that an engineer would write for one view. It checks nothing.

    The rows of each part are a table, so that nothing needs to be said of them. The helper's parts and those of the
    result are in one table each: DuckDB aggregates many parts of one table in less than half the time that it takes for
    as many tables.
    """

    name = HARD_CODED

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._helper = ""

    def load(self, part: int, rows: pa.Table) -> None:
        self.con.register("rows", rows)
        self.con.execute(f"CREATE TABLE M_{part} AS SELECT * FROM rows")
        self.con.unregister("rows")

    def begin(self, view: PartView, part: int) -> None:
        self._view = view
        program = view.program
        helper, answer = program.tables
        if self._helper != program.helper:
            self._helper = program.helper
            self.con.execute(f"CREATE OR REPLACE TABLE helper (part BIGINT, {helper})")
            for one in range(part + 1):
                self._run("helper", program.helper, one)
        self.con.execute(f"CREATE OR REPLACE TABLE answer (part BIGINT, {answer})")
        self._run("answer", program.first_answer or program.answer, part)

    def _run(self, table: str, query: str, part: int) -> None:
        filled = query.format(first=part - self._view.back + 1, last=part, before=part - 1)
        self.con.execute(f"INSERT INTO {table} {filled}")

    def take(self, part: int, rows: pa.Table) -> None:
        self.con.execute("BEGIN")
        self.load(part, rows)
        self._run("helper", self._view.program.helper, part)
        self._run("answer", self._view.program.answer, part)
        self.con.execute("COMMIT")

    def answer(self, part: int) -> pa.Table:
        columns = ", ".join(self._view.columns)
        return self.con.sql(f"SELECT {columns} FROM answer WHERE part = {part}").to_arrow_table()


def differences(view: PartView, one: pa.Table, other: pa.Table, whole: bool) -> int:
    """How many rows of two results are not in the other one.

    Args:
        view: whose results they are.
        one: a result.
        other: another.
        whole: all columns are compared, and not only as far as a recomputation can know them.
    """
    columns = ", ".join(view.columns if whole else view.compared)
    con = duckdb.connect()
    try:
        for name, rows in (("one", one), ("other", other)):
            con.register(f"{name}_rows", rows)
            con.execute(f"CREATE TABLE {name} AS SELECT {columns} FROM {name}_rows")
        query = "SELECT count(*) FROM ((FROM one EXCEPT ALL FROM other) UNION ALL (FROM other EXCEPT ALL FROM one))"
        [(found,)] = con.execute(query).fetchall()
        return int(found)
    finally:
        con.close()
