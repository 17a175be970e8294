"""The table of cases, by family."""

from __future__ import annotations

from tests.functions.cases import casts, dates, mathematics, numbers, patterns, strings
from tests.functions.harness import Case

CASES: tuple[Case, ...] = (
    *numbers.CASES,
    *mathematics.CASES,
    *casts.CASES,
    *strings.CASES,
    *patterns.CASES,
    *dates.CASES,
)
