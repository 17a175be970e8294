"""Arrays, maps and structs."""

from __future__ import annotations

import datetime as dt
import math

from headwater import types as t
from headwater.algebra.scalars import Literal
from tests.functions.harness import Case, D, case, cast_case, lit

A, S, I = t.Array(t.INT), t.STRING, t.INT  # noqa: E741
TEXTS, DOUBLES, LONGS = t.Array(S), t.Array(t.DOUBLE), t.Array(t.BIGINT)
NAN = math.nan
NUMBERS = [(1, 2), (), (1, None), (None,), (2, 1, 2, None, None, 1), (3,), (-1, 0)]
LISTS = [*[(one,) for one in NUMBERS], (None,)]
WORDS = [(("b", "a"),), ((),), (("é", None, "a", "é", ""),), (None,)]
REALS = [((NAN, 1.0, 0.0, -1.5, NAN),), ((math.inf, None, -math.inf),), ((),), (None,)]
PLACES = [1, 2, 3, -1, -2, -3, 0, None, 2147483647, -2147483648]
M = t.Map(S, I)
MAPS = [((("a", 1), ("b", None)),), ((),), (None,), ((("é", 5),),)]
POINT = t.Struct((("x", I), ("y", S)))
POINTS = [((1, "a"),), ((None, None),), (None,)]

CASES: list[Case] = [
    case("array", I, I, rows=[(1, 2), (None, 1), (None, None)]),
    case("array", I, t.BIGINT, rows=[(1, 2)]),
    case("array", I, t.Decimal(5, 2), rows=[(1, D("2.50"))]),
    case("array", S, rows=["a", None]),
    case("array", t.DATE, rows=[dt.date(2020, 2, 29), None]),
    case("array", A, rows=[((1, None),), (None,)]),
    case("size", A, rows=LISTS),
    case("size", M, rows=MAPS),
    case("cardinality", TEXTS, rows=WORDS),
    case("cardinality", M, rows=MAPS),
    case("array_size", A, rows=LISTS),
]
for name in ("element_at", "try_element_at"):
    CASES += [
        case(name, A, I, rows=[((5, None), place) for place in PLACES] + [((), 1), (None, 1), (None, 0)]),
        case(name, TEXTS, lit(1), rows=[(("a", "b"),), ((None,),), (None,)]),
        case(name, M, S, rows=[((("a", 1), ("b", None)), key) for key in ("a", "b", "c", None)] + [(None, "a")]),
    ]
CASES += [
    case("get", A, I, rows=[((5, 6), place) for place in PLACES] + [((), 0), (None, 0)]),
    case("element", A, I, rows=[((5, 6), place) for place in PLACES] + [((), 0), (None, 0)], spark="{0}[{1}]"),
    case("element", A, t.BIGINT, rows=[((5, 6), 1), ((5, 6), 9223372036854775807)], spark="{0}[{1}]"),
    case("element", M, S, rows=[((("a", 1),), "a"), ((("a", 1),), "b"), (None, "a")], spark="{0}[{1}]"),
    case(
        "element",
        t.Map(t.BIGINT, S),
        I,
        rows=[(((1, "a"),), 1), (((1, "a"),), 2), (((1, "a"),), None)],
        spark="{0}[{1}]",
    ),
    case("array_contains", A, I, rows=[(one, value) for one in (*NUMBERS, None) for value in (1, 7, None)]),
    case("array_contains", A, t.BIGINT, rows=[((1, None), 1), ((1,), 5000000000), (None, 1)]),
    case("array_contains", LONGS, I, rows=[((1, None), 1)]),
    case("array_contains", DOUBLES, t.DOUBLE, rows=[((NAN,), NAN), ((0.0,), -0.0), ((1.0,), NAN)]),
    case("array_contains", TEXTS, S, rows=[(("a", ""), ""), (("a",), "A"), ((), "a")]),
    case("array_position", A, I, rows=[(one, value) for one in (*NUMBERS, None) for value in (1, 7, None)]),
    case("array_position", DOUBLES, t.DOUBLE, rows=[((1.0, NAN), NAN)]),
    case("arrays_overlap", A, A, rows=[(a, b) for a in (*NUMBERS, None) for b in ((1,), (None,), (), (7, None), None)]),
    case("array_min", A, rows=LISTS),
    case("array_min", DOUBLES, rows=REALS),
    case("array_min", TEXTS, rows=WORDS),
    case("array_max", A, rows=LISTS),
    case("array_max", DOUBLES, rows=REALS),
    case("array_max", TEXTS, rows=WORDS),
    case("sort_array", A, rows=LISTS),
    case("sort_array", A, lit(True), rows=LISTS),
    case("sort_array", A, lit(False), rows=LISTS),
    case("sort_array", DOUBLES, lit(False), rows=REALS),
    case("sort_array", TEXTS, rows=WORDS),
    case("array_sort", A, rows=LISTS),
    case("array_sort", DOUBLES, rows=REALS),
    case("array_distinct", A, rows=LISTS),
    case("array_distinct", DOUBLES, rows=[*REALS, ((0.0, -0.0),)]),
    case("array_distinct", TEXTS, rows=WORDS),
]
for name in ("array_union", "array_intersect", "array_except"):
    CASES += [
        case(name, A, A, rows=[(a, b) for a in (*NUMBERS, None) for b in ((1,), (None, 2), (), (7, 7), None)]),
        case(name, A, LONGS, rows=[((1, 2), (2, 3))]),
        case(name, DOUBLES, DOUBLES, rows=[((NAN, 1.0), (NAN,))]),
    ]
CASES += [
    case("array_remove", A, I, rows=[(one, value) for one in (*NUMBERS, None) for value in (1, 7, None)]),
    case("array_compact", A, rows=LISTS),
    case("array_append", A, I, rows=[((1,), 2), ((), 1), ((1,), None), (None, 1)]),
    case("array_append", A, t.BIGINT, rows=[((1,), 2)]),
    case("array_prepend", A, I, rows=[((1,), 2), ((), 1), ((1,), None), (None, 1)]),
    case("array_repeat", I, I, rows=[(5, 2), (5, 0), (5, -1), (None, 2), (5, None)]),
    case("array_repeat", S, lit(2), rows=["a", None]),
    case(
        "slice",
        A,
        I,
        I,
        rows=[((1, 2, 3), s, n) for s in (1, 2, 3, 4, -1, -3, -4, 0, None) for n in (0, 1, 5, -1, None)],
    ),
    case("slice", A, I, I, rows=[((), 1, 1), (None, 1, 1), ((1, 2), 2147483647, 2147483647), ((1, 2), 1, 2147483647)]),
    case("flatten", t.Array(A), rows=[(((1,), (2, None), ()),), (((1,), None),), ((),), (None,)]),
    case("array_join", TEXTS, lit(","), rows=[*WORDS, ((None,),)]),
    case(
        "array_join",
        TEXTS,
        lit(","),
        S,
        rows=[(("a", None, "b"), "-"), ((None,), ""), (("a",), None), ((), "x"), (None, "x")],
    ),
    case("array_join", A, lit("; "), rows=LISTS),
    case("array_join", t.Array(t.Decimal(4, 2)), lit(""), rows=[((D("1.50"), None, D("0.00")),)]),
    case("array_join", t.Array(t.TIMESTAMP), lit("|"), rows=[((dt.datetime(2020, 1, 1, 10, 0, 0, 500000),),)]),
    case("reverse", A, rows=LISTS),
    case("concat", A, A, rows=[((1,), (2, None)), ((), ()), ((1,), None), (None, None)]),
    case("concat", A, LONGS, rows=[((1,), (2,))]),
    case("=", A, A, rows=[((1,), (1,)), ((1, None), (1, None)), ((1,), (2,)), (None, (1,))]),
    case("map", S, I, rows=[("a", 1), ("a", None), (None, 1)]),
    case("map", S, I, S, I, rows=[("a", 1, "b", 2), ("a", 1, "a", 2)]),
    case("map", I, t.Decimal(5, 2), t.BIGINT, I, rows=[(1, D("2.50"), 2, 1)]),
    case("map_from_arrays", A, TEXTS, rows=[((1, 2), ("a", None)), ((), ()), ((1,), ("a", "b")), ((1, 1), ("a", "b"))]),
    case("map_from_arrays", A, TEXTS, rows=[((None,), ("a",)), (None, ("a",)), ((1,), None)]),
    case("map_keys", M, rows=MAPS),
    case("map_values", M, rows=MAPS),
    case("map_entries", M, rows=MAPS),
    case(
        "map_contains_key",
        M,
        S,
        rows=[((("a", 1),), "a"), ((("a", 1),), "b"), ((), "a"), (None, "a"), ((("a", 1),), None)],
    ),
    case("named_struct", lit("x"), I, lit("y"), S, rows=[(1, "a"), (None, None)]),
    case("named_struct", lit("a b"), t.DOUBLE, rows=[1.5, None]),
    case("field", POINT, lit("x"), rows=POINTS, spark="{0}.x"),
    case("field", POINT, lit("Y"), rows=POINTS, spark="{0}.Y"),
    case("typeof", I, rows=[1, None]),
    case("typeof", t.Decimal(5, 2), rows=[D("1.50")]),
    case("typeof", A, rows=LISTS),
    case("typeof", M, rows=MAPS),
    case("typeof", POINT, rows=POINTS),
    case("typeof", Literal(None, t.NULL), rows=[()]),
    cast_case(A, LONGS, *NUMBERS, None),
    cast_case(LONGS, A, (1, None), (5000000000,), None),
    cast_case(LONGS, A, (1, None), (5000000000,), None, safe=True),
    cast_case(A, TEXTS, *NUMBERS, None),
    cast_case(TEXTS, A, ("1", None), ("x",), None),
    cast_case(TEXTS, A, ("1", None), ("x",), None, safe=True),
    cast_case(t.Array(t.DATE), TEXTS, (dt.date(2020, 2, 29), None)),
]
