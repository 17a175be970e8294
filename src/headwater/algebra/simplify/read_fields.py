"""A field of a struct that is made right there is what was put into it: `named_struct('a', x, 'b', y).a` is `x`."""

from __future__ import annotations

from headwater.algebra.functions.maps import field_place
from headwater.algebra.nodes import Node, transform
from headwater.algebra.scalars import Call, Scalar
from headwater.algebra.scalars import transform as transform_scalar
from headwater.algebra.simplify.scalars_of import map_scalars


def read_fields(node: Node) -> Node:
    """The tree without structs of which only fields are read."""
    return transform(node, lambda one: map_scalars(one, _read))


def _read(scalar: Scalar) -> Scalar:
    return transform_scalar(scalar, _field)


def _field(scalar: Scalar) -> Scalar | None:
    match scalar:
        case Call(function="field", args=(inner, _)):
            made = _read(inner)
            if isinstance(made, Call) and made.function == "named_struct":
                return made.args[1::2][field_place(scalar.args)]
            return None if made is inner else Call("field", (made, scalar.args[1]))
    return None
