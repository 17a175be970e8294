"""What waits for a point, at home and in tasks: two warehouses are told the same story, and cannot be told apart.

One is in this process. The other runs its programs in tasks, is closed and opened, moves home and away again, is
divided anew and refreshed. After every epoch all views hold the same, have changed in the same way, the same policies
have ticked, and nothing waits that does not wait at home.
"""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pytest

import headwater as hw
from headwater.engine.local_tasks import LocalRunner
from tests.engine.support import bag
from tests.equivalence.bags import Bag
from tests.equivalence.subject import bag_of

START = dt.datetime(2026, 1, 1)
RELATIONS = """
    CREATE TABLE room (id INT PRIMARY KEY, house INT, temp INT);
    CREATE STREAM meter (id INT, watts INT) KEY (id);
    CREATE STREAM call (room INT, n INT);
    CREATE STREAM kept (room INT, n INT) RETAIN ALL;
    CREATE STREAM point (at INT);
    CREATE VIEW hot AS SELECT house, count(*) AS n, max(temp) AS most FROM room WHERE temp > 10 GROUP BY house;
    CREATE VIEW alarm AS SELECT DISTINCT temp FROM room WHERE temp > 17
"""
VIEWS: Mapping[str, str] = {
    "every": "REFRESH EVERY 3 SECONDS AS SELECT house, sum(temp) AS temp, count(*) AS n FROM room GROUP BY house",
    "rows": "REFRESH EVERY 3 SECONDS AS SELECT id, temp FROM room WHERE temp > 5",
    "joined": "REFRESH ON point AS SELECT r.house, sum(m.watts) AS watts FROM room r JOIN meter m ON r.id = m.id "
    "GROUP BY r.house",
    "stepped": "REFRESH ON point STRATEGY 'viewlet' AS SELECT r.house, sum(m.watts * r.temp) AS w "
    "FROM room r JOIN meter m ON r.id = m.id GROUP BY r.house",
    "by_hand": "REFRESH MANUAL RETAIN CHANGES ALL AS SELECT max(watts) AS most, count(*) AS n FROM meter",
    "over_view": "REFRESH ON point AS SELECT most, sum(n) AS n FROM hot GROUP BY most",
    "by_view": "REFRESH ON alarm AS SELECT id, temp FROM room",
    "calls": "REFRESH EVERY 2 SECONDS AS SELECT room, sum(n) AS n FROM call GROUP BY room",
    "pairs": "REFRESH ON point AS SELECT c.n, r.temp FROM call c JOIN room r ON c.room = r.id",
    "all_calls": "REFRESH ON alarm AS SELECT count(*) AS n, min(n) AS least FROM kept",
    "one_input": "AS SELECT r.id, r.temp, m.watts FROM R(room, point) r JOIN meter m ON r.id = m.id",
    "both": "AS SELECT a.id, a.temp AS new, b.temp AS old FROM room a JOIN R(room, point) b ON a.id = b.id "
    "WHERE a.temp <> b.temp",
    "over": "AS SELECT house, temp FROM every WHERE n > 1",
    "again": "REFRESH EVERY 4 SECONDS AS SELECT sum(temp) AS temp FROM every",
    "anew": "REFRESH EVERY 3 SECONDS STRATEGY 're-evaluate' AS SELECT house, sum(temp) AS t FROM room GROUP BY house "
    "HAVING sum(temp) > (SELECT avg(temp) FROM room)",
}


class Told:
    """A warehouse, and what its views did in the last epoch."""

    def __init__(self, place: str | Path, seed: int, tasks: bool) -> None:
        self._place, self._seed, self._tasks = place, seed, tasks
        self.now = START
        self.changes: dict[str, Bag] = {}
        self.open(tasks)

    def open(self, tasks: bool, partitions: int | None = None) -> None:
        runner = LocalRunner(2, self._seed, mishaps=self._seed % 2 * 0.2) if tasks else None
        placement = "tasks" if tasks else "inline"
        segments = f"memory://waiting/{self._seed}" if tasks and self._seed % 2 else None
        self.db = hw.Database(
            self._place,
            clock=lambda: self.now,
            placement=placement,
            runner=runner,
            partitions=partitions,
            segments=segments,
        )
        self.db.observe(self._observe)

    def _observe(self, number: int, changes: Mapping[str, pa.Table]) -> None:
        self.changes = {name: bag_of(table) for name, table in changes.items()}

    def state(self) -> dict[str, object]:
        db = self.db
        with db.engine.lock:
            ticked = db.engine.connection.execute("SELECT number, ticked FROM hw.epochs").fetchall()
        return {
            "epoch": db.engine.epoch,
            "held": {name: bag(db, name) for name in ("hot", "alarm", *VIEWS) if db.engine.catalog.find(name)},
            "changed": {name: {row: n for row, n in one.items() if n} for name, one in self.changes.items()},
            "ticked": ticked,
        }

    @property
    def waits(self) -> set[str]:
        return {name for name, rows in self.db.engine.waiting.rows.items() if rows}


def statements(rng: random.Random) -> list[tuple[str, str, list[tuple[object, ...]]]]:
    """The changes of an epoch."""
    found: list[tuple[str, str, list[tuple[object, ...]]]] = []
    rooms = {n: (n, rng.randrange(4), rng.randrange(20)) for n in rng.sample(range(8), rng.randint(0, 3))}
    if rooms:
        found.append(("upsert", "room", list(rooms.values())))
    if rooms and rng.random() < 0.4:
        found.append(("delete_keys", "room", [(rng.choice(list(rooms)),)]))
    for stream, key in (("meter", 6), ("call", 8), ("kept", 8)):
        if rng.random() < 0.6:
            found.append(("insert", stream, [(rng.randrange(key), rng.randrange(9)) for _ in range(rng.randint(1, 3))]))
    if rng.random() < 0.3:
        found.append(("insert", "point", [(rng.randrange(3),)]))
    return found


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_what_waits_in_tasks_is_what_waits_at_home(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    home, other = Told(":memory:", seed, tasks=False), Told(tmp_path / "w", seed, tasks=True)
    both = home, other
    left = rng.sample(list(VIEWS), len(VIEWS)) if seed else list(VIEWS)
    left.sort(key=lambda name: name in ("over", "again"))  # these read another one
    first, late = left[: -3 - seed], left[-3 - seed :]
    with (
        mock.patch("headwater.engine.merges.MOST_SEGMENTS", 3),
        mock.patch("headwater.engine.merges.STAGGERED", 1),
        mock.patch("headwater.engine.segment_files._UNPACKED", 1 << 40 if seed == 3 else 5),
    ):
        for one in both:
            one.db.execute(RELATIONS)
            for name in first:
                one.db.execute(f"CREATE VIEW {name} {VIEWS[name]}")
        moved = Counter[str]()
        for number in range(16):
            what = rng.choice(["", "", "", "open", "home", "divide", "refresh", "by hand", "create", "drop"])
            moved[what] += 1
            if what in ("open", "home"):
                other.db.close()
                if what == "home":
                    other.open(tasks=False)
                    other.changes = home.changes
                    assert other.state() == home.state(), (number, what)
                    other.db.close()
                other.open(tasks=True, partitions=rng.choice([None, 1, 3]))
            elif what == "divide":
                other.db.execute(f"ALTER WAREHOUSE SET PARTITIONS {rng.randint(1, 4)}")
            for one in both:
                one.now += dt.timedelta(seconds=number % 3)
            changes = statements(rng)
            name = first[rng.randrange(len(first))]
            for one in both:
                one.changes = {}
                if what == "refresh":
                    one.db.execute(f"REFRESH VIEW {name}")
                elif what == "by hand" and "by_hand" in first:
                    one.db.execute("REFRESH VIEW by_hand")
                elif what == "create" and late:
                    one.db.execute(f"CREATE VIEW {late[0]} {VIEWS[late[0]]}")
                elif what == "drop" and number > 8 and name not in ("every",) and len(first) > 6:
                    one.db.execute(f"DROP VIEW {name}")
                else:
                    with one.db.epoch() as e:
                        for method, relation, rows in changes:
                            getattr(e, method)(relation, rows)
            if what == "create" and late:
                first.append(late.pop(0))
            elif what == "drop" and number > 8 and name not in ("every",) and len(first) > 6:
                first.remove(name)
            assert other.state() == home.state(), (number, what, moved)
            assert other.waits <= home.waits, "or it has cancelled out already"
    for one in both:
        one.db.close()
