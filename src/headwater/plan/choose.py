"""Choosing how to maintain a block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from headwater.algebra.nodes import Node
from headwater.plan.cost import Costing
from headwater.plan.program import BlockPlan, Map, Program
from headwater.plan.statistics import Observed

#: A way must be better than one that is listed before it by this much: estimates are rough.
MARGIN = 0.95


def cheapest(
    block: Map, ways: Mapping[str, BlockPlan], observed: Mapping[str, Observed], static: Set[str]
) -> tuple[str, dict[str, Observed]]:
    """The cheapest way for a block, and what is known then: how large the block is, and how fast it changes.

    Args:
        block: which.
        ways: its plans, by name; in doubt the first.
        observed: what is known of the relations and blocks below.
        static: relations that do not change.
    """
    best: tuple[float, str, Costing] | None = None
    for name, plan in ways.items():
        costing = _costing(block, plan, observed, static)
        milliseconds = costing.total().milliseconds
        if best is None or milliseconds < best[0] * MARGIN:
            best = milliseconds, name, costing
    assert best is not None
    return best[1], {**observed, block.name: best[2].observed(block.name)}


def cheapest_of(
    block: Map, plans: Sequence[BlockPlan], observed: Mapping[str, Observed], static: Set[str]
) -> BlockPlan:
    """The cheapest of several plans of one kind; in doubt the first. Arguments as of `cheapest`."""
    if len(plans) == 1:
        return plans[0]
    ways = {str(i): one for i, one in enumerate(plans)}
    return ways[cheapest(block, ways, observed, static)[0]]


def _costing(block: Map, plan: BlockPlan, observed: Mapping[str, Observed], static: Set[str]) -> Costing:
    kept = tuple(one for one in plan.statements if getattr(one, "on", None) not in static)
    return Costing(Program(block.name, "", _root(plan), tuple(plan.maps), kept), observed)


def _root(plan: BlockPlan) -> Node:
    return plan.maps[-1].definition
