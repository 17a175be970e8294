"""Where a statement needs only the rows of some keys of a store, so that they may be looked up instead of scanned.

A statement that follows from a change joins it with what is stored. A stored relation that the join equates with the
change, or with rows that are themselves looked up, is *probed*: `Probe` says by which columns, and which query yields
the keys, as hashes. The engine decides in every epoch whether it looks them up (`headwater.engine.access`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from headwater import types as t
from headwater.algebra.functions import may_raise
from headwater.algebra.joins import equates, flatten, joined
from headwater.algebra.nodes import Named, Node, Project, Scan, Sum, Version
from headwater.algebra.scalars import Column, Scalar
from headwater.emit.duckdb import Emitter
from headwater.emit.functions.build import duckdb_type, recast
from headwater.emit.layout import column, delta_table, key_column, name, pending_table, sql
from headwater.plan.program import Map

#: Equal values of these types have equal hashes in DuckDB. Those of DOUBLE may not: 0.0 and -0.0 are equal.
_HASHED = (t.Boolean, t.Integer, t.Decimal, t.String, t.Date, t.Timestamp)
#: The one column of a query for keys, and of a sorted copy's.
HASH = "#h"

#: The views that stand for stores in a statement, by the aliases of its scans.
Found = Mapping[str, str]
#: The alias of the store of the map that a statement settles.
OWN = ""


@dataclass(frozen=True)
class Path:
    """A way into a store: by the values of some columns, in the order of their names."""

    store: str
    columns: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.store} by {', '.join(self.columns)}"


@dataclass(frozen=True)
class Probe:
    """A scan of a statement whose rows can be looked up.

    Attributes:
        path: how.
        alias: of the scan, or `OWN`.
        source: the temporary table whose rows bound how many keys there are.
        needs: other scans, whose rows the keys are taken from.
        keys: the query for the hashes of the keys, given what stands for the scans that it reads.
    """

    path: Path
    alias: str
    source: str
    needs: frozenset[str] = frozenset()
    keys: Callable[[Found], str] = field(compare=False, default=lambda found: "")


def hash_of(values: Sequence[exp.Expr]) -> exp.Expr:
    """What rows are looked up by."""
    return exp.Alias(this=exp.Anonymous(this="hash", expressions=list(values)), alias=name(HASH))


def hashed(of: t.Type) -> bool:
    """Whether values of a type can be looked up."""
    return isinstance(of, _HASHED)


def probes_of_step(term: Node, emitter: Emitter) -> tuple[Probe, ...]:
    """The probes of a statement that follows from a relation's change."""
    flat = flatten(term.input if isinstance(term, Sum) else term)
    changes = [one for one in flat.leaves if isinstance(one, Scan) and one.version is Version.DELTA]
    if len(changes) != 1 or emitter.careful or flat.size > _LARGEST:  # a change joined with itself is small work
        return ()
    source = sql(delta_table(changes[0].relation))
    return _Finder(flat.leaves, flat.conditions, source, emitter).from_change(changes[0])


def probes_of_settle(one: Map, keys: t.Schema, emitter: Emitter) -> tuple[Probe, ...]:
    """The probes of the statement that settles a map by its keys: its own store, and what touched keys are made of."""
    if not keys or emitter.careful or not all(hashed(f.type) for f in keys):
        return ()
    source = sql(pending_table(one.name))

    @functools.cache
    def query(positions: tuple[int, ...]) -> str:
        wanted = [column(key_column(i)) for i in positions]
        return sql(exp.Select(expressions=[hash_of(wanted)]).from_(pending_table(one.name), copy=False))

    every = tuple(sorted(range(len(keys)), key=key_column))
    own = Probe(Path(one.name, tuple(key_column(i) for i in every)), OWN, source, keys=lambda found: query(every))
    if one.keys is None:
        return (own,)
    flat = flatten(one.source)
    if flat.size > _LARGEST:
        return (own,)
    finder = _Finder(flat.leaves, flat.conditions, source, emitter)
    places = [flat.through(key) for _, key in one.keys]
    return own, *finder.from_keys(places, query)


def probe_of_batch(relation: str, fields: t.Schema, source: exp.Table) -> Probe | None:
    """The probe for rows of a relation that agree with a batch in some columns."""
    wanted = sorted((f for f in fields if hashed(f.type)), key=lambda f: f.name)
    if not wanted:
        return None
    query = sql(exp.Select(expressions=[hash_of([column(f.name) for f in wanted])]).from_(source, copy=False))
    return Probe(Path(relation, tuple(f.name for f in wanted)), OWN, sql(source), keys=lambda found: query)


#: Scalars of a join that is looked at.
_LARGEST = 2_000


class _Finder:
    """Follows equalities from what is known to what can be looked up."""

    def __init__(self, leaves: Sequence[Node], conditions: Sequence[Scalar], source: str, emitter: Emitter) -> None:
        self._scans = {one.alias: one for one in leaves if isinstance(one, Scan)}
        self._conditions = [one for one in conditions if not may_raise(one)]
        self._source = source
        self._emitter = emitter
        self._known: dict[str, Scan] = {}
        self._probes: list[Probe] = []

    def from_change(self, change: Scan) -> tuple[Probe, ...]:
        self._known[change.alias] = change
        return self._follow()

    def from_keys(self, places: Sequence[Scalar], query: Callable[[tuple[int, ...]], str]) -> tuple[Probe, ...]:
        """From the keys of touched groups: what they are made of is looked up by them."""
        for alias, scan in self._scans.items():
            own = {f"{alias}.{f.name}": f for f in scan.fields}
            here = {own[p.name].name: i for i, p in enumerate(places) if isinstance(p, Column) and p.name in own}
            if not here:
                continue
            path, order = self._path(scan, sorted(here))
            positions = [here[text] for text in order]
            self._add(scan, Probe(path, alias, self._source, keys=lambda found, p=tuple(positions): query(p)))  # type: ignore[misc]
        return self._follow()

    def _follow(self) -> tuple[Probe, ...]:
        more = True
        while more:
            more = False
            for alias, scan in self._scans.items():
                if alias in self._known or scan.version is Version.DELTA:
                    continue
                pairs = self._equated(scan)
                if pairs:
                    self._add(scan, self._probe(scan, pairs))
                    more = True
        return tuple(self._probes)

    def _equated(self, scan: Scan) -> dict[str, Scalar]:
        """Columns of a scan, and what is known to equal them."""
        own = {f"{scan.alias}.{f.name}": f for f in scan.fields}
        known = {f"{alias}.{f.name}" for alias, one in self._known.items() for f in one.fields}
        found: dict[str, Scalar] = {}
        for condition in self._conditions:
            sides = equates(condition)
            for mine, other in (sides, sides[::-1]) if sides else ():
                if not isinstance(mine, Column) or mine.name not in own or not hashed(mine.type):
                    continue
                if other.type == mine.type and other.columns and other.columns <= known:
                    found.setdefault(own[mine.name].name, other)
        return found

    def _probe(self, scan: Scan, pairs: Mapping[str, Scalar]) -> Probe:
        path, order = self._path(scan, sorted(pairs))
        values = [pairs[text] for text in order]
        needs = self._needs(values)
        # The change itself stays in: without it all rows of what it is joined with would be keys.
        known = [one for alias, one in self._known.items() if alias in needs or one.version is Version.DELTA]
        columns = {f"{one.alias}.{f.name}" for one in known for f in one.fields}
        held = [one for one in self._conditions if one.columns <= columns]
        named: tuple[Named, ...] = tuple((key_column(i), value) for i, value in enumerate(values))
        keys = Project(joined(known, held), named)

        @functools.cache
        def text(found: tuple[tuple[str, str], ...]) -> str:
            rows = exp.Subquery(
                this=self._emitter.finding(dict(found)).rows(keys), alias=exp.TableAlias(this=name("keys"))
            )
            wanted = [recast(column(text), duckdb_type(value.type)) for text, value in named]
            return sql(exp.Select(expressions=[hash_of(wanted)]).from_(rows, copy=False))

        def query(found: Found) -> str:
            return text(tuple(sorted((alias, view) for alias, view in found.items() if alias in needs)))

        return Probe(path, scan.alias, self._source, frozenset(needs), query)

    def _needs(self, values: Sequence[Scalar]) -> set[str]:
        """The stored scans that keys are taken from, and those that these were found by."""
        by_alias = {one.alias: one for one in self._probes}
        used = {alias for alias, one in self._known.items() for f in one.fields
                if any(f"{alias}.{f.name}" in value.columns for value in values)}  # fmt: skip
        stored = {alias for alias in used if alias in by_alias}
        for alias in tuple(stored):
            stored |= by_alias[alias].needs
        return stored

    def _path(self, scan: Scan, columns: Sequence[str]) -> tuple[Path, list[str]]:
        """The path for some columns of a scan, and these columns in its order."""
        stored = {self._emitter.stored_name(scan.relation, text): text for text in columns}
        return Path(scan.relation, tuple(sorted(stored))), [stored[text] for text in sorted(stored)]

    def _add(self, scan: Scan, probe: Probe) -> None:
        self._known[scan.alias] = scan
        self._probes.append(probe)
