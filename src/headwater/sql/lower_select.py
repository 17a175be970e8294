"""SELECT: from a query tree to nodes, clause by clause, in the order in which SQL computes them.

    FROM, WHERE          rows
    windows of time      rows with the window that each is in
    GROUP BY, HAVING     groups, if there are aggregates
    EXPLODE              one row for each element
    window functions     one `Over` for each way to partition
    QUALIFY              a filter
    the select list      a projection
    DISTINCT
    ORDER BY with LIMIT  the first rows, as a window function and a filter

A query inside an expression adds a column to the rows or groups that the expression is about (`Subqueries`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sqlglot import exp

from headwater import types as t
from headwater.algebra.compose import columns_of, distinct, looked_up
from headwater.algebra.folds import Sorting, WindowCall
from headwater.algebra.nodes import Filter, Join, Named, Node, Over, Present, Project, Sum, Values
from headwater.algebra.scalars import TRUE, Call, Column, Literal, Scalar, call, conjunction, substitute, transform
from headwater.algebra.simplify.fold_constants import fold as folded
from headwater.sql.bind import Binder, column
from headwater.sql.calls import WINDOW, function_name
from headwater.sql.exploding import Exploding, is_exploding
from headwater.sql.function_names import AGGREGATES
from headwater.sql.grouping import Groupings, grouping_sets
from headwater.sql.lower_aggregates import MapBuilder
from headwater.sql.lower_from import Environment, Lowered, lower_from, lower_lateral_view
from headwater.sql.lower_subqueries import Subqueries
from headwater.sql.lower_windows import WindowBuilder, over
from headwater.sql.names import fold
from headwater.sql.place import check_width
from headwater.sql.scope import Scope
from headwater.sql.sessions import with_sessions
from headwater.sql.time_windows import TimeWindow, bound_window, plain_text, take_calls, window_ends

#: Turns a scalar over rows into one over what the select list is computed from.
Resolve = Callable[[Scalar], Scalar]

_CLAUSES = (
    "expressions", "from_", "joins", "where", "group", "having", "with_", "distinct", "qualify", "windows", "laterals",
    "hint",  # the parser lets one through, which is about the whole statement
)  # fmt: skip

#: What a SELECT without FROM reads: one row. A relation of no columns could not be written in SQL.
ONE_ROW = Values((t.Field("#row", t.BOOLEAN, False),), ((True,),))


@dataclass(frozen=True)
class OrderKey:
    """One key of ORDER BY: a column of the answer's node."""

    column: str
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class _Item:
    """One column of a select list."""

    name: str
    scalar: Scalar
    node: exp.Expr


def lower_select(
    select: exp.Select,
    env: Environment,
    prefix: str,
    columns: tuple[exp.Identifier, ...] = (),
    order: exp.Order | None = None,
    allowed: tuple[str, ...] = (),
) -> tuple[Lowered, tuple[OrderKey, ...]]:
    """Lower a SELECT.

    Args:
        select: the tree.
        env: what is around it.
        prefix: what the names of the node's columns begin with.
        columns: names for the columns instead of the query's own, or none.
        order: the ORDER BY clause, where there may be one.
        allowed: clauses beyond those of every SELECT, which the caller takes care of.

    Returns:
        The query, and the keys of `order`. The node has a column for every key, behind the columns that are shown, and
        behind those the columns that stand for columns of the query around it.
    """
    env.place.only(select, (*_CLAUSES, *allowed))
    within = env.with_ctes(select.args.get("with_"))
    return _Select(select, within).lower(prefix, columns, order is not None)


class _Select:
    """The lowering of one SELECT."""

    def __init__(self, origin: exp.Select, env: Environment) -> None:
        select, calls = take_calls(origin)
        self.origin = origin
        self.select = select
        self.env = env
        self.place = env.place
        source = select.args.get("from_")
        joins = select.args.get("joins") or []
        node: Node = ONE_ROW
        self.scope = Scope()
        if source is not None:
            node, self.scope = lower_from(source, joins, env)
        for view in select.args.get("laterals") or ():
            node, self.scope = lower_lateral_view(node, self.scope, view, env)
        self.without_from = source is None
        self.window: TimeWindow | None = None
        self.outer: tuple[Column, ...] = env.outer.columns if env.outer is not None else ()
        self.queries = Subqueries(env, self._find)
        self.queries.not_null = frozenset(f.name for f in node.schema if not f.nullable)
        self.node = self._where(node)
        if calls:
            binder = Binder(self.place, self._plain, clause="a window")
            self.window = bound_window(calls, binder, env.aliases.internal())
            self.node = self.window.rows(self.node)
        self.group: exp.Group | None = select.args.get("group")
        self.aggregated = self.group is not None or select.args.get("having") is not None or self._has_aggregates()
        not_null = frozenset(f.name for f in self.node.schema if not f.nullable)
        self.above = Subqueries(env, self._find) if self.aggregated else self.queries
        self.maps = MapBuilder(
            self.place,
            self._plain,
            not_null,
            grouped=bool(self.group and self.group.expressions),
            queries=self.queries,
        )
        self.windows = WindowBuilder(
            self.place, select.args.get("windows") or (), frozenset() if self.aggregated else not_null
        )
        self.exploding: tuple[Exploding, str] | None = None
        self.items: list[_Item] = []
        self.bound: list[tuple[Scalar, exp.Column]] = []
        self.groupings: Groupings | None = None

    def lower(
        self, prefix: str, columns: tuple[exp.Identifier, ...], ordered: bool
    ) -> tuple[Lowered, tuple[OrderKey, ...]]:
        order = self.select.args["order"] if ordered else None
        self._select_list()
        keys = self._keys()
        having = self._having(keys)
        qualify = self._qualify()
        order_by = self._order(order)
        check_width(len(self.items), columns, self.select, self.place)
        shown = tuple(one.name for one in columns) or tuple(item.name for item in self.items)
        scalars = [item.scalar for item in self.items]
        extra: list[Scalar] = []
        for scalar, one in order_by:
            if scalar not in scalars and scalar not in extra:
                if self.select.args.get("distinct"):
                    raise self.place.mistake(
                        "HW131", "with DISTINCT, ORDER BY can only name what is selected", one, "select it too"
                    )
                extra.append(scalar)
        names = unique_names((*shown, *(f"#order{n}" for n in range(1, len(extra) + 1))), prefix)
        position = {scalar: name for name, scalar in reversed(list(zip(names, scalars + extra, strict=True)))}
        order_keys = tuple(
            OrderKey(position[scalar], bool(one.args.get("desc")), bool(one.args.get("nulls_first")))
            for scalar, one in order_by
        )
        outputs = tuple(zip(names, scalars + extra, strict=True))
        node, empty = self._node(keys, outputs, having, qualify)
        return Lowered(node, shown, empty), order_keys

    # -- names -------------------------------------------------------------------------------------------------------

    def _names(self, node: exp.Column) -> Scope:
        """Where to look a reference up: in FROM, and then among the names of the window."""
        if self.window is not None and self.window.scope.find(node) and not self.scope.find(node):
            return self.window.scope
        return self.scope

    def _find(self, node: exp.Column) -> Column | None:
        """The column that an inner query means by a reference, of this query or of one around it."""
        if self._names(node).find(node):
            return column(self._names(node), node, self.place)
        return self.env.outer.column(node) if self.env.outer is not None else None

    def _plain(self, node: exp.Column) -> Scalar:
        names = self._names(node)
        if not names.find(node) and self.env.outer is not None and not isinstance(node.this, exp.Star):
            found = self.env.outer.column(node)
            if found is not None:
                return found
        return column(names, node, self.place)

    def _alias(self, node: exp.Column) -> Scalar | None:
        """The one select item of this name; aliases are never qualified."""
        if node.table:
            return None
        found = list(dict.fromkeys(item.scalar for item in self.items if fold(item.name) == fold(node.name)))
        if len(found) > 1:
            raise self.place.mistake("HW120", f"{node.name} is ambiguous: the select list has it twice", node)
        return found[0] if found else None

    def _column_then_alias(self, node: exp.Column) -> Scalar:
        """Spark's rule in a select list and in GROUP BY."""
        if self._names(node).find(node) or node.args.get("db"):
            return self._plain(node)
        alias = self._alias(node)
        if alias is not None:
            return alias
        if self.env.outer is not None:
            return self._plain(node)
        raise self.scope.unknown(node, self.place, [item.name for item in self.items])

    def _alias_then_column(self, node: exp.Column) -> Scalar:
        """Spark's rule in ORDER BY."""
        alias = self._alias(node)
        return self._plain(node) if alias is None else alias

    def _bind(self, binder: Binder, node: exp.Expr) -> Scalar:
        bound = binder.bind(node)
        self.bound += binder.read
        return bound

    def _has_aggregates(self) -> bool:
        """Whether an aggregate stands in the select list or ORDER BY, outside of inner queries and windows."""
        order = self.select.args.get("order")
        qualify = self.select.args.get("qualify")
        return self._contains_aggregate(*self.select.expressions, *filter(None, (order, qualify)))

    @staticmethod
    def _contains_aggregate(*nodes: exp.Expr) -> bool:
        def search(node: exp.Expr) -> bool:
            if isinstance(node, exp.Query | exp.Subquery):
                return False
            if isinstance(node, exp.Window):
                inside = [*node.iter_expressions()]
                call = node.this
                while isinstance(call, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
                    call = call.this
                inside = [one for one in inside if one is not node.this] + list(call.expressions)
                return any(search(one) for one in inside)
            if isinstance(node, exp.Anonymous) and function_name(node) in AGGREGATES:
                return True
            if isinstance(node, exp.Any) and not (isinstance(node.parent, exp.Binary) and node.arg_key == "expression"):
                return True
            return any(search(child) for child in node.iter_expressions())

        return any(search(one) for one in nodes)

    # -- clauses -----------------------------------------------------------------------------------------------------

    def _where(self, node: Node) -> Node:
        """The rows after WHERE, with a column for each column of the query around that is read.

        Conditions without queries come first: they say whether each such column equals an expression of this query, and
        need not be looked up among all values that it has outside.
        """
        clause = self.select.args.get("where")
        parts = _conjuncts(clause.this) if clause is not None else []
        simple = [part for part in parts if not _has_query(part)]
        binder = Binder(self.place, self._plain, queries=self.queries, clause="WHERE")
        if not parts and not self.outer:
            return node
        conditions = [binder.condition(part) for part in simple]
        node, conditions = self._correlated(node, conditions)
        if conditions:
            node = Filter(node, conjunction(conditions))
        rest = [self._filter(binder, part) for part in parts if _has_query(part)]
        if rest:
            before = columns_of(node)
            node = Filter(self.queries.apply(node), conjunction(rest))
            node = Project(node, before)
        return node

    def _filter(self, binder: Binder, part: exp.Expr) -> Scalar:
        """A condition with a query; where it is not TRUE the row goes, so NULL and FALSE are the same."""
        negated = isinstance(part, exp.Not)
        inner = part.this if isinstance(part, exp.Not) else part
        while isinstance(inner, exp.Paren):
            inner = inner.this
        if isinstance(inner, exp.In) and inner.args.get("query"):
            self.place.only(inner, ("this", "query"), "HW209")
            return self.queries.is_in(binder, inner, filtering=True, negated=negated)
        return binder.condition(part)

    def _correlated(self, node: Node, conditions: list[Scalar]) -> tuple[Node, list[Scalar]]:
        """The rows with the columns of the query around, and the conditions that are left."""
        outer = self.env.outer
        if outer is None or not self.outer:
            return node, conditions
        equated: dict[Column, Scalar] = {}
        for part in conditions:
            for one, other in _equal_sides(part):
                free = not other.columns & {column.name for column in self.outer}
                if one in self.outer and one not in equated and free and other.columns:
                    equated[one] = other
        if len(equated) < len(self.outer):
            outer.equated = False
            return Join(outer.domain, node, TRUE), conditions
        nullable = {f.name for f in node.schema if f.nullable}
        known: list[Scalar] = [
            call("is not null", scalar)
            for scalar in equated.values()
            if not isinstance(scalar, Column) or scalar.name in nullable
        ]
        used = [call("=", one, other) for one, other in equated.items()]
        left = [part for part in conditions if not any(_same_equality(part, one) for one in used)]
        rows = Filter(node, conjunction(known)) if known else node
        named = tuple((one.name, scalar) for one, scalar in equated.items())
        return Project(rows, (*columns_of(node), *named)), left

    def _select_list(self) -> None:
        for node in self.select.expressions:
            if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
                self._expand_star(node)
                continue
            inner = node.this if isinstance(node, exp.Alias | exp.Aliases) else node
            if is_exploding(inner):
                self._explode(node, inner)
                continue
            if isinstance(node, exp.Alias):
                self.place.only(node, ("this", "alias"))
            name = node.alias if isinstance(node, exp.Alias) else output_name(plain_text(node))
            binder = self._binder(self._column_then_alias, "a select list")
            if self._is_group(inner, name):  # its queries are about rows, not about groups
                binder = Binder(self.place, self._column_then_alias, queries=self.queries, clause="GROUP BY")
            scalar = self._bind(binder, inner)
            if isinstance(node, exp.Aliases):
                raise self.place.mistake("HW128", "one column has several names", node)
            self.items.append(_Item(name, scalar, node))

    def _is_group(self, item: exp.Expr, name: str) -> bool:
        """Whether an item with a query in it is what GROUP BY groups by: by its text, name or position, or by ALL."""
        if self.group is None or not _has_query(item):
            return False
        if self.group.args.get("all"):
            return not self._contains_aggregate(item)
        position = str(len(self.items) + 1)
        for one in (node for sets in grouping_sets(self.group, self.place) for node in sets):
            if isinstance(one, exp.Column) and not one.table and fold(one.name) == fold(name):
                if not self.scope.find(one):
                    return True
            elif one == item or (one.is_int and one.name == position):
                return True
        return False

    def _explode(self, node: exp.Expr, call: exp.Anonymous) -> None:
        """EXPLODE as an item: its columns, which are made out of what the other items are computed from."""
        if self.exploding is not None:
            raise self.place.mistake("HW141", "a select list makes rows of one collection only", node, "LATERAL VIEW")
        if isinstance(node, exp.Alias):
            aliases = [node.args["alias"]]
        else:
            aliases = node.expressions if isinstance(node, exp.Aliases) else []
        binder = self._binder(self._column_then_alias, "EXPLODE", windows=False)
        made = Exploding.of(call, binder, aliases)
        self.bound += binder.read
        self.exploding = (made, self.env.aliases.internal())
        self.items += [_Item(name, column, node) for name, column in made.columns(self.exploding[1])]

    def _binder(self, lookup: Callable[[exp.Column], Scalar], clause: str, windows: bool = True) -> Binder:
        return Binder(
            self.place,
            lookup,
            aggregates=self.maps if self.aggregated else None,
            queries=self.above,
            windows=self.windows if windows else None,
            clause=clause,
        )

    def _expand_star(self, node: exp.Star | exp.Column) -> None:
        star = node if isinstance(node, exp.Star) else node.this
        self.place.only(star, ())
        qualifier = None
        if isinstance(node, exp.Column):
            self.place.only(node, ("this", "table"))
            qualifier = node.args["table"]
        for name, read in self.scope.star(qualifier, node, self.place):
            self.items.append(_Item(name, read, node))

    def _keys(self) -> dict[Scalar, str]:
        """The keys of GROUP BY by what they are, with the names they get in the map."""
        if self.group is None:
            return {}
        self.place.only(self.group, ("expressions", "all", "rollup", "cube", "grouping_sets"))
        keys: dict[Scalar, str] = {}
        parts: Iterable[tuple[Scalar, exp.Expr]]
        if self.group.args.get("all"):
            parts = [(item.scalar, item.node) for item in self.items if not self._holds_aggregate(item.scalar)]
        else:
            sets = grouping_sets(self.group, self.place)
            bound = {id(node): self._key(node) for one in sets for node in one}
            parts = [(bound[id(node)], node) for one in sets for node in one]
            if len(sets) > 1:
                self.groupings = Groupings([[bound[id(node)] for node in one] for one in sets])
        for scalar, node in parts:
            if not t.is_groupable(scalar.type):
                raise self.place.mistake("HW125", f"{scalar.type} has no equality, so it cannot be a group", node)
            if scalar not in keys:
                keys[scalar] = scalar.name if isinstance(scalar, Column) else f"g{len(keys) + 1}"
        return keys

    def _key(self, node: exp.Expr) -> Scalar:
        same = next((item for item in self.items if _has_query(node) and _unnamed(item.node) == node), None)
        if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
            scalar = self._ordinal(node, "GROUP BY").scalar
        elif same is not None:
            scalar = same.scalar
        else:
            binder = Binder(self.place, self._column_then_alias, queries=self.queries, clause="GROUP BY")
            scalar = binder.bind(node)
        if self._holds_aggregate(scalar):
            what = "makes rows" if scalar.columns & self._exploded else "is an aggregate"
            raise self.place.mistake("HW123", f"{self.place.text(node)} in GROUP BY {what}", node)
        return scalar

    def _ordinal(self, node: exp.Literal, clause: str) -> _Item:
        number = int(node.name)
        if not 1 <= number <= len(self.items):
            raise self.place.mistake(
                "HW131", f"{clause} {number}: the select list has columns 1 to {len(self.items)}", node
            )
        return self.items[number - 1]

    def _having(self, keys: dict[Scalar, str]) -> Scalar:
        clause = self.select.args.get("having")
        if clause is None:
            return TRUE

        def lookup(node: exp.Column) -> Scalar:
            # Spark: a grouped column first, then a select alias, then whatever FROM has (which is then not grouped).
            found = self._names(node).find(node)
            if len(found) == 1 and found[0] in keys:
                return found[0]
            return self._alias_then_column(node)

        binder = self._binder(lookup, "HAVING", windows=False)
        condition = binder.condition(clause.this)
        self.bound += binder.read
        return condition

    def _qualify(self) -> Scalar:
        clause = self.select.args.get("qualify")
        if clause is None:
            return TRUE
        binder = self._binder(self._alias_then_column, "QUALIFY")
        condition = binder.condition(clause.this)
        self.bound += binder.read
        return condition

    def _order(self, order: exp.Order | None) -> list[tuple[Scalar, exp.Ordered]]:
        if order is None:
            return []
        self.place.only(order, ("expressions",))
        out = []
        for one in order.expressions:
            self.place.only(one, ("this", "desc", "nulls_first"))
            if isinstance(one.this, exp.Literal) and not one.this.is_string and one.this.name.isdigit():
                scalar = self._ordinal(one.this, "ORDER BY").scalar
            else:
                scalar = self._bind(self._binder(self._alias_then_column, "ORDER BY"), one.this)
            whole = scalar.type == WINDOW and not self.select.args.get("distinct")
            for part in window_ends(scalar) if whole else (scalar,):
                check_orderable(part.type, one, self.env)
                out.append((part, one))
        return out

    # -- the node ----------------------------------------------------------------------------------------------------

    def _node(
        self, keys: dict[Scalar, str], outputs: tuple[Named, ...], having: Scalar, qualify: Scalar
    ) -> tuple[Node, tuple[Scalar, ...] | None]:
        node = self.queries.apply(self.node)
        empty: tuple[Scalar, ...] | None = None
        resolve: Resolve = _same
        if self.aggregated:
            node, resolve = self._grouped(node, keys)
            if self.group is None and self._is_looked_up():
                empty = self._empty(outputs, resolve)
            node = self.above.apply(node, lambda scalar, at: resolve(scalar))
            having = resolve(having)
            if having != TRUE:
                node = Filter(node, having)
        elif self.without_from and not self._makes_rows():
            return self._constant(outputs), None
        elif self.window is not None and self.window.is_session:
            raise self._no_session()
        if self.exploding is not None:
            made, prefix = self.exploding
            node = made.node(node, resolve(made.source), prefix)
        node = self._windowed(node, resolve)
        if self.select.args.get("qualify") is not None:
            if not self.windows.names:
                raise self.place.mistake("HW137", "QUALIFY needs a window function", self.select.args["qualify"])
            node = Filter(node, resolve(qualify))
        carried = tuple((one.name, one) for one in self.outer)
        node = Project(node, (*((name, resolve(scalar)) for name, scalar in outputs), *carried))
        if self.select.args.get("distinct"):
            self._check_distinct(node)
            node = distinct(node)
        return node, empty

    def _makes_rows(self) -> bool:
        """Whether there is more than the one row of a SELECT without FROM, or more than values in it."""
        return bool(self.outer or self.queries.added or self.windows.names or self.exploding or self.window)

    def _check_distinct(self, node: Node) -> None:
        clause = self.select.args["distinct"]
        self.place.only(clause, ())
        for f in node.schema:
            if not t.is_groupable(f.type):
                raise self.place.mistake("HW125", f"{f.type} has no equality, so DISTINCT cannot compare it", clause)

    def _constant(self, outputs: tuple[Named, ...]) -> Node:
        """A SELECT without FROM is one row, computed now."""
        binder = Binder(self.place, self._plain, clause="a SELECT without FROM")
        nodes = [item.node.this if isinstance(item.node, exp.Alias) else item.node for item in self.items]
        if len(outputs) != len(nodes) or self.select.args.get("where") is not None:
            return Project(self.node, outputs)
        row = tuple(
            scalar if isinstance(scalar, Literal) else binder.value(scalar, node)
            for (_, scalar), node in zip(outputs, nodes, strict=True)
        )
        fields = tuple(
            t.Field(name, cell.type, cell.value is None) for (name, _), cell in zip(outputs, row, strict=True)
        )
        return Values(fields, (tuple(cell.value for cell in row),))

    def _grouped(self, node: Node, keys: dict[Scalar, str]) -> tuple[Node, Resolve]:
        """The groups, with a column for each key and aggregate; and how scalars over rows become scalars over them."""
        names = dict(keys)
        for one in self.outer:
            names[one] = one.name
        window = self.window if self.window is not None and self.window.column in names else None
        named: tuple[Named, ...] = tuple((name, scalar) for scalar, name in names.items())
        if self.window is not None and self.window.is_session:
            node, named = self._in_sessions(node, named)
        elif self.groupings is not None:
            node, named = self.groupings.expand(node, named, self.env.aliases.internal)
            window = None
        elif window is not None:  # its start says all
            named = tuple((name, scalar) for name, scalar in named if scalar != window.column)
            named += tuple((one.name, one) for one in window.keys)
        sums = Sum(node, named, self.maps.terms, self.maps.picks)
        # Columns of the payload get other names on the way out: a map stores both.
        prefix = self.env.aliases.internal()
        shown = {f.name: f"{prefix}.{f.name}" for f in sums.payload}
        outputs: tuple[Named, ...] = tuple((shown.get(f.name, f.name), Column(f.name, f.type)) for f in sums.schema)
        if window is not None:
            outputs += ((window.column.name, window.value),)
        present: Node = Present(sums, outputs, TRUE)
        if self.group is None and self.outer and not self._is_looked_up():
            present = self._completed(present, shown)
        payload: dict[Scalar, str] = {Column(f.name, f.type): shown[f.name] for f in sums.payload}
        known = frozenset(name for name, _ in outputs)

        def resolve(scalar: Scalar) -> Scalar:
            added = self.above.added | self.windows.names | self._exploded
            return self._over_map(scalar, {**names, **payload}, known | added)

        return present, resolve

    def _in_sessions(self, node: Node, keys: tuple[Named, ...]) -> tuple[Node, tuple[Named, ...]]:
        """The rows with their sessions, and what to group them by."""
        window = self.window
        assert window is not None
        terms = (scalar for _, scalar in self.maps.terms)
        read = [*terms, *(scalar for _, pick in self.maps.picks for scalar in pick.scalars)]
        others = tuple((name, scalar) for name, scalar in keys if scalar != window.column)
        wanted = frozenset(name for scalar in read for name in scalar.columns)
        misread = window.column.name in wanted.union(*(scalar.columns for _, scalar in others))
        if misread or len(others) == len(keys) or self.groupings is not None:
            raise self._no_session()
        node, others = with_sessions(node, window, others, wanted, self.env.aliases.internal)
        return node, (*others, *((one.name, one) for one in window.keys))

    def _no_session(self) -> Exception:
        return self.place.unsupported(
            "HW225",
            "SESSION_WINDOW is a key of a plain GROUP BY, and only its start and end can be used beside aggregates",
            self.group or self.select,
            "group by it in a derived table or a view",
        )

    def _is_looked_up(self) -> bool:
        """Whether the query around can add the row of an aggregate over no rows, because it is just that."""
        outer = self.env.outer
        if outer is None or outer.direct is not self.origin or self.exploding is not None:
            return False
        clauses = ("having", "qualify", "limit", "offset")
        return not (self.above.added or self.windows.names or any(self.select.args.get(one) for one in clauses))

    def _completed(self, present: Node, shown: dict[str, str]) -> Node:
        """The groups of the outer values that have rows, and one over no rows for each of the others."""
        assert self.env.outer is not None
        self.env.outer.equated = False  # NULL has its row, too
        fresh = self.env.aliases.internal
        zeros = {shown[name]: zero for name, zero in self.maps.empty.items()}
        inside = {name: fresh() for name in present.column_names}
        renamed = Project(present, tuple((inside[name], present.column(name)) for name in present.column_names))
        met = conjunction([call("<=>", one, Column(inside[one.name], one.type)) for one in self.outer])
        values = tuple((name, Column(inside[name], zero.type)) for name, zero in zeros.items())
        return looked_up(self.env.outer.domain, renamed, met, values, tuple(zeros.values()), fresh)

    def _empty(self, outputs: tuple[Named, ...], resolve: Resolve) -> tuple[Scalar, ...]:
        """What the one row of an aggregate without GROUP BY is over no rows."""
        zeros = {_name_of(resolve(Column(name, zero.type))): zero for name, zero in self.maps.empty.items()}
        return tuple(folded(substitute(resolve(scalar), zeros)) for _, scalar in outputs)

    def _windowed(self, node: Node, resolve: Resolve) -> Node:
        for partition, calls in self.windows.calls().items():
            parts = tuple(dict.fromkeys((*(resolve(one) for one in partition), *self.outer)))
            made = tuple((name, one.map(resolve)) for name, one in calls)
            keys = tuple(self.env.aliases.internal() for _ in parts)
            node = over(node, parts, made, keys)
        return node

    def _over_map(self, scalar: Scalar, keys: dict[Scalar, str], known: frozenset[str]) -> Scalar:
        """The scalar over the columns of the map: whatever equals a key reads that key."""

        def one(part: Scalar) -> Scalar | None:
            if part in keys:
                return Column(keys[part], part.type)
            if isinstance(part, Column) and part.name in self.maps.groupings:
                return self._grouping(part)
            return None

        after = transform(scalar, one)
        for part in after.walk():
            if isinstance(part, Column) and part.name not in known:
                raise self._not_grouped(part)
        return after

    @property
    def _exploded(self) -> frozenset[str]:
        """Names of the columns that EXPLODE makes."""
        if self.exploding is None:
            return frozenset()
        made, prefix = self.exploding
        return frozenset(column.name for _, column in made.columns(prefix))

    def _grouping(self, part: Column) -> Scalar:
        args = self.maps.groupings[part.name]
        if self.groupings is None or not self.groupings.knows(args):
            raise self.place.mistake(
                "HW124", "GROUPING is about columns of ROLLUP, CUBE or GROUPING SETS", self.group or self.select
            )
        return self.groupings.value(args, part.type)

    def _not_grouped(self, part: Column) -> Exception:
        node = next((node for scalar, node in self.bound if scalar is part), None)
        shown = node.name if node else part.name.partition(".")[2]
        clause = "in GROUP BY" if self.group is not None else "grouped (there is no GROUP BY)"
        return self.place.mistake(
            "HW124",
            f"{shown} is neither {clause} nor inside an aggregate",
            node or self.select,
            f"add {shown} to GROUP BY, or aggregate it: SUM, COUNT, AVG",
        )

    def _holds_aggregate(self, scalar: Scalar) -> bool:
        return bool(scalar.columns & (self.maps.payload | self.windows.names | self._exploded))


def _name_of(scalar: Scalar) -> str:
    assert isinstance(scalar, Column)
    return scalar.name


def _same(scalar: Scalar) -> Scalar:
    return scalar


def _conjuncts(node: exp.Expr) -> list[exp.Expr]:
    """The parts of a conjunction, in order; a chain leans left and may be long."""
    out: list[exp.Expr] = []
    while isinstance(node, exp.And):
        out.append(node.expression)
        node = node.this
    parts = [node, *reversed(out)]
    if len(parts) == 1 and isinstance(node, exp.Paren):
        return _conjuncts(node.this)
    return parts


def _unnamed(node: exp.Expr) -> exp.Expr:
    return node.this if isinstance(node, exp.Alias) else node


def _has_query(node: exp.Expr) -> bool:
    return node.find(exp.Query) is not None


def _equal_sides(part: Scalar) -> list[tuple[Scalar, Scalar]]:
    if isinstance(part, Call) and part.function == "=":
        left, right = part.args
        return [(left, right), (right, left)]
    return []


def _same_equality(part: Scalar, equality: Scalar) -> bool:
    return any(call("=", one, other) == equality for one, other in _equal_sides(part))


def limited(
    lowered: Lowered, order: tuple[OrderKey, ...], limit: int | None, offset: int, outer: tuple[Column, ...], name: str
) -> Node:
    """The first rows in an order, or the ones after an offset; those that are equal in it by all their columns."""
    node = lowered.node
    keys = tuple(Sorting(node.column(one.column), one.descending, one.nulls_first) for one in order)
    number = Column(name, t.INT)
    conditions: list[Scalar] = []
    if limit is not None:
        conditions.append(call("<=", number, Literal(min(offset + limit, 2**31 - 1), t.INT)))
    if offset:
        conditions.append(call(">", number, Literal(offset, t.INT)))
    parts = tuple((one.name, one) for one in outer)
    kept = node.column_names[: len(lowered.names)]
    outputs = tuple((one, node.column(one)) for one in kept) + parts
    return Over(node, parts, ((name, WindowCall("row_number", (), keys)),), outputs, conjunction(conditions))


def check_orderable(kind: t.Type, node: exp.Expr, env: Environment) -> None:
    """Refuse to order by what has no order."""
    if not t.is_orderable(kind):
        raise env.place.mistake("HW125", f"{kind} has no order", node)


def output_name(node: exp.Expr) -> str:
    """The name of a select item without an alias: a column's own, else the expression's text."""
    inner = node
    while isinstance(inner, exp.Paren | exp.TryCast) and isinstance(inner.this, exp.Column | exp.TryCast):
        inner = inner.this
    if isinstance(inner, exp.Column):
        return inner.name
    return node.sql(dialect="spark", normalize_functions=False, comments=False)


def unique_names(shown: tuple[str, ...], prefix: str) -> tuple[str, ...]:
    """Names for a node's columns: as shown, with a number behind those that repeat."""
    taken: set[str] = set()
    numbers: dict[str, int] = {}
    names = []
    for wanted in shown:
        name, number = wanted, numbers.get(wanted, 2)
        while fold(name) in taken:
            name, number = f"{wanted}_{number}", number + 1
        numbers[wanted] = number
        taken.add(fold(name))
        names.append(prefix + name)
    return tuple(names)
