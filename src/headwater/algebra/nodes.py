"""The algebra: immutable nodes over generalised multiset relations.

A relation here is a map from rows to a signed multiplicity, so that a table, a change to it and a retraction are the
same kind of thing (Ahmad, Kennedy, Koch, Nikolic, "DBToaster", section 3.1). Most nodes are linear or multilinear in
their inputs. `Present` and `Over` are not, and a view is cut into blocks at them.

`Sum` yields a *map*, `keys -> payload`: its payload columns add up when maps are united, where rows would only gain
multiplicity. `Present` turns a map back into rows. No other node accepts a map. A `Sum` with picks is not linear
either: what does not add up is computed from all rows of a group.

Every node derives its `schema`, and its constructor refuses an ill-formed tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from enum import Enum
from functools import cached_property

from headwater import types as t
from headwater.algebra.folds import Pick, WindowCall
from headwater.algebra.scalars import Call, Column, Literal, Scalar

Named = tuple[str, Scalar]


class IllFormed(Exception):
    """A tree that means nothing; always a defect of whoever built it."""


class Version(Enum):
    """Which state of a relation a `Scan` reads while a statement of an epoch runs."""

    STORED = "stored"  #: what the store holds at that moment
    DELTA = "delta"  #: what changes in this epoch
    NEW = "new"  #: stored plus delta; only self-joins need it


@dataclass(frozen=True)
class Node:
    """Base of all relational nodes.

    A tree may hold the same object in several places, so what is computed of a node is kept with it.
    """

    def __init_subclass__(cls) -> None:
        cls.__hash__ = Node.__hash__  # type: ignore[method-assign]  # else a dataclass makes one that goes down anew

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((type(self).__name__, *(getattr(self, one.name) for one in fields(self))))

    @cached_property
    def schema(self) -> t.Schema:
        raise IllFormed(f"{type(self).__name__} has no schema")

    @property
    def children(self) -> tuple[Node, ...]:
        return ()

    @cached_property
    def column_types(self) -> dict[str, t.Type]:
        """The type of each column, by its name."""
        return {field.name: field.type for field in self.schema}

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.schema)

    def column(self, name: str) -> Column:
        """The scalar that reads one of this node's columns."""
        if name not in self.column_types:
            raise IllFormed(f"no column {name!r} in {self.column_names}")
        return Column(name, self.column_types[name])

    def walk(self) -> Iterator[Node]:
        """This node and everything below it, parents first; a node that stands in several places once."""
        seen: set[int] = set()
        left: list[Node] = [self]
        while left:
            node = left.pop()
            if id(node) not in seen:
                seen.add(id(node))
                yield node
                left.extend(reversed(node.children))

    @property
    def relations(self) -> frozenset[str]:
        """Names of all relations it scans."""
        return frozenset(node.relation for node in self.walk() if isinstance(node, Scan))

    def __str__(self) -> str:
        from headwater.algebra.text import node_text

        return node_text(self)


@dataclass(frozen=True)
class Scan(Node):
    """A relation under an alias: column `c` of the relation is column `alias.c` of the scan.

    Attributes:
        since: rows that arrived in or before this epoch are not seen. A view over a stream begins with what was
            retained when the view was created.
        grows: its rows never go, as those of a stream without a key.
    """

    relation: str
    alias: str
    fields: t.Schema
    version: Version = Version.STORED
    since: int = 0
    grows: bool = False

    @cached_property
    def schema(self) -> t.Schema:
        return tuple(replace(f, name=f"{self.alias}.{f.name}") for f in self.fields)


@dataclass(frozen=True)
class Values(Node):
    """Constant rows. Which columns have NULLs follows from them, whatever `fields` was given."""

    fields: t.Schema
    rows: tuple[tuple[object, ...], ...]

    def __post_init__(self) -> None:
        _distinct(f.name for f in self.fields)
        if any(len(row) != len(self.fields) for row in self.rows):
            raise IllFormed("a row of Values has another width than its schema")
        known = tuple(replace(f, nullable=any(row[i] is None for row in self.rows)) for i, f in enumerate(self.fields))
        object.__setattr__(self, "fields", known)

    @cached_property
    def schema(self) -> t.Schema:
        return self.fields


@dataclass(frozen=True)
class Filter(Node):
    """Rows for which the predicate is TRUE."""

    input: Node
    predicate: Scalar

    def __post_init__(self) -> None:
        _rows(self.input)
        _boolean(self.predicate)
        _resolves(self.predicate, self.input)

    @cached_property
    def schema(self) -> t.Schema:
        return self.input.schema

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True)
class Project(Node):
    """New columns computed from each row; multiplicities of rows that become equal add up."""

    input: Node
    columns: tuple[Named, ...]

    def __post_init__(self) -> None:
        _rows(self.input)
        _distinct(name for name, _ in self.columns)
        for _, scalar in self.columns:
            _resolves(scalar, self.input)

    @cached_property
    def schema(self) -> t.Schema:
        known = {f.name: f.nullable for f in self.input.schema}
        return tuple(
            t.Field(name, scalar.type, known[scalar.name] if isinstance(scalar, Column) else True)
            for name, scalar in self.columns
        )

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True)
class Join(Node):
    """All pairs for which the condition is TRUE; multiplicities multiply."""

    left: Node
    right: Node
    condition: Scalar

    def __post_init__(self) -> None:
        _rows(self.left)
        _rows(self.right)
        _boolean(self.condition)
        _distinct(self.column_names)
        _resolves(self.condition, self.left, self.right)

    @cached_property
    def schema(self) -> t.Schema:
        return self.left.schema + self.right.schema

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.left, self.right)


@dataclass(frozen=True)
class Outer(Node):
    """An outer join: the pairs for which the condition is TRUE, and rows of one side, or both, that meet none.

    It is for what is evaluated whole. A view that follows deltas has a composition in its place
    (`headwater.algebra.compose`), whose terms follow from deltas.

    Attributes:
        keeps_left: rows of the left side that meet none come with NULLs.
        keeps_right: those of the right side do.
    """

    left: Node
    right: Node
    condition: Scalar
    keeps_left: bool
    keeps_right: bool

    def __post_init__(self) -> None:
        Join(self.left, self.right, self.condition)  # the same rules

    @cached_property
    def schema(self) -> t.Schema:
        left = tuple(replace(f, nullable=f.nullable or self.keeps_right) for f in self.left.schema)
        return left + tuple(replace(f, nullable=f.nullable or self.keeps_left) for f in self.right.schema)

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.left, self.right)


@dataclass(frozen=True)
class Union(Node):
    """UNION ALL: multiplicities add. Inputs have equal column names and types."""

    inputs: tuple[Node, ...]

    def __post_init__(self) -> None:
        if len(self.inputs) < 2:
            raise IllFormed("a union has at least two inputs")
        first = [(f.name, f.type) for f in self.inputs[0].schema]
        for other in self.inputs:
            if [(f.name, f.type) for f in other.schema] != first:
                raise IllFormed("inputs of a union differ in their columns")
            if isinstance(other, Sum) != isinstance(self.inputs[0], Sum):
                raise IllFormed("a union of maps and rows")

    @cached_property
    def schema(self) -> t.Schema:
        """The columns of the first input; one has NULLs if it does in any."""
        schemas = [one.schema for one in self.inputs]
        return tuple(replace(f, nullable=any(other[i].nullable for other in schemas)) for i, f in enumerate(schemas[0]))

    @property
    def children(self) -> tuple[Node, ...]:
        return self.inputs


@dataclass(frozen=True)
class Negate(Node):
    """Every multiplicity with the opposite sign."""

    input: Node

    def __post_init__(self) -> None:
        _rows(self.input)

    @cached_property
    def schema(self) -> t.Schema:
        return self.input.schema

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True)
class Repeat(Node):
    """Every row as often again as its column `times` says; that column is gone. Multiplicities multiply."""

    input: Node
    times: str

    def __post_init__(self) -> None:
        _rows(self.input)
        if self.input.column(self.times).type != t.BIGINT:
            raise IllFormed(f"{self.times} is no BIGINT")

    @cached_property
    def schema(self) -> t.Schema:
        return tuple(f for f in self.input.schema if f.name != self.times)

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True)
class Explode(Node):
    """Each row once for every element of a collection, with further columns: the element, or key and value of a MAP.

    Attributes:
        source: the ARRAY or MAP.
        names: of the new columns: the position if `numbered`, then the element, or key and value.
        outer: a row whose collection is NULL or empty comes once, with NULLs.
        numbered: the first of the new columns is the element's position, from 0.
    """

    input: Node
    source: Scalar
    names: tuple[str, ...]
    outer: bool = False
    numbered: bool = False

    def __post_init__(self) -> None:
        _rows(self.input)
        _resolves(self.source, self.input)
        if not isinstance(self.source.type, t.Array | t.Map):
            raise IllFormed(f"{self.source.type} has no elements")
        if len(self.names) != len(self._types):
            raise IllFormed(f"{len(self.names)} names for {len(self._types)} columns")
        _distinct(self.column_names)

    @property
    def _types(self) -> tuple[t.Type, ...]:
        return element_types(self.source.type, self.numbered)

    @property
    def schema(self) -> t.Schema:
        return self.input.schema + tuple(t.Field(n, of) for n, of in zip(self.names, self._types, strict=True))

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.input,)


def element_types(collection: t.Type, numbered: bool) -> tuple[t.Type, ...]:
    """The types of the columns that the elements of a collection fill."""
    number = (t.INT,) if numbered else ()
    match collection:
        case t.Map(key, value):
            return (*number, key, value)
        case t.Array(element):
            return (*number, element)
    return number


@dataclass(frozen=True)
class Keep(Node):
    """The same rows. The planner stores them as a map of their own: for what is read more than once, or by key."""

    input: Node

    def __post_init__(self) -> None:
        _rows(self.input)

    @cached_property
    def schema(self) -> t.Schema:
        return self.input.schema

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True)
class During(Node):
    """Rows whose time it is: those for which `starts` and `ends` are both TRUE by the clock.

    As the clock advances, `starts` becomes TRUE for a row and stays so, and `ends` is TRUE until some moment and never
    again. So a row comes at most once by the clock, and goes at most once. (Ghanem, Elmagarmid, Larson, Aref,
    "Supporting Views in Data Stream Management Systems", section 4.4, has such windows as predicates over `Now`.)
    """

    input: Node
    starts: Scalar
    ends: Scalar

    def __post_init__(self) -> None:
        _rows(self.input)
        for condition in (self.starts, self.ends):
            _boolean(condition)
            _resolves(condition, self.input)

    @cached_property
    def schema(self) -> t.Schema:
        return self.input.schema

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.input,)


COUNT = "#count"
ONE = Literal(1, t.BIGINT)


@dataclass(frozen=True)
class Sum(Node):
    """A map from group keys to payload: the number of rows, and sums of terms.

    A term is never NULL. Its total is exact for exact terms: BOOLEAN counts the TRUEs in a BIGINT, integers and
    decimals add up in DECIMAL(38, scale), DOUBLE in DOUBLE. Picks are aggregates that do not add up.

    Attributes:
        count: what a row of the input counts for. Other than 1 where the input's rows are entries of maps, each of
            which stands for many rows; terms are then `weigh` and `carry` of these.
    """

    input: Node
    keys: tuple[Named, ...]
    terms: tuple[Named, ...]
    picks: tuple[tuple[str, Pick], ...] = ()
    count: Scalar = ONE

    def __post_init__(self) -> None:
        _rows(self.input)
        named = [name for name, _ in self.keys] + [COUNT]
        _distinct(named + [name for name, _ in self.terms] + [name for name, _ in self.picks])
        for scalar in scalars(self):
            _resolves(scalar, self.input)
        for _, term in self.terms:
            total_of(term)
        if self.count.type != t.BIGINT:
            raise IllFormed(f"rows are counted in BIGINT, not {self.count.type}")

    @property
    def payload(self) -> t.Schema:
        totals = tuple(t.Field(name, total_of(term), False) for name, term in self.terms)
        picked = tuple(t.Field(name, pick.type) for name, pick in self.picks)
        return (t.Field(COUNT, t.BIGINT, False), *totals, *picked)

    @cached_property
    def schema(self) -> t.Schema:
        known = {f.name: f.nullable for f in self.input.schema}
        keys = ((name, key, known[key.name] if isinstance(key, Column) else True) for name, key in self.keys)
        return tuple(t.Field(name, key.type, nullable) for name, key, nullable in keys) + self.payload

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.input,)


def total_of(term: Scalar) -> t.Type:
    """The type of a term's total; what is made of totals has a total's type already."""
    if isinstance(term, Call) and term.function in ("carry", "weigh", "total_plus", "total_minus"):
        return term.type
    return total_type(term.type)


def total_type(term: t.Type) -> t.Type:
    """The type in which terms of a type add up."""
    match term:
        case t.Boolean():
            return t.BIGINT
        case t.Integer():
            return t.Decimal(t.MAX_PRECISION, 0)
        case t.Decimal(_, scale):
            return t.Decimal(t.MAX_PRECISION, scale)
        case t.Double():
            return t.DOUBLE
    raise IllFormed(f"terms of type {term} do not add up")


@dataclass(frozen=True)
class Present(Node):
    """Rows of a map: one for each key whose count is positive and for which `having` is TRUE.

    A map without keys has exactly one row, also over nothing. Outputs are computed from keys and payload.
    """

    input: Node
    outputs: tuple[Named, ...]
    having: Scalar

    def __post_init__(self) -> None:
        if not isinstance(self.input, Sum):
            raise IllFormed("only a map can be presented")
        _distinct(name for name, _ in self.outputs)
        _boolean(self.having)
        for scalar in (*(s for _, s in self.outputs), self.having):
            _resolves(scalar, self.input)

    @property
    def sums(self) -> Sum:
        assert isinstance(self.input, Sum)
        return self.input

    @cached_property
    def schema(self) -> t.Schema:
        known = {f.name: f.nullable for f in self.input.schema}
        return tuple(
            t.Field(name, scalar.type, known[scalar.name] if isinstance(scalar, Column) else True)
            for name, scalar in self.outputs
        )

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True)
class Over(Node):
    """Window functions: each row, as often as it is there, with what they say of it among the rows of equal keys.

    Outputs and `having` are computed from the input's columns and the calls; only rows for which `having` is TRUE stay.
    """

    input: Node
    keys: tuple[Named, ...]
    calls: tuple[tuple[str, WindowCall], ...]
    outputs: tuple[Named, ...]
    having: Scalar

    def __post_init__(self) -> None:
        _rows(self.input)
        _distinct(name for name, _ in self.outputs)
        _distinct([*self.input.column_names, *(name for name, _ in self.calls)])
        _boolean(self.having)
        for scalar in (*(key for _, key in self.keys), *(s for _, call in self.calls for s in call.scalars)):
            _resolves(scalar, self.input)
        known = {f.name: f.type for f in self.input.schema} | {name: call.type for name, call in self.calls}
        for scalar in (*(s for _, s in self.outputs), self.having):
            _closed(scalar)
            for part in scalar.walk():
                if isinstance(part, Column) and known.get(part.name) != part.type:
                    raise IllFormed(f"column {part.name!r} ({part.type}) is not among {known}")

    @cached_property
    def schema(self) -> t.Schema:
        return tuple(t.Field(name, scalar.type) for name, scalar in self.outputs)

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.input,)


def scalars(node: Node) -> tuple[Scalar, ...]:
    """The scalars of a node itself, not of those below it."""
    match node:
        case Filter(predicate=predicate):
            return (predicate,)
        case Project(columns=columns):
            return tuple(scalar for _, scalar in columns)
        case Join(condition=condition) | Outer(condition=condition):
            return (condition,)
        case During(starts=starts, ends=ends):
            return (starts, ends)
        case Explode(source=source):
            return (source,)
        case Sum(keys=keys, terms=terms, picks=picks, count=count):
            named = (scalar for _, scalar in (*keys, *terms))
            return (*named, *(arg for _, pick in picks for arg in pick.scalars), *(() if count == ONE else (count,)))
        case Over(keys=keys, calls=calls, outputs=outputs, having=having):
            called = (scalar for _, call in calls for scalar in call.scalars)
            return (*(scalar for _, scalar in keys), *called, *(scalar for _, scalar in outputs), having)
        case Present(outputs=outputs, having=having):
            return (*(scalar for _, scalar in outputs), having)
    return ()


def only_grows(node: Node) -> bool:
    """Whether rows can come and never go, because that is so for all it reads."""
    match node:
        case Scan(grows=grows):
            return grows
        case Values():
            return True
        case Filter() | Project() | Join() | Union() | Explode() | Keep():
            return all(only_grows(child) for child in node.children)
    return False


def rebuild(node: Node, children: tuple[Node, ...]) -> Node:
    """The node over other children; the same object when they are the same."""
    if all(new is old for new, old in zip(children, node.children, strict=True)):
        return node
    match node:
        case Filter() | Project() | Negate() | Sum() | Present() | Repeat() | Explode() | Keep() | During() | Over():
            return replace(node, input=children[0])
        case Join() | Outer():
            return replace(node, left=children[0], right=children[1])
        case Union():
            return Union(children)
    raise IllFormed(f"{type(node).__name__} has no children")


def transform(node: Node, rewrite: Callable[[Node], Node]) -> Node:
    """Rewrite bottom-up; the same object comes back when nothing changed.

    What stands in several places is rewritten once, and stays one object.
    """
    done: dict[int, Node] = {}

    def one(part: Node) -> Node:
        if id(part) not in done:
            done[id(part)] = rewrite(rebuild(part, tuple(one(child) for child in part.children)))
        return done[id(part)]

    return one(node)


def _rows(node: Node) -> None:
    if isinstance(node, Sum) or (isinstance(node, Union) and isinstance(node.inputs[0], Sum)):
        raise IllFormed("a map where rows are expected: put Present above Sum")


def _boolean(scalar: Scalar) -> None:
    if scalar.type != t.BOOLEAN:
        raise IllFormed(f"a condition of type {scalar.type}")


def _closed(scalar: Scalar) -> None:
    if scalar.free:
        raise IllFormed(f"a parameter outside of its lambda in {scalar}")


def _distinct(names: Iterator[str] | list[str] | tuple[str, ...]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise IllFormed(f"two columns named {name!r}")
        seen.add(name)


def _resolves(scalar: Scalar, *inputs: Node) -> None:
    _closed(scalar)
    for part in scalar.walk():
        if isinstance(part, Column) and not any(one.column_types.get(part.name) == part.type for one in inputs):
            known = {name: kind for one in inputs for name, kind in one.column_types.items()}
            raise IllFormed(f"column {part.name!r} ({part.type}) is not among {known}")
