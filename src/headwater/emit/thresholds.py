"""Joins that do nothing but compare with one row: a threshold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headwater.algebra.functions import may_raise
from headwater.algebra.joins import TURNED, flatten
from headwater.algebra.nodes import Scan, Sum
from headwater.algebra.scalars import Call, Column, Scalar

#: Scalars of a join that is looked at.
_LARGEST = 2_000


@dataclass(frozen=True)
class Threshold:
    """`other < column`, or another comparison.

    Attributes:
        change: the change of the relation with one row.
        function: how they are compared.
        other: what is compared with it.
        column: of the one row.
    """

    change: Scan
    function: str
    other: Scalar
    column: str


def threshold(node: Sum, one_row_changes: Callable[[Scan], bool]) -> Threshold | None:
    """The threshold of a sum over a join with the change of one row, if that row serves for nothing else."""
    flat = flatten(node.input)
    changes = [one for one in flat.leaves if isinstance(one, Scan) and one_row_changes(one)]
    if len(changes) != 1 or flat.size > _LARGEST:
        return None
    mine = frozenset(changes[0].column_names)
    asked = [one for one in flat.conditions if one.columns & mine]
    made = (*(key for _, key in node.keys), *(term for _, term in node.terms), node.count)
    if len(asked) != 1 or any(flat.through(one).columns & mine for one in made):
        return None
    [condition] = asked
    if not isinstance(condition, Call) or condition.function not in TURNED:
        return None
    function, (other, value) = condition.function, condition.args
    if isinstance(other, Column) and other.name in mine:
        function, other, value = TURNED[function], value, other
    if not isinstance(value, Column) or value.name not in mine or other.columns & mine:
        return None
    if may_raise(other):  # it must be asked only of rows that pass all other conditions
        return None
    return Threshold(changes[0], function, other, value.name)
