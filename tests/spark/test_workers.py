"""Python's workers on Spark: which Python they run, what they find, and what is said when they do not."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.engine import faults
from headwater.spark.session import _let_workers_be_like_us
from tests.spark.processes import WORKER, Killer
from tests.spark.support import bag, opened

HOME = str(Path(hw.__file__).resolve().parents[1])
VIEWS = """
    CREATE TABLE t (a INT, b INT);
    CREATE VIEW v AS SELECT a, sum(b) AS s FROM t GROUP BY a;
    CREATE VIEW w AS SELECT s, count(*) AS n FROM v GROUP BY s
"""


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYSPARK_PYTHON",):  # what a test sets is gone after it
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


@pytest.mark.parametrize("master", ["local[*]", "local-cluster[2,1,2048]"])
def test_workers_on_this_machine_run_what_we_run(master: str) -> None:
    wanted = {"spark.master": master}
    _let_workers_be_like_us(wanted)
    assert os.environ["PYSPARK_PYTHON"] == wanted["spark.pyspark.python"] == sys.executable
    assert wanted["spark.executorEnv.PYTHONPATH"] == HOME


def test_what_somebody_said_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "theirs")
    wanted = {"spark.master": "local", "spark.executorEnv.PYTHONPATH": "/their/path"}
    _let_workers_be_like_us(wanted)
    assert wanted["spark.pyspark.python"] == os.environ["PYSPARK_PYTHON"] == "theirs"
    assert wanted["spark.executorEnv.PYTHONPATH"] == f"/their/path{os.pathsep}{HOME}"
    wanted["spark.pyspark.python"] = "set"
    _let_workers_be_like_us(wanted)
    assert os.environ["PYSPARK_PYTHON"] == "set"
    assert wanted["spark.executorEnv.PYTHONPATH"] == f"/their/path{os.pathsep}{HOME}"


def test_other_machines_have_paths_of_their_own() -> None:
    wanted = {"spark.master": "yarn"}
    _let_workers_be_like_us(wanted)
    assert wanted == {"spark.master": "yarn"}
    assert "PYSPARK_PYTHON" not in os.environ


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_workers_that_cannot_work(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path / "w", "tasks", partitions=2) as db:
        db.execute(VIEWS)
        monkeypatch.setenv("PYSPARK_PYTHON", "no-such-python")
        monkeypatch.setattr(spark.sparkContext, "pythonExec", "no-such-python")
        with pytest.raises(hw.UserError, match="HW479") as raised:
            db.insert("t", [(1, 1)])
        assert "no program no-such-python" in raised.value.message
        assert "PYSPARK_PYTHON" in str(raised.value.hint)
        monkeypatch.undo()
        assert bag(db, "SELECT * FROM t") == {}
        db.insert("t", [(1, 1)])
        assert bag(db, "SELECT * FROM w") == {(1, 1): 1}


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_a_session_that_took_the_first_python_of_the_path(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a user may have made it: what runs on this machine runs in our Python, and the session stays theirs."""
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "no-such-python")
    with opened(tmp_path / "w", "tasks", partitions=2) as db:
        db.execute(VIEWS)
        db.insert("t", [(1, 1)])
        assert bag(db, "SELECT * FROM w") == {(1, 1): 1}
    assert spark.sparkContext.pythonExec == "no-such-python"


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_workers_that_die_on_a_local_master(spark: Any, tmp_path: Path) -> None:
    """Spark does not run a task again there, so we do."""
    killer = Killer(1, (WORKER,))
    with opened(tmp_path / "w", "tasks", partitions=2) as db, hw.Database() as home:
        for one in (db, home):
            one.execute(VIEWS)
        faults.hook = killer.reach
        try:
            for number in range(60):  # a job is short: most are over before they are met
                killer.armed = True
                for one in (home, db):
                    one.insert("t", [(key, key % 3 + number) for key in range(8)])
                assert bag(db, "SELECT * FROM w") == bag(home, "SELECT * FROM w")
                if len(killer.struck) > 1:
                    break
        finally:
            faults.hook = None
        assert killer.struck
        assert bag(db, "SELECT * FROM v") == bag(home, "SELECT * FROM v")
