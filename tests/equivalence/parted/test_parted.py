"""The law for views of parts: after every step all parts hold what their queries say over the rows so far.

HEADWATER_PART_SEEDS picks other seeds: `17`, `3,8`, `0-499`.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from ..fuzz import report
from ..test_equivalence import chosen_seeds
from .case import parse_script
from .check import check
from .draft import FAMILIES
from .generate import generate, make_case
from .shrink import shrink
from .subject import Headwater

SEEDS = "0-15"
CHUNK = 4


def chunks() -> list[list[int]]:
    seeds = chosen_seeds(os.environ.get("HEADWATER_PART_SEEDS", SEEDS))
    return [seeds[i : i + CHUNK] for i in range(0, len(seeds), CHUNK)]


@pytest.mark.parametrize("seeds", chunks(), ids=lambda seeds: f"seeds-{seeds[0]}-{seeds[-1]}")
def test_views_of_parts_equal_their_unfolding(seeds: list[int], tmp_path: Path) -> None:
    for seed in seeds:
        case = make_case(seed)
        outcome = check(case)
        if outcome.failure:
            pytest.fail(report(case, outcome.failure, tmp_path / f"seed-{seed}.txt", seconds=30), pytrace=False)


def test_scripts_are_read_back() -> None:
    for seed in range(60):
        case = make_case(seed)
        assert str(parse_script(str(case))) == str(case)
        assert parse_script(str(case)) == case


def test_every_shape_occurs() -> None:
    used: Counter[str] = Counter()
    for seed in range(300):
        used += generate(seed)[1]
    missing = [name for family in FAMILIES.values() for name in family if not used[name]]
    assert not missing
    assert used["long gap"] > 5 and used["a part far back"] > 5
    for name in ("late rows", "very late rows", "gap", "bulk", "nothing", "fail", "consolidate", "reopen", "advance"):
        assert used[name] > 10, name


_STREAM = "CREATE STREAM s0 (ts TIMESTAMP NOT NULL, k STRING, v INT) TIMESTAMP BY ts PARTITION LENGTH 10"
STORY = parse_script(f"""\
{_STREAM} LATENESS INTERVAL 20 SECONDS RETAIN ALL;
CREATE VIEW v0 AS INITIALIZE v0[i] AS SELECT k, v FROM s0[i] UPDATE v0[j] AS SELECT k, v FROM s0[j] PARTITION LENGTH 10;
CREATE VIEW p0 AS SELECT k, count(*) AS n FROM s0 PATTERN [a, b+] WHERE a.v > 0 AND b.v > a.v GROUP BY k;
CREATE VIEW w0 AS SELECT k, sum(v) AS s FROM s0 [WINDOW 2 PARTS] GROUP BY k;
epoch
  insert s0
    ["2024-01-01T00:00:03", "a", 1]
    ["2024-01-01T00:00:13", "a", 2]
    ["2024-01-01T00:00:23", "a", 3]
epoch
  insert s0
    ["2024-01-01T00:00:04", "a", 5]
    ["2024-01-01T00:00:55", "a", 0]
epoch
  insert s0
    ["2024-01-01T00:00:04", "a", 7]
""")  # fmt: skip


def test_headwater_passes() -> None:
    outcome = check(STORY)
    assert outcome.failure is None
    assert outcome.epochs == 3
    assert outcome.compared["changelogs"] == 0  # seeds that can be divided by 3 have no observer
    assert outcome.compared["parts"] > 30


class ForgetsARow(Headwater):
    def contents(self, relation: str, parts: bool) -> Counter[tuple[object, ...]]:
        held = super().contents(relation, parts)
        return Counter(dict(list(held.items())[1:])) if relation == "v0" else held


class ForgetsAMatch(Headwater):
    def contents(self, relation: str, parts: bool) -> Counter[tuple[object, ...]]:
        held = super().contents(relation, parts)
        return Counter(dict(list(held.items())[1:])) if relation == "p0" else held


class TakesLateRows(Headwater):
    def late(self, stream: str) -> tuple[Counter[tuple[object, ...]], int]:
        return Counter(), 0


class IsSlow(Headwater):
    def frontier(self, relation: str) -> tuple[int | None, int | None, int | None]:
        first, following, watermark = super().frontier(relation)
        return first, following - 1 if following and relation == "v0" else following, watermark


class TouchesTooMuch(Headwater):
    def lines(self, relation: str) -> tuple[dict[int, int], set[int]]:
        rows, newest = super().lines(relation)
        return rows, newest | set(rows) if relation == "v0" else newest


@pytest.mark.parametrize(
    ("subject", "kind"),
    [
        (ForgetsARow, "contents differ"),
        (ForgetsAMatch, "contents differ"),
        (TakesLateRows, "rows kept aside"),
        (IsSlow, "first and next part"),
        (TouchesTooMuch, "parts that are said to have changed"),
    ],
)
def test_what_is_wrong_is_noticed(subject: type[Headwater], kind: str) -> None:
    outcome = check(STORY, subject)
    assert outcome.failure is not None and outcome.failure.kind == kind


def test_what_fails_is_made_small() -> None:
    smaller, outcome = shrink(STORY, "contents differ", 30, lambda case: check(case, ForgetsARow))
    assert outcome is not None and outcome.failure is not None
    assert [len(step.changes) for step in smaller.steps] == [1]
    assert [view.name for view in smaller.views] == ["v0"]
