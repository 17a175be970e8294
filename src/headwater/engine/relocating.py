"""A warehouse's folder under another name: what lies away is listed by its path."""

from __future__ import annotations

from pathlib import Path

import duckdb

_KEY = "away"


def relocate(connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Let segments be looked for where the warehouse is now, inside the caller's transaction.

    A folder may have been moved, or this is a copy of it: then what the original reads and writes is not ours. Views
    of what lies away are made anew by who looks at the list next.
    """
    found = connection.execute("SELECT value FROM hw.meta WHERE key = ?", [_KEY]).fetchone()
    before = found[0] if found else None
    if before == str(folder):
        return
    connection.execute("DELETE FROM hw.meta WHERE key = ?", [_KEY])
    connection.execute("INSERT INTO hw.meta VALUES (?, ?)", [_KEY, str(folder)])
    if before is None:
        return
    old, new = f"{before}/", f"{folder}/"
    connection.execute(
        "UPDATE hw.segments SET path = ? || substr(path, length(?) + 1) WHERE starts_with(path, ?)", [new, old, old]
    )
