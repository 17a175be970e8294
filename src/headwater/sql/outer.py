"""The query around a query: which of its columns an inner query reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlglot import exp

from headwater import types as t
from headwater.algebra.compose import distinct
from headwater.algebra.nodes import Node, Project, Values, transform
from headwater.algebra.scalars import Column, Scalar
from headwater.sql.aliases import Aliases

T = TypeVar("T")


class Again(Exception):
    """An inner query has found one more column of the outer one; it has to be lowered again with it."""

    def __init__(self, outer: Outer) -> None:
        super().__init__()
        self.outer = outer


class Outer:
    """What an inner query can see of the query around it.

    A column that it reads becomes a column of its own: of a relation with every value that the outer query has for it
    (the domain), or of an expression that the inner query equates it with.

    Attributes:
        used: the columns that are read, with the inner columns that stand for them.
        equated: every SELECT of the inner query equates all of them with expressions of its own.
        direct: the SELECT of which whoever asks looks up the row by itself, so that an aggregate needs none for values
            without rows.
    """

    def __init__(
        self, lookup: Callable[[exp.Column], Column | None], prefix: str, direct: exp.Expr | None = None
    ) -> None:
        self._lookup = lookup
        self._prefix = prefix
        self.used: dict[Column, Column] = {}
        self.equated = True
        self.direct = direct

    def column(self, node: exp.Column) -> Column | None:
        """The inner column that stands for a column of the outer query; None if that has none of this name.

        Raises:
            Again: it is a new one.
        """
        found = self._lookup(node)
        if found is None:
            return None
        if found not in self.used:
            self.used[found] = Column(f"{self._prefix}.{len(self.used)}", found.type)
            raise Again(self)
        return self.used[found]

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(self.used.values())

    @property
    def domain(self) -> Node:
        """A leaf that stands for the domain until the outer query is known."""
        return Values(tuple(t.Field(one.name, one.type) for one in self.columns), ())

    def lowered(self, lower: Callable[[], T], aliases: Aliases) -> T:
        """Lower the inner query, again and again until all columns of the outer one that it reads are known."""
        while True:
            before = aliases.state
            self.equated = True
            try:
                return lower()
            except Again as again:
                if again.outer is not self:
                    raise
                aliases.state = before

    def with_domain(self, inner: Node, rows: Node, resolve: Callable[[Scalar], Scalar] = lambda one: one) -> Node:
        """The inner query once the outer one is known: the domain is every value that its rows have.

        Args:
            inner: as lowered.
            rows: of the outer query.
            resolve: what a column of the outer query is over them.
        """
        leaf = self.domain
        if not self.used:
            return inner
        domain = distinct(Project(rows, tuple((mine.name, resolve(theirs)) for theirs, mine in self.used.items())))
        return transform(inner, lambda node: domain if node == leaf else node)
