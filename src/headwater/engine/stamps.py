"""Whether something that was read of stores still holds: each store has a stamp that is another one once it changes.

A stamp moves before the change can be seen and once more when it is made. So whoever takes stamps first and reads then
may keep what was read for as long as the stamps are the same: a change that came in between has moved them again.

While a change is being made (`steady` says so) others may see it already. Who shows what was kept then shows what is
older than what somebody has just seen, and so should read anew.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Set


class Stamps:
    """The stamps of all stores of a warehouse, in memory. Only the writer moves them; any thread may take them."""

    def __init__(self) -> None:
        self._all = 0
        self._of: dict[str, int] = {}
        #: The stores that a commit under way changes; None for all.
        self._changing: Set[str] | None = frozenset()
        #: Whether the catalogue that is stored may be another one than the engine's.
        self.redefining = False

    @property
    def all(self) -> int:
        """What moves when relations are made or dropped, or old rows go."""
        return self._all

    def take(self, stores: Iterable[str]) -> tuple[int, ...]:
        """The stamps of some stores, in their order."""
        return (self._all, *(self._of.get(one, 0) for one in stores))

    def steady(self, stores: Iterable[str]) -> bool:
        """Whether no commit is under way that changes one of these stores."""
        changing = self._changing
        return changing is not None and (not changing or changing.isdisjoint(stores))

    def move(self, stores: Iterable[str]) -> None:
        """Some stores change, or have changed."""
        for one in stores:
            self._of[one] = self._of.get(one, 0) + 1

    def move_all(self) -> None:
        """Any store may change, or have changed: relations are made or dropped, or old rows go."""
        self._all += 1

    @contextlib.contextmanager
    def committing(self, stores: Set[str] | None) -> Iterator[None]:
        """Around a COMMIT that changes some stores, or any if there is None."""
        self._changing = stores
        self._move(stores)
        try:
            yield
        finally:
            self._move(stores)
            self._changing = frozenset()

    def _move(self, stores: Set[str] | None) -> None:
        if stores is None:
            self.move_all()
        else:
            self.move(stores)
