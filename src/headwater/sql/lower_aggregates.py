"""Aggregates: which sums a map keeps for them, and how their value is computed from those.

| aggregate | terms of the map | value |
|---|---|---|
| COUNT(*) | | the count of rows |
| COUNT(x, y) | `x is not null and y is not null` | its total |
| SUM(x), exact | `coalesce(x, 0)`, and n = `x is not null` | the total as Spark's type; NULL when n = 0 |
| SUM(x), DOUBLE | the finite part, n, and how many were NaN, infinity, minus infinity | `sum_double` |
| AVG(x) | as SUM | the sum divided by n |

A term that two aggregates share is kept once. Where x cannot be NULL, n is the count of rows itself.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable

from sqlglot import exp

from headwater import types as t
from headwater.algebra.nodes import COUNT, Named, total_type
from headwater.algebra.scalars import TRUE, Call, Cast, Column, Literal, Scalar, call, cast, conjunction
from headwater.sql.bind import Binder
from headwater.sql.place import Place

_ROWS = Column(COUNT, t.BIGINT)
_ZERO = Literal(0, t.BIGINT)


class MapBuilder:
    """Collects the aggregates of one SELECT as terms of one map.

    Attributes:
        used: whether there was any aggregate.
    """

    def __init__(
        self, place: Place, lookup: Callable[[exp.Column], Scalar], not_null: frozenset[str], grouped: bool
    ) -> None:
        """Start with no terms.

        Args:
            place: where the query stands in the text.
            lookup: what a column reference inside an aggregate means.
            not_null: columns that are never NULL.
            grouped: whether every group has a row, as those of GROUP BY have.
        """
        self.used = False
        self._place = place
        self._inner = Binder(place, lookup, clause="another aggregate")
        self._not_null = not_null
        self._grouped = grouped
        self._terms: dict[Scalar, Column] = {}

    @property
    def terms(self) -> tuple[Named, ...]:
        """The terms of the map, named."""
        return tuple((column.name, term) for term, column in self._terms.items())

    @property
    def payload(self) -> frozenset[str]:
        """Names of all columns of the map that are not keys."""
        return frozenset({COUNT, *(name for name, _ in self.terms)})

    def argument(self, node: exp.Expr) -> Scalar:
        """Bind an argument of an aggregate; aggregates do not nest."""
        return self._inner.bind(node)

    def add(self, name: str, node: exp.Anonymous, args: list[Scalar]) -> Scalar:
        """The value of an aggregate, over the columns of the map."""
        self.used = True
        if name == "count":
            return self._count(args)
        if len(args) != 1:
            raise self._place.mistake("HW122", f"{name.upper()}: takes 1 argument, not {len(args)}", node)
        arg = args[0]
        if isinstance(arg.type, t.Float | t.String | t.Null):
            arg = self._inner.convert(arg, t.DOUBLE, node)
        match arg.type:
            case t.Double():
                total, n = self._double(arg)
                return total if name == "sum" else call("avg_double", total, n)
            case t.Integer() | t.Decimal():
                return self._sum(arg) if name == "sum" else self._avg(arg)
            case t.DayTimeInterval() | t.YearMonthInterval():
                raise self._place.unsupported("HW203", f"{name.upper()} of {arg.type} is not supported yet", node)
        raise self._place.mistake("HW122", f"{name.upper()}: takes a number, not {arg.type}", node)

    def _term(self, term: Scalar) -> Column:
        if term not in self._terms:
            self._terms[term] = Column(f"t{len(self._terms) + 1}", total_type(term.type))
        return self._terms[term]

    def _can_be_null(self, arg: Scalar) -> bool:
        match arg:
            case Literal(value=value):
                return value is None
            case Column(name=name):
                return name not in self._not_null
            case Cast(arg=inner, safe=False):
                return self._can_be_null(inner)
            case Call(function="+" | "-" | "*", args=args):  # these raise where they have no answer
                return any(self._can_be_null(one) for one in args)
        return True

    def _count(self, args: list[Scalar]) -> Scalar:
        present = conjunction([call("is not null", arg) for arg in args if self._can_be_null(arg)])
        return _ROWS if present == TRUE else self._term(present)

    def _exact_total(self, arg: Scalar) -> Column:
        if self._can_be_null(arg):
            zero = decimal.Decimal(0).scaleb(-arg.type.scale) if isinstance(arg.type, t.Decimal) else 0
            arg = call("coalesce", arg, Literal(zero, arg.type))
        return self._term(arg)

    def _sum(self, arg: Scalar) -> Scalar:
        total = self._exact_total(arg)
        result = (
            t.Decimal(min(t.MAX_PRECISION, arg.type.precision + 10), arg.type.scale)
            if (isinstance(arg.type, t.Decimal))
            else t.BIGINT
        )
        value = cast(total, result)
        n = self._count([arg])
        if n == _ROWS and self._grouped:
            return value
        return call("if", call(">", n, _ZERO), value, Literal(None, result))

    def _avg(self, arg: Scalar) -> Scalar:
        total, n = self._exact_total(arg), self._count([arg])
        if isinstance(arg.type, t.Decimal):
            # Spark's type: four more digits, in front of and behind the point, cut at 38.
            result = t.bounded_decimal(arg.type.precision + 4, arg.type.scale + 4)
            return call("avg_decimal", total, n, Literal(None, result))
        return call("avg_double", cast(total, t.DOUBLE), n)

    def _double(self, arg: Scalar) -> tuple[Scalar, Scalar]:
        n = self._count([arg])
        finite = self._term(call("if", call("is_finite", arg), arg, Literal(0.0, t.DOUBLE)))
        strange = [self._term(call(test, arg)) for test in ("is_nan", "is_positive_infinity", "is_negative_infinity")]
        return call("sum_double", finite, n, *strange), n
