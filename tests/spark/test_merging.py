"""Segments are put together by jobs of their own on Spark, beside the epochs."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.engine import merges
from headwater.engine.merges import Merge, Merged
from headwater.spark import stages
from tests.faults.child import leftovers
from tests.spark.support import bag, opened

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

VIEWS = """
    CREATE TABLE t (a INT, b INT);
    CREATE VIEW v AS SELECT a, sum(b) AS s FROM t GROUP BY a;
    CREATE VIEW w AS SELECT s, count(*) AS n FROM v GROUP BY s
"""


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merges, "MOST_SEGMENTS", 2)
    monkeypatch.setattr(merges, "STAGGERED", 1)


def most(db: hw.Database) -> int:
    assert db.engine.away is not None
    return max(len(there) for each in db.engine.away.segments.standing.values() for there in each.values())


def test_jobs_of_their_own(spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.WARNING, "headwater"),
        opened(tmp_path / "w", "tasks", partitions=2) as db,
        hw.Database() as home,
    ):
        for one in (db, home):
            one.execute(VIEWS)
        for number in range(6):
            for one in (db, home):
                one.insert("t", [(key, number) for key in range(8)])
            for view in ("v", "w"):
                assert bag(db, f"SELECT * FROM {view}") == bag(home, f"SELECT * FROM {view}")
        assert db.consolidator.wait(60)
        assert most(db) <= 2
        for view in ("v", "w"):
            assert bag(db, f"SELECT * FROM {view}") == bag(home, f"SELECT * FROM {view}")
    assert not caplog.records
    with opened(tmp_path / "w", "tasks") as db:
        assert not leftovers(db)


def test_closing_cancels_the_job(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    began = tmp_path / "began"

    def slow(shares: Iterable[Sequence[Merge]]) -> Iterator[Merged]:
        began.touch()
        time.sleep(120)
        yield from ()

    monkeypatch.setattr(stages, "_put_together", lambda means: slow)
    with caplog.at_level(logging.WARNING, "headwater"):
        with opened(tmp_path / "w", "tasks", partitions=2) as db:
            db.execute(VIEWS)
            for number in range(3):
                db.insert("t", [(key, number) for key in range(8)])
            for _ in range(300):
                if began.exists():
                    break
                time.sleep(0.1)
            assert began.exists()
            since = time.monotonic()
        assert time.monotonic() - since < 60
    assert not caplog.records
    monkeypatch.undo()
    with opened(tmp_path / "w", "tasks") as db:
        assert not leftovers(db)
        db.insert("t", [(1, 1)])
        assert bag(db, "SELECT count(*) FROM v") == {(8,): 1}
