"""The graph of a program as an indented tree, from the view down to its inputs: a line for each relation."""

from __future__ import annotations

from headwater.plan.dag import Dag, Edge, Vertex
from headwater.plan.reads import Flow

#: What a relation gives to the one above it, in the order of telling.
_SHORT = {Flow.CHANGES: "changes", Flow.BY_KEY: "read by key", Flow.WHOLE: "read whole"}


def render_tree(dag: Dag) -> str:
    """The tree as text. A relation that was met before is referred to, and what is below it is not repeated."""
    lines: list[str] = []
    seen: set[str] = set()

    def draw(name: str, edges: list[Edge], lead: str, below: str) -> None:
        told = sorted(edges, key=lambda edge: list(_SHORT).index(edge.flow))
        flows = f"  [{'; '.join(map(_flow, told))}]" if told else ""
        if name in seen:
            lines.append(f"{lead}{name}, see above{flows}")
            return
        seen.add(name)
        lines.append(f"{lead}{_line(dag.vertex(name))}{flows}")
        parts = list(dag.into(name).items())
        for i, (source, into) in enumerate(parts, 1):
            last = i == len(parts)
            draw(source, into, below + ("└─ " if last else "├─ "), below + ("   " if last else "│  "))

    draw(dag.vertices[-1].name, [], "", "")
    return "\n".join(lines)


def _line(one: Vertex) -> str:
    return f"{one.name}: {', '.join(one.facts)}"


def _flow(edge: Edge) -> str:
    return _SHORT[edge.flow] + (f" ({', '.join(edge.key)})" if edge.key else "")
