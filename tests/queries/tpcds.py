"""TPC-DS: its queries and its schema, read from sqlglot's source distribution, which has them among its tests.

They are not ours to store. Get them, and say where they are:

    pip download --no-deps --no-binary sqlglot sqlglot==30.30.0 -d /tmp/tpcds
    tar -xzf /tmp/tpcds/sqlglot-30.30.0.tar.gz -C /tmp/tpcds
    HEADWATER_TPCDS=/tmp/tpcds/sqlglot-30.30.0 .venv/bin/python -m pytest tests/queries
"""

from __future__ import annotations

import ast
import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = os.environ.get("HEADWATER_TPCDS", "")
_TYPES = {"bigint": "INT", "string": "STRING", "double": "DECIMAL(7, 2)"}
_QUOTED = re.compile(r'"([^"]*)"')


@dataclass(frozen=True)
class Table:
    """A table and its columns, each with its type in Spark."""

    name: str
    columns: tuple[tuple[str, str], ...]

    @property
    def sql(self) -> str:
        """The statement that creates it."""
        columns = ", ".join(f"{name} {kind}" for name, kind in self.columns)
        return f"CREATE TABLE {self.name} ({columns})"


@cache
def queries() -> tuple[str, ...]:
    """The 99 queries in Spark's dialect; without what the fixture expects of sqlglot."""
    text = (Path(FOLDER) / "tests/fixtures/optimizer/tpc-ds/tpc-ds.sql").read_text()
    kept = "\n".join(line for line in text.splitlines() if not line.startswith(("--", "#")))
    statements = [one.strip() for one in kept.split(";") if one.strip()]
    return tuple(_QUOTED.sub(r"`\1`", one) for one in statements[::2])


@cache
def tables() -> tuple[Table, ...]:
    """The 24 tables."""
    for node in ast.parse((Path(FOLDER) / "tests/helpers.py").read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "TPCDS_SCHEMA":
            schema: dict[str, dict[str, str]] = ast.literal_eval(node.value)
            return tuple(Table(name, tuple((c, _type(c, k)) for c, k in of.items())) for name, of in schema.items())
    raise LookupError("the source distribution has no TPCDS_SCHEMA")


def _type(column: str, kind: str) -> str:
    return "DATE" if re.search(r"_date$", column) else _TYPES[kind]
