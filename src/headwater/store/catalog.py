"""The catalogue: which streams, tables and views exist, and the program of each view."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from functools import cached_property

import duckdb

from headwater import types as t
from headwater.algebra.read import read_type
from headwater.emit.layout import Grouped
from headwater.emit.maintain import grouped_maps
from headwater.plan.program import Program, program_from_dict
from headwater.plan.wanted import Wanted, everything, wanted_of
from headwater.sql.names import fold


class Kind(Enum):
    """What a relation is."""

    STREAM = "stream"
    TABLE = "table"
    VIEW = "view"


RETAIN_ALL = "ALL"


@dataclass(frozen=True)
class Source:
    """Where the rows of a stream come from: FROM format 'location' (options)."""

    format: str
    location: str
    options: Mapping[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.format} {self.location}"


@dataclass(frozen=True)
class Relation:
    """One stream, table or view.

    Attributes:
        key: primary key of a table; empty for a bag of rows.
        static: a table that does not change once a view uses it.
        retain: for how many microseconds a stream's rows stay for new views to start from, `ALL`, or None.
        source: where the rows of a stream come from; None if only statements and the API put rows in.
        begins: the epoch after which all rows of a stream are stored; older ones are gone or were never kept.
        sql: the statement that made it.
        created: the epoch after which it was made.
        program: how a view is maintained.
        strict: a view that must never be recomputed from its inputs.
        suspended: why a view stopped following its inputs, if it did.
        stopped: the last epoch a suspended view has seen.
    """

    name: str
    kind: Kind
    fields: t.Schema
    key: tuple[str, ...] = ()
    static: bool = False
    retain: int | str | None = None
    source: Source | None = None
    begins: int = 0
    sql: str = ""
    created: int = 0
    program: Program | None = None
    strict: bool = False
    suspended: str | None = None
    stopped: int | None = None

    @property
    def folded(self) -> str:
        return fold(self.name)

    @property
    def program_inputs(self) -> tuple[str, ...]:
        """What a view reads."""
        return self.program.inputs if self.program else ()

    @property
    def key_fields(self) -> t.Schema:
        """The fields of the key, which are never NULL."""
        by_name = {f.name: f for f in self.fields}
        return tuple(replace(by_name[name], nullable=False) for name in self.key)

    def to_json(self) -> str:
        return json.dumps(
            {
                "name": self.name,
                "kind": self.kind.value,
                "fields": [[f.name, str(f.type), f.nullable] for f in self.fields],
                "key": list(self.key),
                "static": self.static,
                "retain": self.retain,
                "source": asdict(self.source) if self.source else None,
                "begins": self.begins,
                "sql": self.sql,
                "created": self.created,
                "program": self.program.to_dict() if self.program else None,
                "strict": self.strict,
                "suspended": self.suspended,
                "stopped": self.stopped,
            }
        )


def _from_json(text: str, schemas: Mapping[str, t.Schema]) -> Relation:
    data = json.loads(text)
    fields = tuple(t.Field(name, read_type(of), nullable) for name, of, nullable in data["fields"])
    program = program_from_dict(data["program"], schemas) if data["program"] else None
    source = Source(**data["source"]) if data["source"] else None
    rest = {
        key: data[key]
        for key in ("name", "static", "retain", "begins", "sql", "created", "strict", "suspended", "stopped")
    }
    return Relation(
        kind=Kind(data["kind"]), fields=fields, key=tuple(data["key"]), source=source, program=program, **rest
    )


SCHEMA = (
    "CREATE SCHEMA IF NOT EXISTS hw",
    "CREATE SCHEMA IF NOT EXISTS data",
    "CREATE TABLE IF NOT EXISTS hw.meta (key VARCHAR, value VARCHAR)",
    "CREATE TABLE IF NOT EXISTS hw.relations (id BIGINT, folded VARCHAR, definition VARCHAR)",
    "CREATE TABLE IF NOT EXISTS hw.epochs (number BIGINT, clock TIMESTAMP, changes BIGINT, by_relation VARCHAR)",
    "CREATE TABLE IF NOT EXISTS hw.progress (pipeline VARCHAR, batch BIGINT)",
    "CREATE TABLE IF NOT EXISTS hw.rejects (stream VARCHAR, epoch BIGINT, records BIGINT)",
)


class Catalog:
    """The relations of a warehouse, in the order of their creation.

    Inputs of a view are older than the view, so this order is also one in which changes can flow.
    An instance is a snapshot: a change makes a new one, so that readers keep what they began with. Its version is
    stored with it, so that a reader can tell whether the stores it reads are those that the catalogue describes.
    """

    def __init__(self, relations: tuple[Relation, ...] = (), version: int = 0) -> None:
        self.relations = relations
        self.version = version
        self._by_name = {one.folded: one for one in relations}

    def __iter__(self) -> Iterator[Relation]:
        return iter(self.relations)

    def find(self, name: str) -> Relation | None:
        return self._by_name.get(fold(name))

    def dependents(self, name: str) -> tuple[Relation, ...]:
        """Views that read a relation directly, oldest first."""
        key = fold(name)
        return tuple(one for one in self.relations if one.program and key in {fold(i) for i in one.program.inputs})

    def all_dependents(self, name: str) -> tuple[Relation, ...]:
        """Views that read a relation directly or through other views, oldest first."""
        found = {fold(name)}
        out: list[Relation] = []
        for one in self.relations:
            if one.program and found & {fold(i) for i in one.program.inputs}:
                found.add(one.folded)
                out.append(one)
        return tuple(out)

    def keeps(self, relation: Relation) -> bool:
        """Whether a relation's rows are stored: always, but for a stream that nothing looks back into."""
        if relation.kind is not Kind.STREAM or relation.retain is not None:
            return True
        return any(one.program and relation.name in one.program.stored_reads for one in self.relations)

    def wanted(self, stream: Relation) -> Wanted:
        """What of a stream must be stored, if anything is: all of it if it is retained, else what views use."""
        if stream.retain is not None:
            return everything(stream.fields)
        return wanted_of(stream.name, [one.program for one in self.relations if one.program])

    @property
    def programs(self) -> list[Program]:
        return [one.program for one in self.relations if one.program is not None]

    @cached_property
    def map_names(self) -> frozenset[str]:
        """All maps, the views themselves among them."""
        return frozenset(one.name for program in self.programs for one in program.maps)

    @property
    def grouped(self) -> Mapping[str, Grouped]:
        """Maps and views that are stored by group."""
        return grouped_maps(one for program in self.programs for one in program.maps)

    def with_added(self, relation: Relation) -> Catalog:
        return Catalog((*self.relations, relation), self.version + 1)

    def without(self, names: set[str]) -> Catalog:
        return Catalog(tuple(one for one in self.relations if one.folded not in names), self.version + 1)

    def with_changed(self, relation: Relation) -> Catalog:
        changed = tuple(relation if one.folded == relation.folded else one for one in self.relations)
        return Catalog(changed, self.version + 1)


def suspend(relation: Relation, reason: str, epoch: int) -> Relation:
    return replace(relation, suspended=reason, stopped=epoch)


def resume(relation: Relation) -> Relation:
    return replace(relation, suspended=None, stopped=None)


def load(connection: duckdb.DuckDBPyConnection) -> Catalog:
    """Read the catalogue."""
    relations: list[Relation] = []
    schemas: dict[str, t.Schema] = {}
    for (text,) in connection.execute("SELECT definition FROM hw.relations ORDER BY id").fetchall():
        relation = _from_json(text, schemas)
        schemas[relation.name] = relation.fields
        relations.append(relation)
    return Catalog(tuple(relations), stored_version(connection))


def stored_version(connection: duckdb.DuckDBPyConnection) -> int:
    """The version of the catalogue as of the connection's snapshot."""
    [(version,)] = connection.execute("SELECT max(value::BIGINT) FROM hw.meta WHERE key = 'catalogue'").fetchall()
    return int(version or 0)


def save(connection: duckdb.DuckDBPyConnection, before: Catalog, after: Catalog) -> None:
    """Write the difference between two catalogues, inside the caller's transaction."""
    connection.execute("DELETE FROM hw.meta WHERE key = 'catalogue'")
    connection.execute("INSERT INTO hw.meta VALUES ('catalogue', ?)", [str(after.version)])
    old = {one.folded: one for one in before}
    new = {one.folded: one for one in after}
    for folded in old.keys() - new.keys():
        connection.execute("DELETE FROM hw.relations WHERE folded = ?", [folded])
    for folded, relation in new.items():
        if folded not in old:
            connection.execute(
                "INSERT INTO hw.relations SELECT coalesce(max(id), 0) + 1, ?, ? FROM hw.relations",
                [folded, relation.to_json()],
            )
        elif old[folded] != relation:
            connection.execute("UPDATE hw.relations SET definition = ? WHERE folded = ?", [relation.to_json(), folded])
