"""Random views whose streams arrive as files: after every epoch they equal their queries, whatever happens between.

`python -m tests.spark.pipeline_fuzz` runs more seeds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.spark.piped import piped_case, run_case, told

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.xdist_group("queries on spark")]

SEEDS = range(12)


@pytest.mark.parametrize("seed", SEEDS)
def test_views_of_files_equal_their_queries(spark: Any, tmp_path: Path, seed: int) -> None:
    case, follows = piped_case(seed)
    outcome, did = run_case(spark, case, follows, tmp_path)
    if outcome.failure:
        pytest.fail(told(case, outcome, did), pytrace=False)
    assert outcome.unsupported is None


def test_the_seeds_see_much() -> None:
    """Both ways to run, streams of both kinds, tables beside them, and views that are made on the way."""
    cases = [piped_case(seed) for seed in SEEDS]
    assert {follows for _, follows in cases} == {True, False}
    relations = [relation for case, _ in cases for relation in case.relations]
    assert {(one.kind, one.retain) for one in relations} == {("TABLE", False), ("STREAM", False), ("STREAM", True)}
    assert any(view.created for case, _ in cases for view in case.views)
    assert all(any(one.kind == "STREAM" for one in case.relations) for case, _ in cases)
