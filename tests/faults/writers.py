"""Several threads that write at once, each its own numbered rows: their inserts share epochs, which must not show."""

from __future__ import annotations

import os
import threading
import time

import headwater as hw
from tests.faults.process import Job, Trap, open_warehouse, tell

THREADS = 4
SETUP = """
    CREATE STREAM IF NOT EXISTS rows (writer INT, n INT) RETAIN ALL;
    CREATE VIEW IF NOT EXISTS counts AS SELECT writer, count(*) AS rows, sum(n) AS total FROM rows GROUP BY writer
"""


def write_from_threads(job: Job) -> None:
    """Open, report what each writer had written, and let each go on with its next number."""
    trap = Trap(job)
    trap.set()
    tell("opening", pid=os.getpid())
    db = open_warehouse(job.folder)
    db.execute(SETUP)
    written = {
        i: sorted(row["n"] for row in read(db, f"SELECT n FROM rows WHERE writer = {i}")) for i in range(THREADS)
    }
    counts = sorted(tuple(row.values()) for row in read(db, "SELECT * FROM counts"))
    epochs = db.warehouse.reader().execute("SELECT number FROM hw.epochs ORDER BY number").fetchall()
    tell("recovered", written=written, counts=counts, epochs=[number for (number,) in epochs])
    trap.doing = "WRITE"
    for i in range(THREADS):
        start = max(written[i], default=0) + 1
        threading.Thread(target=_write, args=(db, i, start), daemon=True).start()
    time.sleep(3600)


def read(db: hw.Database, sql: str) -> list[dict[str, int]]:
    rows: list[dict[str, int]] = db.query(sql).to_pylist()
    return rows


def _write(db: hw.Database, writer: int, start: int) -> None:
    n = start
    while True:
        epoch = db.insert("rows", [(writer, n)])
        tell("done", writer=writer, n=n, epoch=epoch.number)
        n += 1
