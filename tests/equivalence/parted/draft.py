"""The state of one case being made: what can be read, and references to parts of it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")
Shape = Callable[..., str | None]

#: Shapes by family, with their weights.
FAMILIES: dict[str, dict[str, tuple[float, Shape]]] = {}


def shape(family: str, name: str, weight: float = 1.0) -> Callable[[Shape], Shape]:
    """Add a function to a family under a name that coverage is counted by."""

    def add(make: Shape) -> Shape:
        FAMILIES.setdefault(family, {})[name] = weight, make
        return make

    return add


@dataclass
class Draft:
    """What is made so far.

    Attributes:
        lengths: of relations with parts: all have the columns k STRING, g INT and v INT or BIGINT.
        wholes: relations that are read whole, with the columns k STRING, g INT and w INT.
        thrifty: streams whose old parts may go when nobody needs them, and views over them: these begin at once, and
            read nothing whole, since parts that would need what is gone stay as they are.
        used: how often each shape occurred.
        duckdb: whether DuckDB's answer to the view being made is Spark's.
        own: length of the view being made.
        variable: its subscript.
        itself: its name, if its query may read it.
        only: the relations with parts that it reads, if that is settled.
    """

    rng: random.Random
    lengths: dict[str, int] = field(default_factory=dict)
    wholes: list[str] = field(default_factory=list)
    thrifty: set[str] = field(default_factory=set)
    used: Counter[str] = field(default_factory=Counter)
    duckdb: bool = True
    own: int = 60
    variable: str = "j"
    itself: str | None = None
    only: tuple[str, ...] = ()
    _aliases: int = 0

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def pick(self, *options: T) -> T:
        return self.rng.choice(options)

    def note(self, name: str) -> None:
        self.used[name] += 1

    def alias(self) -> str:
        self._aliases += 1
        return f"r{self._aliases}"

    def make(self, family: str) -> str:
        """A text of a family: shapes are drawn by weight until one fits."""
        candidates = dict(FAMILIES[family])
        while candidates:
            name = self.rng.choices(list(candidates), [weight for weight, _ in candidates.values()])[0]
            made = candidates.pop(name)[1](self)
            if made is not None:
                self.note(name)
                return made
        raise LookupError(f"nothing fits in {family}")

    # -- references --------------------------------------------------------------------------------------------------

    def part(self) -> str:
        """A reference to parts of some relation."""
        return self.reference(self.rng.choice(self.only))

    def reference(self, relation: str) -> str:
        length, j = self.lengths[relation], self.variable
        if length == self.own:
            inside = self._equal(j)
        elif length < self.own:
            inside = self._shorter(j, self.own // length)
        else:
            inside = self._longer(j, length // self.own)
        return f"{relation}[{inside}]"

    def present(self, relation: str) -> str:
        """The newest parts of a relation that there are at the end of a part of the view."""
        length, j = self.lengths[relation], self.variable
        if length == self.own:
            return f"{relation}[{j}]"
        r = self.own // length
        return f"{relation}[{r} * {j} .. {r} * {j} + {r - 1}]" if r else f"{relation}[{j} / {length // self.own} - 1]"

    def _equal(self, j: str) -> str:
        name, inside = self.rng.choices(
            [
                ("the part", j),
                ("the part before", f"{j} - 1"),
                ("an earlier part", f"{j} - {self.pick(2, 3, 5)}"),
                ("a part far back", f"{j} - {self.pick(40, 300)}"),
                ("a range up to now", f"{j} - {self.pick(1, 2, 4)} .. {j}"),
                ("a range of the past", f"{j} - {self.pick(2, 3)} .. {j} - 1"),
                ("a range since a round number", f"{j} - {j} % 3 .. {j}"),
                ("a range that may be empty", f"{j} - {j} % 3 .. {j} - 1"),
                ("a subscript written otherwise", self.pick(f"(1 + {j}) - 1", f"-1 + {j}", f"(2 * {j} - 2) / 2")),
            ],
            [10, 4, 1, 0.7, 3, 2, 1, 1, 1],
        )[0]
        self.note(name)
        return inside

    def _shorter(self, j: str, r: int) -> str:
        name, inside = self.rng.choices(
            [
                ("all smaller parts", f"{r} * {j} .. {r} * {j} + {r - 1}"),
                ("the last smaller part", f"{j} * {r} + {r - 1}"),
                ("the first smaller part", f"{r} * {j}"),
                ("smaller parts of the part before", f"{r} * ({j} - 1) .. {r} * {j} - 1"),
                ("smaller parts of two parts", f"{r} * {j} - {r} .. {r} * {j} + {r - 1}"),
                ("some smaller parts", f"{r} * {j} + 1 .. {r} * {j} + {max(1, r - 2)}"),
            ],
            [8, 2, 2, 1, 2, 1],
        )[0]
        self.note(name)
        return inside

    def _longer(self, j: str, r: int) -> str:
        name, inside = self.rng.choices(
            [
                ("the larger part before", f"{j} / {r} - 1"),
                ("the larger part that is over", f"({j} + 1) / {r} - 1"),
                ("larger parts before", f"{j} / {r} - 2 .. {j} / {r} - 1"),
            ],
            [4, 2, 2],
        )[0]
        self.note(name)
        return inside

    def earlier(self) -> str:
        """A reference to earlier parts of the view itself."""
        j = self.variable
        name, inside = self.rng.choices(
            [
                ("itself before", f"{j} - 1"),
                ("itself two before", f"{j} - 2"),
                ("itself in a range", f"{j} - 3 .. {j} - 1"),
                ("itself since a round number", f"{j} - {j} % 4 .. {j} - 1"),
            ],
            [8, 2, 3, 1],
        )[0]
        self.note(name)
        return f"{self.itself}[{inside}]"
