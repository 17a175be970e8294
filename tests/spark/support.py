"""A pipeline over a folder that files are put into."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import headwater as hw
from headwater.spark.pipeline import Pipeline, Progress

MEASURED = "CREATE STREAM m (at TIMESTAMP, src STRING NOT NULL, loss INT) {options} FROM json '{folder}'"
VIEWS = """
    CREATE VIEW by_source AS SELECT src, count(*) AS n, sum(loss) AS loss, avg(loss) AS mean FROM m GROUP BY src;
    CREATE VIEW bad AS SELECT src, loss FROM by_source WHERE loss > 100
"""

_WAIT_SECONDS = 60.0


def opened(folder: Path, placement: str = "driver", **options: Any) -> hw.Database:
    db = hw.connect(folder, placement=placement, **options)
    assert isinstance(db, hw.Database)
    return db


def put(folder: Path, name: str, records: Iterable[object]) -> None:
    """A file that is there at once: it is written under a name that Spark does not look at."""
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f".{name}.partial"
    lines = [one if isinstance(one, str) else json.dumps(one) for one in records]
    partial.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    partial.replace(folder / name)


def measured(first: int, count: int) -> list[Mapping[str, object]]:
    return [
        {"at": f"2026-01-01 00:00:{n % 60:02d}", "src": f"s{n % 3}", "loss": None if n % 7 == 0 else n % 50}
        for n in range(first, first + count)
    ]


def drain(db: hw.Database, **options: Any) -> list[Progress]:
    """Take in what is there; what the epochs did."""
    seen: list[Progress] = []
    Pipeline(db, report=seen.append, **options).run(once=True)
    return seen


def bag(db: hw.Database, query: str) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row.values()) for row in db.query(query).to_pylist())


def check(db: hw.Database, records: list[Mapping[str, object]]) -> None:
    """The views are what their queries make of all records."""
    expected: dict[object, list[int]] = {}
    for one in records:
        expected.setdefault(one["src"], []).append(one["loss"])  # type: ignore[arg-type]
    found = {row["src"]: row for row in db.query("SELECT * FROM by_source").to_pylist()}
    assert set(found) == set(expected)
    for src, losses in expected.items():
        known = [loss for loss in losses if loss is not None]
        assert (found[src]["n"], found[src]["loss"]) == (len(losses), sum(known) if known else None)
    bad = {src: row["loss"] for src, row in found.items() if row["loss"] is not None and row["loss"] > 100}
    assert bag(db, "SELECT src, loss FROM bad") == Counter(bad.items())


class Following:
    """A pipeline that runs in a thread, until the block ends; then it must not have failed."""

    def __init__(self, db: hw.Database, **options: Any) -> None:
        self._pipeline = Pipeline(db, **options)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._pipeline.run()
        except BaseException as error:
            self._error = error

    def is_running(self) -> bool:
        """True; raises what it ended with, if it did."""
        if self._error is not None:
            raise self._error
        assert self._thread.is_alive(), "it ended by itself"
        return True

    def process_all(self) -> None:
        self._pipeline.process_all()

    def stop(self) -> None:
        self._pipeline.stop()
        self._thread.join(_WAIT_SECONDS)
        assert not self._thread.is_alive()
        if self._error is not None:
            raise self._error

    def __enter__(self) -> Following:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + _WAIT_SECONDS
    while not condition():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.02)
