"""Cuts a schedule into levels and rooms: what the tasks of each stage on Spark do, and what they send to later ones.

A level is one stage on Spark, with a task for each partition. In each task there are rooms: a room is a small database
with part of some relations, each spread in one way, and the statements that can be run there. What a statement needs is
there in time: a relation whose change is settled at a level is read there in the same room, if it is spread as the
reader needs it, or is sent to a room of a later level. Within a room everything happens in the order of the schedule,
so a statement sees of each relation what it would see in an epoch that runs in one place.

Views of parts that a key divides are built in the rooms where they lie, and a synchronised relation is settled where
what waits for it lies (`headwater.engine.holding`). Base relations and other views of parts are settled at home, in the
process that owns the warehouse; their changes come to rooms as they are needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field

from headwater import types as t
from headwater.algebra.clock import CLOCK
from headwater.algebra.nodes import Named, Node, Project, Scan, Sum, Version
from headwater.algebra.scalars import Column, Scalar, substitute
from headwater.emit.layout import MULTIPLICITY, key_column
from headwater.emit.maintain import Columns, key_columns, payload_columns, row_columns, stored_columns
from headwater.emit.synchronise import waiting_of
from headwater.engine.holding import spread_of
from headwater.engine.schedule import Schedule, Stage, Trigger
from headwater.plan.dividing import Division
from headwater.plan.program import Map, Touch
from headwater.plan.spread import EVERYWHERE, ONE_PLACE, Rows, Spread, Way, push, scans_of, way_of, ways
from headwater.store.catalog import Catalog


@dataclass(frozen=True)
class Copy:
    """A relation as it is spread: what is stored of it away from home."""

    relation: str
    spread: Spread

    def __str__(self) -> str:
        return f"{self.relation} {self.spread}"


@dataclass(frozen=True)
class Action:
    """A statement that is run in a room.

    Attributes:
        position: of its stage in the schedule.
        trigger: what it runs, or None if it settles a map.
        target: the map whose change it adds to, or which it settles.
        spreads: how each relation that it reads lies.
        fresh: relations that must have taken this epoch's change, or whose change it reads.
        stores: relations whose store it reads.
        shown: the target's columns by which its result lies where it is; None if that is not known.
    """

    position: int
    trigger: Trigger | None
    target: str
    spreads: Mapping[str, Spread]
    fresh: frozenset[str]
    stores: frozenset[str]
    shown: Spread | None = None


@dataclass
class Room:
    """What lies in a room, and what is done there."""

    level: int
    number: int
    spreads: dict[str, Spread] = field(default_factory=dict)
    actions: list[Action] = field(default_factory=list)

    @property
    def address(self) -> tuple[int, int]:
        return self.level, self.number

    @property
    def stores(self) -> set[str]:
        return {name for one in self.actions for name in one.stores}

    @property
    def fresh(self) -> set[str]:
        return {name for one in self.actions for name in one.fresh}

    def fits(self, spreads: Mapping[str, Spread]) -> bool:
        return all(self.spreads.get(name, spread) == spread for name, spread in spreads.items())

    def take(self, action: Action) -> None:
        self.spreads |= action.spreads
        self.actions.append(action)


@dataclass(frozen=True)
class Plan:
    """Where everything is.

    Attributes:
        rooms: by level and number, in order.
        homes: for each relation that is settled away, its room.
        spreads: how each of these lies there.
        away: their names, in the order of the schedule.
        copies: what is stored, and the room that writes it.
    """

    rooms: Mapping[tuple[int, int], Room]
    homes: Mapping[str, tuple[int, int]]
    spreads: Mapping[str, Spread]
    away: tuple[str, ...]
    copies: Mapping[Copy, tuple[int, int]]

    @property
    def levels(self) -> int:
        return max((level for level, _ in self.rooms), default=0)


class Placing:
    """Decides where everything is; see the module's docstring."""

    def __init__(
        self, schedule: Schedule, catalog: Catalog, rows: Rows, away: Set[str], divided: Mapping[str, Division]
    ) -> None:
        """Look at a schedule.

        Args:
            schedule: of the warehouse.
            catalog: of the warehouse.
            rows: how many rows a relation has.
            away: maps and synchronised relations that are settled away, and views of parts that are built away.
            divided: how views of parts are divided that are built in tasks.
        """
        self._divided = divided
        self._stages = {one.name: one for one in schedule.stages}
        self._order = {name: i for i, name in enumerate(self._stages)}
        self._catalog = catalog
        self._grouped = catalog.grouped
        self._rows = rows
        self._maps = {one.name: one for relation in catalog if relation.program for one in relation.program.maps}
        self.away = tuple(one.name for one in schedule.stages if one.name in away)
        self._triggers = [
            trigger for one in schedule.stages for trigger in one.triggers if trigger.target.name in set(self.away)
        ]
        self._ways: dict[int, Way | None] = {}
        self._rooms: dict[tuple[int, int], Room] = {}
        self._homes: dict[str, tuple[int, int]] = {}
        self._spreads: dict[str, Spread] = {}

    # -- how relations lie -------------------------------------------------------------------------------------------

    def plan(self) -> Plan:
        """Decide."""
        joins = [one for one in self._triggers if len(scans_of(one.statement.term)) > 1]
        for one in joins:
            self._ways[id(one)] = self._way_of_join(one)
        demanded: dict[str, list[Spread]] = {}
        for trigger in joins:
            for name, spread in self._lie(self._ways[id(trigger)], trigger.statement.term).items():
                demanded.setdefault(name, []).append(spread)
        for name in self.away:
            if name not in self._maps and name not in self._divided:
                continue  # a synchronised relation
            for other, spread in self._sources_by_key(name)[1].items():
                demanded.setdefault(other, []).append(spread)
        for name in self.away:
            self._spreads[name] = self._best_spread(name, demanded.get(name, []))
        for one in self._triggers:
            if id(one) not in self._ways:
                self._ways[id(one)] = self._way_of_one(one)
        for stage in self._stages.values():
            if stage.name in self._spreads:
                self._settle(stage)
            for trigger in stage.triggers:
                if trigger.target.name in self._spreads:
                    self._place(self._action(trigger))
        copies = self._copies()
        return Plan(dict(sorted(self._rooms.items())), self._homes, self._spreads, self.away, copies)

    def _copies(self) -> dict[Copy, tuple[int, int]]:
        """What is stored, and the room that writes it: the first that its change can come to."""
        kept = [name for name in self.away if self._stages[name].append is not None or name in self._divided]
        found = {Copy(name, self._spreads[name]): self._homes[name] for name in kept}
        for _, room in sorted(self._rooms.items()):
            for name in sorted(room.stores):
                copy = Copy(name, room.spreads[name])
                if copy not in found:
                    found[copy] = self._keeper(copy).address
        return found

    def _keeper(self, copy: Copy) -> Room:
        home = self._homes.get(copy.relation)
        if home is not None and self._spreads[copy.relation] == copy.spread:
            return self._rooms[home]
        least = self._there(copy.relation, copy.spread)
        for _, room in sorted(self._rooms.items()):
            if room.level >= least and room.spreads.get(copy.relation) == copy.spread:
                return room
        for _, room in sorted(self._rooms.items()):
            if room.level == least and copy.relation not in room.spreads:
                break
        else:
            room = Room(least, sum(1 for level, _ in self._rooms if level == least))
            self._rooms[room.address] = room
        room.spreads[copy.relation] = copy.spread
        return room

    def _way_of_join(self, trigger: Trigger) -> Way | None:
        """The way to spread what a statement joins; None for all in one place."""
        node, _ = _result(trigger)
        wanted = self._keys_of(trigger.target)
        outputs = dict(_result(trigger)[1])
        keys = tuple(outputs[text] for text in wanted if text in outputs and outputs[text].columns)
        for way in ways(node, self._rows, (keys,) if keys and len(keys) == len(wanted) else ()):
            if self._is_consistent(way):
                return way
        return None

    def _way_of_one(self, trigger: Trigger) -> Way | None:
        """The way for a statement with one scan: so that its result need not be sent on, or its input."""
        node, outputs = _result(trigger)
        [scan] = scans_of(node) or [None]
        if scan is None:
            return None
        given = dict(outputs)
        target = self._spreads[trigger.target.name]
        tried: list[tuple[Scalar, ...]] = []
        if scan.relation in self._spreads and self._spreads[scan.relation].keys is not None:
            mine = self._logical(scan, self._spreads[scan.relation])
            tried += [mine] if mine is not None else []
        if target.keys:
            names = [one.name for one in target.keys if isinstance(one, Column)]
            if len(names) == len(target.keys) and all(text in given for text in names):
                tried.append(tuple(given[text] for text in names))
        if scan.relation not in self._spreads:
            tried.reverse()
        tried.append(tuple(scan.column(f.name) for f in scan.schema))
        for keys in tried:
            scans = push(node, keys) if keys and all(key.columns for key in keys) else None
            if scans is not None:
                return way_of(node, scans, keys)
        return None

    def _logical(self, scan: Scan, spread: Spread) -> tuple[Scalar, ...] | None:
        """A spread over stored columns as keys over a scan's columns, if these show them."""
        stored = {self._stored(scan.relation, f.name): scan.column(f"{scan.alias}.{f.name}") for f in scan.fields}
        keys = [stored.get(one.name) if isinstance(one, Column) else None for one in spread.keys or ()]
        return tuple(one for one in keys if one is not None) if keys and None not in keys else None

    def _is_consistent(self, way: Way) -> bool:
        """Whether each relation lies in one way, and one of them is not everywhere."""
        found: dict[str, Spread] = {}
        for scan, spread in way.scans.items():
            if found.setdefault(scan.relation, spread) != spread:
                return False
        return any(spread != EVERYWHERE for spread in found.values())

    def _lie(self, way: Way | None, term: Node) -> dict[str, Spread]:
        """How each relation that a term reads lies, over its stored columns."""
        if way is None:
            return dict.fromkeys((scan.relation for scan in scans_of(term)), ONE_PLACE)
        return {scan.relation: self._physical(scan.relation, spread) for scan, spread in way.scans.items()}

    def _stored(self, relation: str, text: str) -> str:
        grouped = self._grouped.get(relation)
        return grouped.repeats.get(text, text) if grouped is not None else text

    def _physical(self, relation: str, spread: Spread) -> Spread:
        if not spread.keys:
            return spread
        names = {text: Column(self._stored(relation, text), of) for key in spread.keys for text, of in _columns(key)}
        return Spread(tuple(substitute(key, names) for key in spread.keys))

    def _keys_of(self, one: Map) -> tuple[str, ...]:
        """The stored columns of which some may say where a row of a map lies: all that is equal in rows that meet."""
        if one.keys is not None:
            return tuple(key_column(i) for i in range(len(one.keys)))
        if one.present is not None:
            return tuple(text for text, _ in key_columns(one.present.sums))
        return tuple(text for text, _ in one.sums.keys) if one.sums is not None else tuple(f.name for f in one.fields)

    def _recomputes(self, name: str) -> bool:
        return self._stages[name].recompute

    def _sources_by_key(self, name: str) -> tuple[tuple[int, ...] | None, dict[str, Spread]]:
        """For a map that is evaluated by key: which keys its rows lie by, and how what it reads lies then."""
        if name in self._divided:
            found = self._divided[name].sources
            return None, {other: self._physical(other, spread) for other, spread in found.items()}
        one = self._maps[name]
        if self._recomputes(name) or one.keys is None:
            read = scans_of(one.definition) if self._recomputes(name) else ()
            return None, dict.fromkeys((scan.relation for scan in read), ONE_PLACE)
        scalars = [key for _, key in one.keys]
        for chosen in (tuple(range(len(scalars))), *((i,) for i in range(len(scalars)))):
            keys = tuple(scalars[i] for i in chosen)
            scans = push(one.source, keys) if keys and all(key.columns for key in keys) else None
            if scans is None:
                continue
            way = way_of(one.source, scans, keys)
            if self._is_consistent(way):
                return chosen, self._lie(way, one.source)
        return None, dict.fromkeys((scan.relation for scan in scans_of(one.source)), ONE_PLACE)

    def _best_spread(self, name: str, demanded: list[Spread]) -> Spread:
        """How a map lies: best where what comes to it is made, or as those need it who read it."""
        if name in self._divided:
            return self._divided[name].spread
        if name not in self._maps:
            return self._spread_of_held(name, demanded)
        one = self._maps[name]
        if self._recomputes(name):
            return ONE_PLACE
        if one.keys is not None:
            chosen, _ = self._sources_by_key(name)
            kinds = [key.type for _, key in one.keys]
            return Spread(tuple(Column(key_column(i), kinds[i]) for i in chosen)) if chosen else ONE_PLACE
        names = self._keys_of(one)
        if not names:
            return ONE_PLACE
        types = dict(stored_columns(one))
        made = [self._shown(trigger) for trigger in self._triggers if trigger.target.name == name]
        options = [spread for spread in made if spread is not None] + demanded
        valid = [
            spread
            for spread in options
            if spread.keys and all(isinstance(key, Column) and key.name in names for key in spread.keys)
        ]
        if valid:
            return max(valid, key=lambda spread: (valid.count(spread), spread in made))
        return Spread(tuple(Column(text, types[text]) for text in names))

    def _spread_of_held(self, name: str, demanded: list[Spread]) -> Spread:
        """How a synchronised relation lies: as joins need it, or so that groups over it need not be sent on."""
        relation, wanted = self._catalog.find(name), list(demanded)
        assert relation is not None and relation.of is not None
        for trigger in self._triggers:
            node, outputs = _result(trigger)
            scans = scans_of(node)
            given, names = dict(outputs), self._keys_of(trigger.target)
            keys = tuple(given[text] for text in names if text in given and given[text].columns)
            if [one.relation for one in scans] != [name] or not keys or len(keys) != len(names):
                continue
            found = push(node, keys)
            wanted += [self._physical(name, spread) for spread in (found or {}).values()]
        return spread_of(relation, self._catalog.find(relation.of), wanted)

    def _shown(self, trigger: Trigger) -> Spread | None:
        """The stored columns of its target by which a statement's result lies where it was made."""
        way = self._ways.get(id(trigger))
        if way is None or not way.keys:
            return None
        _, outputs = _result(trigger)
        names = way.shown_by(outputs)
        if names is None:
            return None
        given = dict(outputs)
        return Spread(tuple(Column(text, given[text].type) for text in names))

    # -- where things are done -----------------------------------------------------------------------------------------

    def _action(self, trigger: Trigger) -> Action:
        term, on = trigger.statement.term, trigger.statement.on
        way = self._ways[id(trigger)]
        spreads = self._lie(way, term)
        stores: set[str] = set()
        fresh = {on} - {CLOCK}
        for scan in scans_of(term):
            if scan.version is Version.DELTA:
                continue
            stores.add(scan.relation)
            if self._order[scan.relation] < self._order[on]:
                fresh.add(scan.relation)
        shown = self._shown(trigger) if way is not None else ONE_PLACE
        return Action(
            self._order[on], trigger, trigger.target.name, spreads, frozenset(fresh), frozenset(stores), shown
        )

    def _settle(self, stage: Stage) -> None:
        """Put what settles a map where its own rows lie."""
        name = stage.name
        if stage.synchronised is not None:
            source, waiting, spread = stage.synchronised.source, waiting_of(name), self._spreads[name]
            lies = {source: self._physical(source, spread), waiting: spread, name: spread}
            held = Action(self._order[name], None, name, lies, frozenset({source}), frozenset({waiting}))
            self._homes[name] = self._put(held, 1)
            return
        one, spread = self._maps.get(name), self._spreads[name]
        _, sources = self._sources_by_key(name)
        own = one is None or one.present is not None or one.keys is not None or stage.recompute
        stores = frozenset(sources) | ({name} if own else set())
        action = Action(self._order[name], None, name, {**sources, name: spread}, frozenset(sources), stores)
        coming = [
            (room.address, each.shown == spread)
            for room in self._rooms.values()
            for each in room.actions
            if each.trigger is not None and each.target == name
        ]
        last = max((address[0] for address, _ in coming), default=0)
        at_last = {address for address, _ in coming if address[0] == last}
        if len(at_last) == 1 and all(lies for address, lies in coming if address in at_last):
            [address] = at_last
            self._homes[name] = self._put(action, last, address)
        else:
            self._homes[name] = self._put(action, last + 1)

    def _place(self, action: Action) -> None:
        self._put(action, 1)

    def _put(self, action: Action, least: int, wanted: tuple[int, int] | None = None) -> tuple[int, int]:
        """Put an action into the first room that it can be done in; returns its address.

        Args:
            action: what to do.
            least: the level to begin with.
            wanted: the room it should be in, if it can be.
        """
        level = max([least, *(self._there(name, action.spreads[name]) for name in action.fresh)])
        while True:
            bound = {
                self._homes[name]
                for name in action.fresh
                if name in self._homes and self._homes[name][0] == level
            }  # fmt: skip
            if wanted is not None and wanted[0] == level:
                bound.add(wanted)
            if len(bound) <= 1:
                rooms = [self._rooms[one] for one in bound] or [
                    room for room in self._rooms.values() if room.level == level
                ]
                for room in rooms:
                    if room.fits(action.spreads):
                        room.take(action)
                        return room.address
                if not bound:
                    room = Room(level, sum(1 for number, _ in self._rooms if number == level))
                    self._rooms[room.address] = room
                    room.take(action)
                    return room.address
            level += 1

    def _there(self, name: str, spread: Spread) -> int:
        """The first level at which a relation's change can be had, spread in a way."""
        if name not in self._homes:
            return 1
        level = self._homes[name][0]
        return level if self._spreads[name] == spread else level + 1


def _result(trigger: Trigger) -> tuple[Node, tuple[Named, ...]]:
    """What a statement computes its result from, and the stored columns of its target that may say where that lies."""
    term, target = trigger.statement.term, trigger.target
    if isinstance(trigger.statement, Touch):
        assert isinstance(term, Project)
        return term.input, tuple((key_column(i), key) for i, (_, key) in enumerate(term.columns))
    if isinstance(term, Sum):
        if target.sums is not None:
            return term.input, term.keys
        return term.input, tuple((key_column(i), key) for i, (_, key) in enumerate(term.keys))
    return term, tuple((f.name, Column(f.name, f.type)) for f in term.schema)


def _columns(key: Scalar) -> Iterable[tuple[str, t.Type]]:
    return [(part.name, part.type) for part in key.walk() if isinstance(part, Column)]


def pending_columns(one: Map) -> Columns:
    """The columns of what is pending for a map, or of its change where it takes that as it comes."""
    if one.sums is not None:
        return (*stored_columns(one), _MULTIPLICITY)
    if one.keys is not None:
        return (*((key_column(i), key.type) for i, (_, key) in enumerate(one.keys)), _MULTIPLICITY)
    if one.present is not None:
        return key_columns(one.present.sums) + payload_columns(one.present.sums)
    return (*row_columns(one.fields), _MULTIPLICITY)


_MULTIPLICITY = (MULTIPLICITY, t.BIGINT)
