"""When Headwater's views are brought up to date: the ways that are measured beside each other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

import headwater as hw
from benchmarks.disk import usage
from benchmarks.systems import LIMITS

ON_QUERY, EVERY_EPOCH, MANUAL, AUTO = "ON QUERY", "EVERY EPOCH", "MANUAL", "AUTO"
MODES = (ON_QUERY, EVERY_EPOCH, MANUAL, AUTO)


class Refreshed:
    """Headwater in this process with a warehouse on disk, and views that are all refreshed in one way."""

    def __init__(self, folder: Path, mode: str) -> None:
        self.mode = mode
        self._folder = folder / f"headwater {mode.lower()}"
        db = hw.connect(self._folder)
        assert isinstance(db, hw.Database)
        self.db = db
        with db.engine.lock:
            for setting in (*LIMITS, "SET threads = 2"):
                db.engine.connection.execute(setting)

    def create(self, views: Mapping[str, str]) -> None:
        """Create views; they begin with what there is."""
        for name, text in views.items():
            self.db.execute(f"CREATE VIEW {name} REFRESH {self.mode} AS {text}")

    def read(self, view: str) -> pa.Table:
        """All rows of a view, fresh: with everything that was committed when it was asked for."""
        if self.mode == MANUAL:
            self.db.execute(f"REFRESH {view}")
        return self.db.query(f"SELECT * FROM {view}")

    def rest(self) -> None:
        """Whatever was begun in the background comes to its end."""
        self.db.consolidator.wait(60)

    def state_bytes(self) -> int:
        with self.db.engine.lock:
            self.db.engine.connection.execute("FORCE CHECKPOINT")
        return usage(self._folder).bytes

    def close(self) -> None:
        self.db.close()
