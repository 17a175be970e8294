"""Groups of a part that have one row each are rows.

Where a part of a stream is grouped, and no two of its rows are of one group, the grouping changes nothing: `min(x)` is
`x`, `count(*)` is 1. A state machine steps through such a part without grouping it. Whether a part is like that is seen
when it is evaluated; here is what to look at, and what to evaluate then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headwater.algebra.nodes import COUNT, ONE, Filter, Node, Present, Project, Scan, transform
from headwater.algebra.parts import PART, PartQuery
from headwater.algebra.scalars import TRUE, Call, Column, Literal, Scalar, call, conjuncts, substitute
from headwater.algebra.simplify import simplify

_PICKED = ("min", "max", "any_value")


@dataclass(frozen=True)
class Lone:
    """A part of a relation that is grouped by columns of it; `bound` is the number of the part's bound."""

    relation: str
    bound: int
    columns: tuple[str, ...]


def lone_groups(query: PartQuery) -> tuple[Lone, ...]:
    """What is grouped in a query as it comes from a part, each once."""
    found = [_lone(node) for node in query.query.walk()]
    return tuple(dict.fromkeys(one for one in found if one is not None))


def with_lone_rows(query: PartQuery, lone: frozenset[Lone]) -> PartQuery:
    """The query for parts in which no two rows agree in the columns by which they are grouped, for some groupings."""
    return replace(query, query=simplify(transform(query.query, lambda node: _opened(node, lone))))


def _lone(node: Node) -> Lone | None:
    if not isinstance(node, Present) or not node.sums.keys or node.sums.count != ONE:
        return None
    sums = node.sums
    if any(pick.function not in _PICKED for _, pick in sums.picks):
        return None
    names = [key.name for _, key in sums.keys if isinstance(key, Column)]
    found = _columns(sums.input, names) if len(names) == len(sums.keys) else None
    if found is None:
        return None
    filtered, columns = found
    for part in conjuncts(filtered.predicate):
        match part:
            case Call(
                function="=", args=(Column(name=name), Call(function="bound", args=(Literal(value=int(place)),)))
            ):
                scan = filtered.input
                assert isinstance(scan, Scan)
                if name == f"{scan.alias}.{PART}":
                    return Lone(scan.relation, place, tuple(one.removeprefix(f"{scan.alias}.") for one in columns))
    return None


def _columns(node: Node, names: list[str]) -> tuple[Filter, list[str]] | None:
    """The filtered scan below what only computes columns and leaves rows out, and what some columns are there."""
    match node:
        case Filter(input=Scan()):
            return node, names
        case Filter(input=source):
            return _columns(source, names)
        case Project(input=source, columns=columns):
            made = dict(columns)
            below = [scalar.name for name in names if isinstance(scalar := made[name], Column)]
            return _columns(source, below) if len(below) == len(names) else None
    return None


def _opened(node: Node, lone: frozenset[Lone]) -> Node:
    if _lone(node) not in lone:
        return node
    assert isinstance(node, Present)
    sums = node.sums
    values: dict[str, Scalar] = {**dict(sums.keys), COUNT: ONE}
    values |= {name: call("weigh", term, ONE) for name, term in sums.terms}
    values |= {name: pick.args[0] for name, pick in sums.picks}
    having = substitute(node.having, values)
    rows = sums.input if having == TRUE else Filter(sums.input, having)
    return Project(rows, tuple((name, substitute(scalar, values)) for name, scalar in node.outputs))
