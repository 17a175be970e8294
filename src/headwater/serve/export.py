"""Rows of several relations, all as of one epoch, batch by batch: for whoever computes elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import duckdb
import pyarrow as pa

from headwater.engine.arrow_types import arrow_schema
from headwater.engine.failures import Disturbed, translate
from headwater.serve.lying import Lying, lying
from headwater.serve.query import Prepared, in_row_form
from headwater.store.catalog import Catalog, stored_version
from headwater.store.warehouse import Warehouse

_BATCH_ROWS = 500_000

#: Takes a relation's name, its schema and its rows.
Take = Callable[[str, pa.Schema, Iterator[pa.Table]], None]
#: Takes a relation's name, and where its rows lie.
TakeLying = Callable[[str, Lying], None]


def export(
    warehouse: Warehouse,
    queries: Mapping[str, Prepared],
    catalog: Catalog,
    take: Take,
    lies: TakeLying | None = None,
) -> None:
    """Hand over what some queries yield in one snapshot.

    Args:
        warehouse: the one that is read.
        queries: by name, bound to the catalogue.
        catalog: which.
        take: called once for each query.
        lies: called in its place for what lies away, if it is given.

    Raises:
        Disturbed: the snapshot has another catalogue.
    """
    warehouse.plan_quickly(False)
    reader = warehouse.reader()
    try:
        reader.execute("BEGIN")
        if stored_version(reader) != catalog.version:
            raise Disturbed("HW902", "the catalogue has changed")
        for name, query in queries.items():
            if lies is not None and (away := lying(reader, query)) is not None:
                lies(name, away)
                continue
            batches = reader.sql(query.text(frozenset())).to_arrow_reader(_BATCH_ROWS)
            rows = (in_row_form(pa.Table.from_batches([one]), query.answer) for one in batches)
            take(name, arrow_schema(query.answer.node.schema[: len(query.answer.names)]), rows)
    except duckdb.Error as error:
        raise translate(error) from error
    finally:
        reader.close()
