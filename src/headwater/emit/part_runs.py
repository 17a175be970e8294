"""The statements for parts that hold the same rows: copy one part to many, and find the parts that differ."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from headwater import types as t
from headwater.algebra.parts import PART
from headwater.emit.duckdb import Emitter
from headwater.emit.functions.build import fn
from headwater.emit.layout import EPOCH, MULTIPLICITY, as_column, bigint, column, name, number, sql, store_table
from headwater.emit.maintain import epoch_parameter
from headwater.emit.parts import part_parameter

#: The parts that are copied to, and the rows that are copied.
_TO, _MODEL = "to", "model"


@dataclass(frozen=True)
class CopySQL:
    """What makes the parts from `$first` to `$last` hold what part `$part` holds; all but `found` take `$epoch`.

    Attributes:
        fresh: where nothing is stored of them, and the rows of the part are stored once each.
        netted: where nothing is stored of them.
        again: stores what is different from what is stored.
        found: the parts of which an epoch has stored something; takes no `$part`.
    """

    fresh: str
    netted: str
    again: str
    found: str


def copying(view: str, fields: t.Schema, emitter: Emitter) -> CopySQL:
    """The statements that copy a part of a view."""
    names = tuple(f.name for f in fields)
    others = tuple(one for one in names if one != PART)
    model = _rows(view, others, MULTIPLICITY, exp.EQ(this=column(PART), expression=part_parameter()))
    net = emitter.consolidated(model.copy(), others)
    stored = _rows(view, names, exp.Neg(this=column(MULTIPLICITY)), _within(_given("first"), _given("last")))
    wanted = _for_each(names, exp.Subquery(this=net, alias=exp.TableAlias(this=name(_MODEL))))
    both = emitter.consolidated(exp.Union(this=wanted, expression=stored, distinct=False), names)
    found = exp.Select(expressions=[column(PART)]).distinct().from_(store_table(view), copy=False)
    found = found.where(exp.EQ(this=column(EPOCH), expression=epoch_parameter()), copy=False)
    found = found.where(_within(_given("first"), _given("last")), copy=False)
    copies = _for_each(names, exp.Table(this=name(_MODEL)))
    again = exp.Select(expressions=[*map(column, (*names, MULTIPLICITY))]).from_(exp.Table(this=name("copies")))
    return CopySQL(
        _stored(view, copies.copy(), _MODEL, model),
        _stored(view, copies, _MODEL, net.copy()),
        _stored(view, again, "copies", both),
        sql(found),
    )


def differing(view: str, fields: t.Schema, emitter: Emitter) -> str:
    """A query for the parts from `$first` to `$last` that hold other rows than the part before them."""
    names = tuple(f.name for f in fields)
    one_less = exp.Sub(this=_given("first"), expression=number(1)), exp.Sub(this=_given("last"), expression=number(1))
    now = _rows(view, names, MULTIPLICITY, _within(_given("first"), _given("last")))
    before = _rows(view, names, exp.Neg(this=column(MULTIPLICITY)), _within(*one_less))
    for place, text in enumerate(names):
        if text == PART:
            moved = exp.Add(this=column(PART), expression=number(1))
            before.expressions[place].replace(as_column(bigint(moved), PART))
    both = emitter.consolidated(exp.Union(this=now, expression=before, distinct=False), names)
    source = exp.Subquery(this=both, alias=exp.TableAlias(this=name("both")))
    return sql(exp.Select(expressions=[column(PART)]).distinct().from_(source, copy=False))


def _given(text: str) -> exp.Expr:
    return exp.Cast(this=exp.Parameter(this=exp.Var(this=text)), to=exp.DataType.build("BIGINT"))


def _within(low: exp.Expr, high: exp.Expr) -> exp.Expr:
    return exp.Between(this=column(PART), low=low, high=high)


def _rows(view: str, names: tuple[str, ...], count: exp.Expr | str, where: exp.Expr) -> exp.Select:
    """Stored rows with a multiplicity."""
    shown = column(count) if isinstance(count, str) else as_column(count, MULTIPLICITY)
    rows = exp.Select(expressions=[*map(column, names), shown]).from_(store_table(view), copy=False)
    return rows.where(where, copy=False)


def _for_each(names: tuple[str, ...], rows: exp.Expr) -> exp.Select:
    """Rows without a part, named as the model, once for every part that is copied to."""
    end = exp.Add(this=_given("last"), expression=number(1))
    parts = exp.Select(expressions=[as_column(fn("UNNEST", fn("RANGE", _given("first"), end)), PART)])
    items = [column(text, _TO if text == PART else _MODEL) for text in names]
    out = exp.Select(expressions=[*items, column(MULTIPLICITY, _MODEL)])
    out = out.from_(exp.Subquery(this=parts, alias=exp.TableAlias(this=name(_TO))), copy=False)
    return out.join(rows, join_type="cross", copy=False)


def _stored(view: str, rows: exp.Select, source: str, read: exp.Query) -> str:
    """Stores rows; what they read of the same store is complete before the first of them is stored."""
    query = rows.select(epoch_parameter(), copy=False)
    query = query.with_(name(source), as_=read, materialized=True, copy=False)
    return sql(exp.Insert(this=store_table(view), expression=query))
