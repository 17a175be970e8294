"""Aggregates over the rows of a match: what a helper view keeps for them from row to row.

| aggregate | kept | first row | another row x | value |
|---|---|---|---|---|
| COUNT(*) | ct | 1 | ct + 1 | ct |
| COUNT(x) | count_x | 1 or 0 | count_x + 1 or 0 | count_x |
| SUM(x) | sum_x | x | sum_x + x, NULLs skipped | sum_x |
| MIN(x), MAX(x) | min_x, max_x | x | least, greatest | it |
| AVG(x) | sum_x, count_x | | | sum_x / count_x |
| FIRST(x), LAST(x) | first_x, last_x | x | the old one, the new one | it |

(Yang, Golab and Ozsu, "ViewDF", section 5.1, has COUNT(*) and SUM.) All types are Spark's. What two aggregates need is
kept once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from headwater import types as t
from headwater.errors import UserError
from headwater.sql.calls import function_name
from headwater.sql.function_names import AGGREGATES, OTHER_AGGREGATES
from headwater.sql.parted import Names, Parted, as_type
from headwater.sql.place import Place
from headwater.sql.state_machine import check_kept

_KNOWN = ("count", "sum", "min", "max", "avg", "first", "last")
_HINT = "over the rows of a match there are COUNT, SUM, MIN, MAX, AVG, FIRST and LAST"

#: A DECIMAL with so many digits can be averaged by a division, for any number of rows that a match can have.
_MOST_DIGITS = 14

#: How the text of a row's expression is written: as a function of the tree.
Row = Callable[[exp.Expr], str]


@dataclass(frozen=True)
class Kept:
    """A column of the helper view that belongs to a match.

    Attributes:
        name: of the column.
        kind: one of "rows", "count", "sum", "min", "max", "first", "last".
        args: expressions over a row; none for "rows".
        type: of the column.
        nullable: whether an argument can be NULL.
    """

    name: str
    kind: str
    args: tuple[exp.Expr, ...]
    type: t.Type
    nullable: bool

    def begin(self, row: Row) -> str:
        """Its value after the first row of a match."""
        match self.kind:
            case "rows":
                return "CAST(1 AS BIGINT)"
            case "count":
                return f"CAST({self._counted(row)} AS BIGINT)"
        return self._value(row)

    def step(self, row: Row, before: str) -> str:
        """Its value after another row, given what it was before."""
        match self.kind:
            case "rows":
                return f"{before} + 1"
            case "count":
                return f"{before} + {self._counted(row)}"
            case "sum":
                return self._summed(row, before)
            case "min":
                return f"least({before}, {self._value(row)})"
            case "max":
                return f"greatest({before}, {self._value(row)})"
            case "first":
                return before
        return self._value(row)

    def _value(self, row: Row) -> str:
        value = row(self.args[0])
        return f"CAST({value} AS {self.type})" if self.kind == "sum" else value

    def _counted(self, row: Row) -> str:
        if not self.nullable:
            return "1"
        known = " AND ".join(f"{row(_operand(one))} IS NOT NULL" for one in self.args)
        return f"if({known}, 1, 0)"

    def _summed(self, row: Row, before: str) -> str:
        value = self._value(row) if self.type == t.DOUBLE else row(_operand(self.args[0]))
        total = f"{before} + {value}"
        if isinstance(self.type, t.Decimal):
            total = f"CAST({total} AS {self.type})"
        return f"coalesce({total}, {before}, {value})" if self.nullable else total


@dataclass
class MatchAggregates:
    """Collects what a query keeps of a match.

    Attributes:
        parted: the relation.
        place: where the query stands in the text.
        names: for the columns.
        kept: the columns so far.
    """

    parted: Parted
    place: Place
    names: Names
    kept: list[Kept] = field(default_factory=list)

    def value(self, call: exp.Expr, node: exp.Expr) -> exp.Expr | None:
        """The value of an aggregate over the helper view's columns, or None if it is no aggregate.

        Args:
            call: in plain spelling.
            node: where it stands in the text.
        """
        if isinstance(call, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls | exp.Window | exp.Any):
            raise self._refused(self.place.text(node), node)
        if not isinstance(call, exp.Anonymous):
            return None
        written = function_name(call)
        name = AGGREGATES.get(written)
        if name is None and written not in OTHER_AGGREGATES:
            return None
        args = call.expressions
        if name not in _KNOWN or any(isinstance(one, exp.Distinct) for one in args):
            raise self._refused(self.place.text(node), node)
        if len(args) != 1 and name != "count":
            raise self._refused(f"{written.upper()} with {len(args)} arguments", node)
        if name == "count" and (not args or isinstance(args[0], exp.Star)):
            return self._column("rows", (), t.BIGINT, False)
        return self._of(name, tuple(args), node)

    def _of(self, name: str, args: tuple[exp.Expr, ...], node: exp.Expr) -> exp.Expr:
        for one in (column for arg in args for column in arg.find_all(exp.Column)):
            found = self.parted.field(one.parts[0].name)
            assert found is not None  # the query was lowered
            check_kept(found, node, self.place)
        fields = [self.parted.typed(one, self.place.source) for one in args]
        kind, nullable = fields[0].type, any(one.nullable for one in fields)
        match name:
            case "count":
                if not nullable:
                    return self._column("rows", (), t.BIGINT, False)
                return self._column("count", args, t.BIGINT, True)
            case "sum":
                return self._column("sum", args, self._sum_type(kind, node), nullable)
            case "avg":
                return self._average(args, kind, nullable, node)
        return self._column(name, args, kind, nullable)

    def _average(self, args: tuple[exp.Expr, ...], kind: t.Type, nullable: bool, node: exp.Expr) -> exp.Expr:
        total: t.Type = self._sum_type(kind, node)
        if kind == t.BIGINT:  # the sum may be larger than any BIGINT
            total = t.Decimal(38, 0)
        sums = self._column("sum", args, total, nullable)
        if nullable:
            count = self._column("count", args, t.BIGINT, True)
            count = exp.Anonymous(this="nullif", expressions=[count, exp.Literal.number(0)])
        else:
            count = self._column("rows", (), t.BIGINT, False)
        if not isinstance(kind, t.Decimal):
            return exp.Paren(this=exp.Div(this=as_type(sums, t.DOUBLE), expression=count))
        if kind.precision > _MOST_DIGITS:
            raise self.place.mistake(
                "HW192",
                f"AVG of {kind} over a match would be rounded twice",
                node,
                f"cast it to DECIMAL of at most {_MOST_DIGITS} digits, or to DOUBLE",
            )
        return as_type(exp.Div(this=sums, expression=count), t.bounded_decimal(kind.precision + 4, kind.scale + 4))

    def _sum_type(self, kind: t.Type, node: exp.Expr) -> t.Type:
        match kind:
            case t.Integer():
                return t.BIGINT
            case t.Decimal(precision, scale):
                if precision > 27 and scale > 6:
                    raise self.place.mistake(
                        "HW192",
                        f"SUM of {kind} over a match would lose digits",
                        node,
                        f"cast it to DECIMAL(27,{scale}) or to fewer digits behind the point",
                    )
                return t.Decimal(min(t.MAX_PRECISION, precision + 10), scale)
        return t.DOUBLE

    def _column(self, kind: str, args: tuple[exp.Expr, ...], of: t.Type, nullable: bool) -> exp.Expr:
        for one in self.kept:
            if (one.kind, one.args, one.type) == (kind, args, of):
                return exp.column(one.name)
        whole = len(args) == 1 and isinstance(args[0], exp.Column) and len(args[0].parts) == 1
        wanted = "ct" if kind == "rows" else f"{kind}_{args[0].name}" if whole else f"{kind}_{len(self.kept) + 1}"
        made = Kept(self.names.fresh(wanted), kind, args, of, nullable)
        self.kept.append(made)
        return exp.column(made.name)

    def _refused(self, what: str, node: exp.Expr) -> UserError:
        return self.place.mistake("HW192", f"{what} is no aggregate over a match", node, _HINT)


def _operand(tree: exp.Expr) -> exp.Expr:
    """An expression beside an operator."""
    simple = isinstance(tree, exp.Column | exp.Anonymous | exp.Literal | exp.Cast | exp.Case | exp.Paren)
    return tree if simple else exp.Paren(this=tree.copy())
