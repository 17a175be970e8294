"""Headwater under test, with streams by part."""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa

import headwater as hw
from headwater.algebra.nodes import Node
from headwater.engine import faults, part_book
from headwater.engine.local_tasks import LocalRunner
from headwater.engine.part_upkeep import rewrite_parts
from headwater.engine.rewriting import consolidate
from headwater.engine.shapes import shape_of
from headwater.errors import UserError
from headwater.plan.parts import PartProgram

from ..bags import Bag
from ..subject import bag_of
from .case import Case, Step, View
from .judges import Shape


class Failing(Exception):
    """What an epoch fails with that is to fail."""


class Headwater:
    """A warehouse: in a folder if the case asks for it.

    With `observes` somebody wants to know all changes. In every other case it does with few parts what it would do with
    many: it looks in every second one whether rows are alone in their groups, and builds two parts at once. In two of
    five cases programs run as in tasks, every other time that the warehouse is opened; what they maintain is divided
    anew now and then.
    """

    def __init__(self, case: Case, observes: bool) -> None:
        self._case = case
        self._limits = contextlib.ExitStack()
        if case.seed % 2:
            for name, value in (("parts.PATIENCE", 1), ("parts.FEW_PARTS", 2), ("lone.KNOWN_ROWS", range(100_000))):
                self._limits.enter_context(mock.patch(f"headwater.engine.{name}", value))
        self._observes = observes
        self._folder = tempfile.TemporaryDirectory() if case.disk else None
        tasks = case.seed % 5 in (2, 4)
        self._runner = LocalRunner(2, case.seed, mishaps=case.seed % 2 * 0.1) if tasks else None
        if tasks:
            self._limits.enter_context(mock.patch("headwater.engine.merges.MOST_SEGMENTS", 3))
            self._limits.enter_context(mock.patch("headwater.engine.merges.STAGGERED", 2))
            self._limits.enter_context(mock.patch("headwater.engine.moving.FEW_BYTES", 0))
            self._limits.enter_context(mock.patch("headwater.engine.filling.FEWEST_ROWS", 0))
            self._limits.enter_context(mock.patch("headwater.engine.filling.SLICE_ROWS", 4))
        self._opened = itertools.count()
        #: Rolls for how many partitions there are.
        self._division = random.Random(case.seed)
        self.database = self._open()
        self.changes: dict[str, Bag] = {}
        for relation in case.relations:
            self.database.execute(relation.sql)

    def _open(self) -> hw.Database:
        where = Path(self._folder.name, "warehouse") if self._folder else ":memory:"
        if self._runner is not None and next(self._opened) % 2 == 0:
            seed, partitions = self._case.seed, self._division.choice((1, 2, 3, 5))
            means = {"segments": f"memory://parts/{seed}" if seed % 3 == 0 else None, "partitions": partitions}
            database = hw.Database(where, placement="tasks", runner=self._runner, **means)  # type: ignore[arg-type]
        else:
            database = hw.Database(where)
        if self._observes:
            database.observe(self._observe)
        return database

    def _observe(self, _: int, changes: Mapping[str, pa.Table]) -> None:
        self.changes = {name: bag_of(table) for name, table in changes.items()}

    @property
    def epoch(self) -> int:
        return self.database.engine.epoch

    def create(self, view: View) -> None:
        if view.fragile:
            with contextlib.suppress(UserError):
                self.database.execute(view.sql)
        else:
            self.database.execute(view.sql)

    def drop(self, view: str) -> None:
        self.database.execute(f"DROP VIEW {view}")

    def has(self, view: str) -> bool:
        return self.database.engine.catalog.find(view) is not None

    def take(self, step: Step) -> None:
        """Carry out a step; `changes` are then those of the views."""
        self.changes = {}
        match step.kind:
            case "epoch":
                self._epoch(step)
            case "fail":
                with contextlib.suppress(Failing), failing(step.point):
                    self._epoch(step)
            case "advance":
                assert step.moment is not None
                self.database.execute(f"ADVANCE STREAM {step.target} TO '{step.moment}'")
            case "refresh":
                self.database.execute(f"REFRESH {step.target}")
            case "consolidate":
                self._consolidate()
            case "reopen" if self._case.disk:
                self.database.close()
                self.database = self._open()

    def _epoch(self, step: Step) -> None:
        with self.database.epoch() as builder:
            for change in step.changes:
                getattr(builder, change.kind)(change.relation, list(change.rows))
            if step.moment is not None:
                builder.advance_stream(step.target, step.moment)

    def _consolidate(self) -> None:
        engine = self.database.engine
        if self.database.consolidator.merger is not None:
            self.database.consolidator.merger.work()
        if engine.away is not None:
            self.database.execute(f"ALTER WAREHOUSE SET PARTITIONS {self._division.choice((1, 2, 3, 5))}")
        for relation in engine.catalog:
            names = [one.name for one in relation.program.maps] if relation.program else [relation.name]
            with contextlib.closing(self.database.warehouse.reader()) as reader:
                if engine.is_view_away(relation.name):
                    continue
                if relation.length is not None and engine.catalog.keeps(relation):
                    rewrite_parts(engine, reader, relation, engine.book.frontier(relation.name).rolled)
                    continue
                for name in names:
                    away = engine.away is not None and engine.away.holds(name)
                    shape = shape_of(engine.catalog, name) if engine.catalog.keeps(relation) and not away else None
                    if shape is not None:
                        consolidate(engine, reader, name, shape)

    # -- what there is -----------------------------------------------------------------------------------------------

    def contents(self, relation: str, parts: bool) -> Bag:
        return bag_of(self.database.query(f"SELECT *{', PART' if parts else ''} FROM {relation}"))

    def part(self, relation: str, part: int) -> Bag:
        """One part, by its number."""
        return bag_of(self.database.query(f"SELECT * FROM {relation}[{part}]"))

    def lines(self, relation: str) -> tuple[dict[int, int], set[int]]:
        """The rows of every part by the catalogue, and the parts that the last epoch changed."""
        query = "SELECT part, rows, epoch FROM hw.parts WHERE relation = ?"
        rows: dict[int, int] = {}
        newest: set[int] = set()
        for part, count, epoch in self._ask(query, relation):
            rows[part] = rows.get(part, 0) + count
            newest |= {part} if epoch == self.epoch else set()
        return {part: count for part, count in rows.items() if count}, newest

    def frontier(self, relation: str) -> tuple[int | None, int | None, int | None]:
        query = "SELECT first, next, watermark FROM hw.frontiers WHERE relation = ?"
        found = self._ask(query, relation)
        return found[0] if found else (None, None, None)

    def late(self, stream: str) -> tuple[Bag, int]:
        """The rows kept aside, and how many the catalogue counts."""
        kept: Bag = Counter()
        for *row, reason, n, _ in self._ask(f'SELECT * FROM data."{stream}#late"'):
            assert reason == "too late"
            kept[tuple(row)] += n
        [(count,)] = self._ask("SELECT coalesce(sum(records), 0) FROM hw.rejects WHERE stream = ?", stream)
        return kept, int(count)

    def book(self) -> tuple[object, object]:
        """What is known of parts in memory, and what is known on disk."""
        engine = self.database.engine
        with engine.lock:
            return _plain(engine.book), _plain(part_book.load(engine.connection))

    def _ask(self, query: str, *values: object) -> list[Any]:
        """What a query finds; the background may be at work meanwhile."""
        engine = self.database.engine
        with engine.lock:
            return engine.connection.execute(query, values).fetchall()

    @property
    def suspended(self) -> set[str]:
        return {one.name for one in self.database.engine.catalog if one.suspended}

    # -- for judges --------------------------------------------------------------------------------------------------

    def shape(self, relation: str) -> Shape:
        found = self.database.find(relation)
        columns = tuple((f.name, f.type) for f in found.fields if f.name != "PART")
        return Shape(columns, found.length)

    def program(self, view: str) -> PartProgram:
        program = self.database.find(view).parts
        assert program is not None
        return program

    def algebra(self, view: str) -> Node:
        return self.database.algebra(view)

    def close(self) -> None:
        self._limits.close()
        self.database.close()
        if self._runner is not None:
            self._runner.close()
        if self._folder is not None:
            self._folder.cleanup()


def _plain(book: part_book.Book) -> str:
    frontiers = {name: str(one) for name, one in sorted(book.frontiers.items()) if one != part_book.Frontier()}
    rows = {name: dict(sorted(held.items())) for name, held in sorted(book.rows.items()) if held}
    multiple = {name: sorted(parts) for name, parts in sorted(book.multiple.items()) if parts}
    return json.dumps([frontiers, rows, multiple], indent=1)


@contextlib.contextmanager
def failing(point: int) -> Iterator[None]:
    """Let whatever is carried out fail when it reaches the n-th point at which a process may be killed."""
    left = point

    def hook(reached: str) -> None:
        nonlocal left
        left -= reached != "after commit"
        if left == 0 or reached == "before commit":
            raise Failing(reached)

    faults.hook = hook
    try:
        yield
    finally:
        faults.hook = None
