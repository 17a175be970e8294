"""Groups of one row each are rows: `GROUP BY k` over what has each k once."""

from __future__ import annotations

from headwater.algebra.nodes import COUNT, ONE, Filter, Node, Present, Project, Sum, total_of, transform
from headwater.algebra.scalars import TRUE, Column, Scalar, call, substitute
from headwater.algebra.unique import unique_sets


def unique_groups(node: Node) -> Node:
    """present[o; h](sum[k; t](R)) = project[o'](filter[h'](R)), if the keys tell the rows of R apart."""
    return transform(node, _collapse)


def _collapse(node: Node) -> Node:
    if not isinstance(node, Present) or not node.sums.keys or node.sums.picks or node.sums.count != ONE:
        return node
    sums = node.sums
    keys = {key.name for _, key in sums.keys if isinstance(key, Column)}
    if not any(one <= keys for one in unique_sets(sums.input)):
        return node
    values: dict[str, Scalar] = {**dict(sums.keys), COUNT: ONE}
    values |= {name: _total(term) for name, term in sums.terms}
    rows = _rows(sums, substitute(node.having, values))
    return Project(rows, tuple((name, substitute(scalar, values)) for name, scalar in node.outputs))


def _total(term: Scalar) -> Scalar:
    """The total of one row's term; a term that is made of totals is one already."""
    total = call("weigh", term, ONE)
    return total if total.type == total_of(term) else term


def _rows(sums: Sum, having: Scalar) -> Node:
    return sums.input if having == TRUE else Filter(sums.input, having)
