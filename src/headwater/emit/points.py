"""Reading the rows of a few keys: of one by parameters (`$k1`, ...), of many by a table of keys."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from headwater import types as t
from headwater.algebra.compose import bare
from headwater.algebra.nodes import Scan
from headwater.emit.duckdb import Emitter
from headwater.emit.functions.build import duckdb_type, recast
from headwater.emit.layout import (
    EPOCH,
    MULTIPLICITY,
    SHOWN,
    as_column,
    column,
    key_column,
    name,
    sql,
    store_table,
)
from headwater.emit.probes import hash_of

#: The parameter that holds the last epoch of a copy.
UPTO = "upto"
#: A table of keys, and one of rows that were found in a copy.
KEYS, HITS = "#keys", "#hits"


def parameter(position: int) -> str:
    """The name of the parameter for a column of the key."""
    return f"k{position + 1}"


def hash_query(fields: Sequence[t.Field]) -> str:
    """The hash of one key, as of `headwater.emit.probes`; `fields` in the order of the path."""
    return sql(exp.Select(expressions=[hash_of([_given(i, f) for i, f in enumerate(fields)])]))


def hashes_query(fields: Sequence[t.Field], positions: Sequence[int]) -> str:
    """The hashes of a table of keys; `positions` of its columns, in the order of the path."""
    wanted = [recast(column(key_column(p)), duckdb_type(fields[p].type)) for p in positions]
    return sql(exp.Select(expressions=[hash_of(wanted)]).from_(exp.Table(this=name(KEYS)), copy=False))


def row_query(relation: str, fields: t.Schema, keys: Sequence[t.Field], emitter: Emitter) -> str:
    """The net rows of one key, by a scan: the columns and `#n`."""
    rows = emitter.net_rows(bare(Scan(relation, "r", fields)))
    source = exp.Subquery(this=rows, alias=exp.TableAlias(this=name("rows")))
    query = exp.Select(expressions=[exp.Star()]).from_(source, copy=False)
    return sql(_where(query, [exp.EQ(this=column(f.name), expression=_given(i, f)) for i, f in enumerate(keys)]))


def tail_query(relation: str, columns: Sequence[str], stored: Sequence[str], keys: Sequence[t.Field]) -> str:
    """The entries of one key that came after a copy; `columns` are all columns of the store, `stored` those of the
    key."""
    conditions: list[exp.Expr] = [_later()]
    conditions += [exp.EQ(this=column(text), expression=_given(i, keys[i])) for i, text in enumerate(stored)]
    query = exp.Select(expressions=[column(text) for text in columns]).from_(store_table(relation), copy=False)
    return sql(_where(query, conditions))


def rows_query(
    relation: str, fields: t.Schema, stored: Sequence[str], keys: Sequence[str], emitter: Emitter, grouped: bool
) -> str:
    """The net rows of many keys, of entries that were found and those that came after: the columns and `#n`.

    Args:
        relation: which.
        fields: its columns.
        stored: under which names they are stored.
        keys: the columns of the key.
        emitter: of its layout.
        grouped: whether some entries are not shown.
    """

    def entries(table: exp.Table, *conditions: exp.Expr) -> exp.Select:
        items = [as_column(column(text), f.name) for text, f in zip(stored, fields, strict=True)]
        query = exp.Select(expressions=[*items, column(MULTIPLICITY)]).from_(table, copy=False)
        return _where(query, [*conditions, *([column(SHOWN)] if grouped else [])])

    both = exp.Union(
        this=entries(exp.Table(this=name(HITS))), expression=entries(store_table(relation), _later()), distinct=False
    )
    return _of_keys(emitter.consolidated(both, tuple(f.name for f in fields)), keys)


def scan_query(relation: str, fields: t.Schema, keys: Sequence[str], emitter: Emitter) -> str:
    """The net rows of many keys, by a scan: the columns and `#n`."""
    return _of_keys(emitter.net_rows(bare(Scan(relation, "r", fields))), keys)


def _of_keys(rows: exp.Query, keys: Sequence[str]) -> str:
    source = exp.Subquery(this=rows, alias=exp.TableAlias(this=name("rows")))
    wanted = exp.Select(expressions=[column(key_column(i)) for i in range(len(keys))])
    wanted = wanted.from_(exp.Table(this=name(KEYS)), copy=False)
    own = [column(text, "rows") for text in keys]
    found = exp.In(this=exp.Tuple(expressions=own) if len(own) != 1 else own[0], query=exp.Subquery(this=wanted))
    return sql(exp.Select(expressions=[exp.Star()]).from_(source, copy=False).where(found, copy=False))


def _given(position: int, field: t.Field) -> exp.Expr:
    return recast(exp.Parameter(this=exp.Var(this=parameter(position))), duckdb_type(field.type))


def _later() -> exp.Expr:
    return exp.GT(this=column(EPOCH), expression=exp.Parameter(this=exp.Var(this=UPTO)))


def _where(query: exp.Select, conditions: Sequence[exp.Expr]) -> exp.Select:
    for one in conditions:
        query = query.where(one, copy=False)
    return query
