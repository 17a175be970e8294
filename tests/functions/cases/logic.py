"""Comparisons, three-valued logic, CASE and its relatives, and what the compiler makes of sums."""

from __future__ import annotations

import datetime as dt
import math

from headwater import types as t
from headwater.algebra.scalars import Literal
from tests.functions.harness import Case, D, case, lit

INF, NAN = math.inf, math.nan
B, I, S = t.BOOLEAN, t.INT, t.STRING  # noqa: E741
D10_2 = t.Decimal(10, 2)
TRUTH = [True, False, None]
PAIRS = [(a, b) for a in TRUTH for b in TRUTH]
DOUBLES = [(1.0, 2.0), (NAN, NAN), (NAN, INF), (INF, NAN), (0.0, -0.0), (-INF, 1.0), (None, NAN), (1.0, 1.0)]
TEXTS = [("a", "b"), ("a", "a"), ("a", "A"), ("é", "z"), ("", None), ("ab", "a"), ("\U0001f600", "\uffee"), ("a", "a ")]

CASES: list[Case] = []
for op in ("=", "<>", "<", "<=", ">", ">=", "<=>"):
    CASES += [
        case(op, I, I, rows=[(1, 2), (2, 1), (1, 1), (None, 1), (1, None), (None, None)]),
        case(op, t.TINYINT, t.BIGINT, rows=[(1, 9223372036854775807), (-1, -1)]),
        case(op, t.BIGINT, lit(5), rows=[4, 5, 6, None]),
        case(op, lit(5), I, rows=[4, 5, 6, None]),
        case(op, I, D10_2, rows=[(1, D("1.00")), (1, D("1.01")), (2147483647, D("0.00"))]),
        case(op, D10_2, lit(1), rows=[D("1.00"), D("0.99"), None]),
        case(op, D10_2, lit(D("1.005")), rows=[D("1.00"), D("1.01")]),
        case(op, D10_2, t.Decimal(38, 10), rows=[(D("1.00"), D("1.0000000000")), (D("1.00"), D("1.0000000001"))]),
        case(op, t.BIGINT, t.DOUBLE, rows=[(9007199254740993, 9007199254740992.0), (1, 1.5), (1, NAN)]),
        case(op, t.FLOAT, t.DOUBLE, rows=[(0.10000000149011612, 0.1), (0.5, 0.5)]),
        case(op, t.DOUBLE, t.DOUBLE, rows=DOUBLES),
        case(op, S, S, rows=TEXTS),
        case(op, S, I, rows=[("1", 1), (" 2 ", 1), ("x", 1), (None, 1)]),
        case(op, S, t.DATE, rows=[("2020-02-29", dt.date(2020, 2, 29)), ("2020-03-01", dt.date(2020, 2, 29))]),
        case(
            op,
            t.DATE,
            t.TIMESTAMP,
            rows=[
                (dt.date(2020, 2, 29), dt.datetime(2020, 2, 29)),
                (dt.date(2020, 2, 29), dt.datetime(2020, 2, 29, 1)),
            ],
        ),
        case(
            op,
            t.TIMESTAMP,
            lit("2020-02-29 01:00:00"),
            rows=[dt.datetime(2020, 2, 29, 1), dt.datetime(2020, 2, 29), None],
        ),
        case(op, B, B, rows=PAIRS),
        case(op, t.BINARY, t.BINARY, rows=[(b"a", b"b"), (b"\xff", b"a"), (b"", b"")]),
        case(op, I, lit(None), rows=[1, None]),
    ]
CASES += [
    case("and", B, B, rows=PAIRS),
    case("or", B, B, rows=PAIRS),
    case("and", B, S, rows=[(True, "true"), (False, "x"), (True, None)]),
    case("or", B, S, rows=[(True, "x"), (False, "yes"), (None, "no")]),
    case("not", B, rows=TRUTH, spark="NOT {0}"),
]
for test in ("is true", "is not true", "is false", "is not false", "is null", "is not null"):
    CASES.append(case(test, B, rows=TRUTH, spark="{0} " + test.upper()))
for test in ("is null", "is not null"):
    CASES.append(case(test, I, rows=[1, None], spark="{0} " + test.upper()))
    CASES.append(case(test, t.DOUBLE, rows=[NAN, None], spark="{0} " + test.upper()))
for name in ("isnull", "isnotnull"):
    CASES.append(case(name, S, rows=["", None]))
CASES += [
    case("in", I, lit(1), lit(2), rows=[1, 2, 3, None], spark="{0} IN ({1}, {2})"),
    case("in", I, lit(1), lit(None), rows=[1, 2, None], spark="{0} IN ({1}, {2})"),
    case(
        "in",
        I,
        t.BIGINT,
        D10_2,
        rows=[(1, 1, D("2.00")), (1, 2, D("1.00")), (1, None, D("2.00"))],
        spark="{0} IN ({1}, {2})",
    ),
    case("in", S, lit("a"), lit("b"), rows=["a", "c", "A", None], spark="{0} IN ({1}, {2})"),
    case("in", t.DOUBLE, lit(NAN), lit(0.0), rows=[NAN, -0.0, 1.0, None], spark="{0} IN ({1}, {2})"),
    case(
        "in",
        t.DATE,
        lit("2020-02-29"),
        lit("2020-03-01"),
        rows=[dt.date(2020, 2, 29), dt.date(2020, 2, 28)],
        spark="{0} IN ({1}, {2})",
    ),
]
WHEN = "CASE WHEN {0} THEN {1} ELSE {2} END"
CASES += [
    case("case", B, I, I, rows=[(c, 1, 2) for c in TRUTH], spark=WHEN),
    case("case", B, I, D10_2, rows=[(c, 1, D("2.50")) for c in TRUTH], spark=WHEN),
    case("case", B, lit(1), D10_2, rows=[(c, D("2.50")) for c in TRUTH], spark=WHEN),
    case("case", B, t.TINYINT, t.BIGINT, rows=[(c, 1, 2) for c in TRUTH], spark=WHEN),
    case("case", B, lit(None), S, rows=[(c, "x") for c in TRUTH], spark=WHEN),
    case(
        "case",
        B,
        I,
        B,
        I,
        lit(0),
        rows=[(a, 1, b, 2) for a, b in PAIRS],
        spark="CASE WHEN {0} THEN {1} WHEN {2} THEN {3} ELSE {4} END",
    ),
    case(
        "case",
        B,
        t.DATE,
        t.TIMESTAMP,
        rows=[(c, dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, 1)) for c in TRUTH],
        spark=WHEN,
    ),
    case("if", B, I, t.BIGINT, rows=[(c, 1, 2) for c in TRUTH]),
    case("coalesce", I, I, rows=[(1, 2), (None, 2), (None, None)]),
    case("coalesce", I, D10_2, t.DOUBLE, rows=[(1, None, None), (None, D("1.50"), None), (None, None, NAN)]),
    case("coalesce", I, S, rows=[(1, "x"), (None, "2"), (None, None)]),
    case("coalesce", I, lit(0), rows=[1, None]),
    case("coalesce", D10_2, lit(0), rows=[D("1.50"), None]),
    case("coalesce", S, rows=["a", None]),
    case("nvl", I, I, rows=[(1, 2), (None, 2), (None, None)]),
    case("ifnull", S, lit("x"), rows=["a", "", None]),
    case("nvl2", I, S, S, rows=[(1, "a", "b"), (None, "a", "b"), (1, None, "b")]),
    case("nvl2", S, I, t.BIGINT, rows=[("", 1, 2), (None, 1, 2)]),
    case("nullif", I, I, rows=[(1, 1), (1, 2), (None, 1), (1, None)]),
    case("nullif", t.TINYINT, lit(0), rows=[0, 1, None]),
    case("nullif", t.BIGINT, lit(0), rows=[0, 1, None]),
    case("nullif", D10_2, lit(0), rows=[D("0.00"), D("0.01"), None]),
    case("nullif", I, t.Decimal(3, 1), rows=[(1, D("1.0")), (1, D("1.5"))]),
    case("nullif", t.DOUBLE, t.DOUBLE, rows=[(NAN, NAN), (0.0, -0.0), (1.0, 2.0)]),
    case("nullif", S, S, rows=[("a", "a"), ("a", "A"), (None, "a")]),
    case("nullif", t.DATE, lit("2020-01-01"), rows=[dt.date(2020, 1, 1), dt.date(2020, 1, 2)]),
    case("zeroifnull", I, rows=[1, 0, None]),
    case("zeroifnull", t.TINYINT, rows=[1, None]),
    case("zeroifnull", D10_2, rows=[D("1.50"), None]),
    case("zeroifnull", t.DOUBLE, rows=[1.5, None]),
    case("nullifzero", I, rows=[1, 0, None]),
    case("nullifzero", D10_2, rows=[D("1.50"), D("0.00"), None]),
    case("nullifzero", t.DOUBLE, rows=[1.5, -0.0, NAN]),
]

# What the compiler calls on a map's payload.
FIVE = (t.DOUBLE, t.BIGINT, t.BIGINT, t.BIGINT, t.BIGINT)
D38_2 = t.Decimal(38, 2)
CASES += [
    case("sum_double", *FIVE, rows=[(1.5, 2, 0, 0, 0), (0.0, 0, 0, 0, 0), (1.5, 3, 1, 0, 0), (1.5, 3, 0, 1, 1)]),
    case("sum_double", *FIVE, rows=[(1.5, 3, 0, 1, 0), (1.5, 3, 0, 0, 2), (None, 1, 0, 0, 0)]),
    case("avg_double", t.DOUBLE, t.BIGINT, rows=[(3.0, 2), (3.0, 0), (NAN, 2), (None, 1), (1.0, 3)]),
    case("weigh", t.BOOLEAN, t.BIGINT, rows=[(True, 3), (False, 3), (True, -2)]),
    case("weigh", t.INT, t.BIGINT, rows=[(7, 3), (-(2**31), -2), (None, 1)]),
    case("weigh", t.Decimal(8, 2), t.BIGINT, rows=[(D("1.25"), 3), (D("-999999.99"), 10**9), (None, 1)]),
    case("weigh", t.DOUBLE, t.BIGINT, rows=[(1.5, 3), (-0.25, -4), (None, 1)]),
    case("carry", t.BIGINT, t.BIGINT, rows=[(7, 3), (0, 5), (-4, 2)]),
    case("carry", D38_2, t.BIGINT, rows=[(D("1.25"), 3), (D("9" * 30 + ".99"), -2)]),
    case("carry", t.DOUBLE, t.BIGINT, rows=[(1.5, 3)]),
    case("carry", D38_2, D38_2, rows=[(D("1.25"), D("-3.10")), (D("9" * 12 + ".99"), D("2.00"))]),
    case("total_plus", D38_2, D38_2, rows=[(D("1.25"), D("-3.10")), (None, D("2.00"))]),
    case("total_plus", t.BIGINT, t.BIGINT, rows=[(7, -3)]),
    case("total_minus", D38_2, D38_2, rows=[(D("1.25"), D("-3.10")), (D("2.00"), None)]),
    case("total_minus", t.BIGINT, t.BIGINT, rows=[(7, -3)]),
    case("unscaled", t.Decimal(6, 2), rows=[D("12.34"), D("-0.01"), D("9999.99"), None]),
    case("square", t.BIGINT, rows=[0, -3, 10**12 - 1, None]),
    *(
        case(
            "variance_of",
            t.BIGINT,
            t.Decimal(38, 0),
            t.Decimal(38, 0),
            Literal(sample, t.BOOLEAN),
            Literal(2, t.INT),
            rows=[
                (0, D(0), D(0)),
                (1, D(5), D(25)),
                (3, D(6), D(14)),
                (2, D(2 * 10**12 - 1), D((10**12 - 1) ** 2 + 10**24)),
                (10**9, D(10**18), D(10**27 + 10**9)),
                (None, D(0), D(0)),
            ],
            ulps=2,
        )
        for sample in (True, False)
    ),
    case(
        "avg_decimal",
        D38_2,
        t.BIGINT,
        Literal(None, t.Decimal(14, 6)),
        rows=[(D("10.00"), 3), (D("-10.00"), 3), (D("20.00"), 3), (D("0.00"), 0), (None, 2)],
    ),
    case(
        "avg_decimal",
        D38_2,
        t.BIGINT,
        Literal(None, t.Decimal(14, 6)),
        rows=[(D("0.01"), 20000), (D("-0.01"), 20000), (D("0.01"), 20001)],
    ),
    case(
        "avg_decimal",
        D38_2,
        t.BIGINT,
        Literal(None, t.Decimal(38, 6)),
        rows=[(D("9" * 36 + ".99"), 10000), (D("9" * 36 + ".99"), 3)],
    ),
    case(
        "avg_decimal", t.Decimal(38, 0), t.BIGINT, Literal(None, t.Decimal(14, 4)), rows=[(D(10), 3), (D("9" * 38), 1)]
    ),
]
for name in ("is_finite", "is_nan", "is_positive_infinity", "is_negative_infinity"):
    CASES.append(case(name, t.DOUBLE, rows=[1.5, NAN, INF, -INF, None]))
