from __future__ import annotations

import pytest

from .harness import run
from .tpch_rows import suite


@pytest.mark.parametrize("seed", range(3))
def test_all_queries_follow_random_epochs(seed: int) -> None:
    outcome = run(suite(), seed, epochs=6)
    assert set(outcome.filled) == {f"q{number:02}" for number in range(1, 23)}
    empty = [name for name, times in outcome.filled.items() if not times]
    assert len(empty) <= 2, f"always empty: {empty}"
    still = [name for name, times in outcome.changed.items() if not times]
    assert len(still) <= 3, f"never changed: {still}"
