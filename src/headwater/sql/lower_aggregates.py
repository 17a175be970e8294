"""Aggregates: what is kept for them, and how their value is computed from that.

| aggregate | kept | value |
|---|---|---|
| COUNT(*) | | the count of rows |
| COUNT(x, y) | `x is not null and y is not null` | its total |
| SUM(x), exact | `coalesce(x, 0)`, and n = `x is not null` | the total as Spark's type; NULL when n = 0 |
| SUM(x), DOUBLE | the finite part, n, and how many were NaN, infinity, minus infinity | `sum_double` |
| AVG(x) | as SUM | the sum divided by n |
| BOOL_AND(x) | n, and `not x` | no FALSE was there; NULL when n = 0 |
| STDDEV(x), VARIANCE(x) | n, x as a whole number, and its square, if x has few digits | `variance_of` |
| others | the value itself, a pick | |

What adds up is a term of a map; a pick is computed from all rows of a group. FILTER makes the argument NULL where the
condition is not TRUE. What two aggregates share is kept once. Where x cannot be NULL, n is the count of rows itself.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from sqlglot import exp

from headwater import types as t
from headwater.algebra.folds import Pick, Sorting
from headwater.algebra.functions.picks import PICKS
from headwater.algebra.nodes import COUNT, Named, total_type
from headwater.algebra.scalars import TRUE, Call, Cast, Column, Literal, Scalar, call, cast, conjunction
from headwater.sql.aggregate_call import AggregateCall
from headwater.sql.bind import Binder, Queries
from headwater.sql.place import Place

_ZERO = Literal(0, t.BIGINT)
_PLAIN = frozenset({"min", "max", "collect_list", "collect_set"})
_MOMENTS = frozenset({"var_pop", "var_samp", "stddev_pop", "stddev_samp"})
_WITHOUT_DISTINCT = frozenset({"min", "max", "any_value", "bool_and", "bool_or", "collect_set"})


#: Decimals of so many digits have squares that add up without overflow.
_MOST_DIGITS = 12


def _where(condition: Scalar, value: Scalar) -> Scalar:
    """The value where a condition is TRUE, else NULL."""
    return call("if", condition, value, Literal(None, value.type))


class Kept(Protocol):
    """What keeps totals and picks, and under which names: a map, or the frame of a window."""

    def rows(self) -> Scalar:
        """How many rows there are."""

    def term(self, term: Scalar) -> Scalar:
        """The total of a term."""

    def pick(self, pick: Pick) -> Scalar:
        """The value of a pick."""


class Aggregator:
    """Computes the values of aggregates from what is kept."""

    def __init__(self, place: Place, kept: Kept, convert: Binder, not_null: frozenset[str], grouped: bool) -> None:
        """Prepare.

        Args:
            place: where the query stands in the text.
            kept: keeps what is needed.
            convert: makes conversions.
            not_null: columns that are never NULL.
            grouped: whether there is always at least one row.
        """
        self._place = place
        self._kept = kept
        self._convert = convert
        self._not_null = not_null
        self._grouped = grouped

    def value(self, given: AggregateCall) -> Scalar:
        """The value of an aggregate."""
        name, node, args, distinct = given.name, given.node, given.args, given.distinct
        if name == "count":
            return self._count_of(list(args), distinct, given.where)
        wanted = 2 if name in ("min_by", "max_by", "percentile") else 1
        if name in ("first", "last") and len(args) == 2:
            given = replace(given, ignores_nulls=self._truth(args[1], node))
            args = args[:1]
        if len(args) != wanted:
            raise self._place.mistake(
                "HW122", f"{name.upper()}: takes {wanted} argument{'s' if wanted > 1 else ''}, not {len(args)}", node
            )
        if distinct and name in _WITHOUT_DISTINCT:
            distinct = False
        if distinct and name == "collect_list":
            name, distinct = "collect_set", False
        if distinct and name not in ("sum", "avg"):
            raise self._place.unsupported("HW203", f"{name.upper()}(DISTINCT) is not supported", node)
        if name in ("first", "last"):
            return self._first(replace(given, args=args))
        if given.where is not None:
            guarded = 1 if name in ("min_by", "max_by") else 0
            args = tuple(_where(given.where, arg) if n == guarded else arg for n, arg in enumerate(args))
        return self._value_of(name, node, args, distinct)

    def _value_of(self, name: str, node: exp.Expr, args: tuple[Scalar, ...], distinct: bool) -> Scalar:
        if name in _PLAIN:
            return self._pick(name, node, *args)
        if name in _MOMENTS:
            return self._moment(name, node, args[0])
        match name:
            case "any_value":
                return self._pick("min", node, args[0])
            case "min_by" | "max_by":
                value, by = args
                order = Sorting(by, descending=name == "max_by", nulls_first=False)
                found = _where(call("is not null", by), value)
                return self._pick("first", node, found, order=(order,), shown=name)
            case "approx_count_distinct":
                return self._pick("count_distinct", node, args[0])
            case "median":
                return self._pick("percentile", node, self._double(args[0], node, name), Literal(0.5, t.DOUBLE))
            case "percentile":
                share = self._convert.value(self._convert.convert(args[1], t.DOUBLE, node), node)
                return self._pick("percentile", node, self._double(args[0], node, name), share)
            case "count_if":
                return self._kept.term(call("is true", self._boolean(args[0], node, name)))
            case "bool_and" | "bool_or":
                return self._all_or_any(name, self._boolean(args[0], node, name))
        return self._sum_or_avg(name, node, args[0], distinct)

    # -- the first and the last ----------------------------------------------------------------------------------------

    def _first(self, given: AggregateCall) -> Scalar:
        """FIRST and LAST by an order; rows that do not count come behind all others, as NULL."""
        name, node, [value] = given.name, given.node, given.args
        if not given.order:
            raise self._place.mistake(
                "HW140",
                f"{name.upper()} without an order is whatever row comes first",
                node,
                f"{name}(x ORDER BY y); or any_value(x), if it does not matter",
            )
        order = given.order if name == "first" else tuple(one.reversed() for one in given.order)
        counts = [given.where] if given.where is not None else []
        if given.ignores_nulls:
            counts.append(call("is not null", value))
        if counts:
            condition = call("is true", conjunction(counts))
            value = _where(condition, value)
            order = (Sorting(condition, descending=True), *order)
        return self._pick("first", node, value, order=order)

    def _truth(self, arg: Scalar, node: exp.Expr) -> bool:
        if not isinstance(arg, Literal) or not isinstance(arg.value, bool):
            raise self._place.mistake("HW122", "whether NULLs are ignored must be TRUE or FALSE", node)
        return arg.value

    # -- moments -------------------------------------------------------------------------------------------------------

    def _moment(self, name: str, node: exp.Expr, arg: Scalar) -> Scalar:
        """VARIANCE and STDDEV: from sums of whole numbers and of their squares if these are exact, else from rows."""
        match arg.type:
            case t.Integer(bits) if bits <= 32:
                whole, scale = cast(arg, t.BIGINT), 0
            case t.Decimal(precision, scale) if precision <= _MOST_DIGITS:
                whole = call("unscaled", arg)
            case _:
                return self._pick(name, node, self._double(arg, node, name))
        n = self._count([arg])
        zero: Scalar = Literal(0, t.BIGINT)
        known = call("coalesce", whole, zero) if self._can_be_null(arg) else whole
        total, squares = self._kept.term(known), self._kept.term(call("square", known))
        sample = Literal(name.endswith("samp"), t.BOOLEAN)
        value = call("variance_of", n, total, squares, sample, Literal(scale, t.INT))
        return call("sqrt", value) if name.startswith("stddev") else value

    # -- counts ------------------------------------------------------------------------------------------------------

    def _count_of(self, args: list[Scalar], distinct: bool, where: Scalar | None) -> Scalar:
        if distinct:
            if where is not None:
                args = [_where(where, arg) for arg in args]
            return self._kept.pick(Pick("count_distinct", tuple(args)))
        if where is not None:
            known = [call("is not null", arg) for arg in args if self._can_be_null(arg)]
            return self._kept.term(conjunction([call("is true", where), *known]))
        return self._count(args)

    def _count(self, args: list[Scalar]) -> Scalar:
        present = conjunction([call("is not null", arg) for arg in args if self._can_be_null(arg)])
        return self._kept.rows() if present == TRUE else self._kept.term(present)

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

    # -- picks and truth ---------------------------------------------------------------------------------------------

    def _pick(
        self, function: str, node: exp.Expr, *args: Scalar, order: tuple[Sorting, ...] = (), shown: str = ""
    ) -> Scalar:
        called = (shown or function).upper()
        if any(isinstance(arg.type, t.Null) for arg in args):
            raise self._place.mistake("HW122", f"{called}: NULL has no type", node, "cast it")
        try:
            return self._kept.pick(Pick(function, args, order))
        except ValueError as error:
            raise self._place.mistake("HW122", f"{called}: {error}", node) from None

    def _double(self, arg: Scalar, node: exp.Expr, name: str) -> Scalar:
        if not t.is_numeric(arg.type) and not isinstance(arg.type, t.String | t.Null):
            raise self._place.mistake("HW122", f"{name.upper()}: takes a number, not {arg.type}", node)
        return self._convert.convert(arg, t.DOUBLE, node)

    def _boolean(self, arg: Scalar, node: exp.Expr, name: str) -> Scalar:
        if arg.type != t.BOOLEAN:
            raise self._place.mistake("HW122", f"{name.upper()}: takes a condition, not {arg.type}", node)
        return arg

    def _all_or_any(self, name: str, arg: Scalar) -> Scalar:
        n = self._count([arg])
        if name == "bool_and":
            value = call("=", self._kept.term(call("is false", arg)), _ZERO)
        else:
            value = call(">", self._kept.term(call("is true", arg)), _ZERO)
        return call("if", call(">", n, _ZERO), value, Literal(None, t.BOOLEAN))

    # -- sums --------------------------------------------------------------------------------------------------------

    def _sum_or_avg(self, name: str, node: exp.Expr, arg: Scalar, distinct: bool) -> Scalar:
        if isinstance(arg.type, t.Float | t.String | t.Null):
            arg = self._convert.convert(arg, t.DOUBLE, node)
        match arg.type:
            case t.Double():
                total, n = self._distinct_double(arg) if distinct else self._finite(arg)
                return total if name == "sum" else call("avg_double", total, n)
            case t.Integer() | t.Decimal():
                total, n = self._exact(arg, distinct)
                return self._sum(arg, total, n) if name == "sum" else self._avg(arg, total, n)
            case t.DayTimeInterval() | t.YearMonthInterval():
                raise self._place.unsupported("HW203", f"{name.upper()} of {arg.type} is not supported yet", node)
        raise self._place.mistake("HW122", f"{name.upper()}: takes a number, not {arg.type}", node)

    def _exact(self, arg: Scalar, distinct: bool) -> tuple[Scalar, Scalar]:
        if distinct:
            n = self._kept.pick(Pick("count_distinct", (arg,)))
            return self._kept.pick(Pick("sum_distinct", (arg,))), n
        term = arg
        if self._can_be_null(arg):
            zero = decimal.Decimal(0).scaleb(-arg.type.scale) if isinstance(arg.type, t.Decimal) else 0
            term = call("coalesce", arg, Literal(zero, arg.type))
        return self._kept.term(term), self._count([arg])

    def _sum(self, arg: Scalar, total: Scalar, n: Scalar) -> Scalar:
        result = (
            t.Decimal(min(t.MAX_PRECISION, arg.type.precision + 10), arg.type.scale)
            if (isinstance(arg.type, t.Decimal))
            else t.BIGINT
        )
        value = cast(total, result)
        if n == self._kept.rows() and self._grouped:
            return value
        return call("if", call(">", n, _ZERO), value, Literal(None, result))

    def _avg(self, arg: Scalar, total: Scalar, n: Scalar) -> Scalar:
        if isinstance(arg.type, t.Decimal):
            # Spark's type: four more digits, in front of and behind the point, cut at 38.
            result = t.bounded_decimal(arg.type.precision + 4, arg.type.scale + 4)
            return call("avg_decimal", total, n, Literal(None, result))
        return call("avg_double", cast(total, t.DOUBLE), n)

    def _finite(self, arg: Scalar) -> tuple[Scalar, Scalar]:
        n = self._count([arg])
        finite = self._kept.term(call("if", call("is_finite", arg), arg, Literal(0.0, t.DOUBLE)))
        tests = ("is_nan", "is_positive_infinity", "is_negative_infinity")
        return call("sum_double", finite, n, *(self._kept.term(call(test, arg)) for test in tests)), n

    def _distinct_double(self, arg: Scalar) -> tuple[Scalar, Scalar]:
        n = self._kept.pick(Pick("count_distinct", (arg,)))
        total = self._kept.pick(Pick("sum_distinct_double", (arg,)))
        return call("if", call(">", n, _ZERO), total, Literal(None, t.DOUBLE)), n


class MapBuilder:
    """Collects the aggregates of one SELECT as terms and picks of one map.

    Attributes:
        used: whether there was any aggregate.
        groupings: columns that stand for GROUPING and GROUPING_ID, with the keys they are about.
    """

    def __init__(
        self,
        place: Place,
        lookup: Callable[[exp.Column], Scalar],
        not_null: frozenset[str],
        grouped: bool,
        queries: Queries | None = None,
    ) -> None:
        """Start with nothing.

        Args:
            place: where the query stands in the text.
            lookup: what a column reference inside an aggregate means.
            not_null: columns that are never NULL.
            grouped: whether every group has a row, as those of GROUP BY have.
            queries: who takes queries inside aggregates.
        """
        self.used = False
        self._inner = Binder(place, lookup, queries=queries, clause="another aggregate")
        self._filter = Binder(place, lookup, queries=queries, clause="FILTER")
        self._aggregator = Aggregator(place, self, self._inner, not_null, grouped)
        self._terms: dict[Scalar, Column] = {}
        self._picks: dict[Pick, Column] = {}
        self.groupings: dict[str, tuple[Scalar, ...]] = {}

    @property
    def terms(self) -> tuple[Named, ...]:
        """The terms of the map, named."""
        return tuple((column.name, term) for term, column in self._terms.items())

    @property
    def picks(self) -> tuple[tuple[str, Pick], ...]:
        """The picks of the map, named."""
        return tuple((column.name, pick) for pick, column in self._picks.items())

    @property
    def payload(self) -> frozenset[str]:
        """Names of all columns of the map that are not keys."""
        return frozenset({COUNT, *(name for name, _ in (*self.terms, *self.picks))})

    @property
    def empty(self) -> dict[str, Scalar]:
        """What each column of the payload is over no rows."""
        out: dict[str, Scalar] = {COUNT: _ZERO}
        for column in self._terms.values():
            zero = decimal.Decimal(0).scaleb(-column.type.scale) if isinstance(column.type, t.Decimal) else 0
            out[column.name] = Literal(0.0 if column.type == t.DOUBLE else zero, column.type)
        for pick, column in self._picks.items():
            nothing = PICKS[pick.function].empty
            if isinstance(nothing, decimal.Decimal) and isinstance(pick.type, t.Decimal):
                nothing = nothing.scaleb(-pick.type.scale)
            out[column.name] = Literal(nothing, pick.type)
        return out

    def argument(self, node: exp.Expr) -> Scalar:
        """Bind an argument of an aggregate; aggregates do not nest."""
        return self._inner.bind(node)

    def condition(self, node: exp.Expr) -> Scalar:
        """Bind the condition of FILTER."""
        return self._filter.condition(node)

    def add(self, given: AggregateCall) -> Scalar:
        """The value of an aggregate, over the columns of the map."""
        self.used = True
        if given.name in ("grouping", "grouping_id"):
            kind = t.TINYINT if given.name == "grouping" else t.BIGINT
            found = Column(f"#grouping{len(self.groupings) + 1}", kind)
            self.groupings[found.name] = given.args
            return found
        return self._aggregator.value(given)

    def rows(self) -> Scalar:
        return Column(COUNT, t.BIGINT)

    def term(self, term: Scalar) -> Scalar:
        if term not in self._terms:
            self._terms[term] = Column(f"t{len(self._terms) + 1}", total_type(term.type))
        return self._terms[term]

    def pick(self, pick: Pick) -> Scalar:
        if pick not in self._picks:
            self._picks[pick] = Column(f"p{len(self._picks) + 1}", pick.type)
        return self._picks[pick]
