"""How rows are spread over partitions, so that a statement can be run in each of them and gives the same in sum.

The terms of a program's statements are multilinear: every row of the result comes from one row of each scan. So a term
may be evaluated partition by partition if rows that meet lie in one partition together, and in only one. They do if all
scans are spread by what a join equates, or if the rows of all but one scan lie everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from headwater.algebra.functions import may_raise
from headwater.algebra.joins import FlatJoin, equates, flatten
from headwater.algebra.nodes import (
    During,
    Explode,
    Filter,
    Join,
    Keep,
    Named,
    Negate,
    Node,
    Project,
    Repeat,
    Scan,
    Union,
    Values,
)
from headwater.algebra.scalars import Column, Scalar, conjuncts, substitute
from headwater.algebra.scalars import transform as transform_scalar


@dataclass(frozen=True)
class Spread:
    """By what a relation's rows are spread: scalars over its columns, by whose hash a row finds its partition.

    Attributes:
        keys: none at all puts all rows into one partition; None puts every row into every partition.
    """

    keys: tuple[Scalar, ...] | None

    def __str__(self) -> str:
        if self.keys is None:
            return "everywhere"
        return "by " + ", ".join(map(str, self.keys)) if self.keys else "in one place"


#: All rows in one partition, and every row in each.
ONE_PLACE, EVERYWHERE = Spread(()), Spread(None)

#: How many rows a relation is expected to have.
Rows = Callable[[str], float]


@dataclass(frozen=True)
class Way:
    """A way to spread what a tree scans.

    Attributes:
        node: the tree.
        scans: how each scan of it is spread.
        keys: for each part of the key, the scalars over the tree's leaves that are equal to it.
        cost: how many rows lie everywhere for it.
    """

    node: Node
    scans: Mapping[Scan, Spread]
    keys: tuple[frozenset[Scalar], ...]
    cost: float

    def shown_by(self, outputs: tuple[Named, ...]) -> tuple[str, ...] | None:
        """The names under which a result shows what its rows lie by; None if it does not show all of that.

        Args:
            outputs: the result's columns, over those of the tree.
        """
        flat = flatten(self.node)
        made = [(text, flat.through(scalar)) for text, scalar in outputs]
        names = [next((text for text, scalar in made if scalar in part), None) for part in self.keys]
        return tuple(text for text in names if text is not None) if None not in names else None


def scans_of(node: Node) -> tuple[Scan, ...]:
    """All scans of a tree, each once."""
    return tuple(dict.fromkeys(one for one in node.walk() if isinstance(one, Scan)))


def push(node: Node, keys: tuple[Scalar, ...]) -> Mapping[Scan, Spread] | None:
    """How scans are to be spread so that a tree's rows are spread by keys; None if some cannot be.

    What may fail is no key: rows are sent where they belong before conditions keep some of them away from it.
    Scans that a key does not reach lie everywhere, as long as another one on the other side of the join does not.
    """
    match node:
        case Scan():
            prefix, names = f"{node.alias}.", set(node.column_names)
            if not all(key.columns and key.columns <= names and not may_raise(key) for key in keys):
                return None
            return {node: Spread(tuple(_unaliased(key, prefix) for key in keys))}
        case Values():
            return {}
        case Filter(input=source) | During(input=source) | Negate(input=source) | Keep(input=source):
            return push(source, keys)
        case Repeat(input=source):
            return push(source, keys)
        case Explode(input=source, names=names):
            if any(key.columns & set(names) for key in keys):
                return None
            return push(source, keys)
        case Project(input=source, columns=columns):
            return push(source, tuple(substitute(key, dict(columns)) for key in keys))
        case Union(inputs=inputs):
            found: dict[Scan, Spread] = {}
            for one in inputs:
                below = push(one, keys)
                if below is None or any(found.get(scan, spread) != spread for scan, spread in below.items()):
                    return None
                found |= below
            return found
        case Join(left=left, right=right, condition=condition):
            return _push_into_join(left, right, condition, keys)
    return None


def _push_into_join(
    left: Node, right: Node, condition: Scalar, keys: tuple[Scalar, ...]
) -> Mapping[Scan, Spread] | None:
    pairs = [pair for one in conjuncts(condition) if (pair := equates(one)) is not None]
    pairs = [pair for pair in pairs if pair[0].type == pair[1].type]
    equal = dict(pairs) | {b: a for a, b in pairs}
    sides: list[Mapping[Scan, Spread] | None] = []
    for side in (left, right):
        names = set(side.column_names)
        mine = tuple(key if key.columns <= names else equal.get(key) for key in keys)
        reached = all(one is not None and one.columns and one.columns <= names for one in mine)
        sides.append(push(side, tuple(one for one in mine if one is not None)) if reached else None)
    first, second = sides
    if first is None and second is None:
        return None
    found = dict(first if first is not None else _everywhere(left))
    for scan, spread in (second if second is not None else _everywhere(right)).items():
        if found.get(scan, spread) != spread:
            return None
        found[scan] = spread
    return found


def _everywhere(node: Node) -> Mapping[Scan, Spread]:
    return dict.fromkeys(scans_of(node), EVERYWHERE)


def ways(node: Node, rows: Rows, wanted: tuple[tuple[Scalar, ...], ...] = ()) -> list[Way]:
    """Ways to spread the scans of a tree, the one with the fewest rows everywhere first.

    Args:
        node: without a sum on top.
        rows: how many rows a relation has.
        wanted: keys over the tree's columns by which it would be good to have its rows spread.
    """
    found: list[Way] = []
    for keys in (*wanted, *_join_keys(node)):
        scans = push(node, keys)
        if scans is not None and scans:
            found.append(way_of(node, scans, keys, rows))
    for scan in scans_of(node):  # all but one lie everywhere
        if len(scans_of(node)) > 1 and not any(isinstance(one, Union) for one in node.walk()):
            scans = {**_everywhere(node), scan: Spread(tuple(Column(f.name, f.type) for f in scan.fields))}
            found.append(way_of(node, scans, tuple(scan.column(f.name) for f in scan.schema), rows))
    return sorted(found, key=lambda way: way.cost)


def way_of(node: Node, scans: Mapping[Scan, Spread], keys: tuple[Scalar, ...], rows: Rows = lambda _: 0.0) -> Way:
    """The way in which a tree's scans are spread by keys, which are over its columns, or over those of its leaves."""
    flat = flatten(node)
    equal = _equalities(flat)
    cost = sum(rows(scan.relation) for scan, spread in scans.items() if spread == EVERYWHERE)
    leaves = [flat.through(key) for key in keys]
    return Way(node, scans, tuple(equal.get(key, frozenset()) | {key} for key in leaves), cost)


def _join_keys(node: Node) -> Iterator[tuple[Scalar, ...]]:
    """What each join of a tree equates, over the columns of its left side."""
    for one in node.walk():
        if isinstance(one, Join):
            names = set(one.left.column_names)
            pairs = [pair for part in conjuncts(one.condition) if (pair := equates(part)) is not None]
            pairs = [(a, b) if a.columns <= names else (b, a) for a, b in pairs if a.type == b.type]
            mine = [a for a, b in pairs if a.columns and b.columns and a.columns <= names and not b.columns & names]
            if mine:
                yield tuple(dict.fromkeys(mine))


def _equalities(flat: FlatJoin) -> Mapping[Scalar, frozenset[Scalar]]:
    """For each scalar that a condition equates with others: all that are equal to it."""
    classes: list[set[Scalar]] = []
    for part in flat.conditions:
        pair = equates(part)
        if pair is None or pair[0].type != pair[1].type:
            continue
        mine = [each for each in classes if each & set(pair)]
        classes = [each for each in classes if each not in mine]
        classes.append(set(pair).union(*mine))
    return {scalar: frozenset(each) for each in classes for scalar in each}


def _unaliased(key: Scalar, prefix: str) -> Scalar:
    return transform_scalar(
        key, lambda one: replace(one, name=one.name.removeprefix(prefix)) if isinstance(one, Column) else None
    )
