"""The catalogue: which streams, tables and views exist, and the program of each view."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from functools import cached_property

import duckdb

from headwater import types as t
from headwater.algebra.nodes import Node
from headwater.algebra.parts import PART
from headwater.algebra.read import read_type
from headwater.algebra.renaming import with_definitions
from headwater.algebra.scalars import FALSE, TRUE, Scalar
from headwater.emit.layout import Grouped
from headwater.emit.maintain import grouped_maps
from headwater.errors import NotSupported, UserError
from headwater.plan.parts import PartProgram, part_program_from_dict
from headwater.plan.program import Program, program_from_dict
from headwater.plan.wanted import Reading, Wanted, everything, wanted_by
from headwater.sql.names import fold
from headwater.store.policies import Policy, When, policy_from_dict, synchronised


class Kind(Enum):
    """What a relation is."""

    STREAM = "stream"
    TABLE = "table"
    VIEW = "view"
    #: `S@p`: another relation as of the last tick of a refresh policy.
    SYNCHRONISED = "synchronised relation"


RETAIN_ALL = "ALL"
#: The stream of whole seconds as they pass, which is there as soon as something reads it.
CLOCK_STREAM, CLOCK_COLUMN, CLOCK_FORMAT = "clockStr", "TimePoint", "clock"


@dataclass(frozen=True)
class Source:
    """Where the rows of a stream come from: FROM format 'location' (options)."""

    format: str
    location: str
    options: Mapping[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.format} {self.location}"


@dataclass(frozen=True)
class Codes:
    """OP BY: which column of an arriving row says what to do with it, and what its values mean.

    Attributes:
        column: its name; it is not a column of the relation.
        type: its type.
        position: where it stands among the columns as they were declared.
        upserts: values of a row that is put in place of the last one of its key.
        deletes: values of a row whose key goes.
        ignores: values of a row that changes nothing.
    """

    column: str
    type: str
    position: int
    upserts: tuple[str, ...]
    deletes: tuple[str, ...]
    ignores: tuple[str, ...] = ()


@dataclass(frozen=True)
class Index:
    """CREATE INDEX: by which columns rows of a relation are found."""

    name: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Relation:
    """One stream, table or view.

    Attributes:
        key: primary key of a table, or KEY of a stream; empty for a bag of rows.
        identity: of a view: the columns that tell its rows apart, none if it has one row at most; None if nothing does.
        sequence: SEQUENCE BY of a keyed stream: a row with a lower value than the last one of its key comes too late.
        codes: OP BY of a keyed stream.
        stamp: a column that is not given but filled with the epoch's clock, in whole seconds.
        over: of a tagged stream: the raw stream whose rows it takes.
        partial: of a keyed stream: the epoch after which rows were left out of its store that no view could use.
        policy: of a synchronised relation: when it takes what has changed.
        of: of a synchronised relation: the relation that it stands for.
        appends: of a synchronised relation: whether the relation that it stands for is a stream that only grows.
        refresh: what a view's REFRESH says; None for one that is fresh after every epoch, or is evaluated when read.
        timing: of a view: `ON QUERY` if it is evaluated when it is read, `AUTO` if the planner decides on that.
        changes: for how many microseconds a view's changes are kept for subscribers, `ALL`, or None.
        time: TIMESTAMP BY of a stream: the column that says when something happened.
        lateness: how many microseconds after the newest row a row may come and still be taken; None for any time.
        length: how many seconds a part spans, of a stream or a view that has parts.
        whole: of a stream with parts: the epoch after which its rows are stored whole. Before it, only what ordinary
            views could use was.
        roll_up: after how many microseconds parts are rolled up, and into parts of how many seconds.
        parts: how a view of parts is maintained.
        helper: of a view of parts that was made for another one: that view.
        written: of a view that was translated into a view of parts: the statement that it stands for.
        static: a table that does not change once a view uses it.
        retain: for how many microseconds a stream's rows stay for new views to start from, `ALL`, or None.
        source: where the rows of a stream come from; None if only statements and the API put rows in.
        begins: the epoch after which all rows of a stream are stored, or all changes of a view that keeps them; older
            ones are gone or were never kept.
        sql: the statement that made it.
        created: the epoch after which it was made.
        program: how a view is maintained.
        strict: a view that must never be recomputed from its inputs; a keyed stream that refuses to delete what is not
            there.
        suspended: why a view stopped following its inputs, if it did.
        stopped: the last epoch a suspended view has seen.
        indexes: by which columns its rows are found, besides scanning.
    """

    name: str
    kind: Kind
    fields: t.Schema
    key: tuple[str, ...] = ()
    identity: tuple[str, ...] | None = None
    sequence: str | None = None
    codes: Codes | None = None
    stamp: str | None = None
    over: str | None = None
    partial: int | None = None
    policy: Policy | None = None
    of: str | None = None
    appends: bool = False
    refresh: Policy | None = None
    timing: str | None = None
    changes: int | str | None = None
    time: str | None = None
    lateness: int | None = None
    length: int | None = None
    whole: int = 0
    roll_up: tuple[int, int] | None = None
    parts: PartProgram | None = None
    helper: str | None = None
    written: str | None = None
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
    indexes: tuple[Index, ...] = ()

    @property
    def folded(self) -> str:
        return fold(self.name)

    @property
    def lazy(self) -> bool:
        """Whether it is evaluated when it is read: nothing stores its rows, and it has no changes."""
        return self.program is not None and self.program.lazy

    @property
    def has_feed(self) -> bool:
        """Whether a pipeline brings its rows."""
        return self.source is not None and self.source.format != CLOCK_FORMAT

    @property
    def flows(self) -> bool:
        """Whether its rows come and never go, so that they need not be kept: a stream without a key."""
        return self.appends or (self.kind is Kind.STREAM and not self.key)

    @property
    def reads(self) -> tuple[str, ...]:
        """The relations that it follows from, and those that tell it when to follow."""
        if self.policy is not None and self.of is not None:
            return (self.of, self.policy.name) if self.policy.when is When.ON else (self.of,)
        if self.parts is not None:
            return self.parts.inputs
        return (self.over,) if self.over is not None else self.program_inputs

    @property
    def program_inputs(self) -> tuple[str, ...]:
        """What a view reads."""
        return self.program.inputs if self.program else ()

    @property
    def key_fields(self) -> t.Schema:
        """The fields of the key, which are never NULL."""
        by_name = {f.name: f for f in self.fields}
        return tuple(replace(by_name[name], nullable=False) for name in self.key)

    @property
    def is_keyed_stream(self) -> bool:
        """Whether an arriving row replaces the last one of its key."""
        return self.kind is Kind.STREAM and bool(self.key)

    @cached_property
    def arriving(self) -> t.Schema:
        """The columns of rows on their way in: without one that is stamped, with one that says what to do with the row.

        A row that deletes needs only its key, and its place in the sequence.
        """
        fields = [f for f in self.fields if f.name != self.stamp and not (self.length and f.name == PART)]
        if self.codes is None:
            return tuple(fields)
        needed = {*self.key, self.sequence}
        fields = [replace(f, nullable=f.nullable or f.name not in needed) for f in fields]
        fields.insert(self.codes.position, t.Field(self.codes.column, read_type(self.codes.type)))
        return tuple(fields)

    @property
    def buried(self) -> str:
        """The name of the store that has, of each key that is gone, the sequence that it went with."""
        return f"{self.name}#gone"

    @cached_property
    def buried_fields(self) -> t.Schema:
        """The columns of that store: the key and the sequence."""
        by_name = {f.name: f for f in self.fields}
        return tuple(by_name[name] for name in (*self.key, self.sequence) if name is not None)

    @property
    def keeps_late(self) -> bool:
        """Whether rows that come too late for it are kept aside."""
        return self.kind is Kind.STREAM and self.time is not None and not self.key

    @property
    def late(self) -> str:
        """The name of the store of rows that came too late for a stream with event time, or were out of all bounds."""
        return f"{self.name}#late"

    @cached_property
    def late_fields(self) -> t.Schema:
        """The columns of that store: those that rows arrive with, and why they were kept aside."""
        return (*self.arriving, t.Field("#reason", t.STRING, nullable=False))

    def to_json(self) -> str:
        return json.dumps(
            {
                "name": self.name,
                "kind": self.kind.value,
                "fields": [[f.name, str(f.type), f.nullable] for f in self.fields],
                "key": list(self.key),
                "identity": None if self.identity is None else list(self.identity),
                "sequence": self.sequence,
                "codes": asdict(self.codes) if self.codes else None,
                "stamp": self.stamp,
                "over": self.over,
                "partial": self.partial,
                "policy": self.policy.to_dict() if self.policy else None,
                "of": self.of,
                "appends": self.appends,
                "refresh": self.refresh.to_dict() if self.refresh else None,
                "timing": self.timing,
                "changes": self.changes,
                "time": self.time,
                "lateness": self.lateness,
                "length": self.length,
                "whole": self.whole,
                "roll_up": list(self.roll_up) if self.roll_up else None,
                "parts": self.parts.to_dict() if self.parts else None,
                "helper": self.helper,
                "written": self.written,
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
                "indexes": [[one.name, list(one.columns)] for one in self.indexes],
            }
        )


def _from_json(text: str, schemas: Mapping[str, t.Schema]) -> Relation:
    data = json.loads(text)
    fields = tuple(t.Field(name, read_type(of), nullable) for name, of, nullable in data["fields"])
    program = program_from_dict(data["program"], schemas) if data["program"] else None
    own = {**schemas, data["name"]: fields}
    parts = part_program_from_dict(data["parts"], own) if data["parts"] else None
    source = Source(**data["source"]) if data["source"] else None
    codes = data["codes"]
    lists = {name: tuple(one) for name, one in codes.items() if isinstance(one, list)} if codes else {}
    rest = {key: data[key] for key in _PLAIN}
    return Relation(
        kind=Kind(data["kind"]),
        fields=fields,
        key=tuple(data["key"]),
        identity=None if data["identity"] is None else tuple(data["identity"]),
        source=source,
        program=program,
        parts=parts,
        roll_up=tuple(data["roll_up"]) if data["roll_up"] else None,
        codes=Codes(**{**codes, **lists}) if codes else None,
        policy=policy_from_dict(data["policy"]) if data["policy"] else None,
        refresh=policy_from_dict(data["refresh"]) if data["refresh"] else None,
        indexes=tuple(Index(name, tuple(columns)) for name, columns in data.get("indexes", ())),
        **rest,
    )


_PLAIN = (
    *("name", "sequence", "stamp", "over", "partial", "of", "appends", "changes", "static", "retain", "begins"),
    *("sql", "created", "strict", "time", "lateness", "length", "whole", "helper", "written", "timing"),
    *("suspended", "stopped"),
)


def clock_stream(epoch: int, moment: dt.datetime) -> Relation:
    """The clock stream, as it is made after an epoch, at a moment: seconds before that are none of its own."""
    fields = (t.Field(CLOCK_COLUMN, t.BIGINT, nullable=False),)
    source = Source(CLOCK_FORMAT, moment.isoformat())
    return Relation(CLOCK_STREAM, Kind.STREAM, fields, source=source, begins=epoch, created=epoch)


def follower(relation: Relation, policy: Policy, epoch: int) -> Relation:
    """The relation that stands for another as synchronised by a policy, as it is made after an epoch."""
    return Relation(
        synchronised(relation.name, policy),
        Kind.SYNCHRONISED,
        relation.fields,
        key=relation.key,
        identity=relation.identity,
        stamp=relation.stamp,
        policy=policy,
        of=relation.name,
        appends=relation.flows,
        retain=relation.retain if relation.flows else None,
        begins=relation.begins if relation.retain is not None else epoch,
        created=epoch,
    )


def no_changes(relation: Relation) -> NotSupported:
    """The answer to who needs the changes of a view that is evaluated when it is read."""
    return NotSupported(
        "HW220",
        f"view {relation.name} is evaluated when it is read: it has no changes to wait for",
        hint=f"make {relation.name} REFRESH EVERY EPOCH, or read what it reads",
    )


def on_stream(relation: Relation) -> Policy:
    """The policy that ticks when a row comes to a relation.

    Raises:
        UserError: HW180, the relation has other columns than one time.
    """
    if relation.lazy:
        raise no_changes(relation)
    if len(relation.fields) != 1 or not isinstance(relation.fields[0].type, t.Integer | t.Timestamp | t.Date):
        raise UserError(
            "HW180",
            f"{relation.name} is no synchronisation stream: it must have one column, which is a time",
            hint="a time is a TIMESTAMP, a DATE or a number of seconds; make a view that selects only that column",
        )
    return Policy(When.ON, name=relation.name)


SCHEMA = (
    "CREATE SCHEMA IF NOT EXISTS hw",
    "CREATE SCHEMA IF NOT EXISTS data",
    "CREATE TABLE IF NOT EXISTS hw.segments (copy VARCHAR, relation VARCHAR, partition INTEGER, path VARCHAR, "
    "first BIGINT, last BIGINT, rows BIGINT, size BIGINT, generation BIGINT)",
    "CREATE TABLE IF NOT EXISTS hw.meta (key VARCHAR, value VARCHAR)",
    "CREATE TABLE IF NOT EXISTS hw.relations (id BIGINT, folded VARCHAR, definition VARCHAR)",
    "CREATE TABLE IF NOT EXISTS hw.epochs (number BIGINT, clock TIMESTAMP, changes BIGINT, by_relation VARCHAR,"
    " ticked VARCHAR)",
    "CREATE TABLE IF NOT EXISTS hw.progress (pipeline VARCHAR, batch BIGINT)",
    "CREATE TABLE IF NOT EXISTS hw.rejects (stream VARCHAR, epoch BIGINT, records BIGINT, reason VARCHAR)",
    "CREATE TABLE IF NOT EXISTS hw.parts (relation VARCHAR, part BIGINT, rows BIGINT, epoch BIGINT, single BOOLEAN)",
    "CREATE TABLE IF NOT EXISTS hw.frontiers (relation VARCHAR, first BIGINT, next BIGINT, watermark BIGINT,"
    " kept BIGINT, rolled BIGINT)",
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
        self._kept_rows: dict[str, Scalar] = {}

    def __iter__(self) -> Iterator[Relation]:
        return iter(self.relations)

    def find(self, name: str) -> Relation | None:
        return self._by_name.get(fold(name))

    def find_index(self, name: str) -> tuple[Relation, Index] | None:
        """An index by its name, and the relation that has it."""
        key = fold(name)
        return next(((r, one) for r in self.relations for one in r.indexes if fold(one.name) == key), None)

    def stored_columns(self, relation: Relation, columns: Iterable[str]) -> tuple[str, ...]:
        """The names under which columns of a relation are stored, in their order."""
        grouped = self.grouped.get(relation.name)
        return tuple(grouped.repeats.get(one, one) if grouped is not None else one for one in columns)

    def dependents(self, name: str) -> tuple[Relation, ...]:
        """What reads a relation directly, oldest first."""
        key = fold(name)
        return tuple(one for one in self.relations if key in {fold(i) for i in one.reads})

    def all_dependents(self, name: str) -> tuple[Relation, ...]:
        """What reads a relation directly or through others, oldest first."""
        found = {fold(name)}
        out: list[Relation] = []
        for one in self.relations:
            if found & {fold(i) for i in one.reads}:
                found.add(one.folded)
                out.append(one)
        return tuple(out)

    def unread(self, names: set[str]) -> set[str]:
        """Names of synchronised relations that nobody reads once these relations are gone, by their folded names."""
        left = [one for one in self.relations if one.folded not in names]
        read = {fold(name) for one in left for name in one.reads}
        return {one.folded for one in left if one.policy is not None and one.folded not in read}

    def synchronised(self, name: str) -> tuple[Relation, ...]:
        """The synchronised relations that stand for a relation."""
        key = fold(name)
        return tuple(one for one in self.relations if one.of is not None and fold(one.of) == key)

    def tagged_over(self, stream: Relation) -> tuple[Relation, ...]:
        """The tagged streams that take the rows of a raw stream."""
        return tuple(one for one in self.relations if one.over is not None and fold(one.over) == stream.folded)

    def keeps(self, relation: Relation) -> bool:
        """Whether a relation's rows are stored: always, but for a stream that nothing looks back into, and for a view
        that is evaluated when it is read.

        A keyed stream always is: what a row replaces must be known.
        """
        if relation.lazy:
            return False
        if not relation.flows or relation.retain is not None:
            return True
        return any(
            (one.program and relation.name in one.program.stored_reads)
            or (one.parts and relation.name in one.parts.stored_reads)
            for one in self.relations
        )

    def feeds_parts(self, relation: Relation) -> bool:
        """Whether a view of parts reads a relation."""
        return any(one.parts and relation.name in one.parts.inputs for one in self.relations)

    def stored_whole_since(self, stream: Relation, epoch: int) -> int:
        """The epoch after which all rows of a stream, and all of their columns, are stored; `epoch` is the last one."""
        partly = self.keeps(stream) and stream.retain is None and not self.feeds_parts(stream)
        return epoch if partly else stream.whole

    def readings(self, relation: Relation) -> list[Reading]:
        """The programs that read a relation's rows, each with the name under which it does.

        That is the relation's own name, or the one of a synchronised relation that stands for it.
        """
        return [(name, program) for program in self.programs for name in self.known_as(relation)]

    def wanted(self, stream: Relation) -> Wanted:
        """What of a stream must be handed over and stored, if anything is: all of it if it is retained, else what
        views use.

        A row of a keyed stream is always wanted: it replaces another one, even if it is of no use itself.
        """
        if stream.retain is not None or stream.key or self.feeds_parts(stream) or self.tagged_over(stream):
            return everything(stream.arriving)
        return wanted_by(self.readings(stream))

    def known_as(self, relation: Relation) -> tuple[str, ...]:
        """The names under which programs read a relation: its own, and those of the relations that stand for it."""
        return (relation.name, *(one.name for one in self.synchronised(relation.name)))

    def kept_rows(self, stream: Relation, beside: Program | None = None) -> Scalar:
        """Which rows of a keyed stream are kept: TRUE, or the condition that one of its views has.

        (Ghanem et al., "Supporting Views in Data Stream Management Systems", section 10.3.1: the merged Select-Tagger.)
        All are kept if RETAIN asks for it, if STRICT must know every key, or if nothing reads the stream yet.

        Args:
            stream: which.
            beside: a program that is to be counted among those that read it, in place of the one of its name.
        """
        if beside is None and stream.name in self._kept_rows:
            return self._kept_rows[stream.name]
        readings = self.readings(stream)
        if beside is not None:
            readings = [one for one in readings if one[1].view != beside.view]
            readings += [(name, beside) for name in self.known_as(stream)]
        rows = wanted_by(readings).rows
        kept = TRUE if stream.retain is not None or stream.strict or rows == FALSE else rows
        if beside is None:
            self._kept_rows[stream.name] = kept
        return kept

    @property
    def keys(self) -> Mapping[str, tuple[str, ...]]:
        """What tells the rows of each relation apart, where something does."""
        return {
            one.name: one.key or one.identity or () for one in self.relations if one.key or one.identity is not None
        }

    @cached_property
    def timed(self) -> frozenset[str]:
        """Views that need not be kept after every epoch."""
        return frozenset(one.name for one in self.relations if one.timing is not None)

    @property
    def programs(self) -> list[Program]:
        return [one.program for one in self.relations if one.program is not None]

    @cached_property
    def map_names(self) -> frozenset[str]:
        """All maps, the views themselves among them."""
        return frozenset(one.name for program in self.programs for one in program.maps)

    @cached_property
    def read_through(self) -> Mapping[str, Node]:
        """Of views that are evaluated when they are read: their rows, over what is stored."""
        return {
            one.name: with_definitions(one.program.upper, {held.name: held.definition for held in one.program.held})
            for one in self.relations
            if one.program is not None and one.program.upper is not None
        }

    @property
    def planned_through(self) -> Mapping[str, Node]:
        """The queries of these views: those over them are planned as if they had written them."""
        return {one.name: one.program.query for one in self.relations if one.lazy and one.program is not None}

    @cached_property
    def partial(self) -> frozenset[str]:
        """Maps of partial sums: their rows are there once each."""
        return frozenset(one.name for program in self.programs for one in program.maps if one.sums is not None)

    @property
    def grouped(self) -> Mapping[str, Grouped]:
        """Maps and views that are stored by group."""
        return grouped_maps(one for program in self.programs for one in program.maps)

    def with_added(self, relation: Relation) -> Catalog:
        return Catalog((*self.relations, relation), self.version + 1)

    def noting_partial(self, epoch: int) -> Catalog:
        """The same, in which it is noted since which epoch keyed streams leave rows out; `epoch` is the last one."""
        changed = self
        for one in self.relations:
            if one.is_keyed_stream:
                since: int | None = one.partial if one.partial is not None else epoch
                if self.kept_rows(one) == TRUE and since == epoch:  # nothing has come meanwhile
                    since = None
                if since != one.partial:
                    changed = changed.with_changed(replace(one, partial=since))
        return changed

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
