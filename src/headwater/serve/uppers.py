"""Views that are evaluated when they are read, and what they held when they last were.

(Winter, Schmidt, Neumann, Kemper, "Meet Me Halfway: Split Maintenance of Continuous Views", sections 3.4.3 and 3.5.)
What such a view holds is computed once for a query, however often the query reads it, and kept until a store changes
that it follows from, or the clock says something else. So are the parts of it that follow from tables alone.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa

from headwater.algebra.clock import at_moment, is_moment
from headwater.algebra.during import at
from headwater.algebra.functions.evaluate import evaluate_scalar
from headwater.algebra.nodes import Node, scalars
from headwater.algebra.scalars import Scalar
from headwater.emit.duckdb import Emitter
from headwater.emit.layout import sql
from headwater.engine.failures import is_value_error, translate
from headwater.engine.seen import Reads
from headwater.engine.stamps import Stamps
from headwater.errors import UserError
from headwater.store.catalog import Catalog, Relation

#: What is kept of all such views together, in bytes; larger results are computed for each query.
MOST_KEPT = 256 << 20
_MOST_TEXTS = 1_000


@dataclass(frozen=True)
class _Wanted:
    """Something to be evaluated for a query.

    Attributes:
        name: of the view, or of what a view holds.
        view: whose it is.
        definition: over stores, and over what is wanted before it.
        stores: that it follows from.
        stamps: of these, and what the clock says where it is asked.
        moment: what the clock says.
    """

    name: str
    view: Relation
    definition: Node
    stores: tuple[str, ...]
    stamps: tuple[object, ...]
    moment: dt.datetime

    @property
    def moments(self) -> tuple[object, ...]:
        """What the clock says where it is asked."""
        return self.stamps[len(self.stores) + 2 :]


@dataclass(frozen=True)
class _Kept:
    stamps: tuple[object, ...]
    table: pa.Table


@dataclass(frozen=True)
class Order:
    """What a query wants evaluated, in order. It is made before the query's snapshot is taken; see `Stamps`."""

    wanted: tuple[_Wanted, ...] = ()
    #: Views that had to be evaluated for the query.
    evaluated: set[str] = field(default_factory=set, compare=False)
    #: Views whose reads are counted, evaluated or not.
    counted: tuple[str, ...] = ()

    @property
    def views(self) -> frozenset[str]:
        """What is evaluated, by name."""
        return frozenset(one.name for one in self.wanted)

    @property
    def timeless(self) -> bool:
        """Whether none of it asks the clock."""
        return not any(one.moments for one in self.wanted)

    def holding(self, clock: Callable[[], dt.datetime]) -> Callable[[], bool] | None:
        """What says whether the clock still says the same to all of it; None if nobody asks it."""
        if self.timeless:
            return None
        asked = {scalar: value for one in self.wanted for scalar, value in _said(one.definition, one.moment).items()}

        def holds() -> bool:
            moment = clock()
            return all(evaluate_scalar(at_moment(one, moment), {}) == value for one, value in asked.items())

        return holds

    def of(self, view: str) -> Order:
        """The part of it that is for one view."""
        return Order(tuple(one for one in self.wanted if one.view.name == view))

    @property
    def stores(self) -> frozenset[str]:
        """The stores that all of it follows from."""
        return frozenset(store for one in self.wanted for store in one.stores)


@dataclass
class Uppers:
    """What views that are evaluated when they are read held, for all threads."""

    stamps: Stamps
    epoch: Callable[[], int]
    reads: dict[str, Reads] = field(default_factory=dict)
    _kept: OrderedDict[str, _Kept] = field(default_factory=OrderedDict)
    _guard: threading.Lock = field(default_factory=threading.Lock)
    #: Statements, for a catalogue: writing one takes longer than running it over few rows.
    _texts: tuple[Catalog | None, dict[tuple[object, ...], str]] = field(default_factory=lambda: (None, {}))

    def order(self, node: Node, catalog: Catalog, moment: dt.datetime) -> Order:
        """What a tree reads of such views.

        Raises:
            UserError: HW526, one is suspended.
        """
        names = node.relations
        counted = tuple(catalog.timed & names) if catalog.timed else ()
        self.read(counted)
        views = [one for one in catalog if one.lazy and one.name in names]
        return Order(tuple(each for view in views for each in self._of(view, moment)), counted=counted)

    def read(self, views: Iterable[str]) -> None:
        """Views whose reads are counted have been read."""
        for view in views:
            with self._guard:
                self._counted(view).read(self.epoch())

    def _counted(self, view: str) -> Reads:
        return self.reads.setdefault(view, Reads(self.epoch()))

    def _of(self, view: Relation, moment: dt.datetime) -> Iterator[_Wanted]:
        program = view.program
        assert program is not None and program.upper is not None
        if view.suspended:
            raise UserError(
                "HW526",
                f"view {view.name} is suspended since epoch {view.stopped}: {view.suspended}",
                hint=f"REFRESH {view.name} lets it follow its inputs again",
            )
        known: dict[str, tuple[str, ...]] = {}
        for one in program.held:
            known[one.name] = tuple(sorted(one.definition.relations))
            yield self._wanted(one.name, view, one.definition, known[one.name], moment)
        read = program.upper.relations
        stores = read - known.keys() | {store for name, found in known.items() if name in read for store in found}
        yield self._wanted(view.name, view, program.upper, tuple(sorted(stores)), moment)

    def _wanted(
        self, name: str, view: Relation, definition: Node, stores: tuple[str, ...], moment: dt.datetime
    ) -> _Wanted:
        stamps = (view.created, *self.stamps.take(stores), *moments(definition, moment))
        return _Wanted(name, view, definition, stores, stamps, moment)

    def evaluate(
        self, reader: duckdb.DuckDBPyConnection, order: Order, catalog: Catalog, net: bool = False
    ) -> Mapping[str, str]:
        """Put what is wanted under names that statements of a reader can read; returns these, by relation.

        Args:
            reader: in its transaction.
            order: what is wanted.
            catalog: as of that transaction.
            net: see `Emitter`.
        """
        names: dict[str, str] = {}
        for one in order.wanted:
            table = self._find(one)
            if table is None:
                table = self._rows(reader, one, catalog, names, net)
                self._keep(one, table)
                order.evaluated.add(one.view.name)
            names[one.name] = f"#upper {one.name}"
            reader.register(names[one.name], table)
        return names

    def _rows(
        self, reader: duckdb.DuckDBPyConnection, one: _Wanted, catalog: Catalog, names: Mapping[str, str], net: bool
    ) -> pa.Table:
        try:
            return reader.sql(self._text(one, catalog, names, net)).to_arrow_table()
        except duckdb.Error as error:
            if not net or not is_value_error(error):  # there is another chance, or it is not the view's fault
                raise
            told = translate(error)
            raise UserError(
                told.code,
                f"view {one.view.name}: {told.message}",
                hint="it is evaluated whole when it is read: change the rows, or write a view that allows for them",
            ) from error

    def _text(self, one: _Wanted, catalog: Catalog, names: Mapping[str, str], net: bool) -> str:
        known, texts = self._texts
        if known is not catalog or len(texts) > _MOST_TEXTS:
            texts = {}
            self._texts = catalog, texts
        key = (one.name, net, one.moments)
        if key not in texts:
            emitter = Emitter(catalog.grouped, net, standing=names)
            emitter = emitter if net else emitter.for_single(catalog.partial)
            texts[key] = upper_query(at(one.definition, one.moment), emitter)
        return texts[key]

    def _find(self, one: _Wanted) -> pa.Table | None:
        # The snapshot is there by now. If the stores have changed meanwhile, what is kept is older than it.
        taken = one.stamps[1 : len(one.stores) + 2]
        if self.stamps.take(one.stores) != taken or not self.stamps.steady(one.stores):
            return None
        with self._guard:
            kept = self._kept.get(one.name)
            if kept is None or kept.stamps != one.stamps:
                return None
            self._kept.move_to_end(one.name)
            return kept.table

    def took(self, views: Collection[str], milliseconds: float) -> None:
        """A query took so long for which such views had to be evaluated, or that looked into some that are kept."""
        with self._guard:
            for view in views:
                self._counted(view).took(milliseconds / len(views))

    def _keep(self, one: _Wanted, table: pa.Table) -> None:
        with self._guard:
            self._kept.pop(one.name, None)
            if table.nbytes > MOST_KEPT:
                return
            self._kept[one.name] = _Kept(one.stamps, table)
            while sum(kept.table.nbytes for kept in self._kept.values()) > MOST_KEPT:
                self._kept.popitem(last=False)


def upper_query(node: Node, emitter: Emitter) -> str:
    """The SQL that yields the rows of a tree, each once, with how often it counts."""
    return sql(emitter.sharing(lambda: emitter.rows(node) if emitter.is_single(node) else emitter.net_rows(node)))


def moments(node: Node, moment: dt.datetime) -> tuple[object, ...]:
    """What the clock says, in all places where a tree asks it."""
    return tuple(_said(node, moment).values())


def _said(node: Node, moment: dt.datetime) -> dict[Scalar, object]:
    """What a tree asks the clock, and what it says."""
    found = {part: None for one in node.walk() for scalar in scalars(one) for part in _moments(scalar)}
    return {one: evaluate_scalar(at_moment(one, moment), {}) for one in found}


def _moments(scalar: Scalar) -> Iterator[Scalar]:
    """The largest parts of a scalar that are made of the clock and constants alone."""
    if is_moment(scalar):
        yield scalar
    else:
        for part in scalar.children:
            yield from _moments(part)
