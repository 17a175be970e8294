"""Text in codes, in DuckDB."""

from __future__ import annotations

from sqlglot import exp

from headwater import types as t
from headwater.algebra.functions.codes import (
    BASE_64,
    LETTERS,
    MOST_CHARACTERS,
    SOUNDS,
    mask_characters,
    number_digits,
)
from headwater.algebra.functions.errors import INVALID_VALUE
from headwater.algebra.scalars import Call
from headwater.emit.functions.build import (
    add,
    both,
    case,
    cast,
    each,
    either,
    emits,
    failure,
    fn,
    infix,
    is_null,
    let,
    mod,
    mul,
    null,
    number,
    sub,
    text,
    whole_div,
)
from headwater.emit.functions.decimals import power_of_ten, unscaled
from headwater.emit.functions.strings import once

# --- encodings ------------------------------------------------------------------------------------------------------


@emits("encode")
def _encode(call: Call, a: exp.Expr, _charset: exp.Expr) -> exp.Expr:
    return fn("encode", a)


@emits("decode")
def _decode(call: Call, a: exp.Expr, _charset: exp.Expr) -> exp.Expr:
    return fn("decode", a)


@emits("unbase64")
def _unbase64(call: Call, a: exp.Expr) -> exp.Expr:
    def body(x: exp.Expr) -> exp.Expr:
        good = fn("regexp_full_match", x.copy(), text(BASE_64))
        bare = fn("rtrim", x.copy(), text("="))
        size = mul(whole_div(add(fn("length", bare.copy()), number(3)), number(4)), number(4))
        padded = fn("rpad", bare, cast(size, "INTEGER"), text("="))
        refused = failure(INVALID_VALUE, "a text that is not base 64")
        return case(is_null(x.copy()), null(t.BINARY), exp.Not(this=good), refused, fn("from_base64", padded))

    return let({"x": fn("regexp_replace", a, text("[^A-Za-z0-9+/=]"), text(""), text("g"))}, body)


@emits("url_encode")
def _url_encode(call: Call, a: exp.Expr) -> exp.Expr:
    encoded = fn("url_encode", a)
    for ours, javas in (("%20", "+"), ("~", "%7E"), ("%2A", "*")):
        encoded = fn("replace", encoded, text(ours), text(javas))
    return encoded


@emits("url_decode")
def _url_decode(call: Call, a: exp.Expr) -> exp.Expr:
    def body(x: exp.Expr) -> exp.Expr:
        bad = exp.Not(this=fn("regexp_full_match", x.copy(), text("(?s)(?:[^%]|%[0-9a-fA-F]{2})*")))
        refused = failure(INVALID_VALUE, "a text that is not encoded as in an address")
        return case(bad, refused, fn("url_decode", fn("replace", x.copy(), text("+"), text(" "))))

    return once(a, body)


# --- words ----------------------------------------------------------------------------------------------------------


@emits("levenshtein")
def _levenshtein(call: Call, a: exp.Expr, b: exp.Expr, most: exp.Expr | None = None) -> exp.Expr:
    """DuckDB counts bytes: other characters than ASCII are first replaced by bytes, each by one of its own."""

    def body(a: exp.Expr, b: exp.Expr, k: exp.Expr) -> exp.Expr:
        codes = each(
            fn("range", cast(number(1), "BIGINT"), add(fn("len", k.copy()), number(1))),
            lambda i: fn("chr", cast(i, "INTEGER")),
            "_code",
        )
        characters, bytes_ = (fn("array_to_string", one, text("")) for one in (k.copy(), codes))
        distance = fn(
            "levenshtein",
            fn("translate", a.copy(), characters, bytes_),
            fn("translate", b.copy(), characters.copy(), bytes_.copy()),
        )
        too_many = infix(exp.GT, fn("len", k.copy()), number(MOST_CHARACTERS))
        refused = failure(INVALID_VALUE, "levenshtein of texts with too many kinds of characters")
        plain = fn("levenshtein", a.copy(), b.copy())
        return cast(case(is_null(k.copy()), plain, too_many, refused, distance), "INTEGER")

    def kinds(a: exp.Expr, b: exp.Expr) -> exp.Expr:
        """The characters of both texts; NULL if they are ASCII."""
        whole = infix(exp.DPipe, a.copy(), b.copy())
        ascii_only = infix(exp.EQ, fn("strlen", whole), fn("length", whole.copy()))
        none = null(t.Array(t.STRING))
        return case(ascii_only, none, fn("list_distinct", fn("string_split", whole.copy(), text(""))))

    found = let({"a": a, "b": b, "k": kinds(a, b)}, body)
    if most is None:
        return found

    def limited(d: exp.Expr) -> exp.Expr:
        return case(infix(exp.GT, d.copy(), most), number(-1), d.copy())

    return let({"d": found}, limited)


@emits("soundex")
def _soundex(call: Call, a: exp.Expr) -> exp.Expr:
    def body(x: exp.Expr) -> exp.Expr:
        letters = fn("regexp_replace", x.copy(), text("[^A-Za-z]"), text("0"), text("g"))
        heard = fn("translate", letters, text(LETTERS + LETTERS.lower()), text(SOUNDS * 2))
        sounds = fn("replace", heard, text("7"), text(""))
        for digit in "123456":
            sounds = fn("regexp_replace", sounds, text(f"{digit}+"), text(digit), text("g"))
        unheard = fn("regexp_matches", x.copy(), text("^[HWhw]"))
        rest = case(unheard, sounds, fn("substring", sounds.copy(), number(2)))
        digits = fn("rpad", fn("replace", rest, text("0"), text("")), number(3), text("0"))
        coded = infix(exp.DPipe, fn("upper", fn("left", x.copy(), number(1))), digits)
        return case(fn("regexp_matches", x.copy(), text("^[A-Za-z]")), coded, x.copy())

    return once(a, body)


@emits("luhn_check")
def _luhn_check(call: Call, a: exp.Expr) -> exp.Expr:
    item, place = exp.to_identifier("_digit"), exp.to_identifier("_place")

    def body(x: exp.Expr) -> exp.Expr:
        digits = fn("string_split", fn("reverse", x.copy()), text(""))
        value = cast(item.copy(), "INTEGER")
        doubled = sub(mul(value, number(2)), case(infix(exp.GT, value.copy(), number(4)), number(9), number(0)))
        odd = infix(exp.EQ, mod(place.copy(), number(2)), number(1))
        worth = exp.Lambda(this=case(odd, value.copy(), doubled), expressions=[item.copy(), place.copy()])
        total = fn("list_sum", fn("list_transform", digits, worth))
        good = fn("regexp_full_match", x.copy(), text("[0-9]+"))
        checked = infix(exp.EQ, mod(total, number(10)), number(0))
        return case(is_null(x.copy()), null(t.BOOLEAN), good, checked, exp.false())

    return once(a, body)


@emits("find_in_set")
def _find_in_set(call: Call, word: exp.Expr, words: exp.Expr) -> exp.Expr:
    def body(w: exp.Expr, s: exp.Expr) -> exp.Expr:
        unknown = either(is_null(w.copy()), is_null(s.copy()))
        place = fn("list_position", fn("string_split", s.copy(), text(",")), w.copy())
        several = fn("contains", w.copy(), text(","))
        found = cast(fn("coalesce", place, number(0)), "INTEGER")
        return case(unknown, null(t.INT), several, number(0), found)

    return let({"w": word, "s": words}, body)


@emits("elt")
def _elt(call: Call, place: exp.Expr, *texts: exp.Expr) -> exp.Expr:
    parts: list[exp.Expr] = [is_null(place.copy()), null(t.STRING)]
    for position, one in enumerate(texts, 1):
        parts += [infix(exp.EQ, place.copy(), number(position)), one]
    return case(*parts, failure(INVALID_VALUE, f"elt has {len(texts)} texts, and none at this place"))


@emits("mask")
def _mask(call: Call, a: exp.Expr, *_characters: exp.Expr) -> exp.Expr:
    classes = (r"\p{Lu}", r"\p{Ll}", r"\p{Nd}", r"[^\p{Lu}\p{Ll}\p{Nd}]")
    instead = mask_characters(call.args)
    # One class after the other, but what is put in must not be taken for another class: it is first put in as marks.
    marks = [chr(0xE000 + place) for place in range(len(classes))]
    masked = a
    for pattern, mark, character in (*zip(classes, marks, instead, strict=True),):
        if character is not None and mark != marks[3]:
            masked = fn("regexp_replace", masked, text(pattern), text(mark), text("g"))
    if instead[3] is not None:
        kept = "".join(marks[:3])
        masked = fn("regexp_replace", masked, text(rf"[^\p{{Lu}}\p{{Ll}}\p{{Nd}}{kept}]"), text(marks[3]), text("g"))
    used = [(mark, character) for mark, character in zip(marks, instead, strict=True) if character is not None]
    if not used:
        return masked
    return fn("translate", masked, text("".join(m for m, _ in used)), text("".join(c for _, c in used)))


# --- numbers --------------------------------------------------------------------------------------------------------


@emits("format_number")
def _format_number(call: Call, a: exp.Expr, _digits: exp.Expr) -> exp.Expr:
    kind, digits = t.as_decimal(call.args[0].type), number_digits(call.args)
    assert kind
    if digits is None or digits < 0:
        return null(t.STRING)

    def body(u: exp.Expr) -> exp.Expr:
        negative = infix(exp.LT, u.copy(), number(0))
        units = half_even(fn("abs", u.copy()), kind.scale - digits)
        return let({"s": case(negative, text("-"), text("")), "v": units}, shown)

    def shown(s: exp.Expr, v: exp.Expr) -> exp.Expr:
        whole = fn("format", text("{:,}"), whole_div(v.copy(), power_of_ten(digits)))
        out = infix(exp.DPipe, s, whole)
        if digits == 0:
            return out
        fraction = fn("lpad", cast(mod(v.copy(), power_of_ten(digits)), "TEXT"), number(digits), text("0"))
        return infix(exp.DPipe, infix(exp.DPipe, out, text(".")), fraction)

    exact = unscaled(a, kind) if isinstance(call.args[0].type, t.Decimal) else cast(a, "HUGEINT")
    return let({"u": exact}, body)


def half_even(units: exp.Expr, cut: int) -> exp.Expr:
    """A HUGEINT that is not negative without its last digits, rounded half to even; with so many more if negative."""
    if cut <= 0:
        return mul(units, power_of_ten(-cut)) if cut else units
    unit = power_of_ten(cut)

    def body(q: exp.Expr, r: exp.Expr) -> exp.Expr:
        twice = mul(r.copy(), number(2))
        odd = infix(exp.EQ, mod(q.copy(), number(2)), number(1))
        up = either(infix(exp.GT, twice, unit.copy()), both(infix(exp.EQ, twice.copy(), unit.copy()), odd))
        return add(q.copy(), case(up, number(1), number(0)))

    quotient = {"q": whole_div(units, unit), "r": mod(units.copy(), unit.copy())}
    return let(quotient, body)
