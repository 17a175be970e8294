"""The normal form by which views are matched: a join of leaves under conditions, shown as rows or as groups.

These are Goldstein and Larson's SPJG expressions ("Optimizing queries using materialized views", SIGMOD 2001, section
2). A leaf is whatever is joined: mostly the scan of a relation, else a tree that is no join, filter or projection, such
as an outer join, which is only ever compared as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from headwater.algebra.folds import Pick
from headwater.algebra.joins import FlatJoin, flatten
from headwater.algebra.keys import unique_by
from headwater.algebra.nodes import COUNT, ONE, Named, Node, Present, Project
from headwater.algebra.renaming import canonical
from headwater.algebra.scalars import TRUE, Column, Literal, Scalar
from headwater.plan.facts import Facts

#: Projections over projections may grow without bound when they are seen through; larger ones are let be.
_MOST_SCALARS = 4000


class NoMatch(Exception):
    """A view does not answer a query; the text says why, after "it"."""


@dataclass(frozen=True)
class Groups:
    """What a block of groups keeps of them and shows.

    Attributes:
        keys: over the leaves' columns, as are terms and picks.
        terms: what is added up, by the name of its total.
        picks: what does not add up.
        outputs: over names of keys, totals, picks and the count of rows, as is `having`.
        having: which groups are shown.
    """

    keys: tuple[Named, ...]
    terms: tuple[Named, ...]
    picks: tuple[tuple[str, Pick], ...]
    outputs: tuple[Named, ...]
    having: Scalar


@dataclass(frozen=True)
class Block:
    """Leaves that are joined, conditions that hold, and what is shown: columns of each row, or groups.

    Attributes:
        leaves: what is joined; no two have a column of the same name.
        conditions: over the leaves' columns.
        columns: what is shown, over the leaves' columns; nothing where there are groups.
        groups: of a block that groups.
    """

    leaves: tuple[Node, ...]
    conditions: tuple[Scalar, ...]
    columns: Mapping[str, Scalar]
    groups: Groups | None = None

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """Of each leaf what it is, whatever its columns are called: equal ones have the same rows."""
        return tuple(canonical(leaf) for leaf in self.leaves)

    @cached_property
    def facts(self) -> Facts:
        """What is known of its rows."""
        return Facts(self.conditions, self.not_null)

    @cached_property
    def not_null(self) -> frozenset[str]:
        """Columns of leaves that are never NULL."""
        return frozenset(f.name for leaf in self.leaves for f in leaf.schema if not f.nullable)


def block_of(node: Node) -> Block | None:
    """A tree as a block; None if it is too large, or leaves have columns of the same name."""
    if isinstance(node, Present) and node.sums.count == ONE:
        sums = node.sums
        flat = flatten(sums.input)
        if not _is_fit(flat):
            return None
        groups = Groups(
            tuple((name, flat.through(key)) for name, key in sums.keys),
            tuple((name, flat.through(term)) for name, term in sums.terms),
            tuple((name, pick.map(flat.through)) for name, pick in sums.picks),
            node.outputs,
            node.having,
        )
        return Block(flat.leaves, flat.conditions, {}, groups)
    flat = flatten(node)
    return Block(flat.leaves, flat.conditions, flat.columns) if _is_fit(flat) else None


def _is_fit(flat: FlatJoin) -> bool:
    names = [name for leaf in flat.leaves for name in leaf.column_names]
    return len(set(names)) == len(names) and flat.size <= _MOST_SCALARS


def ungrouped(node: Node, keys: Mapping[str, tuple[str, ...]]) -> Block | None:
    """Groups that have one row each, as a block of rows: GROUP BY a key of the rows leaves them as they are.

    Args:
        node: a view's query.
        keys: what tells the rows of relations apart.
    """
    if not isinstance(node, Present) or node.having != TRUE or not node.sums.keys:
        return None
    block = block_of(node)
    if block is None or block.groups is None:
        return None
    by = frozenset(key.name for _, key in block.groups.keys if isinstance(key, Column))
    rows = Project(node.sums.input, tuple((name, key) for name, key in node.sums.keys if isinstance(key, Column)))
    names = frozenset(name for name, _ in rows.columns)
    if not by or not unique_by(rows, names, keys):
        return None
    of: dict[str, Scalar] = {**dict(block.groups.keys), COUNT: ONE}
    columns = {}
    for name, scalar in block.groups.outputs:
        if isinstance(scalar, Column) and scalar.name in of:
            columns[name] = of[scalar.name]
        elif isinstance(scalar, Literal):
            columns[name] = scalar
    return Block(block.leaves, block.conditions, columns)
