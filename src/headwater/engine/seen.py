"""How views that need not be kept have been read, and what they took: what REFRESH AUTO decides by.

It is counted in memory, since a read must not write, and noted with every fiftieth epoch, when a view gets another
plan, and when the warehouse is closed. Whoever is killed loses the counts since, and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

import duckdb

from headwater.engine.observe import Spent
from headwater.plan.timing import Remembered, Spending

#: Epochs from one note to the next.
BETWEEN = 50
_FORGET = "DELETE FROM hw.meta WHERE key = 'seen'"
_NOTE = "INSERT INTO hw.meta VALUES ('seen', ?)"
_READ = "SELECT value FROM hw.meta WHERE key = 'seen'"


@dataclass
class Reads:
    """How a view has been read since it got its plan.

    Attributes:
        since: after which epoch it was counted.
        reads: how often.
        rounds: after how many epochs: what was found after one serves until the next.
        last: the epoch after which it was read last.
        evaluated: how often something had to be done for that, and not only shown again.
        milliseconds: that such a read takes, as a running mean.
    """

    since: int
    reads: int = 0
    rounds: int = 0
    last: int = -1
    evaluated: int = 0
    milliseconds: float = 0.0

    def read(self, epoch: int) -> None:
        self.reads += 1
        if epoch != self.last:
            self.rounds += 1
            self.last = epoch

    def took(self, milliseconds: float) -> None:
        self.evaluated += 1
        self.milliseconds += (milliseconds - self.milliseconds) / min(self.evaluated, 20)

    @property
    def for_each_round(self) -> float:
        """Milliseconds that all reads after an epoch take together."""
        return self.milliseconds * self.evaluated / self.rounds if self.rounds else 0.0


@dataclass
class Seen:
    """What is known of the views of a warehouse that need not be kept, by their names.

    Attributes:
        reads: how each has been read.
        spent: how long its statements take.
        ways: what each took when it was kept, and when it was not; the former is under True.
    """

    reads: dict[str, Reads] = field(default_factory=dict)
    spent: dict[str, Spent] = field(default_factory=dict)
    ways: dict[str, dict[bool, Remembered]] = field(default_factory=dict)
    _noted: str = "{}"

    def forget(self, view: str) -> None:
        """There is no such view any more, or another one has its name."""
        for known in (self.reads, self.spent, self.ways):
            known.pop(view, None)

    def measured(self, view: str, epoch: int) -> tuple[Spending, int]:
        """What a view has taken by its present plan, up to an epoch, and of how many epochs that is known."""
        spent, reads = self.spent.get(view), self.reads.get(view)
        if spent is None:
            return Spending(0.0, 0.0), 0
        passed = max(epoch - spent.since, spent.epochs)
        each = spent.milliseconds * spent.epochs / passed if passed else 0.0
        return Spending(each, reads.for_each_round if reads is not None else 0.0), spent.epochs

    def note(self, connection: duckdb.DuckDBPyConnection, timed: frozenset[str], fresh: str | None = None) -> None:
        """Write it down, in the caller's transaction, as far as it concerns some views; `fresh` gets a plan now."""
        connection.execute(_FORGET)
        connection.execute(_NOTE, [self._text(timed, fresh)])

    def is_new(self, timed: frozenset[str]) -> bool:
        """Whether there is something to note that was not known when the warehouse was opened."""
        return self._text(timed) != self._noted

    def _text(self, timed: frozenset[str], fresh: str | None = None) -> str:
        about = {}
        for view in sorted(timed):
            facts: dict[str, object] = {}
            if view != fresh and (reads := self.reads.get(view)) is not None:
                facts["reads"] = asdict(reads)
            if view != fresh and (spent := self.spent.get(view)) is not None:
                facts["spent"] = asdict(spent)
            if ways := self.ways.get(view):
                facts["ways"] = [[kept, asdict(one)] for kept, one in sorted(ways.items())]
            if facts:
                about[view] = facts
        return json.dumps(about)


def load(connection: duckdb.DuckDBPyConnection) -> Seen:
    """What was noted last."""
    found = connection.execute(_READ).fetchone()
    text: str = found[0] if found else "{}"
    seen = Seen(_noted=text)
    about: Mapping[str, Mapping[str, object]] = json.loads(text)
    for view, facts in about.items():
        match facts.get("reads"):
            case dict() as reads:
                seen.reads[view] = Reads(**reads)
        match facts.get("spent"):
            case dict() as spent:
                seen.spent[view] = Spent(**spent)
        match facts.get("ways"):
            case list() as ways:
                seen.ways[view] = {kept: _remembered(one) for kept, one in ways}
    return seen


def _remembered(facts: Mapping[str, Mapping[str, float]]) -> Remembered:
    return Remembered(Spending(**facts["measured"]), Spending(**facts["expected"]))
