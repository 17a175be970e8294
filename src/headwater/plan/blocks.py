"""Cutting a view into blocks at every `Present`.

Below a `Present` everything is linear and follows from deltas; the `Present` itself stores what it shows. What stands
above reads it as one more relation, named `view$1`, `view$2`, ... from the bottom up, under an alias with `#` in front,
which no query can use.
"""

from __future__ import annotations

from headwater.algebra.nodes import Filter, Node, Present, Project, Scan, Version, rebuild
from headwater.algebra.scalars import call, substitute
from headwater.plan.program import Map

__all__ = ["cut", "fuse_present"]


def fuse_present(node: Node) -> Node:
    """A filter or projection right above a `Present` becomes part of it, so that no second copy of it is stored.

    `filter[p](present[o; h]) = present[o; h and p(o)]`, `project[c](present[o; h]) = present[c(o); h]`
    """
    node = rebuild(node, tuple(fuse_present(child) for child in node.children))
    match node:
        case Filter(input=Present() as inner, predicate=predicate):
            outputs = dict(inner.outputs)
            return Present(inner.input, inner.outputs, call("and", inner.having, substitute(predicate, outputs)))
        case Project(input=Present() as inner, columns=columns):
            outputs = dict(inner.outputs)
            return Present(inner.input, tuple((n, substitute(s, outputs)) for n, s in columns), inner.having)
    return node


def cut(view: str, node: Node) -> tuple[Map, ...]:
    """The maps of a view, inputs first; the last is the view."""
    maps: list[Map] = []

    def replace_presents(one: Node) -> Node:
        one = rebuild(one, tuple(replace_presents(child) for child in one.children))
        if not isinstance(one, Present):
            return one
        maps.append(Map(f"{view}${len(maps) + 1}", one))
        scan = Scan(maps[-1].name, f"#{len(maps)}", one.schema, Version.STORED)
        return Project(scan, tuple((f.name, scan.column(f"{scan.alias}.{f.name}")) for f in one.schema))

    root = rebuild(fused := fuse_present(node), tuple(replace_presents(child) for child in fused.children))
    return (*maps, Map(view, root))
