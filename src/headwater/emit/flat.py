"""A select-project-join under construction."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from headwater.algebra.functions import may_raise
from headwater.algebra.nodes import Named
from headwater.algebra.scalars import Column, Scalar, conjuncts
from headwater.emit.layout import bigint, number
from headwater.emit.scalars import duckdb_scalar

#: An expression larger than this is computed once in a subquery instead of being written out at each use.
_INLINE_LIMIT = 60


@dataclass
class Flat:
    """A select-project-join under construction; `select` uses it up."""

    sources: list[exp.Expr] = field(default_factory=list)
    where: list[exp.Expr] = field(default_factory=list)
    columns: dict[str, exp.Expr] = field(default_factory=dict)
    counts: list[exp.Expr] = field(default_factory=list)

    def scalar(self, scalar: Scalar) -> exp.Expr:
        return duckdb_scalar(scalar, lambda text: _again(self.columns[text]))

    def require(self, predicate: Scalar) -> None:
        """Keep only rows for which a predicate is TRUE.

        DuckDB evaluates conditions in an order of its own. One that may raise (`a / b > 1`) must not see a row that
        another (`b <> 0`) excludes, so it is put behind the others in a CASE, which DuckDB evaluates lazily; several
        such stand behind each other. An equality of two sources is left as it is if there is no other: without one
        there is no hash join.
        """
        parts = [(self.scalar(part), may_raise(part)) for part in conjuncts(predicate)]
        joined = any(_joins(value) and not raises for value, raises in parts)
        kept = [not raises or (_joins(value) and not joined) for value, raises in parts]
        self.where += [value for (value, _), keep in zip(parts, kept, strict=True) if keep]
        lazy = [value for (value, _), keep in zip(parts, kept, strict=True) if not keep]
        if lazy:
            guards: list[exp.Expr] = [exp.and_(*(one.copy() for one in self.where))] if self.where else []
            *earlier, condition = guards + lazy
            for one in reversed(earlier):
                condition = exp.Case(ifs=[exp.If(this=one, true=condition)], default=exp.false())
            self.where.append(condition)

    @property
    def multiplicity(self) -> exp.Expr:
        """The product of what each source contributes."""
        if not self.counts:
            return bigint(number(1))
        product = _again(self.counts[0])
        for one in self.counts[1:]:
            product = exp.Mul(this=product, expression=_again(one))
        return product

    def select(self, items: list[exp.Expr]) -> exp.Select:
        query = exp.Select(expressions=items)
        if self.sources:
            query.set("from_", exp.From(this=self.sources[0]))
            query.set("joins", [exp.Join(this=one, kind="CROSS") for one in self.sources[1:]])
        if self.where:
            query.set("where", exp.Where(this=exp.and_(*self.where, copy=False)))
        return query


def _again(tree: exp.Expr) -> exp.Expr:
    """A tree for another place; columns are printed alike wherever they stand."""
    return tree if isinstance(tree, exp.Column) else tree.copy()


def repeats_work(flat: Flat, columns: tuple[Named, ...]) -> bool:
    """Whether writing the inputs' expressions out at each use would make the text grow out of bounds."""
    uses: dict[str, int] = {}
    for _, scalar in columns:
        for part in scalar.walk():
            if isinstance(part, Column):
                uses[part.name] = uses.get(part.name, 0) + 1
    return any(
        n > 1 and not isinstance(flat.columns[text], exp.Column) and _size(flat.columns[text]) * n > _INLINE_LIMIT
        for text, n in uses.items()
    )


def _joins(condition: exp.Expr) -> bool:
    """Whether a condition equates something of one source with something of another, as a hash join needs it."""
    if not isinstance(condition, exp.EQ):
        return False
    left, right = ({one.table for one in side.find_all(exp.Column)} for side in (condition.left, condition.right))
    return bool(left and right) and not left & right


def _size(tree: exp.Expr) -> int:
    return sum(1 for _ in tree.walk())
