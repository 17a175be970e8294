"""Ad hoc queries that views often answer: trees derived from those of views, by asking for a little more or less.

Each is answered from what it names, and from whatever view can answer; the rows must be the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from headwater import types as t
from headwater.algebra.compose import distinct
from headwater.algebra.folds import Pick
from headwater.algebra.nodes import COUNT, Filter, Join, Named, Node, Present, Project, Scan, Sum, rebuild
from headwater.algebra.scalars import TRUE, Column, Literal, Scalar, call, cast, conjunction, conjuncts
from headwater.algebra.simplify import simplify

from .values import COLUMN_TYPES, draw

_Change = Callable[[Node, random.Random], Node]


def derived(tree: Node, rng: random.Random, others: list[Scan]) -> Node:
    """A query that is near a view's.

    Args:
        tree: of the view.
        rng: what to draw from.
        others: relations that can be joined.
    """
    for _ in range(rng.choice([0, 1, 1, 2, 2, 3])):
        tree = rng.choices(_CHANGES, _WEIGHTS)[0](tree, rng)
    if others and rng.random() < 0.15:
        tree = _joined(tree, rng, rng.choice(others))
    if rng.random() < 0.25:
        tree = _regrouped(tree, rng)
    elif rng.random() < 0.1 and all(t.is_groupable(f.type) for f in tree.schema):
        tree = distinct(tree)
    return simplify(tree)


def condition(fields: t.Schema, rng: random.Random) -> Scalar | None:
    """A condition on a column that never fails."""
    plain = [f for f in fields if f.type in COLUMN_TYPES and t.is_orderable(f.type)]
    if not plain:
        return None
    field = rng.choice(plain)
    column = Column(field.name, field.type)

    def value() -> Literal:
        return Literal(draw(rng, field.type, 0.0), field.type)

    match rng.randrange(6):
        case 0:
            return call("is not null", column)
        case 1:
            return call("in", column, *(value() for _ in range(rng.randint(1, 3))))
        case 2:
            return call("or", call("<", column, value()), call(">=", column, value()))
        case 3:
            return call("=", column, value())
    return call(rng.choice(["<", "<=", ">", ">=", "<>"]), column, value())


def _narrowed(tree: Node, rng: random.Random) -> Node:
    """More is asked of rows that are read."""
    scans = [one for one in tree.walk() if isinstance(one, Scan)]
    if not scans:
        return tree
    chosen = rng.choice(scans)
    wanted = condition(chosen.schema, rng)
    return tree if wanted is None else _replaced(tree, chosen, Filter(chosen, wanted))


def _filtered(tree: Node, rng: random.Random) -> Node:
    """More is asked of what is shown."""
    wanted = condition(tree.schema, rng)
    return tree if wanted is None else Filter(tree, wanted)


def _widened(tree: Node, rng: random.Random) -> Node:
    """Less is asked."""
    found = [one for one in tree.walk() if isinstance(one, Filter)]
    if not found:
        return tree
    chosen = rng.choice(found)
    parts = conjuncts(chosen.predicate)
    if parts:
        parts.pop(rng.randrange(len(parts)))
    return _replaced(tree, chosen, Filter(chosen.input, conjunction(parts)))


def _fewer_columns(tree: Node, rng: random.Random) -> Node:
    kept = [f for f in tree.schema if rng.random() < 0.6] or [rng.choice(tree.schema)]
    return Project(tree, tuple((f.name, Column(f.name, f.type)) for f in kept))


def _coarser(tree: Node, rng: random.Random) -> Node:
    """Fewer keys to group by."""
    if not isinstance(tree, Present) or not tree.sums.keys:
        return tree
    dropped = {name for name, _ in tree.sums.keys if rng.random() < 0.6}
    outputs = tuple((name, one) for name, one in tree.outputs if not one.columns & dropped)
    having = tree.having if not tree.having.columns & dropped and rng.random() < 0.5 else TRUE
    sums = replace(tree.sums, keys=tuple((name, key) for name, key in tree.sums.keys if name not in dropped))
    return Present(sums, outputs or (("n", Column(COUNT, t.BIGINT)),), having)


def _without_having(tree: Node, rng: random.Random) -> Node:
    return replace(tree, having=TRUE) if isinstance(tree, Present) else tree


def _rows_of_groups(tree: Node, rng: random.Random) -> Node:
    """The keys of rows instead of groups: how often each is there matters."""
    return Project(tree.sums.input, tree.sums.keys) if isinstance(tree, Present) and tree.sums.keys else tree


def _regrouped(tree: Node, rng: random.Random) -> Node:
    """Groups of what is shown: some columns are keys, others are added up, or the least or most of them is taken."""
    keys: list[Named] = []
    terms: list[Named] = []
    picks: list[tuple[str, Pick]] = []
    outputs: list[Named] = [("n", Column(COUNT, t.BIGINT))]
    for i, f in enumerate(tree.schema):
        column = Column(f.name, f.type)
        if t.is_groupable(f.type) and rng.random() < 0.4:
            keys.append((f"k{i}", column))
            outputs.append((f"k{i}", Column(f"k{i}", f.type)))
        elif isinstance(f.type, t.Integer):
            terms += [(f"t{i}", call("coalesce", column, Literal(0, f.type))), (f"n{i}", call("is not null", column))]
            total = cast(Column(f"t{i}", t.Decimal(38, 0)), t.BIGINT)
            some = call(">", Column(f"n{i}", t.BIGINT), Literal(0, t.BIGINT))
            outputs.append((f"s{i}", call("if", some, total, Literal(None, t.BIGINT))))
        elif t.is_orderable(f.type) and not isinstance(f.type, t.Null):
            picks.append((f"p{i}", Pick(rng.choice(["min", "max", "count_distinct"]), (column,))))
            outputs.append((f"p{i}", Column(f"p{i}", picks[-1][1].type)))
    shown = tuple(one for one in outputs if rng.random() < 0.8) or (outputs[0],)
    return Present(Sum(tree, tuple(keys), tuple(terms), tuple(picks)), shown, TRUE)


def _joined(tree: Node, rng: random.Random, other: Scan) -> Node:
    """Joined with another relation, by an equality where there can be one."""
    names = {f.name for f in tree.schema}
    if names & set(other.column_names):
        return tree
    pairs = [
        call("=", Column(a.name, a.type), Column(b.name, b.type))
        for a in tree.schema
        for b in other.schema
        if a.type == b.type and t.is_groupable(a.type)
    ]
    return Join(tree, other, rng.choice(pairs) if pairs else TRUE)


def _replaced(tree: Node, old: Node, new: Node) -> Node:
    """The tree with one node for another, wherever it stands; what stands in several places stays one object."""
    done = {id(old): new}

    def one(part: Node) -> Node:
        if id(part) not in done:
            done[id(part)] = rebuild(part, tuple(map(one, part.children)))
        return done[id(part)]

    return one(tree)


_CHANGES: tuple[_Change, ...] = (
    _narrowed, _filtered, _widened, _fewer_columns, _coarser, _without_having, _rows_of_groups,
)  # fmt: skip
_WEIGHTS = (4, 2, 2, 3, 4, 1, 1)
