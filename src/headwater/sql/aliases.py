"""Names for the relations of a query."""

from __future__ import annotations

from headwater.sql.names import fold


class Aliases:
    """Names for the relations of one tree, each given once however often queries repeat theirs.

    Attributes:
        reads: how many relations the tree reads.
    """

    def __init__(self) -> None:
        self.reads = 0
        self._taken: set[str] = set()
        self._internal = 0

    def internal(self) -> str:
        """A name that no query can have written."""
        self._internal += 1
        return f"#{self._internal}"

    @property
    def state(self) -> tuple[frozenset[str], int]:
        """The names that are taken and what is read, to go back to."""
        return frozenset(self._taken), self.reads

    @state.setter
    def state(self, before: tuple[frozenset[str], int]) -> None:
        taken, self.reads = before
        self._taken = set(taken)

    def take(self, wanted: str) -> str:
        """The wanted name, with a number behind it if it is taken.

        Columns are named `alias.column`, so an alias has no dot; `#` marks names that the planner adds.
        """
        wanted = wanted.replace(".", "_").replace("#", "_")
        name, number = wanted, 2
        while fold(name) in self._taken:
            name, number = f"{wanted}_{number}", number + 1
        self._taken.add(fold(name))
        return name
