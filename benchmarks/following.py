"""Headwater's pipeline in a thread of its own, for suites that let files arrive and wait for their epochs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

import headwater as hw
from headwater.spark.pipeline import Pipeline, Progress

#: How long no epoch may come before a measurement is given up.
PATIENCE = 300.0


class Following:
    """A pipeline that runs until `close`."""

    def __init__(self, database: hw.Database, settings: Mapping[str, object] | None = None) -> None:
        self.last: Progress | None = None
        self._arrived, self._expected = 0, 0
        self._changed = threading.Condition()
        self._failure: list[BaseException] = []
        self._pipeline = Pipeline(database, settings, report=self._report)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._pipeline.run()
        except BaseException as error:
            self._failure.append(error)

    def _report(self, progress: Progress) -> None:
        with self._changed:
            self.last = progress
            self._arrived += sum(progress.rows.values())
            self._changed.notify_all()

    def take(self, rows: int, arrive: Callable[[], object]) -> None:
        """Let rows arrive, and wait until they are committed."""
        self._expected += rows
        arrive()
        waited = 0.0
        with self._changed:
            while self._arrived < self._expected:
                if self._failure:
                    raise self._failure[0]
                if waited >= PATIENCE:
                    raise TimeoutError(f"{self._arrived} of {self._expected} rows came")
                waited = 0.0 if self._changed.wait(1.0) else waited + 1.0

    def process_all(self) -> None:
        """Wait until all that is there has been taken in."""
        self._pipeline.process_all()
        if self._failure:
            raise self._failure[0]

    def close(self) -> None:
        """Stop after the epoch that is under way."""
        self._pipeline.stop()
        self._thread.join()
