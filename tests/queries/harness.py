"""Runs a folder of queries as views over random epochs; after each, contents and changelogs are held against DuckDB."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
from sqlglot import exp

import headwater as hw
from headwater.engine.arrow_types import arrow_schema
from tests.equivalence.bags import Bag, added, difference
from tests.equivalence.references import transpiled
from tests.equivalence.subject import bag_of

Row = dict[str, object]
Key = tuple[object, ...]
#: A row of a table, made up; `number` is one that no row of the table has had yet.
MakeRow = Callable[[random.Random, int], Row]


@dataclass(frozen=True)
class Suite:
    """A folder with `schema.sql` and one file per query, and how to make up rows for its tables."""

    folder: Path
    makers: Mapping[str, MakeRow]
    sizes: Mapping[str, int]  #: rows of each table to begin with

    @property
    def schema(self) -> str:
        return (self.folder / "schema.sql").read_text()

    @property
    def queries(self) -> dict[str, str]:
        files = sorted(self.folder.glob("*.sql"))
        return {file.stem: file.read_text().strip().rstrip(";") for file in files if file.stem != "schema"}


@dataclass
class Change:
    """What an epoch does to one table."""

    insert: list[Row] = field(default_factory=list)
    delete: list[Row] = field(default_factory=list)
    upsert: list[tuple[Row, Row]] = field(default_factory=list)  #: rows before and after


class World:
    """All tables' rows, and random changes to them."""

    def __init__(self, suite: Suite, keys: Mapping[str, tuple[str, ...]], seed: int) -> None:
        self._suite = suite
        self._keys = keys
        self._random = random.Random(seed)
        self._number: Counter[str] = Counter()
        self.rows: dict[str, list[Row]] = {name: [] for name in suite.makers}

    def first(self) -> dict[str, Change]:
        return {name: self._change(name, self._suite.sizes[name], 0, 0) for name in self.rows}

    def next(self, share: float = 0.08) -> dict[str, Change]:
        """A change of each table by about this share of its rows, each way."""
        changes = {}
        for name, rows in self.rows.items():
            often = [self._random.randint(0, math.ceil(len(rows) * share)) for _ in range(3)]
            changes[name] = self._change(name, *often)
        return changes

    def updates(self, names: Sequence[str], total: int) -> dict[str, Change]:
        """As many rows updated, of some tables in turn."""
        often = Counter(names[i % len(names)] for i in range(total))
        return {name: self._change(name, 0, 0, n) for name, n in often.items()}

    def _change(self, name: str, inserts: int, deletes: int, updates: int) -> Change:
        rows, change = self.rows[name], Change()
        self._random.shuffle(rows)
        for _ in range(min(deletes, len(rows))):
            change.delete.append(rows.pop())
        for index in range(min(updates, len(rows))):
            old, key = rows[index], self._keys[name]
            new = self._suite.makers[name](self._random, 0)
            rows[index] = new | {column: old[column] for column in key}
            change.upsert.append((old, rows[index]))
        taken = {self._key(name, row) for row in (*rows, *change.delete)}
        for _ in range(inserts):
            self._number[name] += 1
            row = self._suite.makers[name](self._random, self._number[name])
            if not self._keys[name] or self._key(name, row) not in taken:
                taken.add(self._key(name, row))
                rows.append(row)
                change.insert.append(row)
        return change

    def _key(self, name: str, row: Row) -> Key:
        return tuple(row[column] for column in self._keys[name])


def apply(db: hw.Database, changes: Mapping[str, Change], keys: Mapping[str, tuple[str, ...]]) -> None:
    """Carry out an epoch."""
    with db.epoch() as epoch:
        for name, change in changes.items():
            epoch.delete(name, change.delete)
            if keys[name]:
                epoch.upsert(name, [new for _, new in change.upsert])
            else:
                epoch.delete(name, [old for old, _ in change.upsert])
                epoch.insert(name, [new for _, new in change.upsert])
            epoch.insert(name, change.insert)


class Recomputed:
    """The same tables in a DuckDB of their own, and the queries as sqlglot transpiles them."""

    def __init__(self, db: hw.Database, queries: Mapping[str, str], threads: int = 1) -> None:
        self._schemas = {one.name: arrow_schema(one.fields) for one in db.engine.catalog if one.program is None}
        self._connection = duckdb.connect()
        self._connection.execute(f"SET threads = {threads}")
        self._queries = {name: total_order(transpiled(query)).sql("duckdb") for name, query in queries.items()}

    def store(self, rows: Mapping[str, list[Row]]) -> None:
        for name, schema in self._schemas.items():
            self._connection.register("held", pa.Table.from_pylist(rows[name], schema=schema))
            self._connection.execute(f'CREATE OR REPLACE TABLE "{name}" AS SELECT * FROM held')

    def contents(self, query: str) -> Bag:
        return Counter(self._connection.execute(self._queries[query]).fetchall())

    def close(self) -> None:
        self._connection.close()


def total_order(query: exp.Expr) -> exp.Expr:
    """The query with all its columns at the end of ORDER BY ... LIMIT, as a view breaks ties."""
    if query.args.get("limit") is None:
        return query
    order = query.args["order"]
    for one in query.selects:
        order.append("expressions", exp.Ordered(this=exp.column(one.alias_or_name), nulls_first=True))
    return query


@dataclass
class Outcome:
    """What a run showed: how often each view had rows, and how often it changed."""

    filled: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)


def run(suite: Suite, seed: int, epochs: int, only: tuple[str, ...] = ()) -> Outcome:
    """Keep all queries as views over random epochs and compare after each; half are created after the first rows."""
    queries = {name: query for name, query in suite.queries.items() if not only or name in only}
    outcome = Outcome()
    with hw.connect(":memory:") as db:
        assert isinstance(db, hw.Database)
        db.execute(suite.schema)
        keys = {one.name: tuple(one.key) for one in db.engine.catalog}
        world, recomputed = World(suite, keys, seed), Recomputed(db, queries)
        seen: dict[str, pa.Table] = {}
        db.observe(lambda number, changes: seen.update(changes))
        for name, query in list(queries.items())[::2]:
            db.execute(f"CREATE VIEW view_{name} AS {query}")
        apply(db, world.first(), keys)
        for name, query in list(queries.items())[1::2]:
            db.execute(f"CREATE VIEW view_{name} AS {query}")
        held: dict[str, Bag] = {}
        for epoch in range(epochs + 1):
            if epoch:
                seen.clear()
                apply(db, world.next(), keys)
            recomputed.store(world.rows)
            for name in queries:
                now = bag_of(db.query(f"SELECT * FROM view_{name}"))
                _compare(name, epoch, now, recomputed.contents(name))
                if epoch:
                    _compare_change(name, epoch, held[name], now, seen.get(f"view_{name}"))
                outcome.filled[name] += any(any(value is not None for value in row) for row in now)
                outcome.changed[name] += epoch > 0 and now != held[name]
                held[name] = now
        recomputed.close()
    return outcome


def _compare(name: str, epoch: int, now: Bag, expected: Bag) -> None:
    wrong = list(unmatched(now, expected))
    assert not wrong, "\n".join([f"{name} after epoch {epoch}: too many (+), too few (-)", *wrong[:10]])


def _compare_change(name: str, epoch: int, before: Bag, now: Bag, change: pa.Table | None) -> None:
    changelog: Bag = bag_of(change) if change is not None else Counter()
    assert all(changelog.values()), f"{name} after epoch {epoch}: a change of nothing"
    assert changelog == difference(now, before), f"{name} after epoch {epoch}: not the difference of contents"
    assert added(before, changelog) == now


def unmatched(left: Bag, right: Bag) -> Iterator[str]:
    """Rows without a partner on the other side; numbers may differ by rounding."""
    wrong = difference(left, right)
    extra = [row for row, n in wrong.items() for _ in range(n) if n > 0]
    missing = [row for row, n in wrong.items() for _ in range(-n) if n < 0]
    for row in extra:
        partner = next((other for other in missing if all(map(_near, row, other))), None)
        if partner is None:
            yield f"+ {row}"
        else:
            missing.remove(partner)
    yield from (f"- {row}" for row in missing)


def _near(a: object, b: object) -> bool:
    """Equal, or numbers that agree to what Spark's decimals show: six places after the point."""
    if isinstance(a, int | float | Decimal) and isinstance(b, int | float | Decimal):
        return math.isclose(float(a), float(b), rel_tol=1e-9, abs_tol=1e-6)
    return a == b
