"""From signed rows to tagged changes, in SQL.

The operator ξ of Ghanem, Elmagarmid, Larson, Aref, "Supporting Views in Data Stream Management Systems", section 6.2.2:
for every key, what has come (`+`), what has become another row (`u`), and what has gone (`-`), one change at most.
Rows that nothing tells apart have no identity that could stay while they change: of these only `+` and `-` are told,
one for each copy.
"""

from __future__ import annotations

from sqlglot import exp

from headwater import types as t
from headwater.emit.functions.build import fn
from headwater.emit.layout import EPOCH, MULTIPLICITY, as_column, column, name, number, same_row

CAME, CHANGED, WENT = "+", "u", "-"
#: The columns of a tagged change beside the view's own.
TAGS = TAG_EPOCH, TAG_OP, TAG_OLD = "_epoch", "_op", "_old"

_CHANGE, _NEW, _OLD, _COPY = "change", "new", "old", "#copy"


def old_column(position: int) -> str:
    """Under which name a column of the row that was there comes out."""
    return f"#old{position + 1}"


def tagged(rows: exp.Query, fields: t.Schema, key: tuple[str, ...] | None) -> exp.Select:
    """Tagged changes, in order: by epoch; what has gone, what has changed, what has come; by all columns.

    Args:
        rows: columns, `#n` and `#e`; within an epoch each row once.
        fields: the columns.
        key: what tells rows apart; None if nothing does.

    Returns:
        `_epoch`, `_op`, the columns and, if there is a key, the columns of the rows that were there before.
    """
    query = _unkeyed(rows, fields) if key is None else _keyed(rows, fields, key)
    ranks = [
        exp.If(this=exp.EQ(this=column(TAG_OP), expression=exp.Literal.string(op)), true=number(rank))
        for rank, op in enumerate((WENT, CHANGED, CAME))
    ]
    order = [column(TAG_EPOCH), exp.Case(ifs=ranks), *(column(f.name) for f in fields)]
    out = exp.Select(expressions=[exp.Star()])
    out = out.from_(exp.Subquery(this=query, alias=exp.TableAlias(this=name("tagged"))), copy=False)
    return out.order_by(*order, copy=False)


def _unkeyed(rows: exp.Query, fields: t.Schema) -> exp.Select:
    copies = exp.Explode(this=fn("RANGE", fn("ABS", column(MULTIPLICITY))))
    spread = exp.Select(expressions=[exp.Star(), as_column(copies, _COPY)])
    spread = spread.from_(exp.Subquery(this=rows, alias=exp.TableAlias(this=name(_CHANGE))), copy=False)
    went = exp.LT(this=column(MULTIPLICITY), expression=number(0))
    items = [as_column(column(EPOCH), TAG_EPOCH), as_column(_choice([(went, _text(WENT))], _text(CAME)), TAG_OP)]
    query = exp.Select(expressions=[*items, *(column(f.name) for f in fields)])
    return query.from_(exp.Subquery(this=spread, alias=exp.TableAlias(this=name("copies"))), copy=False)


def _keyed(rows: exp.Query, fields: t.Schema, key: tuple[str, ...]) -> exp.Select:
    """Rows that come beside rows that go, where they have the same key: a row has come, gone, or become another one."""
    by_name = {f.name: f for f in fields}
    meet: list[exp.Expr] = [exp.EQ(this=column(EPOCH, _NEW), expression=column(EPOCH, _OLD))]
    if key:
        meet.append(same_row(tuple(by_name[one] for one in key), _NEW, _OLD))
    no_new, no_old = (exp.Is(this=column(MULTIPLICITY, one), expression=exp.null()) for one in (_NEW, _OLD))
    op = _choice([(no_new, _text(WENT)), (no_old, _text(CAME))], _text(CHANGED))
    epoch = fn("COALESCE", column(EPOCH, _NEW), column(EPOCH, _OLD))
    items: list[exp.Expr] = [as_column(epoch, TAG_EPOCH), as_column(op, TAG_OP)]
    for f in fields:
        shown = _choice([(no_new.copy(), column(f.name, _OLD))], column(f.name, _NEW))
        items.append(as_column(shown, f.name))
    items += [as_column(column(f.name, _OLD), old_column(i)) for i, f in enumerate(fields)]
    query = exp.Select(expressions=items).from_(_signed(exp.GT, _NEW), copy=False)
    query = query.join(_signed(exp.LT, _OLD), on=exp.and_(*meet), join_type="FULL", copy=False)
    return query.with_(name(_CHANGE), as_=rows, materialized=True, copy=False)


def _signed(comparison: type[exp.Binary], alias: str) -> exp.Subquery:
    query = exp.Select(expressions=[exp.Star()]).from_(exp.Table(this=name(_CHANGE)), copy=False)
    query = query.where(comparison(this=column(MULTIPLICITY), expression=number(0)), copy=False)
    return exp.Subquery(this=query, alias=exp.TableAlias(this=name(alias)))


def _choice(cases: list[tuple[exp.Expr, exp.Expr]], default: exp.Expr) -> exp.Case:
    return exp.Case(ifs=[exp.If(this=condition, true=value) for condition, value in cases], default=default)


def _text(value: str) -> exp.Literal:
    return exp.Literal.string(value)
