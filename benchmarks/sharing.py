"""Ten views with parts in common: all in one warehouse, and each in a warehouse of its own.

They are over customer, orders and lineitem of TPC-H: the same joins and the same sums by order or customer, with other
conditions, groups and HAVING above them. A time of the ten warehouses is the sum of the ten, as are their bytes and
maps. Changes are those of the suite `tpch`.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.queries.harness import unmatched

import headwater as hw
from benchmarks.changes import Changes
from benchmarks.disk import scratch, usage
from benchmarks.options import option
from benchmarks.systems import CHOSEN, bag
from benchmarks.tpch import plans, schema_of
from benchmarks.workloads.tpch import ACTIVE_ORDERS, BARE, Data, Stream

TABLES = ["customer", "orders", "lineitem"]
NET = "SUM(l.extendedprice * (1 - l.discount))"
LINES_OF_ORDERS = "orders o JOIN lineitem l ON l.orderkey = o.orderkey"
ALL_THREE = "customer c JOIN orders o ON o.custkey = c.custkey JOIN lineitem l ON l.orderkey = o.orderkey"
BY_ORDER = "SELECT orderkey, SUM(quantity) AS quantity FROM lineitem GROUP BY orderkey"
VIEWS: Mapping[str, str] = {
    "revenue by segment": f"SELECT c.mktsegment, {NET} AS revenue FROM {ALL_THREE} GROUP BY c.mktsegment",
    "revenue by nation": f"SELECT c.nationkey, {NET} AS revenue FROM {ALL_THREE} GROUP BY c.nationkey",
    "revenue by customer": f"SELECT c.custkey, {NET} AS revenue FROM {ALL_THREE} GROUP BY c.custkey",
    "good customers": f"SELECT c.custkey, {NET} AS revenue FROM {ALL_THREE} GROUP BY c.custkey HAVING {NET} > 500000",
    "revenue by day": f"SELECT o.orderdate, {NET} AS revenue FROM {LINES_OF_ORDERS} GROUP BY o.orderdate",
    "revenue by priority": f"SELECT o.shippriority, {NET} AS revenue FROM {LINES_OF_ORDERS} GROUP BY o.shippriority",
    "large orders": f"SELECT orderkey, quantity FROM ({BY_ORDER}) WHERE quantity > 250",
    "orders by quantity": f"SELECT quantity, COUNT(*) AS orders FROM ({BY_ORDER}) GROUP BY quantity",
    "customers of large orders": f"""
        SELECT o.custkey, SUM(b.quantity) AS quantity FROM orders o JOIN ({BY_ORDER}) b ON b.orderkey = o.orderkey
        WHERE b.quantity > 250 GROUP BY o.custkey""",
    "quantity by customer": f"""
        SELECT o.custkey, SUM(b.quantity) AS quantity FROM orders o JOIN ({BY_ORDER}) b ON b.orderkey = o.orderkey
        GROUP BY o.custkey""",
}


@dataclass(frozen=True)
class Options:
    """What can be chosen."""

    scale: float = option(0.1, "scale factor")
    changes: tuple[int, ...] = option((1_000, 10_000), "changes in an epoch")
    strategy: str = option(CHOSEN, "a strategy to force")
    orders: int = option(ACTIVE_ORDERS, "orders that are there at a time")


@dataclass
class Group:
    """One or more warehouses that together hold all views."""

    name: str
    databases: list[hw.Database]
    folders: list[Path]
    seconds: list[float] = field(default_factory=list)

    def apply(self, epoch: Changes) -> None:
        """Take an epoch, one warehouse after the other."""
        began = time.perf_counter()
        for db in self.databases:
            with db.epoch() as operations:
                for name, table in epoch.insert.items():
                    operations.insert(name, table)
                for name, table in epoch.delete.items():
                    operations.delete(name, table)
        self.seconds.append(time.perf_counter() - began)

    def maps(self) -> int:
        programs = [(number, one.program) for number, db in enumerate(self.databases) for one in db.engine.catalog]
        return len({(number, one.name) for number, program in programs if program is not None for one in program.maps})

    def statements(self) -> int:
        programs = [one.program for db in self.databases for one in db.engine.catalog]
        return sum(len(program.statements) for program in programs if program is not None)

    def bytes(self) -> int:
        for db in self.databases:
            with db.engine.lock:
                db.engine.connection.execute("FORCE CHECKPOINT")
        return sum(usage(folder).bytes for folder in self.folders)


def run(report: Callable[[str], None], options: Options) -> Iterator[dict[str, object]]:
    """Measure; yields one row of figures per size and group of warehouses."""
    with scratch() as folder:
        report(f"making TPC-H data at scale {options.scale}")
        stream = Stream(Data(folder / "data", options.scale), TABLES, BARE, active=options.orders)
        load, rounds = stream.rounds(plans(options.changes))
        names = {view: f"view{number}" for number, view in enumerate(VIEWS)}
        one = _group("one warehouse", [list(VIEWS)], names, folder, options.strategy)
        ten = _group("ten warehouses", [[view] for view in VIEWS], names, folder, options.strategy)
        report(f"loading {load.size:,} rows")
        for group in (one, ten):
            group.apply(load)
        for round_ in rounds:
            report(f"{len(round_.epochs)} epochs of {round_.changes:,} changes")
            one.seconds, ten.seconds = [], []
            for number, epoch in enumerate(round_.epochs):
                for group in (one, ten) if number % 2 else (ten, one):
                    group.apply(epoch)
            for view, db in zip(VIEWS, ten.databases, strict=True):
                query = f"SELECT * FROM {names[view]}"
                assert not list(unmatched(bag(one.databases[0].query(query)), bag(db.query(query)))), view
            yield from (_figures(group, ten, round_.changes, round_.warm_up) for group in (one, ten))
        for db in (*one.databases, *ten.databases):
            db.close()


def _group(name: str, views: list[list[str]], names: Mapping[str, str], folder: Path, strategy: str) -> Group:
    databases, folders = [], [folder / f"{name} {number}" for number in range(len(views))]
    clause = "" if strategy == CHOSEN else f"STRATEGY '{strategy}'"
    for place, some in zip(folders, views, strict=True):
        db = hw.connect(place)
        assert isinstance(db, hw.Database)
        db.execute(schema_of(TABLES, BARE))
        for view in some:
            db.execute(f"CREATE VIEW {names[view]} {clause} AS {VIEWS[view]}")
        databases.append(db)
    return Group(name, databases, folders)


def _figures(group: Group, apart: Group, changes: int, warm_up: int) -> dict[str, object]:
    middle, other = (statistics.median(one.seconds[warm_up:]) for one in (group, apart))
    return {
        "changes": changes,
        "system": group.name,
        "views": len(VIEWS),
        "maps": group.maps(),
        "statements": group.statements(),
        "p50 ms": middle * 1000,
        "worst ms": max(group.seconds[warm_up:]) * 1000,
        "to ten warehouses": middle / other,
        "state MiB": group.bytes() / 2**20,
    }
