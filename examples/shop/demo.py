"""The demo: runs the story in this folder, then compares every view with its recomputation.

After each statement the demo shows what changed in the views: rows that came (+) and rows that left (-).
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import duckdb
import pyarrow as pa
import sqlglot

import headwater as hw
from headwater.results import count_of
from headwater.sql.parse import parse

HERE = Path(__file__).parent


def main() -> int:
    """Run the story; returns 0 if every view equals its recomputation."""
    with tempfile.TemporaryDirectory(prefix="headwater-demo-") as folder, hw.connect(Path(folder) / "shop") as db:
        assert isinstance(db, hw.Database)
        print("Headwater demo: a shop, five views, and a story of seven epochs.\n")
        for file in ("1_schema.sql", "2_views.sql"):
            for result in db.execute((HERE / file).read_text(), name=file):
                print(f"  {result.message}")
        db.observe(show_changes)
        story = (HERE / "3_story.sql").read_text()
        for statement in parse(story, "3_story.sql"):
            print(f"\n{statement.text.splitlines()[0]}{' ...' if len(statement.text.splitlines()) > 1 else ''}")
            began = time.perf_counter()
            db.execute(statement.text)
            print(f"  [{(time.perf_counter() - began) * 1000:.0f} ms]")
        print("\nEach view beside its query evaluated from scratch by DuckDB over plain tables:\n")
        return 0 if compare(db) else 1


def show_changes(epoch: int, changes: dict[str, pa.Table]) -> None:
    """Print what an epoch changed."""
    print(f"  epoch {epoch}")
    for view, table in changes.items():
        rows = table.to_pylist()
        for row in sorted(rows, key=lambda row: row["#n"]):
            n = row.pop("#n")
            print(f"    {view:13} {'+' if n > 0 else '-'} {', '.join(show(v) for v in row.values())}")


def show(value: object) -> str:
    return "NULL" if value is None else str(value)


def compare(db: hw.Database) -> bool:
    """Evaluate every view from scratch, from the tables' rows and the views' own text."""
    scratch = duckdb.connect()
    equal = True
    for relation in db.relations():
        name = str(relation["name"])
        if relation["kind"] != "view":
            rows = db.query(f"SELECT * FROM {name}")
            scratch.register(f"{name}_rows", rows)
            scratch.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_rows")
            continue
        definition = sqlglot.parse_one(db.find(name).sql, dialect="spark")
        scratch.execute(definition.sql(dialect="duckdb"))
        anew = scratch.execute(f"SELECT * FROM {name}").fetchall()
        kept = [tuple(row.values()) for row in db.query(f"SELECT * FROM {name}").to_pylist()]
        same = Counter(map(rounded, anew)) == Counter(map(rounded, kept))
        equal = equal and same
        print(f"  {name}: {count_of(len(kept))}, {'equal' if same else 'DIFFERENT'}")
        for row in sorted(kept, key=str):
            print(f"    {', '.join(show(v) for v in row)}")
    verdict = "All views equal their recomputation." if equal else "A view differs from its recomputation!"
    print(f"\n{verdict}")
    return equal


def rounded(row: tuple[object, ...]) -> tuple[object, ...]:
    """DuckDB averages decimals as DOUBLE; compare to six digits, as many as the view has."""
    return tuple(round(float(v), 6) if isinstance(v, float) or hasattr(v, "as_tuple") else v for v in row)


if __name__ == "__main__":
    sys.exit(main())
