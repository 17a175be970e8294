"""SQL that turns what a user asks for (insert, delete, put, update) into a signed delta, and checks it.

Every statement sees the relation as of the operations before it in the same epoch: the store and the delta so far.
Where `found` names a view, what the statement needs of the store was looked up, and is there.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from headwater import types as t
from headwater.algebra.nodes import Filter, Node, Scan, Version
from headwater.algebra.scalars import Column, Scalar
from headwater.emit.duckdb import Emitter
from headwater.emit.layout import (
    MULTIPLICITY,
    Fill,
    as_column,
    bigint,
    column,
    delta_table,
    fill,
    found_table,
    name,
    number,
    same_row,
    sql,
    store_table,
    total,
)
from headwater.emit.scalars import duckdb_scalar

#: Position of a row in the batch it came in.
ORDINAL = "#i"
#: What the batch and the present rows are called in a statement.
SOURCE, CURRENT = "batch", "now"


def incoming(source: str) -> exp.Table:
    return exp.Table(this=name(source), alias=exp.TableAlias(this=name(SOURCE)))


def insert_rows(relation: str, fields: t.Schema, source: str, sign: int) -> Fill:
    """All rows of a batch, coming (+1) or leaving (-1)."""
    items = [*(column(f.name) for f in fields), as_column(bigint(number(sign)), MULTIPLICITY)]
    return into_delta(relation, exp.Select(expressions=items).from_(incoming(source), copy=False))


def batch_rows(relation: str, fields: t.Schema, source: str) -> str:
    """A batch that comes, as a query."""
    items = [*(column(f.name) for f in fields), as_column(bigint(number(1)), MULTIPLICITY)]
    return sql(exp.Select(expressions=items).from_(incoming(source), copy=False))


def insert_query(relation: str, node: Node, emitter: Emitter) -> Fill:
    """The result of a query, whose columns stand for the relation's in order."""
    return into_delta(relation, emitter.net_rows(node))


def insert_latest(relation: str, fields: t.Schema, key: t.Schema, source: str) -> Fill:
    """Of each key the last row of a batch."""
    last = exp.Window(
        this=exp.RowNumber(),
        partition_by=[column(f.name) for f in key],
        order=exp.Order(expressions=[exp.Ordered(this=column(ORDINAL), desc=True)]),
    )
    one = as_column(bigint(number(1)), MULTIPLICITY)
    query = exp.Select(expressions=[*(column(f.name) for f in fields), one]).from_(incoming(source), copy=False)
    query.set("qualify", exp.Qualify(this=exp.EQ(this=last, expression=number(1))))
    return into_delta(relation, query)


def retire_keys(relation: str, fields: t.Schema, key: t.Schema, source: str, changed: bool, found: str = "") -> Fill:
    """The present rows of a batch's keys leave."""
    return into_delta(relation, leaving(relation, fields, key, source, changed, found))


def leaving(relation: str, fields: t.Schema, key: t.Schema, source: str, changed: bool, found: str) -> exp.Select:
    """The present rows of a batch's keys, negated."""
    names = [f.name for f in fields]
    count = total(column(MULTIPLICITY, CURRENT))
    gone = as_column(exp.Neg(this=bigint(count)), MULTIPLICITY)
    query = exp.Select(expressions=[*(column(text, CURRENT) for text in names), gone])
    query = query.from_(current(relation, names, changed, found), copy=False)
    query = query.join(incoming(source), on=same_row(key, CURRENT, SOURCE), join_type="SEMI", copy=False)
    query = query.group_by(*(column(text, CURRENT) for text in names), copy=False)
    return query.having(_not_zero(count), copy=False)


def matching(relation: str, fields: t.Schema, alias: str, predicate: Scalar, changed: bool) -> Filter:
    """The rows for which a condition over columns `alias.column` holds."""
    return Filter(Scan(relation, alias, fields, Version.NEW if changed else Version.STORED), predicate)


def delete_where(relation: str, fields: t.Schema, rows: Filter, emitter: Emitter) -> Fill:
    """The given rows of a relation with these fields leave."""
    gone = as_column(exp.Neg(this=column(MULTIPLICITY)), MULTIPLICITY)
    found = exp.Subquery(this=emitter.net_rows(rows), alias=exp.TableAlias(this=name(CURRENT)))
    return into_delta(relation, exp.Select(expressions=[*_old(fields, rows), gone]).from_(found, copy=False))


def rows_of(fields: t.Schema, rows: Filter, wanted: t.Schema, emitter: Emitter) -> exp.Select:
    """Some columns of the given rows of a relation with these fields, with their multiplicity."""
    by_name = {f.name: one for one, f in zip(_old(fields, rows), fields, strict=True)}
    items = [by_name[f.name] for f in wanted]
    found = exp.Subquery(this=emitter.net_rows(rows), alias=exp.TableAlias(this=name(CURRENT)))
    return exp.Select(expressions=[*items, column(MULTIPLICITY)]).from_(found, copy=False)


def update_where(relation: str, fields: t.Schema, rows: Filter, values: Mapping[str, Scalar], emitter: Emitter) -> Fill:
    """The given rows leave, and come back with the given values in some columns."""
    return into_delta(relation, moved_rows(fields, rows, values, emitter))


def moved_rows(fields: t.Schema, rows: Filter, values: Mapping[str, Scalar], emitter: Emitter) -> exp.Query:
    """The given rows, leaving as they are and coming with the given values in some columns."""
    new = [
        duckdb_scalar(values.get(f.name, Column(text, f.type)), lambda text: column(text))
        for f, text in zip(fields, rows.column_names, strict=True)
    ]
    found = exp.Table(this=name(CURRENT))
    gone = as_column(exp.Neg(this=column(MULTIPLICITY)), MULTIPLICITY)
    going = exp.Select(expressions=[*_old(fields, rows), gone]).from_(found, copy=False)
    coming = exp.Select(expressions=[*new, column(MULTIPLICITY)]).from_(found.copy(), copy=False)
    change = exp.Union(this=going, expression=coming, distinct=False)
    found_rows = emitter.net_rows(rows)
    return change.with_(name(CURRENT), as_=found_rows, materialized=True, copy=False)


def _old(fields: t.Schema, rows: Filter) -> list[exp.Expr]:
    """The columns of a scan under the relation's own names."""
    return [as_column(column(text), f.name) for f, text in zip(fields, rows.column_names, strict=True)]


def duplicate_keys(relation: str, key: t.Schema, found: str = "") -> str:
    """A key that the delta touches and that more than one row now has, if there is one."""
    touched = delta_table(relation)
    touched.set("alias", exp.TableAlias(this=name(SOURCE)))
    count = total(column(MULTIPLICITY, CURRENT))
    names = [f.name for f in key]
    query = exp.Select(expressions=[column(text, CURRENT) for text in names])
    query = query.from_(current(relation, names, True, found), copy=False)
    query = query.join(touched, on=same_row(key, CURRENT, SOURCE), join_type="SEMI", copy=False)
    query = query.group_by(*(column(text, CURRENT) for text in names), copy=False)
    return sql(query.having(exp.GT(this=count, expression=number(1)), copy=False).limit(1, copy=False))


def missing_rows(relation: str, fields: t.Schema, key: t.Schema, source: str, changed: bool, found: str = "") -> str:
    """A row that a batch deletes more often than it is there, if there is one.

    With a key, rows are looked up by it alone: others of the same key do no harm, as each row is counted for itself.
    """
    names = tuple(f.name for f in fields)
    wanted = exp.Select(expressions=[*(column(text) for text in names), as_column(number(-1), MULTIPLICITY)])
    wanted = wanted.from_(incoming(source), copy=False)
    have = exp.Select(expressions=[*(column(text, CURRENT) for text in names), column(MULTIPLICITY, CURRENT)])
    have = have.from_(current(relation, list(names), changed, found), copy=False)
    have = have.join(incoming(source), on=same_row(key or fields, CURRENT, SOURCE), join_type="SEMI", copy=False)
    both = exp.Subquery(this=exp.Union(this=wanted, expression=have, distinct=False))
    query = exp.Select(expressions=[column(text) for text in names]).from_(both, copy=False)
    query = query.group_by(*(column(text) for text in names), copy=False)
    short = exp.LT(this=total(column(MULTIPLICITY)), expression=number(0))
    return sql(query.having(short, copy=False).limit(1, copy=False))


def missing_keys(relation: str, key: t.Schema, source: str, changed: bool, found: str = "") -> str:
    """A key of a batch that no row has, if there is one."""
    names = [f.name for f in key]
    count = total(column(MULTIPLICITY, CURRENT))
    present = exp.Select(expressions=[column(text, CURRENT) for text in names])
    present = present.from_(current(relation, names, changed, found), copy=False)
    present = present.join(incoming(source), on=same_row(key, CURRENT, SOURCE), join_type="SEMI", copy=False)
    present = present.group_by(*(column(text, CURRENT) for text in names), copy=False)
    present = present.having(_not_zero(count), copy=False)
    there = exp.Subquery(this=present, alias=exp.TableAlias(this=name("there")))
    query = exp.Select(expressions=[column(text, SOURCE) for text in names]).from_(incoming(source), copy=False)
    query = query.join(there, on=same_row(key, SOURCE, "there"), join_type="ANTI", copy=False)
    return sql(query.limit(1, copy=False))


def null_in(relation: str, required: tuple[str, ...]) -> str:
    """The first NULL that the delta brings into columns that must not have one: one flag per column."""
    flags = [
        as_column(exp.func("BOOL_OR", exp.Is(this=column(text), expression=exp.null())), text) for text in required
    ]
    coming = exp.GT(this=column(MULTIPLICITY), expression=number(0))
    return sql(exp.Select(expressions=flags).from_(delta_table(relation), copy=False).where(coming, copy=False))


def copies(relation: str) -> str:
    """How many copies of rows the delta brings and takes."""
    found = exp.func("COALESCE", total(exp.Abs(this=column(MULTIPLICITY))), number(0))
    return sql(exp.Select(expressions=[bigint(found)]).from_(delta_table(relation), copy=False))


def current(relation: str, names: list[str], changed: bool, found: str) -> exp.Subquery:
    """A relation's contents as of this point of the epoch, not added up.

    Args:
        relation: which.
        names: the columns wanted.
        changed: whether the epoch has changed it already, so that there is a delta to look at.
        found: the view that stands for the store, if one does.
    """
    stored = found_table(found) if found else store_table(relation)
    tables = [stored, delta_table(relation)] if changed else [stored]
    parts: list[exp.Query] = [
        exp.Select(expressions=[*(column(text) for text in names), column(MULTIPLICITY)]).from_(table, copy=False)
        for table in tables
    ]
    rows = exp.Union(this=parts[0], expression=parts[1], distinct=False) if changed else parts[0]
    return exp.Subquery(this=rows, alias=exp.TableAlias(this=name(CURRENT)))


def _not_zero(count: exp.Expr) -> exp.Expr:
    return exp.NEQ(this=count.copy(), expression=number(0))


def into_delta(relation: str, query: exp.Query) -> Fill:
    return fill(delta_table(relation), query)
