"""What a statement answers."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class Result:
    """What a statement did.

    Attributes:
        statement: its kind, such as `CREATE VIEW` or `SELECT`.
        message: one line for people.
        table: rows, for statements that answer with rows.
        text: prose, for EXPLAIN.
        epoch: the epoch it committed, if it changed data.
        seconds: how long it took.
        notices: what is worth knowing besides.
    """

    statement: str
    message: str
    table: pa.Table | None = None
    text: str | None = None
    epoch: int | None = None
    seconds: float = 0.0
    notices: tuple[str, ...] = ()


def count_of(rows: int, what: str = "row") -> str:
    """A number of rows, or of something else, in words."""
    return f"1 {what}" if rows == 1 else f"{rows:,} {what}s"
