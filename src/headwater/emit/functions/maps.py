"""Maps and structs in DuckDB."""

from __future__ import annotations

from sqlglot import exp

from headwater import types as t
from headwater.algebra.functions.errors import INVALID_VALUE
from headwater.algebra.functions.maps import field_place, type_name
from headwater.algebra.scalars import Call
from headwater.emit.functions.build import (
    case,
    cast,
    duckdb_type,
    either,
    emits,
    failure,
    fn,
    infix,
    is_null,
    let,
    null,
    text,
)


@emits("map")
def _map(call: Call, *parts: exp.Expr) -> exp.Expr:
    kind = call.type
    assert isinstance(kind, t.Map)
    keys = cast(fn("list_value", *parts[::2]), duckdb_type(t.Array(kind.key)))
    values = cast(fn("list_value", *parts[1::2]), duckdb_type(t.Array(kind.value)))
    return fn("map", keys, values)


@emits("map_from_arrays")
def _from_arrays(call: Call, keys: exp.Expr, values: exp.Expr) -> exp.Expr:
    def body(k: exp.Expr, v: exp.Expr) -> exp.Expr:
        unequal = infix(exp.NEQ, fn("len", k.copy()), fn("len", v.copy()))
        return case(
            either(is_null(k.copy()), is_null(v.copy())),
            null(call.type),
            unequal,
            failure(INVALID_VALUE, "a map needs as many values as keys"),
            fn("map", k.copy(), v.copy()),
        )

    return let({"k": keys, "v": values}, body)


@emits("map_keys", "map_values", "map_entries")
def _parts(call: Call, entries: exp.Expr) -> exp.Expr:
    # Of NULL they are empty in some versions.
    return let({"x": entries}, lambda x: case(is_null(x), null(call.type), fn(call.function, x.copy())))


@emits("map_contains_key")
def _contains_key(call: Call, entries: exp.Expr, key: exp.Expr) -> exp.Expr:
    def body(x: exp.Expr, k: exp.Expr) -> exp.Expr:
        unknown = either(is_null(x.copy()), is_null(k.copy()))
        return case(unknown, null(t.BOOLEAN), fn("list_contains", fn("map_keys", x.copy()), k.copy()))

    return let({"x": entries, "k": key}, body)


@emits("named_struct")
def _named_struct(call: Call, *parts: exp.Expr) -> exp.Expr:
    return cast(fn("row", *parts[1::2]), duckdb_type(call.type))


@emits("field")
def _field(call: Call, value: exp.Expr, _name: exp.Expr) -> exp.Expr:
    kind = call.args[0].type
    assert isinstance(kind, t.Struct)
    return fn("struct_extract", value, text(kind.fields[field_place(call.args)][0]))


@emits("typeof")
def _typeof(call: Call, _value: exp.Expr) -> exp.Expr:
    return text(type_name(call.args[0].type))
