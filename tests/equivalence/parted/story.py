"""What happens: rows of the present, out of order, late and too late, gaps, tables that change, and accidents."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ..values import draw
from .case import Change, Relation, Row, Step
from .draft import Draft

_SECOND = timedelta(seconds=1)
_INSTANT = timedelta(microseconds=1)


@dataclass
class Story:
    """A story while it is made up.

    Attributes:
        now: about what time it is.
        has_long_gap: whether hundreds of parts without rows are to come.
        sent: rows of streams so far, of which some come again.
        held: what tables hold.
    """

    draft: Draft
    relations: tuple[Relation, ...]
    views: tuple[str, ...]
    now: datetime
    has_long_gap: bool
    sent: dict[str, list[Row]] = field(default_factory=dict)
    held: dict[str, Counter[Row]] = field(default_factory=dict)

    @property
    def rng(self) -> random.Random:
        return self.draft.rng

    def __post_init__(self) -> None:
        self.start = self.now
        self._streams = [one for one in self.relations if one.length is not None]
        self._tables = [one for one in self.relations if one.length is None]
        self._pace = max(one.length or 0 for one in self._streams) if self.draft.chance(0.3) else 20

    def steps(self, count: int) -> tuple[Step, ...]:
        return tuple(self._step() for _ in range(count))

    def _step(self) -> Step:
        kind = self.rng.choices(
            ["epoch", "advance", "fail", "refresh", "reopen", "consolidate"], [30, 4, 2, 1.5, 1.5, 2]
        )[0]
        if kind == "advance":
            shift = self.rng.choice([-30, 0, 10, 40, 100]) * _SECOND
            moment = max(datetime(1970, 1, 1), self.now + shift)
            if self.draft.chance(0.4):
                moment = self._edge(moment, self.rng.choice(self._streams))
            self.draft.note("advance")
            self.now = max(self.now, moment)
            return Step("advance", (), self.rng.choice(self._streams).name, moment)
        if kind == "refresh":
            return Step("refresh", (), self.rng.choice(self.views))
        self.draft.note(kind)
        if kind == "epoch":
            changes = self._changes(really=True)
            if not self.draft.chance(0.1):
                return Step("epoch", changes)
            self.draft.note("rows and an advance in one epoch")
            self.now += 15 * _SECOND
            return Step("epoch", changes, self.rng.choice(self._streams).name, self.now)
        if kind == "fail":
            return Step("fail", self._changes(really=False), point=self.rng.choice([1, 2, 3, 4, 5, 6, 9]))
        return Step(kind)

    def _changes(self, really: bool) -> tuple[Change, ...]:
        made: list[Change] = []
        before = self.now
        if self._tables and self.draft.chance(0.3):
            made += self._table(self.rng.choice(self._tables), really)
        if not made or self.draft.chance(0.6):
            some = self._streams if self.draft.chance(0.5) else [self.rng.choice(self._streams)]
            made += [Change("insert", one.name, self._rows(one)) for one in some]
            if self.draft.chance(0.1):
                self.draft.note("two inserts in an epoch")
                made.append(Change("insert", some[0].name, self._rows(some[0])))
        if not really:
            self.now = before
        return tuple(made)

    def _table(self, table: Relation, really: bool) -> list[Change]:
        held = self.held.setdefault(table.name, Counter())
        made: list[Change] = []
        there = sorted(held.elements(), key=repr)
        if there and self.draft.chance(0.5):
            gone = self.rng.sample(there, min(len(there), self.draft.pick(1, 2)))
            made.append(Change("delete", table.name, tuple(gone)))
        if not made or self.draft.chance(0.6):
            rows = [tuple(draw(self.rng, c.type, 0.1) for c in table.columns) for _ in range(self.draft.pick(1, 2, 3))]
            made.append(Change("insert", table.name, tuple(rows)))
        for change in made if really else ():
            held.update(change.rows) if change.kind == "insert" else held.subtract(change.rows)
        self.draft.note("table changes")
        return made

    def _rows(self, stream: Relation) -> tuple[Row, ...]:
        kind, back, ahead, count = self.rng.choices(
            [
                ("rows of the present", 0, 1.0, self.draft.pick(1, 2, 3, 5)),
                ("rows out of order", 2, 1.0, self.draft.pick(2, 3, 5)),
                ("late rows", 6, 0, self.draft.pick(1, 1, 2)),
                ("very late rows", 20, 0, 1),
                ("gap", 0, 0.5, self.draft.pick(1, 2)),
                ("long gap", 0, 0.5, self.draft.pick(1, 2)),
                ("bulk", 1, 6, self.draft.pick(8, 16, 30)),
                ("nothing", 0, 0, 0),
            ],
            [12, 5, 5, 1.5, 1.5, 4 if self.has_long_gap else 0, 2, 1],
        )[0]
        self.draft.note(kind)
        if kind == "long gap":
            self.has_long_gap = False
            self.now += self.rng.randint(1000, 3000) * _SECOND
        if kind == "gap":
            self.now += self.draft.pick(3, 5, 9) * self._pace * _SECOND
        rows: list[Row] = []
        for _ in range(count):
            seconds = self.rng.uniform(-back, ahead) * self._pace
            moment = max(datetime(1970, 1, 1), self.now + int(seconds) * _SECOND)
            if self.draft.chance(0.15):
                moment = self._edge(moment, stream)
            elif self.draft.chance(0.2):
                moment += self.rng.randrange(1_000_000) * _INSTANT
            values = (draw(self.rng, c.type, 0.12) for c in stream.columns[1:])
            row: Row = (moment, *values)
            if self.draft.chance(0.3) and rows:  # of the same group, so that it has a history
                row = (moment, self.rng.choice(rows)[1], *row[2:])
            rows.append(row)
        sent = self.sent.setdefault(stream.name, [])
        if sent and self.draft.chance(0.2):
            self.draft.note("a row comes again")
            rows.append(self.rng.choice(sent[-6:]))
        sent += rows
        if rows and ahead:
            latest = max(row[0] for row in rows)  # type: ignore[type-var]
            assert isinstance(latest, datetime)
            self.now = max(self.now, latest)
        return tuple(rows)

    def _edge(self, moment: datetime, stream: Relation) -> datetime:
        """Exactly where a part begins, or just before."""
        self.draft.note("a time at the edge of a part")
        length = (stream.length or 1) * _SECOND
        edge = moment - (moment - datetime(1970, 1, 1)) % length + self.draft.pick(0, 1) * length
        return max(datetime(1970, 1, 1), edge - self.draft.pick(0, 0, 1) * _INSTANT)
