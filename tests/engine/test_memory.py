"""How much memory DuckDB may take: what needs more is done on disk, or fails and changes nothing."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import headwater as hw

ROWS = 400_000


def wide(width: int) -> pa.Table:
    """Rows whose texts are all different, with so many characters each."""
    return pa.table({"id": pa.array(range(ROWS), pa.int64()), "text": [f"{one:0{width}d}" for one in range(ROWS)]})


def test_a_view_larger_than_memory_is_filled_and_maintained(tmp_path: Path) -> None:
    with hw.Database(tmp_path / "w", memory="100MB") as db:
        db.execute("CREATE TABLE t (id BIGINT, text STRING)")
        db.insert("t", wide(400))  # 160 MB of texts
        db.execute("CREATE VIEW v AS SELECT text, count(*) AS n, max(id) AS last FROM t GROUP BY text")
        db.insert("t", wide(400).slice(0, 1000))
        assert db.query("SELECT count(*) AS n, sum(n) AS rows FROM v").to_pylist() == [{"n": ROWS, "rows": ROWS + 1000}]


def test_too_little_memory_is_told_and_nothing_changes(tmp_path: Path) -> None:
    with hw.Database(tmp_path / "w", memory="8MB") as db:
        db.execute("CREATE TABLE t (id BIGINT, text STRING)")
        db.insert("t", wide(10).slice(0, 10))
        with pytest.raises(hw.UserError, match="HW407") as raised:
            db.insert("t", wide(400))
        assert "memory=" in str(raised.value.hint)
        assert db.query("SELECT count(*) AS n FROM t").to_pylist() == [{"n": 10}]


@pytest.mark.parametrize("memory", ["a lot", "8", "0GB", "-1GB", "8GB; DROP TABLE t", 8, ""])
def test_no_amount(memory: object) -> None:
    with pytest.raises(hw.UserError, match="HW432"):
        hw.connect(memory=memory)  # type: ignore[arg-type]
