"""Headwater under test, seen through its public face only."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol
from unittest import mock

import pyarrow as pa
import pytest

import headwater as hw
from headwater.algebra.nodes import Node
from headwater.creating import refresh_policy
from headwater.engine.copying import bring_up_to_date
from headwater.plan.program import BlockPlan, Map
from headwater.serve.subscribe import Subscription
from headwater.sql.lower import lower_view
from headwater.sql.parse import parse
from headwater.sql.statements import CreateView

from .bags import Bag
from .case import START, Epoch, Relation, View
from .followers import Change, Follower, changes_of
from .followers import changelog as added_up
from .values import canonical, plain


class Subject(Protocol):
    """What a case is run on."""

    def define(self, relation: Relation) -> None: ...

    def advance(self, clock: datetime) -> None:
        """What the clock reads from now on."""

    def create_view(self, view: View) -> None: ...

    def drop_view(self, view: View) -> None: ...

    def replan(self, view: View) -> None: ...

    def apply(self, epoch: Epoch) -> dict[str, Bag]:
        """Carry out an epoch; the changelog of every view that changed."""

    def refresh(self, view: str) -> dict[str, Bag]:
        """Evaluate a view anew; the changelog of every view that changed."""

    @property
    def suspended(self) -> set[str]:
        """Views that have stopped following their inputs."""

    def contents(self, view: str) -> Bag: ...

    def follow(self, view: View) -> Follower:
        """Subscribe to a view; whoever follows it has nothing yet."""

    def history(self, view: View) -> list[Change] | None:
        """All changes of a view that keeps them."""

    def told(self, view: str) -> list[Change] | None:
        """What a subscriber of a view was told since the last time; None if it has to begin again, from nothing."""

    def close(self) -> None: ...


class Headwater:
    """A warehouse, in memory unless another is given.

    With `looks_up`, whatever can be looked up is, in sorted copies that are brought up to date after some epochs: small
    stores would only be scanned. Every view has a subscriber, who leaves now and
    then and comes back. Without `observes` there is nobody else who wants changes, and the changelogs are theirs.
    """

    def __init__(
        self, database: hw.Database | None = None, looks_up: bool = False, seed: int = 0, observes: bool = True
    ) -> None:
        database = database or hw.connect(":memory:")  # type: ignore[assignment]
        assert isinstance(database, hw.Database)
        self.database = database
        self.relations: dict[str, Relation] = {}
        self._changes: dict[str, Bag] = {}
        self.now = START
        self.advance(START)
        self.observes = observes
        if observes:
            self.database.observe(self._observe)
        self._subscriptions: dict[str, Subscription] = {}
        self._told: dict[str, list[Change]] = {}
        self._from_anew: set[str] = set()
        self.looks_up = looks_up
        self._rng = random.Random(seed)
        #: How often there were so many plans to choose from.
        self.choices: Counter[int] = Counter()
        if looks_up:
            database.engine.access.decide = lambda stored, keys: stored > 0

    def advance(self, clock: datetime) -> None:
        self.now = clock
        self.database.engine.clock = lambda: self.now

    @property
    def epoch(self) -> int:
        """Number of the last epoch committed."""
        return self.database.engine.epoch

    def _observe(self, number: int, changes: Mapping[str, pa.Table]) -> None:
        self._changes = {name: bag_of(table) for name, table in changes.items()}

    def define(self, relation: Relation) -> None:
        self.database.execute(relation.sql)
        self.relations[relation.name] = relation

    def create_view(self, view: View) -> None:
        with mock.patch("headwater.plan.compile.cheapest_of", self._any_plan):
            self.database.execute(view.sql)

    def _any_plan(self, block: Map, plans: Sequence[BlockPlan], *_: object) -> BlockPlan:
        """Of the plans of a strategy any one: they must all be right, not only the one that looks cheapest."""
        self.choices[len(plans)] += 1
        return self._rng.choice(plans)

    def drop_view(self, view: View) -> None:
        self.database.execute(f"DROP VIEW {view.name}")
        subscription = self._subscriptions.pop(view.name, None)
        if subscription is not None:
            with pytest.raises(hw.UserError, match="HW523"):
                subscription.poll()

    def replan(self, view: View) -> None:
        self.database.execute(view.replan_sql)

    def algebra(self, view: str) -> Node:
        return self.database.algebra(view)

    def lowered(self, view: View) -> Node:
        """The tree of a view that could not be created."""
        [statement] = parse(view.sql)
        assert isinstance(statement, CreateView)
        policy = refresh_policy(self.database, statement.name, statement.options)
        return lower_view(statement.query, self.database.relations_for_views(policy), statement.source)

    def apply(self, epoch: Epoch) -> dict[str, Bag]:
        self._changes = {}
        self._wander()
        if len(epoch) == 1 and epoch[0].is_statement:
            self.database.execute(epoch[0].sql(self.relations.get(epoch[0].relation)))
        else:
            self._apply_rows(epoch)
        if self.looks_up:
            self._copy()
        self.gather()
        return self._changes

    def _copy(self) -> None:
        """Make the copies that were missed, and bring others up to date, not always the same ones."""
        engine = self.database.engine
        late = [copy.path for copy in engine.access.copies.values() if copy.behind and engine.epoch % 3]
        for path in [*engine.access.wishes, *late]:
            bring_up_to_date(engine, path)
        assert not engine.access.refused

    def _apply_rows(self, epoch: Epoch) -> None:
        with self.database.epoch() as builder:
            for operation in epoch:
                relation = self.relations[operation.relation]
                fields = relation.given(operation.kind)
                rows: list[object] = [
                    {field.name: plain(value, field.type) for field, value in zip(fields, row, strict=True)}
                    for row in operation.rows
                ]
                if len(rows) == 2:  # tuples are another way to hand rows in
                    rows = [tuple(row.values()) for row in rows if isinstance(row, dict)]
                getattr(builder, operation.kind)(operation.relation, rows)

    def refresh(self, view: str) -> dict[str, Bag]:
        self._changes = {}
        self.database.execute(f"REFRESH {view}")
        self.gather()
        return self._changes

    @property
    def suspended(self) -> set[str]:
        return {one.name for one in self.database.engine.catalog if one.suspended}

    def contents(self, view: str) -> Bag:
        return bag_of(self.database.query(f"SELECT * FROM {view}"))

    # -- subscribers -------------------------------------------------------------------------------------------------

    def follow(self, view: View) -> Follower:
        self._subscriptions[view.name] = self.database.subscribe(view.name, 0 if view.keeps else None)
        self._told[view.name] = []
        self.gather()
        relation = self.database.find(view.name)
        names = [f.name for f in relation.fields]
        return Follower(None if relation.identity is None else tuple(names.index(one) for one in relation.identity))

    def gather(self) -> None:
        """Let all subscribers fetch what there is."""
        for view, subscription in self._subscriptions.items():
            changes = changes_of(subscription.so_far())
            assert subscription.epoch == self.epoch
            self._told[view] += changes
            if not self.observes:
                self._changes[view] = added_up([one for one in changes if one.epoch == self.epoch])

    def _wander(self) -> None:
        """Some subscribers leave and come back, before the next epoch."""
        for view in self._subscriptions:
            if self._rng.random() < 0.2:
                self.come_back(view)

    def come_back(self, view: str) -> None:
        """A subscriber leaves, and goes on where it was, or begins again with what the view holds."""
        gone = self._subscriptions[view]
        gone.close()
        keeps = self.database.find(view).changes is not None and view not in self._from_anew
        goes_on = keeps and self._rng.random() < 0.7
        self._subscriptions[view] = self.database.subscribe(view, gone.epoch + 1 if goes_on else None)
        if not goes_on:
            self._from_anew.add(view)

    def history(self, view: View) -> list[Change] | None:
        return changes_of(self.database.subscribe(view.name, from_epoch=0).so_far()) if view.keeps else None

    def told(self, view: str) -> list[Change] | None:
        if view in self._from_anew:
            self._from_anew.discard(view)
            return None
        changes, self._told[view] = self._told[view], []
        return changes

    def close(self) -> None:
        self.database.close()


def bag_of(table: pa.Table) -> Bag:
    """Rows with their multiplicities: the column `#n` where there is one, else one for each row."""
    last = table.column_names[-1]
    columns = [[canonical(value) for value in table.column(i).to_pylist()] for i in range(table.num_columns)]
    counts = columns.pop() if last == "#n" else [1] * table.num_rows
    out: Bag = Counter()
    for row, n in zip(zip(*columns, strict=True), counts, strict=True):
        out[row] += n  # type: ignore[operator]
    return out
