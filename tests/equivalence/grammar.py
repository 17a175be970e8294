"""The grammar the generator draws from: constructs with weights, and the state of one case being made.

A construct is one function that makes one piece of SQL from pieces it asks the `Maker` for, or returns None where it
does not fit. Pieces are text, not trees: the text is what Headwater reads, and printing a tree would iron out the very
spellings (`<=>`, `||`, `IF`, `1.5D`) that have to be read.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from headwater import types as t

from .case import Relation
from .values import ARRAY_TYPE, COLUMN_TYPES, DECIMAL_TYPES, STRUCT_TYPE, bound, domain, literal

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Expr:
    """A scalar expression or a column.

    Attributes:
        sql: its text, in brackets wherever precedence could matter.
        bound: no number it yields is larger in magnitude; keeps arithmetic from overflowing by construction.
        exact: sums of it do not depend on the order of addition (always so outside DOUBLE).
        name: the column's name, if it is one.
    """

    sql: str
    type: t.Type
    bound: float = 0.0
    exact: bool = True
    name: str | None = None


@dataclass(frozen=True)
class Query:
    """A query's text, its columns (named by themselves, without an alias before them) and how many rows at most."""

    sql: str
    columns: tuple[Expr, ...]
    rows: float


@dataclass(frozen=True)
class Construct:
    """One way to make a piece.

    Attributes:
        family: what it makes: a query, a boolean, an operation.
        duckdb: whether DuckDB's answer to it, transpiled by sqlglot, is Spark's.
    """

    name: str
    family: str
    weight: float
    make: Callable[..., Any]
    duckdb: bool = True


CONSTRUCTS: dict[str, Construct] = {}
FAMILIES: dict[str, list[Construct]] = {}


def construct(family: str, name: str, weight: float = 1.0, *, duckdb: bool = True) -> Callable[[F], F]:
    """Add a function to a family of the grammar under a name that coverage is counted by."""

    def add(make: F) -> F:
        if name in CONSTRUCTS:
            raise ValueError(f"two constructs named {name!r}")
        made = Construct(name, family, weight, make, duckdb)
        CONSTRUCTS[name] = made
        FAMILIES.setdefault(family, []).append(made)
        return make

    return add


#: What `window` and `session_window` make; a kind of its own, of which there are no values and few functions.
WINDOW_TYPE = t.Struct((("start", t.TIMESTAMP), ("end", t.TIMESTAMP)))

KINDS = ("boolean", "int", "bigint", "decimal", "double", "string", "date", "timestamp")
_KIND_WEIGHTS = (2, 5, 3, 3, 3, 4, 2, 2)


def kind_of(of: t.Type) -> str:
    """The family of expressions a type belongs to; a decimal's digits do not matter."""
    match of:
        case t.Decimal():
            return "decimal"
        case t.Array():
            return "array"
        case t.Struct():
            return "window" if of == WINDOW_TYPE else "struct"
    return str(of).lower()


_TYPES: dict[str, tuple[t.Type, ...]] = {"decimal": DECIMAL_TYPES, "array": (ARRAY_TYPE,), "struct": (STRUCT_TYPE,)}
_TYPES |= {"window": (WINDOW_TYPE,)}
_TYPES |= {kind_of(of): (of,) for of in COLUMN_TYPES if kind_of(of) not in _TYPES}

_LIMITS = {"tinyint": 100, "smallint": 30_000, "int": 2e9, "bigint": 1e15, "float": 1e4, "double": 1e9}


def fits(bound: float, of: t.Type) -> bool:
    """Whether numbers of that magnitude are safe in a type: they neither overflow nor lose bits."""
    if isinstance(of, t.Decimal):
        return of.precision <= 30 and bound < 10.0 ** (of.precision - of.scale)
    return bound <= _LIMITS.get(kind_of(of), float("inf"))


MAX_ROWS = 1500  #: of any intermediate result, so that a case stays fast


@dataclass
class Maker:
    """The state of one case being made.

    Attributes:
        relations: what a FROM clause can name: base relations, earlier views and CTEs in scope, as queries over them.
        filters: base relations that all views read with a condition, with that condition.
        scope: columns that expressions may read now.
        used: how often each construct occurred in the whole case.
        marks: constructs of the view being made.
        reads: relations the view being made reads.
    """

    rng: random.Random
    relations: dict[str, Query] = field(default_factory=dict)
    bases: dict[str, Relation] = field(default_factory=dict)
    filters: dict[str, str] = field(default_factory=dict)
    scope: tuple[Expr, ...] = ()
    used: Counter[str] = field(default_factory=Counter)
    marks: set[str] = field(default_factory=set)
    reads: set[str] = field(default_factory=set)
    duckdb: bool = True  #: whether DuckDB's answer to the view being made is Spark's, but for what its constructs say
    leaves: int = 0  #: relations read by the view so far, a measure of its size
    nesting: int = 0  #: how many queries deep
    queries: int = 0  #: whether expressions may hold queries: 1 yes, 2 also such that read columns around them
    _aliases: int = 0

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def alias(self, prefix: str) -> str:
        self._aliases += 1
        return f"{prefix}{self._aliases}"

    def note(self, name: str) -> None:
        """Count a construct that is a detail of another one, not a function of its own."""
        self.used[name] += 1
        self.marks.add(name)

    def make(self, family: str, *args: Any, but: Iterable[str] = ()) -> Any:
        """A piece of a family: constructs are drawn by weight until one fits.

        Raises:
            LookupError: none fits.
        """
        candidates = [each for each in FAMILIES[family] if each.name not in but]
        while candidates:
            chosen = self.rng.choices(candidates, [each.weight for each in candidates])[0]
            made = chosen.make(self, *args)
            if made is not None:
                self.note(chosen.name)
                return made
            candidates.remove(chosen)
        raise LookupError(f"nothing fits in {family}")

    # Scalar expressions

    def kind(self) -> str:
        """A kind, rather one that a column in scope has."""
        present = [kind for kind in (kind_of(column.type) for column in self.scope) if kind in KINDS]
        if present and self.chance(0.7):
            return self.rng.choice(present)
        return self.rng.choices(KINDS, _KIND_WEIGHTS)[0]

    def columns(self, kind: str) -> list[Expr]:
        return [column for column in self.scope if kind_of(column.type) == kind]

    def scalar(self, kind: str, depth: int) -> Expr:
        """An expression of a kind, at most so many calls deep."""
        columns = self.columns(kind)
        families = [family for family in (kind, "any") if family in FAMILIES]
        if depth <= 0 or not families or (columns and self.chance(0.35)):
            return self.leaf(kind)
        # A family of its own has far more to offer than the constructs that fit every kind.
        family = kind if kind in FAMILIES and self.chance(0.75) else "any"
        try:
            made: Expr = self.make(family, depth - 1) if family == kind else self.make("any", kind, depth - 1)
        except LookupError:
            return self.leaf(kind)
        return made

    def leaf(self, kind: str) -> Expr:
        columns = self.columns(kind)
        if columns and self.chance(0.85):
            return self.rng.choice(columns)
        testable = [column for column in self.scope if kind_of(column.type) in KINDS]
        if kind == "boolean" and testable and self.chance(0.8):
            # A condition that reads nothing is rarely worth its place.
            tested = self.rng.choice(testable)
            operator = self.rng.choice(["=", ">", "<=", "<>"])
            return Expr(f"({tested.sql} {operator} {self.constant(kind_of(tested.type)).sql})", t.BOOLEAN)
        return self.constant(kind)

    def constant(self, kind: str) -> Expr:
        of = self.rng.choice(_TYPES[kind])
        if t.is_nested(of) or self.chance(0.04):
            self.note("typed NULL")
            return Expr(f"CAST(NULL AS {of})", of)
        value = self.rng.choice(domain(of))
        if kind in ("bigint", "decimal", "tinyint", "smallint"):
            return Expr(f"CAST({value} AS {of})", of, bound(of))
        if isinstance(value, int) and not isinstance(value, bool) and value < 0:
            return Expr(f"({value})", of, bound(of))
        return Expr(literal(value, of), of, bound(of))

    def nested(self) -> Query | None:
        """A query inside another, if there is room for one."""
        before, self.scope = self.scope, ()
        self.nesting += 1
        queries, self.queries = self.queries, 0
        try:
            made: Query = self.make("query", but=("with",))
        finally:
            self.nesting -= 1
            self.scope = before
            self.queries = queries
        names = [column.name for column in made.columns]
        return made if len(set(names)) == len(names) else None

    @contextmanager
    def holding(self, queries: int) -> Iterator[None]:
        """Within this context, expressions may hold queries; see `queries`."""
        before, self.queries = self.queries, queries
        try:
            yield
        finally:
            self.queries = before

    @contextmanager
    def over(self, columns: Sequence[Expr]) -> Iterator[None]:
        """Within this context, expressions read these columns."""
        before, self.scope = self.scope, tuple(columns)
        try:
            yield
        finally:
            self.scope = before
