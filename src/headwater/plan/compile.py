"""From a view's query to its program."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field, replace

from headwater.algebra.nodes import During, Join, Keep, Node, Over, Present, Sum
from headwater.errors import NotSupported
from headwater.plan.blocks import cut
from headwater.plan.choose import MARGIN, cheapest, cheapest_of
from headwater.plan.cost import cost_of
from headwater.plan.finer import NAME as FINER
from headwater.plan.finer import Finer, read_finer, ways_to_keep
from headwater.plan.program import BlockPlan, Map, Program, Recompute, Rival, Statement
from headwater.plan.share import needed, share
from headwater.plan.sizes import Sizes
from headwater.plan.statistics import Statistics
from headwater.plan.strategies import first_order, recompute, reevaluate, split, tree, viewlet

#: Ways to maintain a block: each gives the plans that are worth weighing, in doubt the first.
BLOCKS: dict[str, Callable[[Map, str, int, Sizes], list[BlockPlan]]] = {
    tree.NAME: tree.trees,
    viewlet.NAME: lambda block, view, number, sizes: [viewlet.viewlet(block, view, number)],
    first_order.NAME: lambda block, view, number, sizes: [first_order.first_order(block)],
    viewlet.NAIVE: lambda block, view, number, sizes: [viewlet.viewlet_naive(block, view, number)],
}
#: What `choose` weighs; in doubt the first. A view is never recomputed unless somebody asks for it.
CANDIDATES = (tree.NAME, viewlet.NAME, first_order.NAME)
#: What it weighs where programs run in tasks: maps that are read amid the steps of an epoch cannot be divided.
DIVISIBLE = (tree.NAME, first_order.NAME)
STRATEGIES = (*BLOCKS, reevaluate.NAME, recompute.NAME)

#: One block of a view may join so many relations: the price of a join's plan grows faster than its size.
MOST_JOINED = 64


@dataclass(frozen=True)
class Surroundings:
    """What a view is compiled among.

    Attributes:
        programs: of the views that there are, whose maps it shares.
        static: relations that do not change.
        observed: what is known of the sizes and rates of relations.
        candidates: the strategies that are weighed.
    """

    programs: Sequence[Program] = ()
    static: Set[str] = frozenset()
    observed: Statistics = field(default_factory=dict)
    candidates: tuple[str, ...] = CANDIDATES

    def maps_beside(self, view: str) -> frozenset[str]:
        """Maps that there are, whether the view needs them or not."""
        return frozenset(one.name for program in self.programs if program.view != view for one in program.maps)


NOWHERE = Surroundings()


def compile_view(view: str, query: Node, strategy: str | None = None, among: Surroundings = NOWHERE) -> Program:
    """The program that maintains a view: under a strategy, or under the one that is expected to cost least.

    Raises:
        NotSupported: HW215, a block is too large.
    """
    return _checked(_chosen(view, query, among) if strategy is None else _under(view, query, strategy, among))


def _checked(program: Program) -> Program:
    most = max(_joined(one) for one in program.definitions)
    if most > MOST_JOINED:
        raise NotSupported(
            "HW215",
            f"view {program.view} joins {most} relations at once; {MOST_JOINED} is the most",
            hint="make a view of some of them, and join with that",
        )
    return program


def compile_split(view: str, query: Node, among: Surroundings = NOWHERE) -> Program:
    """The program of a view that is evaluated when it is read; conditions on the clock are filters in its query."""
    return _checked(share(split.split(view, query), among.programs))


def compile_from_split(view: str, query: Node, among: Surroundings = NOWHERE) -> Program:
    """The program that has the maps of `compile_split`, and evaluates the view anew whenever one changes."""
    return _checked(share(split.eager(split.split(view, query)), among.programs))


def keep_finer(sums: Sum, among: Surroundings = NOWHERE) -> Finer:
    """Groups for several views, kept in the cheapest way."""
    plans = ways_to_keep(sums, Sizes(among.observed))
    return Finer(sums, cheapest_of(plans[0].maps[-1], plans, among.observed, among.static))


def compile_finer(view: str, query: Node, finer: Finer, among: Surroundings = NOWHERE) -> Program:
    """The program of a view whose groups follow from finer ones wherever they can, and else cost least."""
    plans: list[BlockPlan] = []
    names: list[str] = []
    observed = dict(among.observed)
    blocks = cut(view, query)
    number = len(blocks)
    for one in blocks:
        read = read_finer(one, finer)
        if read is not None:
            ways = {FINER: read}
        else:
            ways = {name: _planned(name, one, view, number, observed, among) for name in CANDIDATES}
        number += sum(len(way.maps) - 1 for way in ways.values())
        name, observed = cheapest(one, ways, observed, among.static)
        plans.append(ways[name])
        names += [name] if len(ways[name].maps) > 1 else []
    program = _assembled(view, ", ".join(dict.fromkeys(names)) or first_order.NAME, query, plans, among)
    return _checked(replace(program, hinted=False))


def weigh(view: str, query: Node, among: Surroundings) -> list[tuple[Program, Rival]]:
    """The view's program under each strategy, with what it is expected to cost; cheapest first."""
    programs = [_under(view, query, name, among) for name in STRATEGIES]
    weighed = [_weighed(one, among) for name, one in zip(STRATEGIES, programs, strict=True) if one.strategy == name]
    return sorted(weighed, key=lambda one: one[1].milliseconds)


def _weighed(program: Program, among: Surroundings) -> tuple[Program, Rival]:
    cost = cost_of(program, among.observed, among.maps_beside(program.view))
    return program, Rival(program.strategy, cost.milliseconds, cost.statements, cost.rows)


def _chosen(view: str, query: Node, among: Surroundings) -> Program:
    """The cheapest way for each block; beside it, what one strategy for all blocks would have cost."""
    plans: list[BlockPlan] = []
    pure: dict[str, list[BlockPlan]] = {name: [] for name in among.candidates}
    names: list[str] = []
    observed = dict(among.observed)
    blocks = cut(view, query)
    number = len(blocks)
    for one in blocks:
        ways = {name: _planned(name, one, view, number, observed, among) for name in among.candidates}
        number += sum(len(way.maps) - 1 for way in ways.values())
        name, observed = cheapest(one, ways, observed, among.static)
        plans.append(ways[name])
        names += [name] if any(len(way.maps) > 1 for way in ways.values()) else []
        for other, way in ways.items():
            pure[other].append(way)
    strategy = ", ".join(dict.fromkeys(names)) or first_order.NAME
    program = _assembled(view, strategy, query, plans, among)
    weighed = [_weighed(program, among)]
    if names:
        others = [name for name in among.candidates if name != strategy]
        weighed += [_weighed(_assembled(view, name, query, pure[name], among), among) for name in others]
    anew = reevaluate.reevaluate(view, query)
    if anew is not None:
        weighed.append(_weighed(share(anew, among.programs), among))
    best, rival = min(weighed, key=lambda one: one[1].milliseconds)
    chosen = best if rival.milliseconds < weighed[0][1].milliseconds * MARGIN else program
    rivals = sorted((rival for _, rival in weighed), key=lambda one: one.milliseconds)
    return replace(chosen, hinted=False, rivals=tuple(rivals))


def _under(view: str, query: Node, strategy: str, among: Surroundings) -> Program:
    if strategy == recompute.NAME:
        return recompute.recompute(view, query)
    if strategy == reevaluate.NAME:
        found = reevaluate.reevaluate(view, query)
        return share(found, among.programs) if found is not None else _under(view, query, tree.NAME, among)
    plans: list[BlockPlan] = []
    observed = dict(among.observed)
    blocks = cut(view, query)
    number = len(blocks)
    for one in blocks:
        plans.append(_planned(strategy, one, view, number, observed, among))
        number += len(plans[-1].maps) - 1
        _, observed = cheapest(one, {strategy: plans[-1]}, observed, among.static)
    names = [first_order.NAME] if any(one.given_up for one in plans) else [strategy]
    names += [strategy] if any(len(one.maps) > 1 for one in plans) else []
    return _assembled(view, ", ".join(dict.fromkeys(names)), query, plans, among)


def _planned(strategy: str, block: Map, view: str, number: int, observed: Statistics, among: Surroundings) -> BlockPlan:
    """A block under a strategy; of several plans the cheapest."""
    plans = BLOCKS[strategy](block, view, number, Sizes(observed))
    return cheapest_of(block, plans, observed, among.static)


def _assembled(view: str, strategy: str, query: Node, plans: list[BlockPlan], among: Surroundings) -> Program:
    maps = tuple(one for plan in plans for one in plan.maps)
    statements: list[Statement] = [one for plan in plans for one in plan.statements]
    kept = [one for one in statements if isinstance(one, Recompute) or one.on not in among.static]
    return share(needed(Program(view, strategy, query, maps, tuple(kept))), among.programs)


def _joined(node: Node) -> int:
    """How many relations are joined with each other in a tree; what is kept or grouped below is one."""
    known: dict[int, int] = {}

    def count(one: Node) -> int:
        if id(one) not in known:
            counts = [
                1 if isinstance(child, Keep | During | Present | Over) else count(child) for child in one.children
            ]
            known[id(one)] = sum(counts) if isinstance(one, Join) else max(counts, default=1)
        return known[id(one)]

    return count(node)
