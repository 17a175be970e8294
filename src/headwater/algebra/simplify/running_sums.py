"""Sums over all rows that are larger (or smaller) than a value, for many values: one pass instead of a join.

`SELECT ..., (SELECT sum(v) FROM s WHERE s.x > r.x)` is, for every value of r.x, a sum over a part of s that grows with
the order of x. Joined with the values, s meets each of them; sorted together with them, one running sum gives all
(Ahmad, Kennedy, Koch, Nikolic, "DBToaster", has such queries in section 6: VWAP and its like).
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from headwater import types as t
from headwater.algebra.folds import RUNNING, Frame, Sorting, WindowCall
from headwater.algebra.joins import flatten, joined
from headwater.algebra.nodes import (
    COUNT,
    Filter,
    Join,
    Named,
    Node,
    Over,
    Present,
    Project,
    Sum,
    Union,
    transform,
)
from headwater.algebra.renaming import canonical
from headwater.algebra.scalars import (
    TRUE,
    Call,
    Column,
    Literal,
    Scalar,
    call,
    cast,
    conjunction,
    conjuncts,
    substitute,
)

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_LEVEL = 1


def running_sums(node: Node) -> Node:
    """Present(Sum(distinct values joined with rows by one inequality)) as a running sum over both."""
    return transform(node, _rewrite)


@dataclass(frozen=True)
class _Match:
    """Values, the rows they are joined with, and by what: pairs that are equal, and one that is compared."""

    values: Node
    rows: Node
    equal: tuple[tuple[Column, Scalar], ...]
    compared: tuple[Column, str, Scalar]


def _rewrite(node: Node) -> Node:
    if not isinstance(node, Present) or node.sums.picks or not isinstance(node.sums.input, Join):
        return node
    join = node.sums.input
    for values, rows in ((join.left, join.right), (join.right, join.left)):
        found = _match(node.sums, values, rows, join.condition)
        if found is not None:
            return _running(node, found)
    return node


def _is_distinct(node: Node) -> bool:
    return isinstance(node, Present) and {s for _, s in node.outputs} >= {
        Column(name, key.type) for name, key in node.sums.keys
    }


def _match(sums: Sum, values: Node, rows: Node, condition: Scalar) -> _Match | None:
    mine, theirs = frozenset(values.column_names), frozenset(rows.column_names)
    if not _is_distinct(values) or not all(isinstance(key, Column) and key.name in mine for _, key in sums.keys):
        return None
    if any(not term.columns <= theirs for _, term in sums.terms):
        return None
    equal: list[tuple[Column, Scalar]] = []
    compared: list[tuple[Column, str, Scalar]] = []
    for part in conjuncts(condition):
        if not isinstance(part, Call) or len(part.args) != 2:
            return None
        for one, other, test in (
            (part.args[0], part.args[1], part.function),
            (part.args[1], part.args[0], _FLIPPED.get(part.function, part.function)),
        ):
            if isinstance(one, Column) and one.name in mine and other.columns and other.columns <= theirs:
                if test == "=":
                    equal.append((one, other))
                elif test in _FLIPPED:
                    compared.append((one, test, other))
                else:
                    return None
                break
        else:
            return None
    used = {one for one, _ in equal} | {one for one, _, _ in compared}
    keys = {key for _, key in sums.keys}
    if len(compared) != 1 or len(equal) + 1 != len(used) or keys != used or len(mine) != len(used):
        return None
    return _Match(values, rows, tuple(equal), compared[0])


def _zero(of: t.Type) -> Literal:
    if isinstance(of, t.Decimal):
        return Literal(Decimal(0).scaleb(-of.scale), of)
    return Literal(0.0, of) if of == t.DOUBLE else Literal(0, of)


def _running(node: Present, found: _Match) -> Node:
    sums = node.sums
    value, test, other = found.compared
    prefix = f"{value.name}~"
    parts = [Column(f"{prefix}p{i}", one.type) for i, (one, _) in enumerate(found.equal)]
    at, tag = Column(f"{prefix}x", value.type), Column(f"{prefix}tag", t.INT)
    payload = [Column(f"{prefix}{f.name}", f.type) for f in sums.payload]

    level_keys: tuple[Named, ...] = (
        *((one.name, scalar) for one, (_, scalar) in zip(parts, found.equal, strict=True)),
        (at.name, other),
    )
    known: list[Scalar] = [call("is not null", scalar) for _, scalar in level_keys]
    levels = Sum(Filter(found.rows, conjunction(known)), level_keys, sums.terms)
    shown: tuple[Named, ...] = tuple((name, Column(name, key.type)) for name, key in level_keys)
    shown += tuple((p.name, Column(f.name, f.type)) for p, f in zip(payload, levels.payload, strict=True))
    level = Present(levels, shown, TRUE)
    order = [one.name for one in (*parts, at)]
    keys = tuple((one.name, one) for one in parts)
    if _are_levels(found, levels):
        # Each level is a value of its own: it sees those that come before it.
        frame = Frame("rows", None, -1 if test in ("<", ">") else 0)
        return _over(node, level, keys, payload, (Sorting(at, descending=test in ("<", "<=")),), frame, found, at, [])
    below = Project(
        level,
        (*((name, level.column(name)) for name in order), (tag.name, Literal(_LEVEL, t.INT)), *_as_is(payload)),
    )

    # A value stands before the rows that are equal to it, if these do not count, and behind them if they do.
    mine = Literal(_LEVEL - 1 if test in ("<", ">") else _LEVEL + 1, t.INT)
    here: list[Scalar] = [*(one for one, _ in found.equal), value]
    asked = Project(
        Filter(found.values, conjunction([call("is not null", one) for one in here])),
        (*zip(order, here, strict=True), (tag.name, mine), *((p.name, _zero(p.type)) for p in payload)),
    )
    # value < x: rows with a larger x count, so these come first.
    sorting = (Sorting(at, descending=test in ("<", "<=")), Sorting(tag))
    both = Union((below, asked))
    return _over(node, both, keys, payload, sorting, RUNNING, found, at, [call("=", tag, mine)])


def _over(
    node: Present,
    rows: Node,
    keys: tuple[Named, ...],
    payload: list[Column],
    sorting: tuple[Sorting, ...],
    frame: Frame,
    found: _Match,
    at: Column,
    asked: list[Scalar],
) -> Over:
    """Running sums of the payload over rows, as the node would show them."""
    sums = node.sums
    windows = [WindowCall("total", (p,), sorting, frame) for p in payload]
    totals = [Column(f"{p.name}~", window.type) for p, window in zip(payload, windows, strict=True)]
    calls = tuple((total.name, window) for total, window in zip(totals, windows, strict=True))
    parts = [key for _, key in keys]
    given: dict[str, Scalar] = {name: _place(key, found, parts, at) for name, key in sums.keys}
    given |= {f.name: cast(total, f.type) for f, total in zip(sums.payload, totals, strict=True)}
    having = conjunction([*asked, call(">", given[COUNT], Literal(0, t.BIGINT)), substitute(node.having, given)])
    outputs = tuple((name, substitute(scalar, given)) for name, scalar in node.outputs)
    return Over(rows, keys, calls, outputs, having)


def _are_levels(found: _Match, levels: Sum) -> bool:
    """Whether the values are those that the rows themselves have, NULL apart: VWAP asks each price of the same book."""
    values = found.values
    if not isinstance(values, Present) or values.sums.picks or values.having not in (TRUE, *_there(values)):
        return False
    shown = dict(values.outputs)
    inner = dict(values.sums.keys)
    asked = [shown[one.name] for one, _ in found.equal] + [shown[found.compared[0].name]]
    own = [inner.get(one.name) if isinstance(one, Column) else None for one in asked]
    if None in own or len(own) != len(inner):
        return False
    mine = tuple((name, key) for (name, _), key in zip(levels.keys, own, strict=True) if key is not None)
    return canonical(_bare(values.sums.input, mine)) == canonical(_bare(levels.input, levels.keys))


def _there(values: Present) -> list[Scalar]:
    return [call("is not null", Column(name, key.type)) for name, key in values.sums.keys]


def _bare(node: Node, keys: tuple[Named, ...]) -> Sum:
    """Groups of rows without the conditions that say that their keys are there."""
    flat = flatten(node)
    over = tuple((name, flat.through(key)) for name, key in keys)
    there = {call("is not null", key) for _, key in over}
    return Sum(joined(flat.leaves, [one for one in flat.conditions if one not in there]), over, ())


def _as_is(columns: list[Column]) -> tuple[Named, ...]:
    return tuple((one.name, one) for one in columns)


def _place(key: Scalar, found: _Match, parts: list[Scalar], at: Column) -> Scalar:
    for part, (one, _) in zip(parts, found.equal, strict=True):
        if one == key:
            return part
    return at
