"""Patterns by brute force: a state machine in plain Python that goes row by row over all rows seen.

The text of a query is read with sqlglot and its expressions are computed here; nothing of Headwater is used.
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from sqlglot import exp, parse_one

from ..bags import Bag
from .case import Row
from .judges import ByPart

_PATTERN = re.compile(r"\b(\w+) PATTERN \[([^\]]*)\]")

Named = Mapping[str, object]  #: a row by the names of its columns
#: The value of a column, given the variable before it and its name.
Look = Callable[[str, str], object]


def relation_of(query: str) -> str:
    """The relation that a pattern is looked for in."""
    found = _PATTERN.search(query)
    assert found is not None
    return found[1]


@dataclass
class _Pattern:
    """A pattern query; states are counted from 1, and 0 is the beginning."""

    variables: tuple[str, ...]
    plus: tuple[bool, ...]
    conjuncts: list[exp.Expr]
    groups: tuple[str, ...]
    items: list[exp.Expr]
    having: exp.Expr | None

    def holds(self, state: int, then: int, row: Named, before: Named | None) -> bool:
        """Whether the edge from one state to another may be taken."""
        ours = self.variables[then - 1]
        theirs = self.variables[state - 1] if state != then and state else None

        def look(variable: str, column: str) -> object:
            found = row if variable == ours else before
            assert found is not None
            return found[column]

        for one in self.conjuncts:
            named = {column.table for column in one.find_all(exp.Column)}
            on_edge = named == {ours} or (theirs is not None and named == {ours, theirs})
            if on_edge and compute(one, look) is not True:
                return False
        return True

    def step(self, state: int, row: Named, before: Named | None) -> tuple[int, bool]:
        """The state after a row, and whether a match goes on with it."""
        if state and self.plus[state - 1] and self.holds(state, state, row, before):
            return state, True
        if state < len(self.variables) and self.holds(state, state + 1, row, before):
            return state + 1, state > 0
        return (1, False) if self.holds(0, 1, row, None) else (0, False)


@dataclass
class _Match:
    """The match that a group is in, and the part of the last row of the group."""

    state: int = 0
    rows: list[Named] = field(default_factory=list)
    part: int | None = None


def read(query: str) -> _Pattern:
    """A pattern query from its text."""
    found = _PATTERN.search(query)
    assert found is not None
    variables = [one.strip() for one in found[2].split(",")]
    tree = parse_one(_PATTERN.sub(lambda one: one[1], query), read="spark")
    assert isinstance(tree, exp.Select)
    where = tree.args.get("where")
    group = tree.args.get("group")
    having = tree.args.get("having")
    return _Pattern(
        tuple(one.rstrip("+") for one in variables),
        tuple(one.endswith("+") for one in variables),
        list(where.this.flatten()) if where and isinstance(where.this, exp.And) else [where.this] if where else [],
        tuple(one.name for one in group.expressions) if group else (),
        [one.unalias() for one in tree.expressions],
        having.this if having else None,
    )


def run(query: str, columns: Sequence[str], rows: ByPart, parts: range) -> dict[int | None, Bag]:
    """What each part shows of a pattern.

    Args:
        query: the text.
        columns: of the relation; rows of a group are in their order, the time being first.
        rows: of the relation, by part.
        parts: those that the view has.
    """
    pattern = read(query)
    groups: dict[Row, _Match] = {}
    shown: dict[int | None, Bag] = {}
    last = len(pattern.variables)
    for part in parts:
        out: Bag = Counter()
        for row in sorted(rows.get(part, Counter()).elements(), key=_order):
            named = dict(zip(columns, row, strict=True))
            match = groups.setdefault(tuple(named[one] for one in pattern.groups), _Match())
            before = match.rows[-1] if match.rows else None
            state, goes_on = pattern.step(match.state, named, before)
            if not goes_on:
                if match.state == last and match.part == part:
                    _show(pattern, match.rows, out)
                match.rows = []
            match.state = state
            match.rows = [*match.rows, named] if state else []
            match.part = part
        for match in groups.values():
            if match.state == last:
                _show(pattern, match.rows, out)
        shown[part] = out
    return shown


def _order(row: Row) -> tuple[tuple[bool, object], ...]:
    return tuple((value is not None, value if value is not None else 0) for value in row)


def _show(pattern: _Pattern, rows: list[Named], out: Bag) -> None:
    def look(_: str, column: str) -> object:
        return rows[0][column]

    if pattern.having is None or compute(pattern.having, look, rows) is True:
        out[tuple(compute(item, look, rows) for item in pattern.items)] += 1


_COMPARISONS: dict[type[exp.Expr], Callable[[object, object], object]] = {
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
    exp.Add: operator.add,
    exp.Sub: operator.sub,
    exp.Mul: operator.mul,
}


def compute(node: exp.Expr, look: Look, rows: Sequence[Named] = ()) -> object:
    """The value of an expression; `rows` are those that aggregates are over."""
    match node:
        case exp.Paren():
            return compute(node.this, look, rows)
        case exp.Column():
            return look(node.table, node.name)
        case exp.Literal():
            return node.this if node.is_string else int(node.this)
        case exp.Neg():
            value = compute(node.this, look, rows)
            return None if value is None else -value  # type: ignore[operator]
        case exp.Is():
            return compute(node.this, look, rows) is None
        case exp.NullSafeEQ():
            return compute(node.this, look, rows) == compute(node.expression, look, rows)
        case exp.Not():
            value = compute(node.this, look, rows)
            return None if value is None else not value
        case exp.Or() | exp.And():
            sides = [compute(one, look, rows) for one in (node.this, node.expression)]
            decisive = isinstance(node, exp.Or)
            return decisive if decisive in sides else None if None in sides else not decisive
        case exp.AggFunc():
            return _aggregate(node, rows)
    left, right = compute(node.this, look, rows), compute(node.expression, look, rows)
    return None if left is None or right is None else _COMPARISONS[type(node)](left, right)


def _aggregate(node: exp.AggFunc, rows: Sequence[Named]) -> object:
    if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
        return len(rows)
    values = [compute(node.this, lambda _, name, row=row: row[name]) for row in rows]  # type: ignore[misc]
    known = [value for value in values if value is not None]
    match node:
        case exp.Count():
            return len(known)
        case exp.First():
            return values[0]
        case exp.Last():
            return values[-1]
    if not known:
        return None
    match node:
        case exp.Sum():
            return sum(known[1:], start=known[0])
        case exp.Min():
            return min(known)
        case exp.Max():
            return max(known)
        case exp.Avg():
            return float(sum(map(Fraction, known)) / len(known))
    raise ValueError(f"no aggregate {node}")
