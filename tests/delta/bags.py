"""Old contents, new contents and changes of relations, for holding a delta against what it should be."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal

from headwater import types as t
from headwater.algebra.during import at
from headwater.algebra.evaluate import Bag, Row, evaluate, evaluate_map
from headwater.algebra.nodes import Node, Scan, Sum, Version
from headwater.delta.interpret import plus
from tests.algebra.random_trees import Schemas, random_bag, random_row


class States:
    """What each version of a relation holds while one relation changes."""

    def __init__(self, old: Mapping[str, Bag], change: Mapping[str, Bag]) -> None:
        self.old = dict(old)
        self.change = dict(change)
        self.new = {name: plus(bag, change.get(name, {})) for name, bag in old.items()}

    def read(self, scan: Scan) -> Bag:
        which = {Version.STORED: self.old, Version.DELTA: self.change, Version.NEW: self.new}[scan.version]
        return which.get(scan.relation, Counter())

    def read_new(self, scan: Scan) -> Bag:
        assert scan.version is Version.STORED
        return self.new[scan.relation]


def random_states(rng: random.Random, schemas: Schemas, changing: Iterable[str]) -> States:
    """Contents, and for some relations a change: rows that leave, rows that come, rows that come once more."""
    old = {name: random_bag(rng, fields) for name, fields in schemas.items()}
    change: dict[str, Bag] = {}
    for name in changing:
        delta: Bag = Counter()
        for row, n in old[name].items():
            delta[row] = rng.choice((-n, -1, 0, 1))
        for _ in range(rng.randint(0, 3)):
            delta[random_row(rng, schemas[name])] += 1
        change[name] = Counter({row: n for row, n in delta.items() if n})
    return States(old, change)


#: What the clock reads.
MOMENT = dt.datetime(2000, 1, 1)
Measured = Mapping[Row, object]


def measure(node: Node, read: Callable[[Scan], Bag]) -> dict[Row, tuple[object, ...]]:
    """Rows with their multiplicity, or a map's keys with their payload: things that add up."""
    node = at(node, MOMENT)
    if isinstance(node, Sum):
        return dict(evaluate_map(node, read))
    return {row: (n,) for row, n in evaluate(node, read).items()}


def added(parts: Iterable[Mapping[Row, tuple[object, ...]]]) -> dict[Row, tuple[object, ...]]:
    """All parts added up; what cancels is left out."""
    out: dict[Row, tuple[object, ...]] = {}
    for part in parts:
        for row, payload in part.items():
            before = out.get(row, (0,) * len(payload))
            out[row] = tuple(_plus(a, b) for a, b in zip(before, payload, strict=True))
    return {row: payload for row, payload in out.items() if any(payload)}


def _plus(a: object, b: object) -> object:
    assert isinstance(a, int | float | Decimal)
    assert isinstance(b, int | float | Decimal)
    return a + b  # type: ignore[operator]


def schemas_of(node: Node) -> dict[str, t.Schema]:
    return {one.relation: one.fields for one in node.walk() if isinstance(one, Scan)}
