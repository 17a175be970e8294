"""Fixtures shared by all tests."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from headwater.spark.java import why_no_spark
from headwater.spark.session import start_session


def pytest_configure() -> None:
    """Hear Ctrl-C, and let children hear it, also when the tests run in the background of a shell, which ignores it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite the expected halves of fixture and golden files")


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    """Whether to write what came out instead of comparing it."""
    return bool(request.config.getoption("--update"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A local Spark in ANSI mode and UTC, started once; its answers are the ones Headwater has to give."""
    reason = why_no_spark()
    if reason:
        pytest.skip(reason)
    session = start_session(
        tmp_path_factory.mktemp("spark"), {"spark.master": "local[1]", "spark.driver.bindAddress": "127.0.0.1"}
    )
    yield session
    session.stop()
