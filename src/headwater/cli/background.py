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
TICK_SECONDS = 0.5

#: For each statement that was given up, whether it has ended since.
_abandoned: list[threading.Event] = []


def run_in_background(work: Callable[[], T], tick: Callable[[], None] = lambda: None) -> T:
    """What `work` returns or raises; Ctrl-C gives it up.

    Args:
        work: what to do.
        tick: called now and then while it is being done.

    Raises:
        KeyboardInterrupt: at once, whether or not the work has ended.
    """
    answers: list[T] = []
    errors: list[BaseException] = []
    # Not Thread.join: interrupted by Ctrl-C, it takes the thread for ended.
    ended = threading.Event()

    def target() -> None:
        try:
            answers.append(work())
        except BaseException as error:
            errors.append(error)
        finally:
            ended.set()

    threading.Thread(target=target, name="headwater-statement", daemon=True).start()
    try:
        while not ended.wait(TICK_SECONDS):
            tick()
    except KeyboardInterrupt:
        _abandoned.append(ended)
        raise
    if errors:
        raise errors[0]
    return answers[0]


def is_idle() -> bool:
    """Whether no statement that was given up still runs."""
    return all(ended.is_set() for ended in _abandoned)
