"""Split maintenance: some work when rows come, the rest when somebody asks.

(Winter, Schmidt, Neumann, Kemper, "Meet Me Halfway: Split Maintenance of Continuous Views", sections 3.1 to 3.4.) A
query is cut into three kinds of pipelines:

stream:
    what a stream's rows go through up to the first aggregation. They run when rows come, and leave partial sums.
static:
    what depends on tables and other views alone. It is evaluated when it is first needed, and held until one of these
    changes; the paper evaluates it once, and lets nothing change.
upper:
    all the rest, over partial sums and static results, evaluated when the view is read.

Streams are added up before they are joined, by what the join needs of them. So tables that they are joined with may
change, which the paper has to refuse. A stream that no aggregation comes first for is stored, as far as it is needed.
Conditions on the clock are left to the upper pipelines: what they read of a stream is a key of its partial sums.
"""

from __future__ import annotations

from dataclasses import replace

from headwater.algebra.clock import reads_clock
from headwater.algebra.during import follows_clock
from headwater.algebra.folds import Pick
from headwater.algebra.functions import may_raise
from headwater.algebra.joins import FlatJoin, flatten, joined
from headwater.algebra.nodes import (
    COUNT,
    ONE,
    Filter,
    Join,
    Node,
    Present,
    Project,
    Scan,
    Sum,
    only_grows,
    rebuild,
    scalars,
)
from headwater.algebra.renaming import with_definitions
from headwater.algebra.scalars import Scalar, call, conjunction
from headwater.algebra.simplify import simplify
from headwater.plan.blocks import cut
from headwater.plan.program import Map, Program, Recompute, Statement
from headwater.plan.strategies.first_order import statements_of
from headwater.plan.strategies.sums import Block, Part, again, names_of, over, stored

NAME = "split"


def split(view: str, query: Node) -> Program:
    """Compile a view's query; conditions on the clock are filters in it."""
    made = _Lower(view, cut(view, query))
    root = made.definitions[view]
    held = _Held(view, {one.name for one in made.bottom})
    upper = simplify(root if held.is_static(root) else held.cut(root))
    statements: list[Statement] = [one for each in made.bottom for one in statements_of(each)]
    maps, above = tuple(made.bottom), tuple(held.maps)
    return Program(view, NAME, query, maps, tuple(statements), upper=upper, held=above)


def eager(program: Program) -> Program:
    """The same maps, with the view evaluated anew whenever one of them, or a table, changes."""
    assert program.upper is not None
    rows = with_definitions(program.upper, {one.name: one.definition for one in program.held})
    # Rows are compared as a whole: the projection keeps the view from being stored by group.
    definition = Project(rows, tuple((f.name, rows.column(f.name)) for f in rows.schema))
    maps = (*program.maps, Map(program.view, definition))
    return replace(program, maps=maps, statements=(*program.statements, Recompute(program.view)), upper=None, held=())


class _Lower:
    """The maps that stream pipelines fill, and what each block is over them."""

    def __init__(self, view: str, blocks: tuple[Map, ...]) -> None:
        self._view = view
        self._number = len(blocks)
        self._own = {one.name for one in blocks}
        self.bottom: list[Map] = []
        self.definitions: dict[str, Node] = {}
        for one in blocks:
            self.definitions[one.name] = self._block(one)

    def _block(self, one: Map) -> Node:
        present = one.present
        if present is None:
            return with_definitions(one.definition, self.definitions)
        merges = all(pick.function in ("min", "max") for _, pick in present.sums.picks)
        if merges and self._streams(present.sums.input):
            return self._summed(present)
        if present.sums.picks:
            return self._picked(present) if merges else with_definitions(present, self.definitions)
        block = Block.of_any(present.sums)
        if block is None or not any(map(self._streams, block.leaves)):
            return with_definitions(present, self.definitions)
        parts = [self._part(block, i) for i in range(len(block.leaves))]
        return replace(present, input=block.whole(parts))

    def _summed(self, present: Present) -> Node:
        """A stream that is added up as it comes; the map is the same that a view would have that is kept."""
        sums = present.sums
        made = self._store(sums)
        scan = Scan(made.name, f"#t{self._number}", made.fields)
        read = {f.name: scan.column(f"{scan.alias}.{f.name}") for f in made.fields}
        return replace(present, input=again(sums, scan, read))

    def _streams(self, leaf: Node) -> bool:
        """Whether it is streams one beside the other: a join of streams would have to look back into them."""
        if leaf.relations & self._own or follows_clock(leaf) or any(isinstance(one, Join) for one in leaf.walk()):
            return False
        return bool(leaf.relations) and only_grows(leaf)

    def _part(self, block: Block, leaf: int) -> Part:
        node = block.leaves[leaf]
        if not self._streams(node):
            return block.raw(leaf, with_definitions(node, self.definitions))
        me = frozenset({leaf})
        keys = block.needed(me, block.all, block.wanted)
        sums = block.definition(me, keys)
        made = self._store(sums)
        return stored(made.name, f"#t{self._number}", sums, me, keys, block.factors(me))

    def _store(self, sums: Sum) -> Map:
        self._number += 1
        made = Map(f"{self._view}${self._number}", sums, stepwise=True)
        self.bottom.append(made)
        return made

    def _picked(self, present: Present) -> Node:
        """Least and greatest values of a stream's rows that the clock decides on: of those of each moment."""
        sums = present.sums
        flat = flatten(sums.input)
        if len(flat.leaves) != 1 or not self._streams(flat.leaves[0]):
            return with_definitions(present, self.definitions)
        late = [one for one in flat.conditions if follows_clock(Filter(flat.leaves[0], one))]
        early = [one for one in flat.conditions if one not in late]
        keys = dict.fromkeys(flat.through(key) for _, key in sums.keys)
        keys |= {one: None for condition in late for one in _columns(condition)}
        named = tuple(zip(names_of(list(keys)), keys, strict=True))
        terms = tuple((f"s{i}", flat.through(term)) for i, (_, term) in enumerate(sums.terms, 1))
        picks = tuple((f"p{i}", pick.map(flat.through)) for i, (_, pick) in enumerate(sums.picks, 1))
        rows = Filter(flat.leaves[0], conjunction(early)) if early else flat.leaves[0]
        made = self._store(Sum(rows, named, terms, picks))
        scan = Scan(made.name, f"#t{self._number}", made.fields)
        read = {f.name: scan.column(f"{scan.alias}.{f.name}") for f in made.fields}
        known = {key: read[name] for name, key in named}
        above = Filter(scan, conjunction([over(one, known) for one in late])) if late else scan
        whole = Sum(
            above,
            tuple((name, over(flat.through(key), known)) for name, key in sums.keys),
            tuple((name, call("carry", read[own], ONE)) for (name, _), (own, _) in zip(sums.terms, terms, strict=True)),
            tuple(
                (name, Pick(pick.function, (read[own],)))
                for (name, pick), (own, _) in zip(sums.picks, picks, strict=True)
            ),
            read[COUNT],
        )
        return replace(present, input=whole)


def _columns(scalar: Scalar) -> list[Scalar]:
    return [one for one in scalar.walk() if one.columns and not one.children]


class _Held:
    """The static pipelines of an upper tree."""

    def __init__(self, view: str, bottom: set[str]) -> None:
        self._view = view
        self._bottom = bottom
        self._reads = 0
        self.maps: list[Map] = []

    def is_static(self, node: Node) -> bool:
        """Whether it depends on relations alone that are stored anyway, and on no clock."""
        scans = [one for one in node.walk() if isinstance(one, Scan)]
        stored_ones = all(not one.grows and one.relation not in self._bottom for one in scans)
        return bool(scans) and stored_ones and not follows_clock(node)

    def cut(self, node: Node) -> Node:
        """The tree that reads what is static and takes work from where it is held."""
        if isinstance(node, Join | Filter | Project):
            flat = flatten(node)
            if len(flat.leaves) > 1:
                return self._cut_join(flat)
        if not isinstance(node, Sum) and self.is_static(node):
            return self._hold(node) if _takes_work(node) else node
        return rebuild(node, tuple(self.cut(child) for child in node.children))

    def _cut_join(self, flat: FlatJoin) -> Node:
        """A join of which the static leaves that conditions connect are held together, whatever stands between them."""
        static = [i for i, leaf in enumerate(flat.leaves) if self.is_static(leaf)]
        owner = {name: i for i, leaf in enumerate(flat.leaves) for name in leaf.column_names}
        about = {one: frozenset(owner[name] for name in one.columns) for one in flat.conditions}
        own = [one for one in flat.conditions if about[one] and about[one] <= set(static) and not _waits(one)]
        together = {i: frozenset({i}) for i in static}
        for one in own:
            group = frozenset().union(*(together[i] for i in about[one]))
            together |= dict.fromkeys(group, group)
        rows: list[Node] = [self.cut(leaf) for i, leaf in enumerate(flat.leaves) if i not in together]
        for group in dict.fromkeys(together.values()):
            conditions = [one for one in own if about[one] <= group]
            part = joined([flat.leaves[i] for i in sorted(group)], conditions)
            rows.insert(0, self._hold(part) if conditions or _takes_work(part) else part)
        left = [one for one in flat.conditions if one not in own]
        return Project(joined(rows, left), tuple(flat.columns.items()))

    def _hold(self, node: Node) -> Node:
        made = next((one for one in self.maps if one.definition == node), None)
        if made is None:
            made = Map(f"{self._view}$c{len(self.maps) + 1}", node)
            self.maps.append(made)
        self._reads += 1
        scan = Scan(made.name, f"#c{self._reads}", made.fields)
        return Project(scan, tuple((f.name, scan.column(f"{scan.alias}.{f.name}")) for f in made.fields))


def _waits(condition: Scalar) -> bool:
    """Whether a condition is to be asked last: it may fail, or the clock decides it."""
    return may_raise(condition) or reads_clock(condition)


def _takes_work(node: Node) -> bool:
    """Whether reading it is more than reading a relation as it is."""
    return any(not isinstance(one, Scan | Project) and scalars(one) != () for one in node.walk())
