"""Plans that serve all texts of a shape: those that differ only in constants that were left open.

A shape that is asked a second time is planned once more with its constants open. The plan is kept if it is, with the
constants put back, the very plan that was made with them, and if each constant stands beside what it is compared with:
docs/design/reading.md has the argument. Whatever does not fit is planned as if nobody had asked before.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from headwater import types as t
from headwater.algebra.nodes import IllFormed, Node, scalars, transform
from headwater.algebra.scalars import Call, Given, Literal, Scalar
from headwater.algebra.simplify.scalars_of import map_scalars
from headwater.bound import Bound, Key
from headwater.emit.scalars import given_name
from headwater.errors import HeadwaterError
from headwater.sql.lifting import Lifting, Open, Shape, lift, literal_of, put_back
from headwater.store.catalog import Catalog

#: So many shapes are known; the one that was not asked for longest goes first.
_MOST_SHAPES = 500
#: So many plans are kept, or tried, for a shape: its other constants, and the types of those that are open, differ.
_MOST_PLANS = 20
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")

#: Literals that are not open as they are written, and the types of those that are.
_Variant = tuple[tuple[str, ...], tuple[t.Type, ...]]


@dataclass(frozen=True)
class _Plan:
    bound: Bound
    opened: Mapping[int, Open]


@dataclass
class _Known:
    """What is known of a shape.

    Attributes:
        open: the literals that are, and whether a minus is before each; None before a plan was made.
        asked: by how many texts.
        tried: for how many a plan with open constants was made.
        plans: those that may be used.
    """

    open: Mapping[int, bool] | None = None
    asked: int = 0
    tried: int = 0
    plans: dict[_Variant, _Plan] = field(default_factory=dict)


class Shapes:
    """The shapes that were asked for, for one catalogue. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._catalog: Catalog | None = None
        self._known: OrderedDict[tuple[str, str | None, bool], _Known] = OrderedDict()
        self.hits = 0

    def find(self, key: Key, catalog: Catalog) -> Bound | None:
        """A plan for a text that was not seen before, with its constants."""
        if key.as_of is not None or self._catalog is not catalog:
            return None
        shape = lift(key.text)
        known = None if shape is None else self._known.get((shape.text, key.engine, key.views))
        if shape is None or known is None or known.open is None:
            return None
        try:
            literals, variant = _told(shape, known.open)
        except ValueError:
            return None
        plan = known.plans.get(variant)
        if plan is None:
            return None
        given: dict[str, object] = {}
        for number, there in plan.opened.items():
            value = there.value(literals[number])
            if value is None:
                return None
            given[given_name(number)] = value.value
        self.hits += 1
        return replace(plan.bound, query=plan.bound.query.with_given(given))

    def learn(self, key: Key, bound: Bound, bind: Callable[[Shape], tuple[Bound, Lifting]]) -> None:
        """Make a plan with open constants for a text that was planned, if its shape was asked for before.

        Args:
            key: what it is known by.
            bound: its plan.
            bind: makes one with open constants.
        """
        shape = lift(key.text) if key.as_of is None else None
        if shape is None or bound.looked or bound.query.past:
            return
        known = self._asked((shape.text, key.engine, key.views), bound.query.catalog)
        if known.asked < 2 or known.tried >= _MOST_PLANS:
            return
        known.tried += 1
        try:
            opened, lifting = bind(shape)
            found = _checked(bound, opened, lifting, shape)
        except (HeadwaterError, IllFormed):
            return
        if found is None:
            return
        signs = {number: lifting.marked[number] for number in found.opened}
        with self._lock:
            if known.open is None:
                known.open = signs
            if known.open == signs:
                known.plans[_told(shape, signs)[1]] = found

    def _asked(self, shape: tuple[str, str | None, bool], catalog: Catalog) -> _Known:
        with self._lock:
            if self._catalog is not catalog:
                self._known.clear()
                self._catalog = catalog
            known = self._known.setdefault(shape, _Known())
            self._known.move_to_end(shape)
            known.asked += 1
            if len(self._known) > _MOST_SHAPES:
                self._known.popitem(last=False)
            return known


def _told(shape: Shape, opened: Mapping[int, bool]) -> tuple[dict[int, Literal], _Variant]:
    """The literals that are open, and what says which plan they need."""
    literals = {number: literal_of(shape.literals[number], minus) for number, minus in opened.items()}
    fixed = tuple(text for number, text in enumerate(shape.literals) if number not in opened)
    return literals, (fixed, tuple(one.type for one in literals.values()))


def _checked(bound: Bound, opened: Bound, lifting: Lifting, shape: Shape) -> _Plan | None:
    """A plan with open constants, if it is the plan that was made without."""
    if not lifting.is_clean or not lifting.opened or opened.looked:
        return None
    places = {number: there[0] for number, there in lifting.opened.items()}
    values: dict[int, Literal] = {}
    for number, there in places.items():
        value = there.value(literal_of(shape.literals[number], lifting.marked[number]))
        if value is None:
            return None
        values[number] = value
    answer, without = opened.query.answer, bound.query.answer
    if not _stand_beside(answer.node, set(places)):
        return None
    restored = transform(answer.node, lambda one: map_scalars(one, lambda scalar: put_back(scalar, values)))
    if replace(answer, node=restored) != without or replace(opened, query=bound.query) != bound:
        return None
    return _Plan(opened, places)


def _stand_beside(node: Node, numbers: set[int]) -> bool:
    """Whether each constant is there, and wherever it is, something is compared with it."""
    found: Counter[int] = Counter()
    compared: Counter[int] = Counter()
    for part in node.walk():
        for scalar in scalars(part):
            for one in scalar.walk():
                if isinstance(one, Given):
                    found[one.number] += 1
                elif isinstance(one, Call) and one.function in _COMPARISONS:
                    compared.update(_given_beside(one))
    return found == compared and found.keys() == numbers


def _given_beside(comparison: Call) -> list[int]:
    sides: tuple[Scalar, ...] = comparison.args
    given = [one.number for one in sides if isinstance(one, Given)]
    return given if len(given) == 1 else []
