"""Constants mean what they mean in Spark."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from headwater import types as t
from headwater.algebra.scalars import Literal
from tests.sql.shop import refused, scalar

DAY = 86_400_000_000
HOUR = 3_600_000_000


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("1", 1, t.INT),
        ("007", 7, t.INT),
        ("2147483648", 2147483648, t.BIGINT),
        ("-2147483648", -2147483648, t.INT),
        ("99999999999999999999", Decimal("99999999999999999999"), t.Decimal(20, 0)),
        ("10L", 10, t.BIGINT),
        ("-128Y", -128, t.TINYINT),
        ("3S", 3, t.SMALLINT),
        ("-9223372036854775808L", -9223372036854775808, t.BIGINT),
        ("1.5", Decimal("1.5"), t.Decimal(2, 1)),
        ("1.50", Decimal("1.50"), t.Decimal(3, 2)),
        ("0.05", Decimal("0.05"), t.Decimal(2, 2)),
        ("0.00", Decimal("0.00"), t.Decimal(2, 2)),
        (".5", Decimal("0.5"), t.Decimal(1, 1)),
        ("1.", Decimal("1"), t.Decimal(1, 0)),
        ("1.5BD", Decimal("1.5"), t.Decimal(2, 1)),
        ("1e3BD", Decimal("1000"), t.Decimal(4, 0)),
        ("1e3", 1000.0, t.DOUBLE),
        ("1.5D", 1.5, t.DOUBLE),
        ("0.1F", 0.10000000149011612, t.FLOAT),
        ("'it''s'", "it's", t.STRING),
        ("'a' 'b'", "ab", t.STRING),
        (r"r'a\n'", "a\\n", t.STRING),
        ("X'1F'", b"\x1f", t.BINARY),
        ("TRUE", True, t.BOOLEAN),
        ("NULL", None, t.NULL),
        ("DATE '2020-02-29'", dt.date(2020, 2, 29), t.DATE),
        ("TIMESTAMP '2020-01-01 10:00:00'", dt.datetime(2020, 1, 1, 10), t.TIMESTAMP),
        ("INTERVAL 1 DAY", DAY, t.DAY_TIME_INTERVAL),
        ("INTERVAL '3' HOURS", 3 * HOUR, t.DAY_TIME_INTERVAL),
        ("INTERVAL -5 DAYS", -5 * DAY, t.DAY_TIME_INTERVAL),
        ("INTERVAL 3 WEEKS", 21 * DAY, t.DAY_TIME_INTERVAL),
        ("INTERVAL 5 MILLISECONDS", 5000, t.DAY_TIME_INTERVAL),
        ("INTERVAL '1.5' SECOND", 1_500_000, t.DAY_TIME_INTERVAL),
        ("INTERVAL 1 DAY 2 HOURS", DAY + 2 * HOUR, t.DAY_TIME_INTERVAL),
        ("INTERVAL -1 DAY 2 HOURS", -DAY + 2 * HOUR, t.DAY_TIME_INTERVAL),
        ("INTERVAL '1 day -2 hours'", DAY - 2 * HOUR, t.DAY_TIME_INTERVAL),
        ("INTERVAL '1 10:20:30.5' DAY TO SECOND", DAY + 10 * HOUR + 1_230_500_000, t.DAY_TIME_INTERVAL),
        ("INTERVAL -'1 2' DAY TO HOUR", -DAY - 2 * HOUR, t.DAY_TIME_INTERVAL),
        ("INTERVAL '1:30' HOUR TO MINUTE", 90 * 60_000_000, t.DAY_TIME_INTERVAL),
        ("INTERVAL '1-2' YEAR TO MONTH", 14, t.YEAR_MONTH_INTERVAL),
        ("INTERVAL 2 YEARS 1 MONTH", 25, t.YEAR_MONTH_INTERVAL),
        ("INTERVAL '-1 years'", -12, t.YEAR_MONTH_INTERVAL),
    ],
)
def test_a_literal_has_sparks_type_and_value(text: str, value: object, kind: t.Type) -> None:
    assert scalar(text) == Literal(value, kind)


@pytest.mark.parametrize(
    ("text", "underlined"),
    [
        ("id + 300Y", "300Y"),
        ("id > 12345678901234567890123456789012345678901", "12345678901234567890123456789012345678901"),
        ("1e400 < 1", "1e400"),
        ("day = DATE '2020-13-01'", "DATE '2020-13-01'"),
        ("TIMESTAMP '2020-01-01 25:00:00' IS NULL", "TIMESTAMP '2020-01-01 25:00:00'"),
        ("INTERVAL 1.5 DAYS", "INTERVAL 1.5 DAYS"),
        ("INTERVAL 2 QUARTERS", "INTERVAL 2 QUARTERS"),
        ("INTERVAL '1-13' YEAR TO MONTH", "INTERVAL '1-13' YEAR TO MONTH"),
        ("INTERVAL '10 25' DAY TO HOUR", "INTERVAL '10 25' DAY TO HOUR"),
        ("INTERVAL '1 month 1 day'", "INTERVAL '1 month 1 day'"),
        ("INTERVAL id DAY", "INTERVAL id DAY"),
    ],
)
def test_a_literal_that_cannot_be_is_a_mistake(text: str, underlined: str) -> None:
    code, place, _ = refused(text, scalar)
    assert (code, place) == ("HW129", underlined)
