"""The query around a query: which of its columns an inner query reads."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from headwater import types as t
from headwater.algebra.nodes import Node, Values
from headwater.algebra.scalars import Column


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
    """

    def __init__(self, lookup: Callable[[exp.Column], Column | None], prefix: str) -> None:
        self._lookup = lookup
        self._prefix = prefix
        self.used: dict[Column, Column] = {}
        self.equated = True

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
