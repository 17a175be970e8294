"""TPC-DS as views: each query, after every epoch, is what DuckDB computes from scratch.

HEADWATER_TPCDS=... .venv/bin/python -m pytest tests/queries            # a tenth of the queries
HEADWATER_TPCDS=... HEADWATER_TPCDS_QUERIES=1-99 .venv/bin/python -m pytest tests/queries
"""

from __future__ import annotations

import math
import os
from collections import Counter
from decimal import Decimal

import duckdb
import pytest
from sqlglot import exp

import headwater as hw
from headwater.errors import HeadwaterError
from tests.equivalence.references import transpiled

from . import tpcds
from .tpcds_rows import DIMENSION, FACT, Row, Rows, is_fact

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not tpcds.FOLDER, reason="HEADWATER_TPCDS is not set")]

#: Queries that show two columns under one name, which a view cannot: it names them itself.
NAMED = {39: 10, 64: 21}
#: Queries that fail on no rows at all, by Spark's rules: the view is created over some.
LATER = {90: "HW501"}
#: Queries whose maintenance takes too long: docs/sql/tpcds.md says why.
#: Both round: Spark's averages and quotients of decimals have six digits.
RELATIVE, ABSOLUTE = 1e-5, 1e-3


def _chosen() -> list[int]:
    first, _, last = os.environ.get("HEADWATER_TPCDS_QUERIES", "").partition("-")
    return list(range(int(first), int(last or first) + 1)) if first else list(range(1, 100, 10))


@pytest.mark.parametrize("number", _chosen())
def test_query(number: int) -> None:
    run(number, seed=number)


def run(number: int, seed: int) -> list[int]:
    """Hold a view against its recomputation through some epochs; the numbers of rows it had."""
    query = tpcds.queries()[number - 1]
    rows = Rows(query, seed)
    both = Both(query, rows)
    try:
        names = ", ".join(f"c{n}" for n in range(1, NAMED.get(number, 0) + 1))
        create = f"CREATE VIEW answer {f'({names})' if names else ''} AS {query}"
        if number in LATER:
            with pytest.raises(HeadwaterError, match=LATER[number]):
                both.view.execute(create)
            both.begin()
        both.view.execute(create)
        if number not in LATER:
            both.begin()
        sizes = [both.compare()]
        for _ in range(2):
            both.change()
            sizes.append(both.compare())
        return sizes
    finally:
        both.close()


class Both:
    """The view's database, and a plain one that computes the query anew."""

    def __init__(self, query: str, rows: Rows) -> None:
        self.rows = rows
        self.view = hw.connect(":memory:")
        self.plain = duckdb.connect()
        self.plain.execute("SET threads = 1")
        tree = _without_empty_totals(transpiled(query))
        limit = tree.args.pop("limit", None)
        self.most = int(limit.expression.name) if limit else 10**9
        self.recompute = tree.sql("duckdb")
        for table in rows.tables:
            self.view.execute(table.sql)
            self.plain.execute(table.sql.replace("STRING", "VARCHAR"))

    def begin(self) -> None:
        """The first rows, all in one epoch."""
        with self.view.epoch() as epoch:
            for table in self.rows.tables:
                calendar = len(self.rows.calendar) if table.name == "date_dim" else DIMENSION
                made = self.rows.rows(table, FACT if is_fact(table) else calendar)
                epoch.insert(table.name, made)
                self._insert(table.name, made)

    def change(self) -> None:
        """Rows come, go and change in every table."""
        for table in self.rows.tables:
            made = self.rows.rows(table, 8 if is_fact(table) else 1)
            self.view.insert(table.name, made)
            self._insert(table.name, made)
            keys = [name for name, _ in table.columns if name.endswith("_sk")]
            key = self.rows.rng.choice(keys) if is_fact(table) else keys[0]
            number = self.rows.rng.randint(1, DIMENSION)
            changed, kind = self.rows.rng.choice(table.columns[1:])
            value = exp.convert(self.rows.value(changed, kind)).sql("duckdb")
            if table.name == "date_dim":  # what follows from its date stays so
                changed, value = "d_holiday", "'Y'"
            dimension = "" if is_fact(table) else f" AND {key} > 3"
            self._both(f"DELETE FROM {table.name} WHERE {key} = {number}{dimension}")
            self._both(f"UPDATE {table.name} SET {changed} = {value} WHERE {key} = {number % DIMENSION + 1}")

    def _both(self, statement: str) -> None:
        self.view.execute(statement)
        self.plain.execute(statement)

    def _insert(self, table: str, rows: list[Row]) -> None:
        marks = ", ".join("?" for _ in rows[0])
        self.plain.executemany(f"INSERT INTO {table} VALUES ({marks})", [list(row.values()) for row in rows])

    def compare(self) -> int:
        """Fail if the view is not what the query yields; how many rows that is."""
        held = self.view.query("SELECT * FROM answer")
        mine = list(zip(*(held.column(i).to_pylist() for i in range(held.num_columns)), strict=True))
        theirs = self.plain.execute(self.recompute).fetchall()
        extra, missing = _difference(mine, theirs)
        assert not extra, f"too many: {extra[:5]}\ntoo few: {missing[:5]}"
        assert len(mine) == min(len(theirs), self.most), f"too few: {missing[:5]}"
        return len(theirs)

    def close(self) -> None:
        self.view.close()
        self.plain.close()


def _without_empty_totals(tree: exp.Expr) -> exp.Expr:
    """Over no rows, ROLLUP has a row for the whole in DuckDB, and none in Spark."""
    for group in tree.find_all(exp.Group):
        if group.find(exp.Rollup, exp.Cube, exp.GroupingSets):
            assert isinstance(group.parent, exp.Select)
            group.parent.having("COUNT(*) > 0", copy=False)
    return tree


def _difference(mine: list[tuple[object, ...]], theirs: list[tuple[object, ...]]) -> tuple[list[object], list[object]]:
    extra, missing = Counter(mine), Counter(theirs)
    common = extra & missing
    left, right = list((extra - common).elements()), list((missing - common).elements())
    for row in list(left):
        partner = next((other for other in right if all(map(_near, row, other))), None)
        if partner is not None:
            left.remove(row)
            right.remove(partner)
    return left, right  # type: ignore[return-value]


def _near(a: object, b: object) -> bool:
    if isinstance(a, int | float | Decimal) and isinstance(b, int | float | Decimal):
        return math.isclose(float(a), float(b), rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    return a == b
