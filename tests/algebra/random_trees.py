"""Random well-formed trees, and random bags for them to read."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections import Counter
from collections.abc import Callable, Mapping
from decimal import Decimal

from headwater import types as t
from headwater.algebra.evaluate import Bag, Row, canonical
from headwater.algebra.nodes import COUNT, Filter, Join, Named, Negate, Node, Present, Project, Scan, Sum, Union, Values
from headwater.algebra.scalars import TRUE, Column, Literal, Scalar, call, cast

Schemas = Mapping[str, t.Schema]
Bags = Mapping[str, Bag]

#: Few values of each type, so that rows meet in joins and groups; doubles whose sums are exact.
VALUES: dict[t.Type, tuple[object, ...]] = {
    t.INT: (None, -1, 0, 1, 2, 3),
    t.BIGINT: (None, 0, 1, 2**40),
    t.DOUBLE: (None, -0.0, 0.0, 0.5, 1.5, math.nan, math.inf, -math.inf),
    t.FLOAT: (None, 0.0, 0.25, math.nan),
    t.STRING: (None, "", "a", "it's", "back\\slash", "two\nlines", "`é`"),
    t.BOOLEAN: (None, True, False),
    t.DATE: (None, dt.date(2024, 2, 29), dt.date(1, 1, 1)),
    t.TIMESTAMP: (None, dt.datetime(2024, 2, 29, 12, 0, 0, 1), dt.datetime(1969, 12, 31)),
    t.BINARY: (None, b"", b"\x00\xff"),
    t.Decimal(10, 2): (None, Decimal("0.00"), Decimal("1.25"), Decimal("-3.10")),
    t.DAY_TIME_INTERVAL: (None, 0, -86_400_000_000),
    t.Array(t.INT): (None, (), (1, None)),
    t.Struct((("x", t.INT), ("y", t.STRING))): (None, (1, "a"), (None, None)),
    t.Map(t.STRING, t.INT): (None, (), (("k", 1), ("j", None))),
}

SCHEMAS: Schemas = {
    "r": (t.Field("a", t.INT), t.Field("b", t.INT), t.Field("c", t.DOUBLE)),
    "s": (t.Field("a", t.INT), t.Field("d", t.STRING), t.Field("e", t.Decimal(10, 2))),
    "odd name": (t.Field("a.b", t.INT), t.Field("select", t.BOOLEAN), t.Field("it`s", t.DATE)),
    "wide": tuple(t.Field(f"c{i}", of) for i, of in enumerate(VALUES)),
}


def random_row(rng: random.Random, fields: t.Schema) -> Row:
    return tuple(canonical(rng.choice(VALUES[f.type])) for f in fields)


def random_bag(rng: random.Random, fields: t.Schema, rows: int = 6, signed: bool = False) -> Bag:
    bag: Bag = Counter()
    for _ in range(rng.randint(0, rows)):
        bag[random_row(rng, fields)] = rng.choice((-2, -1, 1, 2) if signed else (1, 1, 2, 3))
    return bag


def reader(bags: Bags) -> Callable[[Scan], Bag]:
    return lambda scan: bags[scan.relation]


class TreeMaker:
    """Makes trees over some relations; every scan gets an alias of its own, so that joins never clash."""

    def __init__(self, rng: random.Random, schemas: Schemas = SCHEMAS, linear: bool = False) -> None:
        self._rng = rng
        self._schemas = schemas
        self._linear = linear
        self._names = 0

    def rows(self, depth: int) -> Node:
        """A tree that yields rows."""
        leaves = ["scan", "scan", "scan", "values"]
        inner = ["filter", "project", "join", "union", "negate"] + ([] if self._linear else ["present", "present"])
        match self._rng.choice(leaves if depth <= 0 else inner):
            case "scan":
                relation = self._rng.choice(sorted(self._schemas))
                return Scan(relation, self._fresh("t"), self._schemas[relation])
            case "values":
                fields = tuple(t.Field(self._fresh("v"), self._rng.choice(list(VALUES))) for _ in range(2))
                return Values(fields, tuple(random_row(self._rng, fields) for _ in range(self._rng.randint(0, 3))))
            case "filter":
                source = self.rows(depth - 1)
                return Filter(source, self.condition(source))
            case "project":
                return self.projected(self.rows(depth - 1))
            case "join":
                left, right = self.rows(depth - 2), self.rows(depth - 2)
                return Join(left, right, self._join_condition(left, right))
            case "union":
                source = self.rows(depth - 1)
                return Union((source, self._alike(source, depth - 1)))
            case "negate":
                return Negate(self.rows(depth - 1))
            case "present":
                return self.presented(self.map(depth - 1))
        raise AssertionError

    def map(self, depth: int) -> Sum:
        source = self.rows(depth)
        keys = [c for c in self._columns(source) if t.is_groupable(c.type)]
        chosen = self._rng.sample(keys, min(len(keys), self._rng.randint(0, 2)))
        terms = [self._term(source) for _ in range(self._rng.randint(0, 2))]
        return Sum(
            source,
            tuple((self._fresh("k"), key) for key in chosen),
            tuple((self._fresh("p"), term) for term in terms),
        )

    def presented(self, sums: Sum) -> Present:
        outputs = tuple((self._fresh("o"), column) for column in self._columns(sums))
        having = call(">", sums.column(COUNT), Literal(self._rng.randint(0, 2), t.BIGINT))
        return Present(sums, outputs, self._rng.choice((TRUE, having)))

    def projected(self, source: Node) -> Project:
        columns: list[Named] = [(self._fresh("x"), self.scalar(source)) for _ in range(self._rng.randint(1, 3))]
        return Project(source, tuple(columns))

    def scalar(self, source: Node) -> Scalar:
        columns = self._columns(source)
        column = self._rng.choice(columns)
        other = self._rng.choice([c for c in columns if c.type == column.type])
        choices: list[Scalar] = [
            column,
            Literal(self._rng.choice(VALUES.get(column.type, (None,))), column.type),
            call("coalesce", column, other),
            call("is null", column),
            call("case", self.condition(source), column, other),
        ]
        if isinstance(column.type, t.Integer):
            choices.append(call("+", cast(column, t.BIGINT), Literal(7, t.BIGINT)))
        return self._rng.choice(choices)

    def condition(self, source: Node) -> Scalar:
        column = self._rng.choice(self._columns(source))
        choices: list[Scalar] = [call("is not null", column), call("not", call("is null", column))]
        if column.type in VALUES and t.is_orderable(column.type):
            literal = Literal(self._rng.choice(VALUES[column.type]), column.type)
            sign = self._rng.choice(("=", "<>", "<", "<=", ">", ">=", "<=>"))
            choices += [call(sign, column, literal), call("in", column, literal, literal)]
        if self._rng.random() < 0.4:
            inner = self.condition(source)
            choices.append(call(self._rng.choice(("and", "or")), self._rng.choice(choices), inner))
        return self._rng.choice(choices)

    def _term(self, source: Node) -> Scalar:
        numbers = [c for c in self._columns(source) if isinstance(c.type, t.Integer | t.Decimal)]
        if numbers and self._rng.random() < 0.7:
            column = self._rng.choice(numbers)
            zero = cast(Literal(0, t.INT), column.type)
            return call("coalesce", column, zero)
        return call("is not null", self._rng.choice(self._columns(source)))

    def _join_condition(self, left: Node, right: Node) -> Scalar:
        alike = [
            call("=", a, b)
            for a in self._columns(left)
            for b in self._columns(right)
            if a.type == b.type and t.is_groupable(a.type)
        ]
        return self._rng.choice([*alike, TRUE]) if alike else TRUE

    def _alike(self, source: Node, depth: int) -> Node:
        """Another tree with the same columns, of NULLs where it has nothing of the type."""
        other = self.rows(depth)
        columns: list[Named] = []
        for f in source.schema:
            fitting: list[Scalar] = [c for c in self._columns(other) if c.type == f.type]
            columns.append((f.name, self._rng.choice(fitting) if fitting else Literal(None, f.type)))
        return Project(other, tuple(columns))

    def _columns(self, node: Node) -> list[Column]:
        return [Column(f.name, f.type) for f in node.schema]

    def _fresh(self, letter: str) -> str:
        self._names += 1
        return f"{letter}{self._names}"


def random_tree(seed: int, depth: int = 4, linear: bool = False, schemas: Schemas = SCHEMAS) -> Node:
    return TreeMaker(random.Random(seed), schemas, linear).rows(depth)
