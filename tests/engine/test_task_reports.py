"""What EXPLAIN, status and SHOW say of a warehouse whose programs run in tasks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.cli.main import main
from headwater.database import Database
from headwater.engine.local_tasks import LocalRunner
from headwater.plan.explain import Explanation
from headwater.serve.remote import RemoteDatabase

RELATIONS = """
CREATE TABLE sale (id INT PRIMARY KEY, shop STRING, euros INT);
CREATE TABLE shop (name STRING PRIMARY KEY, town STRING);
CREATE STREAM tick (x INT, at TIMESTAMP) TIMESTAMP BY at PARTITION LENGTH 10;
CREATE VIEW by_shop AS SELECT shop, sum(euros) AS euros FROM sale GROUP BY shop;
CREATE VIEW by_town AS SELECT town, sum(euros) AS euros FROM sale JOIN shop ON shop = name GROUP BY town;
CREATE VIEW best AS SELECT shop, euros FROM by_shop ORDER BY euros DESC LIMIT 3;
CREATE VIEW near AS SELECT a.id, b.name FROM sale a JOIN shop b ON a.shop < b.name WHERE a.euros > 88;
CREATE VIEW now_and_then REFRESH MANUAL AS SELECT count(*) AS n FROM sale;
CREATE VIEW asked REFRESH ON QUERY AS SELECT shop, max(euros) AS most FROM sale GROUP BY shop;
CREATE VIEW counted AS
  INITIALIZE counted[i] AS SELECT count(*) AS n FROM tick[i]
  UPDATE counted[j] AS SELECT count(*) AS n FROM tick[j]
  PARTITION LENGTH 10;
CREATE VIEW most AS SELECT max(n) AS n FROM counted;
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reports") / "warehouse"


@pytest.fixture(scope="module")
def db(folder: Path) -> Iterator[Database]:
    with Database(folder, placement="tasks", runner=LocalRunner(2), partitions=3) as found:
        found.execute(RELATIONS)
        found.insert("shop", [(f"shop {n}", f"town {n % 7}") for n in range(50)])
        for epoch in range(4):
            found.insert("sale", [(1000 * epoch + n, f"shop {n % 50}", n % 90) for n in range(1000)])
        yield found


def tasks(db: Database, view: str) -> dict[str, Any]:
    found = db.explain(view).to_dict()["tasks"]
    assert isinstance(found, dict)
    return found


def test_explain_shows_rooms_and_exchanges(db: Database) -> None:
    found = tasks(db, "by_town")
    assert found["partitions"] == 3
    settled = {one["map"]: room["stage"] for room in found["rooms"] for one in room["settles"]}
    assert settled == {"by_town$1": 1, "by_town": 2}
    held = {(one["relation"], one["spread"]) for room in found["rooms"] for one in room["stores"]}
    assert {("by_town$1", "by shop"), ("shop", "by name"), ("by_town", "by shop.town")} <= held
    ways = {(one["relation"], one["what"], one["source"], one["target"]) for one in found["exchanges"]}
    assert ways == {("sale", "change", 0, 1), ("shop", "change", 0, 1), ("by_town", "pending", 1, 2)}
    assert [one["relation"] for one in found["home"]] == ["sale", "shop"]
    assert "best" in found["rooms"][0]["other_views"]


def test_every_exchange_of_the_plan_is_shown_by_some_view(db: Database) -> None:
    """Rows go nowhere that EXPLAIN does not say."""
    assert db.engine.away is not None
    sent: set[tuple[int, int, int]] = set()
    before = 0
    for job in db.engine.away.jobs(db.engine.schedule, db.engine.catalog):
        if job.plan is None:
            continue
        sent |= {(0, before + ship.level, ship.room) for ships in job.plan.feeds.values() for ship in ships}
        for level, rooms in enumerate(job.plan.levels, 1):
            for room in rooms:
                ships = (*room.ships, *(ship for step in room.steps for ship in step.ships))
                sent |= {(before + level, before + ship.level, ship.room) for ship in ships}
        before += len(job.plan.levels)
    views = [one.name for one in db.engine.catalog if one.program is not None]
    shown = {
        (one["source"], one["target"], one["room"])
        for view in views
        for one in db.explain(view).to_dict().get("tasks", {}).get("exchanges", ())  # type: ignore[attr-defined]
    }
    assert sent <= shown


def test_estimates_follow_from_what_was_seen(db: Database) -> None:
    [sale] = [one for one in tasks(db, "by_shop")["exchanges"] if one["relation"] == "sale"]
    assert sale["rows"] == 1000
    assert 20_000 < sale["bytes"] < 60_000
    [everywhere] = [one for one in tasks(db, "near")["exchanges"] if one["spread"] == "everywhere"]
    [alone] = [one for one in tasks(db, "by_town")["exchanges"] if one["relation"] == everywhere["relation"]]
    assert everywhere["bytes"] == pytest.approx(3 * alone["bytes"], abs=2), "to each of three partitions"


def test_the_text_has_the_same(db: Database) -> None:
    text = str(db.explain("by_town"))
    assert "in tasks: 3 partitions, " in text
    assert "  stage 1, room 0 (also for by_shop, " in text
    assert "    settles by_town by shop.town\n" in text
    assert "  home -> stage 1, room 0: Δsale by shop, about " in text
    assert "  at home: sale, a table: its changes come here first\n" in text
    assert json.loads(str(db.explain("by_town", "json")))["tasks"] == json.loads(json.dumps(tasks(db, "by_town")))
    assert "in tasks" not in str(db.explain("SELECT count(*) AS n FROM sale"))
    with RemoteDatabase(Path(str(db.warehouse.folder))) as remote:
        assert str(remote.explain("by_town")) == text


@pytest.mark.parametrize(
    ("view", "relation", "why"),
    [
        ("now_and_then", "sale", "a table"),
        ("most", "counted", "a view of parts"),
        ("by_shop", "sale", "a table"),
    ],
)
def test_what_stays_at_home_and_why(db: Database, view: str, relation: str, why: str) -> None:
    [found] = [one for one in tasks(db, view)["home"] if one["relation"] == relation]
    assert why in found["why"]


def test_what_is_done_at_home_altogether(db: Database) -> None:
    explained = db.explain("asked")
    assert isinstance(explained, Explanation)
    assert "in tasks: nothing" in str(explained)
    assert "at home: counted, a view of parts that no key divides" in str(db.explain("counted"))


def test_inline_says_nothing_of_tasks() -> None:
    with Database() as db:
        db.execute("CREATE TABLE t (a INT); CREATE VIEW v AS SELECT a, count(*) AS n FROM t GROUP BY a")
        assert "tasks" not in db.explain("v").to_dict()
        assert "in tasks" not in str(db.explain("v"))
        assert "partitions" not in db.status()
        assert all("away" not in one for one in db.status()["relations"])  # type: ignore[attr-defined]


def test_status_says_what_lies_away(db: Database) -> None:
    status: dict[str, Any] = db.status()
    assert (status["placement"], status["partitions"]) == ("tasks", 3)
    facts = {one["name"]: one.get("away") for one in status["relations"]}
    assert facts["sale"] is facts["counted"] is None
    files = list((Path(str(db.warehouse.folder)) / "away" / "segments").glob("by-shop-by*/*/*.parquet"))
    listed = {path for (path,) in db.engine.connection.execute("SELECT path FROM hw.segments").fetchall()}
    files = [one for one in files if str(one) in listed]
    assert facts["by_shop"]["segments"] == len(files) > 0
    assert facts["by_shop"]["bytes"] == sum(one.stat().st_size for one in files)
    assert facts["by_shop"]["rows"] >= 50


def test_show_maps_has_sizes_of_what_lies_away(db: Database) -> None:
    [shown] = db.execute("SHOW MAPS OF by_town")
    assert shown.table is not None
    assert all(one["rows"] and one["bytes"] for one in shown.table.to_pylist())


def test_status_on_the_command_line(
    db: Database, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A warehouse in tasks is looked at without Spark, and is not moved by that."""
    db.close()
    monkeypatch.setattr("headwater.spark.session.start_session", lambda *_: pytest.fail("Spark was started"))
    assert main(["status", str(folder)]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "placement tasks" in lines
    assert "partitions 3" in lines
    assert any(line.startswith("by_shop | view | 50 |") and "segments" in line for line in lines)
    assert main(["explain", "by_town", "--warehouse", str(folder), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["tasks"]["partitions"] == 3
    assert main(["sql", str(folder), "-c", "SELECT count(*) AS n FROM by_shop"]) == 0
    assert "50" in capsys.readouterr().out
