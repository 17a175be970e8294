"""Arithmetic, with every width of integer, decimals up to 38 digits, and doubles that are not numbers."""

from __future__ import annotations

import math

from headwater import types as t
from headwater.algebra.scalars import Literal
from tests.functions.harness import Case, D, case, lit

INF, NAN = math.inf, math.nan
D10_2, D12_4, D15_2, D38_4, D38_10 = (
    t.Decimal(10, 2),
    t.Decimal(12, 4),
    t.Decimal(15, 2),
    t.Decimal(38, 4),
    t.Decimal(38, 10),
)
D38_0 = t.Decimal(38, 0)

INTS = [(7, 2), (-7, 2), (7, -2), (-7, -2), (0, 5), (None, 2), (2, None), (None, None), (2147483647, 1)]
INTS += [(-2147483648, -1), (-2147483648, 1), (5, 0), (None, 0)]
LONGS = [(7, 2), (9223372036854775807, 1), (-9223372036854775808, -1), (3037000500, 3037000500), (5, 0), (None, 0)]
DOUBLES = [(7.5, 2.0), (-7.5, 2.0), (7.5, -2.0), (0.1, 0.2), (NAN, 1.0), (INF, -INF), (INF, 2.0), (1.0, INF)]
DOUBLES += [(1e308, 10.0), (5.0, 0.0), (5.0, -0.0), (None, 0.0), (0.0, 0.0), (NAN, 0.0)]
SMALL = [(D("1.55"), D("2.50")), (D("-1.55"), D("2.50")), (D("99999999.99"), D("99999999.99")), (D("0.00"), D("0.01"))]
SMALL += [(None, D("1.00")), (D("1.00"), None), (D("1.00"), D("0.00")), (None, D("0.00")), (D("10.00"), D("-3.00"))]
MIXED = [(D("1.55"), D("2.5000")), (D("-99999999.99"), D("0.0001")), (D("5.00"), D("3.3333")), (D("7.00"), D("0.0000"))]
WIDE = [
    (D("1234567.1234567891"), D("-1234567.9876543219")),
    (D("0.0000000001"), D("0.0000000001")),
    (D("99999999999.0000000005"), D("10000000.0000000001")),
    (D("9999999999999999.9999999999"), D("99999.9999999999")),
    (D("1.0000000000"), D("3.0000000000")),
    (D("2.0000000000"), D("-3.0000000000")),
    (None, D("1.0000000000")),
]
VERY_WIDE = [
    (D("9999999999999999999999999999999999.9999"), D("2.0000")),
    (D("5.0000"), D("-7.0000")),
    (D("1000000000000000000000.0000"), D("3.0000")),
    (D("0.0001"), D("1000000000000000000000.0000")),
    (D("1.0000"), D("0.0000")),
]

OPERATORS = ["+", "-", "*", "/", "%"]

CASES: list[Case] = []
for op in [*OPERATORS, "div"]:
    CASES += [
        case(op, t.INT, t.INT, rows=INTS),
        case(op, t.BIGINT, t.BIGINT, rows=LONGS),
        case(op, t.TINYINT, t.SMALLINT, rows=[(100, 100), (-128, 32767), (5, None)]),
        case(op, t.TINYINT, t.TINYINT, rows=[(100, 27), (100, 28), (-128, -1), (-100, 100)]),
        case(op, t.INT, lit(3), rows=[5, -5, None, 2147483647]),
        case(op, lit(10), t.BIGINT, rows=[3, -3, 0, None]),
    ]
for op in OPERATORS:
    CASES += [
        case(op, t.DOUBLE, t.DOUBLE, rows=DOUBLES),
        case(op, t.FLOAT, t.FLOAT, rows=[(1.5, 0.25), (16777216.0, 1.0), (3.0000000054977558e38, 2.0), (1.0, 0.0)]),
        case(op, t.FLOAT, t.INT, rows=[(1.5, 16777217), (None, 1)]),
        case(op, t.BIGINT, t.DOUBLE, rows=[(9007199254740993, 1.0), (1, 0.0)]),
        case(op, D10_2, D10_2, rows=SMALL),
        case(op, D10_2, D12_4, rows=MIXED),
        case(op, D10_2, t.INT, rows=[(D("1.55"), 7), (D("-99999999.99"), -2147483648), (D("1.00"), 0)]),
        case(op, t.BIGINT, D10_2, rows=[(9223372036854775807, D("99999999.99")), (-5, D("0.03")), (1, None)]),
        case(op, D10_2, lit(7), rows=[D("1.55"), D("-99999999.99"), None]),
        case(op, lit(1), D10_2, rows=[D("0.07"), D("99999999.99"), D("-3.00")]),
        case(op, D10_2, lit(D("0.5")), rows=[D("1.55"), D("-1.55")]),
        case(op, D10_2, t.DOUBLE, rows=[(D("1.55"), 2.5), (D("0.10"), 0.0)]),
        case(op, D38_10, D38_10, rows=WIDE),
        case(op, D15_2, t.Decimal(25, 2), rows=[(D("1.00"), D("3.00")), (D("9999999999999.99"), D("7.77"))]),
        case(op, t.Decimal(38, 2), t.Decimal(38, 2), rows=[(D("1.55"), D("2.50")), (D("9" * 36 + ".99"), D("0.01"))]),
        case(op, t.INT, lit(None), rows=[5, None]),
        case(op, D10_2, lit(None), rows=[D("1.00")]),
    ]
for op in ["+", "-", "*", "/"]:
    CASES += [
        case(op, D38_4, D38_4, rows=VERY_WIDE),
        case(op, D38_0, D38_0, rows=[(D("1" + "0" * 37), D(9)), (D(5), D(-7)), (D("9" * 38), D(1)), (D(1), D(3))]),
        case(
            op, D10_2, D38_4, rows=[(D("1.55"), D("3.3333")), (D("99999999.99"), D("0.0007")), (D("1.00"), D("7.0000"))]
        ),
    ]
CASES += [
    case("/", D10_2, D38_4, rows=[(D("99999999.99"), D("12345678901234567890123.4567")), (D("-0.01"), D("9.0000"))]),
    case("negate", t.INT, rows=[5, -5, 0, None, -2147483648], spark="-{0}"),
    case("negate", t.TINYINT, rows=[5, -128], spark="-{0}"),
    case("negate", t.BIGINT, rows=[5, -9223372036854775808], spark="-{0}"),
    case("negate", D10_2, rows=[D("1.50"), D("0.00"), D("-99999999.99"), None], spark="-{0}"),
    case("negate", t.DOUBLE, rows=[1.5, 0.0, NAN, INF], spark="-{0}"),
    case("negative", t.INT, rows=[5, None]),
    case("positive", t.INT, rows=[5, None]),
    case("abs", t.INT, rows=[5, -5, None, -2147483648]),
    case("abs", t.BIGINT, rows=[-5, -9223372036854775808]),
    case("abs", D10_2, rows=[D("-1.50"), D("99999999.99"), None]),
    case("abs", t.DOUBLE, rows=[-1.5, -0.0, NAN, -INF]),
    case("mod", t.INT, t.INT, rows=INTS),
    case("in", t.INT, lit(1), lit(D("2.5")), rows=[1, 2, None], spark="{0} IN ({1}, {2})"),
    case("*", Literal(D("1.00"), t.Decimal(3, 2)), D38_10, rows=[D("1.0000000005"), D("-1.0000000005")]),
]
