"""Functions of functions, and the order of structs, which what is merged one by one depends on."""

from __future__ import annotations

import datetime as dt
import math

from headwater import types as t
from tests.functions.harness import Case, D, case, lambda_case, lit

A, S, I = t.Array(t.INT), t.STRING, t.INT  # noqa: E741
LISTS = [(1, 2), (), (1, None), (None,), (2, 1, 2, None, None, 1), (3,), (-1, 0), None]
NUMBERS = [(one,) for one in LISTS]
WITH_NUMBER = [(one, n) for one in LISTS for n in (0, 5, None)]
LARGE = [((2147483647,),), ((2147483647, 1),), ((1, 2, 3, 4),), (None,)]
POINT = t.Struct((("x", I), ("y", S)))
POINTS = [
    (((1, "b"), (1, "a"), (1, None), None, (None, "z"), (None, None), (0, "é")),),
    ((),),
    ((None, None),),
    (((2, "a"), (2, "a")),),
    (None,),
]
EVENT = t.Struct((("at", t.TIMESTAMP), ("loss", I)))
NOON = dt.datetime(2024, 2, 29, 12)
EVENTS = [
    (tuple((NOON + dt.timedelta(seconds=i * 7 % 5), loss) for i, loss in enumerate(losses)),)
    for losses in ((11, 12, 3, 14, 15, 16), (1, None, 20), (11, 12, 13, 14), ())
] + [((None, (None, 5), (NOON, None), (NOON, 7)),), (None,)]

CASES: list[Case] = [
    # aggregate: NULL arrays, NULL elements, nothing to merge, captured columns
    lambda_case("aggregate({0}, 0, (a, x) -> a + x)", A, rows=[*NUMBERS, *LARGE]),
    lambda_case("aggregate({0}, 0L, (a, x) -> a + x)", A, rows=[*NUMBERS, *LARGE]),
    lambda_case("aggregate({0}, {1}, (a, x) -> coalesce(a, 100) + coalesce(x, 10))", A, I, rows=WITH_NUMBER),
    lambda_case("aggregate({0}, 0, (a, x) -> a + coalesce(x, 0), a -> a * {1})", A, I, rows=WITH_NUMBER),
    lambda_case("aggregate({0}, {1}, (a, x) -> a + x, a -> coalesce(a, -1))", A, I, rows=WITH_NUMBER),
    lambda_case("aggregate({0}, CAST(NULL AS INT), (a, x) -> NULL)", A, rows=NUMBERS),
    lambda_case(
        "aggregate({0}, '', (a, x) -> concat(a, coalesce(x, '?')))", t.Array(S), rows=[(("a", None, "é"),), ((),)]
    ),
    lambda_case("aggregate({0}, 0D, (a, x) -> a + x, a -> a / 2)", A, rows=NUMBERS),
    lambda_case(
        "aggregate({0}, CAST(0 AS DECIMAL(10,2)), (a, x) -> CAST(a + x AS DECIMAL(10,2)))",
        t.Array(t.Decimal(5, 1)),
        rows=[((D("1.5"), D("2.5")),), ((None, D("1.0")),), ((),)],
    ),
    lambda_case(
        "aggregate({0}, CAST(NULL AS DOUBLE), (a, x) -> greatest(a, x))",
        t.Array(t.DOUBLE),
        rows=[((1.0, math.nan, math.inf),), ((-0.5, None),), ((),)],
    ),
    lambda_case(
        "aggregate(split({0}, ','), 0, (a, x) -> a + CAST(x AS INT), a -> a + 1)", S, rows=["1,2", "1,b", "", None]
    ),
    # arrays, maps and structs as what is merged into
    lambda_case("aggregate({0}, slice({0}, 1, 0), (a, x) -> array_prepend(a, x))", A, rows=NUMBERS),
    lambda_case(
        "aggregate({0}, named_struct('n', 0, 'last', CAST(NULL AS STRING)),"
        " (a, p) -> named_struct('n', a.n + coalesce(p.x, 100), 'last', p.y))",
        t.Array(POINT),
        rows=POINTS,
    ),
    lambda_case(
        "aggregate({0}, named_struct('x', 0, 'y', ''), (a, p) -> CASE WHEN p.x > a.x THEN p ELSE a END, a -> a.y)",
        t.Array(POINT),
        rows=POINTS,
    ),
    lambda_case("aggregate({0}, named_struct('n', 1), (a, x) -> if(x = 1, NULL, a))", A, rows=NUMBERS),
    # a machine that looks for a, b, c, d+ among rows in the order of time: four or more losses above 10 in a row
    lambda_case(
        "aggregate(array_sort({0}), named_struct('state', 0, 'total', 0, 'found', 0, 'lost', 0L,"
        " 'since', CAST(NULL AS TIMESTAMP)), (s, e) -> CASE"
        " WHEN e.loss > 10 THEN named_struct('state', s.state + 1, 'total', s.total + e.loss,"
        " 'found', if(s.state >= 3, s.found + 1, s.found), 'lost', s.lost, 'since', coalesce(s.since, e.at))"
        " ELSE named_struct('state', 0, 'total', 0, 'found', s.found, 'lost', s.lost + s.total,"
        " 'since', CAST(NULL AS TIMESTAMP)) END)",
        t.Array(EVENT),
        rows=EVENTS,
    ),
    # what is not reached does not fail
    lambda_case("aggregate({0}, 0L, (a, x) -> CASE WHEN x = 0 THEN a ELSE a + 10 DIV x END)", A, rows=NUMBERS),
    lambda_case("aggregate({0}, 0L, (a, x) -> a + 10 DIV x)", A, rows=NUMBERS),
    lambda_case("aggregate({0}, 1, (a, x) -> if(a > 1000, a, a * coalesce(x, 70000)))", A, rows=[*NUMBERS, *LARGE]),
    lambda_case("aggregate({0}, 0L, (a, x) -> a + 10 DIV {1})", A, I, rows=[((), 0), ((1,), 0), ((1,), 5), (None, 0)]),
    lambda_case("reduce({0}, 0, (a, x) -> a + x)", A, rows=NUMBERS),
    lambda_case("reduce({0}, 1, (a, x) -> a * x, a -> a IS NULL)", A, rows=NUMBERS),
    # transform
    lambda_case("transform({0}, x -> x + 1)", A, rows=[*NUMBERS, *LARGE]),
    lambda_case("transform({0}, (x, i) -> x * 10 + i)", A, rows=NUMBERS),
    lambda_case("transform({0}, (x, i) -> i)", A, rows=NUMBERS),
    lambda_case("transform({0}, x -> {1})", A, I, rows=WITH_NUMBER),
    lambda_case("transform({0}, x -> struct(x, x IS NULL AS missing))", A, rows=NUMBERS),
    lambda_case("transform({0}, p -> p.y)", t.Array(POINT), rows=POINTS),
    lambda_case("transform({0}, x -> CASE WHEN x <> 0 THEN 10 DIV x END)", A, rows=NUMBERS),
    lambda_case("transform({0}, x -> CAST(x AS STRING))", A, rows=NUMBERS),
    lambda_case("transform({0}, x -> element_at({0}, -1) + x)", A, rows=NUMBERS),
    # lambdas in lambdas: captured, hidden, with places of their own
    lambda_case(
        "transform({0}, x -> transform({0}, y -> coalesce(x, 0) * coalesce(y, 1) + {1}))", A, I, rows=WITH_NUMBER
    ),
    lambda_case("transform({0}, x -> transform({0}, x -> x + 1))", A, rows=NUMBERS),
    lambda_case("transform({0}, (x, i) -> transform({0}, (y, j) -> i * 10 + j))", A, rows=NUMBERS),
    lambda_case("transform({0}, (x, i) -> filter({0}, (y, i) -> i > 0))", A, rows=NUMBERS),
    lambda_case(
        "transform({0}, (x, i) -> aggregate({0}, i, (a, y) -> a + coalesce(y, x), a -> a + i))", A, rows=NUMBERS
    ),
    lambda_case(
        "aggregate(transform({0}, x -> array(x, {1})), 0, (a, y) -> a + aggregate(y, 0, (b, z) -> b + coalesce(z, a)))",
        A,
        I,
        rows=WITH_NUMBER,
    ),
    # filter
    lambda_case("filter({0}, x -> x > 1)", A, rows=NUMBERS),
    lambda_case("filter({0}, x -> x IS NULL OR x > {1})", A, I, rows=WITH_NUMBER),
    lambda_case("filter({0}, (x, i) -> i > 0)", A, rows=NUMBERS),
    lambda_case("filter({0}, (x, i) -> x > i)", A, rows=NUMBERS),
    lambda_case("filter({0}, x -> NULL)", A, rows=NUMBERS),
    lambda_case("filter({0}, x -> x <> 0 AND 10 DIV x > 3)", A, rows=NUMBERS),
    lambda_case("filter({0}, x -> 10 DIV x > 3)", A, rows=NUMBERS),
    lambda_case("filter({0}, x -> exists({0}, y -> y > x))", A, rows=NUMBERS),
    # exists and forall: NULL where only a NULL could decide, and no further than what decides
    lambda_case("exists({0}, x -> x > 1)", A, rows=NUMBERS),
    lambda_case("exists({0}, x -> x IS NULL)", A, rows=NUMBERS),
    lambda_case("exists({0}, x -> NULL)", A, rows=NUMBERS),
    lambda_case(
        "exists({0}, x -> 10 DIV x > {1})", A, I, rows=[*[((1, 2, 0), n) for n in (6, 9, 10, None)], ((0, 1), 6)]
    ),
    lambda_case("forall({0}, x -> x > 0)", A, rows=NUMBERS),
    lambda_case("forall({0}, x -> x IS NOT NULL)", A, rows=NUMBERS),
    lambda_case("forall({0}, x -> NULL)", A, rows=NUMBERS),
    lambda_case(
        "forall({0}, x -> 10 DIV x > {1})", A, I, rows=[*[((20, 1, 0), n) for n in (-1, 0, 5, None)], ((0,), 6)]
    ),
    # the order of structs and arrays: field by field, NULL first inside of them
    case("array_sort", t.Array(POINT), rows=POINTS),
    case("sort_array", t.Array(POINT), rows=POINTS),
    case("sort_array", t.Array(POINT), lit(False), rows=POINTS),
    case("array_sort", t.Array(EVENT), rows=EVENTS),
    case(
        "array_sort",
        t.Array(t.Struct((("p", POINT), ("v", t.DOUBLE)))),
        rows=[
            (((None, 1.0), ((1, None), math.nan), ((1, None), math.inf), ((1, None), None), ((None, None), 0.5)),),
            (None,),
        ],
    ),
    case("array_sort", t.Array(A), rows=[(((1, None), (1,), (None,), (1, 2), None, (), (0, 5)),), ((),), (None,)]),
    case("sort_array", t.Array(A), lit(False), rows=[(((1, None), (1,), (None,), (1, 2), None, ()),)]),
    case(
        "array_sort",
        t.Array(t.Struct((("a", t.Array(A)),))),
        rows=[(((((1,), None),), (((1, None),),), (None,), ((None,),), (((None,),),), ((),)),)],
    ),
]
