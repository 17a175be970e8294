"""An aggregate as it stands in a query, its parts bound."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from headwater.algebra.folds import Sorting
from headwater.algebra.scalars import Scalar


@dataclass(frozen=True)
class AggregateCall:
    """A call of an aggregate.

    Attributes:
        name: which one, by the name it has in `headwater.sql.function_names`.
        node: where it stands.
        args: its arguments; none for `count(*)`.
        distinct: DISTINCT in front of them.
        where: the condition of FILTER.
        order: ORDER BY behind them, or in WITHIN GROUP.
        ignores_nulls: IGNORE NULLS behind it.
    """

    name: str
    node: exp.Expr
    args: tuple[Scalar, ...]
    distinct: bool = False
    where: Scalar | None = None
    order: tuple[Sorting, ...] = ()
    ignores_nulls: bool = False
