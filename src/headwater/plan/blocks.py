"""Cutting a view into blocks: at every `Present`, `Over`, `Keep` and `During`.

Below them everything is linear and follows from deltas; they themselves store what they show. What stands above reads
that as one more relation, named `view$1`, `view$2`, ... from the bottom up, under an alias with `#` in front, which no
query can use. Equal blocks of a view are one, and so are groups that differ in their HAVING: below others, that is a
condition on what is read.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from headwater.algebra.functions import may_raise
from headwater.algebra.nodes import (
    During,
    Filter,
    Keep,
    Node,
    Over,
    Present,
    Project,
    Scan,
    Sum,
    Values,
    Version,
    rebuild,
    transform,
)
from headwater.algebra.renaming import canonical
from headwater.algebra.scalars import TRUE, Call, Column, Scalar, call, substitute
from headwater.algebra.scalars import transform as transform_scalar
from headwater.delta.clock import coming_from, to_come
from headwater.plan.first_rows import by_bucket
from headwater.plan.program import Map

__all__ = ["cut", "fuse_present"]

#: Functions that evaluate all of their arguments.
_COMPARISONS = frozenset({"=", "<", "<=", ">", ">="})


def fuse_present(node: Node) -> Node:
    """A filter or projection right above a block becomes part of it, so that no second copy of it is stored.

    `filter[p](present[o; h]) = present[o; h and p(o)]`, `project[c](present[o; h]) = present[c(o); h]`
    """
    return transform(node, _fuse)


def _fuse(node: Node) -> Node:
    match node:
        case Filter(input=Present() | Over() as inner, predicate=predicate):
            outputs = dict(inner.outputs)
            return replace(inner, having=call("and", inner.having, substitute(predicate, outputs)))
        case Project(input=Present() | Over() as inner, columns=columns):
            outputs = dict(inner.outputs)
            return replace(inner, outputs=tuple((n, substitute(s, outputs)) for n, s in columns))
        case Keep(input=Present() | Over() | Keep() | During() as inner):
            return inner
        case Filter(input=During() as inner, predicate=predicate) if not may_raise(predicate):
            return replace(inner, input=Filter(inner.input, predicate))
        case Project(input=During() as inner, columns=columns):
            return _window_of_outputs(inner, node)
    return node


def _window_of_outputs(window: During, project: Project) -> Node:
    """`project[c](during[w](R)) = during[w'](project[c](R))`, if the columns that decide on the window are shown."""
    shown = {one.name: Column(name, one.type) for name, one in reversed(project.columns) if isinstance(one, Column)}
    if not (window.starts.columns | window.ends.columns) <= shown.keys():
        return project
    rows = replace(project, input=window.input)
    return During(rows, substitute(window.starts, shown), substitute(window.ends, shown))


def cut(view: str, node: Node) -> tuple[Map, ...]:
    """The maps of a view, inputs first; the last is the view."""
    cutter = _Cutter(view)
    root = cutter.with_blocks_replaced(transform(fuse_present(node), by_bucket))
    coming = cutter.coming(root)
    return (*cutter.maps, Map(view, root.input if isinstance(root, Keep) else root, coming=coming))


class _Cutter:
    def __init__(self, view: str) -> None:
        self._view = view
        self.maps: list[Map] = []
        self._known: dict[str, Map] = {}  # by the block's text without its names
        self._seen: dict[Node, Map] = {}
        self._reads: Counter[str] = Counter()

    def with_blocks_replaced(self, node: Node) -> Node:
        """The node over relations, in place of the blocks below it."""
        return self._by_key(rebuild(node, tuple(self._replace(child) for child in node.children)))

    def _replace(self, node: Node) -> Node:
        if not isinstance(node, Present | Over | Keep | During):
            return self.with_blocks_replaced(node)
        if isinstance(node, Present) and (apart := having_apart(node)) is not None:
            groups, condition = apart
            rows = Filter(self._replace(groups), condition)
            return Project(rows, tuple((f.name, Column(f.name, f.type)) for f in node.schema))
        if node not in self._seen:
            self._seen[node] = self._stored_once(self.with_blocks_replaced(node))
        return self._read(self._seen[node], node.column_names)

    def _stored_once(self, block: Node) -> Map:
        text = canonical(block)
        if text not in self._known:
            self._known[text] = self._store(block)
        return self._known[text]

    def _store(self, block: Node) -> Map:
        definition = block.input if isinstance(block, Keep) else block
        coming = self.coming(block)
        one = Map(f"{self._view}${len(self.maps) + 1}", definition, coming=coming)
        self.maps.append(one)
        return one

    def coming(self, block: Node) -> Scan | None:
        """What reads the map of the rows of a window that are still to come, if it needs one."""
        window = to_come(block) if isinstance(block, During) else None
        if window is None:
            return None
        kept = self._stored_once(window)
        return coming_from(kept.name, kept.fields)

    def _read(self, one: Map, names: tuple[str, ...]) -> Node:
        """A map's rows; each time under another alias, its columns under these names."""
        self._reads[one.name] += 1
        number, again = self.maps.index(one) + 1, self._reads[one.name]
        scan = Scan(one.name, f"#{number}" if again == 1 else f"#{number}_{again}", one.fields, Version.STORED)
        columns = zip(names, one.fields, strict=True)
        return Project(scan, tuple((text, scan.column(f"{scan.alias}.{f.name}")) for text, f in columns))

    def _kept(self, rows: Node) -> Node:
        return self._read(self._stored_once(Keep(rows)), rows.column_names)

    def _by_key(self, node: Node) -> Node:
        """What is read by key is a stored relation, perhaps filtered and projected."""
        if isinstance(node, Over) or (isinstance(node, Sum) and node.picks and not _merges(node)):
            return node if is_stored(node.input) else rebuild(node, (self._kept(node.input),))
        return node


def having_apart(groups: Present) -> tuple[Present, Scalar] | None:
    """Groups without their HAVING, and that as a condition on what they show; None if it must stay where it is.

    Groups are stored whether they are shown or not, so this costs nothing, and groups of several views that differ in
    nothing else are one map. It must stay if something would fail for a group that it leaves out, or not fail any more:
    what may fail has to be shown, and the HAVING has to be a comparison of it, and nothing else. The parts of an AND
    guard each other.
    """
    if groups.having == TRUE:
        return None
    shown = {one: Column(name, one.type) for name, one in reversed(groups.outputs)}
    more: dict[str, Scalar] = {}

    def over(scalar: Scalar) -> Scalar | None:
        if scalar in shown:
            return shown[scalar]
        if isinstance(scalar, Column):
            more[f"#having {scalar.name}"] = scalar
            return Column(f"#having {scalar.name}", scalar.type)
        return None

    condition = transform_scalar(groups.having, over)
    compared = set(condition.args) if isinstance(condition, Call) and condition.function in _COMPARISONS else set()
    if may_raise(condition) or any(may_raise(one) and shown[one] not in compared for _, one in groups.outputs):
        return None
    return replace(groups, outputs=(*groups.outputs, *more.items()), having=TRUE), condition


def is_stored(node: Node) -> bool:
    """Whether a tree only filters and projects one relation."""
    while isinstance(node, Filter | Project):
        node = node.input
    return isinstance(node, Scan | Values)


def _merges(sums: Sum) -> bool:
    return Map("", Present(sums, (), TRUE)).merges
