"""Scalar expressions: from query trees to typed scalars, every implicit conversion made explicit."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any, Protocol

from sqlglot import exp

from headwater import types as t
from headwater.algebra.clock import reads_clock
from headwater.algebra.functions import REGISTRY, resolve
from headwater.algebra.functions.casts import can_cast, cast_value
from headwater.algebra.functions.errors import EvaluationError
from headwater.algebra.functions.evaluate import evaluate_scalar
from headwater.algebra.scalars import Call, Cast, Column, Literal, Scalar, cast
from headwater.algebra.simplify.fold_constants import fold
from headwater.errors import HeadwaterError, Source
from headwater.sql import literals
from headwater.sql.aggregate_call import AggregateCall
from headwater.sql.calls import bind_call, bind_filtered
from headwater.sql.place import Place
from headwater.sql.precedence import check_precedence
from headwater.sql.scope import RelationInfo, Scope, Visible
from headwater.sql.types import from_sqlglot


class Aggregates(Protocol):
    """Who takes the aggregates of an expression and says what stands for their value."""

    def add(self, call: AggregateCall) -> Scalar:
        """The value of an aggregate, over the columns of a map."""

    def argument(self, node: exp.Expr) -> Scalar:
        """Bind an argument of an aggregate."""

    def condition(self, node: exp.Expr) -> Scalar:
        """Bind the condition of FILTER."""


class Queries(Protocol):
    """Who takes the queries inside an expression and says what stands for their value."""

    def exists(self, query: exp.Expr) -> Scalar:
        """EXISTS (query)."""

    def is_in(self, binder: Binder, node: exp.In, filtering: bool = False, negated: bool = False) -> Scalar:
        """`x IN (query)`."""

    def compared(self, binder: Binder, function: str, node: exp.Binary) -> Scalar:
        """`x > ALL (query)`."""

    def scalar(self, query: exp.Expr) -> Scalar:
        """(query) as a value."""


class Windows(Protocol):
    """Who takes window functions and says what stands for their value."""

    def add(self, binder: Binder, node: exp.Window) -> Scalar:
        """The value of a window function."""


class Binder:
    """Binds the expressions of one clause.

    Attributes:
        place: where the tree stands in the text.
        lookup: what a column reference means in this clause.
        aggregates: who takes aggregates, or None where there must not be any.
        queries: who takes queries, or None where there must not be any.
        windows: who takes window functions, or None where there must not be any.
        clause: what the clause is called in a message.
        read: every column that was bound with the reference that named it, so that an error found later can point.
        depth: how many parameters the lambdas around have.
    """

    def __init__(
        self,
        place: Place,
        lookup: Callable[[exp.Column], Scalar],
        *,
        aggregates: Aggregates | None = None,
        queries: Queries | None = None,
        windows: Windows | None = None,
        clause: str = "this place",
    ) -> None:
        self.place = place
        self.lookup = lookup
        self.aggregates = aggregates
        self.queries = queries
        self.windows = windows
        self.clause = clause
        self.read: list[tuple[Scalar, exp.Column]] = []
        self.depth = 0

    def bind(self, node: exp.Expr) -> Scalar:
        """The scalar an expression means.

        Raises:
            UserError: a name, type or literal is wrong.
            NotSupported: it is good SQL that Headwater does not do.
        """
        handler = _HANDLERS.get(type(node))
        if handler is None:
            raise self._refusal(node)
        return handler(self, node)

    def condition(self, node: exp.Expr) -> Scalar:
        """Bind an expression that must be a condition."""
        bound = self.bind(node)
        if bound.type != t.BOOLEAN:
            raise self.place.mistake(
                "HW112", f"{self.clause} needs a condition, and this is {bound.type}", node, "compare it with something"
            )
        return bound

    def constant(self, node: exp.Expr) -> Literal:
        """Bind an expression and compute it; it must not read columns."""
        bound = self.bind(node)
        if bound.columns:
            raise self.place.mistake("HW101", f"{self.clause} cannot read columns", node)
        return self.value(bound, node)

    def value(self, scalar: Scalar, node: exp.Expr) -> Literal:
        """What a scalar without columns is."""
        if isinstance(scalar, Literal):
            return scalar
        if reads_clock(scalar):
            raise self.place.no_window(next(part for part in scalar.walk() if not part.children and reads_clock(part)))
        try:
            return Literal(evaluate_scalar(scalar, {}), scalar.type)
        except EvaluationError as error:
            raise error.at(self.place.span(node), self.place.source) from None

    def inside(self, lookup: Callable[[exp.Column], Scalar], parameters: int) -> Binder:
        """A binder for the body of a lambda with so many parameters, which `lookup` knows too."""
        inner = Binder(self.place, lookup, clause="a lambda")
        inner.read, inner.depth = self.read, self.depth + parameters
        return inner

    def call(self, function: str, node: exp.Expr, *args: Scalar, shown: str | None = None) -> Scalar:
        """A call of a function of the algebra with Spark's implicit casts."""
        shown = shown or function.upper()
        if function not in REGISTRY:
            raise self.place.unsupported("HW211", f"{shown} is not supported yet", node)
        try:
            signature = resolve(function, args)
        except ValueError as error:
            raise self.place.mistake("HW122", f"{shown}: {error}", node) from None
        return Call(
            function, tuple(self.convert(arg, to, node) for arg, to in zip(args, signature.params, strict=True))
        )

    def convert(self, arg: Scalar, to: t.Type, node: exp.Expr, *, safe: bool = False) -> Scalar:
        """The value in another type, if there is such a conversion."""
        if not can_cast(arg.type, to):
            message = f"{arg.type} cannot be converted to {to}"
            if to == t.STRING and arg.type != t.STRING:  # Spark writes every type as text
                hint = "convert it to DECIMAL first" if t.is_fractional(arg.type) else None
                raise self.place.unsupported("HW214", f"{message} yet", node, hint)
            raise self.place.mistake("HW130", message, node)
        if safe and arg.type != to:
            return Cast(arg, to, safe=True)
        made = cast(arg, to)
        return fold(made) if isinstance(arg, Literal) else made

    def type_of(self, node: exp.Expr) -> t.Type:
        """The type a CAST names."""
        try:
            return from_sqlglot(node)
        except HeadwaterError as error:
            raise error.at(self.place.span(node), self.place.source) from None

    def literal(self, make: Callable[..., Literal], node: exp.Expr, *args: Any) -> Literal:
        """A constant made from its text."""
        try:
            return make(*args)
        except ValueError as error:
            raise self.place.mistake("HW129", str(error), node) from None

    def _refusal(self, node: exp.Expr) -> HeadwaterError:
        for kinds, code, message, hint in _REFUSED:
            if isinstance(node, kinds):
                return self.place.unsupported(code, message, node, hint)
        return self.place.unsupported("HW209", f"{self.place.text(node)} is not supported yet", node)


def bind_row_scalar(
    expression: exp.Expr,
    alias: str,
    info: RelationInfo,
    source: Source,
    offset: int = 0,
    moment: dt.datetime | None = None,
) -> Scalar:
    """Bind an expression over the rows of one relation, as in DELETE and UPDATE.

    Column `c` of the relation becomes column `alias.c` of the scalar; `now()` is the moment.
    """
    place = Place(source, offset, moment)
    columns = tuple((field.name, Column(f"{alias}.{field.name}", field.type)) for field in info.fields)
    scope = Scope((Visible(alias, columns),))
    return fold(Binder(place, lambda node: column(scope, node, place), clause="a row's expression").bind(expression))


def column(scope: Scope, node: exp.Column, place: Place) -> Column:
    """The column of a scope that a reference means."""
    if node.args.get("db"):
        raise place.mistake(
            "HW101",
            f"{place.text(node)} has too many parts",
            node,
            "write column or alias.column; a name that contains a dot goes in backticks",
        )
    place.only(node, ("this", "table"), "HW209")
    if not isinstance(node.this, exp.Identifier):
        raise place.mistake("HW101", f"{place.text(node)} is not a column", node, "names are quoted with backticks")
    return scope.column(node, place)


# -- one function per kind of node -----------------------------------------------------------------------------------


def _column(self: Binder, node: exp.Column) -> Scalar:
    if isinstance(node.this, exp.Star):
        return _star(self, node)
    try:
        found = self.lookup(node)
    except HeadwaterError as error:
        inside = _field_of_column(self, node) if error.code in ("HW101", "HW102") else None
        if inside is None and error.code == "HW101" and len(node.parts) == 1 and node.name.lower() == "now":
            return self.call("unix_seconds", node, self.place.clock(node))  # SyncSQL's Now
        if inside is None:
            raise
        return inside
    self.read.append((found, node))
    return found


def _field_of_column(self: Binder, node: exp.Column) -> Scalar | None:
    """What `alias.column.field` or `column.field` means, if there is such a column and it is a STRUCT."""
    parts = node.parts
    for split in (2, 1):
        if split >= len(parts):
            continue
        names = dict(zip(("this", "table"), reversed(parts[:split]), strict=False))
        holder = exp.Column(**{key: name.copy() for key, name in names.items()})
        holder.update_positions(node)
        try:
            found = self.lookup(holder)
        except HeadwaterError:
            continue
        if not isinstance(found.type, t.Struct):
            return None
        self.read.append((found, node))
        for name in parts[split:]:
            found = self.call("field", node, found, Literal(name.name, t.STRING), shown=self.place.text(node))
        return found
    return None


def _bracket(self: Binder, node: exp.Bracket) -> Scalar:
    self.place.only(node, ("this", "expressions"), "HW209")
    if len(node.expressions) != 1:
        raise self._refusal(node)
    return self.call("element", node, self.bind(node.this), self.bind(node.expressions[0]), shown="[]")


def _dot(self: Binder, node: exp.Dot) -> Scalar:
    self.place.only(node, ("this", "expression"), "HW209")
    if not isinstance(node.expression, exp.Identifier):
        raise self._refusal(node)
    name = node.expression.name
    return self.call("field", node, self.bind(node.this), Literal(name, t.STRING), shown=f".{name}")


def _star(self: Binder, node: exp.Expr) -> Scalar:
    raise self.place.mistake("HW122", "* stands for columns only in a select list and in COUNT(*)", node)


def _paren(self: Binder, node: exp.Paren) -> Scalar:
    return self.bind(node.this)


def _literal(self: Binder, node: exp.Literal) -> Scalar:
    if node.is_string:
        return Literal(node.this, t.STRING)
    return self.literal(literals.number, node, node.this)


def _boolean(self: Binder, node: exp.Boolean) -> Scalar:
    return Literal(bool(node.this), t.BOOLEAN)


def _null(self: Binder, node: exp.Null) -> Scalar:
    return Literal(None, t.NULL)


def _raw_string(self: Binder, node: exp.RawString) -> Scalar:
    return Literal(node.this, t.STRING)


def _hex_string(self: Binder, node: exp.HexString) -> Scalar:
    self.place.only(node, ("this",), "HW209")
    return self.literal(literals.binary, node, node.this)


def _adjacent_strings(self: Binder, node: exp.Concat) -> Scalar:
    self.place.only(node, ("expressions",), "HW209")
    return Literal("".join(part.name for part in node.expressions), t.STRING)


def _typed_literal(self: Binder, node: exp.Cast) -> Scalar:
    """DATE '2020-01-01': unlike CAST, wrong text is an error now."""
    self.place.only(node, ("this", "to"), "HW209")
    to = self.type_of(node.args["to"])
    value = node.this
    if not isinstance(value, exp.Literal) or not can_cast(t.STRING, to):
        raise self.place.unsupported("HW209", f"{self.place.text(node)} is not supported yet", node)
    try:
        return Literal(cast_value(value.name, t.STRING, to), to)
    except EvaluationError:
        raise self.place.mistake("HW129", f"'{value.name}' is not a {to}", node) from None


_SUFFIXES = {"L": t.BIGINT, "S": t.SMALLINT, "Y": t.TINYINT, "D": t.DOUBLE, "F": t.FLOAT, "BD": t.Decimal(1, 0)}


def _suffix(self: Binder, node: exp.TryCast) -> t.Type | None:
    """The type of a number's suffix, where sqlglot made a cast of it (`10L`)."""
    if not isinstance(node.this, exp.Literal):
        return None
    text = self.place.text(node).upper()
    return _SUFFIXES.get(text.removeprefix(node.this.name.upper())) if text[:1] not in "'\"" else None


def _cast(self: Binder, node: exp.TryCast, sign: str = "") -> Scalar:
    self.place.only(node, ("this", "to", "safe"), "HW209")
    suffix = _suffix(self, node)
    if suffix is not None:
        return self.literal(literals.suffixed, node, sign + node.this.name, suffix)
    to = self.type_of(node.args["to"])
    arg = self.literal(literals.number, node, sign + node.this.name) if sign else self.bind(node.this)
    if isinstance(to, t.Null):
        raise self.place.mistake("HW130", "nothing can be converted to VOID", node)
    return self.convert(arg, to, node, safe=bool(node.args.get("safe")))


def _negation(self: Binder, node: exp.Neg) -> Scalar:
    # The sign belongs to the number: -2147483648 is an INT although 2147483648 is not.
    inner = node.this
    if isinstance(inner, exp.Literal) and not inner.is_string:
        return self.literal(literals.number, node, "-" + inner.name)
    number = isinstance(inner, exp.TryCast) and isinstance(inner.this, exp.Literal)
    if number and (not inner.this.is_string or _suffix(self, inner)):
        return _cast(self, inner, "-")
    return self.call("negate", node, self.bind(inner), shown="-")


def _interval(self: Binder, node: exp.Interval) -> Scalar:
    self.place.only(node, ("this", "unit", "fraction_in_string"), "HW209")
    quantity, unit = node.this, node.args.get("unit")
    sign = ""
    if isinstance(quantity, exp.Neg):
        sign, quantity = "-", quantity.this
    if not isinstance(quantity, exp.Literal):
        raise self.place.mistake(
            "HW129", "the quantity of an interval is a literal", node, "multiply instead: x * INTERVAL 1 DAY"
        )
    text = sign + quantity.name
    if unit is None:
        return self.literal(literals.interval_text, node, text)
    if isinstance(unit, exp.IntervalSpan):
        return self.literal(literals.interval_range, node, text, unit.this.name, unit.expression.name)
    return self.literal(literals.interval, node, [(text, unit.name)])


def _add(self: Binder, node: exp.Add) -> Scalar:
    # INTERVAL 1 DAY 2 HOURS is one literal, which sqlglot takes apart.
    left, right = self.bind(node.this), self.bind(node.expression)
    one_literal = isinstance(node.this, exp.Interval) and isinstance(node.expression, exp.Interval | exp.Add)
    if one_literal and isinstance(left, Literal) and isinstance(right, Literal) and left.type == right.type:
        assert isinstance(left.value, int)
        assert isinstance(right.value, int)
        return self.literal(literals.bounded_interval, node, left.value + right.value, left.type)
    return self.call("+", node, left, right)


def _binary(self: Binder, node: exp.Binary) -> Scalar:
    self.place.only(node, ("this", "expression", "typed", "safe"), "HW209")
    check_precedence(node, self.place)
    function = _BINARY[type(node)]
    if isinstance(node.expression, exp.Any | exp.All) and function in ("=", "<>", "<", "<=", ">", ">="):
        return _queries(self, node).compared(self, function, node)
    left, right = self.bind(node.this), self.bind(node.expression)
    bound = self.call(function, node, left, right, shown=_SIGNS.get(function))
    return self.place.lifting.compared(bound, (node.this, node.expression), (left, right))


def _connector(self: Binder, node: exp.Connector) -> Scalar:
    function = "and" if isinstance(node, exp.And) else "or"
    parts: list[tuple[exp.Expr, exp.Expr]] = []
    below: exp.Expr = node
    # A chain leans left and may be long.
    while type(below) is type(node):
        self.place.only(below, ("this", "expression"), "HW209")
        parts.append((below.expression, below))
        below = below.this
    bound = self.bind(below)
    for part, whole in reversed(parts):
        bound = self.call(function, whole, bound, self.bind(part))
    return bound


def _not(self: Binder, node: exp.Not) -> Scalar:
    if isinstance(node.this, exp.Is):
        return _is(self, node.this, "is not")
    return self.call("not", node, self.bind(node.this))


def _is(self: Binder, node: exp.Is, word: str = "is") -> Scalar:
    self.place.only(node, ("this", "expression"), "HW209")
    match node.expression:
        case exp.Null():
            return self.call(f"{word} null", node, self.bind(node.this))
        case exp.Boolean() as truth:
            return self.call(f"{word} {'true' if truth.this else 'false'}", node, self.bind(node.this))
    raise self._refusal(node)


def _different(self: Binder, node: exp.NullSafeNEQ) -> Scalar:
    self.place.only(node, ("this", "expression"), "HW209")
    check_precedence(node, self.place)
    same = self.call("<=>", node, self.bind(node.this), self.bind(node.expression), shown="IS DISTINCT FROM")
    return self.call("not", node, same)


def _between(self: Binder, node: exp.Between) -> Scalar:
    self.place.only(node, ("this", "low", "high"), "HW209")
    value = self.bind(node.this)
    sides: list[Scalar] = []
    for function, end in ((">=", node.args["low"]), ("<=", node.args["high"])):
        edge = self.bind(end)
        side = self.call(function, node, value, edge, shown="BETWEEN")
        sides.append(self.place.lifting.compared(side, (node.this, end), (value, edge)))
    return self.call("and", node, *sides)


def _in(self: Binder, node: exp.In) -> Scalar:
    if node.args.get("query"):
        self.place.only(node, ("this", "query"), "HW209")
        return _queries(self, node).is_in(self, node)
    if isinstance(node.this, exp.Tuple):
        return _tuple_in(self, node)
    self.place.only(node, ("this", "expressions"), "HW209")
    return self.call("in", node, self.bind(node.this), *(self.bind(item) for item in node.expressions))


def _tuple_in(self: Binder, node: exp.In) -> Scalar:
    """(a, b) IN ((1, 2), (3, 4))."""
    self.place.only(node, ("this", "expressions"), "HW209")
    mine = [self.bind(one) for one in node.this.expressions]
    found: Scalar | None = None
    for item in node.expressions:
        theirs = item.expressions if isinstance(item, exp.Tuple) else [item]
        if len(theirs) != len(mine):
            raise self.place.mistake("HW135", f"a row of {len(theirs)} values beside one of {len(mine)}", item)
        parts = [self.call("=", node, a, self.bind(b), shown="IN") for a, b in zip(mine, theirs, strict=True)]
        whole = parts[0]
        for part in parts[1:]:
            whole = self.call("and", node, whole, part)
        found = whole if found is None else self.call("or", node, found, whole)
    assert found is not None
    return found


def _queries(self: Binder, node: exp.Expr) -> Queries:
    if self.queries is None:
        raise self.place.unsupported("HW204", f"a query cannot stand in {self.clause}", node, _SUBQUERY_HINT)
    return self.queries


def _exists(self: Binder, node: exp.Exists) -> Scalar:
    return _queries(self, node).exists(node.this)


def _subquery(self: Binder, node: exp.Subquery) -> Scalar:
    return _queries(self, node).scalar(node)


def _window(self: Binder, node: exp.Window) -> Scalar:
    if self.windows is None:
        raise self.place.mistake(
            "HW137",
            f"a window function cannot stand in {self.clause}",
            node,
            "compute it in a derived table, or use QUALIFY",
        )
    return self.windows.add(self, node)


def _like(self: Binder, node: exp.Binary, escape: tuple[Scalar, ...] = ()) -> Scalar:
    self.place.only(node, ("this", "expression", "negate"), "HW209")
    function = _PATTERNS[type(node)]
    if isinstance(node.expression, exp.Any | exp.All):
        return _like_several(self, node, function)
    bound = self.call(function, node, self.bind(node.this), self.bind(node.expression), *escape)
    return self.call("not", node, bound) if node.args.get("negate") else bound


def _like_several(self: Binder, node: exp.Binary, function: str) -> Scalar:
    """LIKE ANY (...), LIKE ALL (...), and their negations, which say NOT LIKE of each pattern."""
    listed = node.expression.this
    patterns = listed.expressions if isinstance(listed, exp.Tuple) else [listed.this]
    if isinstance(listed, exp.Subquery) or not isinstance(listed, exp.Tuple | exp.Paren):
        raise self._refusal(node)
    connective = "or" if isinstance(node.expression, exp.Any) else "and"
    value, found = self.bind(node.this), None
    for pattern in patterns:
        one = self.call(function, node, value, self.bind(pattern))
        one = self.call("not", node, one) if node.args.get("negate") else one
        found = one if found is None else self.call(connective, node, found, one)
    assert found is not None
    return found


def _escape(self: Binder, node: exp.Escape) -> Scalar:
    self.place.only(node, ("this", "expression"), "HW209")
    if type(node.this) not in _PATTERNS:
        raise self._refusal(node)
    return _like(self, node.this, (self.bind(node.expression),))


def _case(self: Binder, node: exp.Case) -> Scalar:
    self.place.only(node, ("this", "ifs", "default"), "HW209")
    subject = self.bind(node.this) if node.this else None
    args: list[Scalar] = []
    for branch in node.args["ifs"]:
        self.place.only(branch, ("this", "true"), "HW209")
        when = self.bind(branch.this)
        if subject is not None:
            when = self.call("=", branch, subject, when, shown="CASE")
        elif when.type != t.BOOLEAN and not isinstance(when.type, t.Null):
            raise self.place.mistake("HW112", f"WHEN needs a condition, and this is {when.type}", branch.this)
        args += [when, self.bind(branch.args["true"])]
    default = node.args.get("default")
    args.append(self.bind(default) if default else Literal(None, t.NULL))
    return self.call("case", node, *args)


def _any(self: Binder, node: exp.Any) -> Scalar:
    """ANY as an aggregate; beside a comparison it is another thing."""
    inner = node.this.this if isinstance(node.this, exp.Paren) else node.this
    if isinstance(inner, exp.Query | exp.Subquery):
        raise self.place.unsupported("HW209", "ANY stands behind a comparison", node)
    return bind_call(self, exp.Anonymous(this="any", expressions=[inner]))


def _anonymous(self: Binder, node: exp.Anonymous) -> Scalar:
    return bind_call(self, node)


_BINARY: dict[type[exp.Expr], str] = {
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
    exp.DPipe: "concat",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.BitwiseLeftShift: "shiftleft",
    exp.BitwiseRightShift: "shiftright",
}
_SIGNS = {"concat": "||", "shiftleft": "<<", "shiftright": ">>"}
_PATTERNS: dict[type[exp.Expr], str] = {exp.Like: "like", exp.ILike: "ilike", exp.RegexpLike: "rlike"}

_HANDLERS: dict[type[exp.Expr], Callable[[Binder, Any], Scalar]] = {
    **dict.fromkeys(_BINARY, _binary),
    **dict.fromkeys(_PATTERNS, _like),
    exp.Add: _add,
    exp.And: _connector,
    exp.Anonymous: _anonymous,
    exp.Any: _any,
    exp.Between: _between,
    exp.BitwiseNot: lambda self, node: self.call("~", node, self.bind(node.this)),
    exp.Boolean: _boolean,
    exp.Bracket: _bracket,
    exp.Case: _case,
    exp.Cast: _typed_literal,
    exp.Column: _column,
    exp.Concat: _adjacent_strings,
    exp.Dot: _dot,
    exp.Escape: _escape,
    exp.Exists: _exists,
    exp.Filter: lambda self, node: bind_filtered(self, node),
    exp.IgnoreNulls: lambda self, node: bind_filtered(self, node),
    exp.Subquery: _subquery,
    exp.Window: _window,
    exp.WithinGroup: lambda self, node: bind_filtered(self, node),
    exp.HexString: _hex_string,
    exp.In: _in,
    exp.Interval: _interval,
    exp.Is: _is,
    exp.Literal: _literal,
    exp.Neg: _negation,
    exp.Not: _not,
    exp.Null: _null,
    exp.NullSafeNEQ: _different,
    exp.Or: _connector,
    exp.Paren: _paren,
    exp.RawString: _raw_string,
    exp.Star: _star,
    exp.TryCast: _cast,
}

_LAMBDAS = "those are AGGREGATE, TRANSFORM, FILTER, EXISTS and FORALL"
_SUBQUERY_HINT = "make the inner query a relation of FROM and join with it"
_REFUSED: tuple[tuple[tuple[type[exp.Expr], ...], str, str, str | None], ...] = (
    ((exp.Select,), "HW204", "a query in an expression stands in parentheses", None),
    ((exp.Kwarg,), "HW209", "arguments by name are not supported", "give arguments by position"),
    ((exp.RespectNulls,), "HW203", "such an aggregate is not supported yet", None),
    ((exp.Distinct,), "HW203", "DISTINCT stands only in front of all arguments of an aggregate", None),
    ((exp.Order,), "HW203", "ORDER BY stands only behind all arguments of an aggregate", None),
    ((exp.Bracket, exp.Dot), "HW209", "this way to read an element of an ARRAY, MAP or STRUCT is not supported", None),
    ((exp.Lambda, exp.JSONExtract), "HW209", "a lambda (x -> ...) stands only where a function takes one", _LAMBDAS),
    ((exp.Placeholder, exp.Parameter), "HW209", "parameters are not supported yet", "write the value"),
    ((exp.Tuple,), "HW209", "a row of several values is not supported as a value", "compare the values one by one"),
    ((exp.Collate,), "HW209", "COLLATE is not supported yet", None),
    ((exp.AtTimeZone,), "HW209", "AT TIME ZONE is not supported yet", "timestamps are in UTC"),
)
