"""What a change meets of a store is looked for once, and nobody can tell by the rows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from headwater import types as t
from headwater.algebra.nodes import Filter, Join, Node, Scan, Version
from headwater.algebra.scalars import Call, Column
from headwater.database import Database
from headwater.emit.duckdb import Emitter
from headwater.emit.narrowing import Equal, Meeting, meetings_of, shared_meetings
from headwater.engine import meetings, segment_files
from headwater.engine.local_tasks import LocalRunner
from headwater.engine.meetings import pays

SCHEMA = """
CREATE TABLE customer (ck INT, city INT);
CREATE TABLE orders (ok INT, ck INT, euros INT);
"""
#: Equalities that NULL meets and that it does not, outer forms, views over views, a join of a relation with itself.
VIEWS = {
    "cheap": "SELECT c.city, SUM(o.euros) AS e, COUNT(*) AS n FROM customer c JOIN orders o ON c.ck = o.ck"
    " WHERE o.euros < 500 GROUP BY c.city",
    "dear": "SELECT c.city, SUM(o.euros) AS e, COUNT(*) AS n FROM customer c JOIN orders o ON c.ck = o.ck"
    " WHERE o.euros > 400 GROUP BY c.city",
    "same": "SELECT c.city, COUNT(*) AS n FROM customer c JOIN orders o ON c.ck <=> o.ck GROUP BY c.city",
    "same_again": "SELECT c.city, MAX(o.euros) AS m FROM customer c JOIN orders o ON c.ck <=> o.ck GROUP BY c.city",
    "kept": "SELECT c.ck, c.city, o.ok FROM customer c LEFT JOIN orders o ON c.ck = o.ck",
    "none": "SELECT c.ck, c.city FROM customer c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.ck = c.ck)",
    "pairs": "SELECT a.ok AS a, b.ok AS b FROM orders a JOIN orders b ON a.ck = b.ck AND a.euros < b.euros",
    "pairs_too": "SELECT a.ck, COUNT(*) AS n FROM orders a JOIN orders b ON a.ck = b.ck AND a.ok <> b.ok GROUP BY a.ck",
    "by_customer": "SELECT ck, SUM(euros) AS e FROM orders GROUP BY ck HAVING SUM(euros) > 900",
    "rich": "SELECT c.city, b.e FROM customer c JOIN by_customer b ON b.ck = c.ck WHERE b.e > 1000",
    "richer": "SELECT c.city, b.e FROM customer c JOIN by_customer b ON b.ck = c.ck WHERE b.e > 2000",
}


@contextmanager
def both(folder: Path) -> Iterator[tuple[Database, Database]]:
    with (
        closing(LocalRunner(2, 7)) as runner,
        Database(folder / "inline") as inline,
        Database(folder / "tasks", placement="tasks", runner=runner, partitions=3) as tasks,
    ):
        for db in (inline, tasks):
            db.execute(SCHEMA)
            for view, text in VIEWS.items():
                db.execute(f"CREATE VIEW {view} AS {text}")
        yield inline, tasks


def contents(db: Database, view: str) -> list[str]:
    return sorted(str(tuple(row.values())) for row in db.query(f"SELECT * FROM {view}").to_pylist())


def some_key(rng: random.Random) -> int | None:
    return rng.randrange(30) if rng.random() < 0.9 else None


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement that can reads what was met; the tables that are made."""
    tables: list[str] = []
    plain = meetings.Meetings.close

    def close(self: meetings.Meetings) -> None:
        tables.extend(self._made)
        plain(self)

    monkeypatch.setattr(meetings, "pays", lambda *_: True)
    monkeypatch.setattr(meetings.Meetings, "close", close)
    return tables


@pytest.mark.parametrize("in_files", [False, True])
def test_rows_are_those_of_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: list[str], in_files: bool
) -> None:
    if in_files:
        monkeypatch.setattr(segment_files, "_UNPACKED", 1 << 40)
    rng = random.Random(3)
    orders: list[tuple[object, ...]] = []
    customers: list[tuple[object, ...]] = []
    with both(tmp_path) as (inline, tasks):
        for number in range(10):
            coming = [(number * 10 + i, some_key(rng), rng.randrange(1000)) for i in range(10)]
            new = [(some_key(rng), rng.randrange(3)) for _ in range(4)]
            going = [orders.pop(rng.randrange(len(orders))) for _ in range(min(4, len(orders)))]
            gone = [customers.pop(rng.randrange(len(customers))) for _ in range(min(2, len(customers)))]
            orders += coming
            customers += new
            for db in (inline, tasks):
                with db.epoch() as epoch:
                    epoch.insert("orders", coming)
                    epoch.delete("orders", going)
                    epoch.insert("customer", new)
                    epoch.delete("customer", gone)
            for view in VIEWS:
                assert contents(tasks, view) == contents(inline, view), (number, view)
    assert any("met orders: customer" in one for one in made)
    assert any("met customer: orders" in one for one in made)
    assert any("<=>" in one for one in made)


def test_small_stores_are_scanned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[bool] = []
    plain = meetings.Meetings.meet

    def meet(self: meetings.Meetings, narrow: object) -> bool:
        found.append(plain(self, narrow))  # type: ignore[arg-type]
        return found[-1]

    monkeypatch.setattr(meetings.Meetings, "meet", meet)
    with both(tmp_path) as (_, tasks):
        tasks.insert("orders", [(1, 1, 1)])
        tasks.insert("customer", [(1, 1)])
    assert found
    assert not any(found)


def test_what_pays() -> None:
    assert pays(600_000, 2_000, 10)
    assert pays(600_000, 2_000, 2)
    assert not pays(600_000, 2_000, 1)  # it would be looked for twice
    assert not pays(600_000, 200_000, 2)  # most of the store would be written again
    assert not pays(1_000, 1, 10)


# -- which scans -------------------------------------------------------------------------------------------------------

A = (t.Field("x", t.INT, True), t.Field("y", t.INT, True), t.Field("d", t.DOUBLE, True))


def scan(relation: str, alias: str, version: Version = Version.STORED) -> Scan:
    return Scan(relation, alias, A, version)


def equal(left: str, right: str, function: str = "=", of: t.Type = t.INT) -> Call:
    return Call(function, (Column(left, of), Column(right, of)))


CHANGE = scan("a", "a", Version.DELTA)


def found(term: Node) -> dict[str, Meeting]:
    return dict(meetings_of(term, Emitter()))


def test_scans_that_the_change_is_equated_with() -> None:
    joined = Join(CHANGE, scan("b", "b"), equal("b.x", "a.y"))
    assert found(joined) == {"b": Meeting("b", "a", (Equal("x", "y"),))}
    assert found(Filter(joined, equal("a.x", "b.y", "<=>")))["b"].by == (Equal("x", "y"), Equal("y", "x", True))


def test_others_are_read_whole() -> None:
    assert not found(Join(CHANGE, scan("b", "b"), equal("b.x", "b.y")))
    assert not found(Join(CHANGE, scan("b", "b"), equal("b.x", "a.y", "<")))
    assert not found(Join(CHANGE, scan("b", "b"), equal("b.d", "a.d", of=t.DOUBLE)))  # 0.0 equals -0.0
    both_changed = Join(CHANGE, scan("b", "b", Version.DELTA), equal("b.x", "a.y"))
    assert not found(both_changed)


def test_what_one_statement_alone_needs_is_not_shared() -> None:
    one = {"b": Meeting("b", "a", (Equal("x", "y"),))}
    other = {"c": Meeting("c", "a", (Equal("x", "y"),)), "b2": Meeting("b", "a", (Equal("x", "y"),))}
    assert shared_meetings([one, other]) == [one, {"b2": other["b2"]}]
