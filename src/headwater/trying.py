"""What a view takes by another program: the last epochs are run again with it, each with a read, and undone.

It happens in one transaction that is never committed, with the writer held: maps that the program needs are made and
filled, as they would be, the rows of recent epochs come once more, and somebody reads the view after each. Nobody else
sees anything of it.
"""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headwater.engine.definitions import trial
from headwater.engine.engine import Engine
from headwater.engine.failures import ViewFailed
from headwater.engine.observe import Watch
from headwater.engine.operations import InsertRows
from headwater.engine.stamps import Stamps
from headwater.errors import HeadwaterError
from headwater.plan.program import Program
from headwater.plan.timing import Spending
from headwater.relations import relations_for_queries
from headwater.serve.query import Prepared, in_row_form, prepare, snapshot
from headwater.serve.uppers import Uppers
from headwater.sql.lower import lower_answer
from headwater.sql.parse import parse
from headwater.sql.statements import Query
from headwater.store.catalog import Catalog, Relation

if TYPE_CHECKING:
    from headwater.database import Database

#: Epochs that are not counted: statements are prepared in them.
_FIRST = 2
#: Epochs that are; the lesser half of the times counts, since a machine may be busy, but is never too fast.
_ROUNDS = 8


@dataclass(frozen=True)
class Tried:
    """A program, and what it took."""

    program: Program
    spending: Spending


def try_out(db: Database, view: Relation, programs: Sequence[Program]) -> Tried | None:
    """The best of some programs for a view that can be tried out, by an epoch with a read after it; None if none can.

    It takes recent epochs that only brought rows to streams, some of them to what the view follows from.
    """
    engine = db.engine
    lately = [rows for rows in engine.lately if rows is not None]
    fitting = [rows for rows in lately if any(_follows(view, one.relation, engine.catalog) for one in rows)]
    if not fitting:
        return None
    share = len(fitting) / len(lately)
    found = [tried for one in programs if (tried := _tried(engine, view, one, fitting, share)) is not None]
    return min(found, key=lambda one: one.spending.for_each_epoch(1.0), default=None)


def _follows(view: Relation, name: str, catalog: Catalog) -> bool:
    return any(one.name == view.name for one in catalog.all_dependents(name))


def _tried(
    engine: Engine, view: Relation, program: Program, epochs: Sequence[tuple[InsertRows, ...]], share: float
) -> Tried | None:
    took: list[float] = []
    read: list[float] = []
    try:
        with trial(engine, view, program) as after:
            schedule = engine.schedule_for(after)
            reader = _Reader(engine, after, _whole(engine, after, view))
            reader.read()
            for number in range(_FIRST + _ROUNDS):
                rows = epochs[number % len(epochs)]
                milliseconds, touched = engine.rehearse(rows, after, schedule, engine.epoch + 1 + number)
                took.append(milliseconds)
                reader.stamps.move(touched)
                read.append(reader.read())
    except (HeadwaterError, ViewFailed):  # what it would be filled from is gone, or a row cannot be computed
        return None
    found = [one for one in read[_FIRST:] if one]
    return Tried(program, Spending(_usual(took[_FIRST:]) * share, _usual(found) * len(found) / _ROUNDS))


def _usual(times: Sequence[float]) -> float:
    return statistics.fmean(sorted(times)[: -(-len(times) // 2)]) if times else 0.0


def _whole(engine: Engine, catalog: Catalog, view: Relation) -> Prepared:
    """The query for all rows of a view."""
    [statement] = parse(f"SELECT * FROM `{view.name.replace('`', '``')}`")
    assert isinstance(statement, Query)
    relations = relations_for_queries(engine, catalog)
    moment = engine.present()
    answer = lower_answer(statement.query, relations, statement.source, moment=moment, history=relations.as_it_was)
    return prepare(answer, catalog, relations.past)


@dataclass
class _Reader:
    """Who reads a view in a transaction of the engine's; what has not changed is not computed again, as always."""

    engine: Engine
    catalog: Catalog
    query: Prepared
    stamps: Stamps = field(default_factory=Stamps)

    def __post_init__(self) -> None:
        self._uppers = Uppers(self.stamps, self.engine.last_epoch)
        self._seen: tuple[int, ...] | None = None

    def read(self) -> float:
        """Milliseconds of a read."""
        watch = Watch()
        order = self._uppers.order(self.query.answer.node, self.catalog, self.engine.present())
        now = self.stamps.take(sorted({*self.query.stores, *order.stores}))
        if now == self._seen:
            return 0.0
        self._seen = now
        connection = self.engine.connection
        other = self.engine.warehouse.reader()  # what it would be read with, but that sees nothing of all this
        try:
            if order.wanted:
                self.engine.warehouse.plan_quickly(False)
                with snapshot(other, self.engine.catalog):
                    standing = self._uppers.evaluate(connection, order, self.catalog)
                    table = connection.sql(self.query.text_over(standing, net=False)).to_arrow_table()
            else:
                table = connection.sql(self.query.text(frozenset())).to_arrow_table()
            in_row_form(table, self.query.answer)
        finally:
            other.close()
        took = watch.milliseconds
        for one in order.views:
            with contextlib.suppress(Exception):
                connection.unregister(f"#upper {one}")
        return took
