from __future__ import annotations

import pytest

from .dbtoaster_rows import suite
from .harness import run

#: `0 = (select sum(1) ...)` is never TRUE in SQL, where a sum over nothing is NULL and not 0 as in the paper.
EMPTY = {"q22"}


@pytest.mark.parametrize("seed", range(3))
def test_all_queries_follow_random_epochs(seed: int) -> None:
    outcome = run(suite(), seed, epochs=6)
    assert len(outcome.filled) == 13
    assert {name for name, times in outcome.filled.items() if not times} == EMPTY
    assert {name for name, times in outcome.changed.items() if not times} == EMPTY
