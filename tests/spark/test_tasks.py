"""Programs in tasks on a cluster of two executors: see `tests/spark/cluster.py`, which goes on for longer if asked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from headwater.engine.filling import fill
from headwater.spark.java import why_no_spark
from tests.faults.child import leftovers
from tests.spark.support import MEASURED, VIEWS, Following, check, drain, measured, opened, put

# A JVM has one Spark, and the other tests' is another one: this one has a process of its own.
pytestmark = [pytest.mark.spark, pytest.mark.slow]

_ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _java() -> None:
    if reason := why_no_spark():
        pytest.skip(reason)


def run(*arguments: str, seconds: float = 600.0) -> str:
    """What a process on the cluster says that ends well."""
    path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(_ROOT))))
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.cluster", *arguments],
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:]
    return done.stdout


@pytest.mark.xdist_group("cluster")
@pytest.mark.skipif("HEADWATER_CLUSTER" not in os.environ, reason="takes two executors and a minute: make cluster")
def test_a_cluster_cannot_be_told_from_home() -> None:
    """Every kind of view, an executor that dies in the middle of an epoch, and tasks that are run twice."""
    said = run("--epochs", "2", "--kills", "1", "--seeds", "0")
    assert said.splitlines()[-1] == "as it must be"


@pytest.mark.xdist_group("spark")
def test_a_pipeline_whose_programs_run_in_tasks(spark: Any, tmp_path: Path) -> None:
    """Micro-batches become epochs, and each epoch a job of its own, in the thread that brings the batch."""
    records = measured(0, 200)
    put(tmp_path / "in", "a.json", records)
    with opened(tmp_path / "w", "tasks", partitions=2) as db:
        db.execute(MEASURED.format(options="", folder=tmp_path / "in") + ";" + VIEWS)
        drain(db)
        check(db, records)
        with Following(db) as following:
            for number in range(3):
                more = measured(len(records), 50)
                records += more
                put(tmp_path / "in", f"b{number}.json", more)
                following.process_all()
            check(db, records)
    with opened(tmp_path / "w", "tasks") as db:  # and again, from where it was
        assert not leftovers(db)
        records += measured(len(records), 20)
        put(tmp_path / "in", "c.json", records[-20:])
        assert [one.rows for one in drain(db)] == [{"m": 20}]
        check(db, records)


@pytest.mark.xdist_group("spark")
def test_a_view_is_filled_in_tasks(spark: Any, tmp_path: Path) -> None:
    """What its inputs hold comes in slices, each a job; what they have written becomes the view's own in another."""
    with (
        mock.patch("headwater.engine.filling.FEWEST_ROWS", 0),
        mock.patch("headwater.engine.filling.SLICE_ROWS", 700),
        mock.patch("headwater.engine.definitions.fill", wraps=fill) as filled,
        opened(tmp_path / "w", "tasks", partitions=2) as db,
    ):
        db.execute("CREATE TABLE sale (id INT PRIMARY KEY, shop INT, euros INT); CREATE TABLE shop (id INT, town INT)")
        db.insert("sale", [(n, n % 97, n % 13) for n in range(5_000)])
        db.insert("shop", [(n, n % 5) for n in range(100)])
        db.execute("DELETE FROM sale WHERE id < 100")
        db.execute(
            "CREATE VIEW towns AS SELECT town, sum(euros) AS euros, max(euros) AS most FROM sale s "
            "JOIN shop ON s.shop = shop.id GROUP BY town"
        )
        assert filled.call_count == 1 and not leftovers(db)
        db.insert("sale", [(n, n % 97, 20) for n in range(5_000, 5_010)])
        sales = [(n % 97 % 5, n % 13) for n in range(100, 5_000)] + [(n % 97 % 5, 20) for n in range(5_000, 5_010)]
        towns = {town: [euros for there, euros in sales if there == town] for town in range(5)}
        found = db.query("SELECT * FROM towns ORDER BY town").to_pylist()
        assert found == [{"town": n, "euros": sum(one), "most": max(one)} for n, one in towns.items()]


@pytest.mark.xdist_group("spark")
def test_a_project_whose_programs_run_in_tasks(spark: Any, tmp_path: Path) -> None:
    """`headwater run` takes the placement and Spark's settings from the project's file."""
    (tmp_path / "headwater.toml").write_text(
        'warehouse = "w"\nplacement = "tasks"\n[spark]\n"spark.master" = "local[2]"\n'
    )
    (tmp_path / "views.sql").write_text(MEASURED.format(options="", folder="in") + ";\n" + VIEWS)
    records = measured(0, 100)
    put(tmp_path / "in", "a.json", records)
    command = [sys.executable, "-m", "headwater.cli.main", "run", str(tmp_path), "--once", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert sum(json.loads(line)["rows"]["m"] for line in done.stdout.splitlines()) == 100
    assert list((tmp_path / "w" / "away" / "segments").rglob("*.parquet"))
    with opened(tmp_path / "w", "tasks") as db:
        check(db, records)
