"""Answering ad hoc queries from the last committed epoch."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection

import duckdb
import pyarrow as pa
from sqlglot import exp

from headwater.algebra.nodes import Present
from headwater.emit.duckdb import Emitter
from headwater.emit.layout import EPOCH, MULTIPLICITY, SHOWN, bigint, column, name, number, sql, store_table, total
from headwater.engine.arrow_types import from_storage
from headwater.engine.failures import Disturbed, is_planning_error, is_value_error, translate
from headwater.sql.lower import Answer
from headwater.store.catalog import Catalog, Relation, stored_version
from headwater.store.warehouse import Warehouse


def answer_query(answer: Answer, emitter: Emitter) -> str:
    """The SQL that yields an answer's rows, each as often as it counts, in order."""
    return sql(emitter.sharing(lambda: _answer_query(answer, emitter)))


def _answer_query(answer: Answer, emitter: Emitter) -> exp.Select:
    node = answer.node
    names = node.column_names
    if isinstance(node, Present):
        rows: exp.Query = emitter.rows(node)
    else:
        rows = _spread(emitter.net_rows(node), names)
    query = exp.Select(expressions=[column(text) for text in names[: len(answer.names)]])
    query = query.from_(exp.Subquery(this=rows, alias=exp.TableAlias(this=name("#answer"))), copy=False)
    for key in answer.order:
        by = exp.Ordered(this=column(key.column), desc=key.descending, nulls_first=key.nulls_first)
        query = query.order_by(by, copy=False, dialect="duckdb")
    if answer.limit is not None:
        query = query.limit(answer.limit, copy=False)
    if answer.offset:
        query = query.offset(answer.offset, copy=False)
    return query


def _spread(rows: exp.Query, names: tuple[str, ...]) -> exp.Select:
    """A row of multiplicity n as n rows."""
    copies = exp.Explode(this=exp.func("RANGE", column(MULTIPLICITY)))
    query = exp.Select(expressions=[*(column(text) for text in names), exp.Alias(this=copies, alias=name("#copy"))])
    return query.from_(exp.Subquery(this=rows, alias=exp.TableAlias(this=name("#net"))), copy=False)


def run_query(warehouse: Warehouse, answer: Answer, catalog: Catalog) -> pa.Table:
    """Evaluate an answer, bound to a catalogue, on a snapshot of its own.

    Raises:
        Disturbed: the snapshot has another catalogue.
    """
    reader = warehouse.reader()
    try:
        try:
            table = _evaluate(warehouse, reader, answer, catalog, net=False)
        except duckdb.Error as error:
            if not is_value_error(error) and not is_planning_error(error):
                raise
            reader.execute("ROLLBACK")
            with warehouse.cautious_planning():  # perhaps only a row that is gone already cannot be computed
                table = _evaluate(warehouse, reader, answer, catalog, net=True)
    except duckdb.Error as error:
        raise translate(error) from error
    finally:
        reader.close()
    return from_storage(table, answer.node.schema[: len(answer.names)]).rename_columns(list(answer.names))


def _evaluate(
    warehouse: Warehouse, reader: duckdb.DuckDBPyConnection, answer: Answer, catalog: Catalog, net: bool
) -> pa.Table:
    warehouse.plan_quickly(False)
    reader.execute("BEGIN")
    if stored_version(reader) != catalog.version:
        raise Disturbed("HW902", "the catalogue has changed")
    return reader.sql(answer_query(answer, Emitter(catalog.grouped, net))).to_arrow_table()


def count_rows(warehouse: Warehouse, relation: Relation, grouped: Collection[str]) -> int:
    """How many rows a relation has, each as often as it counts; `grouped` as of `Emitter`."""
    query = exp.Select(expressions=[bigint(exp.func("COALESCE", total(column(MULTIPLICITY)), number(0)))])
    query = query.from_(store_table(relation.name), copy=False)
    if relation.name in grouped:
        query = query.where(column(SHOWN), copy=False)
    reader = warehouse.reader()
    try:
        found = reader.execute(sql(query)).fetchone()
    except duckdb.Error as error:
        raise translate(error) from error
    finally:
        reader.close()
    return int(found[0]) if found else 0


def epochs(warehouse: Warehouse) -> pa.Table:
    """All epochs: number, clock, how many changes, and the refresh policies that ticked."""
    reader = warehouse.reader()
    try:
        query = """SELECT number, clock, changes, array_to_string(ticked::VARCHAR[], ', ') AS ticked
                   FROM hw.epochs ORDER BY number"""
        return reader.sql(query).to_arrow_table()
    except duckdb.Error as error:
        raise translate(error) from error
    finally:
        reader.close()


def oldest_waiting(warehouse: Warehouse, store: str) -> tuple[int, int | None, dt.datetime | None]:
    """How many rows wait in a store, the epoch that the first of them came in, and its clock."""
    query = exp.Select(expressions=[exp.Count(this=exp.Star()), exp.Min(this=column(EPOCH))])
    reader = warehouse.reader()
    try:
        found = reader.execute(sql(query.from_(store_table(store), copy=False))).fetchone()
        rows, epoch = found or (0, None)
        clock = reader.execute("SELECT clock FROM hw.epochs WHERE number = ?", [epoch]).fetchone() if epoch else None
    except duckdb.Error as error:
        raise translate(error) from error
    finally:
        reader.close()
    return rows, epoch, clock[0] if clock else None


def count_rejects(warehouse: Warehouse, stream: Relation) -> dict[str, int]:
    """How many rows of a stream came and changed nothing, since the stream was made, by reason."""
    query = """SELECT reason, sum(records)::BIGINT FROM hw.rejects
               WHERE stream = ? AND epoch > ? GROUP BY reason"""
    reader = warehouse.reader()
    try:
        return dict(reader.execute(query, [stream.name, stream.created]).fetchall())
    except duckdb.Error as error:
        raise translate(error) from error
    finally:
        reader.close()
