"""Headwater under test, seen through its public face only."""

from __future__ import annotations

import contextlib
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol
from unittest import mock

import pyarrow as pa
import pytest

import headwater as hw
from headwater import types as t
from headwater.algebra.during import with_windows
from headwater.algebra.nodes import Node, Scan
from headwater.bound import Key
from headwater.creating import refresh_policy
from headwater.database import Database, _one_query
from headwater.emit.probes import hashed
from headwater.engine.copying import bring_up_to_date
from headwater.engine.definitions import policies_of
from headwater.engine.filling import fill
from headwater.engine.local_tasks import LocalRunner
from headwater.engine.merging import Made, Merger
from headwater.plan.answer_from import answer_from
from headwater.plan.program import BlockPlan, Map
from headwater.planning_groups import WORTH
from headwater.reading import Reading
from headwater.serve.query import prepare, run_query
from headwater.serve.subscribe import Subscription
from headwater.sql.lower import Answer, lower_view
from headwater.sql.parse import parse
from headwater.sql.statements import CreateView
from headwater.store.catalog import RETAIN_ALL, Catalog, Kind

from .bags import Bag
from .case import START, Epoch, Relation, View
from .contained import derived
from .followers import Change, Follower, changes_of
from .followers import changelog as added_up
from .values import COLUMN_TYPES, canonical, draw, literal, plain

#: How many texts of a shape are asked after an epoch.
_ASKED = 5


class Subject(Protocol):
    """What a case is run on."""

    @property
    def observes(self) -> bool:
        """Whether changelogs are those of all views, and not only of those that somebody follows."""

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

    def is_lazy(self, view: str) -> bool:
        """Whether a view is evaluated when it is read, so that it has no changes."""

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
    then and comes back. Without `observes` there is nobody else who wants changes, and the changelogs are theirs. With
    `tasks`, programs run as they do in tasks on Spark, by two workers that take turns at random; to some tasks things
    happen that come to nothing, and what they maintain is divided anew now and then.
    """

    def __init__(
        self,
        database: hw.Database | None = None,
        looks_up: bool = False,
        seed: int = 0,
        observes: bool = True,
        borrows: bool = False,
        tasks: bool = False,
    ) -> None:
        self._runner = LocalRunner(2, seed, mishaps=seed % 2 * 0.2) if tasks else None
        #: Rolls for when segments are put together, and what has been and is not listed yet.
        self._merges = random.Random(f"merges {seed}")
        self._made: Made | None = None
        self.merged = 0  #: partitions whose segments were put together beside the epochs
        self.unlisted = 0  #: such as came too late
        self.filled = 0  #: views that were filled in tasks
        #: What lies away is put together and read again soon. In half of these cases no store fits into the memory
        #: of a worker: all are read from their files.
        self._patched = contextlib.ExitStack()
        if self._runner is not None:
            # Mostly beside the epochs, and in some cases by them.
            most, behind = self._merges.choice(((1, 2), (1, 4), (1, 8), (3, 1)))
            self._patched.enter_context(mock.patch("headwater.engine.merges.MOST_SEGMENTS", most))
            self._patched.enter_context(mock.patch("headwater.engine.merges.BEHIND", behind))
            self._patched.enter_context(mock.patch("headwater.engine.merges.STAGGERED", 1))
            self._patched.enter_context(mock.patch("headwater.engine.merges.FEW_ENTRIES", 8 * (seed % 3)))
            self._patched.enter_context(mock.patch("headwater.engine.room.FEW_ROWS", 8 * (seed % 3)))
            # Beside the epochs nothing happens by itself: see `_put_together`.
            self._patched.enter_context(mock.patch("headwater.engine.merging.Merger.nudge"))
            self._patched.enter_context(mock.patch("headwater.engine.merging.RETRY_SECONDS", 0.0))
            # What is divided anew is, mostly in tasks, to which the same happens.
            few = random.Random(f"few {seed}").choice((0, 0, 1 << 30))
            self._patched.enter_context(mock.patch("headwater.engine.moving.FEW_BYTES", few))
            if seed % 2:
                self._patched.enter_context(mock.patch("headwater.engine.segment_files._UNPACKED", 1 << 40))
            # Mostly every statement reads what the change meets of stores, and not these.
            if random.Random(f"met {seed}").random() < 0.75:
                self._patched.enter_context(mock.patch("headwater.emit.narrowing.FEWEST_READERS", 1))
                self._patched.enter_context(mock.patch("headwater.engine.meetings.pays", return_value=True))
            # Mostly new views are filled in tasks, in many slices or few.
            slices = random.Random(f"slices {seed}")
            if slices.random() < 0.8:
                self._patched.enter_context(mock.patch("headwater.engine.filling.FEWEST_ROWS", 0))
                self._patched.enter_context(mock.patch("headwater.engine.filling.SLICE_ROWS", slices.choice((1, 3, 9))))
            self._patched.enter_context(mock.patch("headwater.engine.definitions.fill", self._count_filled))
            partitions = random.Random(seed).choice((1, 2, 3, 5))
            # In some cases what lies away does so on a storage that is reached as any other, and is in memory.
            place = f"memory://seeds/{seed}" if random.Random(f"place {seed}").random() < 0.4 else None
            tasks_of = {"placement": "tasks", "runner": self._runner, "partitions": partitions, "segments": place}
            database = Database(":memory:", **tasks_of)  # type: ignore[arg-type]
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
        self.borrows = borrows
        self.borrowed = 0  #: views that were planned over others that their text does not name
        self.shared = 0  #: times that a view had finer groups in common with others, after a statement
        self._rng = random.Random(seed)
        #: Rolls for how many partitions there are.
        self._division = random.Random(seed)
        #: Rolls for which views are evaluated anew.
        self._anew = random.Random(f"anew {seed}")
        self.refreshed = 0  #: how often one was
        #: Rolls for who shares finer groups.
        self._groups = random.Random(f"groups {seed}")
        #: Rolls for what is remembered, so that the other rolls stay what they are.
        self._memory = random.Random(seed)
        #: Relations that have an index.
        self.indexed: list[str] = []
        #: What relations held after epochs, by their names, when they were made, and the epochs.
        self.remembered: dict[tuple[str, int, int], Bag] = {}
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
        changes = relation.kind == "TABLE" or relation.is_keyed_stream
        keeps = changes and self._memory.random() < 0.5
        self.database.execute(f"{relation.sql} RETAIN CHANGES ALL" if keeps else relation.sql)
        self.relations[relation.name] = relation
        self._index(relation.name)

    def create_view(self, view: View) -> None:
        # Whatever it costs, a view is planned over another one that holds it. One with a policy may begin elsewhere so.
        worth = 0.0 if view.refresh or not self.borrows else 1e9
        with (
            mock.patch("headwater.plan.compile.cheapest_of", self._any_plan),
            mock.patch("headwater.borrowing.WORTH", worth),
            self._any_timing(),
            self._any_groups(),
        ):
            self.database.execute(view.sql)
        self._count_shared()
        program = self.database.find(view.name).program
        self.borrowed += program is not None and program.borrowed is not None
        self._index(view.name)

    def _any_timing(self) -> mock._patch[object]:
        """A view that may be evaluated when it is read is, or is not."""
        return mock.patch("headwater.planning_reads.is_better_kept", self._either)

    def _any_groups(self) -> mock._patch[object]:
        """Views that can share finer groups do, whatever it costs; or do not; or do if that costs less."""
        return mock.patch("headwater.planning_groups.WORTH", self._groups.choice([1e9, 1e9, 1e9, 0.0, WORTH]))

    def _count_shared(self) -> None:
        self.shared += sum(one.shared is not None for one in self.database.engine.catalog.programs)

    def _either(self, figures: object, reads: float, is_kept: bool | None = None) -> bool:
        return self._rng.random() < (0.5 if is_kept is None else 0.2 if is_kept else 0.8)

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
        """Let a view have another plan. Mostly one that decides on its timing changes it; else what it decides counts.

        Both ways are tried out first, wherever that can be, but not so often: what it takes is of no interest.
        """
        own = self._rng.random() < 0.3
        with (
            contextlib.nullcontext() if own else self._any_timing(),
            self._any_groups(),
            mock.patch("headwater.trying._ROUNDS", 1),
            mock.patch("headwater.planning_reads.MOST_TRIED", self._rng.choice([1, 1, 3])),
        ):
            self.database.execute(view.replan_sql)
        self._count_shared()

    def algebra(self, view: str) -> Node:
        node = self.database.algebra(view)
        return with_windows(node) if self.is_lazy(view) else node

    def lowered(self, view: View) -> Node:
        """The tree of a view that could not be created."""
        [statement] = parse(view.sql)
        assert isinstance(statement, CreateView)
        policy = refresh_policy(self.database, statement.name, statement.options)
        return lower_view(statement.query, self.database.relations_for_views(policy), statement.source)

    def apply(self, epoch: Epoch) -> dict[str, Bag]:
        self._changes = {}
        self._wander()
        if self._runner is not None and self._division.random() < 0.1:
            self.database.execute(f"ALTER WAREHOUSE SET PARTITIONS {self._division.choice((1, 2, 3, 5))}")
        self._put_together()
        if len(epoch) == 1 and epoch[0].is_statement:
            self.database.execute(epoch[0].sql(self.relations.get(epoch[0].relation)))
        else:
            self._apply_rows(epoch)
        if self.looks_up:
            self._copy()
        self.gather()
        self._evaluate_anew()
        self._remember()
        return self._changes

    def _evaluate_anew(self) -> None:
        """Evaluate a view anew that follows its inputs, now and then, if programs run in tasks: nothing may change."""
        if self._runner is None or self._anew.random() >= 0.15:
            return
        able = [one for one in self.database.engine.catalog if one.program is not None and not one.lazy]
        able = [one for one in able if not one.suspended and not policies_of(self.database.engine, one)]
        # Sums of DOUBLE depend on the order in which they are added up.
        able = [one for one in able if not any(re.search("DOUBLE|FLOAT", str(f.type)) for f in one.fields)]
        if not able:
            return
        found, self._changes = self._changes, {}
        try:
            self.database.execute(f"REFRESH {self._anew.choice(able).name}")
            self.refreshed += 1
        except hw.UserError as error:
            if error.code != "HW505":  # a stream's rows are gone
                raise
        self.gather()
        assert not any(self._changes.values()), self._changes
        self._changes = found

    def _put_together(self) -> None:
        """Put segments together, as is done beside the epochs, and let that count now, or after whatever comes next."""
        merger = self.database.consolidator.merger
        if merger is None:
            return
        self._list(merger)
        if self._merges.random() < 0.8:
            self._made = merger.put_together(merger.due())
            if self._merges.random() < 0.5:
                self._list(merger)

    def _count_filled(self, *arguments: Any) -> None:
        self.filled += 1
        fill(*arguments)

    def _list(self, merger: Merger) -> None:
        if self._made is not None:
            listed = merger.list(self._made)
            self.merged += listed
            self.unlisted += len(self._made.pairs) - listed
            self._made = None

    def _remember(self) -> None:
        """Note what some relations hold of which the past is kept."""
        for one in self.database.engine.catalog:
            kept = one.retain == RETAIN_ALL if one.flows else one.changes is not None
            queried = one.kind is not Kind.STREAM or one.retain == RETAIN_ALL
            if kept and queried and one.policy is None and one.length is None and self._memory.random() < 0.4:
                self.remembered[one.name, one.created, self.epoch] = self.contents(one.name)

    def _index(self, name: str) -> None:
        """Give a relation an index by some of its columns, now and then."""
        relation = self.database.find(name)
        able = [f.name for f in relation.fields if hashed(f.type)]
        if (
            able
            and not relation.flows
            and not relation.lazy
            and relation.length is None
            and self._memory.random() < 0.3
        ):
            columns = self._memory.sample(able, self._memory.randint(1, min(3, len(able))))
            self.database.execute(f"CREATE INDEX i{len(self.indexed)} ON {name} ({', '.join(columns)})")
            self.indexed.append(name)

    def mislaid(self) -> Iterator[tuple[str, Bag, Bag]]:
        """Relations of which point reads say something else than a query: what they say, and what that says."""
        for name in self.indexed:
            relation = self.database.engine.catalog.find(name)
            if relation is None or not relation.indexes or self._memory.random() < 0.5:
                continue
            if relation.kind is Kind.STREAM and relation.retain != RETAIN_ALL:
                continue
            columns = relation.indexes[0].columns
            rows = self.database.query(f"SELECT * FROM {name}")
            keys = rows.select(list(columns)).drop_null()
            if not keys.num_rows:
                continue
            wanted = keys.slice(self._memory.randrange(keys.num_rows), 2)
            told = {tuple(row.values()) for row in wanted.to_pylist()}
            picked = [i for i, row in enumerate(rows.select(list(columns)).to_pylist()) if tuple(row.values()) in told]
            found = self.database.get_many(name, wanted)
            expected = bag_of(rows.take(pa.array(picked, pa.int64())))
            if bag_of(found) != expected:
                yield name, bag_of(found), expected
            one = dict(zip(columns, next(iter(told)), strict=True))
            own = [row for row in rows.to_pylist() if all(row[text] == one[text] for text in columns)]
            if len(own) == 1 and canonical(self.database.get(name, one)) != canonical(own[0]):
                yield name, Counter([str(self.database.get(name, one))]), Counter([str(own[0])])

    def misremembered(self) -> Iterator[tuple[str, int, Bag, Bag]]:
        """Relations and epochs of which AS OF says something else than a query said then: what it says, and that."""
        for (name, created, epoch), then in self.remembered.items():
            found = self.database.engine.catalog.find(name)
            if found is None or found.created != created:
                continue
            spelt = self._memory.choice(("AS OF EPOCH {}", "VERSION AS OF {}", "FOR VERSION AS OF {} AS q"))
            now = bag_of(self.database.query(f"SELECT * FROM {name} {spelt.format(epoch)}"))
            if now != then:
                yield name, epoch, now, then

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

    def is_lazy(self, view: str) -> bool:
        return self.database.find(view).lazy

    def contents(self, view: str) -> Bag:
        return bag_of(self.database.query(f"SELECT * FROM {view}"))

    # -- ad hoc queries ----------------------------------------------------------------------------------------------

    def answers(self, view: str, rng: random.Random) -> tuple[Node, Node, Bag, Bag] | None:
        """A query near a view's: its tree and one over whatever views answer it, and what the two say.

        None if no view answers it, if rows that it names are not kept, or if it fails on a value.
        """
        database = self.database
        catalog = database.engine.catalog
        relation = database.find(view)
        assert relation.program is not None
        if relation.lazy or relation.program.follows_clock or not self._is_kept(relation.program.query):
            return None
        others = [Scan(one.name, "#other", one.fields) for one in catalog if one.kind is Kind.TABLE]
        tree = derived(relation.program.query, rng, others)
        outcome = answer_from(tree, database.answering.views(catalog), lambda name: 1.0, lambda before, after: True)
        if not outcome.uses:
            return None
        trees = tree, outcome.node
        try:
            without, within = (bag_of(self._run(Answer(one, one.column_names), catalog)) for one in trees)
        except hw.HeadwaterError as error:
            if error.code not in ("HW501", "HW502", "HW503", "HW504"):
                raise
            return None
        return tree, outcome.node, without, within

    def asked(self, view: str, rng: random.Random) -> Iterator[tuple[str, object, object]]:
        """Texts of one shape with one constant after the other: what they say, and what a plan of their own says.

        By and by their plan is shared, and what they read is copied.
        """
        database = self.database
        relation = database.find(view)
        fields = [f for f in relation.fields if f.type in COLUMN_TYPES and t.is_orderable(f.type)]
        if not fields:
            return
        field, sign = rng.choice(fields), rng.choice(["<", "<=", ">", ">=", "=", "<>"])
        items, by = "*", ""
        if rng.random() < 0.4 and t.is_groupable(field.type):
            items, by = f"`{field.name}`, COUNT(*) AS n", f" GROUP BY `{field.name}` HAVING COUNT(*) >= {{count}}"
        shape = f"SELECT {items} FROM {view} WHERE `{field.name}` {sign} {{constant}}{by}"
        for _ in range(_ASKED):
            constant = literal(draw(rng, field.type, 0.0), field.type)
            text = shape.format(constant=constant, count=rng.randrange(1, 3))
            alone = Reading(database.engine, database.uppers, database.answering, 0)
            yield text, _said(database.reading, text), _said(alone, text)

    def _run(self, answer: Answer, catalog: Catalog) -> pa.Table:
        engine = self.database.engine
        return run_query(engine.warehouse, engine.stamps, prepare(answer, catalog), catalog)

    def _is_kept(self, tree: Node) -> bool:
        """Whether a query may read what a view has seen: the rows of a stream may be gone, or others be there."""
        relations = self.database.relations_for_queries()
        for scan in tree.walk():
            if not isinstance(scan, Scan):
                continue
            relation = self.database.engine.catalog.find(scan.relation)
            if relation is None or (relation.policy is not None and relation.appends):
                return False
            if relation.policy is not None:
                continue
            try:
                found = relations.find(relation.folded)
            except hw.UserError:
                return False
            if found is None or found.since != scan.since:
                return False
        return True

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
        if self._runner is not None:
            self._runner.close()
        self._patched.close()


def _said(reading: Reading, text: str) -> object:
    """What comes of a query: names, types and rows, or the code of an error."""
    try:
        table = reading.look(Key(text), lambda: _one_query(text))
    except hw.HeadwaterError as error:
        return error.code
    return table.schema, bag_of(table)


def bag_of(table: pa.Table) -> Bag:
    """Rows with their multiplicities: the column `#n` where there is one, else one for each row."""
    last = table.column_names[-1]
    columns = [[canonical(value) for value in table.column(i).to_pylist()] for i in range(table.num_columns)]
    counts = columns.pop() if last == "#n" else [1] * table.num_rows
    out: Bag = Counter()
    for row, n in zip(zip(*columns, strict=True), counts, strict=True):
        out[row] += n  # type: ignore[operator]
    return out
