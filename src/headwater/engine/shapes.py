"""What the rows of a store are told apart by, and the query that adds them up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from headwater import types as t
from headwater.algebra.folds import Pick
from headwater.algebra.nodes import During
from headwater.emit.functions.build import duckdb_type, recast
from headwater.emit.layout import EPOCH, MULTIPLICITY, as_column, bigint, column, number, store_table, total
from headwater.emit.maintain import stored_columns
from headwater.emit.synchronise import waiting_of
from headwater.store.catalog import Catalog


@dataclass(frozen=True)
class Shape:
    """The columns of a store: by these its rows are told apart, and those are added up.

    Of `picks` the least or greatest value is kept. `order` are the columns by which rows leave a window: rows that
    leave together then lie together, and the others are not read for it. With `since` a row keeps the first of its
    epochs, else the last.
    """

    columns: tuple[str, ...]
    totals: tuple[t.Field, ...] = ()
    order: tuple[str, ...] = ()
    picks: tuple[tuple[str, Pick], ...] = ()
    since: bool = False


def shape_of(catalog: Catalog, store: str) -> Shape | None:
    """The shape of a store that may be rewritten; None for streams without a key, whose rows keep the epoch they came
    in.

    Nothing in such a stream is ever retracted, so there is nothing to gain from rewriting it: it is trimmed instead.
    """
    for relation in catalog:
        if relation.program is not None:
            for one in relation.program.maps:
                if one.name == store and one.sums is not None:
                    keys, picks = tuple(text for text, _ in one.sums.keys), one.sums.picks
                    return Shape(keys, one.sums.payload[: len(one.sums.payload) - len(picks)], picks=picks)
                if one.name == store:
                    ends = one.definition.ends.columns if isinstance(one.definition, During) else ()
                    return Shape(tuple(text for text, _ in stored_columns(one)), order=tuple(sorted(ends)))
        elif relation.name == store:
            return None if relation.flows else Shape(tuple(f.name for f in relation.fields))
        elif relation.policy is not None and waiting_of(relation.name) == store:
            return None if relation.flows else Shape(tuple(f.name for f in relation.fields), since=True)
        elif relation.sequence is not None and relation.buried == store:
            return Shape(tuple(f.name for f in relation.buried_fields))
    return None


def living(store: str, shape: Shape, order: Sequence[exp.Expr] = (), where: exp.Expr | None = None) -> exp.Select:
    """The net rows of a store, or of some of its rows, in order."""
    count = total(column(MULTIPLICITY))
    totals = [total(column(f.name)) for f in shape.totals]
    items: list[exp.Expr] = [column(text) for text in shape.columns]
    items += [as_column(recast(one, duckdb_type(f.type)), f.name) for one, f in zip(totals, shape.totals, strict=True)]
    for text, pick in shape.picks:
        kind = exp.Min if pick.function == "min" else exp.Max
        items.append(as_column(recast(kind(this=column(text)), duckdb_type(pick.type)), text))
    kept = [exp.NEQ(this=one.copy(), expression=number(0)) for one in totals or [count]]
    items += [as_column(bigint(number(1) if totals else count), MULTIPLICITY)]
    came = exp.Min if shape.since else exp.Max
    items += [as_column(came(this=column(EPOCH)), EPOCH)]
    query = exp.Select(expressions=items).from_(store_table(store), copy=False)
    query = query.where(where, copy=False) if where is not None else query
    query = query.group_by(*(column(text) for text in shape.columns), copy=False) if shape.columns else query
    query = query.order_by(*order, copy=False) if order else query
    return query.having(exp.or_(*kept), copy=False)
