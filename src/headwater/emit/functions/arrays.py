"""Arrays in DuckDB, which calls them lists."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from headwater import types as t
from headwater.algebra.functions.arrays import ascending
from headwater.algebra.functions.errors import INVALID_VALUE
from headwater.algebra.scalars import Call
from headwater.emit.functions.build import (
    add,
    both,
    case,
    cast,
    duckdb_type,
    each,
    either,
    emits,
    failure,
    fn,
    infix,
    is_not_null,
    is_null,
    let,
    null,
    number,
    sub,
    text,
    wrap,
)
from headwater.emit.functions.literals import duckdb_literal
from headwater.emit.functions.orders import sorted_list


def kept(items: exp.Expr, test: Callable[[exp.Expr], exp.Expr], name: str = "_item") -> exp.Expr:
    """The elements of a list that pass a test."""
    item = exp.to_identifier(name)
    return fn("list_filter", items, exp.Lambda(this=test(item), expressions=[item.copy()]))


def _place(items: exp.Expr, value: exp.Expr) -> exp.Expr:
    """Where a value, which may be NULL, first is in a list; NULL if nowhere."""
    return fn("list_position", items.copy(), value.copy())


def _length(items: exp.Expr) -> exp.Expr:
    return fn("len", items.copy())


def _has_null(items: exp.Expr) -> exp.Expr:
    return infix(exp.GT, _length(items), fn("list_count", items.copy()))


def _unknown(*values: exp.Expr) -> exp.Expr:
    """Whether one of the values is NULL."""
    test = is_null(values[0].copy())
    for value in values[1:]:
        test = either(test, is_null(value.copy()))
    return test


@emits("array")
def _array(call: Call, *items: exp.Expr) -> exp.Expr:
    return cast(fn("list_value", *items), duckdb_type(call.type))


@emits("size", "cardinality", "array_size")
def _size(call: Call, items: exp.Expr) -> exp.Expr:
    return cast(fn("cardinality" if isinstance(call.args[0].type, t.Map) else "len", items), "INTEGER")


# --- elements -------------------------------------------------------------------------------------------------------


def _outside(call: Call) -> exp.Expr:
    return failure(INVALID_VALUE, f"{call.function}: there is no such element in the array")


@emits("element_at", "try_element_at")
def _element_at(call: Call, items: exp.Expr, place: exp.Expr) -> exp.Expr:
    if isinstance(call.args[0].type, t.Map):
        return fn("map_extract_value", items, place)

    def body(x: exp.Expr, p: exp.Expr) -> exp.Expr:
        beyond = infix(exp.GT, fn("abs", p.copy()), _length(x))
        return case(
            _unknown(x, p),
            null(call.type),
            infix(exp.EQ, p.copy(), number(0)),
            failure(INVALID_VALUE, f"{call.function} counts from 1: there is no element 0"),
            beyond,
            null(call.type) if call.function == "try_element_at" else _outside(call),
            fn("list_extract", x.copy(), p.copy()),
        )

    return let({"x": items, "p": cast(place, "BIGINT")}, body)


@emits("get")
def _get(call: Call, items: exp.Expr, place: exp.Expr) -> exp.Expr:
    def body(x: exp.Expr, p: exp.Expr) -> exp.Expr:
        return case(infix(exp.GTE, p.copy(), number(0)), _from_zero(x, p), null(call.type))

    return let({"x": items, "p": cast(place, "BIGINT")}, body)


def _from_zero(x: exp.Expr, p: exp.Expr) -> exp.Expr:
    # The last place of all has no successor, and no array an element there.
    last = infix(exp.LT, p.copy(), number(t.BIGINT.high))
    return fn("list_extract", x.copy(), add(case(last, p.copy(), number(t.BIGINT.high - 1)), number(1)))


@emits("element")
def _element(call: Call, items: exp.Expr, place: exp.Expr) -> exp.Expr:
    if isinstance(call.args[0].type, t.Map):
        return fn("map_extract_value", items, place)

    def body(x: exp.Expr, p: exp.Expr) -> exp.Expr:
        outside = either(infix(exp.LT, p.copy(), number(0)), infix(exp.GTE, p.copy(), _length(x)))
        return case(_unknown(x, p), null(call.type), outside, _outside(call), _from_zero(x, p))

    return let({"x": items, "p": place}, body)


# --- search ---------------------------------------------------------------------------------------------------------


@emits("array_contains")
def _contains(call: Call, items: exp.Expr, value: exp.Expr) -> exp.Expr:
    def body(x: exp.Expr, v: exp.Expr) -> exp.Expr:
        found = fn("list_contains", x.copy(), v.copy())
        return case(_unknown(x, v), null(t.BOOLEAN), found, exp.true(), _has_null(x), null(t.BOOLEAN), exp.false())

    return let({"x": items, "v": value}, body)


@emits("array_position")
def _position(call: Call, items: exp.Expr, value: exp.Expr) -> exp.Expr:
    def body(x: exp.Expr, v: exp.Expr) -> exp.Expr:
        return case(_unknown(x, v), null(t.BIGINT), cast(fn("coalesce", _place(x, v), number(0)), "BIGINT"))

    return let({"x": items, "v": value}, body)


@emits("arrays_overlap")
def _overlap(call: Call, a: exp.Expr, b: exp.Expr) -> exp.Expr:
    def body(x: exp.Expr, y: exp.Expr) -> exp.Expr:
        common = kept(x.copy(), lambda i: both(is_not_null(i), is_not_null(_place(y, i))))
        some = both(infix(exp.GT, _length(x), number(0)), infix(exp.GT, _length(y), number(0)))
        return case(
            _unknown(x, y),
            null(t.BOOLEAN),
            infix(exp.GT, _length(common), number(0)),
            exp.true(),
            both(some, either(_has_null(x), _has_null(y))),
            null(t.BOOLEAN),
            exp.false(),
        )

    return let({"x": a, "y": b}, body)


@emits("array_min", "array_max")
def _extreme(call: Call, items: exp.Expr) -> exp.Expr:
    return fn("list_min" if call.function == "array_min" else "list_max", items)


# --- other arrays ---------------------------------------------------------------------------------------------------


@emits("sort_array")
def _sort(call: Call, items: exp.Expr, _order: exp.Expr | None = None) -> exp.Expr:
    up = ascending(call.args)
    return sorted_list(items, _element_type(call), descending=not up, nulls_first=up)


@emits("array_sort")
def _array_sort(call: Call, items: exp.Expr) -> exp.Expr:
    return sorted_list(items, _element_type(call), descending=False, nulls_first=False)


def _element_type(call: Call) -> t.Type:
    kind = call.args[0].type
    assert isinstance(kind, t.Array)
    return kind.element


def _distinct(items: exp.Expr) -> exp.Expr:
    """Each element where it first occurs."""
    item, place = exp.to_identifier("_item"), exp.to_identifier("_place")

    def body(d: exp.Expr) -> exp.Expr:
        first = infix(exp.EQ, _place(d, item), place.copy())
        return fn("list_filter", d.copy(), exp.Lambda(this=first, expressions=[item.copy(), place.copy()]))

    return let({"d": items}, body)


@emits("array_distinct")
def _array_distinct(call: Call, items: exp.Expr) -> exp.Expr:
    return _distinct(items)


@emits("array_union", "array_intersect", "array_except")
def _combined(call: Call, a: exp.Expr, b: exp.Expr) -> exp.Expr:
    def body(x: exp.Expr, y: exp.Expr) -> exp.Expr:
        chosen: exp.Expr
        match call.function:
            case "array_union":
                chosen = fn("list_concat", x.copy(), y.copy())
            case "array_intersect":
                chosen = kept(x.copy(), lambda i: is_not_null(_place(y, i)))
            case _:
                chosen = kept(x.copy(), lambda i: is_null(_place(y, i)))
        return case(_unknown(x, y), null(call.type), chosen)

    return _distinct(let({"x": a, "y": b}, body))


@emits("array_remove")
def _remove(call: Call, items: exp.Expr, value: exp.Expr) -> exp.Expr:
    def body(x: exp.Expr, v: exp.Expr) -> exp.Expr:
        others = kept(x.copy(), lambda i: either(is_null(i), infix(exp.NEQ, i.copy(), v.copy())))
        return case(_unknown(x, v), null(call.type), others)

    return let({"x": items, "v": value}, body)


@emits("array_compact")
def _compact(call: Call, items: exp.Expr) -> exp.Expr:
    return kept(items, is_not_null)


@emits("array_append", "array_prepend")
def _added(call: Call, items: exp.Expr, value: exp.Expr) -> exp.Expr:
    def body(x: exp.Expr, v: exp.Expr) -> exp.Expr:
        front = call.function == "array_prepend"
        longer = fn("list_prepend", v, x.copy()) if front else fn("list_append", x.copy(), v)
        return case(_unknown(x), null(call.type), longer)

    return let({"x": items, "v": value}, body)


@emits("array_repeat")
def _repeat(call: Call, value: exp.Expr, count: exp.Expr) -> exp.Expr:
    def body(v: exp.Expr, n: exp.Expr) -> exp.Expr:
        return each(fn("range", cast(number(0), "BIGINT"), n.copy()), lambda _: v)

    return let({"v": value, "n": cast(count, "BIGINT")}, body)


@emits("slice")
def _slice(call: Call, items: exp.Expr, start: exp.Expr, count: exp.Expr) -> exp.Expr:
    def body(x: exp.Expr, s: exp.Expr, n: exp.Expr) -> exp.Expr:
        wrong = either(infix(exp.EQ, s.copy(), number(0)), infix(exp.LT, n.copy(), number(0)))
        first = case(infix(exp.GT, s.copy(), number(0)), s.copy(), add(add(_length(x), s.copy()), number(1)))
        before = infix(exp.LT, first.copy(), number(1))
        last = sub(add(first.copy(), n.copy()), number(1))
        return case(
            _unknown(x, s, n),
            null(call.type),
            wrong,
            failure(INVALID_VALUE, "slice counts from 1, and not backwards"),
            before,
            duckdb_literal((), call.type),
            fn("list_slice", x.copy(), first, last),
        )

    return let({"x": items, "s": cast(start, "BIGINT"), "n": cast(count, "BIGINT")}, body)


@emits("flatten")
def _flatten(call: Call, items: exp.Expr) -> exp.Expr:
    return let({"x": items}, lambda x: case(_has_null(x), null(call.type), fn("flatten", x.copy())))


@emits("array_join")
def _join(call: Call, items: exp.Expr, separator: exp.Expr, instead: exp.Expr | None = None) -> exp.Expr:
    def joined(x: exp.Expr) -> exp.Expr:
        return fn("coalesce", fn("array_to_string", x, separator.copy()), text(""))

    if instead is None:
        return let({"x": items}, lambda x: case(_unknown(x), null(t.STRING), joined(x.copy())))

    def body(x: exp.Expr, r: exp.Expr) -> exp.Expr:
        shown = each(x.copy(), lambda i: fn("coalesce", wrap(i), r.copy()))
        return case(_unknown(x, r), null(t.STRING), joined(shown))

    return let({"x": items, "r": instead}, body)
