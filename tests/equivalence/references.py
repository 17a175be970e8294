"""Who says what a view must hold: the plain interpreter, and DuckDB evaluating the view's text from scratch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from functools import partial
from typing import Protocol

import duckdb
from sqlglot import exp, parse_one

from headwater import types as t
from headwater.algebra.functions.errors import EvaluationError
from headwater.algebra.nodes import Node
from headwater.delta.interpret import Interpreter

from .bags import Bag
from .case import START, Case, Relation, Row, View
from .policies import TIMINGS, begins_empty, is_synchronised, name_of, policy_of, source_of, ticks
from .values import canonical_row, plain


class Reference(Protocol):
    """A second opinion on every view."""

    name: str
    exact: bool  #: whether DOUBLE must agree to the last bit

    def create_view(self, view: View) -> None: ...

    def drop_view(self, view: View) -> None: ...

    def ask(self, view: str) -> None:
        """The next epoch is the REFRESH of a view with a policy."""

    def advance(self, clock: datetime) -> None:
        """What the clock reads from now on."""

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

    def __init__(self, algebra: Callable[[str], Node], relations: Collection[Relation] = ()) -> None:
        """Ask for the algebra of views over these base relations."""
        self._algebra = algebra
        self._relations = relations
        self._interpreter = Interpreter(START)
        self._clock = START
        self._before: datetime | None = None
        self._asked: set[str] = set()
        self._reads: dict[str, frozenset[str]] = {}
        #: The policies that ticked in the last epoch.
        self.ticked: set[str] = set()

    def advance(self, clock: datetime) -> None:
        self._clock = clock

    def create_view(self, view: View) -> None:
        node = self._algebra(view.name)
        self._follow(node)
        self._interpreter.add_view(view.name, node)
        self._reads[view.name] = node.relations

    def _follow(self, node: Node) -> None:
        """Begin to synchronise what a tree reads so, and nothing has read so yet."""
        for name in sorted(node.relations):
            if is_synchronised(name) and name not in self._interpreter.contents:
                empty = begins_empty(name, self._relations)
                self._interpreter.follow(name, source_of(name), partial(self._ticks, policy_of(name)), empty)

    def _ticks(self, policy: str, changes: Mapping[str, Bag]) -> bool:
        found = ticks(policy, self._before, self._clock, changes, self._asked)
        self.ticked |= {policy} if found else set()
        return found

    def drop_view(self, view: View) -> None:
        reads = self._reads.pop(view.name)
        self._interpreter.forget(view.name)
        for name in reads:
            if is_synchronised(name) and not any(name in others for others in self._reads.values()):
                self._interpreter.forget(name)

    def ask(self, view: str) -> None:
        self._asked = {policy_of(name) for name in self._reads[view] if is_synchronised(name)}

    def can_evaluate(self, node: Node) -> bool:
        """Whether a tree has a value over the rows of the moment."""
        there = set(self._interpreter.contents)
        try:
            self._follow(node)
            self._interpreter.add_view("#probe", node)
        except EvaluationError:
            return False
        finally:
            for name in set(self._interpreter.contents) - there:
                self._interpreter.forget(name)
        return True

    def apply(self, changes: dict[str, Bag], number: int) -> dict[str, Bag] | None:
        self.ticked = set()
        changelogs = self._interpreter.apply(changes, number, self._clock)
        self._before, self._asked = self._clock, set()
        return {name: _canonical(bag) for name, bag in changelogs.items()}

    def refresh(self, view: View, number: int) -> dict[str, Bag] | None:
        self.ticked = set()
        self.ask(view.name)
        self._before = self._clock
        try:
            changelogs = self._interpreter.refresh(view.name, number)
        finally:
            self._asked = set()
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

    def __init__(self, case: Case, ticked: Callable[[], Collection[str]] = tuple) -> None:
        """Know a case.

        Args:
            case: what will be run.
            ticked: the policies that ticked in an epoch.
        """
        self._ticked = ticked
        self._users: dict[str, set[str]] = {}  #: of synchronised relations, in the order of their creation
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

    def advance(self, clock: datetime) -> None:
        self._connection.execute(f"SET VARIABLE now = TIMESTAMP '{clock}'")

    def create_view(self, view: View) -> None:
        if not view.duckdb:
            return
        query = transpiled(view.query)
        self._synchronise(view, query)
        for relation in self._relations.values():
            if relation.kind == "STREAM" and not relation.retain and view.created:
                self._start_late(relation, query, f"{relation.name} since {view.created}")
        create = exp.Create(this=exp.to_table(view.name, quoted=True), kind="VIEW", expression=query)
        try:
            self._connection.execute(create.sql("duckdb"))
        except (duckdb.BinderException, duckdb.CatalogException):
            # sqlglot printed an expression of GROUP BY in two ways; or it is a view over such a view.
            self._unknown.add(view.name)

    def _synchronise(self, view: View, query: exp.Expr) -> None:
        """Let a query read tables that are written anew when a policy ticks."""
        own = {cte.alias for cte in query.find_all(exp.CTE)}
        for table in list(query.find_all(exp.Table)):
            call = table.this
            if isinstance(call, exp.Anonymous) and call.name.upper() == "R":
                read, stream = (one.name for one in call.expressions)
                name = f"{read}@{stream}"
            elif view.refresh and view.refresh not in TIMINGS and table.name not in own:
                read, name = table.name, name_of(table.name, view.refresh, view.name)
            else:
                continue
            if view.created and begins_empty(name, self._relations.values()):
                self._unknown.add(view.name)
            self._users.setdefault(name, set()).add(view.name)
            if len(self._users[name]) == 1:
                self._snapshot(name, begins_empty(name, self._relations.values()))
            table.set("this", exp.to_identifier(name, quoted=True))
            if not table.alias:
                table.set("alias", exp.TableAlias(this=exp.to_identifier(read, quoted=True)))

    def _snapshot(self, name: str, empty: bool = False) -> None:
        query = exp.select("*").from_(exp.to_table(source_of(name), quoted=True))
        query = query.limit(0) if empty else query
        create = exp.Create(this=exp.to_table(name, quoted=True), kind="TABLE", replace=True, expression=query)
        try:
            self._connection.execute(create.sql("duckdb"))
        except (duckdb.BinderException, duckdb.CatalogException):  # it stands for a view that is not known here
            self._unknown |= self._users[name]

    def _synchronise_all(self) -> None:
        ticked = self._ticked()
        for name in self._users:
            if policy_of(name) in ticked:
                self._snapshot(name)

    def drop_view(self, view: View) -> None:
        for name, users in list(self._users.items()):
            users.discard(view.name)
            if not users:
                del self._users[name]

    def ask(self, view: str) -> None:
        pass

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
        self._synchronise_all()
        return None

    def refresh(self, view: View, number: int) -> dict[str, Bag] | None:
        self._synchronise_all()
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
    _follow_clock(tree)
    for call in tree.find_all(exp.Anonymous):
        if call.name.lower() == "mean":
            call.replace(exp.Avg(this=call.expressions[0]))
    return tree


def _follow_clock(tree: exp.Expr) -> None:
    """Let DuckDB's variable stand for the clock."""
    now = exp.cast(exp.Anonymous(this="getvariable", expressions=[exp.Literal.string("now")]), "TIMESTAMP")
    seconds = exp.cast(exp.func("floor", exp.Anonymous(this="epoch", expressions=[now])), "BIGINT")
    for node in list(tree.find_all(exp.CurrentTimestamp, exp.CurrentDate, exp.Anonymous, exp.Column)):
        if isinstance(node, exp.CurrentDate):
            node.replace(exp.cast(now.copy(), "DATE"))
        elif isinstance(node, exp.CurrentTimestamp) or (isinstance(node, exp.Anonymous) and node.name.lower() == "now"):
            node.replace(now.copy())
        elif node.name == "Now" and not node.table:
            node.replace(seconds.copy())
