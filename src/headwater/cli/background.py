"""Statements in a thread of their own, so that Ctrl-C is heard while they run.

DuckDB does not look for signals while it computes, and Python delivers them to the main thread only: a statement that
ran there could not be given up. One that was given up goes on in its thread, as it does in another process when the
warehouse is reached through one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_GRACE_SECONDS = 0.5
_abandoned: list[threading.Thread] = []


def run_in_background(work: Callable[[], T]) -> T:
    """What `work` returns or raises; Ctrl-C gives it up.

    Raises:
        KeyboardInterrupt: at once, whether or not the work has ended.
    """
    answers: list[T] = []
    errors: list[BaseException] = []

    def target() -> None:
        try:
            answers.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=target, name="headwater-statement", daemon=True)
    thread.start()
    try:
        thread.join()
    except KeyboardInterrupt:
        thread.join(_GRACE_SECONDS)
        _abandoned.append(thread)
        raise
    if errors:
        raise errors[0]
    return answers[0]


def is_idle() -> bool:
    """Whether no statement that was given up still runs."""
    _abandoned[:] = [thread for thread in _abandoned if thread.is_alive()]
    return not _abandoned
