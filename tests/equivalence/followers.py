"""A subscriber of a view, who has nothing but what it is told."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pyarrow as pa

from .bags import Bag
from .case import Row
from .values import canonical


@dataclass(frozen=True)
class Change:
    """A change as it was told."""

    epoch: int
    op: str
    row: Row
    old: Row | None


class Untrue(Exception):
    """A subscriber was told what cannot be, or more than needed."""


def changes_of(table: pa.Table) -> list[Change]:
    """The changes in a table of them."""
    names = table.column_names[2:-1]

    def row_of(values: dict[str, object]) -> Row:
        return tuple(canonical(values[name]) for name in names)

    return [
        Change(one["_epoch"], one["_op"], row_of(one), None if one["_old"] is None else row_of(one["_old"]))
        for one in table.to_pylist()
    ]


def changelog(changes: list[Change]) -> Bag:
    """Signed rows that say the same; one that is taken back stays, with 0."""
    out: Bag = Counter()
    for one in changes:
        if one.op == "u":
            assert one.old is not None
            out[one.old] -= 1
        out[one.row] += -1 if one.op == "-" else 1
    return out


@dataclass
class Follower:
    """Applies changes to an empty table, as a program would that has no other access to the view.

    Attributes:
        key: positions of the columns that tell rows apart; None if nothing does.
        held: what the table holds.
        epoch: the last epoch of which it was told something.
    """

    key: tuple[int, ...] | None
    held: Bag = field(default_factory=Counter)
    epoch: int = -1

    def follow(self, changes: list[Change], last: int) -> None:
        """Take in what was told when the last epoch was that one.

        Raises:
            Untrue: that makes no sense.
        """
        for epoch in dict.fromkeys(one.epoch for one in changes):
            if not self.epoch < epoch <= last:
                raise Untrue(f"told of epoch {epoch} after epoch {self.epoch}, when epoch {last} was the last")
            self.epoch = epoch
            self._check_least([one for one in changes if one.epoch == epoch])
        for one in changes:
            self._apply(one)
        self.held = +self.held
        keys = Counter(self._key(row) for row in self.held.elements()) if self.key is not None else Counter()
        if any(n > 1 for n in keys.values()):
            raise Untrue(f"a key that is there more than once: {max(keys, key=lambda key: keys[key])}")

    def _apply(self, one: Change) -> None:
        going = {"+": None, "-": one.row, "u": one.old}[one.op]
        if going is not None:
            if self.held[going] < 1:
                raise Untrue(f"{one} takes what is not there")
            self.held[going] -= 1
        if one.op != "-":
            self.held[one.row] += 1

    def _check_least(self, changes: list[Change]) -> None:
        """The changes of an epoch are as few as can be: one a key, and none that says nothing."""
        for one in changes:
            if (one.op == "u") != (one.old is not None) or one.op not in "+-u":
                raise Untrue(f"{one} is not a change")
            if one.old == one.row:
                raise Untrue(f"{one} changes nothing")
        if self.key is not None:
            if len({self._key(one.row) for one in changes}) < len(changes):
                raise Untrue(f"more than one change of a key in epoch {changes[0].epoch}: {changes}")
            if any(one.old is not None and self._key(one.old) != self._key(one.row) for one in changes):
                raise Untrue(f"a row became one with another key in epoch {changes[0].epoch}: {changes}")
        elif any(one.op == "u" for one in changes):
            raise Untrue("a row without a key was changed")
        both = {one.row for one in changes if one.op == "+"} & {one.row for one in changes if one.op == "-"}
        if both:
            raise Untrue(f"a row that has come and gone in epoch {changes[0].epoch}: {both}")

    def _key(self, row: Row) -> Row:
        assert self.key is not None
        return tuple(row[i] for i in self.key)
