"""Fixtures of the engine tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import headwater as hw
from tests.engine.support import opened


@pytest.fixture
def db() -> Iterator[hw.Database]:
    """An empty warehouse in memory."""
    with opened() as database:
        yield database
