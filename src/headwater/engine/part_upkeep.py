"""Parts in the background: those that nobody can need are deleted, small ones are rolled up into larger ones.

(Yang, Golab and Ozsu, "ViewDF: Declarative Incremental View Maintenance for Streaming Data", sections 4.1 and 5.1.)

Rolling up changes nothing that can be seen but the catalogue of parts: each row keeps its PART. The store is rewritten
so that the rows of a larger part lie together in the order of their columns, and not part by part: a query over a day
then reads few row groups for a value, and not a bit of every minute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import duckdb
from sqlglot import exp

from headwater.algebra.parts import PART
from headwater.emit.layout import EPOCH, column, number, sql, store_table
from headwater.engine import faults, part_book
from headwater.engine.engine import Engine
from headwater.engine.part_book import Book, Frontier
from headwater.engine.part_limits import Limits, rolled_up_before
from headwater.engine.rewriting import rewrite
from headwater.engine.shapes import Shape, living
from headwater.store.catalog import Catalog, Relation

#: What waits to be rolled up is, when it is this share of what is rolled up: all of that is rewritten for it.
ROLL_SHARE = 0.25
#: The lines of `hw.parts` are put together when there are so many more than parts, and as many more as there were.
SPARE_LINES = 20_000


def delete_parts(engine: Engine, name: str) -> bool:
    """Delete the parts of a relation that nobody can need any more; whether there were such parts."""
    with engine.lock:
        relation = engine.catalog.find(name)
        if relation is None:
            return False
        limit = Limits(engine.catalog, engine.book).deletable(relation)
        frontier = engine.book.frontier(relation.name)
        if frontier.oldest is None or limit <= frontier.oldest:
            return False
        with engine.transaction():
            after = _delete_rows(engine, relation, limit) if engine.catalog.keeps(relation) else engine.catalog
            part_book.erase_parts(engine.connection, relation.name, limit)
            part_book.save_frontier(engine.connection, relation.name, replace(frontier, kept=limit))
            faults.reach("parts deleted")
            engine.change_catalog(after)
        engine.book.forget_parts(relation.name, limit)
        engine.access.rewritten(relation.name)
        engine.adopt(after)
    return True


def _delete_rows(engine: Engine, relation: Relation, limit: int) -> Catalog:
    """Delete the rows of the parts before one, inside the caller's transaction; returns the catalogue from then on.

    A view that is not of parts, and took note of changes alone, cannot be evaluated anew once rows that it has seen are
    gone: the stream begins after the last epoch that brought such a row.
    """
    catalog = engine.catalog
    rows = f'FROM {sql(store_table(relation.name))} WHERE "{PART}" < {int(limit)}'
    if relation.flows and any(relation.name in program.inputs for program in catalog.programs):
        [(last,)] = engine.connection.execute(f'SELECT max("{EPOCH}") {rows}').fetchall()
        if last is not None and last > relation.begins:
            catalog = catalog.with_changed(replace(relation, begins=last))
    if engine.is_view_away(relation.name):
        assert engine.away is not None
        engine.away.show_from(relation.name, limit)  # its rows go when segments are put together
    else:
        engine.connection.execute(f"DELETE {rows}")
    return catalog


def to_roll_up(relation: Relation, book: Book) -> int | None:
    """The first part that is not to be rolled up, if it is time to roll up those before it."""
    frontier = book.frontier(relation.name)
    target = rolled_up_before(relation, frontier)
    if frontier.oldest is None or target <= max(frontier.oldest, frontier.rolled or 0):
        return None
    if frontier.rolled is None:
        return target
    held: Mapping[int, int] = dict(book.rows.get(relation.name, {}))
    done = sum(rows for part, rows in held.items() if part < frontier.rolled)
    waiting = sum(rows for part, rows in held.items() if frontier.rolled <= part < target)
    return target if waiting >= ROLL_SHARE * done else None


def note_rolled_up(engine: Engine, relation: Relation) -> None:
    """Let the parts of a view that lies away count as rolled up: segments have no parts to put together."""
    with engine.lock:
        rolled = to_roll_up(relation, engine.book)
        if rolled is None or engine.catalog.find(relation.name) != relation:
            return
        frontier = replace(engine.book.frontier(relation.name), rolled=rolled)
        with engine.transaction():
            part_book.save_frontier(engine.connection, relation.name, frontier)
        engine.book.frontiers[relation.name] = frontier


def rewrite_parts(engine: Engine, reader: duckdb.DuckDBPyConnection, relation: Relation, rolled: int | None) -> int:
    """Rewrite the store of a relation with parts, with those before one rolled up; returns how many rows it has.

    Rows of views are added up. Rows of streams stay as they are, with the epoch that they came in.
    """
    if rolled is None or relation.roll_up is None or relation.length is None:
        return rewrite(engine, reader, relation.name, [_rows(relation, [column(PART)])])
    many = relation.roll_up[1] // relation.length
    larger = exp.IntDiv(this=column(PART), expression=number(many))
    names = [f.name for f in relation.fields if f.name not in (PART, relation.time)]
    names += [relation.time] if relation.time is not None else []  # each row has another time: it comes last
    order = [larger, *(column(text) for text in (*names, PART))]
    old, recent = (of(this=column(PART), expression=number(rolled)) for of in (exp.LT, exp.GTE))
    queries = [_rows(relation, order, old), _rows(relation, [column(PART)], recent)]
    return rewrite(engine, reader, relation.name, queries, rolled)


def _rows(relation: Relation, order: Sequence[exp.Expr], where: exp.Expr | None = None) -> exp.Select:
    if relation.parts is not None:
        return living(relation.name, Shape(tuple(f.name for f in relation.fields)), order, where)
    query = exp.Select(expressions=[exp.Star()]).from_(store_table(relation.name), copy=False)
    query = query.where(where, copy=False) if where is not None else query
    return query.order_by(*order, copy=False)


def has_spare_lines(book: Book) -> bool:
    """Whether `hw.parts` has many more lines than there are parts."""
    return book.lines - book.settled > max(SPARE_LINES, book.settled)


def put_lines_together(engine: Engine) -> None:
    """Make one line of all that `hw.parts` has for a part."""
    with engine.lock:
        with engine.transaction():
            lines = part_book.put_together(engine.connection)
        engine.book.lines = engine.book.settled = lines


def advanced(frontier: Frontier, since: int | None) -> int:
    """By how many parts a relation has advanced since one, or since its oldest."""
    begin = since if since is not None else frontier.oldest
    return 0 if frontier.next is None or begin is None else frontier.next - begin
