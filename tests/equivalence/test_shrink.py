"""The shrinker, on references that are wrong on purpose."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .bags import Bag
from .case import Case, View, parse_script
from .check import Outcome, Setting, check
from .generate import make_case
from .references import Interpreted
from .shrink import removals, shrink
from .shrink_sql import inlined, simpler_queries
from .subject import Headwater


class NoCopies(Interpreted):
    """Believes that a view is a set."""

    def contents(self, view: View) -> Bag | None:
        held = super().contents(view)
        return type(held)(held.keys()) if held is not None else None


class NoNullGroups(Interpreted):
    """Loses rows whose first column is NULL."""

    def contents(self, view: View) -> Bag | None:
        held = super().contents(view)
        return type(held)({row: n for row, n in held.items() if row[0] is not None}) if held is not None else None


class NoRetractions(Interpreted):
    """Believes that nothing is ever taken out of a view."""

    def apply(self, changes: dict[str, Bag], number: int) -> dict[str, Bag] | None:
        changelogs = super().apply(changes, number)
        assert changelogs is not None
        return {name: type(bag)({row: n for row, n in bag.items() if n > 0}) for name, bag in changelogs.items()}


def against(reference: type[Interpreted]) -> Callable[[Case], Outcome]:
    def setting(case: Case) -> Setting:
        subject = Headwater()
        return subject, (reference(subject.algebra),)

    return lambda case: check(case, setting)


@pytest.mark.parametrize(
    ("reference", "kind", "rows"),
    [
        (NoCopies, "contents differ from interpreter", 3),
        (NoNullGroups, "contents differ from interpreter", 1),
        (NoRetractions, "changelog differs from interpreter", 2),
    ],
)
def test_a_failing_case_becomes_small(reference: type[Interpreted], kind: str, rows: int, tmp_path: Path) -> None:
    run = against(reference)
    case = next(case for case in map(make_case, range(1000)) if _fails(run(case), kind) and len(case.views) > 1)
    small, outcome = shrink(case, kind, seconds=60, run=run)
    assert outcome is not None
    assert _fails(outcome, kind)
    assert len(small.views) == 1
    assert len(small.relations) <= 2
    assert len(small.epochs) <= 2
    assert sum(len(operation.rows) for epoch in small.epochs for operation in epoch) <= rows
    assert len(small.views[0].query) < 100
    path = tmp_path / "case.txt"
    path.write_text(str(small), encoding="utf-8")
    again = parse_script(path.read_text(encoding="utf-8"))
    assert _fails(run(again), kind)
    assert check(again).failure is None


def _fails(outcome: Outcome, kind: str) -> bool:
    return outcome.failure is not None and outcome.failure.kind == kind


def test_removals_go_from_everything_to_single_entries() -> None:
    assert [list(part) for part in removals(4)] == [[0, 1, 2, 3], [2, 3], [0, 1], [3], [2], [1], [0]]


def test_simpler_queries_take_one_thing_away() -> None:
    simpler = set(simpler_queries("SELECT a + 1 AS x, b FROM t WHERE a > 0 AND b = 2"))
    assert "SELECT a + 1 AS x, b FROM t" in simpler
    assert "SELECT b FROM t WHERE a > 0 AND b = 2" in simpler
    assert "SELECT a AS x, b FROM t WHERE a > 0 AND b = 2" in simpler
    assert "SELECT a + 1 AS x, b FROM t WHERE a > 0" in simpler


def test_simpler_queries_undo_structure() -> None:
    assert "SELECT a FROM t AS d" in set(simpler_queries("SELECT a FROM (SELECT a, b FROM t) AS d"))
    assert "SELECT a FROM t" in set(simpler_queries("SELECT a FROM t UNION ALL SELECT b FROM u"))
    assert "SELECT a FROM t AS x" in set(simpler_queries("SELECT a FROM t AS x JOIN u AS y ON x.a = y.a"))
    assert "SELECT a FROM (SELECT a FROM t) AS c" in set(simpler_queries("WITH c AS (SELECT a FROM t) SELECT a FROM c"))


def test_an_expression_grouped_by_is_simplified_in_both_places() -> None:
    simpler = set(simpler_queries("SELECT a + 1 AS x, COUNT(*) AS n FROM t GROUP BY a + 1"))
    assert "SELECT a AS x, COUNT(*) AS n FROM t GROUP BY a" in simpler


def test_a_view_is_inlined_under_its_alias() -> None:
    assert inlined("SELECT r.a FROM v AS r", "v", "SELECT a FROM t") == "SELECT r.a FROM (SELECT a FROM t) AS r"
    assert inlined("SELECT a FROM t", "v", "SELECT 1") == "SELECT a FROM t"
