"""CAST from STRING in DuckDB.

DuckDB reads text more freely than Spark (`1_000`, `0x10`, `on`), so text is matched against Spark's grammar first.
"""

from __future__ import annotations

import re

from sqlglot import exp

from headwater import types as t
from headwater.algebra.functions import parsing
from headwater.algebra.functions.casts import SECOND
from headwater.algebra.functions.errors import INVALID_VALUE
from headwater.emit.functions.build import (
    add,
    case,
    cast,
    duckdb_type,
    either,
    fn,
    is_null,
    let,
    mul,
    null,
    number,
    sub,
    text,
    try_cast,
)

_BLANK = r"[\x00-\x20\x7f]*"


def parsed(inner: exp.Expr, target: t.Type, safe: bool) -> exp.Expr:
    """Text as a value of a type; an error, or NULL if `safe`, where it is none."""
    match target:
        case t.Binary():
            return fn("encode", inner)
        case t.Boolean():
            return _boolean(inner, _refused(inner, target, safe))
        case t.Date() | t.Timestamp():
            return _calendar(inner, target, safe)
    grammar = parsing.INTEGER if isinstance(target, t.Integer) else parsing.NUMBER
    if isinstance(target, t.Float | t.Double):
        grammar = f"{grammar}|{parsing.NOT_FINITE}"
    trimmed = _trimmed(inner)
    if isinstance(target, t.Decimal):
        value = narrowed(trimmed, target, safe)
    else:
        value = (try_cast if safe else cast)(trimmed, duckdb_type(target))
    good = fn("regexp_full_match", inner, text(f"{_BLANK}(?:{grammar}){_BLANK}"))
    return case(exp.Not(this=good), _refused(inner, target, safe), value)


def narrowed(digits: exp.Expr, target: t.Decimal, safe: bool) -> exp.Expr:
    """The text of a number as a decimal; first as a wide one, because DuckDB misreads exponents in narrow ones."""
    convert = try_cast if safe else cast
    wide = convert(digits, f"DECIMAL({t.MAX_PRECISION}, {target.scale})")
    return wide if target.precision == t.MAX_PRECISION else convert(wide, duckdb_type(target))


def _refused(inner: exp.Expr, target: t.Type, safe: bool) -> exp.Expr:
    if safe:
        return null(target)
    return fn("error", fn("concat", text(f"{INVALID_VALUE}: '"), inner.copy(), text(f"' is not a valid {target}")))


def _trimmed(inner: exp.Expr) -> exp.Expr:
    return fn("regexp_extract", inner.copy(), text(f"(?s)^{_BLANK}(.*?){_BLANK}$"), number(1))


def _boolean(inner: exp.Expr, refused: exp.Expr) -> exp.Expr:
    word = fn("lower", _trimmed(inner))
    yes = exp.In(this=word, expressions=[text(w) for w in parsing.TRUE_WORDS])
    no = exp.In(this=word.copy(), expressions=[text(w) for w in parsing.FALSE_WORDS])
    return case(yes, exp.true(), no, exp.false(), is_null(inner.copy()), null(t.BOOLEAN), refused)


def _calendar(inner: exp.Expr, target: t.Type, safe: bool) -> exp.Expr:
    """The groups of the grammar as a struct g1, g2, ... of strings, and from them the date or the timestamp.

    Groups are empty strings where nothing matched, and NULL for NULL.
    """
    grammar = parsing.DATE if isinstance(target, t.Date) else parsing.TIMESTAMP
    names = [text(f"g{i + 1}") for i in range(re.compile(grammar).groups)]
    pattern = text(f"(?s)^{_BLANK}{grammar}{_BLANK}$")
    parts = fn("regexp_extract", inner.copy(), pattern, exp.Array(expressions=names))

    def build(p: exp.Expr) -> exp.Expr:
        failed: exp.Expr = exp.EQ(this=_part(p, 1), expression=text(""))
        if isinstance(target, t.Timestamp):
            far = exp.GT(this=_offset_minutes(p), expression=number(18 * 60))
            failed = either(either(failed, far), exp.GT(this=_whole(p, 10, 0), expression=number(59)))
            failed = either(failed, exp.GT(this=_whole(p, 4, 0), expression=number(23)))
        value = _date(p) if isinstance(target, t.Date) else _moment(p)
        return case(failed, _refused(inner, target, safe), is_null(_part(p, 1)), null(target), _tried(value, safe))

    return let({"p": parts}, build)


def _tried(value: exp.Expr, safe: bool) -> exp.Expr:
    return fn("try", value) if safe else value


def _part(parts: exp.Expr, position: int) -> exp.Expr:
    return exp.Dot(this=parts.copy(), expression=exp.to_identifier(f"g{position}"))


def _whole(parts: exp.Expr, position: int, default: int) -> exp.Expr:
    return fn("coalesce", try_cast(_part(parts, position), "BIGINT"), number(default))


def _date(parts: exp.Expr) -> exp.Expr:
    return fn("make_date", *(_whole(parts, i, 1) for i in (1, 2, 3)))


def _offset_minutes(parts: exp.Expr) -> exp.Expr:
    return add(mul(_whole(parts, 9, 0), number(60)), _whole(parts, 10, 0))


def _moment(parts: exp.Expr) -> exp.Expr:
    fields = [_whole(parts, i, 1 if i <= 3 else 0) for i in range(1, 7)]
    to_the_second = fn("epoch_us", fn("make_timestamp", *fields))
    fraction = cast(fn("rpad", fn("left", _part(parts, 7), number(6)), number(6), text("0")), "BIGINT")
    negative = exp.EQ(this=_part(parts, 8), expression=text("-"))
    offset = mul(_offset_minutes(parts), case(negative, number(-60 * SECOND), number(60 * SECOND)))
    return fn("make_timestamp", sub(add(to_the_second, fraction), offset))
