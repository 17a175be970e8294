"""Classical incremental maintenance: deltas joined with the stored inputs.

One map per block, one statement per block and occurrence of a changed relation (Ahmad et al., "DBToaster", section 2.1,
"first-order IVM").
"""

from __future__ import annotations

from headwater.algebra.nodes import Node, Present
from headwater.delta.derive import derive
from headwater.plan.blocks import cut
from headwater.plan.program import Add, Program

NAME = "first order"


def first_order(view: str, query: Node) -> Program:
    """Compile a view's query."""
    maps = cut(view, query)
    statements: list[Add] = []
    for one in maps:
        linear = one.definition.input if isinstance(one.definition, Present) else one.definition
        for relation in sorted(linear.relations):
            statements += [Add(relation, one.name, term) for term in derive(linear, relation)]
    return Program(view, NAME, query, maps, tuple(statements))
