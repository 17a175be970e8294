"""The plain interpreter: integrate the inputs, evaluate again, subtract what was there.

It is the oracle for every way of maintaining views: not only a view's contents but each epoch's changelog must equal
what comes out here.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from headwater.algebra.during import at
from headwater.algebra.evaluate import Bag, Row, evaluate
from headwater.algebra.functions.errors import EvaluationError
from headwater.algebra.nodes import Node, Scan

#: Says from what has changed in an epoch so far, by relation, whether a synchronised relation moves in it.
Ticks = Callable[[Mapping[str, Bag]], bool]


@dataclass
class Follower:
    """A synchronised relation: what it stands for, when it moves, and what waits until then."""

    of: str
    ticks: Ticks
    waiting: Bag = field(default_factory=Counter)


class Interpreter:
    """Base relations and views held as bags in memory.

    Streams are given a start: `Scan.since` hides what a stream delivered before a view began, so the arrivals of each
    epoch are kept apart.

    Attributes:
        contents: of all relations and views, as of the last epoch.
        suspended: views that could not be evaluated, with the error; they keep what they had.
        clock: of the last epoch, which is what `now()` means.
    """

    def __init__(self, clock: dt.datetime = dt.datetime(1970, 1, 1)) -> None:
        self.epoch = 0
        self.clock = clock
        self.contents: dict[str, Bag] = {}
        self.suspended: dict[str, EvaluationError] = {}
        self._views: dict[str, Node | Follower] = {}  # in the order of their creation
        self._log: dict[str, list[tuple[int, Bag]]] = {}

    def add_view(self, name: str, node: Node) -> Bag:
        """Begin to maintain a view; returns its first contents.

        Raises:
            EvaluationError: it has none; there is no such view then.
        """
        self.contents[name] = evaluate(at(node, self.clock), self._read)
        self._views[name] = node
        return self.contents[name]

    def follow(self, name: str, of: str, ticks: Ticks, empty: bool = False) -> None:
        """Begin to synchronise a relation: the other has its changes when it ticks, and not before.

        Args:
            name: of the synchronised relation.
            of: the relation that it stands for.
            ticks: when it moves.
            empty: it begins without what the relation holds.
        """
        self.contents[name] = Counter() if empty else Counter(self.contents.get(of, Counter()))
        self._views[name] = Follower(of, ticks)

    def forget(self, name: str) -> None:
        """Maintain a view or a synchronised relation no more."""
        del self._views[name], self.contents[name]
        self.suspended.pop(name, None)
        self._log.pop(name, None)

    def apply(
        self, changes: Mapping[str, Bag], epoch: int | None = None, clock: dt.datetime | None = None
    ) -> dict[str, Bag]:
        """Apply one epoch's changes of base relations; returns the changelog of every view."""
        self.epoch = self.epoch + 1 if epoch is None else epoch
        self.clock = self.clock if clock is None else max(clock, self.clock)
        for name, change in changes.items():
            self._log.setdefault(name, []).append((self.epoch, change))
            self.contents[name] = plus(self.contents.get(name, Counter()), change)
        changelogs: dict[str, Bag] = {}
        for name, node in self._views.items():
            if isinstance(node, Follower):
                changelogs[name] = self._synchronise(name, node, {**changes, **changelogs})
                continue
            before = self.contents[name]
            if name not in self.suspended:
                try:
                    self.contents[name] = evaluate(at(node, self.clock), self._read)
                except EvaluationError as error:
                    self.suspended[name] = error
            changelogs[name] = minus(self.contents[name], before)
        return changelogs

    def _synchronise(self, name: str, follower: Follower, changes: Mapping[str, Bag]) -> Bag:
        follower.waiting = plus(follower.waiting, changes.get(follower.of, Counter()))
        if not follower.ticks(changes):
            return Counter()
        change, follower.waiting = follower.waiting, Counter()
        self._log.setdefault(name, []).append((self.epoch, change))
        self.contents[name] = plus(self.contents[name], change)
        return change

    def refresh(self, name: str, epoch: int | None = None) -> dict[str, Bag]:
        """Let a suspended view follow its inputs again, as an epoch; returns the changelog of every view.

        Raises:
            EvaluationError: it still cannot be evaluated; nothing has changed.
        """
        before = dict(self.contents), dict(self.suspended), {one: list(log) for one, log in self._log.items()}
        waiting = {one: each.waiting for one, each in self._views.items() if isinstance(each, Follower)}
        del self.suspended[name]
        changelogs = self.apply({}, epoch)
        error = self.suspended.get(name)
        if error is not None:
            self.contents, self.suspended, self._log = before
            for one, each in self._views.items():
                if isinstance(each, Follower):
                    each.waiting = waiting[one]
            raise error
        return changelogs

    def _read(self, scan: Scan) -> Bag:
        if not scan.since or isinstance(self._views.get(scan.relation), Node):
            return self.contents.get(scan.relation, Counter())
        out: Bag = Counter()
        for epoch, change in self._log.get(scan.relation, []):
            if epoch > scan.since:
                out = plus(out, change)
        return out


def plus(a: Mapping[Row, int], b: Mapping[Row, int]) -> Bag:
    """The sum of two bags, rows of multiplicity zero left out."""
    out: Bag = Counter(a)
    for row, n in b.items():
        out[row] += n
        if not out[row]:
            del out[row]
    return out


def minus(a: Mapping[Row, int], b: Mapping[Row, int]) -> Bag:
    """What must be added to `b` to get `a`."""
    return plus(a, {row: -n for row, n in b.items()})
