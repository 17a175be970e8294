"""Small builders of DuckDB expressions, and the table of emitters.

An emitter gets the call and its arguments, already emitted, and returns an expression of exactly the call's type.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from sqlglot import exp

from headwater import types as t

Emitter = Callable[..., exp.Expr]

EMITTERS: dict[str, Emitter] = {}


def emits(*names: str) -> Callable[[Emitter], Emitter]:
    """Register the decorated emitter for functions of these names."""

    def decorate(emitter: Emitter) -> Emitter:
        for name in names:
            if name in EMITTERS:
                raise ValueError(f"{name} is emitted twice")
            EMITTERS[name] = emitter
        return emitter

    return decorate


def fn(name: str, *args: exp.Expr) -> exp.Expr:
    """A call of a DuckDB function, printed as it stands."""
    return exp.Anonymous(this=name, expressions=list(args))


def renamed(name: str) -> Emitter:
    """An emitter for a function that DuckDB has too, under this name and with the same result type."""
    return lambda call, *args: fn(name, *args)


_TIGHT = (
    exp.Paren,
    exp.Func,
    exp.Column,
    exp.Literal,
    exp.Boolean,
    exp.Null,
    exp.Dot,
    exp.Cast,
    exp.Bracket,
    exp.Interval,
)
_TESTS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.Is, exp.In)


def wrap(inner: exp.Expr) -> exp.Expr:
    """In parentheses, unless it cannot come apart beside an operator."""
    assert isinstance(inner, exp.Expr)
    tight = isinstance(inner, _TIGHT) and not isinstance(inner, exp.And | exp.Or | exp.Case)
    return inner if tight else exp.Paren(this=inner)


def infix(kind: type[exp.Expr], left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """A binary operator with the parentheses it needs."""
    return kind(this=wrap(left), expression=wrap(right))


def _connect(kind: type[exp.Expr], left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """AND or OR; tests and chains of the same connective need no parentheses, and people read these most."""

    def side(inner: exp.Expr) -> exp.Expr:
        assert isinstance(inner, exp.Expr)
        plain = isinstance(inner, (*_TESTS, kind)) or (isinstance(inner, exp.Not) and isinstance(inner.this, exp.Is))
        return inner if plain else wrap(inner)

    return kind(this=side(left), expression=side(right))


def add(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Sum."""
    return infix(exp.Add, left, right)


def sub(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Difference."""
    return infix(exp.Sub, left, right)


def mul(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Product."""
    return infix(exp.Mul, left, right)


def whole_div(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """DuckDB's `//`: truncates, and raises for a zero divisor."""
    return infix(exp.IntDiv, left, right)


def mod(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """DuckDB's `%`: the sign of the dividend; raises for a zero divisor."""
    return infix(exp.Mod, left, right)


def number(value: int) -> exp.Expr:
    """A bare integer, whose type DuckDB adapts to what stands beside it."""
    literal = exp.Literal.number(abs(value))
    return exp.Neg(this=literal) if value < 0 else literal


def text(value: str) -> exp.Expr:
    """A string constant."""
    return exp.Literal.string(value)


def cast(inner: exp.Expr, kind: exp.DataType | str) -> exp.Expr:
    """CAST to a DuckDB type."""
    to = _parsed_type(kind).copy() if isinstance(kind, str) else kind
    return exp.Cast(this=inner, to=to)


def recast(inner: exp.Expr, kind: exp.DataType | str) -> exp.Expr:
    """CAST to a DuckDB type, unless it is one already."""
    made = cast(inner, kind)
    return inner if type(inner) is exp.Cast and inner.to == made.args["to"] else made


def try_cast(inner: exp.Expr, kind: exp.DataType | str) -> exp.Expr:
    """TRY_CAST to a DuckDB type."""
    to = _parsed_type(kind).copy() if isinstance(kind, str) else kind
    return exp.TryCast(this=inner, to=to)


def case(*parts: exp.Expr) -> exp.Expr:
    """CASE WHEN parts[0] THEN parts[1] ... ELSE parts[-1] END."""
    whens = [exp.If(this=parts[i], true=parts[i + 1]) for i in range(0, len(parts) - 1, 2)]
    return exp.Case(ifs=whens, default=parts[-1])


def is_null(inner: exp.Expr) -> exp.Expr:
    """IS NULL."""
    return exp.Is(this=wrap(inner), expression=exp.Null())


def is_not_null(inner: exp.Expr) -> exp.Expr:
    """IS NOT NULL."""
    return exp.Not(this=is_null(inner))


def both(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """AND."""
    return _connect(exp.And, left, right)


def either(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """OR."""
    return _connect(exp.Or, left, right)


def null(kind: t.Type) -> exp.Expr:
    """NULL of a type."""
    return cast(exp.Null(), duckdb_type(kind))


def failure(code: str, message: str) -> exp.Expr:
    """An expression that raises; `explain_runtime_error` reads the message back."""
    return fn("error", text(f"{code}: {message}"))


def each(items: exp.Expr, body: Callable[[exp.Expr], exp.Expr], name: str = "_item") -> exp.Expr:
    """Every element of a list turned into another."""
    item = exp.to_identifier(name)
    return fn("list_transform", items, exp.Lambda(this=body(item), expressions=[item.copy()]))


def let(bindings: dict[str, exp.Expr], body: Callable[..., exp.Expr]) -> exp.Expr:
    """`body` over values computed once each: LIST_TRANSFORM([{...}], LAMBDA v : body)[1].

    For formulas that use their arguments many times over; it costs little beside them.
    """
    fields = [exp.PropertyEQ(this=exp.to_identifier(name), expression=value) for name, value in bindings.items()]
    scope = exp.to_identifier("_let")
    uses = {name: exp.Dot(this=scope.copy(), expression=exp.to_identifier(name)) for name in bindings}
    function = exp.Lambda(this=body(**uses), expressions=[scope])
    listed = fn("list_transform", exp.Array(expressions=[exp.Struct(expressions=fields)]), function)
    return exp.Bracket(this=listed, expressions=[exp.Literal.number(1)], offset=1)


_SIMPLE_TYPES: dict[t.Type, str] = {
    t.NULL: "INTEGER",
    t.BOOLEAN: "BOOLEAN",
    t.TINYINT: "TINYINT",
    t.SMALLINT: "SMALLINT",
    t.INT: "INTEGER",
    t.BIGINT: "BIGINT",
    t.FLOAT: "FLOAT",
    t.DOUBLE: "DOUBLE",
    t.STRING: "TEXT",
    t.BINARY: "BLOB",
    t.DATE: "DATE",
    t.TIMESTAMP: "TIMESTAMP",
    t.DAY_TIME_INTERVAL: "BIGINT",
    t.YEAR_MONTH_INTERVAL: "INTEGER",
}


@cache
def _parsed_type(text: str) -> exp.DataType:
    return exp.DataType.build(text, dialect="duckdb")


def duckdb_type(kind: t.Type) -> exp.DataType:
    """The DuckDB type that holds values of a type."""
    match kind:
        case t.Decimal(precision, scale):
            return _parsed_type(f"DECIMAL({precision}, {scale})").copy()
        case t.Array(element):
            return exp.DataType(this=exp.DataType.Type.ARRAY, expressions=[duckdb_type(element)], nested=True)
        case t.Map(key, value):
            inner = [duckdb_type(key), duckdb_type(value)]
            return exp.DataType(this=exp.DataType.Type.MAP, expressions=inner, nested=True)
        case t.Struct(fields):
            columns = [
                exp.ColumnDef(this=exp.to_identifier(name, quoted=True), kind=duckdb_type(f)) for name, f in fields
            ]
            return exp.DataType(this=exp.DataType.Type.STRUCT, expressions=columns, nested=True)
    return _parsed_type(_SIMPLE_TYPES[kind]).copy()
