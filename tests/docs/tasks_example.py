"""Prints the worked example of docs/design/tasks.md: `python -m tests.docs.tasks_example`."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from headwater.database import Database
from headwater.engine.local_tasks import LocalRunner

PAGE = Path(__file__).parents[2] / "docs" / "design" / "tasks.md"
BLOCK = re.compile(r"(<!-- printed by tests/docs/tasks_example.py -->\n```\n).*?(```\n)", re.DOTALL)
DEFINITIONS = re.compile(r"<!-- run by tests/docs/tasks_example.py -->\n```sql\n(.*?)```", re.DOTALL)


def printed(page: str) -> str:
    """The sections of EXPLAIN for the page's views, in a warehouse with three partitions and a few epochs."""
    found = DEFINITIONS.search(page)
    assert found is not None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "warehouse"
        with Database(path, placement="tasks", runner=LocalRunner(2), partitions=3) as db:
            db.execute(found[1])
            db.insert("shop", [(f"shop {n}", f"town {n % 7}") for n in range(50)])
            for epoch in range(4):
                rows = [(1000 * epoch + n, f"shop {n % 50}", n % 90) for n in range(1000)]
                db.insert("sale", rows)
            lines: list[str] = []
            for view in ("by_shop", "by_town", "best"):
                tasks = db.explain(view).to_dict()["tasks"]
                assert tasks
                text = str(db.explain(view))
                section = text[text.index("in tasks: ") :].split("\n\n", 1)[0]
                lines += [f"EXPLAIN {view}", section, ""]
    return "\n".join(lines)


def page() -> str:
    """The page as it should be."""
    now = PAGE.read_text("utf-8")
    text = printed(now)
    return BLOCK.sub(lambda found: found[1] + text + found[2], now)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
