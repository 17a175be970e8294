"""Answering ad hoc queries from views: which views may answer now, and whether one is worth it.

A view may answer a query if it is current: it is not suspended, and what it reads is what the query reads. One with a
refresh policy reads relations as they are synchronised (`orders@2s`), so it answers only what reads them so.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import replace

from headwater.algebra.nodes import Node, Project, Scan, transform
from headwater.algebra.renaming import reread
from headwater.algebra.scalars import Column
from headwater.algebra.simplify import simplify
from headwater.engine.engine import Engine
from headwater.plan.answer_from import Decide, Outcome, Views, answer_from, fewer, offers_of
from headwater.plan.match import Offer
from headwater.plan.program import Program
from headwater.serve.sizes import stored_rows
from headwater.store.catalog import Catalog, Kind, Relation
from headwater.store.warehouse import Warehouse


class Answering:
    """Rewrites queries onto views.

    Attributes:
        decide: whether to take a view, by how many rows are read without and with it.
    """

    def __init__(self, warehouse: Warehouse, engine: Engine) -> None:
        self.decide: Decide = fewer
        self._warehouse, self._engine = warehouse, engine
        self._lock = threading.Lock()
        self._index: tuple[Catalog, Views] | None = None
        self._offers: dict[str, tuple[tuple[Program, ...], list[Offer]]] = {}
        self._rows: tuple[tuple[int, int], dict[str, float]] | None = None

    def outcome(self, node: Node, catalog: Catalog) -> Outcome:
        """A query's tree over views, and what can be said about it."""
        return answer_from(node, self.views(catalog), lambda name: self._size(name, catalog), self.decide)

    def views(self, catalog: Catalog) -> Views:
        """The views that may answer, by what they read."""
        with self._lock:
            if self._index is None or self._index[0] is not catalog:
                self._index = catalog, Views(self._all(catalog))
            return self._index[1]

    def _all(self, catalog: Catalog) -> Iterable[Offer]:
        keys = catalog.keys
        known: dict[str, tuple[tuple[Program, ...], list[Offer]]] = {}
        for view in catalog:
            if not may_answer(view, catalog):
                continue
            assert view.program is not None
            below = views_below(view.program, catalog)
            programs = (view.program, *(one.program for one in below if one.program is not None))
            found = self._offers.get(view.name)
            if found is None or len(found[0]) != len(programs) or any(map(_differ, found[0], programs)):
                trees = [view.program.query]
                if below:
                    trees.append(expanded(view.program.query, catalog))
                found = programs, [one for tree in trees for one in offers_of(view.name, view.fields, tree, keys)]
            known[view.name] = found
        self._offers = known
        return [offer for _, offers in known.values() for offer in offers]

    def _size(self, relation: str, catalog: Catalog) -> float:
        """How many rows a relation has, about, as of the last epoch."""
        now = catalog.version, self._engine.epoch
        if self._rows is None or self._rows[0] != now:
            self._rows = now, stored_rows(self._warehouse)
        return self._rows[1].get(relation, 0.0)


def _differ(a: object, b: object) -> bool:
    return a is not b


def may_answer(view: Relation, catalog: Catalog) -> bool:
    """Whether a view is current, and stored as it is shown.

    What a view has seen of a stream with parts is more than what is kept of it.
    """
    if view.kind is not Kind.VIEW or view.program is None or view.suspended or getattr(view, "lazy", False):
        return False
    inputs = [catalog.find(name) for name in view.program.inputs]
    return not view.program.follows_clock and all(one is not None and one.length is None for one in inputs)


def views_below(program: Program, catalog: Catalog) -> list[Relation]:
    """The views that a program reads, directly or through others, of those that are current."""
    out: dict[str, Relation] = {}
    left = list(program.inputs)
    while left:
        found = catalog.find(left.pop())
        if found is not None and found.name not in out and may_answer(found, catalog):
            assert found.program is not None
            out[found.name] = found
            left += found.program.inputs
    return list(out.values())


def expanded(node: Node, catalog: Catalog) -> Node:
    """A tree in which views that are current stand as what they are made of, down to what is not a view."""

    def one(part: Node) -> Node:
        view = catalog.find(part.relation) if isinstance(part, Scan) else None
        if view is None or view.program is None or not isinstance(part, Scan) or not may_answer(view, catalog):
            return part
        alias = part.alias
        inner = reread(view.program.query, lambda scan: replace(scan, alias=f"{alias}#{scan.alias}"))
        rows = expanded(inner, catalog)
        names = {name: Column(f.name, f.type) for name, f in zip(part.column_names, rows.schema, strict=True)}
        return Project(rows, tuple(names.items()))

    return simplify(transform(node, one))
