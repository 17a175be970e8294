"""From a view's query to its program."""

from __future__ import annotations

from collections.abc import Callable

from headwater.algebra.nodes import Node
from headwater.plan.program import Program
from headwater.plan.strategies import first_order, recompute

STRATEGIES: dict[str, Callable[[str, Node], Program]] = {
    first_order.NAME: first_order.first_order,
    recompute.NAME: recompute.recompute,
}
DEFAULT = first_order.NAME


def compile_view(view: str, query: Node, strategy: str = DEFAULT) -> Program:
    """The program that maintains a view under a strategy."""
    return STRATEGIES[strategy](view, query)
