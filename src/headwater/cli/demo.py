"""`headwater demo`: a pipeline on a local Spark over made-up data, compared with Spark's own answers at the end."""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.cli import demo_time
from headwater.cli.render import counted, say
from headwater.database import Database

if TYPE_CHECKING:
    from headwater.spark.pipeline import Pipeline, Progress

_EXAMPLES = """\
examples:
  headwater demo

It makes a warehouse in a temporary folder, follows three folders into which files arrive, keeps seven views fresh, a
pattern and a sliding window among them, and ends by itself: every view is compared with an answer over all files.
"""

STREAMS = {
    "measurement": "at TIMESTAMP, src INT NOT NULL, dest INT NOT NULL, loss INT",
    "orders": "ordk INT NOT NULL, day DATE, xch DOUBLE",
    "lineitem": "ordk INT NOT NULL, item STRING, price DOUBLE",
}
STATIONS = [(1, "London", "north"), (2, "Paris", "north"), (3, "Rome", "south"), (4, None, "south")]
#: Packet loss between stations, and orders in foreign currencies.
VIEWS = {
    "pair_loss": "SELECT src, dest, COUNT(*) AS ct, SUM(loss) AS sum_loss, AVG(loss) AS mean FROM measurement "
    "GROUP BY src, dest",
    "lossy": "SELECT src, dest, SUM(loss) AS sum_loss FROM measurement WHERE loss > 10 GROUP BY src, dest "
    "HAVING COUNT(*) > 20",
    "by_location": "SELECT a.location, b.supplier, SUM(m.loss) AS loss FROM measurement m "
    "JOIN station a ON a.id = m.src JOIN station b ON b.id = m.dest GROUP BY a.location, b.supplier",
    "sales": "SELECT SUM(li.price * o.xch) AS total, COUNT(*) AS n FROM orders o, lineitem li WHERE o.ordk = li.ordk",
    "supplier_pairs": "SELECT x.supplier, COUNT(*) AS pairs FROM by_location x JOIN by_location y "
    "ON x.supplier = y.supplier AND x.loss < y.loss GROUP BY x.supplier",
}
BATCHES, ROWS = 8, 2_000
_PATIENCE_SECONDS = 110.0


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "demo",
        help="watch a pipeline on a local Spark, for about a minute",
        description="Run a pipeline on a local Spark over made-up data, and compare its views with Spark's answers.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[common],
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Carry the command out; 1 if a view differs."""
    from headwater.spark.pipeline import Pipeline
    from headwater.spark.session import start_session

    with tempfile.TemporaryDirectory(prefix="headwater-demo-") as name:
        folder = Path(name)
        with Database(folder / "warehouse", placement="driver") as db:
            _define(db, folder)
            say("starting Spark ...")
            session = start_session(folder / "warehouse" / "spark")
            views = counted(len(VIEWS) + len(demo_time.VIEWS), "view")
            say(f"{counted(len(STREAMS), 'folder')} of JSON files, {views}; files arrive:\n")
            arrived: Counter[str] = Counter()
            done, epoch = threading.Event(), threading.Condition()

            def report(progress: Progress) -> None:
                arrived.update(progress.rows)
                with epoch:
                    epoch.notify_all()
                rows = ", ".join(f"{n:,} {stream}" for stream, n in sorted(progress.rows.items()))
                say(f"  epoch {progress.epoch}: {rows} in {progress.seconds * 1000:.0f} ms")
                if "measurement" in progress.rows:
                    say(f"    {demo_time.live(db)}")
                if arrived.total() == BATCHES * ROWS * len(STREAMS):
                    done.set()

            pipeline = Pipeline(db, report=report)
            for stream in STREAMS:
                threading.Thread(target=_arrive, args=(folder, stream, epoch), daemon=True).start()
            threading.Thread(target=_stop_when, args=(done, pipeline), daemon=True).start()
            pipeline.run()
            say("\nEach view beside Spark's own answer to its query over all files:\n")
            same = [_compare(db, session, folder, view) for view in VIEWS]
            say("\nThe pattern and the window, minute by minute, beside an answer over all files:\n")
            same.append(demo_time.compare(db, session))
        session.stop()
    say("\nAll views equal their recomputation." if all(same) else "\nA view differs from its recomputation!")
    return 0 if all(same) else 1


def _define(db: Database, folder: Path) -> None:
    db.execute("CREATE STATIC TABLE station (id INT PRIMARY KEY, location STRING, supplier STRING)")
    db.insert("station", STATIONS)
    for stream, columns in STREAMS.items():
        (folder / stream).mkdir()
        parts = f"TIMESTAMP BY at PARTITION LENGTH {demo_time.LENGTH} " if stream == "measurement" else ""
        db.execute(f"CREATE STREAM {stream} ({columns}) {parts}FROM json '{folder / stream}'")
    for view, query in {**VIEWS, **demo_time.VIEWS}.items():
        db.execute(f"CREATE VIEW {view} AS {query}")
        say(f"  {view}: {query}")
    say("")


def _stop_when(done: threading.Event, pipeline: Pipeline) -> None:
    done.wait(_PATIENCE_SECONDS)
    pipeline.stop()


def _arrive(folder: Path, stream: str, epoch: threading.Condition) -> None:
    """Write files as if they came from somewhere, at about the pace at which they are taken in."""
    rng = random.Random(stream)
    for batch in range(BATCHES):
        partial = folder / stream / f".{batch}.json"
        lines = [json.dumps(_record(rng, stream, batch * ROWS + n)) for n in range(ROWS)]
        partial.write_text("\n".join(lines) + "\n", encoding="utf-8")
        partial.rename(folder / stream / f"{batch}.json")
        with epoch:
            epoch.wait(_PATIENCE_SECONDS / BATCHES)
        time.sleep(rng.uniform(0.0, 0.3))


def _record(rng: random.Random, stream: str, number: int) -> dict[str, object]:
    match stream:
        case "measurement":
            loss = rng.choice([None, *range(20)])
            at = f"2024-03-01 {number // 3600 % 24:02d}:{number // 60 % 60:02d}:{number % 60:02d}"
            return {"at": at, "src": rng.randint(1, 4), "dest": rng.randint(1, 4), "loss": loss}
        case "orders":
            return {"ordk": number, "day": "2026-03-01", "xch": rng.choice([0.5, 1.0, 1.25])}
    return {"ordk": rng.randrange(BATCHES * ROWS), "item": rng.choice("abc"), "price": float(rng.randint(1, 100))}


def _compare(db: Database, session: Any, folder: Path, view: str) -> bool:
    """Hold a view against Spark's answer; the views and streams it reads are Spark's, too."""
    from headwater.spark.types import spark_schema

    if view == next(iter(VIEWS)):
        session.createDataFrame(STATIONS, "id INT, location STRING, supplier STRING").createOrReplaceTempView("station")
        for stream in STREAMS:
            schema = spark_schema(db.find(stream).arriving)
            session.read.schema(schema).json(str(folder / stream)).createOrReplaceTempView(stream)
    frame = session.sql(VIEWS[view])
    frame.createOrReplaceTempView(view)
    theirs = Counter(tuple(row) for row in frame.collect())
    kept = [tuple(row.values()) for row in db.query(f"SELECT * FROM {view}").to_pylist()]
    same = theirs == Counter(kept)
    say(f"  {view}: {counted(len(kept), 'row')}, {'equal' if same else 'DIFFERENT'}")
    for row in sorted(kept, key=str)[:3]:
        say(f"    {', '.join('NULL' if value is None else str(value) for value in row)}")
    return same
