"""From a view's query to its program."""

from __future__ import annotations

from collections.abc import Callable

from headwater.algebra.nodes import Join, Keep, Node, Over, Present
from headwater.errors import NotSupported
from headwater.plan.program import Program
from headwater.plan.strategies import first_order, recompute, tree

STRATEGIES: dict[str, Callable[[str, Node], Program]] = {
    first_order.NAME: first_order.first_order,
    recompute.NAME: recompute.recompute,
    tree.NAME: tree.tree,
}
DEFAULT = first_order.NAME


#: One block of a view may join so many relations: the price of a join's plan grows faster than its size.
MOST_JOINED = 64


def compile_view(view: str, query: Node, strategy: str = DEFAULT) -> Program:
    """The program that maintains a view under a strategy.

    Raises:
        NotSupported: HW215, a block is too large.
    """
    program = STRATEGIES[strategy](view, query)
    most = max(_joined(one.definition) for one in program.maps)
    if most > MOST_JOINED:
        raise NotSupported(
            "HW215",
            f"view {view} joins {most} relations at once; {MOST_JOINED} is the most",
            hint="make a view of some of them, and join with that",
        )
    return program


def _joined(node: Node) -> int:
    """How many relations are joined with each other in a tree; what is kept or grouped below is one."""
    known: dict[int, int] = {}

    def count(one: Node) -> int:
        if id(one) not in known:
            counts = [1 if isinstance(child, Keep | Present | Over) else count(child) for child in one.children]
            known[id(one)] = sum(counts) if isinstance(one, Join) else max(counts, default=1)
        return known[id(one)]

    return count(node)
