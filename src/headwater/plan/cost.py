"""What an epoch of a program costs: the paper's evaluation and maintenance costs, in this engine's prices.

The cost of a program is what its statements read, compute and write in an epoch in which every relation changes as it
has been seen to, in milliseconds (Ahmad et al., "DBToaster", section 5.1: the cost of a query is the size of what its
sums go over; a map is maintained at each relation's rate). To that come the prices of this engine: a statement costs
something whatever it does, a stored map is scanned to find the few rows that a change meets, and appending is cheap.

Estimates are rough. They are good for comparing programs for the same view, and are corrected by measured epochs
(`headwater.engine.observe`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from headwater.algebra.joins import flatten
from headwater.algebra.nodes import Filter, Join, Node, Project, Scan, Sum, Version
from headwater.plan.program import Add, Map, Program, Touch
from headwater.plan.sizes import Sizes
from headwater.plan.statistics import Observed


@dataclass(frozen=True)
class Prices:
    """Milliseconds, for one statement or one row; measured on two cores, see docs/design/planner.md."""

    statement: float = 0.9
    settle: float = 3.0  #: the long statement that tells what a block showed from what it shows
    scan: float = 1.2e-6  #: a stored row passed over to find those of a few keys
    hit: float = 1.0e-2  #: a vector of stored rows in which one is found
    probe: float = 2.5  #: looking keys up in a sorted copy, instead of scanning
    key: float = 1.5e-3  #: a key that is looked up
    read: float = 3.0e-5  #: a row of a change that is read
    match: float = 3.0e-5  #: a row that a join or filter hands on
    group: float = 6.0e-5  #: a row that is added up
    by_key: float = 0.0  #: and for each key that it is added up by
    write: float = 1.2e-4  #: a row that is stored


PRICES = Prices()
#: The same where a batch is added up into few groups. Strategies differ in what they look up and store, and it matters
#: little that this is cheaper; whether groups are shared is about nothing else.
FEW_GROUPS = Prices(read=5.0e-6, group=8.0e-6, by_key=8.0e-6)
VECTOR = 2048  #: rows


@dataclass(frozen=True)
class Cost:
    """What a program is expected to cost.

    Attributes:
        milliseconds: of an epoch.
        statements: that an epoch runs.
        rows: that its maps hold, without the view itself.
    """

    milliseconds: float
    statements: float
    rows: float

    def __str__(self) -> str:
        return f"{self.milliseconds:,.1f} ms, {self.statements:.0f} statements, {self.rows:,.0f} rows in maps"


def cost_of(
    program: Program, observed: Mapping[str, Observed], existing: Set[str] = frozenset(), prices: Prices = PRICES
) -> Cost:
    """The cost of a program.

    Args:
        program: which.
        observed: what is known of its inputs.
        existing: maps that another view needs anyway: they cost nothing.
        prices: what things cost.
    """
    return Costing(program, observed, existing, prices).total()


class Costing:
    """The costs of one program as they are added up."""

    def __init__(
        self,
        program: Program,
        observed: Mapping[str, Observed],
        existing: Set[str] = frozenset(),
        prices: Prices = PRICES,
    ) -> None:
        self._program, self._prices, self._existing = program, prices, existing
        self._sizes = Sizes(observed)
        self._milliseconds = self._statements = self._rows = 0.0

    def total(self) -> Cost:
        program = self._program
        for one in program.maps:
            self._add_map(one)
        for name in program.inputs:
            known = self._sizes.relation(name)
            self._step(name, known.share)
            if name in program.stored_reads and not known.kept:
                self._pay(known.share, 1, known.rate * self._prices.write)
        for one in program.maps:
            self._settle(one)
            if not one.stepwise:
                self._sizes.forget()
                self._step(one.name, self._sizes.relation(one.name).share)
        return Cost(self._milliseconds, self._statements, self._rows)

    def reading(self, upper: Node, held: Sequence[Node]) -> float:
        """Evaluating what stands above maps that are partial sums, when something has changed; after `total`."""
        for one in held:
            self._sizes.of(one)
        maps = sum(self._sizes.relation(one.name).rows for one in self._program.maps if one.stepwise)
        return self._prices.statement + self._whole(upper) + maps * self._prices.group

    def observed(self, name: str) -> Observed:
        """How large a map is expected to be, and how fast it changes; after `total`."""
        return self._sizes.relation(name)

    def _add_map(self, one: Map) -> None:
        """Sizes first, as if it never changed: a step reads maps of later ones."""
        size = self._sizes.of(one.definition)
        self._sizes.observed[one.name] = Observed(size.rows, 0.0, 0.0, size.columns)
        if one.name != self._program.view and one.name not in self._existing:
            self._rows += size.rows

    def _step(self, relation: str, share: float) -> None:
        """What follows from a relation's change."""
        known = self._sizes.relation(relation)
        if known.rate <= 0 or share <= 0:
            return
        for statement in self._program.steps:
            if statement.on == relation:
                target = self._program.map(statement.target)
                rows = self._evaluate(statement, target, share)
                self._grow(target, rows, share)

    def _evaluate(self, statement: Add | Touch, target: Map, share: float) -> float:
        term = statement.term
        rows = self._sizes.of(term).rows
        if target.name in self._existing:
            return rows
        work = self._reading(term) + rows * (self._prices.write if target.stepwise else self._prices.match)
        self._pay(share, 1, work)
        return rows

    def _reading(self, node: Node) -> float:
        """Scans, and the rows that go through joins, filters and sums."""
        price = self._prices
        wanted = self._sizes.of(node).rows
        work = 0.0
        for one in _tops(node):
            match one:
                case Scan(version=Version.DELTA):
                    work += self._sizes.of(one).rows * price.read
                case Scan(relation=name):
                    work += self._finding(name, wanted)
                case Sum(input=source, keys=keys):
                    work += self._sizes.of(source).rows * (price.group + len(keys) * price.by_key)
                case Join():
                    work += sum(size.rows for size in self._sizes.joins(flatten(one))[1:]) * price.match
        return work

    def _finding(self, store: str, wanted: float) -> float:
        """Passing over a store for some rows, where each vector with one of them is unpacked; or looking them up."""
        rows, price = self._sizes.relation(store).rows, self._prices
        scan = rows * price.scan + min(wanted, rows / VECTOR) * price.hit
        return min(scan, price.probe + wanted * price.key)

    def _grow(self, target: Map, rows: float, share: float) -> None:
        """More comes to a map in a share of all epochs: what seldom comes must not count in those that see the rest."""
        known = self._sizes.observed[target.name]
        together = 1.0 - (1.0 - known.share) * (1.0 - share)
        rate = (known.rate * known.share + rows * share) / together
        self._sizes.observed[target.name] = replace(known, rate=rate, share=together)

    def _settle(self, one: Map) -> None:
        """What has come together becomes the map's change, and is stored."""
        known = self._sizes.relation(one.name)
        if one.name in self._existing or one.stepwise:
            return
        price = self._prices
        if self._program.recomputes(one.name):
            inputs = [self._sizes.relation(name) for name in one.definition.relations]
            known = replace(known, rate=known.rows, share=max((each.share for each in inputs), default=1.0))
            self._sizes.observed[one.name] = replace(known, rate=min(known.rows, sum(each.rate for each in inputs)))
            work = self._whole(one.definition) + 2 * known.rows * price.group
            self._pay(known.share, 2, work + price.settle)
            return
        if known.rate <= 0:
            return
        if one.sums is not None:
            self._pay(known.share, 1, known.rate * price.write)
            return
        read = self._finding(one.name, known.rate) + known.rate * price.group
        if one.keys is not None:
            source = self._sizes.of(one.source).rows
            touched = min(known.rate / max(self._groups(one), 1.0), 1.0) if one.keys else 1.0
            read += source * price.scan + source * touched * price.group * 2
            known = replace(known, rate=max(known.rows * touched, 1.0))  # any row of a touched key may change
            self._sizes.observed[one.name] = known
        self._pay(known.share, 1, read + price.settle + 2 * known.rate * price.write)

    def _groups(self, one: Map) -> float:
        """How many keys a map has that is evaluated by key."""
        size = self._sizes.of(one.source)
        groups = 1.0
        for _, key in one.keys or ():
            groups *= size.distinct(next(iter(key.columns), ""))
        return min(groups, size.rows)

    def _whole(self, node: Node) -> float:
        """Evaluating a tree from what is stored; what stands in several places is evaluated once."""
        price = self._prices
        work = 0.0
        for one in _tops(node):
            if isinstance(one, Join):
                work += sum(size.rows for size in self._sizes.joins(flatten(one))[1:]) * price.match
            elif isinstance(one, Sum):
                work += self._sizes.of(one.input).rows * price.group
            elif not isinstance(one, Filter | Project):
                work += self._sizes.of(one).rows * price.match
        return work

    def _pay(self, share: float, statements: int, work: float) -> None:
        self._statements += share * statements
        self._milliseconds += share * (statements * self._prices.statement + work)


def _tops(node: Node) -> Iterator[Node]:
    """The nodes of a tree, each once; of joins side by side only the topmost."""
    seen: set[int] = set()
    left = [node]
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        left.extend(flatten(one).leaves if isinstance(one, Join) else one.children)
