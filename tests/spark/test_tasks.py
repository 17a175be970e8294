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

import headwater as hw
from headwater.engine import moving
from headwater.engine.filling import fill
from headwater.engine.moves import Moved
from headwater.engine.moving import Moving
from headwater.spark.java import why_no_spark
from headwater.spark.stages import SparkRunner
from tests.engine.test_moving import RELATIONS, more, unlisted
from tests.engine.test_placement import held
from tests.faults.child import leftovers
from tests.s3 import BUCKET, serving
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


@pytest.mark.xdist_group("spark")
def test_partitions_are_altered_in_tasks(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With joins, parts, rows that wait and a view that is suspended; tasks are run twice; a file is damaged."""
    monkeypatch.setattr(moving, "FEW_BYTES", 0)
    jobs = list[int]()
    run_moves = SparkRunner.run_moves

    def twice(self: SparkRunner, shares: Any) -> list[Moved]:
        jobs.append(len(shares))
        run_moves(self, shares)
        return run_moves(self, shares)

    monkeypatch.setattr(SparkRunner, "run_moves", twice)
    suspending = ";INSERT INTO sale VALUES (1, 'shop 1', 13)"
    with opened(tmp_path / "w", "tasks", partitions=2) as db, hw.Database() as home:
        for one in (db, home):
            one.execute(RELATIONS + more(1) + suspending)
        assert db.find("halves").suspended
        with monkeypatch.context() as patched:
            patched.setattr(Moving, "_source", None)  # nothing is brought home
            for number, partitions in enumerate((5, 1)):
                assert held(db) == held(home)
                db.execute(f"ALTER WAREHOUSE SET PARTITIONS {partitions}")
                assert held(db) == held(home)
                assert len(jobs) == 2 * (number + 1)
                assert not unlisted(db, tmp_path / "w")
                for one in (db, home):
                    one.execute(more(2 + number))
        assert held(db) == held(home)
        assert db.engine.away is not None
        segments = db.engine.away.segments
        [path, *_] = segments.paths(segments.copies_of("parts")[0])
        kept = Path(path).read_bytes()
        Path(path).write_bytes(kept[:-20])
        before = dict(segments.listed)
        with pytest.raises(hw.UserError, match="HW409") as raised:
            db.execute("ALTER WAREHOUSE SET PARTITIONS 3")
        assert path in raised.value.message
        assert (segments.listed, db.engine.away.partitions) == (before, 1)
        Path(path).write_bytes(kept)
        assert not unlisted(db, tmp_path / "w")
        db.execute("ALTER WAREHOUSE SET PARTITIONS 3")
        for one in (db, home):
            one.execute("UPDATE sale SET euros = 1 WHERE euros = 13; REFRESH halves;" + more(5))
        assert held(db) == held(home)


@pytest.mark.xdist_group("spark")
def test_segments_on_a_storage(spark: Any, tmp_path: Path) -> None:
    """Tasks read and write them there, those that put segments together as well, and so do queries on Spark."""
    with serving() as server:
        place = {"segments": f"s3://{BUCKET}/x", "storage": server.options}
        with opened(tmp_path / "w", "tasks", partitions=2, **place) as db:
            db.execute("CREATE TABLE t (a INT, b INT); CREATE VIEW v AS SELECT a, sum(b) AS s FROM t GROUP BY a")
            for number in range(3):
                db.insert("t", [(one, number) for one in range(100)])
            assert not list((tmp_path / "w" / "away").rglob("*.parquet"))
            query = "SELECT count(*) AS n, sum(s) AS s FROM v"
            assert db.query(query).to_pylist() == [{"n": 100, "s": 300}]
            assert db.query(query, engine="spark").to_pylist() == [{"n": 100, "s": 300}]
            assert db.spark_table("v").count() == 100
            away = db.engine.away
            assert away is not None
            with (
                mock.patch("headwater.engine.merges.MOST_SEGMENTS", 1),
                mock.patch("headwater.engine.merges.STAGGERED", 1),
            ):
                db.insert("t", [(1, 0)])
                assert db.consolidator.wait(60)
            listed = [one for copy in away.segments.relations for one in away.segments.of(copy)]
            assert any(one.first < one.last for one in listed)  # put together
            victim = listed[0].path
            server.files.rm_file(victim)
        with opened(tmp_path / "w", "tasks", storage=server.options) as db:
            with pytest.raises(hw.UserError, match="HW409") as told:
                db.insert("t", [(2, 0)])
            assert victim in told.value.message
            db.execute("REFRESH VIEW v")
            assert db.query(query).to_pylist() == [{"n": 100, "s": 300}]
            assert all("/plans/" in one for one in leftovers(db))
