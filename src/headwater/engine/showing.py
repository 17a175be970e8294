"""What readers at home see of what lies away: a view over its segments, or one that says which of them cannot be read.

DuckDB looks at the files when a view is made. A warehouse with a damaged file is opened all the same, so that the rest
of it can be read, and what is damaged made anew.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import duckdb

from headwater.emit.layout import sql, store_table
from headwater.engine.segment_files import above, in_quotes, of_other_size, path_list, quoted
from headwater.store.segments import Segment
from headwater.store.storage import said

_SHOWN = "SELECT sql FROM duckdb_views() WHERE schema_name = 'data' AND view_name = ?"
_PATH = re.compile(r"'((?:[^']|'')+\.parquet)'")
_FLOOR = re.compile(r"WHERE .*\bPART\b.* >= (\d+)\D*$")

#: Columns and their types.
Kinds = Sequence[tuple[str, str]]


def shown(connection: duckdb.DuckDBPyConnection, relation: str) -> set[str] | None:
    """The segments that readers see of a relation; None if there is no view of it."""
    found = connection.execute(_SHOWN, [relation]).fetchone()
    return {one.replace("''", "'") for one in _PATH.findall(found[0])} if found else None


def floor_shown(connection: duckdb.DuckDBPyConnection, relation: str) -> int | None:
    """The first part that readers see of a relation, if others were deleted."""
    found = connection.execute(_SHOWN, [relation]).fetchone()
    told = _FLOOR.search(found[0].strip()) if found else None
    return int(told[1]) if told else None


def show(
    connection: duckdb.DuckDBPyConnection,
    relation: str,
    kinds: Kinds,
    segments: Sequence[Segment],
    floor: int | None = None,
) -> None:
    """Let readers see some segments, which must be there; of a view of parts, only those from `floor` on."""
    columns = ", ".join(f"CAST(NULL AS {kind}) AS {quoted(text)}" for text, kind in kinds)
    query = f"SELECT {columns} WHERE false"
    if segments:
        query = f"SELECT * FROM read_parquet({path_list(segments)}){above(floor)}"
    _make(connection, relation, query)


def show_or_say(
    connection: duckdb.DuckDBPyConnection,
    relation: str,
    kinds: Kinds,
    segments: Sequence[Segment],
    floor: int | None = None,
) -> None:
    """The same; if they cannot be read, whoever reads the relation is told so."""
    problem = _problem(connection, segments)
    if problem is None:
        show(connection, relation, kinds, segments, floor)
        return
    told = f"error('{in_quotes(problem)}')"
    columns = ", ".join(f"CAST({told} AS {kind}) AS {quoted(text)}" for text, kind in kinds)
    _make(connection, relation, f"SELECT {columns} FROM range(1) WHERE CAST({told} AS BOOLEAN)")


def _problem(connection: duckdb.DuckDBPyConnection, segments: Sequence[Segment]) -> str | None:
    """Why some segments cannot be read, if that is so."""
    other = of_other_size(segments)
    if other is not None:
        return f'"{other[0]}": {other[1]}'
    beside = connection.cursor()  # an error would end the transaction
    try:
        if segments:
            beside.execute(f"DESCRIBE SELECT * FROM read_parquet({path_list(segments)})")
    except duckdb.Error as error:
        return said(error)
    finally:
        beside.close()
    return None


def _make(connection: duckdb.DuckDBPyConnection, relation: str, query: str) -> None:
    connection.execute(f"CREATE OR REPLACE VIEW {sql(store_table(relation))} AS {query}")
