"""Aggregates over a window of parts: what is kept of each part, and their value from what the parts of a window have.

| aggregate | kept of a part | value over the window | subtractable |
|---|---|---|---|
| COUNT(*), COUNT(x), COUNT_IF(c) | itself | the sum | yes |
| SUM(x), exact | itself, COUNT(x) | the sum; NULL where nothing was counted | yes |
| SUM(x), DOUBLE | itself | the sum | no: a rounded sum cannot be taken back, and NaN stays |
| AVG(x) | SUM(x), COUNT(x) | their quotient | as SUM |
| MIN, MAX, BOOL_AND, BOOL_OR, ANY_VALUE | itself | the same of these | no |
| VARIANCE(x), STDDEV(x), of few digits | COUNT(x), SUM(x), SUM(x * x), without the point | from these | yes |

(Yang, Golab and Ozsu, "ViewDF", section 5.2, calls the first column distributive.) All others need the rows. The sum of
BIGINT is kept as DECIMAL: that of a part may be larger than any BIGINT, though that of the window is not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from headwater import types as t
from headwater.errors import Source
from headwater.sql.calls import function_name
from headwater.sql.function_names import AGGREGATES
from headwater.sql.parted import Names, Parted, as_type

#: Sums of DECIMAL with more digits might not fit a part's.
_MOST_SUMMED = 28
#: A quotient of more digits would be rounded twice.
_MOST_AVERAGED = 14
#: Sums of the squares of DECIMAL with more digits might not fit.
_MOST_SQUARED = 12

_MOMENTS = ("var_pop", "var_samp", "stddev_pop", "stddev_samp")
_SAME = ("min", "max", "bool_and", "bool_or", "any_value")

_ZERO, _ONE = exp.Literal.number(0), exp.Literal.number(1)


@dataclass(frozen=True)
class Partial:
    """A column of what is kept of each part.

    Attributes:
        name: of the column.
        call: the aggregate over a part's rows.
        merge: the aggregate that makes the window's value of the parts' values.
        type: of the column.
        subtractable: whether the value of a part that leaves the window can be taken back.
    """

    name: str
    call: exp.Expr
    merge: str
    type: t.Type
    subtractable: bool


#: The window's value of a column of the parts.
Merged = Callable[[Partial], exp.Expr]

#: The value of an aggregate, given how the columns of the parts are merged.
Value = Callable[[Merged], exp.Expr]


@dataclass
class WindowAggregates:
    """Collects what is kept of each part.

    Attributes:
        parted: the relation.
        source: the text errors point into.
        names: for the columns.
        always: whether every group that is shown has a row.
        partials: the columns so far.
    """

    parted: Parted
    source: Source
    names: Names
    always: bool
    partials: list[Partial] = field(default_factory=list)

    @property
    def subtractable(self) -> bool:
        return all(one.subtractable for one in self.partials)

    def rows(self) -> Partial:
        """How many rows a part has."""
        return self._partial("count", exp.Star(), None, t.BIGINT, "n")

    def value(self, call: exp.Expr) -> Value | None:
        """How the value of an aggregate, in plain spelling, is made of columns of the parts.

        Returns:
            None if it needs the rows.
        """
        where = None
        if isinstance(call, exp.Filter):
            call, where = call.this, call.expression
        if not isinstance(call, exp.Anonymous):
            return None
        name = AGGREGATES.get(function_name(call), "")
        args = call.expressions
        if any(isinstance(one, exp.Distinct) for one in args):
            return None
        if name == "count" and (not args or isinstance(args[0], exp.Star)):
            return self._plain(self._partial("count", exp.Star(), where, t.BIGINT, "n"))
        if len(args) != 1:
            return None
        return self._of(name, args[0], where)

    def _of(self, name: str, arg: exp.Expr, where: exp.Expr | None) -> Value | None:
        of = self.parted.typed(arg, self.source)
        match name:
            case "count":
                return self._plain(self._count(arg, of, where))
            case "count_if":
                return self._plain(self._partial("count_if", arg, where, t.BIGINT))
            case "sum":
                return self._sum(arg, of, where)
            case "avg":
                return self._avg(arg, of, where)
        if name in _SAME:
            kind = t.BOOLEAN if name.startswith("bool") else of.type
            return self._plain(self._partial(name, arg, where, kind))
        return self._moment(name, arg, of, where) if name in _MOMENTS else None

    # -- columns of the parts ------------------------------------------------------------------------------------------

    def _count(self, arg: exp.Expr, of: t.Field, where: exp.Expr | None) -> Partial:
        if not of.nullable:
            return self._partial("count", exp.Star(), where, t.BIGINT, "n")
        return self._partial("count", arg, where, t.BIGINT)

    def _partial(
        self, function: str, arg: exp.Expr, where: exp.Expr | None, kind: t.Type, wanted: str | None = None
    ) -> Partial:
        call: exp.Expr = exp.Anonymous(this=function, expressions=[arg.copy()])
        if where is not None:
            call = exp.Filter(this=call, expression=where.copy())
            wanted = None
        known = next((one for one in self.partials if one.call == call), None)
        if known is not None:
            return known
        column = isinstance(arg, exp.Column) and len(arg.parts) == 1 and where is None
        wanted = wanted or (f"{function}_{arg.name}" if column else f"{function}_{len(self.partials) + 1}")
        merge = "sum" if function.startswith("count") or function == "sum" else function
        exact = merge == "sum" and not isinstance(kind, t.Double)
        made = Partial(self.names.fresh(wanted), call, merge, kind, exact)
        self.partials.append(made)
        return made

    def _total(self, arg: exp.Expr, kind: t.Type, where: exp.Expr | None) -> Partial | None:
        """The sum of a part, or None if it might not fit."""
        match kind:
            case t.Integer(bits) if bits <= 32:
                return self._partial("sum", arg, where, t.BIGINT)
            case t.Integer():
                wide = as_type(arg, t.Decimal(20, 0))
                wanted = f"sum_{arg.name}" if isinstance(arg, exp.Column) and where is None else None
                return self._partial("sum", wide, where, t.Decimal(30, 0), wanted)
            case t.Decimal(precision, scale) if precision <= _MOST_SUMMED:
                return self._partial("sum", arg, where, t.Decimal(precision + 10, scale))
            case t.Double() | t.Float() | t.String():
                return self._partial("sum", arg, where, t.DOUBLE)
        return None

    # -- values --------------------------------------------------------------------------------------------------------

    def _plain(self, partial: Partial) -> Value:
        return lambda merged: merged(partial)

    def _sum(self, arg: exp.Expr, of: t.Field, where: exp.Expr | None) -> Value | None:
        total = self._total(arg, of.type, where)
        if total is None:
            return None
        if not total.subtractable:
            return self._plain(total)
        n = self._count(arg, of, where)
        sure = self.always and where is None and not of.nullable

        def value(merged: Merged) -> exp.Expr:
            found = as_type(merged(total), t.BIGINT) if of.type == t.BIGINT else merged(total)
            return found if sure else _where(exp.GT(this=merged(n), expression=_ZERO.copy()), found)

        return value

    def _avg(self, arg: exp.Expr, of: t.Field, where: exp.Expr | None) -> Value | None:
        kind = of.type
        if isinstance(kind, t.Decimal) and kind.precision > _MOST_AVERAGED:
            return None
        total = self._total(arg, kind, where)
        if total is None:
            return None
        n = self._count(arg, of, where)

        def value(merged: Merged) -> exp.Expr:
            count = exp.Anonymous(this="nullif", expressions=[merged(n), _ZERO.copy()])
            if not isinstance(kind, t.Decimal):
                return exp.Paren(this=exp.Div(this=as_type(merged(total), t.DOUBLE), expression=count))
            quotient = exp.Div(this=merged(total), expression=count)
            return as_type(quotient, t.bounded_decimal(kind.precision + 4, kind.scale + 4))

        return value

    def _moment(self, name: str, arg: exp.Expr, of: t.Field, where: exp.Expr | None) -> Value | None:
        """VARIANCE and STDDEV from exact sums: n * SUM(x * x) - SUM(x) ** 2, divided by n * (n - 1) or by n * n."""
        match of.type:
            case t.Integer(bits) if bits <= 32:
                whole, digits, scale = arg, 10, 0
            case t.Decimal(digits, scale) if digits <= _MOST_SQUARED:
                whole = exp.Mul(this=exp.Paren(this=arg.copy()), expression=exp.Literal.number(10**scale))
            case _:
                return None
        whole = as_type(whole, t.Decimal(digits, 0))
        n = self._count(arg, of, where)
        total = self._partial("sum", whole, where, t.Decimal(digits + 10, 0))
        square = exp.Mul(this=whole.copy(), expression=whole.copy())
        squares = self._partial("sum", square, where, t.Decimal(2 * digits + 11, 0), "squares")
        sample = name.endswith("samp")

        def value(merged: Merged) -> exp.Expr:
            found: exp.Expr = exp.Div(
                this=_spread(merged(n), merged(total), merged(squares)),
                expression=exp.Paren(
                    this=exp.Mul(
                        this=as_type(merged(n), t.DOUBLE),
                        expression=exp.Paren(this=exp.Sub(this=merged(n), expression=_ONE.copy()))
                        if sample
                        else merged(n),
                    )
                ),
            )
            if scale:
                found = exp.Div(this=found, expression=as_type(exp.Literal.number(100**scale), t.DOUBLE))
            if name.startswith("stddev"):
                found = exp.Anonymous(this="sqrt", expressions=[found])
            least = exp.Literal.number(1 if sample else 0)
            return _where(exp.GT(this=merged(n), expression=least), found)

        return value


def _spread(n: exp.Expr, total: exp.Expr, squares: exp.Expr) -> exp.Expr:
    """n * squares - total * total: exact where the products fit, since the difference of two large ones is small."""

    def product(kind: t.Type) -> exp.Expr:
        weighed = exp.Mul(this=as_type(n, kind), expression=as_type(squares, kind))
        return exp.Sub(this=weighed, expression=exp.Mul(this=as_type(total, kind), expression=as_type(total, kind)))

    size = exp.Mul(this=as_type(n, t.DOUBLE), expression=as_type(squares, t.DOUBLE))
    small = exp.LT(this=size, expression=exp.Literal.number("1e37"))
    exact = as_type(product(t.Decimal(38, 0)), t.DOUBLE)
    return exp.Case(ifs=[exp.If(this=small, true=exact)], default=product(t.DOUBLE))


def _where(condition: exp.Expr, value: exp.Expr) -> exp.Expr:
    """The value where a condition is TRUE, else NULL."""
    return exp.Case(ifs=[exp.If(this=condition, true=value)])
