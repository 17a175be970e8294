"""What tasks are told of parts: with the plan, what builds them, and with the order of an epoch, which are due.

How far each view of parts will be at the end of an epoch is known at home before anything is built: it follows from
watermarks. So all partitions build the same parts, those without rows, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headwater.emit.layout import Grouped
from headwater.engine.part_book import Book, Frontier
from headwater.engine.parts import PartRound, PartStatements
from headwater.engine.schedule import Stage
from headwater.plan.parts import PartProgram
from headwater.store.catalog import Catalog, Relation

#: Of so many parts it is not looked whether they may have rows.
_MANY = 1000


@dataclass(frozen=True, repr=False)
class PartStep:
    """What builds the parts of a view in a room.

    Attributes:
        statements: what it runs.
        relations: the view, and those that it reads.
        grouped: those that are stored by group.
    """

    statements: PartStatements
    relations: Mapping[str, Relation]
    grouped: Mapping[str, Grouped]

    @property
    def view(self) -> Relation:
        return self.statements.relation

    @property
    def program(self) -> PartProgram:
        assert self.view.parts is not None
        return self.view.parts

    @property
    def parted(self) -> set[str]:
        """The relations with parts among those that it needs."""
        return {name for name, one in self.relations.items() if one.length is not None}

    def find(self, name: str) -> Relation | None:
        return self.relations.get(name)

    def __repr__(self) -> str:
        """What tells it from others, for the identity of a plan."""
        lengths = {name: one.length for name, one in sorted(self.relations.items())}
        return f"parts({self.program.to_dict()}, {lengths}, {self.statements.emitter.careful})"


def part_step(stage: Stage, catalog: Catalog) -> PartStep | None:
    """What builds the parts of a view, if a stage is about one."""
    if stage.parts is None:
        return None
    view = stage.parts.relation
    assert view.parts is not None
    found = {name: catalog.find(name) for name in view.parts.inputs}
    relations = {name: one for name, one in found.items() if one is not None}
    return PartStep(PartStatements(view, stage.parts.emitter), {**relations, view.name: view}, dict(catalog.grouped))


@dataclass(frozen=True)
class PartOrder:
    """Parts in an epoch.

    Attributes:
        views: how far each view that is built in tasks was before the epoch, and how far it will be.
        building: those for which there is something to build, whether rows come to a partition or not.
        frontiers: how far all relations with parts will be.
        lenient: what cannot be done suspends a view; else the epoch is refused.
    """

    views: Mapping[str, tuple[Frontier, Frontier]] = field(default_factory=dict)
    building: frozenset[str] = frozenset()
    frontiers: Mapping[str, Frontier] = field(default_factory=dict)
    lenient: bool = False

    def floor(self, relation: str) -> int | None:
        """The oldest part that is kept of a relation, if others were deleted."""
        found = self.frontiers.get(relation)
        return found.kept if found is not None else None


def part_order(stages: Iterable[Stage], parts: PartRound) -> PartOrder:
    """What tasks are to build of the views of some stages; notes that it will be built."""
    views: dict[str, tuple[Frontier, Frontier]] = {}
    building: set[str] = set()
    for stage in stages:
        assert stage.parts is not None
        relation = stage.parts.relation
        before, after = parts.book.frontier(stage.name), parts.foreseen(relation)
        if after is None:
            continue
        views[stage.name] = before, after
        parts.book.frontiers[stage.name] = after
        if before != after and _has_work(relation, before, after, parts.book, building):
            building.add(stage.name)
    return PartOrder(views, frozenset(building), dict(parts.book.frontiers), parts.lenient)


def _has_work(view: Relation, before: Frontier, after: Frontier, book: Book, building: set[str]) -> bool:
    """Whether some of a view's new parts may have rows: a night without data takes no tasks."""
    program = view.parts
    assert program is not None and after.first is not None and after.next is not None
    if before.first is not None and after.first != before.first:
        return True
    begin = before.next if before.next is not None else after.first
    for query, parts in (
        (program.initialize, range(begin, min(after.first + 1, after.next))),
        (program.update, range(max(begin, after.first + 1), after.next)),
    ):
        if not parts:
            continue
        if len(parts) > _MANY or not query.is_empty_over_nothing:
            return True
        for one in query.references:
            read = range(min(map(one.first.at, parts)), max(map(one.last.at, parts)) + 1)
            if one.relation in building or book.has_rows(one.relation, read):
                return True
    return False
