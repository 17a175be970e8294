"""What is refused, what is lazy, and what the emitted SQL looks like."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from decimal import Decimal

import duckdb
import pytest
from sqlglot import exp

from headwater import types as t
from headwater.algebra.functions import REGISTRY, may_raise
from headwater.algebra.functions.casts import can_cast
from headwater.algebra.functions.errors import EvaluationError
from headwater.algebra.functions.evaluate import evaluate_scalar
from headwater.algebra.scalars import TRUE, Call, Cast, Column, Literal, Scalar, call
from headwater.emit.scalars import duckdb_literal, duckdb_scalar, duckdb_type, explain_runtime_error
from tests.functions import harness
from tests.functions.harness import agree, lit

X, Y, S = Column("x", t.INT), Column("y", t.INT), Column("s", t.STRING)
PRICE, DISCOUNT = Column("price", t.Decimal(15, 2)), Column("discount", t.Decimal(15, 2))
ITEMS = Column("items", t.Array(t.INT))
DAY, MOMENT, D = Column("day", t.DATE), Column("at", t.TIMESTAMP), Column("d", t.DOUBLE)


def sql(scalar: Scalar) -> str:
    return duckdb_scalar(scalar, lambda name: exp.column(name, quoted=True)).sql("duckdb")


@pytest.mark.parametrize(
    ("scalar", "expected"),
    [
        (call("+", X, lit(1)), '"x" + 1'),
        (call("+", call("+", X, Y), lit(1)), '("x" + "y") + 1'),
        (call("and", call(">", X, lit(1)), call("<=", PRICE, DISCOUNT)), '"x" > 1 AND "price" <= "discount"'),
        (call("*", PRICE, call("-", lit(1), DISCOUNT)), None),
        (call("=", Cast(X, t.BIGINT), Column("z", t.BIGINT)), '"x" = "z"'),
        (call("in", X, lit(1), lit(2)), '"x" IN (1, 2)'),
        (call("coalesce", X, lit(0)), 'COALESCE("x", 0)'),
        (call("year", MOMENT), 'CAST(YEAR("at") AS INT)'),
        (call("-", DAY, Literal(90 * 86_400_000_000, t.DAY_TIME_INTERVAL)), '"day" - 90'),
        (call("+", MOMENT, Literal(3_600_000_000, t.DAY_TIME_INTERVAL)), "\"at\" + INTERVAL '1' HOUR"),
        (call("like", S, lit("a%")), "\"s\" LIKE 'a%'"),
        (call("is null", X), '"x" IS NULL'),
        (call("substring", S, lit(1), lit(2)), 'SUBSTRING("s", 1, 2)'),
        (Cast(lit("2020-01-01"), t.DATE), "CAST('2020-01-01' AS DATE)"),
        (call("+", lit(1), lit(2)), "3"),
        (call("/", lit(1), lit(0)), "CAST(ERROR('HW501: division by zero') AS DOUBLE)"),
    ],
    ids=str,
)
def test_simple_things_stay_simple(scalar: Scalar, expected: str | None) -> None:
    if expected is not None:
        assert sql(scalar) == expected
    assert sql(scalar)


@pytest.mark.parametrize(
    ("function", "args", "reason"),
    [
        ("+", (S, Column("b", t.BOOLEAN)), "number"),
        ("=", (X, Column("b", t.BOOLEAN)), "common type"),
        ("*", (Column("a", t.Decimal(38, 20)), Column("b", t.Decimal(38, 20))), "more than 38 digits"),
        ("+", (Column("a", t.Decimal(38, 0)), Column("b", t.Decimal(38, 20))), "more than 38 digits"),
        ("%", (Column("a", t.Decimal(38, 0)), Column("b", t.Decimal(38, 20))), "more than 38 digits"),
        ("like", (S, S), "literal"),
        ("like", (S, lit("a\\")), "escape"),
        ("like", (S, lit("a\\b")), "escape"),
        ("rlike", (S, lit("(?i)a")), "flag"),
        ("rlike", (S, lit("a(?=b)")), "look-around"),
        ("rlike", (S, lit("(a)\\1")), "escape"),
        ("rlike", (S, lit("a++")), "possessive"),
        ("rlike", (S, lit("[a&&b]")), "bare"),
        ("rlike", (S, lit("(a")), "not closed"),
        ("rlike", (S, lit("a$b")), "cannot stand"),
        ("regexp_replace", (S, lit("a*"), lit("x")), "matches nothing"),
        ("regexp_replace", (S, lit("a"), lit("$1")), "groups"),
        ("regexp_extract", (S, lit("a$"), lit(0)), "\\z"),
        ("regexp_extract", (S, lit("a")), "groups"),
        ("round", (D, X), "literal"),
        ("round", (D, lit(-1)), "DECIMAL"),
        ("date_add", (DAY, Column("n", t.BIGINT)), "BIGINT"),
        ("date_format", (DAY, lit("QQQ")), "format"),
        ("next_day", (DAY, lit("x")), "weekday"),
        ("sha2", (S, lit(512)), "256"),
        ("case", (lit("true"), X, Y), "BOOLEAN"),
        ("substring", (S,), "argument"),
        ("substring_index", (S, lit("aa"), lit(1)), "overlap"),
        ("+", (DAY, DAY), "not defined"),
        ("upper", (D,), "DOUBLE"),
        ("array", (Literal(None, t.NULL),), "NULL"),
        ("array_contains", (ITEMS, S), "one type"),
        ("array_contains", (ITEMS, Literal(None, t.NULL)), "one type"),
        ("array_join", (Column("a", t.Array(t.DOUBLE)), lit(",")), "text"),
        ("array_join", (Column("a", t.Array(t.STRING)), S), "literal"),
        ("sort_array", (Column("a", t.Array(t.Map(t.STRING, t.INT))),), "order"),
        ("map", (lit("a"),), "pairs"),
        ("named_struct", (lit("a"), X, lit("A"), X), "differ"),
        ("field", (Column("p", t.Struct((("x", t.INT),))), lit("y")), "no field"),
        ("split", (S, lit("")), "matches nothing"),
        ("split", (S, lit(","), lit(2)), "limit"),
        ("regexp_count", (S, lit("a*")), "matches nothing"),
        ("to_date", (S, S), "literal"),
        ("to_date", (S, lit("dd/MM")), "year"),
        ("to_date", (S, lit("yyyyMd")), "run into"),
        ("to_date", (S, lit("yyyy yyyy")), "twice"),
        ("to_date", (S, lit("yyyy-QQ")), "supported"),
        ("to_date", (DAY, lit("yyyy")), "text"),
        ("encode", (S, lit("utf-16")), "UTF-8"),
        ("format_number", (D, lit(2)), "DECIMAL"),
        ("mask", (S, lit("ab")), "one character"),
        ("levenshtein", (S, S, X), "literal"),
        ("timestampadd", (lit("FORTNIGHT"), X, MOMENT), "unit"),
        ("try_add", (DAY, X), "numbers"),
    ],
)
def test_what_no_engine_would_answer_alike_is_refused(function: str, args: tuple[Scalar, ...], reason: str) -> None:
    with pytest.raises(ValueError) as raised:
        call(function, *args)
    assert reason in str(raised.value)


def test_a_call_refuses_arguments_of_other_types() -> None:
    with pytest.raises(TypeError, match="takes"):
        Call("+", (X, Column("z", t.BIGINT)))


def test_casts_that_would_differ_do_not_exist() -> None:
    assert not can_cast(t.DOUBLE, t.STRING)
    assert can_cast(t.BINARY, t.STRING)
    assert can_cast(t.Array(t.INT), t.Array(t.STRING))
    assert not can_cast(t.Array(t.DOUBLE), t.Array(t.STRING))
    assert not can_cast(t.DATE, t.INT)
    assert not can_cast(t.BOOLEAN, t.TIMESTAMP)
    assert can_cast(t.NULL, t.Array(t.INT))
    assert can_cast(t.STRING, t.Decimal(10, 2))


def test_only_what_can_fail_is_kept_behind_its_guards() -> None:
    assert may_raise(call("/", X, Y))
    assert may_raise(call("+", X, Y))
    assert may_raise(Cast(S, t.INT))
    assert not may_raise(Cast(S, t.INT, safe=True))
    assert not may_raise(Cast(X, t.BIGINT))
    assert not may_raise(call("and", call(">", X, Y), call("is null", S)))


GUARDED = [
    call("and", call("<>", Y, lit(0)), call(">", call("/", X, Y), lit(1))),
    call("or", call("=", Y, lit(0)), call(">", call("/", X, Y), lit(1))),
    call("if", call("=", Y, lit(0)), lit(0), call("div", X, Y)),
    call("coalesce", call("nullif", Y, lit(0)), Cast(S, t.INT)),
    call("case", call("=", Y, lit(0)), lit(0), call("%", X, Y)),
    call("if", TRUE, lit(1), call("div", lit(1), lit(0))),
    call("and", call("is not null", X), call("or", call("<>", Y, lit(0)), call("is null", call("%", X, Y)))),
]


@pytest.mark.parametrize("scalar", GUARDED, ids=str)
def test_errors_stay_behind_their_guards(scalar: Scalar) -> None:
    rows = [(1, 0, "5"), (4, 2, "x"), (None, 0, "7"), (7, 7, "")]
    with harness.connect() as con:
        con.execute("CREATE TABLE r (x INTEGER, y INTEGER, s VARCHAR)")
        con.executemany("INSERT INTO r VALUES (?, ?, ?)", rows)
        query = f"SELECT {sql(scalar)} FROM r WHERE x IS NOT DISTINCT FROM ? AND y = ?"
        for row in rows:
            expected = _outcome(evaluate_scalar, scalar, dict(zip("xys", row, strict=True)))
            assert _outcome(lambda row: con.execute(query, row[:2]).fetchall()[0][0], row) == expected


def _outcome(compute: Callable[..., object], *args: object) -> object:
    try:
        return compute(*args)
    except EvaluationError as error:
        return error.code
    except duckdb.Error as error:
        return explain_runtime_error(str(error))[0]


@pytest.mark.parametrize(
    ("query", "code", "text"),
    [
        ("SELECT error('HW501: division by zero')", "HW501", "division by zero"),
        ("SELECT a // 0 FROM (VALUES (1)) v(a)", "HW501", "division by zero"),
        ("SELECT a + 1 FROM (VALUES (2147483647)) v(a)", "HW502", "2147483647 + 1"),
        ("SELECT a::TINYINT FROM (VALUES (300)) v(a)", "HW502", "300"),
        ("SELECT a::DECIMAL(3,2) FROM (VALUES (300)) v(a)", "HW502", "300"),
        ("SELECT a::INTEGER FROM (VALUES ('x')) v(a)", "HW503", "'x'"),
        ("SELECT make_date(2021, a, 1) FROM (VALUES (13)) v(a)", "HW503", "2021-13-1"),
    ],
)
def test_runtime_errors_become_our_codes(query: str, code: str, text: str) -> None:
    with harness.connect() as con, pytest.raises(duckdb.Error) as raised:
        con.execute(query).fetchall()
    found, message = explain_runtime_error(str(raised.value))
    assert found == code
    assert text in message
    assert "LINE" not in message


LITERALS: list[tuple[object, t.Type]] = [
    (True, t.BOOLEAN),
    (-128, t.TINYINT),
    (-2147483648, t.INT),
    (-9223372036854775808, t.BIGINT),
    (Decimal("-0.05"), t.Decimal(2, 2)),
    (Decimal("9" * 38), t.Decimal(38, 0)),
    (Decimal("0." + "1" * 38), t.Decimal(38, 38)),
    (0.1, t.DOUBLE),
    (1e300, t.DOUBLE),
    (-0.0, t.DOUBLE),
    (float("inf"), t.DOUBLE),
    (0.10000000149011612, t.FLOAT),
    ("it's \\ a\nline", t.STRING),
    (b"\x00\xff", t.BINARY),
    (dt.date(1, 1, 1), t.DATE),
    (dt.datetime(2020, 2, 29, 1, 2, 3, 4), t.TIMESTAMP),
    (86_400_000_000, t.DAY_TIME_INTERVAL),
    (-13, t.YEAR_MONTH_INTERVAL),
    ((1, None, 3), t.Array(t.INT)),
    ((), t.Array(t.STRING)),
    (None, t.Array(t.INT)),
    (None, t.NULL),
]


@pytest.mark.parametrize(("value", "kind"), LITERALS, ids=str)
def test_literals_keep_value_and_type(value: object, kind: t.Type) -> None:
    query = exp.select(duckdb_literal(value, kind), exp.func("typeof", duckdb_literal(value, kind)))
    type_query = exp.select(exp.func("typeof", exp.cast(exp.null(), duckdb_type(kind))))
    with harness.connect() as con:
        found = con.execute(query.sql("duckdb")).fetchone()
        wanted = con.execute(type_query.sql("duckdb")).fetchone()
    assert found is not None
    assert wanted is not None
    assert harness.python_value(found[0]) == value
    assert found[1] == wanted[0]


def test_nested_literals() -> None:
    struct = t.Struct((("a b", t.INT), ("c", t.STRING)))
    query = exp.select(
        duckdb_literal((1, "x"), struct), duckdb_literal((("k", 1), ("l", None)), t.Map(t.STRING, t.INT))
    )
    with harness.connect() as con:
        assert con.execute(query.sql("duckdb")).fetchone() == ({"a b": 1, "c": "x"}, {"k": 1, "l": None})


@pytest.mark.parametrize("seed", range(30))
def test_decimal_arithmetic_is_exact_for_random_types(seed: int) -> None:
    """Products and quotients through 128-bit integers, against exact arithmetic."""
    rng = random.Random(seed)
    left, right = _random_decimal(rng), _random_decimal(rng)
    rows = [(_random_value(rng, left), _random_value(rng, right)) for _ in range(20)]
    with harness.connect() as con:
        for operator in ("+", "-", "*", "/", "%", "pmod"):
            try:
                one = harness.case(operator, left, right, rows=rows)
                one.scalar()
            except ValueError:
                continue  # needs more than 38 digits
            for row, found in zip(rows, harness.by_duckdb(con, one, rows), strict=True):
                expected = harness.by_python(one, row)
                assert agree(expected, found), f"{row[0]} {operator} {row[1]} of {left}, {right}"


def _random_decimal(rng: random.Random) -> t.Decimal:
    precision = rng.choice([1, 5, 9, 10, 15, 18, 19, 25, 30, 38])
    return t.Decimal(precision, rng.randint(0, min(precision, 12)))


def _random_value(rng: random.Random, kind: t.Decimal) -> Decimal:
    # Up to 28 digits: beyond that a divisor may be too large for long division, which then raises.
    digits = rng.randint(1, min(kind.precision, 28))
    return Decimal(rng.randint(-(10**digits) + 1, 10**digits - 1)).scaleb(-kind.scale)


def test_internal_functions_are_marked() -> None:
    internal = {name for name, function in REGISTRY.items() if function.internal}
    assert internal == {
        *("sum_double", "avg_decimal", "avg_double", "unscaled", "square", "variance_of", "weigh", "carry"),
        *("total_plus", "total_minus"),
        *("now", "before", "window_start", "window_starts", "bound", "part_timestamp"),
        *("is_finite", "is_nan", "is_positive_infinity", "is_negative_infinity"),
    }
