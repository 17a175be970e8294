"""What is asked of a group's count is known: a group that is shown has rows.

`0 = (SELECT COUNT(*) ...)`, taken apart, asks a group for a count of nothing; and a sum is NULL over no rows.
"""

from __future__ import annotations

from dataclasses import replace

from headwater.algebra.joins import TURNED
from headwater.algebra.nodes import COUNT, Node, Present, transform
from headwater.algebra.scalars import FALSE, TRUE, Call, Column, Literal, Scalar
from headwater.algebra.scalars import transform as transform_scalar


def groups_have_rows(node: Node) -> Node:
    """present[x := if(#count > 0, s, null)](sum[k; s]) = present[x := if(true, s, null)](sum[k; s])."""
    return transform(node, _known)


def _known(node: Node) -> Node:
    if not isinstance(node, Present) or not node.sums.keys:
        return node
    outputs = tuple((name, transform_scalar(one, _asked)) for name, one in node.outputs)
    return replace(node, outputs=outputs, having=transform_scalar(node.having, _asked))


def _asked(scalar: Scalar) -> Scalar | None:
    """TRUE or FALSE for a comparison of a count with a constant of which only one can be; None for anything else."""
    if not isinstance(scalar, Call) or len(scalar.args) != 2:
        return None
    function, (a, b) = scalar.function, scalar.args
    if isinstance(a, Literal):
        function, a, b = TURNED.get(function, function), b, a
    if not isinstance(a, Column) or a.name != COUNT or not isinstance(b, Literal) or not isinstance(b.value, int):
        return None
    always = {">": b.value < 1, ">=": b.value <= 1, "<>": b.value < 1}
    never = {"=": b.value < 1, "<=>": b.value < 1, "<": b.value <= 1, "<=": b.value < 1}
    return TRUE if always.get(function) else FALSE if never.get(function) else None
