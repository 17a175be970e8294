"""`headwater init` and `headwater run`, as processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.spark.support import measured, put

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]


def headwater(*args: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "headwater.cli.main", *args]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload,no-any-return]


def rows(project: Path, query: str) -> list[dict[str, object]]:
    done = headwater("sql", str(project), "-c", query, "--format", "json")
    assert done.returncode == 0, done.stderr
    out: list[dict[str, object]] = json.loads(done.stdout)
    return out


def test_a_new_project_runs_at_once(tmp_path: Path) -> None:
    project = tmp_path / "shop"
    made = headwater("init", str(project))
    assert made.returncode == 0, made.stderr
    assert headwater("check", str(project)).returncode == 0
    ran = headwater("run", str(project), "--once")
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stderr
    assert "300 rows" in ran.stdout
    orders = [json.loads(line) for file in (project / "orders").iterdir() for line in file.read_text().splitlines()]
    assert {row["city"]: row["orders"] for row in rows(project, "SELECT city, orders FROM revenue")} == Counter(
        one["city"] for one in orders
    )
    again = headwater("run", str(project), "--once", "--format", "json")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert "not empty" in headwater("init", str(project)).stderr


def test_it_runs_beside_others_and_leaves_cleanly(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "headwater.toml").write_text('placement = "driver"\n')
    stream = "CREATE STREAM m (at TIMESTAMP, src STRING, loss INT) RETAIN ALL FROM json 'in';\n"
    (tmp_path / "a.sql").write_text(stream + "CREATE VIEW v AS SELECT src, count(*) AS n FROM m GROUP BY src;\n")
    command = [sys.executable, "-m", "headwater.cli.main", "run", str(tmp_path), "--format", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None and running.stderr is not None
        put(tmp_path / "in", "a.json", measured(0, 30))
        first = json.loads(running.stdout.readline())
        assert first["rows"] == {"m": 30}
        assert sum(int(str(row["n"])) for row in rows(tmp_path, "SELECT n FROM v")) == 30
        # A view and a stream that are made meanwhile are kept fresh and followed, too.
        (tmp_path / "more").mkdir()
        more = "CREATE VIEW w AS SELECT count(*) AS n FROM m; CREATE STREAM q (x INT) RETAIN ALL FROM json 'more'"
        assert headwater("sql", str(tmp_path), "-c", more).returncode == 0
        put(tmp_path / "in", "b.json", measured(30, 12))
        put(tmp_path / "more", "a.json", [{"x": 1}])
        told: Counter[str] = Counter()
        while told != {"m": 12, "q": 1}:
            told.update(json.loads(running.stdout.readline())["rows"])
        assert rows(tmp_path, "SELECT n FROM w") == [{"n": 42}]
        second = headwater("run", str(tmp_path), "--once")
        assert second.returncode == 1
        assert "HW476" in second.stderr
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 0
        assert running.stderr.read() == ""
    assert rows(tmp_path, "SELECT n FROM w") == [{"n": 42}]


def test_a_project_whose_definitions_changed(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "headwater.toml").write_text("")
    (tmp_path / "a.sql").write_text(
        "CREATE STREAM m (x INT) RETAIN ALL FROM json 'in'; CREATE VIEW v AS SELECT x FROM m"
    )
    assert headwater("run", str(tmp_path), "--once").returncode == 0
    (tmp_path / "a.sql").write_text(
        "CREATE STREAM m (x INT)\n  RETAIN ALL FROM json 'in';\nCREATE VIEW v AS SELECT x + 1 AS x FROM m"
    )
    done = headwater("run", str(tmp_path), "--once")
    assert done.returncode == 1
    assert "HW477" in done.stderr
    assert "a.sql:3" in done.stderr


def test_without_java(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "headwater.toml").write_text("")
    (tmp_path / "a.sql").write_text("CREATE STREAM m (x INT) FROM json 'in'")
    done = headwater("run", str(tmp_path), "--once", env={**os.environ, "JAVA_HOME": str(tmp_path)})
    assert done.returncode == 1
    assert "HW471" in done.stderr
    assert "openjdk" in done.stderr


def test_time_is_not_lost(tmp_path: Path) -> None:
    """A run that finds nothing new ends soon."""
    (tmp_path / "in").mkdir()
    (tmp_path / "headwater.toml").write_text("")
    (tmp_path / "a.sql").write_text("CREATE STREAM m (x INT) FROM json 'in'")
    began = time.monotonic()
    assert headwater("run", str(tmp_path), "--once").returncode == 0
    assert time.monotonic() - began < 90
