"""Small random rows for a TPC-DS query: keys that meet, and the values that the query looks for."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from decimal import Decimal

from sqlglot import exp, parse_one

from .tpcds import Table, tables

Row = dict[str, object]
#: Rows of a dimension, and of a fact table.
DIMENSION, FACT = 6, 150
_FACTS = ("sales", "returns", "inventory")
_DAY_ONE = dt.date(1900, 1, 1)


class Rows:
    """Rows for the tables of one query."""

    def __init__(self, query: str, seed: int) -> None:
        self.rng = random.Random(seed)
        tree = parse_one(query, read="spark")
        names = {table.name.lower() for table in tree.find_all(exp.Table)}
        self.tables = [table for table in tables() if table.name in names]
        self.wanted = _constants(tree)
        self.calendar = sorted(self._dates())
        self._keys: dict[str, int] = {}

    def rows(self, table: Table, count: int) -> list[Row]:
        """Some new rows."""
        return [self.row(table) for _ in range(count)]

    def row(self, table: Table) -> Row:
        """A new row; a dimension's gets the next key."""
        if table.name == "date_dim":
            return self._day(table)
        made = {name: self.value(name, kind) for name, kind in table.columns}
        if not is_fact(table):
            made[table.columns[0][0]] = self._next(table)
        return made

    def value(self, column: str, kind: str) -> object:
        """A value for a column; most often one that the query asks for."""
        if self.rng.random() < 0.02:
            return None
        if column.endswith("_sk"):
            most = len(self.calendar) if "date" in column else DIMENSION
            return self.rng.randint(1, most)
        if self.wanted.get(column) and self.rng.random() < 0.9:
            return self._converted(self.rng.choice(self.wanted[column]), kind)
        if kind == "INT":
            return self.rng.randint(1, 4)
        if kind == "DATE":
            return self.rng.choice(self.calendar)
        if kind == "STRING":
            return self.rng.choice(("Aaa", "Bbb", "10101"))
        return Decimal(self.rng.randint(100, 30000)) / 100

    def _converted(self, text: str, kind: str) -> object:
        try:
            if kind == "INT":
                return int(Decimal(text)) + self.rng.choice((0, 0, 0, 1))
            if kind == "DATE":
                return _date(text)
            if kind != "STRING":
                return Decimal(text).quantize(Decimal("0.01")) + self.rng.choice((0, 0, 1))
        except (ArithmeticError, ValueError):
            return None
        return text

    def _next(self, table: Table) -> int:
        self._keys[table.name] = self._keys.get(table.name, 0) + 1
        return self._keys[table.name]

    def _dates(self) -> Iterator[dt.date]:
        """The days of the calendar: around those that the query names."""
        found = [_date(text) for text in self.wanted.get("d_date", ()) if text[4:5] == "-"]
        years = [int(text) for text in self.wanted.get("d_year", ("2000",)) if len(text) == 4]
        months = [int(text) for text in self.wanted.get("d_moy", ("1", "4", "12"))]
        found += [dt.date(year, month, 1) for year in years[:3] for month in months[:3]]
        months_since = [int(text) for text in self.wanted.get("d_month_seq", ()) if len(text) == 4]
        found += [dt.date(1900 + number // 12, number % 12 + 1, 1) for number in months_since]
        near = {day + dt.timedelta(after) for day in found for after in (0, self.rng.randint(1, 20), 364, 371)}
        return iter(self.rng.sample(sorted(near), min(len(near), 16)))

    def _day(self, table: Table) -> Row:
        key = self._next(table)
        day = self.calendar[(key - 1) % len(self.calendar)] + dt.timedelta(370 * ((key - 1) // len(self.calendar)))
        since = (day - _DAY_ONE).days
        known: Row = {
            "d_date_sk": key, "d_date": day, "d_year": day.year, "d_moy": day.month, "d_dom": day.day,
            "d_qoy": (day.month + 2) // 3, "d_dow": day.isoweekday() % 7, "d_day_name": day.strftime("%A"),
            "d_month_seq": (day.year - 1900) * 12 + day.month - 1, "d_week_seq": since // 7 + 1,
            "d_quarter_name": f"{day.year}Q{(day.month + 2) // 3}", "d_quarter_seq": (day.year - 1900) * 4,
        }  # fmt: skip
        return {name: known.get(name) for name, _ in table.columns}


def _date(text: str) -> dt.date:
    year, month, day = text.split("-")
    return dt.date(int(year), int(month), int(day))


def is_fact(table: Table) -> bool:
    """Whether a table holds events."""
    return table.name.endswith(_FACTS)


def _constants(tree: exp.Expr) -> dict[str, list[str]]:
    """What each column is compared with, as text; `1999 + 2` counts as both."""
    found: dict[str, list[str]] = {}
    for node in tree.find_all(exp.Predicate, exp.In, exp.Between):
        columns = {column.name.lower() for column in node.find_all(exp.Column)}
        if len(columns) == 1 and not node.find(exp.Query):
            texts = [one.name.strip("%") for one in node.find_all(exp.Literal)]
            found.setdefault(columns.pop(), []).extend(text for text in texts if text)
    return found
