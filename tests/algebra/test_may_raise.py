"""What may raise stays behind the conditions that guard it; what cannot need not."""

from __future__ import annotations

import pytest

from headwater import types as t
from headwater.algebra.functions import may_raise
from headwater.algebra.read import read_scalar

COLUMNS = {"a": t.INT, "b": t.BIGINT, "x": t.DOUBLE, "d": t.Decimal(12, 2)}


@pytest.mark.parametrize(
    ("text", "raises"),
    [
        ("a % 200", False),
        ("a % 0", True),
        ("a % {INT '-1'}", True),
        ("a % a", True),
        ("b % 7L", False),
        ("`div`(b, 7L)", False),
        ("`div`(b, {BIGINT '-1'})", True),
        ("`div`(b, 0L)", True),
        ("x / {DOUBLE '2.0'}", False),
        ("x / {DOUBLE '0.0'}", True),
        ("x / x", True),
        ("a + 1", True),
        ("x + x", False),
        ("a % 200 + 1", True),
        ("(a + 1) % 200", True),
    ],
)
def test_what_may_raise(text: str, raises: bool) -> None:
    assert may_raise(read_scalar(text, COLUMNS)) is raises
