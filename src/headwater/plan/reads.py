"""What the statements of a program read: which relation, for which map, and how they find the rows.

A statement begins with the change of one relation, so the values of its columns are known. An equality between them
and a column of another relation makes the values of that column known, and so the rows of that relation are found by
this key; from there it goes on. A relation that no equality reaches is read whole. So are the inputs of what is
recomputed, and of what is evaluated without a key.

(Values that are known count as bound in Ahmad et al., "DBToaster", section 4, too.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from headwater.algebra.clock import CLOCK
from headwater.algebra.nodes import Explode, Filter, Join, Node, Project, Scan, Union, Values, Version
from headwater.algebra.scalars import Call, Scalar, conjuncts
from headwater.plan.program import Add, Map, Program, Recompute, Touch


class Flow(Enum):
    """What goes from a relation to a map that is made of it."""

    CHANGES = "changes of"
    BY_KEY = "read by key"
    WHOLE = "read whole"


@dataclass(frozen=True)
class Read:
    """A map follows from the changes of a relation, or looks into what it holds.

    Attributes:
        source: the relation; an input of the program or a map of it.
        target: the map.
        flow: what it takes from the relation.
        key: the columns of the relation that it is looked up by.
        joins: whether a join looks it up, as against the evaluation of touched keys.
    """

    source: str
    target: str
    flow: Flow
    key: tuple[str, ...] = ()
    joins: bool = False


def reads_of(program: Program) -> tuple[Read, ...]:
    """All reads of a program, each once, in the order of its statements."""
    return tuple(dict.fromkeys(read for statement in program.statements for read in _reads(statement, program)))


def _reads(statement: Add | Touch | Recompute, program: Program) -> Iterator[Read]:
    target = program.map(statement.target)
    if isinstance(statement, Recompute):
        for relation in sorted(target.definition.relations):
            yield Read(relation, target.name, Flow.WHOLE)
        return
    yield Read(statement.on, target.name, Flow.CHANGES)
    if statement.on == CLOCK:  # it looks at nothing but its own rows
        return
    for scan, key in _found(statement.term):
        yield Read(scan.relation, target.name, _flow(key), key, joins=bool(key))
    if isinstance(statement, Touch):
        yield from _evaluated(target)


def _evaluated(target: Map) -> Iterator[Read]:
    """What a map reads when its touched keys are evaluated: rows that have them."""
    block = _Block.of(target.source)
    wanted = [origin for _, key in target.keys or () for origin in _origins(key, block.columns)]
    for scan, key in block.reads(wanted):
        yield Read(scan.relation, target.name, _flow(key), key)


def _flow(key: tuple[str, ...]) -> Flow:
    return Flow.BY_KEY if key else Flow.WHOLE


def _found(term: Node) -> Iterator[tuple[Scan, tuple[str, ...]]]:
    """The relations whose contents a term reads, with the columns that they are looked up by."""
    return _Block.of(term).reads(())


#: A column of one of a block's units.
_Origin = tuple[int, str]


_Columns = Mapping[str, frozenset[_Origin]]


@dataclass
class _Block:
    """Relations, constants and unions that are joined, seen through all that treats rows one by one.

    Attributes:
        units: what is joined.
        equalities: between what, in both directions.
        columns: where the values of each column come from.
    """

    units: list[Scan | Values | Union] = field(default_factory=list)
    equalities: list[tuple[frozenset[_Origin], frozenset[_Origin]]] = field(default_factory=list)
    columns: _Columns = field(default_factory=dict)

    @staticmethod
    def of(node: Node) -> _Block:
        block = _Block()
        block.columns = block._add(node)
        return block

    def _add(self, node: Node) -> _Columns:
        """Take a tree in; where the values of its columns come from."""
        if isinstance(node, Scan | Values | Union):
            self.units.append(node)
            return {name: frozenset({(len(self.units) - 1, name)}) for name in node.column_names}
        known: dict[str, frozenset[_Origin]] = {}
        for child in node.children:
            known |= self._add(child)
        match node:
            case Join(condition=condition) | Filter(predicate=condition):
                for part in conjuncts(condition):
                    if isinstance(part, Call) and part.function in ("=", "<=>"):
                        one, other = (_origins(side, known) for side in part.args)
                        self.equalities += [(one, other), (other, one)]
            case Project(columns=columns):
                return {name: _origins(scalar, known) for name, scalar in columns}
            case Explode(source=source, names=names):
                known |= dict.fromkeys(names, _origins(source, known))
        return known

    def reads(self, given: Iterable[_Origin]) -> Iterator[tuple[Scan, tuple[str, ...]]]:
        """The stored relations, with the columns they are looked up by; columns that are `given` are known."""
        keys = self._keys(given)
        for number, unit in enumerate(self.units):
            key = keys.get(number, ())
            match unit:
                case Scan(version=Version.DELTA) | Values():
                    continue
                case Scan():
                    yield unit, tuple(name.removeprefix(f"{unit.alias}.") for name in key)
                case Union(inputs=inputs):
                    for part in inputs:
                        below = _Block.of(part)
                        yield from below.reads([origin for name in key for origin in below.columns.get(name, ())])

    def _keys(self, given: Iterable[_Origin]) -> Mapping[int, tuple[str, ...]]:
        """The columns by which each unit is found, as far as there are any."""
        keys: dict[int, tuple[str, ...]] = {}
        for number, name in given:
            keys[number] = (*keys.get(number, ()), name)
        start = {i for i, unit in enumerate(self.units) if isinstance(unit, Values) or _has_delta(unit)}
        known = start | set(keys)
        while True:
            found: dict[int, dict[str, None]] = {}
            for mine, others in self.equalities:
                owners = {number for number, _ in mine}
                from_known = bool(others) and all(number in known for number, _ in others)
                if len(owners) == 1 and from_known and not owners <= known:
                    found.setdefault(owners.pop(), {}).update(dict.fromkeys(sorted(name for _, name in mine)))
            if not found:
                return keys
            keys |= {number: tuple(names) for number, names in found.items()}
            known |= set(found)


def _origins(scalar: Scalar, columns: _Columns) -> frozenset[_Origin]:
    return frozenset(origin for name in scalar.columns for origin in columns.get(name, ()))


def _has_delta(unit: Node) -> bool:
    return any(isinstance(node, Scan) and node.version is Version.DELTA for node in unit.walk())
