"""A child whose files must not grow: what a full disk looks like to the process."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path

import headwater as hw
from tests.faults.process import Job, open_warehouse, tell

SETUP = """
    CREATE TABLE parcels (id INT, town STRING, note STRING);
    CREATE VIEW towns AS SELECT town, count(*) AS n FROM parcels GROUP BY town
"""
#: As a statement needs it: more than a page of the file system, less than DuckDB writes past its log.
PARCELS = [(n, f"town {n % 3}", "x" * 100) for n in range(300)]


def meet_a_full_disk(job: Job) -> None:
    """Try one action on a full disk, read, make room and try it again.

    `during` names the action. `point` is `log` when the log cannot grow, `file` when it can, but the file into which
    DuckDB then writes the log cannot.
    """
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write that goes too far then fails, as it does on a full disk
    tell("opening", pid=os.getpid())
    db = open_warehouse(job.folder)
    db.execute(SETUP)
    db.insert("parcels", PARCELS)
    tell("before", **_facts(db))
    log = Path(job.folder, "warehouse.duckdb.wal").stat().st_size
    if job.point == "file":
        db.warehouse.reader().execute(f"SET GLOBAL checkpoint_threshold = '{log + 1000}B'")
    _let_files_grow_to(log + (150_000 if job.point == "file" else 100))
    action = ACTIONS[job.during]
    _try("full", db, action)
    _let_files_grow_to(resource.RLIM_INFINITY)
    _try("room", db, action if job.point == "log" else ACTIONS["insert"])
    _let_files_grow_to(Path(job.folder, "warehouse.duckdb.wal").stat().st_size + 100)
    _try("full again", db, ACTIONS["insert"])
    os.kill(os.getpid(), signal.SIGKILL)


ACTIONS: dict[str, Callable[[hw.Database], object]] = {
    "insert": lambda db: db.insert("parcels", PARCELS),
    "delete": lambda db: db.execute("DELETE FROM parcels WHERE town = 'town 1'"),
    "create": lambda db: db.execute("CREATE VIEW notes AS SELECT id, note FROM parcels"),
}


def _try(when: str, db: hw.Database, action: Callable[[hw.Database], object]) -> None:
    code, message = "", ""
    try:
        action(db)
    except hw.HeadwaterError as error:
        code, message = error.code, str(error)
    tell(when, code=code, message=message, **_facts(db))


def _facts(db: hw.Database) -> dict[str, object]:
    towns = {row["town"]: row["n"] for row in db.query("SELECT * FROM towns").to_pylist()}
    counted = db.query("SELECT town, count(*) AS n FROM parcels GROUP BY town").to_pylist()
    return {
        "epoch": db.status()["epoch"],
        "towns": towns,
        "counted": {row["town"]: row["n"] for row in counted},
        "relations": [one["name"] for one in db.relations()],
    }


def _let_files_grow_to(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
