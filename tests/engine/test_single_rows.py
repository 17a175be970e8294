"""Relations of one row, joined: what they were before must not multiply."""

from __future__ import annotations

import time

import headwater as hw


def test_many_counts_side_by_side() -> None:
    with hw.connect() as db:
        db.execute("CREATE TABLE r (a INT)")
        counts = ", ".join(f"(SELECT count(*) AS c{n} FROM r WHERE a > {n}) x{n}" for n in range(8))
        db.execute(f"CREATE VIEW v AS SELECT * FROM {counts}")
        began = time.monotonic()
        for n in range(12):
            db.insert("r", [(n,)])
        assert list(db.query("SELECT * FROM v").to_pylist()[0].values()) == [11, 10, 9, 8, 7, 6, 5, 4]
        assert time.monotonic() - began < 60, "seconds where it took hours"
