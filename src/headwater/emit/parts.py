"""The statements of a view of parts: evaluate a part that is new, or evaluate one again and store the difference."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp

from headwater import types as t
from headwater.algebra.nodes import Node
from headwater.algebra.parts import PART, PartQuery
from headwater.emit.duckdb import Emitter
from headwater.emit.functions.build import fn
from headwater.emit.layout import (
    EPOCH,
    MULTIPLICITY,
    Fill,
    as_column,
    bigint,
    column,
    delta_table,
    fill,
    name,
    sql,
    store_table,
    total,
)
from headwater.emit.maintain import epoch_parameter

#: The column that `hashes_of_part` yields.
HASHES = "hash"


@dataclass(frozen=True)
class PartSQL:
    """What evaluates a part; both take `$part`, `$epoch` and the bounds of references, and say how many rows they add.

    Attributes:
        fresh: stores a part of which nothing is stored.
        again: stores what is different from what is stored.
        bounds: the numbers of the bounds that they take, `$p0` and so on.
        single: every row of a fresh part is there once, row by row.
    """

    fresh: str
    again: str
    bounds: tuple[int, ...]
    single: bool


def part_statements(view: str, fields: t.Schema, query: PartQuery, emitter: Emitter) -> PartSQL:
    """The statements that evaluate parts of a view by one of its queries."""
    names = tuple(f.name for f in fields if f.name != PART)
    single = emitter.is_single(query.query)
    rows = emitter.sharing(lambda: emitter.rows(query.query) if single else emitter.net_rows(query.query))
    fresh = _store(view, fields, rows, apart=view in query.query.relations)
    before = exp.Select(expressions=[*map(column, names), as_column(exp.Neg(this=column(MULTIPLICITY)), MULTIPLICITY)])
    before = before.from_(store_table(view), copy=False)
    before = before.where(exp.EQ(this=column(PART), expression=part_parameter()), copy=False)

    def both() -> exp.Query:
        now = emitter.rows(query.query)
        return emitter.consolidated(exp.Union(this=now, expression=before, distinct=False), names)

    again = _store(view, fields, emitter.sharing(both), apart=True)
    return PartSQL(fresh, again, _bounds_in(fresh), single)


@dataclass(frozen=True)
class RangeSQL:
    """What builds a range of parts; takes `$epoch` and bounds, and says how many rows that are.

    Attributes:
        fresh: stores the parts.
        bounds: the numbers of the bounds that it takes.
        single: every row is there once, row by row.
        rows: how many rows each part has got; takes `$epoch`, `$first` and `$last`.
    """

    fresh: str
    bounds: tuple[int, ...]
    single: bool
    rows: str


def range_statements(view: str, fields: t.Schema, query: Node, emitter: Emitter) -> RangeSQL:
    """The statements that build a range of parts of a view; `query` yields the column PART, too."""
    single = emitter.is_single(query)
    rows = emitter.sharing(lambda: emitter.rows(query) if single else emitter.net_rows(query))
    source = exp.Subquery(this=rows, alias=exp.TableAlias(this=name("parts")))
    values = [*(column(f.name, "parts") for f in fields), column(MULTIPLICITY, "parts"), epoch_parameter()]
    stored = exp.Select(expressions=values).from_(source, copy=False)
    text = sql(exp.Insert(this=store_table(view), expression=stored))
    counted = exp.Select(expressions=[column(PART), bigint(total(column(MULTIPLICITY)))])
    counted = counted.from_(store_table(view), copy=False)
    first, last = (exp.Parameter(this=exp.Var(this=text)) for text in ("first", "last"))
    counted = counted.where(exp.EQ(this=column(EPOCH), expression=epoch_parameter()), copy=False)
    counted = counted.where(exp.Between(this=column(PART), low=first, high=last), copy=False)
    counted = counted.group_by(column(PART), copy=False).order_by(column(PART), copy=False)
    return RangeSQL(text, _bounds_in(text), single, sql(counted))


def _bounds_in(text: str) -> tuple[int, ...]:
    return tuple(sorted({int(one) for one in re.findall(r"\$p(\d+)\b", text)}))


def part_parameter() -> exp.Expr:
    """The subscript of the part that is evaluated."""
    return exp.Cast(this=exp.Parameter(this=exp.Var(this="part")), to=exp.DataType.build("BIGINT"))


def _store(view: str, fields: t.Schema, rows: exp.Query, apart: bool) -> str:
    """Stores rows as a part; `apart` if they are to be complete before the first one is stored.

    What reads the store that it writes to must be: DuckDB 2.0 with one thread reads its own rows of a UNION ALL.
    """
    values = [part_parameter() if f.name == PART else column(f.name, "part") for f in fields]
    query = exp.Select(expressions=[*values, column(MULTIPLICITY, "part"), epoch_parameter()])
    if apart:
        query = query.from_(exp.Table(this=name("part")), copy=False)
        query = query.with_(name("part"), as_=rows, materialized=True, copy=False)
    else:
        source = exp.Subquery(this=rows, alias=exp.TableAlias(this=name("part")))
        query = query.from_(source, copy=False)
    return sql(exp.Insert(this=store_table(view), expression=query))


def changed_rows(view: str, fields: t.Schema) -> Fill:
    """Fills the change of a view of parts from what an epoch has stored; takes `$epoch`."""
    items = [*(column(f.name) for f in fields), column(MULTIPLICITY)]
    rows = exp.Select(expressions=items).from_(store_table(view), copy=False)
    return fill(delta_table(view), rows.where(exp.EQ(this=column(EPOCH), expression=epoch_parameter()), copy=False))


def withdrawal(view: str) -> str:
    """Takes what an epoch has stored of a view of parts out of its store; takes `$epoch`."""
    return sql(
        exp.Delete(
            this=store_table(view), where=exp.Where(this=exp.EQ(this=column(EPOCH), expression=epoch_parameter()))
        )
    )


def rows_of_part(view: str) -> str:
    """How many rows a part of a view has; takes `$part`."""
    rows = exp.Select(expressions=[bigint(total(column(MULTIPLICITY)))]).from_(store_table(view), copy=False)
    return sql(rows.where(exp.EQ(this=column(PART), expression=part_parameter()), copy=False))


def hashes_of_part(relation: str, columns: tuple[str, ...]) -> str:
    """A query for the hashes of some columns of the rows of a part, as 64-bit numbers; takes `$part`.

    Where no two are equal, no two rows agree in the columns, NULL with NULL. It costs little: a column is hashed once
    for each value in its dictionary. (A million rows of two texts: 6 ms.)
    """
    rows = exp.Select(expressions=[as_column(fn("HASH", *map(column, columns)), HASHES)])
    rows = rows.from_(store_table(relation), copy=False)
    return sql(rows.where(exp.EQ(this=column(PART), expression=part_parameter()), copy=False))
