"""Rewrites that make a tree smaller and leave its meaning alone; one to a module.

Each is a pure function from node to node. None changes the names or types of the tree's columns, and `simplify` holds
them to that after every step.
"""

from __future__ import annotations

from headwater.algebra.nodes import IllFormed, Node
from headwater.algebra.simplify.drop_arms import drop_arms
from headwater.algebra.simplify.drop_empty import drop_empty
from headwater.algebra.simplify.drop_keeps import drop_keeps
from headwater.algebra.simplify.drop_sorts import drop_sorts
from headwater.algebra.simplify.evaluate_values import evaluate_values
from headwater.algebra.simplify.fold_constants import fold_constants
from headwater.algebra.simplify.groups_have_rows import groups_have_rows
from headwater.algebra.simplify.merge_filters import merge_filters
from headwater.algebra.simplify.merge_projects import merge_projects
from headwater.algebra.simplify.narrow_explodes import narrow_explodes
from headwater.algebra.simplify.own_domain import own_domain
from headwater.algebra.simplify.own_groups import own_groups
from headwater.algebra.simplify.part_times import part_times
from headwater.algebra.simplify.pushdown_predicates import pushdown_predicates
from headwater.algebra.simplify.read_fields import read_fields
from headwater.algebra.simplify.running_sums import running_sums
from headwater.algebra.simplify.unique_groups import unique_groups

REWRITES = (
    fold_constants,  # first: what is constant cannot fail, so more predicates can move
    merge_filters,
    merge_projects,  # before predicates move: they are then rewritten through one projection instead of many
    read_fields,  # after what makes a struct has met what reads it
    pushdown_predicates,
    part_times,  # once conditions have come to where a part's beginning is computed
    groups_have_rows,  # after the conditions have come to the groups
    fold_constants,  # a predicate that moved below a projection may have become constant there
    merge_filters,
    drop_arms,
    drop_empty,
    drop_keeps,  # what was to be read several times may be read once by now
    evaluate_values,
    unique_groups,
    fold_constants,  # what was asked of a count is asked of one row now
    merge_projects,
    own_domain,  # after groups of one row have opened the way to the domain
    drop_keeps,
    pushdown_predicates,
    merge_filters,
    merge_projects,  # predicates that moved out of the way leave projections side by side
    own_groups,  # after the conditions have come to the rows they are about, and nothing is in between
    pushdown_predicates,
    merge_filters,
    merge_projects,
    narrow_explodes,  # after projections have come to the sums that read them
    running_sums,  # after the conditions have come to the joins they belong to
    drop_sorts,  # after what reads the groups has come to them
    evaluate_values,
)


def simplify(node: Node) -> Node:
    """The tree after all rewrites."""
    for rewrite in REWRITES:
        after = rewrite(node)
        if [(f.name, f.type) for f in after.schema] != [(f.name, f.type) for f in node.schema]:
            raise IllFormed(f"{rewrite.__name__} changed the columns of\n{node}\nto those of\n{after}")
        node = after
    return node
