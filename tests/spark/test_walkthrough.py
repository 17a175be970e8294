"""The notebook in the documentation runs as it is printed."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]

PAGE = Path(__file__).parents[2] / "docs" / "walkthrough.md"


def test_the_notebook_runs_as_printed() -> None:
    failed, ran = doctest.testfile(str(PAGE), module_relative=False)
    assert ran > 15
    assert not failed
