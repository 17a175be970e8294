"""Operators that sqlglot groups otherwise than Spark.

Rather than answer another question than the one asked, Headwater wants parentheses there.
"""

from __future__ import annotations

from sqlglot import exp

from headwater.sql.place import Place

# How tightly Spark binds what sqlglot puts on one level.
_BITWISE: dict[type[exp.Expr], int] = {
    exp.BitwiseOr: 1,
    exp.BitwiseXor: 2,
    exp.BitwiseAnd: 3,
    exp.BitwiseLeftShift: 4,
    exp.BitwiseRightShift: 4,
    exp.DPipe: 5,
}
_EQUALITY = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ)
_ORDER = (exp.LT, exp.LTE, exp.GT, exp.GTE)
_PREDICATES = (exp.In, exp.Between, exp.Like, exp.ILike, exp.RegexpLike, exp.Escape, exp.Is)


def check_precedence(node: exp.Binary, place: Place) -> None:
    """Refuse an operator whose operands Spark would group otherwise."""
    left, right = node.this, node.expression
    mine = _BITWISE.get(type(node))
    wrong = mine is not None and _BITWISE.get(type(left), mine) < mine
    if isinstance(node, exp.DPipe):
        wrong |= isinstance(right, exp.Add | exp.Sub)
    if isinstance(node, _EQUALITY):
        wrong |= isinstance(right, _ORDER)
    if isinstance(node, _EQUALITY + _ORDER):
        wrong |= isinstance(right.this if isinstance(right, exp.Not) else right, _PREDICATES)
    if wrong:
        raise place.unsupported(
            "HW210",
            f"{place.text(node)} can be read in two ways",
            node,
            "put parentheses around the operator that comes first",
        )
