"""SQL of the Tagger: what an arriving batch does to a keyed stream, and to the sequences of keys that are gone.

As in `headwater.emit.changes`, every statement sees the store and the delta so far.
"""

from __future__ import annotations

from sqlglot import exp

from headwater import types as t
from headwater.algebra.scalars import TRUE, Scalar
from headwater.emit.changes import CURRENT, ORDINAL, SOURCE, current, incoming, into_delta, leaving
from headwater.emit.functions.build import fn
from headwater.emit.layout import (
    MULTIPLICITY,
    Fill,
    as_column,
    bigint,
    column,
    name,
    number,
    same_row,
    sql,
    total,
)
from headwater.emit.scalars import duckdb_scalar

#: Columns of a batch: whether the row deletes its key, and of a key's last row how many rows the batch has of it and
#: whether one of them brings it.
DELETES, ROWS, BROUGHT = "#d", "#rows", "#brought"
#: What is found out about a key's last row: its key has a row now, or went earlier, or has a newer version.
THERE, GONE, LATE = "#there", "#gone", "#late"
_NOW, _BURIED = "present", "buried"


def last_rows(key: t.Schema, sequence: str | None, in_order: bool, deletes: bool, source: str) -> str:
    """Of each key of a batch the position of its last row: by sequence if there is one, then by position.

    Args:
        key: the columns of the key.
        sequence: the column of the sequence, or None.
        in_order: the rows are in the order of the sequence as they are.
        deletes: whether rows may delete, so that the batch has `#d`.
        source: the batch.
    """
    place = column(ORDINAL)
    last: exp.Expr = exp.Max(this=place)
    if sequence is not None and not in_order:
        by = exp.Anonymous(this="row", expressions=[column(sequence), place.copy()])
        last = exp.Anonymous(this="arg_max", expressions=[place, by])
    items = [as_column(last, ORDINAL)]
    if sequence is not None:
        items.append(as_column(exp.Count(this=exp.Star()), ROWS))
    if deletes:
        items.append(as_column(fn("BOOL_OR", exp.Not(this=column(DELETES))), BROUGHT))
    query = exp.Select(expressions=items).from_(incoming(source), copy=False)
    return sql(query.group_by(*(column(f.name) for f in key), copy=False))


def verdicts(
    relation: str,
    key: t.Schema,
    source: str,
    changed: bool,
    found: str,
    sequence: str | None = None,
    ordered: bool = True,
    buried: str = "",
    buried_changed: bool = False,
    buried_found: str = "",
) -> str:
    """Of each row of a batch, by its position: is its key there, did it go earlier, and is there a newer version.

    Args:
        relation: the stream.
        key: its key.
        source: the batch, one row a key.
        changed: whether the epoch has changed the stream already.
        found: what stands for its store, if anything does.
        sequence: the column of the sequence, or None.
        ordered: whether the batch has that column, so that its rows can be late.
        buried: the store of sequences of keys that are gone, if there is a sequence.
        buried_changed: as `changed`, of that one.
        buried_found: as `found`, of that one.
    """
    extra = [sequence] if sequence is not None else []
    query = exp.Select(expressions=[column(ORDINAL, SOURCE), as_column(_is_there(key, _NOW), THERE)])
    query = query.from_(incoming(source), copy=False)
    now = _net(relation, [*(f.name for f in key), *extra], key, source, changed, found)
    query = query.join(_aliased(now, _NOW), on=same_row(key, SOURCE, _NOW), join_type="LEFT", copy=False)
    if sequence is None:
        return sql(query)
    gone = _net(buried, [*(f.name for f in key), sequence], key, source, buried_changed, buried_found)
    query = query.join(_aliased(gone, _BURIED), on=same_row(key, SOURCE, _BURIED), join_type="LEFT", copy=False)
    query = query.select(as_column(_is_there(key, _BURIED), GONE), copy=False)
    if not ordered:
        return sql(query)
    latest = fn("COALESCE", column(sequence, _NOW), column(sequence, _BURIED))
    late = exp.LT(this=column(sequence, SOURCE), expression=latest)
    return sql(query.select(as_column(fn("COALESCE", late, exp.false()), LATE), copy=False))


def put_rows(
    relation: str,
    fields: t.Schema,
    key: t.Schema,
    source: str,
    changed: bool,
    found: str,
    deletes: bool,
    condition: Scalar,
) -> Fill:
    """The present rows of a batch's keys leave; the batch's rows come that do not delete and meet a condition."""
    wanted = _met(condition)
    if deletes:
        wanted = exp.and_(exp.Not(this=column(DELETES, SOURCE)), wanted)
    return _replaced(relation, fields, key, source, changed, found, wanted)


def bury_rows(
    relation: str,
    fields: t.Schema,
    key: t.Schema,
    source: str,
    changed: bool,
    found: str,
    deletes: bool,
    condition: Scalar,
) -> Fill:
    """The same for sequences of keys that are gone: those of rows come that delete, or do not meet the condition."""
    unmet: exp.Expr = exp.Not(this=fn("COALESCE", _met(condition), exp.false())) if condition != TRUE else exp.false()
    wanted = exp.or_(column(DELETES, SOURCE), unmet) if deletes else unmet
    return _replaced(relation, fields, key, source, changed, found, wanted)


def bury_present(
    relation: str, buried: str, fields: t.Schema, key: t.Schema, source: str, changed: bool, found: str
) -> Fill:
    """The keys of a batch go, each with the sequence of the row that it has."""
    rows = _net(relation, [f.name for f in fields], key, source, changed, found)
    return into_delta(buried, rows.select(as_column(bigint(number(1)), MULTIPLICITY), copy=False))


def _replaced(
    relation: str, fields: t.Schema, key: t.Schema, source: str, changed: bool, found: str, wanted: exp.Expr
) -> Fill:
    gone = leaving(relation, fields, key, source, changed, found)
    items = [*(column(f.name, SOURCE) for f in fields), as_column(bigint(number(1)), MULTIPLICITY)]
    coming = exp.Select(expressions=items).from_(incoming(source), copy=False)
    if wanted != exp.true():
        coming = coming.where(wanted, copy=False)
    return into_delta(relation, exp.Union(this=gone, expression=coming, distinct=False))


def _met(condition: Scalar) -> exp.Expr:
    return exp.true() if condition == TRUE else duckdb_scalar(condition, lambda text: column(text, SOURCE))


def _net(relation: str, names: list[str], key: t.Schema, source: str, changed: bool, found: str) -> exp.Select:
    """Some columns of the rows that a batch's keys have now."""
    columns = [column(text, CURRENT) for text in names]
    query = exp.Select(expressions=columns).from_(current(relation, names, changed, found), copy=False)
    query = query.join(incoming(source), on=same_row(key, CURRENT, SOURCE), join_type="SEMI", copy=False)
    query = query.group_by(*(one.copy() for one in columns), copy=False)
    return query.having(exp.NEQ(this=total(column(MULTIPLICITY, CURRENT)), expression=number(0)), copy=False)


def _is_there(key: t.Schema, table: str) -> exp.Expr:
    return exp.Not(this=exp.Is(this=column(key[0].name, table), expression=exp.null()))


def _aliased(query: exp.Query, alias: str) -> exp.Subquery:
    return exp.Subquery(this=query, alias=exp.TableAlias(this=name(alias)))
