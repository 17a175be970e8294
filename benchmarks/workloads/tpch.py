"""TPC-H as a stream of changes: rows of all tables in random order, and as many orders deleted as keep 30,000.

This is the workload of Ahmad et al., "DBToaster: Higher-order Delta Processing for Dynamic, Frequently Fresh Views",
section 6: insertions into all relations are interleaved at random, in proportion to the relations' sizes, and once
30,000 orders are there, one of them goes for each that comes. We deviate in one thing: the 25 nations and 5 regions are
there from the beginning, since at their rate hardly an epoch would have one.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.changes import Changes, Plan, Round, fitting

#: How many orders there are once the first have come, at any scale.
ACTIVE_ORDERS = 30_000
#: What is there from the beginning.
FIXED = ("nation", "region")
#: At most this share of a query's changes is left for the epochs that are measured.
MEASURED_SHARE = 0.9

KEY, MONEY, TEXT = "BIGINT NOT NULL", "DECIMAL(15,2) NOT NULL", "STRING NOT NULL"
DAY, NUMBER = "DATE NOT NULL", "INT NOT NULL"
Columns = Mapping[str, Mapping[str, str]]
#: The tables of the paper's queries, which name columns without a prefix.
BARE: Columns = {
    "customer": {"custkey": KEY, "nationkey": KEY, "acctbal": MONEY, "mktsegment": TEXT},
    "orders": {"orderkey": KEY, "custkey": KEY, "orderdate": DAY, "shippriority": NUMBER},
    "lineitem": {
        "orderkey": KEY,
        "partkey": KEY,
        "suppkey": KEY,
        "quantity": MONEY,
        "extendedprice": MONEY,
        "discount": MONEY,
        "shipdate": DAY,
    },
    "part": {"partkey": KEY, "type": TEXT},
    "partsupp": {"partkey": KEY, "suppkey": KEY, "supplycost": MONEY, "availqty": NUMBER},
    "supplier": {"suppkey": KEY, "nationkey": KEY},
    "nation": {"nationkey": KEY, "regionkey": KEY},
}
#: The tables of the standard queries that are used here.
PREFIXED: Columns = {
    "lineitem": {
        "l_orderkey": KEY,
        "l_partkey": KEY,
        "l_suppkey": KEY,
        "l_quantity": MONEY,
        "l_extendedprice": MONEY,
        "l_discount": MONEY,
        "l_tax": MONEY,
        "l_returnflag": TEXT,
        "l_linestatus": TEXT,
        "l_shipdate": DAY,
    },
    "part": {"p_partkey": KEY, "p_name": TEXT},
    "partsupp": {"ps_partkey": KEY, "ps_suppkey": KEY, "ps_availqty": NUMBER},
    "supplier": {"s_suppkey": KEY, "s_name": TEXT, "s_address": TEXT, "s_nationkey": KEY, "s_phone": TEXT},
    "nation": {"n_nationkey": KEY, "n_name": TEXT},
}
PREFIXES = {"partsupp": "ps_", "part": "p_", "supplier": "s_", "nation": "n_"}
PREFIXES |= {"customer": "c_", "orders": "o_", "lineitem": "l_"}


class Data:
    """The rows of all tables at one scale, each table in a random order of its own."""

    def __init__(self, folder: Path, scale: float, seed: int = 1, only: Sequence[str] = ()) -> None:
        """Make them.

        Args:
            folder: where files go.
            scale: the scale factor.
            seed: of the orders of rows.
            only: tables of the paper's queries, with nothing else; by default all tables that are used here.
        """
        self.scale = scale
        wanted = {name: dict.fromkeys(self._full(name)) for name in BARE}
        if only:
            wanted = {name: dict.fromkeys(PREFIXES[name] + column for column in BARE[name]) for name in only}
        command = [str(Path(sys.executable).parent / "tpchgen-cli"), "parquet", "-s", str(scale)]
        command += ["--tables", ",".join(wanted), "--output-dir", str(folder)]
        subprocess.run(command, check=True, capture_output=True)
        rng = np.random.default_rng(seed)
        self._rows: dict[str, pa.Table] = {}
        for name, columns in wanted.items():
            table = _plain(pq.read_table(folder / f"{name}.parquet", columns=list(columns)))
            self._rows[name] = table.take(pa.array(rng.permutation(table.num_rows))).combine_chunks()

    @staticmethod
    def _full(name: str) -> list[str]:
        return [PREFIXES[name] + column for column in BARE[name]] + list(PREFIXED.get(name, ()))

    def table(self, name: str, columns: Iterable[str]) -> pa.Table:
        """A table's rows, with these columns, which may lack the prefix."""
        names = list(columns)
        prefix = PREFIXES[name]
        full = [column if column.startswith(prefix) else prefix + column for column in names]
        return self._rows[name].select(full).rename_columns(names)


class Stream:
    """The changes of some tables, in the order in which they come."""

    def __init__(
        self, data: Data, tables: Sequence[str], columns: Columns, seed: int = 1, active: int = ACTIVE_ORDERS
    ) -> None:
        self._fixed = {name: data.table(name, columns[name]) for name in tables if name in FIXED}
        self._rows = {name: data.table(name, columns[name]) for name in tables if name not in FIXED}
        rng = np.random.default_rng(seed)
        names = list(self._rows)
        often = [self._rows[name].num_rows for name in names]
        coming = rng.permutation(np.repeat(np.arange(len(names), dtype=np.int8), often))
        is_order = coming == (names.index("orders") if "orders" in names else -1)
        goes = is_order & (np.cumsum(is_order) > active)
        #: How many events there were after each row that came: one, or two where an order went.
        self._events = np.cumsum(1 + goes)
        self._gone = np.cumsum(goes)
        self._come = {name: np.cumsum(coming == number, dtype=np.int64) for number, name in enumerate(names)}
        self._victims = _victims(rng, int(is_order.sum()), active)
        self.events = int(self._events[-1])

    def rounds(self, plans: list[Plan]) -> tuple[Changes, list[Round]]:
        """What is loaded at first, and the epochs after that: together all that comes."""
        plans = fitting(plans, int(self.events * MEASURED_SHARE))
        end = self.events - sum(plan.total for plan in plans)
        position = int(np.searchsorted(self._events, end))
        load = self._load(position)
        rounds: list[Round] = []
        for plan in plans:
            epochs = []
            for _ in range(plan.warm_up + plan.measured):
                end += plan.changes
                after = min(int(np.searchsorted(self._events, end)), len(self._events) - 1)
                epochs.append(self._between(position, after))
                position = after
            rounds.append(Round(plan.changes, plan.warm_up, epochs))
        return load, rounds

    def _load(self, position: int) -> Changes:
        """All up to a position, without the orders that went."""
        tables = {name: rows.slice(0, int(self._come[name][position])) for name, rows in self._rows.items()}
        if "orders" in tables:
            stays = np.ones(tables["orders"].num_rows, dtype=bool)
            stays[self._victims[: self._gone[position]]] = False
            tables["orders"] = tables["orders"].filter(pa.array(stays))
        return Changes({name: table.combine_chunks() for name, table in (self._fixed | tables).items()})

    def _between(self, before: int, after: int) -> Changes:
        insert, delete = {}, {}
        for name, rows in self._rows.items():
            start, end = (int(self._come[name][position]) for position in (before, after))
            if end > start:
                insert[name] = rows.slice(start, end - start).combine_chunks()
        gone = self._victims[self._gone[before] : self._gone[after]]
        if len(gone):
            delete["orders"] = self._rows["orders"].take(pa.array(gone)).combine_chunks()
        return Changes(insert, delete)


def _victims(rng: np.random.Generator, orders: int, active: int) -> np.ndarray:
    """For each order after the first ones, the place of one that goes in its stead: any that is there."""
    there = list(range(min(active, orders)))
    chosen = rng.integers(0, active + 1, max(0, orders - active))
    out = np.empty(len(chosen), dtype=np.int64)
    for number, place in enumerate(chosen.tolist()):
        there.append(active + number)
        out[number] = there[place]
        there[place] = there[-1]
        there.pop()
    return out


def _plain(table: pa.Table) -> pa.Table:
    """Texts in the form that all systems share."""
    for index, field in enumerate(table.schema):
        if pa.types.is_string_view(field.type):
            table = table.set_column(index, field.name, pc.cast(table.column(index), pa.string()))
    return table
