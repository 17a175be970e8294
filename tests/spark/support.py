"""A pipeline over a folder that files are put into."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import headwater as hw
from headwater.spark.pipeline import Pipeline, Progress

MEASURED = "CREATE STREAM m (at TIMESTAMP, src STRING NOT NULL, loss INT) {options} FROM json '{folder}'"
VIEWS = """
    CREATE VIEW by_source AS SELECT src, count(*) AS n, sum(loss) AS loss, avg(loss) AS mean FROM m GROUP BY src;
    CREATE VIEW bad AS SELECT src, loss FROM by_source WHERE loss > 100
"""


def opened(folder: Path) -> hw.Database:
    db = hw.connect(folder, placement="driver")
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
