"""Who says what a query holds over given rows: DuckDB, asked its text, and the reference evaluator over its tree.

Both are asked of one part at a time, with nothing but the rows of the parts that it names, and both remember: the same
question has the same answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

import duckdb
import pyarrow as pa

from headwater import types as t
from headwater.algebra.evaluate import evaluate
from headwater.algebra.nodes import Node, Scan
from headwater.algebra.parts import at_part
from headwater.plan.parts import PartProgram

from ..bags import Bag
from ..references import transpiled
from ..values import canonical_row
from .case import View
from .subscripts import with_names

#: Rows of a relation by part; those of a table are all under None.
ByPart = Mapping[int | None, Bag]


@dataclass(frozen=True)
class Shape:
    """A relation's columns without PART, and how many seconds a part of it spans, if it has parts."""

    columns: tuple[tuple[str, t.Type], ...]
    length: int | None


@dataclass(frozen=True)
class Question:
    """What does this query hold?

    Attributes:
        view: whose query it is.
        query: the text.
        subscript: of the part that is asked for; None for an ordinary view.
        parts: the rows of each part reference of the text, in their order.
        whole: the rows of other relations that it reads.
        near: rows of the relations that it reads parts of, some more than it names among them.
    """

    view: View
    query: str
    subscript: int | None
    parts: tuple[tuple[str, ByPart], ...]
    whole: tuple[tuple[str, ByPart], ...]
    near: tuple[tuple[str, ByPart], ...] = ()


class Judge(Protocol):
    name: str

    def answer(self, question: Question) -> Bag | None:
        """The rows, without PART; None if it does not know."""


def frozen(rows: tuple[tuple[str, ByPart], ...]) -> object:
    return tuple((name, tuple((part, frozenset(bag.items())) for part, bag in held.items())) for name, held in rows)


@dataclass
class OnDuckDB:
    """DuckDB over the rows as tables, asked the text as sqlglot transpiles it. It shares nothing with Headwater."""

    shape: Callable[[str], Shape]
    name = "duckdb"
    _texts: dict[str, str] = field(default_factory=dict)
    _known: dict[object, Bag] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._connection = duckdb.connect()
        self._connection.execute(
            "SET TimeZone = 'UTC'; SET threads = 1; SET disabled_optimizers = 'statistics_propagation'"
        )

    def answer(self, question: Question) -> Bag | None:
        if not question.view.duckdb:
            return None
        key = question.query, frozen(question.parts), frozen(question.whole)
        if key not in self._known:
            self._known[key] = self._ask(question)
        return self._known[key]

    def _ask(self, question: Question) -> Bag:
        text = question.query
        if text not in self._texts:
            self._texts[text] = transpiled(with_names(text)).sql("duckdb")
        named = [(f"part_{n}", *one) for n, one in enumerate(question.parts)]
        named += [(name, name, held) for name, held in question.whole]
        for name, relation, held in named:
            self._connection.register(name, _table(self.shape(relation), held, text))
        try:
            rows = self._connection.execute(self._texts[text]).fetchall()
        finally:
            for name, _, _ in named:
                self._connection.unregister(name)
        return Counter(canonical_row(row) for row in rows)

    def close(self) -> None:
        self._connection.close()


def _table(shape: Shape, held: ByPart, text: str) -> pa.Table:
    """Rows as an Arrow table, with the columns PART and PART_TIMESTAMP if the text names them."""
    rows = [(row, part) for part, bag in held.items() for row in bag.elements()]
    columns = {name: pa.array([row[at] for row, _ in rows], _arrow(of)) for at, (name, of) in enumerate(shape.columns)}
    if shape.length is not None and "PART" in text:
        columns["PART"] = pa.array([part for _, part in rows], pa.int64())
    if shape.length is not None and "PART_TIMESTAMP" in text:
        columns["PART_TIMESTAMP"] = pa.array([began(part, shape.length) for _, part in rows], pa.timestamp("us"))
    return pa.table(columns)


def began(part: int | None, length: int) -> datetime:
    """When a part begins."""
    assert part is not None
    return datetime(1970, 1, 1) + timedelta(seconds=part * length)


def _arrow(of: t.Type) -> pa.DataType:
    match of:
        case t.Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case t.Integer(bits=bits):
            return {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[bits]
    return {
        t.STRING: pa.string(),
        t.BOOLEAN: pa.bool_(),
        t.DOUBLE: pa.float64(),
        t.DATE: pa.date32(),
        t.TIMESTAMP: pa.timestamp("us"),
    }[of]


@dataclass
class OnTrees:
    """The reference evaluator over the tree that Headwater made of the text, at the part's bounds."""

    program: Callable[[str], PartProgram]
    algebra: Callable[[str], Node]
    name = "evaluator"
    _known: dict[object, Bag] = field(default_factory=dict)

    def answer(self, question: Question) -> Bag | None:
        view = question.view
        if question.subscript is not None and not view.update:
            return None
        key = question.query, view.name, question.subscript, frozen(question.near), frozen(question.whole)
        if key not in self._known:
            self._known[key] = self._evaluate(question)
        return self._known[key]

    def _evaluate(self, question: Question) -> Bag:
        if question.subscript is None:
            tree = self.algebra(question.view.name)
        else:
            program = self.program(question.view.name)
            query = program.initialize if question.query == question.view.initialize else program.update
            tree = at_part(query.query, query.bounds(question.subscript))
        held = dict((*question.near, *question.whole))

        def read(scan: Scan) -> Bag:
            out: Bag = Counter()
            for part, bag in held[scan.relation].items():
                for row, n in bag.items():
                    out[row if part is None else (*row, part)] += n
            return out

        rows = evaluate(tree, read)
        out: Bag = Counter()
        for row, n in rows.items():
            out[canonical_row(row)] += n
        return out

    def forget(self, view: str) -> None:
        """A view is gone, and another of its name may come."""
        self._known = {key: bag for key, bag in self._known.items() if key[1] != view}  # type: ignore[index]
