"""A relation as it was after an epoch: what it holds now, less what has changed since.

A view keeps its changes with RETAIN CHANGES, and so does a table or a keyed stream. A stream without a key only grows,
so its rows of later epochs are left out. Nothing else is stored for it.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

import duckdb
from sqlglot import exp

from headwater.algebra.compose import bare
from headwater.algebra.nodes import Scan
from headwater.emit.duckdb import Emitter
from headwater.emit.layout import EPOCH, MULTIPLICITY, as_column, changes_of, column, number, store_table
from headwater.engine.definitions import last_epoch_before
from headwater.engine.engine import Engine
from headwater.engine.failures import translate
from headwater.errors import HeadwaterError, NotSupported, UserError
from headwater.store.catalog import RETAIN_ALL, Relation


@dataclass(frozen=True)
class Past:
    """A relation as it was after an epoch.

    Attributes:
        relation: which.
        epoch: after which one.
        since: of a stream: rows of this epoch and of earlier ones were not seen then.
    """

    relation: Relation
    epoch: int
    since: int = 0

    @property
    def name(self) -> str:
        """What it is called in a statement."""
        return f"{self.relation.name}#{self.epoch}"

    @property
    def stores(self) -> tuple[str, ...]:
        """The stores that it is read from."""
        own = self.relation.name
        return (own,) if self.relation.flows else (own, changes_of(own))


def past_query(past: Past, emitter: Emitter) -> exp.Query:
    """The rows of a relation as it was, with their multiplicities, which are not negative."""
    relation = past.relation
    names = tuple(f.name for f in relation.fields)
    later = exp.GT(this=column(EPOCH), expression=number(past.epoch))
    if relation.flows:
        query = exp.Select(expressions=[*map(column, names), column(MULTIPLICITY)])
        query = query.from_(store_table(relation.name), copy=False).where(exp.Not(this=later), copy=False)
        return query.where(exp.GT(this=column(EPOCH), expression=number(past.since)), copy=False)
    taken = as_column(exp.Neg(this=column(MULTIPLICITY)), MULTIPLICITY)
    less = exp.Select(expressions=[*map(column, names), taken])
    less = less.from_(store_table(changes_of(relation.name)), copy=False).where(later, copy=False)
    rows = emitter.rows(bare(Scan(relation.name, "r", relation.fields)))
    return emitter.consolidated(exp.Union(this=rows, expression=less, distinct=False), names)


def epoch_at(engine: Engine, moment: dt.datetime) -> int:
    """The last epoch at a moment.

    Raises:
        UserError: HW342, the moment is not over, or there was no epoch yet.
    """
    if moment > engine.present():
        raise UserError("HW342", f"{moment} has not come yet", hint="leave AS OF out to read what there is now")
    reader = engine.warehouse.reader()
    try:
        query = "SELECT max(number), min(number) FROM hw.epochs WHERE clock <= ?"
        found = reader.execute(query, [moment]).fetchone()
        first = reader.execute("SELECT min(clock) FROM hw.epochs").fetchone()
    except duckdb.Error as error:
        raise translate(error) from error
    finally:
        reader.close()
    if found is None or found[0] is None:
        began = f"the first epoch was at {first[0]}" if first and first[0] else "there has been no epoch yet"
        raise UserError("HW342", f"nothing is known of {moment}", hint=began)
    return int(found[0])


def find_past(engine: Engine, relation: Relation, epoch: int) -> Past:
    """A relation as it was after an epoch.

    Raises:
        UserError: HW342, that is not known any more, or not yet.
        NotSupported: HW282, it is not kept for relations with parts.
    """
    if relation.length is not None:
        raise NotSupported(
            "HW282",
            f"{relation.name} has parts, and AS OF cannot read it",
            hint="query its parts by PART, or a view without parts that has RETAIN CHANGES",
        )
    if epoch > engine.epoch:
        hint = f"the last one is {engine.epoch}; leave AS OF out to read what there is now"
        raise UserError("HW342", f"epoch {epoch} has not come yet", hint=hint)
    if epoch < relation.created:
        raise _gone(relation, epoch, relation.created, f"it was made after epoch {relation.created}")
    if relation.flows:
        return _past_of_stream(engine, relation, epoch)
    if relation.changes is None:
        raise UserError(
            "HW342",
            f"{relation.kind.value} {relation.name} keeps no changes, so nothing is known of epoch {epoch}",
            hint="create it with RETAIN CHANGES" + (", REFRESH EVERY EPOCH" if relation.timing is not None else ""),
        )
    if epoch < relation.begins:
        raise _gone(relation, epoch, relation.begins, "older changes are gone")
    return Past(relation, epoch)


def _past_of_stream(engine: Engine, stream: Relation, epoch: int) -> Past:
    """A stream with RETAIN; one without cannot be queried at all."""
    if stream.retain in (None, RETAIN_ALL):
        return Past(stream, epoch, stream.begins)
    reader = engine.warehouse.reader()
    try:
        clock = reader.execute("SELECT max(clock) FROM hw.epochs WHERE number <= ?", [epoch]).fetchone()
        if clock is None or clock[0] is None:
            return Past(stream, epoch, stream.begins)
        since = last_epoch_before(reader, clock[0] - dt.timedelta(microseconds=int(stream.retain or 0)))
    except duckdb.Error as error:
        raise translate(error) from error
    except OverflowError:
        since = 0
    finally:
        reader.close()
    if since < stream.begins and stream.begins > stream.created:
        raise UserError(
            "HW342",
            f"rows that stream {stream.name} held after epoch {epoch} are gone",
            hint="a stream with RETAIN ALL, or a longer one, keeps them",
        )
    return Past(stream, epoch, max(since, stream.begins))


def _gone(relation: Relation, epoch: int, first: int, why: str) -> HeadwaterError:
    return UserError(
        "HW342",
        f"nothing is known of {relation.name} as of epoch {epoch}: {why}",
        hint=f"it can be asked from epoch {first} on",
    )
