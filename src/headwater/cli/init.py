"""`headwater init`: a small project that runs at once."""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any

from headwater.cli.render import say
from headwater.errors import UserError
from headwater.project import PROJECT_FILE

_EXAMPLES = """\
examples:
  headwater init shop && headwater run shop --once
"""

_TOML = """\
# A Headwater project: the .sql files beside this one define its relations.
warehouse = "warehouse"    # made by the first run
placement = "driver"       # sources on Spark, maintenance in the same process

[spark]
# "spark.driver.memory" = "4g"
"""

_SQL = """\
-- Every new file in the folder `orders` is a batch of orders, one JSON object a line.
CREATE STREAM orders (at TIMESTAMP, city STRING NOT NULL, item STRING, euros DECIMAL(10,2)) RETAIN ALL
  FROM json 'orders';

CREATE VIEW revenue AS
  SELECT city, COUNT(*) AS orders, SUM(euros) AS euros FROM orders GROUP BY city;

CREATE VIEW good_cities AS
  SELECT city, euros FROM revenue WHERE euros > 1000;
"""


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "init",
        help="make a small project that runs at once",
        description="Make a project's folder with a stream, two views and some data to try them on.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[common],
    )
    parser.add_argument("project", metavar="PROJECT", help="the folder to make")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Carry the command out."""
    folder = Path(args.project)
    make_project(folder)
    say(f"made {folder}: {PROJECT_FILE}, shop.sql and some orders")
    say(f"run it:    headwater run {folder} --once")
    say(f"look:      headwater sql {folder} -c 'SELECT * FROM revenue'")
    return 0


def make_project(folder: Path) -> None:
    """Write the files of a small project.

    Raises:
        UserError: HW478, the folder has something in it, or cannot be written.
    """
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UserError("HW478", f"{folder} is there already, and is not empty", hint="name a new folder")
        (folder / "orders").mkdir(parents=True)
        (folder / PROJECT_FILE).write_text(_TOML, encoding="utf-8")
        (folder / "shop.sql").write_text(_SQL, encoding="utf-8")
        for number in range(3):
            (folder / "orders" / f"day{number + 1}.json").write_text(_orders(number), encoding="utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError("HW478", f"{folder} cannot be written: {reason}", hint="name another folder") from error


def _orders(day: int) -> str:
    rng = random.Random(day)
    lines = [
        {
            "at": f"2026-03-{day + 1:02d} {rng.randrange(8, 20):02d}:{rng.randrange(60):02d}:00",
            "city": rng.choice(["London", "Paris", "Rome", "Oslo"]),
            "item": rng.choice(["lamp", "rope", "sail", "oar"]),
            "euros": f"{rng.randrange(100, 9_900) / 100:.2f}",
        }
        for _ in range(100)
    ]
    return "".join(json.dumps(line) + "\n" for line in lines)
