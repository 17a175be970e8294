"""Text in DuckDB."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from headwater import types as t
from headwater.algebra.functions.errors import INVALID_VALUE
from headwater.algebra.functions.strings import TITLE_UNKNOWN, UPPER_UNKNOWN
from headwater.algebra.scalars import Call
from headwater.emit.functions.build import (
    EMITTERS,
    add,
    case,
    cast,
    emits,
    failure,
    fn,
    infix,
    is_null,
    let,
    mul,
    null,
    number,
    renamed,
    sub,
    text,
    wrap,
)
from headwater.emit.functions.literals import known

for _name, _ours in (
    ("translate", "translate"),
    ("contains", "contains"),
    ("startswith", "starts_with"),
    ("endswith", "ends_with"),
    ("md5", "md5"),
    ("sha1", "sha1"),
    ("sha", "sha1"),
    ("ascii", "ascii"),
    ("repeat", "repeat"),
):
    EMITTERS[_name] = renamed(_ours)


def once(value: exp.Expr, body: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """A body that uses a value several times; the value is bound first unless it is a column."""
    return body(value) if isinstance(value, exp.Column) else let({"x": value}, lambda x: body(x))


def _integer(value: exp.Expr) -> exp.Expr:
    return cast(value, "INTEGER")


def _equals(value: exp.Expr, constant: exp.Expr) -> exp.Expr:
    return exp.EQ(this=wrap(value.copy()), expression=constant)


def _is_ascii(x: exp.Expr) -> exp.Expr:
    return exp.EQ(this=fn("strlen", x.copy()), expression=fn("length", x.copy()))


@emits("length", "char_length", "character_length", "len")
def _length(call: Call, a: exp.Expr) -> exp.Expr:
    return _integer(fn("octet_length" if isinstance(call.args[0].type, t.Binary) else "length", a))


@emits("octet_length")
def _octet_length(call: Call, a: exp.Expr) -> exp.Expr:
    return _integer(fn("octet_length" if isinstance(call.args[0].type, t.Binary) else "strlen", a))


@emits("bit_length")
def _bit_length(call: Call, a: exp.Expr) -> exp.Expr:
    name = "octet_length" if isinstance(call.args[0].type, t.Binary) else "strlen"
    return _integer(mul(fn(name, a), number(8)))


@emits("upper", "ucase")
def _upper(call: Call, a: exp.Expr) -> exp.Expr:
    def body(x: exp.Expr) -> exp.Expr:
        unknown = fn("regexp_matches", x.copy(), text(f"[{UPPER_UNKNOWN}]"))
        refused = failure(INVALID_VALUE, f"a letter that {call.function} does not know")
        spelt_out = fn("upper", fn("replace", x.copy(), text("ß"), text("SS")))
        return case(_is_ascii(x), fn("upper", x.copy()), unknown, refused, spelt_out)

    return once(a, body)


_CASED = r"\p{Lu}\p{Ll}\p{Lt}"
_IGNORED = r"\p{Mn}\p{Me}\p{Cf}\p{Lm}\p{Sk}'.:·’"


def lowered(a: exp.Expr) -> exp.Expr:
    """Lower case with the two rules DuckDB lacks: dotted capital I, and sigma at the end of a word."""

    def body(x: exp.Expr) -> exp.Expr:
        undotted = fn("replace", x.copy(), text("İ"), text("i̇"))
        final = text(f"([{_CASED}][{_IGNORED}]*)Σ([{_IGNORED}]*(?:[^{_CASED}{_IGNORED}]|$))")
        greek = fn("regexp_replace", undotted, final, text(r"\1ς\2"), text("g"))
        return case(_is_ascii(x), fn("lower", x.copy()), fn("lower", greek))

    return once(a, body)


@emits("lower", "lcase")
def _lower(call: Call, a: exp.Expr) -> exp.Expr:
    return lowered(a)


@emits("initcap")
def _initcap(call: Call, a: exp.Expr) -> exp.Expr:
    word = exp.to_identifier("_word")
    first = fn("upper", fn("left", word.copy(), number(1)))
    capital = infix(exp.DPipe, first, fn("substring", word.copy(), number(2)))
    words = fn("string_split", lowered(a.copy()), text(" "))
    joined = fn("array_to_string", fn("list_transform", words, exp.Lambda(this=capital, expressions=[word])), text(" "))
    unknown = fn("regexp_matches", lowered(a.copy()), text(f"(?:^| )[{TITLE_UNKNOWN}]"))
    return case(unknown, failure(INVALID_VALUE, "a letter that initcap does not know"), joined)


def _piece(x: exp.Expr, position: exp.Expr, size: exp.Expr | None) -> exp.Expr:
    """SUBSTRING with Spark's positions: negative ones count from the end and may lie before the beginning."""
    after = exp.GT(this=wrap(position.copy()), expression=number(0))
    before = exp.LT(this=wrap(position.copy()), expression=number(0))
    at_end = add(fn("length", x.copy()), position.copy())
    start = case(after, sub(cast(position.copy(), "BIGINT"), number(1)), before, at_end, position.copy())
    inside = _at_least_zero(start)
    if size is None:
        return fn("substring", x.copy(), add(inside, number(1)))
    end = add(start.copy(), size.copy())
    return fn("substring", x.copy(), add(inside, number(1)), _at_least_zero(sub(end, inside.copy())))


def _constant_integer(call: Call, position: int) -> int | None:
    value = known(call.args[position]) if position < len(call.args) else None
    return value if isinstance(value, int) else None


@emits("substring", "substr")
def _substring(call: Call, a: exp.Expr, position: exp.Expr, size: exp.Expr | None = None) -> exp.Expr:
    where, many = _constant_integer(call, 1), _constant_integer(call, 2)
    if where is not None and where >= 0 and size is None:
        return fn("substring", a, number(max(where, 1)))
    if where is not None and where >= 0 and many is not None:
        return fn("substring", a, number(max(where, 1)), number(max(many, 0)))
    if size is None:
        return let({"x": a, "p": position}, lambda x, p: _piece(x, p, None))
    return let({"x": a, "p": position, "n": size}, lambda x, p, n: _piece(x, p, n))


@emits("left", "right")
def _end(call: Call, a: exp.Expr, size: exp.Expr) -> exp.Expr:
    many = _constant_integer(call, 1)
    return fn(call.function, a, number(max(many, 0)) if many is not None else _at_least_zero(size))


def _at_least_zero(size: exp.Expr) -> exp.Expr:
    # GREATEST skips NULL, which has to stay NULL.
    return case(exp.LT(this=wrap(size.copy()), expression=number(0)), number(0), size)


@emits("overlay")
def _overlay(call: Call, a: exp.Expr, new: exp.Expr, position: exp.Expr, size: exp.Expr | None = None) -> exp.Expr:
    def body(x: exp.Expr, r: exp.Expr, p: exp.Expr, n: exp.Expr) -> exp.Expr:
        by_default = exp.LT(this=n.copy(), expression=number(0))
        length = case(by_default, fn("length", r.copy()), n.copy())
        head = _piece(x, number(1), sub(p.copy(), number(1)))
        tail = _piece(x, add(p.copy(), length), None)
        return infix(exp.DPipe, infix(exp.DPipe, head, r.copy()), tail)

    bound = {"x": a, "r": new, "p": cast(position, "BIGINT"), "n": number(-1) if size is None else cast(size, "BIGINT")}
    return let(bound, body)


@emits("split_part")
def _split_part(call: Call, a: exp.Expr, delimiter: exp.Expr, position: exp.Expr) -> exp.Expr:
    def body(x: exp.Expr, d: exp.Expr, n: exp.Expr) -> exp.Expr:
        nothing = exp.Or(this=exp.Or(this=is_null(x), expression=is_null(d)), expression=is_null(n))
        undivided = exp.And(
            this=_equals(d, text("")),
            expression=exp.Not(this=exp.In(this=n.copy(), expressions=[number(1), number(-1)])),
        )
        whole = _equals(d, text(""))
        return case(
            nothing,
            null(t.STRING),
            _equals(n, number(0)),
            failure(INVALID_VALUE, "split_part has no part 0"),
            undivided,
            text(""),
            whole,
            x.copy(),
            fn("split_part", x.copy(), d.copy(), n.copy()),
        )

    delimiter_known, number_known = known(call.args[1]), known(call.args[2])
    if delimiter_known and number_known:
        return fn("split_part", a, delimiter, position)
    return let({"x": a, "d": delimiter, "n": position}, body)


@emits("substring_index")
def _substring_index(call: Call, a: exp.Expr, delimiter: exp.Expr, count: exp.Expr) -> exp.Expr:
    if not known(call.args[1]):
        return case(
            is_null(a), null(t.STRING), is_null(count), null(t.STRING), is_null(delimiter), null(t.STRING), text("")
        )

    def body(x: exp.Expr, n: exp.Expr) -> exp.Expr:
        parts = fn("string_split", x, delimiter.copy())
        size = fn("len", parts.copy())
        first = fn("list_slice", parts.copy(), number(1), n.copy())
        start = add(_at_least_zero(add(size, n.copy())), number(1))
        last = fn("list_slice", parts.copy(), start, fn("len", parts.copy()))
        positive = exp.GT(this=n.copy(), expression=number(0))
        chosen = fn("array_to_string", case(positive, first, last), delimiter.copy())
        return case(_equals(n, number(0)), case(is_null(x.copy()), null(t.STRING), text("")), chosen)

    return let({"x": a, "n": count}, body)


@emits("trim", "ltrim", "rtrim", "btrim")
def _trim(call: Call, a: exp.Expr, b: exp.Expr | None = None) -> exp.Expr:
    name = "trim" if call.function == "btrim" else call.function
    if b is None:
        return fn(name, a, text(" "))
    return fn(name, a, b) if call.function == "btrim" else fn(name, b, a)


@emits("concat", "||")
def _concat(call: Call, *args: exp.Expr) -> exp.Expr:
    if not args:
        return text("")
    if isinstance(call.type, t.Array):
        return _concat_arrays(call, args)
    out = args[0]
    for arg in args[1:]:
        out = exp.DPipe(this=out if isinstance(out, exp.DPipe) else wrap(out), expression=wrap(arg))
    return out


def _concat_arrays(call: Call, args: tuple[exp.Expr, ...]) -> exp.Expr:
    def body(**parts: exp.Expr) -> exp.Expr:
        lists = list(parts.values())
        unknown = is_null(lists[0])
        for one in lists[1:]:
            unknown = exp.Or(this=unknown, expression=is_null(one))
        whole = lists[0].copy()
        for one in lists[1:]:
            whole = fn("list_concat", whole, one.copy())
        return case(unknown, null(call.type), whole)

    return let({f"x{place}": arg for place, arg in enumerate(args)}, body)


@emits("replace")
def _replace(call: Call, a: exp.Expr, search: exp.Expr, new: exp.Expr | None = None) -> exp.Expr:
    return fn("replace", a, search, text("") if new is None else new)


@emits("concat_ws")
def _concat_ws(call: Call, separator: exp.Expr, *args: exp.Expr) -> exp.Expr:
    return fn("concat_ws", separator, *(args or (text(""),)))


@emits("reverse")
def _reverse(call: Call, a: exp.Expr) -> exp.Expr:
    if isinstance(call.type, t.Array):
        return fn("list_reverse", a)

    def body(x: exp.Expr) -> exp.Expr:
        # REVERSE keeps letters and their accents together; Spark turns code points around.
        points = fn("array_to_string", fn("list_reverse", fn("string_split", x.copy(), text(""))), text(""))
        return case(_is_ascii(x), fn("reverse", x.copy()), points)

    return once(a, body)


@emits("space")
def _space(call: Call, count: exp.Expr) -> exp.Expr:
    return fn("repeat", text(" "), count)


@emits("lpad", "rpad")
def _pad(call: Call, a: exp.Expr, size: exp.Expr, pad: exp.Expr | None = None) -> exp.Expr:
    if pad is None or known(call.args[2]):
        return fn(call.function, a, size, pad if pad is not None else text(" "))
    unpadded = fn("left", a.copy(), _at_least_zero(size.copy()))
    return case(_equals(pad, text("")), unpadded, fn(call.function, a, size, pad))


@emits("instr")
def _instr(call: Call, a: exp.Expr, search: exp.Expr) -> exp.Expr:
    return _integer(fn("instr", a, search))


@emits("locate", "position")
def _locate(call: Call, search: exp.Expr, a: exp.Expr, start: exp.Expr | None = None) -> exp.Expr:
    if start is None or _constant_integer(call, 2) == 1:
        return _integer(fn("instr", a, search))

    def body(x: exp.Expr, s: exp.Expr, n: exp.Expr) -> exp.Expr:
        found = fn("instr", fn("substring", x.copy(), n.copy()), s.copy())
        place = case(_equals(found, number(0)), number(0), sub(add(found.copy(), n.copy()), number(1)))
        before = exp.LT(this=n.copy(), expression=number(1))
        unknown = exp.Or(this=is_null(x.copy()), expression=is_null(s.copy()))
        return case(
            is_null(n.copy()), number(0), unknown, exp.Null(), before, number(0), _equals(s, text("")), number(1), place
        )

    return _integer(let({"x": a, "s": search, "n": start}, body))


@emits("chr", "char")
def _chr(call: Call, code: exp.Expr) -> exp.Expr:
    negative = exp.LT(this=wrap(code.copy()), expression=number(0))
    return case(negative, text(""), fn("chr", _integer(infix(exp.BitwiseAnd, code, number(255)))))


@emits("sha2")
def _sha2(call: Call, a: exp.Expr, _bits: exp.Expr) -> exp.Expr:
    return fn("sha256", a)


@emits("base64")
def _base64(call: Call, a: exp.Expr) -> exp.Expr:
    lines = fn("regexp_replace", fn("to_base64", a), text("(.{76})"), text("\\1\r\n"), text("g"))
    return fn("regexp_replace", lines, text(r"\r\n$"), text(""))
