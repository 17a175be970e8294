"""The table of cases, by family."""

from __future__ import annotations

from tests.functions.cases import casts, codes, dates, lambdas, logic, mathematics, nested, numbers, patterns, strings
from tests.functions.harness import Case

FAMILIES = (logic, numbers, mathematics, strings, codes, patterns, dates, casts, nested, lambdas)
CASES: tuple[Case, ...] = tuple(case for family in FAMILIES for case in family.CASES)
