"""The statements of a synchronised relation `S@p`: what waits for a tick, and what a tick releases.

`data."S@p"` holds S as of the last tick, if anything reads that; `data."S@p#waiting"` holds what has changed in S
since. A tick makes the net of what waits the change of S@p: rows that came and went in between are gone, and of a row
that was replaced again and again the first version goes and the last one comes. What waits is added up now and then, so
that it is not much larger than that. (Ghanem et al., "Supporting Views in Data Stream Management Systems", section 8,
the Synchronizer; section 10.5, presynchronisation.)
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from headwater import types as t
from headwater.algebra.compose import bare
from headwater.algebra.nodes import Scan, Version
from headwater.emit.duckdb import Emitter
from headwater.emit.layout import (
    EPOCH,
    MULTIPLICITY,
    Fill,
    as_column,
    column,
    delta_table,
    fill,
    number,
    sql,
    store_table,
)
from headwater.emit.maintain import create_store, row_columns

WAITING = "#waiting"


def waiting_of(relation: str) -> str:
    """The store of what waits for a synchronised relation."""
    return relation + WAITING


@dataclass(frozen=True)
class SyncSQL:
    """What a synchronised relation needs in an epoch.

    Attributes:
        coming: what has changed, as rows that can wait.
        wait: puts what has changed to what waits; takes `$epoch`.
        release_waiting: fills the change of the relation from what waits.
        release_coming: from what has changed in this epoch, where nothing waits.
        release_both: from both.
        clear: nothing waits any more.
        add_up: lets only the net of what waits wait; None where nothing can cancel.
    """

    coming: str
    wait: str
    release_waiting: Fill
    release_coming: Fill
    release_both: Fill
    clear: str
    add_up: tuple[str, ...] | None


def synchronise(relation: str, source: str, fields: t.Schema, grows: bool, emitter: Emitter) -> SyncSQL:
    """The statements of a synchronised relation.

    Args:
        relation: its name.
        source: the relation that it stands for.
        fields: the columns of both.
        grows: nothing ever goes from the source, so nothing can cancel.
        emitter: which knows how the source's changes lie.
    """
    names = tuple(f.name for f in fields)
    coming = _rows(Scan(source, "r", fields, Version.DELTA), emitter)
    waiting = exp.Select(expressions=[*map(column, names), column(MULTIPLICITY)])
    waiting = waiting.from_(store_table(waiting_of(relation)), copy=False)
    both: exp.Query = exp.Union(this=waiting.copy(), expression=coming.copy(), distinct=False)

    def released(rows: exp.Query) -> Fill:
        return fill(delta_table(relation), rows if grows else emitter.consolidated(rows, names))

    items = [*map(column, names), column(MULTIPLICITY), exp.Parameter(this=exp.Var(this="epoch"))]
    change = exp.Subquery(this=coming.copy(), alias=exp.TableAlias(this=exp.to_identifier("c")))
    wait = exp.Select(expressions=items).from_(change, copy=False)
    return SyncSQL(
        sql(exp.Select(expressions=items[:-1]).from_(change.copy(), copy=False)),
        sql(exp.Insert(this=store_table(waiting_of(relation)), expression=wait)),
        released(waiting),
        fill(delta_table(relation), coming),
        released(both),
        _clear(relation),
        None if grows else _add_up(relation, names, emitter),
    )


def _clear(relation: str) -> str:
    return sql(exp.Delete(this=store_table(waiting_of(relation))))


def _add_up(relation: str, names: tuple[str, ...], emitter: Emitter) -> tuple[str, ...]:
    waiting = store_table(waiting_of(relation))
    rows = exp.Select(expressions=[*map(column, names), column(MULTIPLICITY)])
    net = emitter.consolidated(rows.from_(waiting.copy(), copy=False), names)
    first = exp.Select(expressions=[exp.Min(this=column(EPOCH))]).from_(waiting.copy(), copy=False)
    net = net.select(as_column(exp.Subquery(this=first), EPOCH), copy=False)  # it says since when something waits
    copy = delta_table(waiting_of(relation))
    back = exp.Select(expressions=[exp.Star()]).from_(copy.copy(), copy=False)
    return (
        fill(copy.copy(), net).first,
        _clear(relation),
        sql(exp.Insert(this=waiting, expression=back)),
        f"DROP TABLE {sql(copy)}",
    )


def create_waiting(relation: str, fields: t.Schema) -> str:
    """Make room for what waits."""
    return create_store(waiting_of(relation), row_columns(fields))


def first_rows(relation: str, source: str, fields: t.Schema, since: int, epoch: int | None, emitter: Emitter) -> str:
    """Fills the store of a synchronised relation with what its source holds.

    Args:
        relation: its name.
        source: the relation that it stands for.
        fields: the columns of both.
        since: rows of the source up to this epoch are left out.
        epoch: under which number the rows are stored; None for the number that they have in the source's own store.
        emitter: which knows how the source is stored.
    """
    if epoch is None:
        rows = exp.Select(expressions=[*(column(f.name) for f in fields), column(MULTIPLICITY), column(EPOCH)])
        rows = rows.from_(store_table(source), copy=False)
        rows = rows.where(exp.GT(this=column(EPOCH), expression=number(since)), copy=False)
    else:
        net = emitter.net_rows(bare(Scan(source, "r", fields, Version.STORED)))
        items = [*(column(f.name) for f in fields), column(MULTIPLICITY), as_column(number(epoch), EPOCH)]
        rows = exp.Select(expressions=items)
        rows = rows.from_(exp.Subquery(this=net, alias=exp.TableAlias(this=exp.to_identifier("c"))), copy=False)
    return sql(exp.Insert(this=store_table(relation), expression=rows))


def less(store: str, other: str, fields: t.Schema, epoch: int) -> str:
    """Takes the rows of one store from another, under the number of an epoch."""
    negative = exp.Neg(this=column(MULTIPLICITY))
    items = [*(column(f.name) for f in fields), as_column(negative, MULTIPLICITY), as_column(number(epoch), EPOCH)]
    rows = exp.Select(expressions=items).from_(store_table(other), copy=False)
    return sql(exp.Insert(this=store_table(store), expression=rows))


def arrivals(relation: str, fields: t.Schema, emitter: Emitter) -> str:
    """A query with a row if any row came to a relation in the epoch under way: a point of a synchronisation stream."""
    net = emitter.net_rows(bare(Scan(relation, "r", fields, Version.DELTA)))
    came = exp.Select(expressions=[number(1)])
    came = came.from_(exp.Subquery(this=net, alias=exp.TableAlias(this=exp.to_identifier("c"))), copy=False)
    came = came.where(exp.GT(this=column(MULTIPLICITY), expression=number(0)), copy=False)
    return sql(came.limit(1, copy=False))


def _rows(scan: Scan, emitter: Emitter) -> exp.Query:
    return emitter.rows(bare(scan))
