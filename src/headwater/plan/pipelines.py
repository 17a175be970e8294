"""The pipelines of a view that is evaluated when it is read, for people.

(Winter, Schmidt, Neumann, Kemper, "Meet Me Halfway: Split Maintenance of Continuous Views", section 3.4, figures 4 and
7.) A pipeline is a way that rows go without being kept in between. Those of the streams run when rows come, static ones
when what they lead to is first needed, upper ones when the view is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import Enum

from headwater.algebra.nodes import Filter, Join, Node, Over, Present, Scan, Sum
from headwater.algebra.scalars import TRUE
from headwater.plan.program import Map, Program


class Kind(Enum):
    """When a pipeline runs."""

    STATIC = "static"
    STREAM = "stream"
    UPPER = "upper"


_WHEN = {
    Kind.STATIC: "when it is first needed, and again after a change of it",
    Kind.STREAM: "when rows come",
    Kind.UPPER: "when the view is read",
}


@dataclass(frozen=True)
class Pipeline:
    """One of them: where its rows come from, what is done to them, and where they are kept."""

    number: int
    kind: str
    steps: tuple[str, ...]
    when: str

    def to_dict(self) -> dict[str, object]:
        return asdict(self)


def pipelines_of(program: Program) -> tuple[Pipeline, ...]:
    """The pipelines of a program, each after those that it needs; the last one gives the view's rows."""
    assert program.upper is not None
    maps, held = ({one.name: one for one in some} for some in (program.maps, program.held))
    out: list[Pipeline] = []

    def add(kind: Kind, steps: Sequence[str]) -> None:
        out.append(Pipeline(len(out) + 1, kind.value, tuple(steps), _WHEN[kind]))

    ways = list(_ways(program.upper, ()))
    for place, (scan, above) in enumerate(ways):
        last = place == len(ways) - 1
        steps = _steps(above, last)
        if scan.relation in held:
            add(Kind.STATIC, [*_below(held[scan.relation]), *steps])
        elif scan.relation in maps:
            one = maps[scan.relation]
            for stream in sorted(one.definition.relations):
                add(Kind.STREAM, [stream, *_inside(one), one.name])
            add(Kind.UPPER, [one.name, *steps])
        elif scan.grows:
            add(Kind.STREAM, [scan.relation, "stored"])
            add(Kind.UPPER, [scan.relation, *steps])
        else:
            add(Kind.UPPER if last else Kind.STATIC, [scan.relation, *steps])
    return tuple(out)


def pipeline_lines(pipelines: Sequence[Pipeline]) -> Iterator[str]:
    """Pipelines as text."""
    for kind in Kind:
        numbers = ", ".join(str(one.number) for one in pipelines if one.kind == kind.value)
        if numbers:
            yield f"{_WHEN[kind]}: {numbers}"
    for one in pipelines:
        yield f"  {one.number} {one.kind:<6} {' → '.join(one.steps)}"


def _ways(node: Node, above: tuple[Node, ...]) -> Iterator[tuple[Scan, tuple[Node, ...]]]:
    """The scans of a tree from left to right, each with the nodes above it, the nearest first."""
    if isinstance(node, Scan):
        yield node, above
    for child in node.children:
        yield from _ways(child, (node, *above))


def _steps(above: Sequence[Node], last: bool) -> Iterator[str]:
    """What is done to rows on their way up: to the side of a join that is built, or to the view's rows."""
    merged = False
    for node in above:
        if isinstance(node, Join):
            if not last:
                yield "build side of a join"
                return
            yield "join"
        elif isinstance(node, Sum):
            yield f"group by {_keys(node)}" if merged or not node.keys else f"merge groups of {_keys(node)}"
            merged = True
        elif isinstance(node, Present):
            if node.having != TRUE:
                yield f"having {node.having}"
        elif isinstance(node, Filter):
            yield f"filter {node.predicate}"
        elif isinstance(node, Over):
            yield "window functions"
    yield "rows of the view" if last else "kept for the rows of the view"


def _below(one: Map) -> Iterator[str]:
    yield " ⋈ ".join(sorted(one.definition.relations))
    yield one.name


def _inside(one: Map) -> Iterator[str]:
    """What stands between a stream and the map that takes it."""
    for node in one.definition.walk():
        if isinstance(node, Filter):
            yield f"filter {node.predicate}"
    if isinstance(one.definition, Sum):
        yield f"group by {_keys(one.definition)}"


def _keys(sums: Sum) -> str:
    return ", ".join(str(key).rpartition(".")[2] for _, key in sums.keys) or "nothing"
