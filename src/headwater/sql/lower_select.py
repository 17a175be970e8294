"""SELECT: from a query tree to Project over the FROM clause, or Present over a map of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from headwater import types as t
from headwater.algebra.nodes import Filter, Named, Node, Present, Project, Sum, Values
from headwater.algebra.scalars import TRUE, Column, Literal, Scalar, transform
from headwater.sql.bind import Binder, column
from headwater.sql.lower_aggregates import MapBuilder
from headwater.sql.lower_from import Environment, Lowered, check_width, lower_from
from headwater.sql.names import fold
from headwater.sql.scope import Scope

_CLAUSES = ("expressions", "from_", "joins", "where", "group", "having", "with_")

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
        The query, and the keys of `order`. The node has a column for every key, behind the columns that are shown.
    """
    env.place.only(select, (*_CLAUSES, *allowed))
    return _Select(select, env.with_ctes(select.args.get("with_"))).lower(prefix, columns, order)


class _Select:
    """The lowering of one SELECT."""

    def __init__(self, select: exp.Select, env: Environment) -> None:
        self.select = select
        self.env = env
        self.place = env.place
        source = select.args.get("from_")
        joins = select.args.get("joins") or []
        self.node: Node = ONE_ROW
        self.scope = Scope()
        if source is not None:
            self.node, self.scope = lower_from(source, joins, env)
        where = select.args.get("where")
        if where is not None:
            binder = Binder(self.place, self._plain, clause="WHERE")
            self.node = Filter(self.node, binder.condition(where.this))
        self.group: exp.Group | None = select.args.get("group")
        self.maps = MapBuilder(
            self.place,
            self._plain,
            frozenset(f.name for f in self.node.schema if not f.nullable),
            grouped=bool(self.group and self.group.expressions),
        )
        self.items: list[_Item] = []
        self.bound: list[tuple[Scalar, exp.Column]] = []

    def lower(
        self, prefix: str, columns: tuple[exp.Identifier, ...], order: exp.Order | None
    ) -> tuple[Lowered, tuple[OrderKey, ...]]:
        self._select_list()
        keys = self._keys()
        having = self._having(keys)
        ordered = self._order(order)
        check_width(len(self.items), columns, self.select, self.place)
        shown = tuple(one.name for one in columns) or tuple(item.name for item in self.items)
        scalars = [item.scalar for item in self.items]
        extra: list[Scalar] = []
        for scalar, _ in ordered:
            if scalar not in scalars and scalar not in extra:
                extra.append(scalar)
        names = unique_names((*shown, *(f"#order{n}" for n in range(1, len(extra) + 1))), prefix)
        position = {scalar: name for name, scalar in reversed(list(zip(names, scalars + extra, strict=True)))}
        order_keys = tuple(
            OrderKey(position[scalar], bool(one.args.get("desc")), bool(one.args.get("nulls_first")))
            for scalar, one in ordered
        )
        outputs = tuple(zip(names, scalars + extra, strict=True))
        node = self._present(keys, outputs, having) if self._aggregated else self._project(outputs)
        return Lowered(node, shown), order_keys

    @property
    def _aggregated(self) -> bool:
        return self.maps.used or self.group is not None or self.select.args.get("having") is not None

    # -- names -------------------------------------------------------------------------------------------------------

    def _plain(self, node: exp.Column) -> Scalar:
        return column(self.scope, node, self.place)

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
        if self.scope.find(node) or node.args.get("db"):
            return self._plain(node)
        alias = self._alias(node)
        if alias is not None:
            return alias
        raise self.scope.unknown(node, self.place, [item.name for item in self.items])

    def _alias_then_column(self, node: exp.Column) -> Scalar:
        """Spark's rule in ORDER BY."""
        alias = self._alias(node)
        return self._plain(node) if alias is None else alias

    def _bind(self, binder: Binder, node: exp.Expr) -> Scalar:
        bound = binder.bind(node)
        self.bound += binder.read
        return bound

    # -- clauses -----------------------------------------------------------------------------------------------------

    def _select_list(self) -> None:
        for node in self.select.expressions:
            if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
                self._expand_star(node)
                continue
            if isinstance(node, exp.Aliases):
                raise self.place.unsupported("HW207", "several aliases for one expression are not supported yet", node)
            binder = Binder(self.place, self._column_then_alias, aggregates=self.maps, clause="a select list")
            inner = node.this if isinstance(node, exp.Alias) else node
            if isinstance(node, exp.Alias):
                self.place.only(node, ("this", "alias"))
            name = node.alias if isinstance(node, exp.Alias) else output_name(node)
            self.items.append(_Item(name, self._bind(binder, inner), node))

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
        self.place.only(self.group, ("expressions", "all"))
        keys: dict[Scalar, str] = {}
        parts: Iterable[tuple[Scalar, exp.Expr]]
        if self.group.args.get("all"):
            parts = [(item.scalar, item.node) for item in self.items if not self._holds_aggregate(item.scalar)]
        else:
            parts = [(self._key(node), node) for node in self.group.expressions]
        for scalar, node in parts:
            if not t.is_groupable(scalar.type):
                raise self.place.mistake("HW125", f"{scalar.type} has no equality, so it cannot be a group", node)
            if scalar not in keys:
                keys[scalar] = scalar.name if isinstance(scalar, Column) else f"g{len(keys) + 1}"
        return keys

    def _key(self, node: exp.Expr) -> Scalar:
        if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
            scalar = self._ordinal(node, "GROUP BY").scalar
        elif isinstance(node, exp.Tuple | exp.Rollup | exp.Cube | exp.GroupingSets):
            raise self.place.unsupported("HW201", "GROUP BY with several groupings is not supported yet", node)
        else:
            scalar = Binder(self.place, self._column_then_alias, clause="GROUP BY").bind(node)
        if self._holds_aggregate(scalar):
            raise self.place.mistake("HW123", f"{self.place.text(node)} in GROUP BY is an aggregate", node)
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
            found = self.scope.find(node)
            if len(found) == 1 and found[0] in keys:
                return found[0]
            return self._alias_then_column(node)

        binder = Binder(self.place, lookup, aggregates=self.maps, clause="HAVING")
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
                binder = Binder(self.place, self._alias_then_column, aggregates=self.maps, clause="ORDER BY")
                scalar = self._bind(binder, one.this)
            check_orderable(scalar.type, one, self.env)
            out.append((scalar, one))
        return out

    # -- the node ----------------------------------------------------------------------------------------------------

    def _project(self, outputs: tuple[Named, ...]) -> Node:
        if self.node is ONE_ROW:
            binder = Binder(self.place, self._plain, clause="a SELECT without FROM")
            nodes = [item.node.this if isinstance(item.node, exp.Alias) else item.node for item in self.items]
            if len(outputs) == len(nodes):
                row = tuple(
                    scalar if isinstance(scalar, Literal) else binder.value(scalar, node)
                    for (_, scalar), node in zip(outputs, nodes, strict=True)
                )
                fields = tuple(
                    t.Field(name, cell.type, cell.value is None) for (name, _), cell in zip(outputs, row, strict=True)
                )
                return Values(fields, (tuple(cell.value for cell in row),))
        return Project(self.node, outputs)

    def _present(self, keys: dict[Scalar, str], outputs: tuple[Named, ...], having: Scalar) -> Node:
        known = self.maps.payload | set(keys.values())
        sums = Sum(self.node, tuple((name, scalar) for scalar, name in keys.items()), self.maps.terms)
        named = tuple((name, self._over_map(scalar, keys, known)) for name, scalar in outputs)
        return Present(sums, named, self._over_map(having, keys, known))

    def _over_map(self, scalar: Scalar, keys: dict[Scalar, str], known: frozenset[str]) -> Scalar:
        """The scalar over the columns of the map: whatever equals a key reads that key."""
        after = transform(scalar, lambda part: Column(keys[part], part.type) if part in keys else None)
        for part in after.walk():
            if isinstance(part, Column) and part.name not in known:
                raise self._not_grouped(part)
        return after

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
        return bool(scalar.columns & self.maps.payload)


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
    names = []
    for wanted in shown:
        name, number = wanted, 2
        while fold(name) in taken:
            name, number = f"{wanted}_{number}", number + 1
        taken.add(fold(name))
        names.append(prefix + name)
    return tuple(names)
