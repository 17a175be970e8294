"""A child whose files must not grow: what a full disk looks like to the process."""

from __future__ import annotations

import logging
import os
import resource
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import headwater as hw
from headwater.engine import faults
from tests.faults.process import Job, tell

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
    db = hw.connect(job.folder)
    assert isinstance(db, hw.Database)
    db.execute(SETUP)
    db.insert("parcels", PARCELS)
    db.execute("DELETE FROM parcels WHERE town = 'town 0'")  # there must be something to consolidate
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
    "insert together": lambda db: _insert_together(db),
    "delete": lambda db: db.execute("DELETE FROM parcels WHERE town = 'town 1'"),
    "create": lambda db: db.execute("CREATE VIEW notes AS SELECT id, note FROM parcels"),
    "consolidate": lambda db: _consolidate(db, "parcels"),
}


def _insert_together(db: hw.Database) -> None:
    """Three threads insert at once, and share an epoch because they all had to wait."""
    errors: list[hw.HeadwaterError] = []

    def insert(part: int) -> None:
        try:
            db.insert("parcels", PARCELS[part::3])
        except hw.HeadwaterError as error:
            errors.append(error)

    threads = [threading.Thread(target=insert, args=(part,)) for part in range(3)]
    with db.engine.lock:
        for thread in threads:
            thread.start()
        while db.writer.waiting[0] < len(threads):
            time.sleep(0.001)
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def _consolidate(db: hw.Database, store: str) -> None:
    """Let the background thread rewrite a store, and wait until it has given up or is done."""
    over = threading.Event()
    handler = logging.Handler()
    handler.emit = lambda record: over.set()  # type: ignore[method-assign]
    logging.getLogger("headwater").addHandler(handler)
    faults.hook = lambda point: over.set() if point == "consolidation committed" else None
    db.engine.appended[store] = 1_000_000
    db.consolidator.nudge()
    over.wait(10.0)
    time.sleep(0.2)


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
