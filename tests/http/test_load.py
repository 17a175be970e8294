"""A server under load for some seconds: every answer is right, and it does not grow."""

from __future__ import annotations

import pytest

from .load import run


@pytest.mark.slow
def test_mixed_clients() -> None:
    load, before, after = run(8.0, seed=1)
    for what in ("writes", "reads", "changes told", "visits of followers"):
        assert load.done[what] > 10, load.done
    assert after < before * 1.3 + (32 << 20), (before, after)
