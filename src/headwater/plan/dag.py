"""A program as a directed acyclic graph: relations, and what flows from one to the other.

("A view maintenance concept for key-value stores", section 4.1. There an edge is a computation; ours says what its
target takes from its source, and the computation is the target's definition.) A change goes from an input to its
DELTA and on to the maps that follow from it; what is looked up goes from the relation itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headwater.algebra.clock import CLOCK
from headwater.algebra.nodes import During
from headwater.plan.labels import column_label, key_label
from headwater.plan.program import Map, Program
from headwater.plan.reads import Flow, Read, reads_of
from headwater.plan.roles import Role, Roles, input_role, roles_of, roles_text


@dataclass(frozen=True)
class InputNote:
    """What the catalogue knows of a relation that a program reads."""

    name: str
    kind: str
    kept: bool
    key: tuple[str, ...] = ()


@dataclass(frozen=True)
class Size:
    """How large a store is: its entries, and about how many bytes they have, uncompressed."""

    rows: int
    bytes: int

    def __str__(self) -> str:
        rows = "1 row" if self.rows == 1 else f"{self.rows:,} rows"
        return f"{rows}, {bytes_text(self.bytes)}" if self.rows else rows


Sizes = Mapping[str, Size]


def bytes_text(count: int) -> str:
    """
    >>> bytes_text(1_234_567)
    'about 1.2 MB'
    """
    size, unit = float(count), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"about {count if unit == 'bytes' else f'{size:.1f}'} {unit}"


@dataclass(frozen=True)
class Vertex:
    """A relation of a program.

    Attributes:
        name: its name; that of a DELTA is its relation's with a Δ in front.
        roles: what it is there for.
        keys: what its rows are found by: the primary key of a table, the keys of groups, or, for a map of rows, the
            columns that it is looked up by.
        kept: how it is kept.
        size: if it is stored, and that is known.
    """

    name: str
    roles: Roles
    keys: tuple[str, ...]
    kept: str
    size: Size | None = None

    @property
    def facts(self) -> list[str]:
        """What is to be said of it, besides its name."""
        keys = [f"key ({', '.join(self.keys)})"] if self.keys else []
        size = [str(self.size)] if self.size is not None else []
        return [roles_text(self.roles), *keys, self.kept, *size]

    def to_dict(self) -> dict[str, object]:
        return {
            "name": self.name,
            "roles": [role.value for role in self.roles],
            "keys": list(self.keys),
            "kept": self.kept,
            "rows": self.size.rows if self.size else None,
            "bytes": self.size.bytes if self.size else None,
        }


@dataclass(frozen=True)
class Edge:
    """What a relation is made of: `target` takes this from `source`; `key` are the columns that it is read by."""

    source: str
    target: str
    flow: Flow
    key: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        return {"from": self.source, "to": self.target, "flow": self.flow.value, "key": list(self.key)}


@dataclass(frozen=True)
class Dag:
    """Inputs, then their DELTAs, then the clock if a map follows it, then maps in the order in which changes flow.

    The last is the view.
    """

    vertices: tuple[Vertex, ...]
    edges: tuple[Edge, ...]

    def vertex(self, name: str) -> Vertex:
        return next(one for one in self.vertices if one.name == name)

    def into(self, name: str) -> dict[str, list[Edge]]:
        """The edges that end in a vertex, by where they come from."""
        found: dict[str, list[Edge]] = {}
        for edge in self.edges:
            if edge.target == name:
                found.setdefault(edge.source, []).append(edge)
        return found

    def to_dict(self) -> dict[str, object]:
        return {
            "nodes": [one.to_dict() for one in self.vertices],
            "edges": [one.to_dict() for one in self.edges],
        }


def dag_of(program: Program, inputs: Sequence[InputNote], sizes: Sizes) -> Dag:
    """The graph of a program."""
    reads = reads_of(program)
    deltas = _delta_names(program, inputs, reads)
    vertices = [_input(one, sizes) for one in inputs]
    vertices += [_delta(deltas[one.name], one) for one in inputs if one.name in deltas]
    if any(read.source == CLOCK for read in reads):
        vertices.append(Vertex(CLOCK, (Role.CLOCK,), (), "advances with every epoch"))
    roles = roles_of(program)
    vertices += [
        Vertex(one.name, roles[one.name], keys_of(one, program, reads), kept_how(one, program), sizes.get(one.name))
        for one in program.maps
    ]
    edges = [Edge(name, delta, Flow.CHANGES) for name, delta in deltas.items()]
    for read in reads:
        source = deltas.get(read.source, read.source) if read.flow is Flow.CHANGES else read.source
        edges.append(Edge(source, read.target, read.flow, _key(read, program)))
    return Dag(tuple(vertices), tuple(dict.fromkeys(edges)))


def _delta_names(program: Program, inputs: Sequence[InputNote], reads: Sequence[Read]) -> dict[str, str]:
    """Names for the changes of the inputs that a statement waits for."""
    changing = {read.source for read in reads if read.flow is Flow.CHANGES}
    taken = {*(one.name for one in inputs), *(one.name for one in program.maps)}
    names: dict[str, str] = {}
    for one in inputs:
        if one.name in changing:
            name = f"Δ{one.name}"
            while name in taken:  # a table may be named so
                name = f"Δ{name}"
            taken.add(name)
            names[one.name] = name
    return names


def _input(note: InputNote, sizes: Sizes) -> Vertex:
    kept = "stored" if note.kept else "not stored"
    return Vertex(note.name, (input_role(note.kind),), note.key, kept, sizes.get(note.name) if note.kept else None)


def _delta(name: str, note: InputNote) -> Vertex:
    if note.key and note.kind != "synchronised relation":
        kept = "old rows found by key"
    else:
        kept = _CHANGES.get(note.kind, "old rows found by value")
    return Vertex(name, (Role.DELTA,), note.key, kept)


#: How the changes of an input without a key come about, by what it is.
_CHANGES = {
    "stream": "rows only come",
    "view": "as the view issues it",
    "synchronised relation": "the net change, when its policy ticks",
}


def kept_how(one: Map, program: Program) -> str:
    """How a map is kept: what happens to it when something below changes."""
    if program.recomputes(one.name):
        return "recomputed"
    if isinstance(one.definition, During):
        return "by changes and by the clock"
    if one.sums is not None:
        return "partial sums"
    if one.keys is not None:
        return "by key" if one.keys else "whole"
    return "merged" if one.merges else "by changes"


def keys_of(one: Map, program: Program, reads: Sequence[Read]) -> tuple[str, ...]:
    """What the rows of a map are found by."""
    sums = one.sums or (one.present.sums if one.present is not None else None)
    if sums is not None:
        return tuple(key_label(key, sums.input, program) for key in sums.keys)
    if one.keys is not None:
        return tuple(key_label(key, one.source, program) for key in one.keys)
    looked_up = [name for read in reads if read.source == one.name for name in read.key]
    return tuple(dict.fromkeys(column_label(one.definition, name, program) for name in looked_up))


def _key(read: Read, program: Program) -> tuple[str, ...]:
    """The columns that a relation is read by, as people know them."""
    source = next((one for one in program.maps if one.name == read.source), None)
    if source is None:
        return read.key
    return tuple(column_label(source.definition, name, program) for name in read.key)
