"""Classical incremental maintenance: deltas joined with the stored inputs.

One map per block, one statement per block and occurrence of a changed relation (Ahmad et al., "DBToaster", section 2.1,
"first-order IVM").
"""

from __future__ import annotations

from dataclasses import replace

from headwater.algebra.clock import CLOCK
from headwater.algebra.nodes import During, Present, Project
from headwater.delta.clock import entering, leaving
from headwater.delta.derive import derive
from headwater.plan.program import Add, BlockPlan, Map, Statement, Touch

NAME = "first order"


def first_order(one: Map) -> BlockPlan:
    """How a block is maintained by its own delta."""
    return BlockPlan([one], statements_of(one))


def statements_of(one: Map) -> list[Statement]:
    """What follows for a map from a change of each relation that it reads."""
    if isinstance(one.definition, During):
        return _window(one, one.definition)
    keys = one.keys
    if keys is not None:
        return [
            Touch(relation, one.name, Project(term, keys))
            for relation in sorted(one.source.relations)
            for term in derive(one.source, relation)
        ]
    sums = one.present.sums if one.merges and one.present is not None else one.sums
    if sums is not None and sums.picks:
        return [
            Add(relation, one.name, replace(sums, input=term))
            for relation in sorted(sums.relations)
            for term in derive(sums.input, relation)
        ]
    linear = one.definition.input if isinstance(one.definition, Present) else one.definition
    return [Add(relation, one.name, term) for relation in sorted(linear.relations) for term in derive(linear, relation)]


def _window(one: Map, window: During) -> list[Statement]:
    """A window follows the clock, the map of its rows to come, and what it is a window of."""
    by_clock = [Add(CLOCK, one.name, term) for term in leaving(window, one.name, one.fields)]
    by_time = [Add(one.coming.relation, one.name, entering(window, one.coming))] if one.coming else []
    by_change = [Add(name, one.name, term) for name in sorted(window.relations) for term in derive(window, name)]
    return [*by_clock, *by_time, *by_change]
