"""The order of nested values in DuckDB, which puts a NULL inside of them last where Spark puts it first."""

from __future__ import annotations

from sqlglot import exp

from headwater import types as t
from headwater.emit.functions.build import case, each, fn, is_not_null, is_null, text


def sort_key(kind: t.Type, value: exp.Expr, depth: int = 1) -> exp.Expr:
    """What DuckDB orders as Spark orders the value itself: beside each part that may be NULL stands whether it is."""
    match kind:
        case t.Struct(fields):
            parts = [(of, _field(value, name)) for name, of in fields]
            flagged = [one for of, part in parts for one in (is_not_null(part.copy()), sort_key(of, part, depth))]
            return case(is_null(value.copy()), exp.null(), fn("row", *flagged))
        case t.Array(element):
            name = f"_part{depth}"  # arrays inside of arrays need names of their own
            return each(value, lambda x: fn("row", is_not_null(x), sort_key(element, x.copy(), depth + 1)), name)
    return value


def sort_keys(kind: t.Type, value: exp.Expr) -> list[exp.Expr]:
    """What orders values that are not NULL, with NULLs first: a struct is ordered by one field after the other."""
    if not isinstance(kind, t.Struct):
        return [sort_key(kind, value)]
    return [sort_key(of, _field(value, name)) for name, of in kind.fields]


def sorted_list(items: exp.Expr, element: t.Type, *, descending: bool, nulls_first: bool) -> exp.Expr:
    """A list in the order of its elements."""
    order = "DESC" if descending else "ASC"
    if not t.is_nested(element):
        return fn("list_sort", items, text(order), text("NULLS FIRST" if nulls_first else "NULLS LAST"))

    def keyed(x: exp.Expr) -> exp.Expr:
        last = is_null(x) if nulls_first == descending else is_not_null(x)
        parts = {"n": last, "k": sort_key(element, x.copy()), "v": x.copy()}
        named = [exp.PropertyEQ(this=exp.to_identifier(name), expression=value) for name, value in parts.items()]
        return exp.Struct(expressions=named)

    return each(fn("list_sort", each(items, keyed), text(order)), lambda x: _field(x, "v"))


def _field(value: exp.Expr, name: str) -> exp.Expr:
    return fn("struct_extract", value.copy(), text(name))
