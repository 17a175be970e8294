"""The plain interpreter: integrate the inputs, evaluate again, subtract what was there.

It is the oracle for every way of maintaining views: not only a view's contents but each epoch's changelog must equal
what comes out here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from headwater.algebra.evaluate import Bag, Row, evaluate
from headwater.algebra.functions.errors import EvaluationError
from headwater.algebra.nodes import Node, Scan


class Interpreter:
    """Base relations and views held as bags in memory.

    Streams are given a start: `Scan.since` hides what a stream delivered before a view began, so the arrivals of each
    epoch are kept apart.

    Attributes:
        contents: of all relations and views, as of the last epoch.
        suspended: views that could not be evaluated, with the error; they keep what they had.
    """

    def __init__(self) -> None:
        self.epoch = 0
        self.contents: dict[str, Bag] = {}
        self.suspended: dict[str, EvaluationError] = {}
        self._views: dict[str, Node] = {}
        self._log: dict[str, list[tuple[int, Bag]]] = {}

    def add_view(self, name: str, node: Node) -> Bag:
        """Begin to maintain a view; returns its first contents.

        Raises:
            EvaluationError: it has none; there is no such view then.
        """
        self.contents[name] = evaluate(node, self._read)
        self._views[name] = node
        return self.contents[name]

    def apply(self, changes: Mapping[str, Bag], epoch: int | None = None) -> dict[str, Bag]:
        """Apply one epoch's changes of base relations; returns the changelog of every view."""
        self.epoch = self.epoch + 1 if epoch is None else epoch
        for name, change in changes.items():
            self._log.setdefault(name, []).append((self.epoch, change))
            self.contents[name] = plus(self.contents.get(name, Counter()), change)
        changelogs: dict[str, Bag] = {}
        for name, node in self._views.items():
            before = self.contents[name]
            if name not in self.suspended:
                try:
                    self.contents[name] = evaluate(node, self._read)
                except EvaluationError as error:
                    self.suspended[name] = error
            changelogs[name] = minus(self.contents[name], before)
        return changelogs

    def refresh(self, name: str, epoch: int | None = None) -> dict[str, Bag]:
        """Let a suspended view follow its inputs again, as an epoch; returns the changelog of every view.

        Raises:
            EvaluationError: it still cannot be evaluated; nothing has changed.
        """
        evaluate(self._views[name], self._read)
        del self.suspended[name]
        return self.apply({}, epoch)

    def _read(self, scan: Scan) -> Bag:
        if scan.relation in self._views or not scan.since:
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
