"""Building a view over much data says how far it is, and readers and status go on meanwhile."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import headwater as hw


def test_status_says_how_far_a_view_is(tmp_path: Path) -> None:
    with hw.connect(tmp_path / "w") as db:
        assert isinstance(db, hw.Database)
        db.execute("CREATE TABLE t (a BIGINT, b BIGINT)")
        db.warehouse.connection.execute(
            """INSERT INTO data.t SELECT range, hash(range) % 1_000_000_007, 1, 0 FROM range(4_000_000)"""
        )
        assert "building" not in db.status()
        query = "SELECT b % 1000003 AS k, sum(a) AS s FROM t GROUP BY b % 1000003"
        thread = threading.Thread(target=db.execute, args=[f"CREATE VIEW v AS {query}"])
        thread.start()
        seen: list[dict[str, Any]] = []
        while thread.is_alive():
            status: dict[str, Any] = db.status()
            if "building" in status:
                seen.append(status["building"])
            time.sleep(0.01)
        thread.join()
        assert {one["view"] for one in seen} == {"v"}
        percents = [one["percent"] for one in seen]
        assert max(percents) > 0 and all(0 <= one <= 100 for one in percents)
        assert seen[-1]["seconds"] > 0
        assert "building" not in db.status()
        assert db.query("SELECT sum(s) AS s FROM v").to_pylist()[0]["s"] == sum(range(4_000_000))
