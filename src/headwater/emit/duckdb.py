"""Algebra to SQL for DuckDB.

A tree becomes one SELECT whose columns are the tree's columns and, for rows, `#n`. Scans, filters, projections and
joins are flattened into a single FROM and WHERE, because that is what a person would write and what the optimiser
orders best; every other node is a subquery.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from headwater import types as t
from headwater.algebra.functions import may_raise
from headwater.algebra.functions.picks import PICKS
from headwater.algebra.nodes import (
    COUNT,
    ONE,
    During,
    Explode,
    Filter,
    Join,
    Keep,
    Named,
    Negate,
    Node,
    Outer,
    Over,
    Present,
    Project,
    Repeat,
    Scan,
    Sum,
    Union,
    Values,
    Version,
    total_of,
)
from headwater.algebra.scalars import TRUE, Column, Scalar, conjunction
from headwater.emit.flat import Flat, repeats_work
from headwater.emit.folds import pick_sql, window_sql
from headwater.emit.functions.build import fn, recast
from headwater.emit.layout import (
    EPOCH,
    MULTIPLICITY,
    SHOWN,
    Grouped,
    as_column,
    bigint,
    column,
    delta_table,
    found_table,
    key_column,
    name,
    number,
    same_row,
    store_table,
    total,
)
from headwater.emit.scalars import duckdb_literal, duckdb_scalar, duckdb_type
from headwater.emit.thresholds import threshold
from headwater.emit.whole_totals import whole_totals, without_zero

#: Which of several equal rows it is.
_COPY = "#copy"


class Emitter:
    """Emits trees for a given layout.

    Args:
        grouped: relations that are stored by group, and so have rows that are not shown, and how. One without keys
            has one row, and before it all that it was: these are added up first, because joins of several such
            relations would multiply what they were.
        net: add up each relation's rows before anything is computed from them. Without it, a row that came and went
            is computed with both signs, which cancels, unless the computation raises. So the fast form runs first,
            and if a value makes it fail, this one decides whether a living row is to blame.
        coming: a relation whose change is rows that come, each once: they need not be multiplied by that.
        found: temporary views that stand for the stores of scans, by the scans' aliases: they hold all that the
            statement needs of them.
        single: relations of whose stored rows what a statement reads is there once, row by row: nothing needs to be
            added up, or multiplied. None where nobody has looked.
        standing: temporary views that stand for the stores of relations, by the relations' names.
        defined: relations that the statement itself defines, in its WITH clause.
    """

    def __init__(
        self,
        grouped: Mapping[str, Grouped] | None = None,
        net: bool = False,
        coming: str | None = None,
        found: Mapping[str, str] | None = None,
        single: frozenset[str] | None = None,
        standing: Mapping[str, str] | None = None,
        defined: frozenset[str] = frozenset(),
    ) -> None:
        self._single = single
        self._standing = standing or {}
        self._defined = defined
        self._coming = coming
        self._found = found or {}
        self._grouped = grouped or {}
        self._net = net
        self._subqueries = 0
        self._kept: dict[Node, tuple[str, exp.Query]] | None = None

    def for_coming(self, relation: str) -> Emitter:
        """The same for when a relation's change is rows that come, each once."""
        return Emitter(self._grouped, self._net, relation, self._found, standing=self._standing)

    def finding(self, found: Mapping[str, str]) -> Emitter:
        """The same for when views stand for the stores of some scans."""
        return Emitter(self._grouped, self._net, self._coming, found, standing=self._standing)

    def for_single(self, relations: frozenset[str]) -> Emitter:
        """The same for when what is read of some relations is there once, row by row."""
        return Emitter(self._grouped, self._net, self._coming, self._found, relations, self._standing)

    def is_single(self, node: Node) -> bool:
        """Whether it is known that every row that a tree yields has multiplicity one; equal rows may repeat."""
        if self._single is None and self._coming is None:
            return False
        match node:
            case Scan(relation=relation, version=Version.DELTA):
                return relation == self._coming
            case Scan(relation=relation, version=version):
                return relation in (self._single or ()) and version is Version.STORED
            case Values() | Present() | Over():
                return True
            case Filter() | Project() | Join() | Outer() | Union() | Explode() | Keep():
                return all(map(self.is_single, node.children))
        return False

    @property
    def careful(self) -> bool:
        return self._net

    def stored_name(self, relation: str, text: str) -> str:
        """Under which name a relation's column is stored."""
        return self._repeats(relation).get(text, text)

    def sharing(self, build: Callable[[], exp.Query]) -> exp.Query:
        """A query in which what is to be kept (`Keep`) is computed once, in a WITH clause, however often it is read."""
        self._kept = {}
        try:
            query = build()
            for text, rows in self._kept.values():
                query = query.with_(name(text), as_=rows, materialized=True, copy=False)
        finally:
            self._kept = None
        return query

    def rows(self, node: Node) -> exp.Query:
        """The rows of a tree: its columns and `#n`; equal rows may come several times, also with opposite signs."""
        if isinstance(node, Union):
            return self._union(node)
        if isinstance(node, Present):
            return self._present(node)
        if isinstance(node, Over):
            return self.over(node)
        flat = self._flatten(node)
        items: list[exp.Expr] = [as_column(flat.columns[text].copy(), text) for text in node.column_names]
        return flat.select([*items, as_column(flat.multiplicity, MULTIPLICITY)])

    def net_rows(self, node: Node) -> exp.Query:
        """The rows of a tree, each once, with its net multiplicity, never zero."""
        return self.consolidated(self.rows(node), node.column_names)

    def consolidated(self, rows: exp.Query, columns: tuple[str, ...]) -> exp.Select:
        """Equal rows added up; those that cancel are gone."""
        count = total(column(MULTIPLICITY))
        keys = [column(text) for text in columns]
        out = exp.Select(expressions=[*keys, as_column(bigint(count), MULTIPLICITY)])
        out = out.from_(self._subquery(rows)[0], copy=False)
        out = out.having(exp.NEQ(this=count.copy(), expression=number(0)), copy=False)
        return out.group_by(*[key.copy() for key in keys], copy=False) if keys else out

    def groups(
        self,
        node: Sum,
        names: tuple[str, ...] | None = None,
        touched: str | None = None,
        whole: frozenset[str] = frozenset(),
    ) -> exp.Select:
        """The entries of a map: keys and payload, each key once.

        Args:
            node: the map.
            names: of its columns in the result; its own by default.
            touched: a table of keys (`#k1`, ...); only their entries are given. For a map with picks.
            whole: totals that may be HUGEINT.
        """
        names = names or node.column_names
        if node.picks:
            return self._picked(node, names, touched)
        flat = self._flatten(node.input)
        flat.where += self._only_between(node, flat)
        keys = [flat.scalar(key) for _, key in node.keys]
        # Without keys there is one entry even over nothing, where SUM alone would give NULL.
        if flat.counts or node.count != ONE:
            n = flat.multiplicity
            if node.count != ONE:
                n = exp.Mul(this=exp.paren(flat.scalar(node.count), copy=False), expression=n)
            count = bigint(total(n))
        else:
            count = exp.Count(this=exp.Star())
        payload = [count if keys else fn("COALESCE", count, number(0))]
        payload += [self._total(flat, term, text in whole) for text, term in node.terms]
        query = flat.select([as_column(v, text) for v, text in zip([*keys, *payload], names, strict=True)])
        # By position, not by expression: a constant key would be read as a position.
        positions = [number(i + 1) for i in range(len(keys))]
        return query.group_by(*positions, copy=False) if keys else query

    def _only_between(self, node: Sum, flat: Flat) -> list[exp.Expr]:
        """What keeps rows away whose comparison with a single value, which changes, comes out as it did.

        `x < (SELECT SUM(...) ...)` is a join with one row. When that changes, what it lets pass goes with the old row
        and comes with the new one: all but the rows between the two cancel. This holds if both values are there.
        """
        limit = threshold(node, self._one_row_changes)
        if limit is None or not limit.other.columns <= flat.columns.keys():
            return []
        value = column(limit.column.removeprefix(f"{limit.change.alias}."))
        rows, _ = self._subquery(self._scan_rows(limit.change))
        both = exp.EQ(this=total(column(MULTIPLICITY)), expression=number(0))
        least = (exp.Min if limit.function in ("<", "<=") else exp.Max)(this=value)
        bound = exp.Select(expressions=[exp.Case(ifs=[exp.If(this=both, true=least)])]).from_(rows, copy=False)
        bound = bound.where(exp.Not(this=exp.Is(this=value.copy(), expression=exp.null())), copy=False)
        outside = {"<": exp.GTE, "<=": exp.GT, ">": exp.LTE, ">=": exp.LT}[limit.function]
        return [fn("COALESCE", outside(this=flat.scalar(limit.other), expression=exp.Subquery(this=bound)), exp.true())]

    def _one_row_changes(self, scan: Scan) -> bool:
        stored = self._grouped.get(scan.relation)
        return scan.version is Version.DELTA and stored is not None and not stored.keyed

    def _picked(self, node: Sum, names: tuple[str, ...], touched: str | None) -> exp.Select:
        """The entries of a map that is computed from its rows."""
        args: dict[Scalar, str] = {}
        counted = () if node.count == ONE else (node.count,)
        picked = (arg for _, pick in node.picks for arg in pick.scalars)
        for scalar in (*(term for _, term in node.terms), *picked, *counted):
            args.setdefault(scalar, f"#a{len(args) + 1}")
        keys = [key for _, key in node.keys]
        if self.is_single(node.input):
            return self._picked_of_single(node, names)
        columns = tuple((key_column(i), key) for i, key in enumerate(keys)) + tuple((n, a) for a, n in args.items())
        rows, alias = self._net_of(node.input, columns, keys, touched)
        n: exp.Expr = column(MULTIPLICITY, alias)
        if any(PICKS[pick.function].weighed for _, pick in node.picks):
            rows, alias = self._spread(rows, tuple(text for text, _ in columns))
            n = number(1)
        flat = Flat([rows], [], {}, [n])

        def emit(scalar: Scalar) -> exp.Expr:
            return column(args[scalar], alias) if scalar in args else duckdb_scalar(scalar, lambda text: column(text))

        each = exp.Mul(this=emit(node.count), expression=n.copy()) if counted else n.copy()
        count = bigint(total(each))
        payload: list[exp.Expr] = [count if keys else fn("COALESCE", count, number(0))]
        payload += [self._total_of(emit(term), term, n.copy()) for _, term in node.terms]
        payload += [recast(pick_sql(pick, emit), duckdb_type(pick.type)) for _, pick in node.picks]
        found = [column(key_column(i), alias) for i in range(len(keys))]
        query = flat.select([as_column(v, text) for v, text in zip([*found, *payload], names, strict=True)])
        positions = [number(i + 1) for i in range(len(keys))]
        return query.group_by(*positions, copy=False) if keys else query

    def _picked_of_single(self, node: Sum, names: tuple[str, ...]) -> exp.Select:
        """The same for rows that are there once each."""
        flat = self._flatten(node.input)
        keys = [flat.scalar(key) for _, key in node.keys]
        count: exp.Expr = exp.Count(this=exp.Star())
        if node.count != ONE:
            count = fn("COALESCE", bigint(total(flat.scalar(node.count))), number(0))
        payload: list[exp.Expr] = [count]
        payload += [self._total_of_once(flat.scalar(term), term) for _, term in node.terms]
        payload += [recast(pick_sql(pick, flat.scalar), duckdb_type(pick.type)) for _, pick in node.picks]
        query = flat.select([as_column(v, text) for v, text in zip([*keys, *payload], names, strict=True)])
        positions = [number(i + 1) for i in range(len(keys))]
        return query.group_by(*positions, copy=False) if keys else query

    def _net_of(
        self, node: Node, columns: tuple[Named, ...], keys: list[Scalar], touched: str | None
    ) -> tuple[exp.Subquery, str]:
        """Rows with what is computed from them, equal ones added up; with `touched`, only those of touched keys."""
        made = Project(node, columns) if columns else node
        rows: exp.Query = self.rows(made)
        if touched is not None and keys:
            source, alias = self._subquery(rows)
            by_name = {f.name: f for f in made.schema}
            fields = tuple(by_name[key_column(i)] for i in range(len(keys)))
            rows = exp.Select(expressions=[exp.Star()]).from_(source, copy=False)
            table = exp.Table(this=name(touched))
            rows = rows.join(table, on=same_row(fields, alias, touched), join_type="SEMI", copy=False)
        names = tuple(text for text, _ in columns) if columns else node.column_names
        return self._subquery(self.consolidated(rows, names))

    def _spread(self, rows: exp.Subquery, names: tuple[str, ...]) -> tuple[exp.Subquery, str]:
        """A row of multiplicity n as n rows."""
        copies = exp.Explode(this=fn("RANGE", column(MULTIPLICITY)))
        query = exp.Select(expressions=[*(column(text) for text in names), as_column(copies, _COPY)])
        return self._subquery(query.from_(rows, copy=False))

    def over(self, node: Over, touched: str | None = None, keys: bool = False) -> exp.Select:
        """The rows of a window; with `touched`, only of the partitions with keys in that table.

        Args:
            node: the window.
            touched: a table of keys (`#k1`, ...).
            keys: give the keys too, in front.
        """
        names = node.input.column_names
        columns = tuple((key_column(i), key) for i, (_, key) in enumerate(node.keys))
        columns += tuple((f.name, Column(f.name, f.type)) for f in node.input.schema)
        # DuckDB sorts only by what cannot fail: everything else is computed before.
        sorted_by = {one.scalar for _, call in node.calls for one in call.order}
        computed = {one: f"#o{i}" for i, one in enumerate(sorted(filter(may_raise, sorted_by), key=str), 1)}
        columns += tuple((text, scalar) for scalar, text in computed.items())
        rows, _ = self._net_of(node.input, columns, [key for _, key in node.keys], touched)
        spread, alias = self._spread(rows, tuple(text for text, _ in columns))

        def emit(scalar: Scalar) -> exp.Expr:
            return column(computed[scalar]) if scalar in computed else duckdb_scalar(scalar, column)

        own = [key_column(i) for i in range(len(node.keys))]
        calls = [
            as_column(window_sql(call, [column(k) for k in own], emit, (*names, _COPY)), text)
            for text, call in node.calls
        ]
        items: list[exp.Expr] = [column(text) for text, _ in columns]
        source, alias = self._subquery(exp.Select(expressions=[*items, *calls]).from_(spread, copy=False))
        known = [*own, *names, *(text for text, _ in node.calls)]
        flat = Flat([source], [], {text: column(text, alias) for text in known}, [])
        flat.require(node.having)
        outputs: list[exp.Expr] = [as_column(column(text, alias), text) for text in own] if keys else []
        outputs += [as_column(flat.scalar(scalar), text) for text, scalar in node.outputs]
        return flat.select([*outputs, as_column(bigint(number(1)), MULTIPLICITY)])

    def _total(self, flat: Flat, term: Scalar, whole: bool) -> exp.Expr:
        if not flat.counts and whole:
            return fn("COALESCE", total(flat.scalar(without_zero(term))), number(0))
        if not flat.counts:
            return self._total_of_once(flat.scalar(term), term)
        return self._total_of(flat.scalar(term), term, flat.multiplicity)

    def _total_of_once(self, value: exp.Expr, term: Scalar) -> exp.Expr:
        """The total of rows that are there once each. DuckDB adds short decimals up fastest as they are."""
        into = total_of(term)
        if isinstance(term.type, t.Boolean):
            # DuckDB's COUNT_IF over no rows is NULL.
            return fn("COALESCE", exp.CountIf(this=value), number(0)) if term != TRUE else exp.Count(this=exp.Star())
        summed: exp.Expr = total(value)
        if not isinstance(term.type, t.Double):
            summed = recast(summed, duckdb_type(into))
        return fn("COALESCE", summed, recast(number(0), duckdb_type(into)))

    def _total_of(self, value: exp.Expr, term: Scalar, n: exp.Expr) -> exp.Expr:
        into = total_of(term)
        match term.type:
            case t.Boolean():
                if term == TRUE:
                    return fn("COALESCE", bigint(total(n)), number(0))
                counted = exp.Case(ifs=[exp.If(this=value, true=n)], default=number(0))
                summed: exp.Expr = bigint(total(counted))
            case t.Double():
                summed = total(exp.Mul(this=exp.paren(value, copy=False), expression=n))
            case _:
                widened = recast(value, duckdb_type(into))
                summed = recast(total(exp.Mul(this=widened, expression=n)), duckdb_type(into))
        return fn("COALESCE", summed, recast(number(0), duckdb_type(into)))

    def _present(self, node: Present) -> exp.Select:
        source, alias = self._subquery(self.groups(node.sums, whole=whole_totals(node)))
        columns = {text: column(text, alias) for text in node.sums.column_names}
        flat = Flat([source], [], dict(columns), [])
        if node.sums.keys:
            flat.where.append(exp.GT(this=columns[COUNT].copy(), expression=number(0)))
        flat.require(node.having)
        items: list[exp.Expr] = [as_column(flat.scalar(s), text) for text, s in node.outputs]
        return flat.select([*items, as_column(bigint(number(1)), MULTIPLICITY)])

    def _union(self, node: Union) -> exp.Query:
        queries = [self.rows(one) for one in node.inputs]
        out: exp.Query = queries[0]
        for one in queries[1:]:
            out = exp.Union(this=out, expression=one, distinct=False)
        return out

    def _flatten(self, node: Node) -> Flat:
        match node:
            case Scan():
                return self._scan(node)
            case Filter(input=source, predicate=predicate):
                flat = self._flatten(source)
                flat.require(predicate)
                return flat
            case During(input=source, starts=starts, ends=ends):
                flat = self._flatten(source)
                flat.require(conjunction([starts, ends]))
                return flat
            case Project(input=source, columns=columns):
                flat = self._flatten(source)
                if repeats_work(flat, columns):
                    flat = self._nested(source)
                flat.columns = {text: flat.scalar(scalar) for text, scalar in columns}
                return flat
            case Join(left=left, right=right, condition=condition):
                a, b = self._flatten(left), self._flatten(right)
                joined = Flat(a.sources + b.sources, a.where + b.where, a.columns | b.columns, a.counts + b.counts)
                joined.require(condition)
                return joined
            case Outer():
                return self._outer(node)
            case Negate(input=source):
                flat = self._flatten(source)
                flat.counts.append(number(-1))
                return flat
            case Repeat(input=source, times=times):
                flat = self._flatten(source)
                flat.counts.append(flat.columns.pop(times))
                return flat
            case Keep(input=source):
                return self._flatten(source) if self._kept is None else self._keep(node)
            case Explode():
                return self._explode(node)
        return self._nested(node)

    def _keep(self, node: Keep) -> Flat:
        """What is computed once."""
        assert self._kept is not None
        if node not in self._kept:
            rows = self.rows(node.input)
            self._kept[node] = (f"#kept{len(self._kept) + 1}", rows)
        self._subqueries += 1
        alias = f"#q{self._subqueries}"
        source = exp.Table(this=name(self._kept[node][0]), alias=exp.TableAlias(this=name(alias)))
        columns: dict[str, exp.Expr] = {text: column(text, alias) for text in node.column_names}
        return Flat([source], [], columns, [column(MULTIPLICITY, alias)])

    def _explode(self, node: Explode) -> Flat:
        """Lists that are unnested side by side: positions and elements, or positions, keys and values."""
        flat = self._flatten(node.input)
        whole = flat.scalar(node.source)
        lists = [whole]
        if isinstance(node.source.type, t.Map):
            lists = [fn("MAP_KEYS", whole.copy()), fn("MAP_VALUES", whole)]
        if node.numbered:
            lists.insert(0, fn("RANGE", recast(fn("LEN", lists[0].copy()), "BIGINT")))
        if node.outer:
            some = exp.GT(this=fn("COALESCE", fn("LEN", lists[-1].copy()), number(0)), expression=number(0))
            nothing = exp.Array(expressions=[exp.null()])
            lists = [exp.Case(ifs=[exp.If(this=some.copy(), true=one)], default=nothing.copy()) for one in lists]
        types = [f.type for f in node.schema[len(node.input.schema) :]]
        made = [as_column(exp.Explode(this=one), text) for one, text in zip(lists, node.names, strict=True)]
        items: list[exp.Expr] = [as_column(flat.columns[text].copy(), text) for text in node.input.column_names]
        source, alias = self._subquery(flat.select([*items, *made, as_column(flat.multiplicity, MULTIPLICITY)]))
        columns: dict[str, exp.Expr] = {text: column(text, alias) for text in node.input.column_names}
        for text, of in zip(node.names, types, strict=True):
            columns[text] = recast(column(text, alias), duckdb_type(of))
        return Flat([source], [], columns, [column(MULTIPLICITY, alias)])

    def _nested(self, node: Node) -> Flat:
        query = self._values(node) if isinstance(node, Values) else self.rows(node)
        source, alias = self._subquery(query)
        columns: dict[str, exp.Expr] = {text: column(text, alias) for text in node.column_names}
        counts: list[exp.Expr] = [] if self.is_single(node) else [column(MULTIPLICITY, alias)]
        return Flat([source], [], columns, counts)

    def _outer(self, node: Outer) -> Flat:
        """An outer join as DuckDB has it, of rows that are added up: a row that has gone meets nothing."""
        single = self.is_single(node)
        sides = [self.rows(one) if self.is_single(one) else self.net_rows(one) for one in node.children]
        (left, mine), (right, theirs) = map(self._subquery, sides)
        columns: dict[str, exp.Expr] = {text: column(text, mine) for text in node.left.column_names}
        columns |= {text: column(text, theirs) for text in node.right.column_names}
        met = Flat([left, right], [], columns, [])
        met.require(node.condition)
        side = "FULL" if node.keeps_left and node.keeps_right else "LEFT" if node.keeps_left else "RIGHT"
        on = exp.and_(*met.where, copy=False) if met.where else exp.true()
        left.set("joins", [exp.Join(this=right, side=side, on=on)])
        counts = [fn("COALESCE", column(MULTIPLICITY, alias), number(1)) for alias in (mine, theirs)]
        return Flat([left], [], columns, [] if single else counts)

    def _scan(self, node: Scan) -> Flat:
        alias = node.alias
        columns: dict[str, exp.Expr] = {f"{alias}.{f.name}": column(f.name, alias) for f in node.fields}
        counts: list[exp.Expr] = [column(MULTIPLICITY, alias)]
        delta = node.version is Version.DELTA
        if node.version is Version.NEW or self._adds_up(node):
            source = exp.Subquery(this=self._scan_rows(node), alias=exp.TableAlias(this=name(alias)))
            return Flat([source], [], columns, counts)
        table = delta_table(node.relation) if delta else self._store(node)
        table.set("alias", exp.TableAlias(this=name(alias)))
        for text, stored in self._repeats(node.relation).items():
            columns[f"{alias}.{text}"] = column(stored, alias)
        if self.is_single(node):
            counts = []
        return Flat([table], self._visible(node.relation, 0 if delta else node.since, alias), columns, counts)

    def _store(self, node: Scan) -> exp.Table:
        if node.relation in self._defined:
            return exp.Table(this=name(node.relation))
        found = self._found.get(node.alias) or self._standing.get(node.relation)
        return found_table(found) if found is not None else store_table(node.relation)

    def _scan_rows(self, node: Scan) -> exp.Query:
        """What a scan reads, as a query of its own."""
        parts: list[exp.Query] = []
        if node.version is not Version.DELTA:
            parts.append(self._scan_columns(node, self._store(node), node.since))
        if node.version is not Version.STORED:
            parts.append(self._scan_columns(node, delta_table(node.relation), 0))
        rows = parts[0] if len(parts) == 1 else exp.Union(this=parts[0], expression=parts[1], distinct=False)
        return self.consolidated(rows, tuple(f.name for f in node.fields)) if self._adds_up(node) else rows

    def _adds_up(self, node: Scan) -> bool:
        """Whether equal rows are added up before anything else.

        The change of a group's payload may leave its row as it was: that is no change for whoever reads the row.
        """
        stored = self._grouped.get(node.relation)
        return self._net or (stored is not None and (not stored.keyed or node.version is Version.DELTA))

    def _repeats(self, relation: str) -> Mapping[str, str]:
        """Columns of a relation that are stored under the name of another one."""
        stored = self._grouped.get(relation)
        return stored.repeats if stored is not None else {}

    def _scan_columns(self, node: Scan, table: exp.Table, since: int) -> exp.Select:
        repeats = self._repeats(node.relation)
        items: list[exp.Expr] = [
            as_column(column(repeats[f.name]), f.name) if f.name in repeats else column(f.name) for f in node.fields
        ]
        query = exp.Select(expressions=[*items, column(MULTIPLICITY)]).from_(table, copy=False)
        for condition in self._visible(node.relation, since, None):
            query = query.where(condition, copy=False)
        return query

    def _visible(self, relation: str, since: int, alias: str | None) -> list[exp.Expr]:
        out: list[exp.Expr] = []
        if relation in self._grouped:
            out.append(column(SHOWN, alias))
        if since:
            out.append(exp.GT(this=column(EPOCH, alias), expression=number(since)))
        return out

    def _values(self, node: Values) -> exp.Query:
        """Constant rows; with no row at all, a row that a false condition removes keeps the types."""
        rows = node.rows or (tuple(None for _ in node.fields),)
        count = as_column(bigint(number(1)), MULTIPLICITY)
        if not node.fields:
            copies = exp.Table(this=fn("RANGE", number(len(node.rows))))
            return exp.Select(expressions=[count]).from_(copies, copy=False)
        tuples = [
            exp.Tuple(expressions=[duckdb_literal(v, f.type) for v, f in zip(row, node.fields, strict=True)])
            for row in rows
        ]
        names = [name(f"c{i}") for i in range(len(node.fields))]
        alias = exp.TableAlias(this=name("#values"), columns=names)
        items = [as_column(recast(column(f"c{i}"), duckdb_type(f.type)), f.name) for i, f in enumerate(node.fields)]
        query = exp.Select(expressions=[*items, count])
        query = query.from_(exp.Values(expressions=tuples, alias=alias), copy=False)
        return query if node.rows else query.where(exp.false(), copy=False)

    def _subquery(self, query: exp.Query) -> tuple[exp.Subquery, str]:
        self._subqueries += 1
        alias = f"#q{self._subqueries}"
        return exp.Subquery(this=query, alias=exp.TableAlias(this=name(alias))), alias
