"""Answering queries: from what is kept of earlier answers, from statements that are prepared, or from the text."""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Protocol, TypeVar

import pyarrow as pa

from headwater.answering import Answering
from headwater.bound import Bound, Key
from headwater.engine.engine import Engine
from headwater.engine.failures import Disturbed
from headwater.errors import HeadwaterError, NotSupported, UserError
from headwater.relations import relations_for_queries
from headwater.serve.cache import CACHE_BYTES, ResultCache
from headwater.serve.query import Prepared, prepare, run_over, run_query
from headwater.serve.settled import Settled, Source
from headwater.serve.single import SingleRows
from headwater.serve.sizes import StoreSizes
from headwater.serve.uppers import Order, Uppers
from headwater.shapes import Shapes
from headwater.sql.as_of import AsOf
from headwater.sql.lifting import Lifting, Shape, mark
from headwater.sql.lower import lower_answer
from headwater.sql.parse import parse
from headwater.sql.statements import Query
from headwater.store import budget
from headwater.store.catalog import Catalog

T = TypeVar("T")
#: So many queries stay prepared; the one that was not used for longest goes first.
_MOST_PREPARED = 1_000
#: A query that reads so many rows is planned with care.
_MANY_ROWS = 50_000

#: What may answer a query.
ENGINES = ("duckdb", "spark")


class Elsewhere(Protocol):
    """What answers queries on Spark."""

    def run(self, text: str, query: Prepared, relations: Mapping[str, Prepared]) -> pa.Table: ...


class Reading:
    """What a database has ready for those who read. Safe to use from many threads; nothing waits while one computes."""

    def __init__(
        self,
        engine: Engine,
        uppers: Uppers,
        answering: Answering,
        cache_bytes: int = CACHE_BYTES,
        spark_rows: int | None = None,
        spark: Callable[[], Elsewhere] | None = None,
    ) -> None:
        """Be ready.

        Args:
            engine: of the warehouse.
            uppers: evaluates views that are evaluated when they are read.
            answering: finds views that hold what a query asks for.
            cache_bytes: how many bytes of results are kept.
            spark_rows: queries that read more rows run on Spark; None if none does that does not ask for it.
            spark: starts what answers them, the first time.
        """
        self._spark_rows = spark_rows
        self._spark = spark
        self._engine = engine
        self._uppers = uppers
        self._answering = answering
        self.results = ResultCache(engine.stamps, cache_bytes, uppers.read)
        self._sizes = StoreSizes(engine.warehouse)
        self._single = SingleRows(engine.warehouse, engine.stamps)
        self._lock = threading.Lock()
        self._prepared: OrderedDict[Key, Bound] = OrderedDict()
        self.shapes = Shapes()
        self.settled = Settled(engine.stamps)
        self._catalog: Catalog | None = None

    def found(self, key: Key) -> pa.Table | None:
        """The answer to a query, if it is among the results."""
        table = self.results.get(key)
        spent = budget.current()
        return table if table is None or spent is None else spent.check(table)

    def look(self, key: Key, read: Callable[[], Query]) -> pa.Table:
        """Answer a query that is not among the results, from the last committed epoch or as of an earlier one.

        Args:
            key: what it is known by.
            read: parses it, if that has to be.
        """
        return consistently(self._engine, lambda: self._look(key, read))

    def _look(self, key: Key, read: Callable[[], Query]) -> pa.Table:
        engine = self._engine
        catalog = engine.catalog
        bound = self._known(key, catalog) or self.shapes.find(key, catalog)
        if bound is None:
            statement = read()
            bound = self._bind(statement, key.as_of, catalog, key.views)
            if bound.timeless:
                self._remember(key, bound)
                self.shapes.learn(key, bound, lambda shape: self._bind_open(shape, key, catalog))
        query = bound.query
        spent = budget.current()
        if spent is not None:
            answer = replace(query.answer, limit=spent.cap(query.answer.limit))
            query = query if answer.limit == query.answer.limit else replace(query, answer=answer, texts={})
        relations = query.relations
        copied = self.settled.source(relations, catalog) if self._may_be_copied(bound, key.engine) else None
        if copied is not None:
            table = self.settled.run(query, copied)
            if table is not None:
                if spent is not None:
                    spent.check(table)
                counted = tuple(catalog.timed & set(relations))
                self._uppers.read(counted)
                self.results.put(key, table, copied.stores, copied.stamps, copied.holds, counted)
                return table
        order = self._uppers.order(query.answer.node, catalog, engine.present())  # before the snapshot is, as stamps
        stores = tuple(sorted({*query.stores, *order.stores} - order.views))
        stamps = engine.stamps.take(stores)
        rows = self._sizes.rows(stores)
        if self._goes_to_spark(bound, key.engine, rows):
            table = self._on_spark(key.text, bound, catalog)
        elif order.wanted:
            began = time.perf_counter()
            table = run_over(engine.warehouse, query, self._uppers, order)
            self._uppers.took(order.evaluated, (time.perf_counter() - began) * 1000)
        else:
            began = time.perf_counter()
            table, stamps = self._here(query, stamps, rows > _MANY_ROWS)
            if order.counted:
                self._uppers.took(order.counted, (time.perf_counter() - began) * 1000)
        if spent is not None:
            spent.check(table)  # then nothing of it is missing
        if bound.timeless:
            self.results.put(key, table, stores, stamps, order.holding(engine.present), order.counted)
        if self._may_be_copied(bound, key.engine):
            self._copy(relations, order, catalog)
        return table

    # -- copies ------------------------------------------------------------------------------------------------------

    def _may_be_copied(self, bound: Bound, asked: str | None) -> bool:
        """Whether a query may be answered from copies of what it reads."""
        here = (asked or bound.engine) in (None, "duckdb") and self._spark_rows is None
        return here and bound.timeless and bound.query.is_plain

    def _copy(self, relations: Collection[str], order: Order, catalog: Catalog) -> None:
        """Copy what many have asked for."""
        engine = self._engine
        sources: dict[str, Source] = {}
        for name in relations:
            relation = catalog.find(name)
            if relation is None or relation.flows or relation.length is not None or relation.policy is not None:
                return
            stores = tuple(sorted(order.of(name).stores - order.views if relation.lazy else (name,)))
            sources[name] = Source(stores, engine.stamps.take(stores), order.of(name).holding(engine.present))
        for name in self.settled.wanted(sources, catalog):
            source, relation = sources[name], catalog.find(name)
            assert relation is not None
            if self._sizes.rows((name,)) > _MANY_ROWS:
                continue
            try:
                with budget.apart():
                    rows = self.whole(relation.name)
            except HeadwaterError:  # the query that was asked has its answer
                continue
            if engine.stamps.take(source.stores) == source.stamps and engine.stamps.steady(source.stores):
                self.settled.copy(name, rows, relation.fields, source, catalog)

    def close(self) -> None:
        """Let go of what is kept outside of the warehouse."""
        self.settled.close()

    def whole(self, name: str) -> pa.Table:
        """All rows of a relation."""
        text = f"SELECT * FROM {_quoted(name)}"
        key = Key(text)
        found = self.found(key)
        return found if found is not None else self._look(key, lambda: _parsed(text))

    def _here(self, query: Prepared, stamps: tuple[int, ...], careful: bool) -> tuple[pa.Table, tuple[int, ...]]:
        """Answer in DuckDB; the stamps are those that the answer holds for."""
        engine = self._engine
        single = self._single.among(query.stores)
        table = run_query(engine.warehouse, engine.stamps, query, engine.catalog, single, careful)
        if single and not (engine.stamps.take(query.stores) == stamps and engine.stamps.steady(query.stores)):
            # Perhaps a row was taken away before the snapshot was made.
            stamps = engine.stamps.take(query.stores)
            table = run_query(engine.warehouse, engine.stamps, query, engine.catalog, careful=careful)
        return table, stamps

    # -- Spark -------------------------------------------------------------------------------------------------------

    def _goes_to_spark(self, bound: Bound, asked: str | None, rows: int) -> bool:
        asked = asked or bound.engine
        if asked is not None and asked not in ENGINES:
            hint = "engines are " + ", ".join(ENGINES)
            raise UserError("HW348", f"there is no engine {asked[:40]!r}", hint=hint)
        able = bound.timeless and bound.relations is not None and self._spark is not None
        if asked == "spark" and not able:
            raise NotSupported(
                "HW284",
                "this query cannot run on Spark: it reads the clock, the past, parts or synchronised relations",
                hint="engine='duckdb' answers it here",
            )
        return asked == "spark" or (asked is None and able and self._spark_rows is not None and rows > self._spark_rows)

    def _on_spark(self, text: str, bound: Bound, catalog: Catalog) -> pa.Table:
        assert bound.relations is not None and self._spark is not None
        whole = {}
        for name in bound.relations:
            whole[name] = self._bind(_parsed(f"SELECT * FROM {_quoted(name)}"), None, catalog).query
        return self._spark().run(text, bound.query, whole)

    # -- binding -----------------------------------------------------------------------------------------------------

    def _bind_open(self, shape: Shape, key: Key, catalog: Catalog) -> tuple[Bound, Lifting]:
        """A query with all the literals left open that can be."""
        statement = _parsed(key.text)
        lifting = Lifting(mark(statement.query, shape))
        return self._bind(statement, None, catalog, key.views, lifting), lifting

    def _bind(
        self,
        statement: Query,
        as_of: AsOf | None,
        catalog: Catalog,
        views: bool = True,
        lifting: Lifting | None = None,
    ) -> Bound:
        relations = relations_for_queries(self._engine, catalog)
        answer = lower_answer(
            statement.query,
            relations,
            statement.source,
            moment=self._engine.present(),
            history=relations.as_it_was,
            as_of=as_of or statement.as_of,
            lifting=lifting,
        )
        lazy = any(one.lazy for one in catalog if one.name in relations.read)
        plain = relations.plain and not relations.past and not statement.streamed and not lazy
        read = tuple(sorted(relations.read)) if plain else None
        looked = False
        if views and statement.from_views and not relations.past:
            outcome = self._answering.outcome(answer.node, catalog)
            answer = replace(answer, node=outcome.node)
            looked = bool(outcome.uses or outcome.refused)
        query = prepare(answer, catalog, relations.past)
        return Bound(query, answer.timeless and relations.timeless, statement.engine, read, looked)

    def _known(self, key: Key, catalog: Catalog) -> Bound | None:
        with self._lock:
            if self._catalog is not catalog:
                self._prepared.clear()
                self._catalog = catalog
            found = self._prepared.get(key)
            if found is not None:
                self._prepared.move_to_end(key)
            return found

    def _remember(self, key: Key, bound: Bound) -> None:
        with self._lock:
            if self._catalog is bound.query.catalog:
                self._prepared[key] = bound
                if len(self._prepared) > _MOST_PREPARED:
                    self._prepared.popitem(last=False)


def _parsed(text: str) -> Query:
    [query] = parse(text)
    assert isinstance(query, Query)
    return query


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def consistently(engine: Engine, look: Callable[[], T]) -> T:
    """Look at the catalogue and then at the stores it names.

    A relation that is dropped in between is missed, as is a file that is opened again: then this looks once more, with
    the writer held.
    """
    try:
        return look()
    except Disturbed:
        with engine.lock:
            return look()


def point(as_of: int | dt.datetime | None) -> AsOf | None:
    """What `as_of` of a query means.

    Raises:
        UserError: HW341, it is no epoch and no moment.
    """
    if as_of is None:
        return None
    if isinstance(as_of, int) and not isinstance(as_of, bool) and as_of >= 0:
        return AsOf(epoch=as_of)
    if isinstance(as_of, dt.datetime):
        return AsOf(moment=as_of.astimezone(dt.UTC).replace(tzinfo=None) if as_of.tzinfo else as_of)
    raise UserError("HW341", f"{as_of!r} is no epoch and no moment", hint="give a number, or a datetime in UTC")
