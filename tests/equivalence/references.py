"""Who says what a view must hold: the plain interpreter, and DuckDB evaluating the view's text from scratch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Protocol

import duckdb
from sqlglot import exp, parse_one

from headwater import types as t
from headwater.algebra.functions.errors import EvaluationError
from headwater.algebra.nodes import Node
from headwater.delta.interpret import Interpreter

from .bags import Bag
from .case import Case, Relation, Row, View
from .values import canonical_row, plain


class Reference(Protocol):
    """A second opinion on every view."""

    name: str
    exact: bool  #: whether DOUBLE must agree to the last bit

    def create_view(self, view: View) -> None: ...

    def apply(self, changes: dict[str, Bag], number: int) -> dict[str, Bag] | None:
        """One epoch's net change of base relations, and its number; every view's changelog, if it keeps one."""

    def refresh(self, view: View, number: int) -> dict[str, Bag] | None:
        """A suspended view follows its inputs again; every view's changelog."""

    def contents(self, view: View) -> Bag | None:
        """What the view holds; None if it does not know."""

    @property
    def suspended(self) -> set[str] | None:
        """Views that cannot be evaluated; None if it does not know."""

    def close(self) -> None: ...


class Interpreted:
    """The plain interpreter over the algebra that the subject made of the view's text."""

    name = "interpreter"
    exact = True

    def __init__(self, algebra: Callable[[str], Node]) -> None:
        self._algebra = algebra
        self._interpreter = Interpreter()

    def create_view(self, view: View) -> None:
        self._interpreter.add_view(view.name, self._algebra(view.name))

    def can_evaluate(self, node: Node) -> bool:
        """Whether a tree has a value over the rows of the moment."""
        try:
            self._interpreter.add_view("#probe", node)
        except EvaluationError:
            return False
        return True

    def apply(self, changes: dict[str, Bag], number: int) -> dict[str, Bag] | None:
        changelogs = self._interpreter.apply(changes, number)
        return {name: _canonical(bag) for name, bag in changelogs.items()}

    def refresh(self, view: View, number: int) -> dict[str, Bag] | None:
        changelogs = self._interpreter.refresh(view.name, number)
        return {name: _canonical(bag) for name, bag in changelogs.items()}

    @property
    def suspended(self) -> set[str] | None:
        return set(self._interpreter.suspended)

    def contents(self, view: View) -> Bag | None:
        return _canonical(self._interpreter.contents[view.name])

    def close(self) -> None:
        pass


def _canonical(bag: Bag) -> Bag:
    out: Bag = Counter()
    for row, n in bag.items():
        out[canonical_row(row)] += n
    return out


class OnDuckDB:
    """DuckDB over plain tables of its own, asked the view's text as sqlglot transpiles it.

    It shares nothing with Headwater but the two libraries: not the parser, the types, the plan, nor the functions.
    """

    name = "duckdb"
    exact = False

    def __init__(self, case: Case) -> None:
        self._relations = {relation.name: relation for relation in case.relations}
        self._connection = duckdb.connect()
        # DuckDB's statistics make it fail now and then over a CASE that it could fold.
        self._connection.execute(
            "SET TimeZone = 'UTC'; SET threads = 1; SET disabled_optimizers = 'statistics_propagation'"
        )
        self._tables: dict[str, list[str]] = {}  #: the copies of each relation, some of them begun late
        self._held: dict[str, Bag] = {}
        self._unknown: set[str] = set()
        for relation in case.relations:
            self._add_table(relation, relation.name)

    def _add_table(self, relation: Relation, name: str) -> None:
        columns = [
            exp.ColumnDef(this=exp.to_identifier(c.name, quoted=True), kind=_data_type(c.type))
            for c in relation.columns
        ]
        create = exp.Create(
            this=exp.Schema(this=exp.to_table(name, quoted=True), expressions=columns), kind="TABLE", replace=True
        )
        self._connection.execute(create.sql("duckdb"))
        self._tables.setdefault(relation.name, []).append(name)
        self._held[name] = Counter()

    def create_view(self, view: View) -> None:
        if not view.duckdb:
            return
        query = transpiled(view.query)
        for relation in self._relations.values():
            if relation.kind == "STREAM" and not relation.retain and view.created:
                self._start_late(relation, query, f"{relation.name} since {view.created}")
        create = exp.Create(this=exp.to_table(view.name, quoted=True), kind="VIEW", expression=query)
        try:
            self._connection.execute(create.sql("duckdb"))
        except (duckdb.BinderException, duckdb.CatalogException):
            # sqlglot printed an expression of GROUP BY in two ways; or it is a view over such a view.
            self._unknown.add(view.name)

    def _start_late(self, relation: Relation, query: exp.Expr, name: str) -> None:
        """Let a query read a stream from now on: what passed before the view was created is gone."""
        reads = [table for table in query.find_all(exp.Table) if table.name == relation.name]
        if reads and name not in self._held:
            self._add_table(relation, name)
        for table in reads:
            table.set("this", exp.to_identifier(name, quoted=True))
            if not table.alias:
                table.set("alias", exp.TableAlias(this=exp.to_identifier(relation.name, quoted=True)))

    def apply(self, changes: dict[str, Bag], number: int) -> dict[str, Bag] | None:
        for relation, change in changes.items():
            for table in self._tables[relation]:
                self._held[table].update(change)
                self._store(table, self._relations[relation])
        return None

    def refresh(self, view: View, number: int) -> dict[str, Bag] | None:
        return None

    @property
    def suspended(self) -> set[str] | None:
        return None  # views that may fail are not put to it

    def _store(self, table: str, relation: Relation) -> None:
        """Write the bag anew: nothing that maintains it could be wrong."""
        self._connection.execute(exp.Delete(this=exp.to_table(table, quoted=True)).sql("duckdb"))
        rows: list[list[object]] = [
            [plain(value, of) for value, of in zip(row, relation.types, strict=True)]
            for row in self._held[table].elements()
        ]
        if rows:
            marks = exp.Tuple(expressions=[exp.Placeholder() for _ in relation.columns])
            insert = exp.insert(exp.Values(expressions=[marks.copy() for _ in rows]), exp.to_table(table, quoted=True))
            self._connection.execute(insert.sql("duckdb"), [value for row in rows for value in row])

    def contents(self, view: View) -> Bag | None:
        if not view.duckdb or view.name in self._unknown:
            return None
        query = exp.select("*").from_(exp.to_table(view.name, quoted=True))
        rows: list[Row] = self._connection.execute(query.sql("duckdb")).fetchall()
        return Counter(canonical_row(row) for row in rows)

    def close(self) -> None:
        self._connection.close()


def _data_type(of: t.Type) -> exp.DataType:
    text = "TIMESTAMPNTZ" if of == t.TIMESTAMP else str(of)
    return exp.DataType.build(text, dialect="spark")


#: Functions that give a DATE in Spark and a TIMESTAMP in DuckDB.
_DATES = (exp.TsOrDsAdd, exp.DateAdd, exp.AddMonths, exp.DateTrunc)


def transpiled(query: str) -> exp.Expr:
    """A Spark query as a tree that prints for DuckDB and means the same.

    sqlglot knows Spark's TIMESTAMP as one with a zone; ours has none. Its division guard is not needed, since cases
    divide by NULLIF, but harmless.
    """

    tree = parse_one(query, read="spark")
    for of in tree.find_all(exp.DataType):
        if of.this in (exp.DataType.Type.TIMESTAMPTZ, exp.DataType.Type.TIMESTAMPLTZ):
            of.set("this", exp.DataType.Type.TIMESTAMP)
    # Found from the top down and wrapped from the bottom up, so that a wrapped argument is kept.
    for node in reversed(list(tree.find_all(*_DATES))):
        node.replace(exp.cast(node.copy(), "DATE"))
    for call in tree.find_all(exp.Anonymous):
        if call.name.lower() == "mean":
            call.replace(exp.Avg(this=call.expressions[0]))
    return tree
