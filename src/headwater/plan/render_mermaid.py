"""The graph of a program as a Mermaid flowchart, which GitHub and many other pages draw."""

from __future__ import annotations

import re

from headwater.plan.dag import Dag, Edge, Vertex
from headwater.plan.reads import Flow
from headwater.plan.roles import Role

#: What stands around a label, by the last role of a relation.
_SHAPES = {
    Role.TABLE: ("[(", ")]"),
    Role.STREAM: ("[/", "/]"),
    Role.SYNCHRONISED: ("[\\", "\\]"),
    Role.VIEW: ("[[", "]]"),
    Role.DELTA: (">", "]"),
    Role.PRE_AGGREGATION: ("(", ")"),
    Role.REVERSE_JOIN: ("{{", "}}"),
    Role.INDEX: ("[", "]"),
    Role.WINDOW: ("[", "]"),
    Role.COMING: ("[", "]"),
    Role.CLOCK: ("((", "))"),
    Role.FINAL: ("([", "])"),
}
_ARROWS = {Flow.CHANGES: "-->", Flow.BY_KEY: "-.->", Flow.WHOLE: "==>"}


def render_mermaid(dag: Dag) -> str:
    """The flowchart as text: inputs at the top, the view at the bottom.

    Changes flow along solid arrows; what is looked up by key along dotted ones, what is read whole along thick ones.
    """
    numbers = {one.name: f"n{i}" for i, one in enumerate(dag.vertices, 1)}
    lines = ["flowchart TD"]
    lines += [f"  {numbers[one.name]}{_shape(one)}" for one in dag.vertices]
    lines += [
        f'  {numbers[one.source]} {_ARROWS[one.flow]}|"{_escaped(_label(one, dag))}"| {numbers[one.target]}'
        for one in dag.edges
    ]
    return "\n".join(lines)


def _shape(one: Vertex) -> str:
    begin, end = _SHAPES[one.roles[-1]]
    return f'{begin}"{"<br/>".join(map(_escaped, (one.name, *one.facts)))}"{end}'


def _label(edge: Edge, dag: Dag) -> str:
    match edge.flow:
        case Flow.CHANGES:
            changed = dag.into(edge.source) if Role.DELTA in dag.vertex(edge.source).roles else [edge.source]
            return f"{edge.flow.value} {', '.join(changed)}"
        case Flow.BY_KEY:
            return f"{edge.flow.value} ({', '.join(edge.key)})"
    return str(edge.flow.value)


def _escaped(text: str) -> str:
    """Text inside quotes: signs that could mean something to Mermaid or to HTML are written as their numbers."""
    return re.sub(r"[^\w\s$.,():Δ-]", lambda found: f"#{ord(found[0])};", re.sub(r"\s", " ", text))
