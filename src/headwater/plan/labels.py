"""What people call the columns of maps: names of ours are followed down to what they stand for."""

from __future__ import annotations

from headwater.algebra.nodes import Named, Node, Over, Present, Project, Scan, Sum
from headwater.algebra.scalars import Column, Scalar, transform
from headwater.plan.program import Program


def column_label(node: Node, name: str, program: Program) -> str:
    """The name of a node's column, or, if that is one of ours, what it stands for."""
    if not name.startswith("#"):
        return name
    match node:
        case Scan(relation=relation, alias=alias):
            own = name.removeprefix(f"{alias}.")
            known = next((one for one in program.maps if one.name == relation), None)
            return own if known is None else column_label(known.definition, own, program)
        case Project(columns=named) | Over(outputs=named) | Present(outputs=named) | Sum(keys=named):
            scalar = dict(named).get(name)
            return name if scalar is None else _scalar_label(scalar, node.children[0], program)
    below = next((child for child in node.children if name in child.column_names), None)
    return name if below is None else column_label(below, name, program)


def key_label(key: Named, source: Node, program: Program) -> str:
    """The name of a key over `source`, or what it stands for."""
    name, scalar = key
    return _scalar_label(scalar, source, program) if name.startswith("#") else name


def _scalar_label(scalar: Scalar, source: Node, program: Program) -> str:
    def named(part: Scalar) -> Scalar | None:
        return Column(column_label(source, part.name, program), part.type) if isinstance(part, Column) else None

    shown = transform(scalar, named)
    return shown.name if isinstance(shown, Column) else str(shown)
