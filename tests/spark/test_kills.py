"""A pipeline that is killed loses nothing and takes nothing twice; `tests/spark/kills.py` does it for longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.kills import endure

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]


def test_kills_while_files_arrive(tmp_path: Path) -> None:
    epochs, files = endure(tmp_path / "p", kills=2, seed=7)
    assert epochs > 0
    assert files > 0
