"""Maps at the bottom, and everything above them evaluated anew whenever one of them changes.

Where a change of a few rows changes most of what is computed from them (a comparison with an uncorrelated aggregate, a
running sum), a delta is no smaller than the whole. Then the relations are kept as maps, added up by what the query
needs of them, and the query is evaluated from these and compared with what the view showed. It reads maps, never the
inputs. (Ahmad et al., "DBToaster", section 5.1, "for some queries, it is more efficient to entirely recompute"; the
upper pipelines of Umbra's continuous views.)
"""

from __future__ import annotations

from dataclasses import replace

from headwater.algebra.nodes import Node, Project, Scan, Sum, Version, transform
from headwater.delta.derive import derive
from headwater.plan.blocks import cut
from headwater.plan.program import Map, Program, Recompute, Statement
from headwater.plan.strategies.first_order import statements_of
from headwater.plan.strategies.sums import Block, Part, again, stored

NAME = "re-evaluate"


def reevaluate(view: str, query: Node) -> Program | None:
    """Compile a view's query; None if it would have to read its inputs, or there is nothing above the maps."""
    made = _Upper(view, cut(view, query))
    if not made.bottom:
        return None
    root = made.definitions[view]
    columns = tuple((f.name, root.column(f.name)) for f in root.schema)
    maps = (*made.bottom, Map(view, Project(root, columns)))
    if maps[-1].definition.relations - {one.name for one in made.bottom}:
        return None
    statements: list[Statement] = [one for each in made.bottom for one in statements_of(each)]
    return Program(view, NAME, query, maps, (*statements, Recompute(view)))


class _Upper:
    """The bottom maps of a view, and the definition of each block above them over these."""

    def __init__(self, view: str, blocks: tuple[Map, ...]) -> None:
        self._view = view
        self._number = len(blocks)
        self._own = {one.name for one in blocks}
        self.bottom: list[Map] = []
        self.definitions: dict[str, Node] = {}
        for one in blocks:
            if one.name != view and not one.definition.relations & self._own and one.keys is None:
                self._keep(one)
            else:
                self.definitions[one.name] = self._inlined(one)

    def _keep(self, one: Map) -> None:
        """A block at the bottom; as partial sums, if nothing but changes is needed to add to them."""
        present = one.present
        if present is None or not adds_at_once(present.sums):
            self.bottom.append(one)
            return
        self.bottom.append(Map(one.name, present.sums, stepwise=True))
        scan = Scan(one.name, f"#s{len(self.bottom)}", present.sums.schema)
        read = {f.name: scan.column(f"{scan.alias}.{f.name}") for f in present.sums.schema}
        self.definitions[one.name] = replace(present, input=again(present.sums, scan, read))

    def _inlined(self, one: Map) -> Node:
        block = Block.of(one.present.sums) if one.present is not None else None
        if block is None or one.present is None:
            return transform(one.definition, self._replaced)
        parts = [self._part(block, i) for i in range(len(block.leaves))]
        return replace(one.present, input=block.whole(parts))

    def _part(self, block: Block, leaf: int) -> Part:
        node = block.leaves[leaf]
        if node.relations & self._own:
            return block.raw(leaf, transform(node, self._replaced))
        me = frozenset({leaf})
        keys = block.needed(me, block.all, block.wanted)
        self._number += 1
        sums = block.definition(me, keys)
        made = Map(f"{self._view}${self._number}", sums, stepwise=adds_at_once(sums))
        self.bottom.append(made)
        return stored(made.name, f"#t{self._number}", sums, me, keys, block.factors(me))

    def _replaced(self, node: Node) -> Node:
        """A block in place of the scan that read it."""
        if not isinstance(node, Scan) or node.relation not in self.definitions:
            return node
        rows = self.definitions[node.relation]
        names = zip(node.column_names, rows.schema, strict=True)
        return Project(rows, tuple((name, rows.column(f.name)) for name, f in names))


def adds_at_once(sums: Sum) -> bool:
    """Whether the change of a sum needs nothing but the change of what it sums: no join, no pick."""
    terms = [term for name in sums.relations for term in derive(sums, name)] if not sums.picks else []
    scans = [node for term in terms for node in term.walk() if isinstance(node, Scan)]
    return bool(scans) and all(scan.version is Version.DELTA for scan in scans)
