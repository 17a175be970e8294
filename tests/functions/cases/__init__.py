"""The table of cases, by family."""

from __future__ import annotations

from tests.functions.cases import casts, dates, logic, mathematics, numbers, patterns, strings
from tests.functions.harness import Case

FAMILIES = (logic, numbers, mathematics, strings, patterns, dates, casts)
CASES: tuple[Case, ...] = tuple(case for family in FAMILIES for case in family.CASES)
