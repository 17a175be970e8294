"""Answering ad hoc queries from the last committed epoch."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Callable, Collection, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from headwater.algebra.nodes import Present, Scan, Version, only_grows
from headwater.emit.duckdb import Emitter
from headwater.emit.layout import EPOCH, MULTIPLICITY, SHOWN, bigint, column, name, number, sql, store_table, total
from headwater.engine.arrow_types import from_storage
from headwater.engine.failures import Disturbed, is_planning_error, is_value_error, translate
from headwater.engine.past import Past, past_query
from headwater.engine.stamps import Stamps
from headwater.serve.uppers import Order, Uppers
from headwater.sql.lower import Answer
from headwater.store.catalog import Catalog, Relation, stored_version
from headwater.store.warehouse import Warehouse


@dataclass(frozen=True)
class Prepared:
    """A query that can be run at once, for as long as the catalogue is the one that it is bound to.

    Attributes:
        answer: the query.
        catalog: what it is bound to.
        past: relations that are read as they were, by the names that the query has for them.
        stores: what it reads.
        texts: its SQL, by the stores whose rows are single.
        given: constants that it is run with, by the names that its SQL has for them.
    """

    answer: Answer
    catalog: Catalog
    past: Mapping[str, Past]
    stores: tuple[str, ...]
    texts: dict[frozenset[str], str] = field(default_factory=dict, compare=False)
    given: Mapping[str, object] | None = None

    @cached_property
    def relations(self) -> frozenset[str]:
        """What its tree reads."""
        return self.answer.node.relations

    @cached_property
    def is_plain(self) -> bool:
        """Whether it reads relations as they are, whole."""
        scans = [one for one in self.answer.node.walk() if isinstance(one, Scan)]
        plain = all(one.version is Version.STORED and not one.since for one in scans)
        return plain and bool(scans) and not self.past

    def with_given(self, given: Mapping[str, object]) -> Prepared:
        """The same with other constants; what was found out about it is kept."""
        made = copy(self)
        object.__setattr__(made, "given", given)
        return made

    def text(self, single: frozenset[str]) -> str:
        """The SQL for when the rows of some stores are single."""
        if single not in self.texts:
            self.texts[single] = answer_query(self.answer, self.catalog, self.past, single)
        return self.texts[single]

    def text_over(self, standing: Mapping[str, str], net: bool) -> str:
        """The SQL for when views stand for some relations; these have always the same names."""
        key = frozenset({*standing.values(), *(["net"] if net else [])})
        if key not in self.texts:
            self.texts[key] = answer_query(self.answer, self.catalog, self.past, net=net, standing=standing)
        return self.texts[key]

    def text_over_copies(self) -> str:
        """The SQL for when plain tables stand for all relations, with each row once."""
        key = frozenset({"#copies"})
        if key not in self.texts:
            self.texts[key] = answer_query(self.answer, Catalog(), {}, single=self.relations)
        return self.texts[key]


def prepare(answer: Answer, catalog: Catalog, past: Mapping[str, Past] | None = None) -> Prepared:
    """Make the SQL of an answer that is bound to a catalogue."""
    past = past or {}
    read = answer.node.relations
    stores = {one for one in read if one not in past}
    stores |= {one for text, each in past.items() if text in read for one in each.stores}
    return Prepared(answer, catalog, past, tuple(sorted(stores)))


def _is_counted(answer: Answer) -> bool:
    """Whether equal rows are put side by side here: DuckDB takes longer for it than for all the rest of a small query.

    It cannot be if some rows are to be left out.
    """
    return answer.limit is None and not answer.offset and not isinstance(answer.node, Present)


def answer_query(
    answer: Answer,
    catalog: Catalog,
    past: Mapping[str, Past],
    single: frozenset[str] = frozenset(),
    net: bool = False,
    standing: Mapping[str, str] | None = None,
) -> str:
    """The SQL that yields an answer's rows in order, with `#n` where a row may count more than once.

    Args:
        answer: the query.
        catalog: that it is bound to.
        past: relations that are read as they were.
        single: stores whose rows are there once each.
        net: see `Emitter`.
        standing: see `Emitter`.
    """
    emitter = Emitter(catalog.grouped, net, single=single or None, standing=standing, defined=frozenset(past))
    query = emitter.sharing(lambda: _answer_query(answer, emitter))
    for text in sorted(past):
        # Computed first and whole: what came and went since must not meet what is computed of the rows.
        rows = past_query(past[text], Emitter(catalog.grouped, net))
        query = query.with_(name(text), as_=rows, materialized=True, append=True, copy=False)
    if past and (clause := query.args.get("with_")) is not None:
        known = [one for one in clause.expressions if one.alias in past]
        clause.set("expressions", known + [one for one in clause.expressions if one.alias not in past])
    return sql(query)


def _answer_query(answer: Answer, emitter: Emitter) -> exp.Select:
    node = answer.node
    names = node.column_names
    counted = _is_counted(answer) and not emitter.is_single(node)
    if isinstance(node, Present) or emitter.is_single(node) or (counted and only_grows(node)):
        rows: exp.Query = emitter.rows(node)
    else:
        rows = emitter.net_rows(node) if counted else _spread(emitter.net_rows(node), names)
    shown = [*names[: len(answer.names)], *([MULTIPLICITY] if counted else [])]
    if not (counted or answer.order or answer.offset or answer.limit is not None) and isinstance(rows, exp.Select):
        items = {one.alias_or_name: one for one in rows.expressions}
        if list(items) == [*shown, MULTIPLICITY] and not rows.args.get("distinct"):
            rows.set("expressions", [items[text] for text in shown])  # what is not read costs DuckDB time to find out
            return rows
    query = exp.Select(expressions=[column(text) for text in shown])
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


def run_query(
    warehouse: Warehouse,
    stamps: Stamps,
    query: Prepared,
    whole: Catalog,
    single: frozenset[str] = frozenset(),
    careful: bool = False,
) -> pa.Table:
    """Run a query on a snapshot of its own.

    Args:
        warehouse: the one that it reads.
        stamps: tell whether the catalogue changes meanwhile.
        query: which.
        whole: the engine's catalogue.
        single: stores whose rows are there once each.
        careful: whether it reads so much that a good plan is worth the time it takes.

    Raises:
        Disturbed: the snapshot has another catalogue.
        UserError: HW486, the answer is larger than the request may have it.
    """

    def evaluate(reader: duckdb.DuckDBPyConnection, net: bool) -> pa.Table:
        if not net:
            return _evaluate(warehouse, reader, stamps, query, whole, query.text(single), careful)
        warehouse.plan_quickly(False)
        text = answer_query(query.answer, query.catalog, query.past, net=True)
        with snapshot(reader, query.catalog):
            return _rows(reader, text, query)

    return in_row_form(_in_two_forms(warehouse, evaluate), query.answer)


def run_over(warehouse: Warehouse, query: Prepared, uppers: Uppers, order: Order) -> pa.Table:
    """Run a query that reads views that are evaluated when they are read.

    Args:
        warehouse: the one that it reads.
        query: which.
        uppers: evaluates these views.
        order: what it reads of them.

    Raises:
        Disturbed: the snapshot has another catalogue.
    """
    catalog = query.catalog

    def evaluate(reader: duckdb.DuckDBPyConnection, net: bool) -> pa.Table:
        warehouse.plan_quickly(False)
        with snapshot(reader, catalog):
            standing = uppers.evaluate(reader, order, catalog, net)
            return _rows(reader, query.text_over(standing, net), query)

    return in_row_form(_in_two_forms(warehouse, evaluate), query.answer)


def _in_two_forms(warehouse: Warehouse, evaluate: Callable[[duckdb.DuckDBPyConnection, bool], pa.Table]) -> pa.Table:
    """Evaluate in the fast form, and if a value makes that fail in the careful one; see `Emitter`."""
    reader = warehouse.reader()
    try:
        try:
            return evaluate(reader, False)
        except duckdb.Error as error:
            if not is_value_error(error) and not is_planning_error(error):
                raise
            with warehouse.cautious_planning():  # perhaps only a row that is gone already cannot be computed
                return evaluate(reader, True)
    except duckdb.Error as error:
        raise translate(error) from error
    finally:
        reader.close()


def in_row_form(table: pa.Table, answer: Answer) -> pa.Table:
    """What the SQL of an answer yields, as people get it."""
    if MULTIPLICITY in table.column_names:
        table = _repeated(table)
    return from_storage(table, answer.node.schema[: len(answer.names)]).rename_columns(list(answer.names))


def _evaluate(
    warehouse: Warehouse,
    reader: duckdb.DuckDBPyConnection,
    stamps: Stamps,
    query: Prepared,
    whole: Catalog,
    text: str,
    careful: bool,
) -> pa.Table:
    """Run one statement, which is a snapshot by itself; it is run again if the catalogue may have changed meanwhile."""
    if careful:
        warehouse.plan_quickly(False)
    before = stamps.all
    if stamps.redefining or whole is not query.catalog:
        return _checked(reader, text, query)
    try:
        table = _rows(reader, text, query)
    except (duckdb.CatalogException, duckdb.BinderException):
        return _checked(reader, text, query)  # a table has just been replaced, or is gone
    if stamps.redefining or stamps.all != before:
        return _checked(reader, text, query)
    return table


def _checked(reader: duckdb.DuckDBPyConnection, text: str, query: Prepared) -> pa.Table:
    """Run a statement on a snapshot that has the query's catalogue."""
    with snapshot(reader, query.catalog):
        return _rows(reader, text, query)


def _rows(reader: duckdb.DuckDBPyConnection, text: str, query: Prepared) -> pa.Table:
    relation = reader.sql(text, params=dict(query.given)) if query.given else reader.sql(text)
    return relation.to_arrow_table()


@contextlib.contextmanager
def snapshot(reader: duckdb.DuckDBPyConnection, catalog: Catalog) -> Iterator[None]:
    """A transaction that sees a certain catalogue."""
    reader.execute("BEGIN")
    try:
        if stored_version(reader) != catalog.version:
            raise Disturbed("HW902", "the catalogue has changed")
        yield
    finally:
        with contextlib.suppress(duckdb.Error):
            reader.execute("ROLLBACK")


def _repeated(table: pa.Table) -> pa.Table:
    """Rows as often as their last column says."""
    counts = table.column(table.num_columns - 1)
    rows = table.drop_columns([MULTIPLICITY])
    if pc.max(counts).as_py() in (None, 1):
        return rows
    places = np.repeat(np.arange(table.num_rows), counts.to_numpy())
    return rows.take(pa.array(places))


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
