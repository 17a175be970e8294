"""What tests of parts have in common: times by the minute, and what must be true of the catalogue of parts."""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

import headwater as hw
from headwater import database
from headwater.engine import part_book
from headwater.engine.away import Runner
from headwater.engine.consolidate import Consolidator
from headwater.engine.part_limits import Limits

START = dt.datetime(2024, 1, 1)
#: The subscript of its part of a minute.
FIRST = 28_401_120


def minute(number: float) -> dt.datetime:
    """A time so many minutes after the beginning."""
    return START + dt.timedelta(minutes=number)


@contextmanager
def eager(path: object = ":memory:", runner: Runner | None = None) -> Iterator[hw.Database]:
    """A warehouse whose background looks at everything after every epoch; with a runner, programs run in tasks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "Consolidator", functools.partial(Consolidator, look_rows=1, look_parts=1))
        asked = {"placement": "tasks", "runner": runner, "partitions": 3} if runner is not None else {}
        db = hw.Database(str(path), **asked)  # type: ignore[arg-type]
    with db:
        yield db


def settle(db: hw.Database) -> None:
    """Wait until the background has done all that is to be done, also what it could do only after something else."""
    for _ in range(4):
        assert db.consolidator.wait(30)
        db.consolidator._parts.clear()


def deletable(db: hw.Database, name: str) -> int:
    """How many of the last complete parts of a relation must be kept."""
    relation, frontier = db.find(name), db.engine.book.frontier(name)
    assert frontier.next is not None
    return frontier.next - Limits(db.engine.catalog, db.engine.book).deletable(relation)


def kept(db: hw.Database, name: str) -> list[int]:
    """The parts that are stored of a relation, counted from the first minute, hour and so on."""
    relation = db.find(name)
    assert relation.length is not None
    reader = db.warehouse.reader()
    try:
        found = reader.execute(f'SELECT DISTINCT "PART" FROM data."{name}" ORDER BY 1').fetchall()
    finally:
        reader.close()
    return [part - FIRST * 60 // relation.length for (part,) in found]


def check_book(db: hw.Database) -> None:
    """What is known of parts is what is stored of them, in memory and on disk."""
    book = db.engine.book
    reader = db.warehouse.reader()
    try:
        for one in part_book.parted(db.engine.catalog):
            if one.length is None or not db.engine.catalog.keeps(one):
                continue
            query = f'SELECT "PART", sum("#n")::BIGINT, bool_and("#n" = 1) FROM data."{one.name}" GROUP BY 1'
            found = reader.execute(query).fetchall()
            assert book.rows.get(one.name, {}) == {part: rows for part, rows, _ in found if rows}, one.name
            multiple = {part for part, _, single in found if not single}
            assert db.engine.is_view_away(one.name) or book.multiple.get(one.name, set()) >= multiple, one.name
            oldest = book.frontier(one.name).oldest
            assert all(oldest is not None and part >= oldest for part, _, _ in found), one.name
        loaded = part_book.load(reader)
    finally:
        reader.close()
    for name, rows in book.rows.items():
        assert loaded.rows.get(name, {}) == rows, name
        assert loaded.multiple.get(name, set()) == book.multiple.get(name, set()), name
    assert loaded.frontiers == {n: replace(f) for n, f in book.frontiers.items() if f != part_book.Frontier()}
