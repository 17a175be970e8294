"""Where things lie in DuckDB, and the columns that Headwater adds to a relation's own.

| table | holds |
|---|---|
| `data."r"` | relation or map r, append-only: its columns, `#n` (signed multiplicity), `#e` (epoch) |
| `data."v#changes"` | the changes of view v that are kept for subscribers, epoch by epoch: its columns, `#n`, `#e` |
| `temp."Δr"` | what changes in r in the epoch under way |
| `temp."Σm"` | pending contributions to the change of map m, before they are added up |
| `temp."met ..."` | in a task: the rows of a store that a change meets, for several statements |
| `temp."found ..."` | views of what a statement needs of a large store, where that is looked up and not scanned |

The temporary tables are made anew by the first statement of an epoch that fills them, which is cheaper than emptying
them, and means nothing between epochs.

A map stored by group also has its keys (`#k1`, ...), payload (`#count`, `#p1`, ...) and `#v`: whether the group's row
is shown (HAVING). A column of its own that only repeats a key or a part of the payload is not stored again. User
columns cannot begin with `#`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sqlglot import exp

from headwater import types as t
from headwater.emit.functions.build import recast

MULTIPLICITY = "#n"
EPOCH = "#e"
SHOWN = "#v"
STORE = "data"
CHANGES = "#changes"


def name(text: str) -> exp.Identifier:
    return exp.to_identifier(text, quoted=True)


def column(text: str, table: str | None = None) -> exp.Column:
    return exp.Column(this=name(text), table=name(table) if table else None)


def store_table(relation: str) -> exp.Table:
    return exp.Table(this=name(relation), db=name(STORE))


def changes_of(view: str) -> str:
    """The name of the store with the changes of a view that are kept."""
    return f"{view}{CHANGES}"


def delta_table(relation: str) -> exp.Table:
    return exp.Table(this=name(f"Δ{relation}"), db=name("temp"))


def pending_table(map_name: str) -> exp.Table:
    return exp.Table(this=name(f"Σ{map_name}"), db=name("temp"))


def found_table(view: str) -> exp.Table:
    return exp.Table(this=name(view), db=name("temp"))


def key_column(position: int) -> str:
    return f"#k{position + 1}"


def payload_column(position: int) -> str:
    """The payload's first column is the count."""
    return "#count" if position == 0 else f"#p{position}"


def as_column(value: exp.Expr, text: str) -> exp.Alias:
    return exp.Alias(this=value, alias=name(text))


def number(value: int) -> exp.Expr:
    return exp.Literal.number(value) if value >= 0 else exp.Neg(this=exp.Literal.number(-value))


def bigint(value: exp.Expr) -> exp.Expr:
    return recast(value, "BIGINT")


def total(value: exp.Expr) -> exp.Sum:
    return exp.Sum(this=value)


def same_row(fields: t.Schema, a: str, b: str) -> exp.Expr:
    """Equality of rows in which NULL meets NULL.

    Plain `=` where a column has no NULLs: DuckDB then lets the smaller side filter the scan of the larger one, which
    `IS NOT DISTINCT FROM` does not (measured: 10 keys against a million rows, 1.9 ms against 6.9 ms).
    """
    return exp.and_(
        *(
            (exp.NullSafeEQ if f.nullable else exp.EQ)(this=column(f.name, a), expression=column(f.name, b))
            for f in fields
        )
    )


class Grouped(NamedTuple):
    """How a map is stored by group: whether it has keys, and which columns stand for those that repeat them."""

    keyed: bool
    repeats: Mapping[str, str]


class Fill(NamedTuple):
    """A query that fills a temporary table: as the first to do so in an epoch, and after others."""

    table: str
    first: str
    more: str


def fill(table: exp.Table, query: exp.Query | str) -> Fill:
    target, rows = sql(table), query if isinstance(query, str) else sql(query)
    return Fill(target, f"CREATE OR REPLACE TEMPORARY TABLE {target} AS {rows}", f"INSERT INTO {target} {rows}")


def sql(tree: exp.Expr, pretty: bool = False) -> str:
    """The text of a tree, which is used up by this: sqlglot may change it on the way."""
    return tree.sql(dialect="duckdb", pretty=pretty, comments=False, copy=False)
