"""Two warehouses that are told the same: one at home in this process, one wherever it is. They must not be told apart.

The relations are a small TPC-H, a book of bids and a stream of measurements; the views are of every kind that is placed
in a way of its own. Epochs insert, delete and update.
"""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from functools import partial

import pyarrow as pa

import headwater as hw
from tests.equivalence.subject import bag_of

Row = tuple[object, ...]
Bag = Counter[Row]
#: Changes of an epoch: a method of `EpochBuilder`, the relation, and its rows.
Change = tuple[str, str, list[Row]]

RELATIONS = """
    CREATE TABLE customer (c_custkey INT PRIMARY KEY, c_name STRING, c_mktsegment STRING);
    CREATE TABLE orders (o_orderkey INT PRIMARY KEY, o_custkey INT, o_orderdate DATE, o_totalprice DECIMAL(12, 2));
    CREATE TABLE lineitem (l_orderkey INT, l_quantity DECIMAL(12, 2), l_extendedprice DECIMAL(12, 2),
        l_discount DECIMAL(12, 2), l_returnflag STRING, l_shipdate DATE);
    CREATE TABLE bids (price INT, volume INT);
    CREATE STREAM m (ts TIMESTAMP NOT NULL, src STRING NOT NULL, loss INT NOT NULL)
        TIMESTAMP BY ts PARTITION LENGTH 60;
"""

VIEWS: Mapping[str, str] = {
    "q1": "SELECT l_returnflag, sum(l_quantity) AS quantity, sum(l_extendedprice * (1 - l_discount)) AS price, "
    "avg(l_discount) AS discount, count(*) AS n FROM lineitem WHERE l_shipdate <= DATE '1998-09-02' "
    "GROUP BY l_returnflag",
    "q3": "SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate "
    "FROM customer, orders, lineitem WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey "
    "AND l_orderkey = o_orderkey AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-01-15' "
    "GROUP BY l_orderkey, o_orderdate",
    "q3_top": "SELECT l_orderkey, revenue FROM q3 ORDER BY revenue DESC, l_orderkey LIMIT 5",
    "q18": "SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) AS quantity "
    "FROM customer, orders, lineitem WHERE o_orderkey IN "
    "(SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 40) "
    "AND c_custkey = o_custkey AND o_orderkey = l_orderkey "
    "GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice",
    "vwap": "SELECT sum(b1.price * b1.volume) AS vwap FROM bids b1 WHERE 0.25 * (SELECT sum(b3.volume) FROM bids b3) > "
    "(SELECT sum(b2.volume) FROM bids b2 WHERE b2.price > b1.price)",
    "by_segment": "SELECT c_mktsegment, count(*) AS n, sum(quantity) AS quantity "
    "FROM q18 JOIN customer USING (c_custkey) GROUP BY c_mktsegment",
    "outer_join": "SELECT c_custkey, c_name, o_orderkey FROM customer LEFT JOIN orders ON c_custkey = o_custkey",
    "flags": "SELECT o_custkey, count(DISTINCT l_returnflag) AS flags, count(DISTINCT l_shipdate) AS days "
    "FROM orders JOIN lineitem ON o_orderkey = l_orderkey GROUP BY o_custkey",
    "extremes": "SELECT l_returnflag, min(l_shipdate) AS first, max(l_extendedprice) AS most, min(l_quantity) AS least "
    "FROM lineitem GROUP BY l_returnflag",
    "best_bids": "SELECT price, sum(volume) AS volume FROM bids GROUP BY price ORDER BY price DESC LIMIT 3",
    "lossy": "SELECT src, count(*) AS ct, sum(loss) AS sum_loss FROM m PATTERN [a, b+] "
    "WHERE a.loss > 10 AND b.loss > 10 GROUP BY src",
    "lately": "SELECT src, max(loss) AS most, count(*) AS n FROM m [WINDOW 3 MINUTES] GROUP BY src",
    "worst": "SELECT src, max(most) AS most, count(*) AS n FROM lately GROUP BY src",
}
#: Views with something before AS.
OTHERS: Mapping[str, str] = {
    "seldom": "CREATE VIEW seldom REFRESH EVERY 3 SECONDS AS "
    "SELECT c_mktsegment, count(*) AS n FROM customer JOIN orders ON c_custkey = o_custkey GROUP BY c_mktsegment",
    "kept": "CREATE VIEW kept RETAIN CHANGES ALL AS SELECT price, count(*) AS n FROM bids GROUP BY price",
}

_START = dt.datetime(2026, 1, 1)
_SEGMENTS = ("BUILDING", "BUILDING", "MACHINERY", None)
_ORDERS = 16


def clock_of(opened: list[hw.Database]) -> dt.datetime:
    """A second after the last epoch's, so that runs can be compared."""
    return _START + dt.timedelta(seconds=opened[0].engine.epoch + 1 if opened else 0)


def home() -> hw.Database:
    """A warehouse in this process."""
    opened: list[hw.Database] = []
    db = hw.connect(clock=partial(clock_of, opened))
    assert isinstance(db, hw.Database)
    opened.append(db)
    return db


class Story:
    """Epochs, one after the other; the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._customers: set[int] = set()
        self._orders: set[int] = set()
        self._lines: list[Row] = []
        self._bids: list[Row] = []
        self._minute = 0

    def epoch(self) -> list[Change]:
        """The next one."""
        rng = self._random
        changes: list[Change] = []
        customers = [self._customer(rng.randrange(12)) for _ in range(rng.randint(0, 3))]
        changes.append(("upsert", "customer", list({row[0]: row for row in customers}.values())))
        self._customers |= {int(str(row[0])) for row in customers}
        orders = [self._order(rng.randrange(_ORDERS)) for _ in range(rng.randint(1, 4))]
        changes.append(("upsert", "orders", list({row[0]: row for row in orders}.values())))
        self._orders |= {int(str(row[0])) for row in orders}
        if len(self._orders) > 9 and rng.random() < 0.5:
            gone = rng.choice(sorted(self._orders))
            self._orders.discard(gone)
            changes.append(("delete_keys", "orders", [(gone,)]))
        lines = [self.line(rng.randrange(_ORDERS)) for _ in range(rng.randint(2, 8))]
        changes.append(("delete", "lineitem", self._some(self._lines)))
        changes.append(("insert", "lineitem", lines))
        self._lines += lines
        bids = [(rng.randrange(1, 20), rng.randrange(1, 50)) for _ in range(rng.randint(1, 5))]
        changes.append(("delete", "bids", self._some(self._bids)))
        changes.append(("insert", "bids", bids))
        self._bids += bids
        if rng.random() < 0.8:
            self._minute += rng.randint(0, 2)
            changes.append(("insert", "m", [self._measured() for _ in range(rng.randint(1, 4))]))
        return [one for one in changes if one[2]]

    def everywhere(self) -> list[Change]:
        """An epoch that touches every group of every view, and is no part of the story: it must fail."""
        orders = range(_ORDERS)
        return [
            ("upsert", "customer", [self._customer(key) for key in range(12)]),
            ("upsert", "orders", [self._order(key) for key in orders]),
            ("insert", "lineitem", [self.line(key, flag) for key in orders for flag in "ARN"]),
            ("insert", "bids", [(price, 1) for price in range(1, 20)]),
        ]

    def update(self) -> str:
        """A statement in place of an epoch."""
        flag = self._random.choice("ARN")
        self._lines = [(*row[:1], Decimal(1), *row[2:]) if row[4] == flag else row for row in self._lines]
        return f"UPDATE lineitem SET l_quantity = 1 WHERE l_returnflag = '{flag}'"

    def next(self) -> list[Change] | str:
        return self.update() if self._random.random() < 0.15 else self.epoch()

    def _some(self, rows: list[Row]) -> list[Row]:
        much = min(len(rows), self._random.randint(0, 2 if len(rows) < 60 else 12))
        return [rows.pop(self._random.randrange(len(rows))) for _ in range(much)]

    def _customer(self, key: int) -> Row:
        return key, f"customer {key}", self._random.choice(_SEGMENTS)

    def _order(self, key: int) -> Row:
        day = dt.date(1995, 1, 1) + dt.timedelta(days=self._random.randrange(150))
        return key, self._random.randrange(10), day, Decimal(self._random.randrange(1000)) / 4

    def line(self, order: int, flag: str | None = None) -> Row:
        """A row of lineitem."""
        rng = self._random
        day = dt.date(1995, 1, 1) + dt.timedelta(days=rng.randrange(60))
        numbers = Decimal(rng.randint(1, 50)), Decimal(rng.randrange(10_000)) / 100, Decimal(rng.randrange(10)) / 100
        return order, *numbers, flag or rng.choice("ARN"), day

    def _measured(self) -> Row:
        moment = dt.datetime(2026, 1, 1) + dt.timedelta(minutes=self._minute, seconds=self._random.randrange(60))
        return moment, self._random.choice("xyz"), self._random.randrange(5, 25)


class Watched:
    """A warehouse, and the last changelogs of its views."""

    def __init__(self, db: hw.Database) -> None:
        self.db = db
        self.changes: dict[str, Bag] = {}
        db.observe(self._observe)

    def _observe(self, number: int, changes: Mapping[str, pa.Table]) -> None:
        self.changes = {name: rows for name, table in changes.items() if (rows := bag_of(table))}

    def carry_out(self, step: list[Change] | str) -> None:
        self.changes = {}
        if isinstance(step, str):
            self.db.execute(step)
            return
        with self.db.epoch() as builder:
            for method, relation, rows in step:
                getattr(builder, method)(relation, rows)

    def contents(self, view: str) -> Bag:
        return bag_of(self.db.query(f"SELECT * FROM {view}"))


def define(db: hw.Database) -> None:
    db.execute(RELATIONS)
    for name, query in VIEWS.items():
        db.execute(f"CREATE VIEW {name} AS {query}")
    for statement in OTHERS.values():
        db.execute(statement)


class Twins:
    """Carries a story out in both warehouses and compares them after every epoch."""

    def __init__(self, away: hw.Database, seed: int) -> None:
        self.story = Story(seed)
        self.there, self.here = Watched(away), Watched(home())
        self.views = (*VIEWS, *OTHERS)
        self.steps = 0

    def define(self) -> None:
        for one in (self.there, self.here):
            define(one.db)

    def step(self) -> None:
        """One epoch, and a look at everything."""
        step = self.story.next()
        self.here.carry_out(step)
        self.there.carry_out(step)
        self.steps += 1
        self.compare()

    def follow(self, epochs: int) -> None:
        """Let the warehouse at home come as far as the other one is."""
        while self.here.db.engine.epoch < epochs:
            self.here.carry_out(self.story.next())

    def compare(self, changes: bool = True) -> None:
        for view in self.views:
            found, wanted = self.there.contents(view), self.here.contents(view)
            assert found == wanted, (
                f"epoch {self.steps}, {view}: {found - wanted} too much, {wanted - found} too little"
            )
        if changes:
            assert self.there.changes == self.here.changes, f"epoch {self.steps}: {self._other_changes()}"
        assert not [one.name for one in self.there.db.engine.catalog if one.suspended]

    def _other_changes(self) -> dict[str, tuple[Bag | None, Bag | None]]:
        there, here = self.there.changes, self.here.changes
        return {
            one: (there.get(one), here.get(one))
            for one in there.keys() | here.keys()
            if there.get(one) != here.get(one)
        }

    def replace(self, away: hw.Database) -> None:
        """The warehouse was opened again."""
        self.there = Watched(away)

    def close(self) -> None:
        self.here.db.close()
