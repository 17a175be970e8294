"""Where the rows of a relation lie that lies away, and how each of its partitions is evaluated by itself.

How a view is stored is its own matter: rows have multiplicities, groups have totals that its columns are made of. So
whoever wants a partition asks the question of its segments that would be asked at home for all of the view. Rows that
add up lie in the same partition, so the answers are parts of the whole one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from headwater.emit.layout import sql, store_table
from headwater.engine.segment_files import above, in_quotes
from headwater.engine.showing import floor_shown, shown
from headwater.serve.query import Prepared, in_row_form
from headwater.sql.lower import Answer
from headwater.store.storage import storage_of

_BATCH_ROWS = 100_000


@dataclass(frozen=True)
class Lying:
    """A relation that lies away, as of one epoch.

    Attributes:
        store: its name.
        query: what asks for all of its rows.
        answer: the same, bound.
        partitions: the files of each.
        floor: the oldest part that is kept, if it is a view of parts and others were deleted.
    """

    store: str
    query: str
    answer: Answer
    partitions: tuple[tuple[str, ...], ...]
    floor: int | None = None

    @property
    def paths(self) -> list[str]:
        return [path for one in self.partitions for path in one]

    def rows(self, partition: int, memory: int) -> Iterator[pa.Table]:
        """The rows of a partition, evaluated with so many bytes of memory."""
        files = ", ".join(f"'{in_quotes(path)}'" for path in self.partitions[partition])
        with duckdb.connect(":memory:") as connection:
            connection.execute(f"SET threads = 1; SET memory_limit = '{memory}B'; CREATE SCHEMA data")
            for path in self.partitions[partition][:1]:
                storage_of(path).lend(connection)
            view = sql(store_table(self.store))
            connection.execute(f"CREATE VIEW {view} AS SELECT * FROM read_parquet([{files}]){above(self.floor)}")
            for batch in connection.sql(self.query).to_arrow_reader(_BATCH_ROWS):
                yield in_row_form(pa.Table.from_batches([batch]), self.answer)


def lying(reader: duckdb.DuckDBPyConnection, query: Prepared) -> Lying | None:
    """Where the rows of a relation lie in a reader's snapshot, if they lie away, in some file at least.

    Args:
        reader: inside a transaction.
        query: asks for all rows of the relation.
    """
    if not query.is_plain or len(query.stores) != 1:
        return None
    [store] = query.stores
    paths = shown(reader, store)
    if not paths:
        return None
    partitions: dict[str, list[str]] = {}
    for path in sorted(paths):
        partitions.setdefault(path.rpartition("/")[0], []).append(path)
    files = tuple(map(tuple, partitions.values()))
    return Lying(store, query.text(frozenset()), query.answer, files, floor_shown(reader, store))
