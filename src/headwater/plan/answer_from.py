"""Rewriting a query onto views: which blocks of its tree can be computed from which views, biggest blocks first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from headwater import types as t
from headwater.algebra.nodes import IllFormed, Node, Scan, Sum, Values, rebuild
from headwater.plan.match import Offer, computed_from
from headwater.plan.spjg import NoMatch, block_of, ungrouped

#: So many views may stand in one block, one after the other.
_MOST_VIEWS = 6
#: No view is looked for that answers a block with more nodes, written out: what stands in several places makes a text
#: grow by powers, and blocks are compared by their texts.
_MOST_NODES = 3_000
#: How many rows a relation has, about.
Rows = Callable[[str], float]
#: Whether to compute something from a view: rows that are read without it, and with it.
Decide = Callable[[float, float], bool]


def fewer(before: float, after: float) -> bool:
    """Take a view if fewer rows are read with it."""
    return after < before


@dataclass(frozen=True)
class Use:
    """A view that answers a block of a query.

    Attributes:
        view: its name.
        compensation: the block, computed from it.
        before: rows that the block reads without it.
        after: rows that it reads now.
    """

    view: str
    compensation: Node
    before: float
    after: float


@dataclass
class Outcome:
    """What came of looking for views.

    Attributes:
        node: the query's tree, over views where these answer.
        uses: the views that answer, in the order in which they were found.
        refused: views that were tried, and why they do not answer.
    """

    node: Node
    uses: list[Use] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


def offers_of(view: str, fields: t.Schema, query: Node, keys: Mapping[str, tuple[str, ...]]) -> list[Offer]:
    """What a view has to offer: its block, and the rows of groups that have one row each.

    Args:
        view: its name.
        fields: its columns.
        query: what it holds, over relations that are current whenever it is.
        keys: what tells the rows of relations apart.
    """
    blocks = [block_of(query), ungrouped(query, keys)]
    return [Offer(view, fields, one) for one in blocks if one is not None]


class Views:
    """Views that may answer, found by what they read: only those that read nothing else than a block are tried."""

    def __init__(self, offers: Iterable[Offer] = ()) -> None:
        self._by_leaf: dict[str, list[Offer]] = {}
        for one in offers:
            self._by_leaf.setdefault(min(one.block.kinds), []).append(one)

    def __bool__(self) -> bool:
        return bool(self._by_leaf)

    def reading(self, kinds: Sequence[str]) -> Iterator[Offer]:
        """The views that could answer a block with such leaves."""
        for kind in dict.fromkeys(kinds):
            for one in self._by_leaf.get(kind, ()):
                left = list(kinds)
                if all(needed in left and not left.remove(needed) for needed in one.block.kinds):  # type: ignore[func-returns-value]
                    yield one


def answer_from(node: Node, views: Views, rows: Rows, decide: Decide = fewer) -> Outcome:
    """A query over views, as far as these answer it and that is cheaper.

    Args:
        node: the query's tree. The columns of the result are the same.
        views: what there is.
        rows: how large relations are.
        decide: whether to take a view.
    """
    outcome = Outcome(node)
    if views:
        outcome.node = _Rewriting(views, rows, decide, outcome).node(node)
    if [(f.name, f.type) for f in outcome.node.schema] != [(f.name, f.type) for f in node.schema]:
        raise IllFormed(f"views changed the columns of\n{node}\nto those of\n{outcome.node}")
    return outcome


class _Rewriting:
    def __init__(self, views: Views, rows: Rows, decide: Decide, outcome: Outcome) -> None:
        self._views, self._rows, self._decide, self._outcome = views, rows, decide, outcome
        self._done: dict[int, tuple[Node, Node]] = {}  # with the node, so that its id stays its own
        self._number = 0
        self._sizes: dict[int, tuple[Node, int]] = {}

    def node(self, node: Node) -> Node:
        if id(node) not in self._done:
            self._done[id(node)] = node, self._rewritten(node)
        return self._done[id(node)][1]

    def _rewritten(self, node: Node) -> Node:
        for _ in range(_MOST_VIEWS):
            use = self._best(node)
            if use is None:
                break
            self._outcome.uses.append(use)
            self._outcome.refused.pop(use.view, None)
            node = use.compensation
        return rebuild(node, tuple(self.node(child) for child in node.children))

    def _best(self, node: Node) -> Use | None:
        """The view that leaves the fewest rows to read for a block, if it is worth it."""
        if isinstance(node, Scan | Values | Sum) or self._size(node) > _MOST_NODES:
            return None
        block = block_of(node)
        if block is None:
            return None
        best: Use | None = None
        for offer in self._views.reading(block.kinds):
            self._number += 1
            try:
                made = computed_from(block, node.column_names, offer, f"{offer.view}#{self._number}")
            except NoMatch as why:
                self._outcome.refused.setdefault(offer.view, str(why))
                continue
            before, after = self._read(node), self._read(made)
            if not self._decide(before, after):
                smaller = f"would be read for {after:,.0f} rows in all, and the query reads {before:,.0f} without it"
                self._outcome.refused[offer.view] = smaller
            elif best is None or after < best.after:
                best = Use(offer.view, made, before, after)
        return best

    def _size(self, node: Node) -> int:
        """How many nodes a tree has, written out."""
        if id(node) not in self._sizes:
            self._sizes[id(node)] = node, 1 + sum(map(self._size, node.children))
        return self._sizes[id(node)][1]

    def _read(self, node: Node) -> float:
        """Rows of the relations that a tree reads; what stands in several places is read once."""
        return sum(self._rows(one.relation) for one in node.walk() if isinstance(one, Scan))
