"""What a relation holds is written as segments: every row once, where it belongs, in order, and added up once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

import headwater as hw
from headwater.engine import sending
from headwater.engine.local_tasks import LocalRunner
from headwater.engine.segment_files import copy_to, put_together
from headwater.engine.sending import SENDING, written
from headwater.engine.tasks import CopyPlan
from headwater.store.segments import ALL, Segment

NET = (
    'SELECT k, t, CAST(sum("#n") AS BIGINT) AS "#n", max("#e") AS "#e" FROM data.r GROUP BY k, t HAVING sum("#n") <> 0'
)


class Noting:
    """A connection, and what was asked of it."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self.asked: list[str] = []

    def execute(self, statement: str) -> Any:
        self.asked.append(statement)
        return self._connection.execute(statement)


@pytest.fixture
def connection() -> Noting:
    connection = duckdb.connect()
    connection.execute("SET preserve_insertion_order = false")
    connection.execute("CREATE SCHEMA data")
    connection.execute(
        'CREATE TABLE data.r AS SELECT k, t, n AS "#n", e AS "#e" FROM (SELECT i * 7 % 5000 AS k, '
        "'it''s ' || i % 10 AS t, CAST(CASE WHEN i % 3 = 0 AND i > 5000 THEN -1 ELSE 1 END AS BIGINT) AS n, "
        "CAST(i % 11 AS BIGINT) AS e FROM range(10000) AS r(i))"
    )
    return Noting(connection)


def copy(partition: str | None, net: str) -> CopyPlan:
    return CopyPlan("r-by-k", "r", partition, ("k", "t"), net, ())


@pytest.mark.parametrize("partitions", [1, 4, 40])
@pytest.mark.parametrize("net", ["", NET])
@pytest.mark.parametrize("by", [None, "hash(k) % $partitions", "k % 3"])
def test_every_row_where_it_belongs(
    connection: Noting, tmp_path: Path, partitions: int, net: str, by: str | None
) -> None:
    folder = tmp_path / "it's [1]"
    if by == "k % 3" and partitions == 1:
        by = "0"
    found = dict(written(connection, copy(by, net), partitions, str(folder), 10, "attempt", 5))  # type: ignore[arg-type]
    source = net or "SELECT * FROM data.r"
    rows = connection._connection.execute(f"SELECT * FROM ({source})").fetchall()
    where = "-1" if by is None else by.replace("$partitions", str(partitions))
    wanted = dict(
        connection._connection.execute(f"SELECT {where} AS p, count(*) FROM ({source}) GROUP BY p").fetchall()
    )
    assert {partition: one.rows for partition, one in found.items()} == wanted
    assert set(found) == {ALL} if by is None else ALL not in found
    read: list[tuple[object, ...]] = []
    for one in found.values():
        path = one.path.replace("'", "''").replace("[", "[[]")
        mine = connection._connection.execute(
            f"SELECT * EXCLUDE file_row_number FROM read_parquet('{path}', file_row_number = true) "
            "ORDER BY file_row_number"
        ).fetchall()
        assert [row[:2] for row in mine] == sorted(row[:2] for row in mine)
        assert (one.first, one.last, one.generation, one.size) == (0, 10, 5, Path(one.path).stat().st_size)
        read += mine
    assert sorted(read) == sorted(rows)
    if net:
        assert sum(NET in one for one in connection.asked) == 1
    assert not list((folder / SENDING).glob("*")) if (folder / SENDING).exists() else True


def test_a_source_without_rows(connection: Noting, tmp_path: Path) -> None:
    connection.execute("DELETE FROM data.r")
    for net in ("", NET):
        assert not list(written(connection, copy("k % 2", net), 2, str(tmp_path), 1, "a", 1))  # type: ignore[arg-type]
    assert not list(tmp_path.rglob("*.parquet"))


def test_what_was_on_its_way_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = LocalRunner(1)
    with hw.Database(tmp_path / "w", placement="tasks", runner=runner, partitions=2) as db:
        db.execute("CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2), (3)")

        def failing(*_: object) -> None:
            assert list((tmp_path / "w" / "away" / SENDING).rglob("*.parquet"))
            raise OSError("no room")

        monkeypatch.setattr(sending, "copy_to", failing)
        with pytest.raises(OSError, match="no room"):
            db.execute("CREATE VIEW v AS SELECT a, count(*) AS n FROM t GROUP BY a")
        assert not list((tmp_path / "w" / "away").rglob("*.parquet"))
        monkeypatch.undo()
    killed = tmp_path / "w" / "away" / SENDING / "x" / "0.parquet"
    killed.parent.mkdir(parents=True)
    killed.write_bytes(b"")
    with hw.Database(tmp_path / "w", placement="tasks", runner=runner, partitions=2) as db:
        assert not killed.exists()
        db.execute("CREATE VIEW v AS SELECT a, count(*) AS n FROM t GROUP BY a")
        assert db.query("SELECT * FROM v").num_rows == 3
    runner.close()


def test_wide_rows_are_put_together_in_little_memory(tmp_path: Path) -> None:
    """Files of 60 MB and an engine with 150: neither a whole file fits beside others nor what they add up to."""
    with duckdb.connect(config={"threads": 1, "temp_directory": str(tmp_path / "spilled")}) as connection:
        connection.execute("SET preserve_insertion_order = false")
        segments = []
        text = " || ".join(f"md5(CAST(i * 32 + {number} AS VARCHAR))" for number in range(32))
        for number in range(3):
            path = str(tmp_path / f"{number}.parquet")
            columns = f'i AS k, {text} AS t, CAST(1 AS BIGINT) AS "#n", CAST({number} AS BIGINT) AS "#e"'
            rows = copy_to(connection, f"SELECT {columns} FROM range(60000) AS r(i) ORDER BY k", path)
            segments.append(Segment(path, number, number, rows, Path(path).stat().st_size, 1))
        connection.execute("SET memory_limit = '150MB'")
        assert put_together(connection, copy(None, NET), segments, str(tmp_path / "all.parquet")) == 60_000
