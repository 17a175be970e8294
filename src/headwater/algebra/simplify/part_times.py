"""Conditions on PART_TIMESTAMP become conditions on PART, by which rows are stored: other parts are then not read."""

from __future__ import annotations

import datetime as dt

from headwater import types as t
from headwater.algebra.joins import TURNED
from headwater.algebra.nodes import Node, transform
from headwater.algebra.scalars import FALSE, Call, Literal, Scalar, call
from headwater.algebra.scalars import transform as transform_scalar
from headwater.algebra.simplify.scalars_of import map_scalars

_UNIX = dt.datetime(1970, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)


def part_times(node: Node) -> Node:
    """The tree with comparisons of a part's beginning with a constant as comparisons of its subscript."""
    return transform(node, lambda one: map_scalars(one, lambda scalar: transform_scalar(scalar, _compared)))


def _compared(scalar: Scalar) -> Scalar | None:
    match scalar:
        case Call(function=function, args=(left, Literal() as moment)) if function in (*TURNED, "="):
            return _turned(function, left, moment)
        case Call(function=function, args=(Literal() as moment, right)) if function in (*TURNED, "="):
            return _turned(TURNED.get(function, function), right, moment)
        case Call(function="in", args=(left, *moments)) if all(isinstance(one, Literal) for one in moments):
            found = [_turned("=", left, one) for one in moments if isinstance(one, Literal)]
            parts = [one for one in found if one is not None]
            if len(parts) == len(found) and parts:
                out = parts[0]
                for one in parts[1:]:
                    out = call("or", out, one)
                return out
    return None


def _turned(function: str, side: Scalar, moment: Literal) -> Scalar | None:
    """`part_timestamp(part, length) < moment` in terms of the part."""
    match side:
        case Call(function="part_timestamp", args=(part, Literal(value=int(length)))):
            if not isinstance(moment.value, dt.datetime):
                return None
            whole, rest = divmod((moment.value - _UNIX) // _MICROSECOND, length * 1_000_000)
            if rest and function == "=":
                return FALSE
            if rest:  # between two parts: at or after it is after the one before
                function = {">=": ">", "<": "<="}.get(function, function)
            return call(function, part, Literal(whole, t.BIGINT))
    return None
