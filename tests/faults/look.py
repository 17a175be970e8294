"""A child that opens a warehouse whose files were damaged, and says what it can read there."""

from __future__ import annotations

import os

import headwater as hw
from tests.faults.process import Job, tell


def look_at_damage(job: Job) -> None:
    """Read everything and write something, through the public functions only."""
    tell("opening", pid=os.getpid())
    try:
        with hw.connect(job.folder) as db:
            names = [str(one["name"]) for one in db.relations()]
            epoch = db.status()["epoch"]
            rows = {name: db.query(f"SELECT * FROM {name}").to_pylist() for name in names}
            db.insert("parcels", [(0, "town 9", "")])
            tell("read", epoch=epoch, rows=rows)
    except hw.HeadwaterError as error:
        tell("refused", code=error.code, message=str(error))
