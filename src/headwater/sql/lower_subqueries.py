"""Queries inside expressions: EXISTS, IN, ANY, ALL, and queries that stand for a value.

Each gives the rows around it one more column: whether there is a match, or the value. How the column comes about is
said by `headwater.algebra.compose`, in terms of joins with what the inner query yields, so correlation costs no more
than a join. An inner query that reads columns of the outer one has them among its own columns, and is joined on them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from sqlglot import exp

from headwater import types as t
from headwater.algebra.components import extend_part
from headwater.algebra.compose import looked_up, marked, shared
from headwater.algebra.folds import Pick
from headwater.algebra.nodes import Join, Node, Present, Project, Sum
from headwater.algebra.scalars import TRUE, Column, Literal, Scalar, call, conjunction, substitute
from headwater.algebra.scalars import transform as rewrite
from headwater.sql.bind import Binder
from headwater.sql.lower_from import Environment, Lowered
from headwater.sql.outer import Outer

#: Turns a scalar over FROM into one over the rows that the new columns are added to.
Resolve = Callable[[Scalar, exp.Expr], Scalar]
Extension = Callable[[Node, Resolve], Node]


@dataclass(frozen=True)
class _Inner:
    """An inner query, lowered."""

    lowered: Lowered
    outer: Outer
    node: exp.Expr

    def values(self, width: int, env: Environment) -> list[Column]:
        """The columns that the query shows."""
        names = self.lowered.names
        if len(names) != width:
            raise env.place.mistake(
                "HW135",
                f"the query has {len(names)} columns, and {width} {'is' if width == 1 else 'are'} wanted",
                self.node,
            )
        return [self.lowered.node.column(name) for name in self.lowered.node.column_names[:width]]


class Subqueries:
    """The queries in the expressions of one stage of a SELECT."""

    def __init__(self, env: Environment, lookup: Callable[[exp.Column], Column | None]) -> None:
        """Start with none.

        Args:
            env: what is around the SELECT.
            lookup: which column of FROM a reference means, if any.
        """
        self._env = env
        self._lookup = lookup
        self._extensions: list[tuple[tuple[Scalar, ...], exp.Expr, Extension]] = []
        self.added: set[str] = set()
        self.not_null: frozenset[str] = frozenset()  #: columns of FROM that are never NULL

    def apply(self, node: Node, resolve: Resolve = lambda scalar, node: scalar) -> Node:
        """The node with all columns that were asked for since the last time."""
        for needed, at, extend in self._extensions:
            columns = frozenset(name for scalar in needed for name in resolve(scalar, at).columns)
            node = extend_part(node, columns, partial(_extended, extend, resolve))
        self._extensions.clear()
        return node

    # -- what a binder asks for ----------------------------------------------------------------------------------------

    def exists(self, query: exp.Expr) -> Scalar:
        """EXISTS (query)."""
        inner = self._lower(query, direct=True)
        if inner.lowered.empty is not None:  # an aggregate of no group always has its row
            return TRUE
        return self._mark(inner, TRUE, TRUE, query)

    def is_in(self, binder: Binder, node: exp.In, filtering: bool = False, negated: bool = False) -> Scalar:
        """`x IN (query)`, NULL where it is not known; while `filtering`, FALSE will do for NULL."""
        inner = self._lower(node.args["query"])
        left = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
        mine = [binder.bind(one) for one in left]
        theirs = inner.values(len(mine), self._env)
        equal = conjunction([binder.call("=", node, a, b, shown="IN") for a, b in zip(mine, theirs, strict=True)])
        found = self._mark(inner, equal, TRUE, node)
        if filtering and not negated:
            return found
        if len(mine) == 1:
            unknown = self._unknown_of_one(inner, mine[0], theirs[0], node)
        else:
            unknown = self._mark(inner, TRUE, call("is null", equal), node)
        if unknown is None:
            return call("not", found) if negated else found
        if filtering:
            return call("and", call("not", found), call("not", unknown))
        whole = call("case", found, TRUE, unknown, Literal(None, t.BOOLEAN), Literal(False, t.BOOLEAN))
        return call("not", whole) if negated else whole

    def _unknown_of_one(self, inner: _Inner, mine: Scalar, theirs: Column, node: exp.Expr) -> Scalar | None:
        """Whether no row is equal and yet some could be: one is NULL, or the value is and there are rows."""
        parts: list[Scalar] = []
        fields = {f.name: f.nullable for f in inner.lowered.node.schema}
        if fields[theirs.name]:
            parts.append(self._mark(inner, TRUE, call("is null", theirs), node))
        if not (isinstance(mine, Column) and mine.name in self.not_null) and not _is_value(mine):
            parts.append(call("and", call("is null", mine), self._mark(inner, TRUE, TRUE, node)))
        if not parts:
            return None
        return parts[0] if len(parts) == 1 else call("or", *parts)

    def compared(self, binder: Binder, function: str, node: exp.Binary) -> Scalar:
        """`x > ALL (query)` and `x > ANY (query)`."""
        side = node.expression
        query = side.this
        inner = self._lower(query)
        [theirs] = inner.values(1, self._env)
        holds = binder.call(function, node, binder.bind(node.this), theirs)
        unknown = Literal(None, t.BOOLEAN)
        if isinstance(side, exp.All):
            fails = self._mark(inner, TRUE, call("not", holds), node)
            maybe = self._mark(inner, TRUE, call("is null", holds), node)
            return call("case", fails, Literal(False, t.BOOLEAN), maybe, unknown, TRUE)
        found = self._mark(inner, holds, TRUE, node)
        maybe = self._mark(inner, TRUE, call("is null", holds), node)
        return call("case", found, TRUE, maybe, unknown, Literal(False, t.BOOLEAN))

    def scalar(self, query: exp.Expr) -> Scalar:
        """The one value of a query of one row and one column; NULL if it has no row."""
        inner = self._lower(query, direct=True)
        [value] = inner.values(1, self._env)
        if isinstance(value.type, t.Null):
            return Literal(None, t.NULL)
        name = self._fresh()
        keys = inner.outer.columns
        source = inner.lowered.node
        if inner.lowered.empty is None:
            named = tuple((one.name, one) for one in keys)
            sums = Sum(source, named, (), ((name, Pick("single", (value,))),))
            source = Present(sums, (*named, (name, Column(name, value.type))), TRUE)
            empty: Scalar = Literal(None, value.type)
        else:
            source = Project(source, (*((one.name, one) for one in keys), (name, value)))
            empty = inner.lowered.empty[0]

        def extend(node: Node, resolve: Resolve) -> Node:
            right = inner.outer.with_domain(source, node, lambda one: resolve(one, inner.node))
            if not keys:
                return Join(node, right, TRUE)
            given = {mine.name: resolve(outer, query) for outer, mine in inner.outer.used.items()}
            otherwise = _substituted(empty, given)
            # The value keeps its name on the way out, so it has another one inside.
            inside = self._fresh()
            renamed = Project(right, (*((one.name, one) for one in keys), (inside, right.column(name))))
            values = ((name, renamed.column(inside)),)
            return looked_up(node, renamed, self._met(inner, node, resolve), values, (otherwise,), self._fresh)

        self._extensions.append((tuple(inner.outer.used), query, extend))
        self.added.add(name)
        return Column(name, value.type)

    # -- how it is done ----------------------------------------------------------------------------------------------

    def _fresh(self) -> str:
        return self._env.aliases.internal()

    def _lower(self, query: exp.Expr, direct: bool = False) -> _Inner:
        while isinstance(query, exp.Subquery) and not query.args.get("with_") and isinstance(query.this, exp.Query):
            self._env.place.only(query, ("this",))
            query = query.this
        prefix = self._fresh()
        outer = Outer(self._lookup, prefix, query if direct else None)
        inside = replace(self._env, outer=outer)
        lowered = outer.lowered(lambda: self._env.query(query, inside, f"{prefix}q.", ()), self._env.aliases)
        return _Inner(lowered, outer, query)

    def _mark(self, inner: _Inner, equal: Scalar, other: Scalar, node: exp.Expr) -> Scalar:
        """A column that says whether some row of the inner query meets two conditions."""
        name = self._fresh()
        outside = inner.lowered.node.column_names

        def extend(rows: Node, resolve: Resolve) -> Node:
            right = inner.outer.with_domain(inner.lowered.node, rows, lambda one: resolve(one, inner.node))
            parts = [self._met(inner, rows, resolve)]
            parts += [_resolved(part, outside, resolve, node) for part in (equal, other)]
            return marked(rows, shared(right), conjunction(parts), name, self._fresh)

        self._extensions.append(((*inner.outer.used, *_outer_parts((equal, other), outside)), node, extend))
        self.added.add(name)
        return Column(name, t.BOOLEAN)

    def _met(self, inner: _Inner, rows: Node, resolve: Resolve) -> Scalar:
        """That the inner query is about the values of the outer row."""
        nullable = {f.name: f.nullable for f in rows.schema}
        parts: list[Scalar] = []
        for outer, mine in inner.outer.used.items():
            value = resolve(outer, inner.node)
            plain = inner.outer.equated or (isinstance(value, Column) and not nullable.get(value.name, True))
            parts.append(call("=" if plain else "<=>", value, mine))
        return conjunction(parts)


def _extended(extend: Extension, resolve: Resolve, node: Node) -> Node:
    return extend(shared(node), resolve)


def _outer_parts(conditions: tuple[Scalar, ...], inner: tuple[str, ...]) -> list[Scalar]:
    """What conditions read of the outer rows: the largest parts of them that read nothing else."""
    found: list[Scalar] = []

    def note(part: Scalar) -> Scalar | None:
        if part.columns and not part.columns & set(inner):
            found.append(part)
            return part
        return None

    for condition in conditions:
        rewrite(condition, note)
    return found


def _resolved(scalar: Scalar, inner: tuple[str, ...], resolve: Resolve, node: exp.Expr) -> Scalar:
    """A condition between inner and outer columns, its outer side resolved."""

    def one(part: Scalar) -> Scalar | None:
        if isinstance(part, Column) and part.name in inner:
            return part
        if not part.columns & set(inner) and part.columns:
            return resolve(part, node)
        return None

    return rewrite(scalar, one)


def _is_value(scalar: Scalar) -> bool:
    return isinstance(scalar, Literal) and scalar.value is not None


def _substituted(scalar: Scalar, values: dict[str, Scalar]) -> Scalar:
    return substitute(scalar, values) if scalar.columns else scalar
