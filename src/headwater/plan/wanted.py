"""What of a stream's rows its views can use, so that the rest is neither handed over nor stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from headwater import types as t
from headwater.algebra.clock import reads_clock
from headwater.algebra.functions import may_raise
from headwater.algebra.nodes import Filter, Node, Scan
from headwater.algebra.scalars import FALSE, TRUE, Call, Cast, Column, Scalar, call, conjunction, conjuncts, substitute
from headwater.plan.program import Program


@dataclass(frozen=True)
class Wanted:
    """A part of a stream.

    Attributes:
        columns: those that something is computed from.
        rows: a condition over the stream's columns; a row for which it is not TRUE changes nothing. It never raises.
    """

    columns: frozenset[str]
    rows: Scalar

    def covers(self, other: Wanted) -> bool:
        """Whether somebody who got this part has all that is in the other one."""
        return other.columns <= self.columns and self.rows in (other.rows, TRUE)


def everything(fields: t.Schema) -> Wanted:
    return Wanted(frozenset(f.name for f in fields), TRUE)


#: A program that reads a relation, and the name under which it does.
Reading = tuple[str, Program]


def wanted_by(readings: Iterable[Reading]) -> Wanted:
    """The part of a relation that some programs use, which may know it by several names."""
    columns: set[str] = set()
    conditions: list[Scalar] = []
    for relation, program in readings:
        columns |= program.columns_of(relation)
        conditions += [condition for one in program.definitions for condition in _conditions(one, relation)]
    if TRUE in conditions:
        return Wanted(frozenset(columns), TRUE)
    rows: Scalar = FALSE
    for condition in dict.fromkeys(conditions):
        rows = condition if rows == FALSE else call("or", rows, condition)
    return Wanted(frozenset(columns), rows)


def _conditions(node: Node, relation: str, above: tuple[Scalar, ...] = ()) -> Iterator[Scalar]:
    """For each time a tree reads a relation, the filters that stand right above it, as far as they cannot raise.

    What the clock decides now it may decide otherwise later.
    """
    if isinstance(node, Filter):
        yield from _conditions(node.input, relation, (*above, *conjuncts(node.predicate)))
    elif isinstance(node, Scan):
        if node.relation == relation:
            bare = {f"{node.alias}.{f.name}": Column(f.name, f.type) for f in node.fields}
            yield conjunction([substitute(one, bare) for one in above if not may_raise(one) and not reads_clock(one)])
    else:
        for child in node.children:
            yield from _conditions(child, relation)


# -- what Spark checks -------------------------------------------------------------------------------------------------

#: Functions that mean the same to Spark for all values of these types.
PORTABLE = frozenset({"=", "<>", "<", "<=", ">", ">=", "<=>", "and", "or", "not", "is null", "is not null", "in"})
_TYPES = (t.Boolean, t.Integer, t.Decimal, t.Float, t.Double, t.String, t.Date, t.Timestamp)
_CASTS = (t.Integer, t.Decimal)


def portable(condition: Scalar) -> Scalar:
    """The part of a condition that Spark can check before it hands rows over: what meets the whole meets the part."""
    if isinstance(condition, Call) and condition.function == "or":
        sides = [portable(side) for side in condition.args]
        return TRUE if TRUE in sides else call("or", *sides)
    return conjunction([part for part in conjuncts(condition) if _is_portable(part)])


def _is_portable(scalar: Scalar) -> bool:
    if not isinstance(scalar.type, _TYPES):
        return False
    if isinstance(scalar, Call) and scalar.function not in PORTABLE:
        return False
    if isinstance(scalar, Cast) and not (isinstance(scalar.type, _CASTS) and isinstance(scalar.arg.type, _CASTS)):
        return False
    return all(_is_portable(child) for child in scalar.children)
