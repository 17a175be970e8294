"""`Database`: what `headwater.connect` returns. It turns statements into work for the engine."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.algebra.nodes import Node
from headwater.answering import Answering
from headwater.bound import Key
from headwater.builder import EpochBuilder
from headwater.engine import definitions
from headwater.engine.away import Runner
from headwater.engine.consolidate import Consolidator
from headwater.engine.engine import Clock, Engine, Epoch, Moment, wall_clock
from headwater.engine.operations import Operation
from headwater.engine.ticker import Ticker
from headwater.engine.writer import Writer
from headwater.errors import HeadwaterError, Source, Span, UserError
from headwater.explaining import Explained, explain_relation, explain_statement
from headwater.placement import check_arguments, settle_in
from headwater.planning_reads import keep_up
from headwater.points import Getting
from headwater.reading import Reading, consistently, point
from headwater.relations import CatalogRelations, relations_for_queries
from headwater.reports import relation_facts
from headwater.results import Result
from headwater.serve.cache import CACHE_BYTES
from headwater.serve.points import facts
from headwater.serve.socket import Server
from headwater.serve.subscribe import BUFFER_ROWS, Subscription
from headwater.serve.uppers import Uppers
from headwater.sql.options import EXPLAIN_FORMATS, no_format
from headwater.sql.parse import parse
from headwater.sql.statements import Explain, Query, Statement
from headwater.statements import carry_out
from headwater.store.catalog import Catalog, Relation
from headwater.store.policies import Policy
from headwater.store.warehouse import Warehouse, closed
from headwater.task_reports import place_facts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headwater.spark.answers import Answers
    from headwater.spark.attach import Attachment
    from headwater.spark.intake import Progress
    from headwater.spark.tables import Tables

#: A query that reads more rows runs on Spark, where a pipeline does.
SPARK_ROWS = 50_000_000


class Database:
    """An open warehouse.

    Safe to use from many threads: writers queue up and small inserts share epochs; readers never wait for writers.
    """

    def __init__(
        self,
        path: str | Path = ":memory:",
        *,
        clock: Clock = wall_clock,
        placement: str | None = None,
        cache_bytes: int = CACHE_BYTES,
        spark_rows: int = SPARK_ROWS,
        spark: Mapping[str, object] | None = None,
        partitions: int | None = None,
        memory: str | None = None,
        segments: str | None = None,
        storage: Mapping[str, object] | None = None,
        runner: Runner | None = None,
    ) -> None:
        check_arguments(placement, partitions, segments, storage)
        #: Where programs run; where they did the last time, if nobody says.
        self.placement = placement
        self._parts = parts = contextlib.ExitStack()
        self._tables: Tables | None = None
        self._on_spark: Answers | None = None
        #: What was said last of each view's plan, and after which epoch.
        self.advice: dict[str, tuple[int, str | None]] = {}
        #: What Spark brings: DataFrames by stream, and whether a pipeline runs.
        self.attached: dict[str, Attachment] = {}
        self.following = threading.Lock()
        # Runs at `close`, or when the interpreter ends without one: threads must not outlive the connection.
        self._shut = weakref.finalize(self, _close, parts, os.getpid())
        try:
            self.warehouse = Warehouse(path, memory)
            parts.callback(self.warehouse.close)
            self.engine = Engine(self.warehouse, clock)
            parts.callback(self.engine.close)
            self.uppers = Uppers(self.engine.stamps, self.engine.last_epoch, self.engine.seen.reads)
            settle_in(self, parts, runner, spark or {}, partitions, segments, storage)
            rows = spark_rows if self.placement in ("driver", "tasks") else None
            self.answering = Answering(self.warehouse, self.engine)
            self.reading = Reading(self.engine, self.uppers, self.answering, cache_bytes, rows, _later(self))
            parts.callback(self.reading.close)
            self.getting = Getting(self.engine, self.reading.whole, self.uppers)
            self.consolidator = Consolidator(self.engine)
            self.engine.nudge = self.consolidator.nudge
            parts.callback(self.consolidator.close)
            self._ticker = Ticker(self.engine)
            parts.callback(self._ticker.close)
            self.writer = Writer(self.engine)
            parts.callback(self.writer.close)
            self._server = Server(self, self.warehouse.folder) if self.warehouse.folder else None
            if self._server is not None:
                parts.callback(self._server.close)
            self.consolidator.nudge()  # indexes are made again after a restart
            parts.callback(self.engine.hub.close)  # first of all: nobody waits for changes any longer
        except BaseException:
            self._shut()
            raise

    # -- changing ----------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def epoch(self) -> Iterator[EpochBuilder]:
        """Collect operations and apply them as one epoch when the block ends; an exception inside drops them.

        with db.epoch() as e:
            e.insert("orders", rows)
            e.delete("lines", old_rows)
        """
        builder = EpochBuilder(self)
        try:
            yield builder
        finally:
            builder.over = True
        if builder.moment is not None:
            builder.committed = self.advance_clock(builder.moment, builder.operations)
        else:
            builder.committed = self.submit(builder.operations)

    def insert(self, relation: str, rows: object) -> Epoch:
        """Add rows to a stream or table: Arrow, pandas, Polars, dicts or tuples. Lies wholly in one epoch."""
        builder = EpochBuilder(self)
        builder.insert(relation, rows)
        return self.submit(builder.operations)

    def upsert(self, relation: str, rows: object) -> Epoch:
        """Add rows of a keyed table or stream, in place of those with the same key, as one epoch."""
        builder = EpochBuilder(self)
        builder.upsert(relation, rows)
        return self.submit(builder.operations)

    def delete_keys(self, relation: str, keys: object) -> Epoch:
        """Take away the rows of a keyed table or stream with these keys, as one epoch; see `EpochBuilder`."""
        builder = EpochBuilder(self)
        builder.delete_keys(relation, keys)
        return self.submit(builder.operations)

    def submit(self, operations: list[Operation]) -> Epoch:
        self._check_open()
        return self.writer.submit(operations)

    def advance_clock(self, moment: dt.datetime | None, operations: Sequence[Operation] = ()) -> Epoch:
        """Set the clock by hand, as an epoch; it stands there until it is set again, also after a restart.

        Args:
            moment: in UTC, not before the clock of the last epoch; None lets the clock go again.
            operations: what else happens in the epoch.
        """
        self._check_open()
        if moment is not None and not isinstance(moment, dt.datetime):
            shown = type(moment).__name__
            raise UserError("HW334", f"a moment is a datetime, not {shown}", hint="in UTC, or with a zone")
        if moment is not None and moment.tzinfo is not None:
            moment = moment.astimezone(dt.UTC).replace(tzinfo=None)
        with self.engine.lock:
            last = self.engine.last_clock
            if moment is not None and last is not None and moment < last:
                raise UserError(
                    "HW333",
                    f"the clock cannot go back from {last} to {moment}",
                    hint="advance it to that moment or a later one",
                )
            return self.engine.run(operations, moment=Moment(moment))

    def advance_stream(self, stream: str, moment: dt.datetime) -> Epoch:
        """Say that whatever happened before a moment has come, as an epoch: parts of a stream up to it are complete.

        Args:
            stream: a stream with TIMESTAMP BY.
            moment: in UTC, or with a zone. Nothing happens if the stream is beyond it already.
        """
        builder = EpochBuilder(self)
        builder.advance_stream(stream, moment)
        return self.submit(builder.operations)

    # -- statements --------------------------------------------------------------------------------------------------

    def execute(self, sql: str, *, name: str = "<sql>") -> list[Result]:
        """Run one or more statements. The first that fails raises; those before it stay done."""
        self._check_open()
        return [self._execute(statement) for statement in parse(sql, name)]

    def _execute(self, statement: Statement) -> Result:
        began = time.perf_counter()
        with _placed(statement.source, statement.span):
            result = carry_out(self, statement)
        return replace(result, seconds=time.perf_counter() - began)

    def query(
        self, sql: str, *, as_of: int | dt.datetime | None = None, engine: str | None = None, views: bool = True
    ) -> pa.Table:
        """Answer one SELECT from the last committed epoch.

        Args:
            sql: the query.
            as_of: an epoch, or a moment in UTC: relations are read as they were then, where that is kept.
            engine: `duckdb` or `spark`; by default Spark answers what reads very many rows, if it is there.
            views: whether views may be read in place of what it names, where they give the same rows from less.
        """
        self._check_open()
        if not isinstance(sql, str):
            parse(sql)  # says what it is not
        key = Key(sql, point(as_of) if as_of is not None else None, engine, views)
        found = self.reading.found(key)
        if found is not None:
            return found
        with _placed(Source(sql), Span(0, len(sql))):
            return self.reading.look(key, lambda: _one_query(sql))

    def get(self, relation: str, key: object, columns: Sequence[str] | None = None) -> dict[str, Any] | None:
        """The row of a key as of the last committed epoch, or None.

        Args:
            relation: a view, a table or a keyed stream.
            key: a value for each column of its key, as a tuple, or bare if there is one; or a dict of the columns of
                its key or of an index.
            columns: those wanted; all by default.
        """
        self._check_open()
        return self.getting.get(relation, key, columns)

    def get_many(self, relation: str, keys: object, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of some keys, in no order; keys that there are none of are left out.

        Args:
            relation: a view, a table or a keyed stream.
            keys: rows of the key's columns, in any form that `insert` takes, or bare values of a single one; those of
                an index are named, as dicts or in an Arrow table.
            columns: those wanted; all by default.
        """
        self._check_open()
        return self.getting.rows(relation, keys, columns)

    def answer(self, statement: Query) -> pa.Table:
        """Answer a query that was parsed."""
        key = Key(statement.text)
        found = self.reading.found(key)
        return found if found is not None else self.reading.look(key, lambda: statement)

    def explain(self, view_or_query: str, format: str | None = None) -> Explained:
        """The program of a view, or the one a query would get.

        Args:
            view_or_query: a view's name, a query, or an EXPLAIN statement.
            format: what `str()` of it is: `text` (default), `tree`, `mermaid` or `json`.
        """
        self._check_open()
        if format is not None and format not in EXPLAIN_FORMATS:
            raise no_format(format)
        explanation = self._explain(view_or_query)
        return explanation if format is None else replace(explanation, format=format)

    def _explain(self, view_or_query: str) -> Explained:
        relation = self.engine.catalog.find(view_or_query.strip())
        if relation is not None:
            return explain_relation(self, relation)
        text = view_or_query if view_or_query.strip().upper().startswith("EXPLAIN") else f"EXPLAIN {view_or_query}"
        statements = parse(text)
        if len(statements) != 1 or not isinstance(statements[0], Explain):
            raise UserError("HW106", "explain takes the name of a view, or one query")
        with _placed(statements[0].source, statements[0].span):
            return explain_statement(self, statements[0])

    # -- looking -----------------------------------------------------------------------------------------------------

    def relations(self) -> list[dict[str, object]]:
        """Name, kind, columns and key of everything in the catalogue; no key where nothing tells rows apart."""
        self._check_open()
        return [
            {
                "name": one.name,
                "kind": one.kind.value,
                "columns": [[f.name, str(f.type)] for f in one.fields],
                "key": list(one.key or one.identity or ()),
            }
            for one in self.engine.catalog
            if one.policy is None
        ]

    def status(self) -> dict[str, object]:
        """Where the warehouse stands: epoch, relations with their rows and state, and the writers' queue."""
        self._check_open()
        requests, rows = self.writer.waiting
        building = self.engine.building
        return {
            "warehouse": str(self.warehouse.folder or ":memory:"),
            "placement": self.placement,
            **place_facts(self),
            "epoch": self.engine.epoch,
            "relations": consistently(
                self.engine, lambda: [relation_facts(self, one) for one in self.engine.catalog if one.policy is None]
            ),
            "clock": self.engine.last_clock.isoformat(sep=" ") if self.engine.last_clock else None,
            "queue": {"requests": requests, "rows": rows},
            "cache": self.reading.results.facts(),
            "points": facts(self.getting.points),
            **({"building": asdict(building)} if building is not None else {}),
        }

    def spark_table(self, relation: str) -> DataFrame:
        """A relation's rows as of the last committed epoch, as a Spark DataFrame; it is valid until `close`."""
        from headwater.spark.tables import Tables

        self._check_open()
        if self._tables is None:
            self._tables = Tables(self)
            self._parts.callback(self._tables.close)
        return self._tables.frame(self, relation)

    def _answers(self) -> Answers:
        """What answers queries on Spark."""
        from headwater.spark.answers import Answers

        with self.following:
            if self._on_spark is None:
                self._on_spark = Answers(self.engine)
                self._parts.callback(self._on_spark.close)
            return self._on_spark

    def attach(
        self, stream: str, frame: DataFrame, report: Callable[[Progress], None] = lambda progress: None
    ) -> Attachment:
        """Follow a streaming DataFrame: its rows become the stream's, and a micro-batch an epoch.

        Args:
            stream: a stream without FROM.
            frame: with the stream's columns. Attached to the same stream again later, it goes on where it was.
            report: told of every micro-batch.
        """
        from headwater.spark.attach import Attachment

        self._check_open()
        attachment = Attachment(self, stream, frame, report)
        self._parts.callback(attachment.close)
        return attachment

    def algebra(self, view: str) -> Node:
        """A view's query as a tree."""
        self._check_open()
        relation = self.find(view)
        if relation.program is None:
            raise UserError("HW104", f"{relation.name} is a {relation.kind.value}, not a view")
        return relation.program.written

    def observe(self, callback: Callable[[int, Mapping[str, pa.Table]], None]) -> None:
        """Call back after each epoch with the net change of every view: its columns and `#n`.

        The epoch is committed; an exception in the callback is logged and changes nothing.
        """
        self._check_open()
        self.engine.observers.append(callback)

    def subscribe(
        self,
        view: str,
        from_epoch: int | None = None,
        *,
        timeout: float | None = None,
        buffer_rows: int = BUFFER_ROWS,
    ) -> Subscription:
        """Follow the changes of a view.

        Args:
            view: its name.
            from_epoch: begin with the changes of this epoch. By default the subscription begins with what the view
                holds, as rows that have come in the present epoch.
            timeout: the iteration ends when nothing has come for so many seconds; None waits until the subscription or
                the database is closed.
            buffer_rows: so many rows wait in memory for a subscriber of a view that does not keep its changes; one who
                lets more come together has fallen behind.
        """
        self._check_open()
        keep_up(self, view)
        subscription = Subscription(self.engine, view, from_epoch, timeout, buffer_rows)
        subscription.owner = self
        return subscription

    def find(self, name: str) -> Relation:
        relation = self.engine.catalog.find(name)
        if relation is None:
            raise UserError("HW102", f"there is no relation named {name!r}", hint="SHOW RELATIONS lists what exists")
        return relation

    def relations_for_views(self, policy: Policy | None = None) -> CatalogRelations:
        """The catalogue as a new view sees it, which reads everything as synchronised by a policy if it has one."""
        engine = self.engine  # whoever keeps this must not keep the database, which is closed when nobody has it
        return CatalogRelations(engine, lambda one: definitions.first_epoch_seen(engine, one), policy=policy)

    def relations_for_queries(self, catalog: Catalog | None = None) -> CatalogRelations:
        """A catalogue as an ad hoc query sees it: a stream that keeps nothing cannot be read."""
        return relations_for_queries(self.engine, catalog)

    # -- closing -----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Finish what waits, and close the warehouse. Closing twice does nothing."""
        self._shut()

    def _check_open(self) -> None:
        if not self._shut.alive:
            raise closed()
        if not self.warehouse.is_ours:
            raise UserError(
                "HW408", "the warehouse is open in the process that this one was forked from", hint="connect again here"
            )

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _close(parts: contextlib.ExitStack, owner: int) -> None:
    if os.getpid() == owner:  # a process that was forked off has no part in it
        parts.close()


def _later(database: Database) -> Callable[[], Answers]:
    """What starts Spark for a database, without keeping the database alive."""
    found = weakref.ref(database)

    def start() -> Answers:
        one = found()
        if one is None:
            raise closed()
        return one._answers()

    return start


def _one_query(sql: str) -> Query:
    statements = parse(sql)
    if len(statements) != 1 or not isinstance(statements[0], Query):
        raise UserError("HW106", "query takes exactly one SELECT", hint="use execute for other statements")
    return statements[0]


@contextlib.contextmanager
def _placed(source: Source, span: Span) -> Iterator[None]:
    """Errors leave with the text of the statement they are about."""
    try:
        yield
    except HeadwaterError as error:
        raise error.at(None, source) from error.__cause__
    except RecursionError:
        raise UserError(
            "HW002",
            "the statement is nested too deeply",
            span=span,
            source=source,
            hint="split a long chain of operators with parentheses, or make parts of it views of their own",
        ) from None
