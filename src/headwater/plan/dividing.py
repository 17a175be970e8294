"""Whether a key divides a view of parts: whether each part can be built partition by partition.

A part may be built in each partition on its own if rows that meet in it, or are added up in it, lie in one partition
together, and if what it holds shows the key: then rows of the view itself lie by it, and later parts find them there.
Unlike the terms of other programs, the query of a part is evaluated whole, so there are groups, outer joins and window
functions in it. PART is no key: parts are built from parts before them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from headwater.algebra.joins import equates
from headwater.algebra.nodes import (
    Explode,
    Filter,
    Join,
    Keep,
    Negate,
    Node,
    Outer,
    Over,
    Present,
    Project,
    Repeat,
    Scan,
    Union,
)
from headwater.algebra.parts import PART
from headwater.algebra.scalars import Call, Column, Scalar, conjuncts, substitute
from headwater.plan.parts import PartProgram
from headwater.plan.spread import EVERYWHERE, Rows, Spread, push, scans_of

Keys = tuple[Scalar, ...]
Found = Mapping[Scan, Spread]


@dataclass(frozen=True)
class Division:
    """A way to divide a view of parts.

    Attributes:
        spread: by which of its own columns its rows lie.
        sources: how each other relation that it reads lies.
    """

    spread: Spread
    sources: Mapping[str, Spread]


def divisions(program: PartProgram, used: Mapping[str, Sequence[Spread]], rows: Rows) -> list[Division]:
    """The ways to divide a view of parts, the best one first.

    That is the one with the fewest rows everywhere, and of these one for which relations lie as they do anyway.

    Args:
        program: of the view.
        used: how relations lie that are read by others, or made in tasks.
        rows: how many rows a relation has.
    """
    outputs = [Column(f.name, f.type) for f in program.update.query.schema if f.name != PART]
    each = [(one, _divided(program, (one,))) for one in outputs]
    alone = {one: division for one, division in each if division is not None}
    tried: dict[Keys, None] = {}
    for keys in _as_others(alone, used):
        tried[keys] = None
    tried[tuple(alone)] = None
    for one in alone:
        tried[one,] = None
    found = [division for keys in tried if keys and (division := _divided(program, keys)) is not None]

    def cost(one: Division) -> tuple[float, int]:
        everywhere = sum(rows(name) for name, spread in one.sources.items() if spread == EVERYWHERE)
        return everywhere, sum(spread not in used.get(name, ()) for name, spread in one.sources.items())

    return sorted(found, key=cost)


def _as_others(alone: Mapping[Column, Division], used: Mapping[str, Sequence[Spread]]) -> Iterator[Keys]:
    """Keys for which a source would lie as it does anyway."""
    for name in dict.fromkeys(name for one in alone.values() for name in one.sources):
        for spread in used.get(name, ()):
            keys = [
                next((one for one, found in alone.items() if found.sources[name] == Spread((key,))), None)
                for key in spread.keys or ()
            ]
            if keys and None not in keys:
                yield tuple(one for one in keys if one is not None)


def _divided(program: PartProgram, keys: Keys) -> Division | None:
    """The way in which a view's rows lie by some of its columns, if all its parts can be built so."""
    spread = Spread(keys)
    found: dict[str, Spread] = {}
    for query in (program.initialize.query, program.update.query):
        scans = lie(query, keys)
        if scans is None:
            return None
        for scan, one in scans.items():
            if found.setdefault(scan.relation, one) != one:
                return None
    if found.pop(program.view, spread) != spread or all(one == EVERYWHERE for one in found.values()):
        return None
    return Division(spread, found)


def lie(node: Node, keys: Keys) -> Found | None:
    """How scans must be spread so that a tree can be evaluated in each partition and its rows lie by keys.

    None if there is no such way. The keys are over the tree's columns.
    """
    match node:
        case Scan():
            parts = f"{node.alias}.{PART}"
            return None if any(parts in key.columns for key in keys) else push(node, keys)
        case Filter(input=source) | Negate(input=source) | Keep(input=source) | Repeat(input=source):
            return lie(source, keys)
        case Explode(input=source, names=names):
            return None if any(key.columns & set(names) for key in keys) else lie(source, keys)
        case Project(input=source, columns=columns):
            return lie(source, _through(keys, dict(columns)))
        case Present(outputs=outputs):
            groups = dict(node.sums.keys)
            inner = _through(keys, dict(outputs))
            if not all(key.columns and key.columns <= groups.keys() for key in inner):
                return None
            return lie(node.sums.input, _through(inner, groups))
        case Over(input=source, keys=groups, outputs=outputs):
            inner = _through(keys, dict(outputs))
            told = [key for _, key in groups]
            return lie(source, inner) if all(key in told for key in inner) else None
        case Union(inputs=inputs):
            return _together(lie(one, keys) for one in inputs)
        case Join(left=left, right=right, condition=condition):
            return _joined(left, right, condition, keys)
        case Outer(left=left, right=right, condition=condition, keeps_left=keeps_left, keeps_right=keeps_right):
            if keeps_left and keeps_right:
                return _full(left, right, condition, keys)
            kept = left if keeps_left else right
            if not all(key.columns <= set(kept.column_names) for key in keys):
                return None  # a row that meets none has NULL in its place
            return _joined(left, right, condition, keys, kept)
    return None


def _through(keys: Keys, columns: Mapping[str, Scalar]) -> Keys:
    return tuple(substitute(key, columns) for key in keys)


def _together(found: Iterable[Found | None]) -> Found | None:
    """Several ways as one, if a scan lies in the same way in all of them."""
    out: dict[Scan, Spread] = {}
    for one in found:
        if one is None:
            return None
        for scan, spread in one.items():
            if out.setdefault(scan, spread) != spread:
                return None
    return out


def _pairs(condition: Scalar) -> list[tuple[Scalar, Scalar]]:
    pairs = [pair for one in conjuncts(condition) if (pair := equates(one)) is not None]
    return [pair for pair in pairs if pair[0].type == pair[1].type]


def _joined(left: Node, right: Node, condition: Scalar, keys: Keys, kept: Node | None = None) -> Found | None:
    """A side that the keys do not reach lies everywhere, unless its rows come though they meet none."""
    pairs = _pairs(condition)
    equal = dict(pairs) | {b: a for a, b in pairs}
    sides: list[Found] = []
    reached = 0
    for side in (left, right):
        names = set(side.column_names)
        mine = tuple(key if key.columns <= names else equal.get(key) for key in keys)
        own = tuple(one for one in mine if one is not None and one.columns and one.columns <= names)
        found = lie(side, own) if len(own) == len(keys) else None
        if found is None and side is kept:
            return None
        reached += found is not None
        sides.append(found if found is not None else dict.fromkeys(scans_of(side), EVERYWHERE))
    return _together(sides) if reached else None


def _full(left: Node, right: Node, condition: Scalar, keys: Keys) -> Found | None:
    """A full outer join lies by what it equates: `coalesce(a, b)`, of which a row that meets none has one."""
    pairs = _pairs(condition)
    names = set(left.column_names)
    sides: list[tuple[Scalar, Scalar]] = []
    for key in keys:
        match key:
            case Call(function="coalesce", args=(a, b)) if (a, b) in pairs or (b, a) in pairs:
                sides.append((a, b) if a.columns and a.columns <= names else (b, a))
            case _:
                return None
    return _together((lie(left, tuple(a for a, _ in sides)), lie(right, tuple(b for _, b in sides))))
