"""EXPLODE and its like: one row for each element of a collection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from headwater import types as t
from headwater.algebra.nodes import Explode, Node, element_types
from headwater.algebra.scalars import Column, Scalar
from headwater.sql.bind import Binder
from headwater.sql.calls import function_name
from headwater.sql.place import check_width

#: The functions: whether rows without elements stay, and whether positions are given.
_FUNCTIONS = {
    "explode": (False, False),
    "explode_outer": (True, False),
    "posexplode": (False, True),
    "posexplode_outer": (True, True),
}


def is_exploding(node: exp.Expr) -> bool:
    """Whether an expression makes rows."""
    return isinstance(node, exp.Anonymous) and function_name(node) in _FUNCTIONS


@dataclass(frozen=True)
class Exploding:
    """A call that makes rows.

    Attributes:
        source: the collection.
        names: of the columns it makes.
        types: of these columns.
        outer: whether a row without elements stays, with NULLs.
        numbered: whether the first column is an element's position.
    """

    source: Scalar
    names: tuple[str, ...]
    types: tuple[t.Type, ...]
    outer: bool
    numbered: bool

    @staticmethod
    def of(call: exp.Anonymous, binder: Binder, aliases: Sequence[exp.Identifier]) -> Exploding:
        """Bind a call; `aliases` are names for its columns, or none."""
        place, shown = binder.place, function_name(call).upper()
        outer, numbered = _FUNCTIONS[function_name(call)]
        if len(call.expressions) != 1:
            raise place.mistake("HW122", f"{shown}: takes 1 argument, not {len(call.expressions)}", call)
        source = binder.bind(call.expressions[0])
        if not isinstance(source.type, t.Array | t.Map):
            raise place.mistake("HW122", f"{shown}: takes an ARRAY or a MAP, not {source.type}", call)
        types = element_types(source.type, numbered)
        check_width(len(types), aliases, call, place)
        plain = ("key", "value") if isinstance(source.type, t.Map) else ("col",)
        own = tuple(one.name for one in aliases) or (("pos", *plain) if numbered else plain)
        return Exploding(source, own, types, outer, numbered)

    def node(self, input: Node, source: Scalar, prefix: str, outer: bool = False) -> Node:
        """The rows of a node, each with each element of a collection computed from it."""
        names = tuple(name for name, _ in self.columns(prefix))
        return Explode(input, source, tuple(f"{prefix}.{name}" for name in names), outer or self.outer, self.numbered)

    def columns(self, prefix: str) -> tuple[tuple[str, Column], ...]:
        """The columns that are made, and what they are called."""
        return tuple((name, Column(f"{prefix}.{name}", of)) for name, of in zip(self.names, self.types, strict=True))
