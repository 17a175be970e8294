"""CAST and TRY_CAST."""

from __future__ import annotations

import datetime as dt
import math

from headwater import types as t
from tests.functions.harness import Case, D, cast_case

INF, NAN = math.inf, math.nan
D5_2, D10_2, D38_10 = t.Decimal(5, 2), t.Decimal(10, 2), t.Decimal(38, 10)
HUGE = D("9999999999999999999999999999.9999999999")

INTEGERS: list[tuple[t.Integer, list[object]]] = [
    (t.TINYINT, [0, 1, 127, -128, None]),
    (t.SMALLINT, [0, 127, 128, 32767, -32768, None]),
    (t.INT, [0, 1, 128, 32768, 2147483647, -2147483648, None]),
    (t.BIGINT, [0, 255, 2147483648, 9223372036854775807, -9223372036854775808, None, 9007199254740993]),
]
DOUBLES = [0.0, 1.9, -1.9, 0.5, 127.9, -128.9, 1.005, 2.675, 1e10, -1e19, 1e39, 1e300, NAN, INF, -INF, None, 1e-7]
DOUBLES += [99999999.995, 16777217.0, 3.4028235677973366e38, 0.1]
DECIMALS = [D("1.50"), D("-1.50"), D("127.99"), D("-128.99"), D("0.00"), D("99999999.99"), None, D("0.01"), D("300.00")]
WIDE = [HUGE, HUGE.copy_negate(), D("0.0000000001"), D("1234567890123456789.1234567891"), D("0.1000000000"), None]

INTEGER_TEXT = ["12", " 12 ", "+5", "-5", "007", "1.5", "", " ", "1_0", "0x1", "abc", "127", "128", "2147483648", "1e2"]
INTEGER_TEXT += ["99999999999999999999", "\t5\n", "- 5", None, "9223372036854775807", "٣"]
NUMBER_TEXT = [
    "1.5",
    " 1.50 ",
    "1e2",
    "1E-2",
    ".5",
    "5.",
    "+1.5",
    "-1.555",
    "1.005",
    "abc",
    "",
    "1,5",
    "1__0",
    ".",
    None,
]
NUMBER_TEXT += ["99999999.995", "0.004999999999999999999999999999999999999999999999", "1e", "--1", "1e3", "12345678.9"]
DOUBLE_TEXT = ["inf", "-Infinity", "NaN", " nan ", "1e400", "1e-400", "0.1", "16777217", "-0", "nanx", "+inf"]
BOOLEAN_TEXT = ["true", "T", " yes ", "1", "FALSE", "n", "0", "No", "on", "off", "2", "", "tru", None]
DATE_TEXT = ["2020-02-29", "2021-02-29", "2020", "2020-1", "2020-1-9", "2020-01-01 xx", "2020-01-01T10:00", "20200101"]
DATE_TEXT += [
    " 2020-01-01 ",
    "2020-01-01x",
    "",
    "+2020-01-01",
    "2020-13-01",
    "2020-00-10",
    "20-01-01",
    "0001-01-01",
    None,
]
DATE_TEXT += ["2020-01-", "2020/01/01", "9999-12-31", "2020-01-01 \n"]
MOMENT_TEXT = ["2020-02-29 01:02:03", "2020-02-29T01:02:03.5", "2020-02-29 1:2:3", "2020-02-29 10", "2020-02-29 10:11"]
MOMENT_TEXT += [
    "2020-02-29",
    "2020",
    "2020-2",
    "2020-02-29 01:02:03.1234567",
    "2020-02-29 01:02:03Z",
    "2020-02-30 00:00:00",
]
MOMENT_TEXT += ["2020-02-29 01:02:03+01:30", "2020-02-29 01:02:03 -5", "2020-02-29 01:02:03 UTC", "2020-02-29 24:00:00"]
MOMENT_TEXT += [
    "2020-02-29 01:60:00",
    "2020-02-29 01:02:03+19:00",
    "2020-02-29 01:02:03.",
    "x",
    "",
    None,
    " 2020-01-01 1:1:1 ",
]
MOMENT_TEXT += [
    "2020-02-29 01:02:03+01:75",
    "1969-12-31 23:59:59.999999",
    "0001-01-01 00:00:00",
    "2020-02-29 01:02:03 +18:00",
]

MOMENTS = [
    dt.datetime(2020, 2, 29, 10, 11, 12, 700000),
    dt.datetime(1969, 12, 31, 23, 59, 59, 500000),
    dt.datetime(1970, 1, 1),
    dt.datetime(1, 1, 1),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
    None,
]
DATES = [dt.date(2020, 2, 29), dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1969, 12, 31), None]

CASES: list[Case] = []
for kind, values in INTEGERS:
    for target in (t.TINYINT, t.SMALLINT, t.INT, t.BIGINT, t.FLOAT, t.DOUBLE, t.BOOLEAN, t.STRING, D5_2, D10_2, D38_10):
        if target != kind:
            CASES.append(cast_case(kind, target, *values))
    CASES.append(cast_case(t.DOUBLE, kind, *DOUBLES))
    CASES.append(cast_case(t.FLOAT, kind, 1.5, -1.5, 16777216.0, NAN, None))
    CASES.append(cast_case(D10_2, kind, *DECIMALS))
    CASES.append(cast_case(D38_10, kind, *WIDE))
    CASES.append(cast_case(t.BOOLEAN, kind, True, False, None))
    CASES.append(cast_case(t.STRING, kind, *INTEGER_TEXT))
    CASES.append(cast_case(t.STRING, kind, *INTEGER_TEXT, safe=True))
    CASES.append(cast_case(t.DOUBLE, kind, *DOUBLES, safe=True))
    CASES.append(cast_case(t.BIGINT, kind, *INTEGERS[3][1], safe=True))
    CASES.append(cast_case(t.TIMESTAMP, kind, *MOMENTS))
for target in (D5_2, D10_2, t.Decimal(38, 2), t.Decimal(38, 0), t.Decimal(2, 2)):
    CASES.append(cast_case(t.DOUBLE, target, *DOUBLES))
    CASES.append(cast_case(t.FLOAT, target, 0.5, 0.10000000149011612, NAN, None))
    CASES.append(cast_case(D38_10, target, *WIDE))
    CASES.append(cast_case(t.STRING, target, *NUMBER_TEXT))
    CASES.append(cast_case(t.STRING, target, *NUMBER_TEXT, safe=True))
    CASES.append(cast_case(t.DOUBLE, target, *DOUBLES, safe=True))
    CASES.append(cast_case(t.BOOLEAN, target, True, False, None, safe=True))
for target in (t.DOUBLE, t.FLOAT, t.BOOLEAN, t.STRING, D5_2, t.Decimal(9, 1), t.Decimal(12, 4)):
    CASES.append(cast_case(D10_2, target, *DECIMALS))
for target in (t.DOUBLE, t.FLOAT):
    CASES.append(cast_case(D38_10, target, *WIDE))
    CASES.append(cast_case(t.STRING, target, *NUMBER_TEXT, *DOUBLE_TEXT))
    CASES.append(cast_case(t.STRING, target, *NUMBER_TEXT, *DOUBLE_TEXT, safe=True))
    CASES.append(cast_case(t.BOOLEAN, target, True, False, None))
CASES += [
    cast_case(t.DOUBLE, t.FLOAT, *DOUBLES),
    cast_case(t.FLOAT, t.DOUBLE, 0.10000000149011612, NAN, None),
    cast_case(t.DOUBLE, t.BOOLEAN, *DOUBLES),
    cast_case(t.Decimal(4, 4), t.STRING, D("0.0005"), D("-0.5000"), D("0.0000"), None),
    cast_case(t.Decimal(38, 38), t.STRING, D("0." + "0" * 37 + "5"), D("-0." + "9" * 38)),
    cast_case(t.BOOLEAN, t.STRING, True, False, None),
    cast_case(t.STRING, t.BOOLEAN, *BOOLEAN_TEXT),
    cast_case(t.STRING, t.BOOLEAN, *BOOLEAN_TEXT, safe=True),
    cast_case(t.STRING, t.DATE, *DATE_TEXT),
    cast_case(t.STRING, t.DATE, *DATE_TEXT, safe=True),
    cast_case(t.STRING, t.TIMESTAMP, *MOMENT_TEXT),
    cast_case(t.STRING, t.TIMESTAMP, *MOMENT_TEXT, safe=True),
    cast_case(t.STRING, t.BINARY, "abc", "", "é😀", None),
    cast_case(t.DATE, t.STRING, *DATES),
    cast_case(t.DATE, t.TIMESTAMP, *DATES),
    cast_case(t.TIMESTAMP, t.STRING, *MOMENTS, dt.datetime(2020, 1, 1, 10, 0, 0, 120000)),
    cast_case(t.TIMESTAMP, t.DATE, *MOMENTS),
    cast_case(t.TIMESTAMP, t.DOUBLE, *MOMENTS),
    cast_case(t.INT, t.TIMESTAMP, 0, 1, -1, 2147483647, None),
    cast_case(t.BIGINT, t.TIMESTAMP, 0, -1, 4102444800, None),
    cast_case(t.BIGINT, t.TIMESTAMP, 4102444800, -4102444800, safe=True),
]
