"""Dates, timestamps and intervals."""

from __future__ import annotations

import datetime as dt
import math

from headwater import types as t
from headwater.algebra.scalars import Literal
from tests.functions.harness import Case, D, case, lit

DATE, MOMENT, SPAN, MONTHS = t.DATE, t.TIMESTAMP, t.DAY_TIME_INTERVAL, t.YEAR_MONTH_INTERVAL
DAY = 86_400_000_000


def day(text: str) -> dt.date:
    return dt.date.fromisoformat(text)


def moment(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


DAYS = [
    day(d) for d in ("2020-02-29", "2021-01-01", "1969-12-31", "1900-02-28", "2020-12-31", "0001-01-01", "9999-12-31")
]
DAYS += [day(d) for d in ("2018-12-31", "2020-03-01", "2020-01-31", "2015-12-28", "1582-10-10")]
TIMES = [
    moment(m) for m in ("2020-02-29 10:11:12.123456", "1969-12-31 23:59:59.999999", "1970-01-01", "2020-05-17 12:34:56")
]
TIMES += [moment(m) for m in ("1960-05-17 12:34:56.5", "0001-01-02 00:00:00.000001", "9999-12-31 23:59:59.999999")]

CASES: list[Case] = []
for name in ("year", "quarter", "month", "day", "dayofmonth", "dayofyear", "dayofweek", "weekday", "weekofyear"):
    CASES.append(case(name, DATE, rows=[*DAYS, None]))
    CASES.append(case(name, MOMENT, rows=[*TIMES, None]))
for name in ("hour", "minute", "second"):
    CASES.append(case(name, MOMENT, rows=[*TIMES, None]))
    CASES.append(case(name, DATE, rows=DAYS[:2]))
for part in (
    "YEAR",
    "quarter",
    "MONTH",
    "WEEK",
    "DAY",
    "DOW",
    "dow_iso",
    "doy",
    "yearofweek",
    "HOUR",
    "MINUTE",
    "SECOND",
):
    CASES.append(case("date_part", lit(part), MOMENT, rows=[*TIMES, None]))
    CASES.append(case("datepart", lit(part), DATE, rows=[*DAYS, None]))
CASES += [
    case("date_part", lit("second"), MOMENT, rows=TIMES, spark="extract(SECOND FROM {1})"),
    case(
        "date_add",
        DATE,
        t.INT,
        rows=[(day("2020-02-28"), n) for n in (0, 1, 2, -59, 366)] + [(None, 1), (day("2020-01-01"), None)],
    ),
    case("date_add", MOMENT, t.TINYINT, rows=[(TIMES[0], 1), (TIMES[1], 127)]),
    case("date_add", t.STRING, t.INT, rows=[("2020-02-28", 2), ("x", 1), (None, 1)]),
    case("dateadd", DATE, lit(5), rows=[day("2020-02-28"), None]),
    case("date_sub", DATE, t.INT, rows=[(day("2020-03-01"), n) for n in (0, 1, -1, 61)] + [(None, 1)]),
    case(
        "datediff",
        DATE,
        DATE,
        rows=[(day("2020-03-01"), day("2020-02-01")), (day("2020-01-01"), day("2020-01-02")), (None, DAYS[0])],
    ),
    case("datediff", MOMENT, t.STRING, rows=[(TIMES[0], "2020-02-28"), (TIMES[0], None)]),
    case("date_diff", DATE, DATE, rows=[(day("9999-12-31"), day("0001-01-01"))]),
    case(
        "add_months",
        DATE,
        t.INT,
        rows=[(day("2020-01-31"), n) for n in (1, 13, -2, 0, 12)] + [(day("2020-02-29"), 12), (None, 1)],
    ),
    case("last_day", DATE, rows=[*DAYS, None]),
    case("last_day", MOMENT, rows=TIMES),
]
BETWEEN = [
    ("2020-03-31 12:00:00", "2020-02-29"),
    ("2020-03-15 12:34:56", "2019-01-31 01:02:03.999"),
    ("2020-01-10", "2020-03-15"),
]
BETWEEN += [
    ("2020-02-28", "2020-01-31"),
    ("2020-02-15 10:00:00", "2020-01-15 09:00:00"),
    ("1969-12-31 23:59:59", "1970-01-01"),
]
CASES += [
    case("months_between", MOMENT, MOMENT, rows=[(moment(a), moment(b)) for a, b in BETWEEN] + [(None, TIMES[0])]),
    case("months_between", DATE, DATE, rows=[(DAYS[0], DAYS[1]), (DAYS[1], DAYS[0]), (DAYS[3], DAYS[0])]),
]
for word in ("MO", "tue", "Wednesday", "TH", "fri", "SAT", "sunday"):
    CASES.append(case("next_day", DATE, lit(word), rows=[*[d for d in DAYS if d.year < 9999], None]))
for word in ("YEAR", "yyyy", "yy", "QUARTER", "month", "MM", "mon", "WEEK", "day", "decade"):
    CASES.append(case("trunc", DATE, lit(word), rows=[*DAYS, None]))
UNITS = (
    "YEAR",
    "yyyy",
    "yy",
    "QUARTER",
    "month",
    "MM",
    "mon",
    "WEEK",
    "day",
    "DD",
    "HOUR",
    "minute",
    "second",
    "millisecond",
)
for word in (*UNITS, "MICROSECOND", "xx"):
    CASES.append(case("date_trunc", lit(word), MOMENT, rows=[*TIMES, None]))
CASES += [
    case("date_trunc", lit("month"), DATE, rows=DAYS),
    case(
        "make_date",
        t.INT,
        t.INT,
        t.INT,
        rows=[(2020, 2, 29), (2021, 2, 29), (2020, 13, 1), (2020, 0, 1), (None, 1, 1), (1, 1, 1)],
    ),
    case("to_date", t.STRING, rows=["2020-02-29", "2020-2-9", "2020-02-30", "x", None]),
    case("to_date", MOMENT, rows=TIMES),
    case("to_timestamp", t.STRING, rows=["2020-02-29 01:02:03", "2020-02-29", "x", None]),
    case("to_timestamp", DATE, rows=DAYS),
    case("unix_seconds", MOMENT, rows=[*TIMES, None]),
    case("unix_timestamp", MOMENT, rows=[*TIMES, None]),
    case("to_unix_timestamp", DATE, rows=DAYS),
    case("unix_millis", MOMENT, rows=[*TIMES, None]),
    case("unix_micros", MOMENT, rows=[*TIMES, None]),
    case("timestamp_seconds", t.BIGINT, rows=[0, 1, -1, 4102444800, 9223372036854775807, None]),
    case("timestamp_seconds", t.INT, rows=[2147483647, -2147483648]),
    case("timestamp_millis", t.BIGINT, rows=[0, 1, -1, 9223372036854775807, None]),
    case("timestamp_micros", t.BIGINT, rows=[0, 5, -1, None]),
    case("unix_date", DATE, rows=[*DAYS, None]),
    case("date_from_unix_date", t.INT, rows=[0, -5, 18262, None]),
    case("from_unixtime", t.BIGINT, rows=[0, -1, 1577836800, None]),
    case("from_unixtime", t.BIGINT, lit("yyyy-MM"), rows=[0, 1577836800]),
]
FORMATS = [
    "yyyy-MM",
    "yyyy-MM-dd HH:mm:ss",
    "yyyyMMdd",
    "hh:mm a",
    "EEE, dd MMM yy",
    "MMMM EEEE",
    "HH:mm:ss.SSS",
    "SSSSSS",
]
FORMATS += ["'Q'MM ''dd", "DDD/yyyy", "100% E"]
for pattern in FORMATS:
    CASES.append(
        case(
            "date_format",
            MOMENT,
            lit(pattern),
            rows=[*TIMES, None, moment("2020-01-01 00:30:00"), moment("2020-01-01 12:00:00")],
        )
    )
CASES.append(case("date_format", DATE, lit("yyyy-MM-dd"), rows=DAYS))

# --- intervals ---

SPANS = [0, 1, -1, DAY, -DAY, 90 * DAY + 1, None, 3_600_000_000]
MONTH_COUNTS = [0, 1, -1, 12, 13, -25, None]


def days(n: int) -> Literal:
    return Literal(n * DAY, SPAN)


CASES += [
    case("+", MOMENT, SPAN, rows=[(m, s) for m in TIMES[:4] for s in SPANS] + [(None, 1)]),
    case("-", MOMENT, SPAN, rows=[(m, s) for m in TIMES[:4] for s in SPANS]),
    case("+", SPAN, MOMENT, rows=[(s, TIMES[0]) for s in SPANS]),
    case("+", MOMENT, MONTHS, rows=[(moment("2020-01-31 10:00:00"), n) for n in MONTH_COUNTS]),
    case("-", MOMENT, MONTHS, rows=[(moment("2020-03-31 10:00:00"), n) for n in MONTH_COUNTS]),
    case("+", DATE, MONTHS, rows=[(day("2020-01-31"), n) for n in MONTH_COUNTS]),
    case("-", DATE, MONTHS, rows=[(day("2020-03-31"), n) for n in MONTH_COUNTS]),
    case("+", MONTHS, DATE, rows=[(1, day("2020-01-31"))]),
    case("+", DATE, SPAN, rows=[(day("2020-01-31"), s) for s in SPANS if s is None or s % DAY]),
    case("-", DATE, SPAN, rows=[(day("2020-01-31"), s) for s in SPANS if s is None or s % DAY]),
    case("+", DATE, days(1), rows=[*DAYS[:4], None], spark="{0} + INTERVAL 1 DAY"),
    case("-", DATE, days(90), rows=[*DAYS[:4], None], spark="{0} - INTERVAL '90' DAY"),
    case("+", MOMENT, Literal(5_400_000_000, SPAN), rows=[*TIMES[:4], None], spark="{0} + INTERVAL 90 MINUTES"),
    case("+", MOMENT, Literal(14, MONTHS), rows=[*TIMES[:4], None], spark="{0} + INTERVAL '1-2' YEAR TO MONTH"),
    case("+", DATE, t.INT, rows=[(DAYS[0], 1), (DAYS[0], -60), (None, 1), (DAYS[0], None)]),
    case("+", t.SMALLINT, DATE, rows=[(1, DAYS[0])]),
    case("-", DATE, t.INT, rows=[(DAYS[0], 1), (DAYS[0], -60)]),
    case("-", DATE, DATE, rows=[(DAYS[0], DAYS[1]), (DAYS[1], DAYS[0]), (None, DAYS[0])]),
    case(
        "-", MOMENT, MOMENT, rows=[(TIMES[0], TIMES[1]), (TIMES[1], TIMES[0]), (TIMES[0], TIMES[0]), (None, TIMES[0])]
    ),
    case("-", MOMENT, DATE, rows=[(TIMES[0], DAYS[0])]),
    case("-", DATE, MOMENT, rows=[(DAYS[0], TIMES[0])]),
    case("+", SPAN, SPAN, rows=[(DAY, 1), (None, 1), (9223372036854775807, 1)]),
    case("-", SPAN, SPAN, rows=[(DAY, 1), (-9223372036854775807, 2)]),
    case("+", MONTHS, MONTHS, rows=[(12, 1), (2147483647, 1)]),
    case("-", MONTHS, MONTHS, rows=[(12, 13)]),
    case("*", SPAN, t.INT, rows=[(DAY, 2), (DAY, -3), (1, 0), (None, 1), (9223372036854775807, 2)]),
    case("*", t.INT, SPAN, rows=[(2, DAY)]),
    case("*", SPAN, t.Decimal(5, 2), rows=[(DAY, D("1.50")), (5, D("0.50")), (-5, D("0.50")), (5, D("0.49"))]),
    case("*", SPAN, t.DOUBLE, rows=[(DAY, 1.5), (5, 0.5), (-5, 0.5), (5, 0.49), (1, math.nan), (DAY, 1e300)]),
    case("*", MONTHS, t.INT, rows=[(7, 2), (2147483647, 2)]),
    case("*", MONTHS, t.Decimal(3, 1), rows=[(5, D("0.5")), (-5, D("0.5"))]),
    case("*", MONTHS, t.DOUBLE, rows=[(5, 0.5), (5, -0.5)]),
    case("/", SPAN, t.INT, rows=[(DAY, 3), (5, 2), (-5, 2), (5, -2), (1, 0), (None, 0)]),
    case("/", SPAN, t.BIGINT, rows=[(DAY, 7), (9223372036854775807, 1)]),
    case("/", SPAN, t.Decimal(5, 2), rows=[(DAY, D("1.50")), (5, D("2.00")), (1, D("0.00"))]),
    case("/", SPAN, t.DOUBLE, rows=[(DAY, 2.5), (5, 2.0), (-5, 2.0), (1, 0.0)]),
    case("/", MONTHS, t.INT, rows=[(5, 2), (-5, 2), (5, 0)]),
    case("negate", SPAN, rows=[DAY, -1, None], spark="-{0}"),
    case("negate", MONTHS, rows=[5, -2147483647], spark="-{0}"),
    case("abs", SPAN, rows=[-DAY, 1, None]),
    case("<", SPAN, SPAN, rows=[(1, 2), (2, 1), (None, 1)]),
    case("=", MONTHS, MONTHS, rows=[(12, 12), (12, 1)]),
]

# --- parts and units ------------------------------------------------------------------------------------------------

MADE = [(2020, 2, 29, 1, 2, D("3.500000")), (2020, 2, 29, 1, 2, D("60.000000")), (2020, 2, 29, 1, 2, D("60.000001"))]
MADE += [(2020, 2, 30, 0, 0, D("0.000000")), (2020, 2, 29, 24, 0, D("0.000000")), (2020, 1, 1, 0, 60, D("0.000000"))]
MADE += [(2020, 1, 1, 0, 0, D("-0.000001")), (1, 1, 1, 0, 0, D("0.000001")), (9999, 12, 31, 23, 59, D("59.999999"))]
MADE += [(2020, 1, 1, -1, 0, D("0.000000")), (2020, 13, 1, 0, 0, D("0.000000")), (None, 1, 1, 0, 0, D("0.000000"))]
MADE += [(2020, 1, 1, 0, 0, None), (1969, 12, 31, 23, 59, D("59.000000"))]
I5 = (t.INT,) * 5
for name in ("make_timestamp", "make_timestamp_ltz"):
    CASES.append(case(name, *I5, t.Decimal(16, 6), rows=MADE))
CASES += [
    case("make_timestamp", *I5, t.INT, rows=[(2020, 2, 29, 1, 2, 3), (2020, 2, 29, 1, 2, 61)]),
    case("make_timestamp", *I5, t.Decimal(4, 2), rows=[(2020, 2, 29, 1, 2, D("3.25"))]),
    case("dayname", t.DATE, rows=[dt.date(2020, 2, day) for day in range(23, 30)] + [None]),
    case("monthname", t.DATE, rows=[dt.date(2020, month, 1) for month in range(1, 13)] + [None]),
    case("dayname", t.TIMESTAMP, rows=[dt.datetime(2020, 2, 29, 23, 59, 59), None]),
]
AT = [
    dt.datetime(2020, 2, 29, 12, 30),
    dt.datetime(2020, 1, 31),
    dt.datetime(2020, 3, 31, 12),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999500),
    dt.datetime(2021, 2, 28, 13),
    dt.datetime(2020, 3, 1, 11, 59),
]
CLOCK_UNITS = (
    "YEAR",
    "QUARTER",
    "MONTH",
    "WEEK",
    "DAY",
    "DAYOFYEAR",
    "HOUR",
    "MINUTE",
    "SECOND",
    "MILLISECOND",
    "MICROSECOND",
)
for unit in CLOCK_UNITS:
    named = Literal(unit, t.STRING)
    CASES += [
        case(
            "timestampadd",
            named,
            t.INT,
            t.TIMESTAMP,
            rows=[(n, at) for n in (0, 1, -1, 13) for at in AT] + [(None, AT[0]), (1, None)],
            spark=f"timestampadd({unit}, {{1}}, {{2}})",
        ),
    ]
CASES += [
    case(
        "timestampdiff",
        Literal(unit, t.STRING),
        t.TIMESTAMP,
        t.TIMESTAMP,
        rows=[(a, b) for a in AT for b in AT] + [(None, AT[0]), (AT[0], None)],
        spark=f"timestampdiff({unit}, {{1}}, {{2}})",
    )
    for unit in CLOCK_UNITS
    if unit != "DAYOFYEAR"
]
CASES += [
    case(
        "timestampadd",
        Literal("DAY", t.STRING),
        t.INT,
        t.DATE,
        rows=[(1, dt.date(2020, 2, 28)), (-1, dt.date(2020, 3, 1))],
        spark="dateadd(DAY, {1}, {2})",
    ),
    case(
        "timestampadd",
        Literal("HOUR", t.STRING),
        t.BIGINT,
        t.TIMESTAMP,
        rows=[(9_223_372_036_854_775_807, AT[0]), (5, AT[0])],
        spark="timestampadd(HOUR, {1}, {2})",
    ),
    case(
        "timestampdiff",
        Literal("MONTH", t.STRING),
        t.DATE,
        t.DATE,
        rows=[(dt.date(2020, 1, 31), dt.date(2020, 2, 29)), (dt.date(2020, 1, 1), dt.date(2020, 3, 1))],
        spark="datediff(MONTH, {1}, {2})",
    ),
]

# Windows of time: tests/spark/test_time_windows.py asks Spark, which has them only for whole queries.
_MINUTE = 60_000_000
_AROUND = [None, *(one for one in TIMES if one.year > 1)]
_AROUND += [moment(m) for m in ("1969-12-31 23:57:00", "2024-01-01 10:00:00", "2024-01-01 09:59:59.999999")]
CASES += [
    case("window_start", t.TIMESTAMP, lit(slide * _MINUTE), lit(start), rows=_AROUND)
    for slide, start in ((5, 0), (5, _MINUTE), (7 * 1440, 0), (7, 17))
]
CASES += [
    case("window_starts", t.TIMESTAMP, lit(length * _MINUTE), lit(slide * _MINUTE), lit(start), rows=_AROUND)
    for length, slide, start in ((10, 5, 0), (10, 3, 0), (10, 3, _MINUTE), (10, 10, 1), (3 * 1440, 1440, 3_600_000_000))
]

CASES += [case("part_timestamp", t.BIGINT, lit(60), rows=[0, 1, 23667840, 28401121, None])]
