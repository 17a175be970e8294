"""Functions of numbers."""

from __future__ import annotations

import datetime as dt
import math

from headwater import types as t
from tests.functions.cases.numbers import D10_2, D38_0, D38_4, DOUBLES, INTS, LONGS, SMALL
from tests.functions.harness import Case, D, case, lit

INF, NAN = math.inf, math.nan
REALS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 1e-10, 10.0, 123.456, -123.456, 1e300, INF, -INF, NAN, None]
UNIT = [0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0, INF, NAN, None]
HALVES = [2.5, -2.5, 3.5, 0.5, -0.5, 2.675, 1.005, 1e300, 4503599627370495.5, 1.5e15, NAN, INF, None, 0.1, 123.456789]

CASES: list[Case] = []
for name in ("sqrt", "cbrt", "exp", "sin", "cos", "tan", "atan", "sinh", "cosh", "tanh", "asinh"):
    CASES.append(
        case(
            name,
            t.DOUBLE,
            rows=[x for x in REALS if x is None or name not in ("sin", "cos", "tan") or x != 1e300],
            ulps=4,
        )
    )
for name in ("asin", "acos", "acosh", "atanh"):
    CASES.append(case(name, t.DOUBLE, rows=UNIT, ulps=4))
for name in ("cot", "sec", "csc"):
    CASES.append(case(name, t.DOUBLE, rows=[0.0, 0.5, -0.5, 1.0, 2.0, INF, NAN, None], ulps=4))
for name in ("ln", "log10", "log2", "log"):
    CASES.append(case(name, t.DOUBLE, rows=[1.0, 10.0, 8.0, 0.0, -1.0, INF, NAN, 1e-300, None], ulps=2))
CASES += [
    case(
        "log",
        t.DOUBLE,
        t.DOUBLE,
        rows=[(2.0, 8.0), (10.0, 1000.0), (1.0, 5.0), (2.0, 0.0), (-1.0, 5.0), (None, 1.0)],
        ulps=2,
    ),
    case("atan2", t.DOUBLE, t.DOUBLE, rows=[(1.0, 0.0), (0.0, -1.0), (-1.0, -1.0), (NAN, 1.0), (None, 1.0)], ulps=2),
    case("degrees", t.DOUBLE, rows=[3.14159, -1.0, 0.0, INF, NAN, None], ulps=2),
    case("radians", t.DOUBLE, rows=[180.0, -90.0, 0.0, INF, NAN, None], ulps=2),
    case("rint", t.DOUBLE, rows=HALVES),
    case("pi", rows=[()]),
    case("e", rows=[()]),
    case("sign", t.DOUBLE, rows=REALS),
    case("sign", t.INT, rows=[5, -5, 0, None]),
    case("signum", D10_2, rows=[D("1.50"), D("-0.01"), D("0.00")]),
    case("isnan", t.DOUBLE, rows=[1.0, NAN, INF, None]),
    case("isnan", t.FLOAT, rows=[1.5, NAN, None]),
    case("nanvl", t.DOUBLE, t.DOUBLE, rows=[(1.0, 2.0), (NAN, 2.0), (None, 2.0), (1.0, None), (NAN, None)]),
    case("factorial", t.INT, rows=[0, 5, 20, 21, -1, None]),
]
POWERS = [
    (2.0, 3.0),
    (2.0, 0.5),
    (-8.0, 1.0),
    (-8.0, 0.5),
    (0.0, -1.0),
    (0.0, 0.0),
    (NAN, 0.0),
    (1.0, NAN),
    (-1.0, INF),
]
POWERS += [(1e200, 2.0), (-1e200, 3.0), (2.0, -1074.0), (INF, -1.0), (None, 1.0), (1.0, None), (-0.0, -1.0), (0.5, INF)]
CASES += [
    case("pow", t.DOUBLE, t.DOUBLE, rows=POWERS, ulps=2),
    case("power", t.INT, lit(2), rows=[3, -3, None], ulps=1),
    case("pmod", t.INT, t.INT, rows=INTS),
    case("pmod", t.BIGINT, t.BIGINT, rows=LONGS),
    case("pmod", t.TINYINT, t.TINYINT, rows=[(-100, 30), (100, -30), (-128, -1)]),
    case("pmod", t.DOUBLE, t.DOUBLE, rows=DOUBLES),
    case("pmod", D10_2, D10_2, rows=SMALL),
]
for name in ("greatest", "least"):
    CASES += [
        case(name, t.INT, t.INT, rows=[(1, 2), (2, 1), (None, 1), (1, None), (None, None)]),
        case(name, t.INT, t.BIGINT, D10_2, rows=[(1, 2, D("3.50")), (None, None, D("-1.00"))]),
        case(name, t.DOUBLE, t.DOUBLE, rows=[(1.0, NAN), (NAN, 1.0), (INF, NAN), (-INF, 1.0), (None, NAN)]),
        case(
            name, t.STRING, t.STRING, rows=[("a", "B"), ("a", "ab"), ("é", "z"), ("", None), ("\U0001f600", "\uffee")]
        ),
        case(name, t.DATE, t.DATE, rows=[(dt.date(2020, 2, 29), dt.date(1969, 1, 1))]),
        case(name, t.BOOLEAN, t.BOOLEAN, rows=[(True, False), (None, True)]),
    ]
CASES += [case("round", t.DOUBLE, lit(n), rows=HALVES) for n in (0, 1, 2, 5, 15)]
CASES += [
    case("round", D10_2, lit(n), rows=[D("2.25"), D("-2.25"), D("2.50"), D("-99999999.99"), D("0.05"), None])
    for n in (0, 1, 2, 5)
]
CASES += [
    case("round", D10_2, lit(n), rows=[D("25.25"), D("-24.99"), D("15.00"), D("-99999999.99"), D("4.99"), None])
    for n in (-1, -3, -8, -9, -20)
]
CASES += [
    case("round", t.INT, lit(n), rows=[25, -25, 24, 0, 2147483647, -2147483648, None]) for n in (1, 0, -1, -2, -9, -12)
]
CASES += [case("round", t.BIGINT, lit(n), rows=[25, 9223372036854775807, -9223372036854775805]) for n in (-1, -18)]
CASES += [
    case("round", t.DOUBLE, rows=HALVES),
    case("round", D10_2, rows=[D("2.50"), D("-2.50"), D("99999999.99"), None]),
    case("round", t.TINYINT, lit(-1), rows=[125, 124, -125, 5]),
    case("round", D38_4, lit(2), rows=[D("9" * 34 + ".9999"), D("1.0050")]),
    case("round", D38_0, lit(-1), rows=[D("9" * 38), D(15)]),
]
for name in ("ceil", "ceiling", "floor"):
    CASES += [
        case(name, t.DOUBLE, rows=[2.5, -2.5, 2.0, -0.5, 1e18, -9.223372036854776e18, 1e30, NAN, INF, None]),
        case(name, D10_2, rows=[D("2.01"), D("-2.01"), D("99999999.99"), D("-99999999.99"), D("5.00"), None]),
        case(name, D38_4, rows=[D("9" * 34 + ".9999"), D("-" + "9" * 34 + ".9999")]),
        case(name, t.INT, rows=[5, -5, None]),
        case(name, t.BIGINT, rows=[9223372036854775807]),
    ]
for op in ("&", "|", "^"):
    CASES += [
        case(op, t.INT, t.INT, rows=[(5, 3), (-1, 7), (0, 0), (None, 1), (-2147483648, 2147483647)]),
        case(op, t.TINYINT, t.BIGINT, rows=[(5, 3), (-1, 4294967296)]),
        case(op, t.INT, lit(6), rows=[5, -1, None]),
    ]
SHIFTS = [(1, 3), (1, 33), (-5, 30), (-8, 1), (1, -1), (2147483647, 1), (-1, 31), (None, 1), (1, None), (0, 5)]
for name in ("shiftleft", "shiftright", "shiftrightunsigned"):
    CASES += [
        case(name, t.INT, t.INT, rows=SHIFTS),
        case(name, t.BIGINT, t.INT, rows=[(1, 63), (-8, 60), (9223372036854775807, 1), (-1, 64), (-1, 1), (5, -2)]),
        case(name, t.TINYINT, t.INT, rows=[(1, 3), (-128, 1)]),
    ]
CASES += [
    case("~", t.INT, rows=[5, -1, 0, None, 2147483647], spark="~{0}"),
    case("~", t.TINYINT, rows=[5, -128], spark="~{0}"),
    case("bit_count", t.BIGINT, rows=[0, 1, -1, 255, None]),
    case("bit_count", t.INT, rows=[-1, 7]),
    case("bit_count", t.BOOLEAN, rows=[True, False, None]),
    case("bin", t.BIGINT, rows=[5, 0, -1, None, 9223372036854775807]),
    case("bin", t.TINYINT, rows=[-1, 5]),
    case("hex", t.BIGINT, rows=[255, 0, -1, None]),
    case("hex", t.INT, rows=[-1, 17]),
    case("hex", t.STRING, rows=["abc", "", "é", None]),
    case("hex", t.BINARY, rows=[b"\x1f\x00", b"", None]),
    case("unhex", t.STRING, rows=["4A4B", "4a4", "", "zz", "a", " 41", None]),
]

TIES = [2.5, 3.5, -2.5, 0.5, -0.5, 1.5, 0.125, 0.375, 2.675, 1.005, 1e300, 4503599627370495.5, NAN, INF, -INF, None]
TIES += [5.000000000000001e-7, 5e-7, 1.5e-6, 0.25, 0.35, 12345.65, -0.0, 1e-300, 123456789.5, 0.045, 25.0, 1e15]
CASES += [case("bround", t.DOUBLE, lit(n), rows=TIES) for n in (0, 1, 2, 6, 15)]
CASES += [
    case(
        "bround", D10_2, lit(n), rows=[D("2.25"), D("-2.35"), D("2.50"), D("-99999999.99"), D("0.05"), None, D("25.00")]
    )
    for n in (0, 1, 2, 5, -1, -3, -8, -9, -20)
]
CASES += [
    case("bround", t.INT, lit(n), rows=[25, 35, -25, 24, 0, 2147483647, -2147483648, None])
    for n in (1, 0, -1, -2, -9, -12)
]
CASES += [
    case("bround", t.DOUBLE, rows=TIES),
    case("bround", D10_2, rows=[D("2.50"), D("-3.50"), D("99999999.99"), None]),
    case("bround", t.BIGINT, lit(-1), rows=[25, 9223372036854775807, -9223372036854775805, 9223372036854775805]),
    case("bround", t.TINYINT, lit(-1), rows=[125, 124, -125, 5, 15]),
    case("bround", D38_4, lit(2), rows=[D("9" * 34 + ".9999"), D("1.0050"), D("1.0150")]),
    case("bround", t.STRING, rows=["2.5", "x", None]),
]
for name in ("ceil", "ceiling", "floor"):
    for n in (0, 1, 2, 3, -1, -3, -9):
        CASES.append(
            case(
                name, D10_2, lit(n), rows=[D("2.01"), D("-2.01"), D("99999999.99"), D("-99999999.99"), D("5.00"), None]
            )
        )
    CASES += [
        case(name, t.INT, lit(-1), rows=[5, -5, 0, 10, 2147483647, -2147483648, None]),
        case(name, t.INT, lit(2), rows=[5, None]),
        case(name, t.BIGINT, lit(-2), rows=[9223372036854775807, -9223372036854775807, 1]),
        case(name, t.DOUBLE, lit(1), rows=[-12.345, 1.05, 0.1 + 0.2, 1e14, -0.0, 1e-20, 1e20, None, NAN]),
        case(name, t.DOUBLE, lit(-2), rows=[-12.345, 1e14, 0.0]),
        case(name, D38_4, lit(1), rows=[D("1.2345"), D("-1.2345")]),
    ]
PLANE = [(3.0, 4.0), (0.0, 0.0), (-0.0, 0.0), (1e200, 1e200), (1e-200, 1e-200), (INF, NAN), (NAN, 1.0), (-INF, 1.0)]
PLANE += [(None, 1.0), (1.0, None), (1.0, 1e-300), (-5.0, 12.0)]
NEAR = [0.0, -0.0, 1e-10, -1e-10, 1e-300, 0.5, -0.5, 1.0, -1.0, -2.0, 20.0, -40.0, 710.0, INF, -INF, NAN, None]
BUCKETS = [(5.3, 0.2, 10.6, 5), (-2.1, 1.3, 3.4, 3), (8.1, 0.0, 5.7, 4), (-0.9, 5.2, 0.5, 2), (1.0, 1.0, 1.0, 2)]
BUCKETS += [(1.0, 0.0, 2.0, 0), (1.0, 0.0, 2.0, -1), (0.2, 0.2, 10.6, 5), (10.6, 0.2, 10.6, 5), (NAN, 0.0, 1.0, 2)]
BUCKETS += [(1.0, NAN, 1.0, 2), (1.0, 0.0, INF, 2), (INF, 0.0, 1.0, 3), (5.0, 5.0, 1.0, 4), (1.0, 5.0, 1.0, 4)]
BUCKETS += [(3.0, 5.0, 1.0, 4), (1.0, 0.0, 2.0, 9223372036854775807), (None, 0.0, 1.0, 2), (1.0, 0.0, 2.0, None)]
BUCKETS += [(-INF, 0.0, 1.0, 3), (0.5, 0.0, 1.0, 9223372036854775806)]
CASES += [
    case("hypot", t.DOUBLE, t.DOUBLE, rows=PLANE, ulps=2),
    case("log1p", t.DOUBLE, rows=NEAR, ulps=4),
    case("expm1", t.DOUBLE, rows=NEAR, ulps=4),
    case("width_bucket", t.DOUBLE, t.DOUBLE, t.DOUBLE, t.BIGINT, rows=BUCKETS),
    case("width_bucket", D10_2, t.INT, t.INT, t.INT, rows=[(D("2.50"), 0, 10, 4), (None, 0, 10, 4)]),
    case("equal_null", t.INT, t.INT, rows=[(1, 1), (1, 2), (None, 1), (None, None)]),
    case("equal_null", t.DOUBLE, t.DOUBLE, rows=[(NAN, NAN), (0.0, -0.0)]),
]
for name in ("bit_get", "getbit"):
    CASES += [
        case(name, t.INT, t.INT, rows=[(11, 0), (11, 2), (11, 32), (11, -1), (-1, 31), (None, 1), (1, None)]),
        case(name, t.BIGINT, t.INT, rows=[(-1, 63), (1, 64), (-9223372036854775808, 63), (-9223372036854775808, 0)]),
        case(name, t.TINYINT, t.INT, rows=[(-128, 7), (1, 8)]),
    ]
for name in ("try_add", "try_subtract", "try_multiply", "try_divide", "try_mod"):
    CASES += [
        case(name, t.INT, t.INT, rows=INTS),
        case(name, t.BIGINT, t.BIGINT, rows=LONGS),
        case(name, t.TINYINT, t.TINYINT, rows=[(100, 30), (-128, -1), (-128, 1), (5, 0), (None, 1)]),
        case(name, t.DOUBLE, t.DOUBLE, rows=DOUBLES),
        case(name, D10_2, D10_2, rows=SMALL),
        case(name, D38_0, t.INT, rows=[(D("9" * 38), 1), (D("9" * 38), -1), (D(5), 0), (None, 1)]),
    ]
