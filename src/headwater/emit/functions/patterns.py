"""LIKE and regular expressions in DuckDB."""

from __future__ import annotations

from sqlglot import exp

from headwater import types as t
from headwater.algebra.functions.patterns import (
    extract_group,
    like_escape,
    literal_text,
    replacement,
    searched,
    shared_pattern,
)
from headwater.algebra.scalars import Call
from headwater.emit.functions.build import add, case, cast, each, emits, fn, is_null, let, null, number, text, wrap
from headwater.emit.functions.strings import lowered


def _like(a: exp.Expr, pattern: str, escape: str) -> exp.Expr:
    matched = exp.Like(this=wrap(a), expression=text(pattern))
    return exp.Escape(this=matched, expression=text(escape)) if escape in pattern else matched


@emits("like")
def _emit_like(call: Call, a: exp.Expr, *_rest: exp.Expr) -> exp.Expr:
    return _like(a, literal_text(call.args[1], "pattern"), like_escape(call.args))


@emits("ilike")
def _emit_ilike(call: Call, a: exp.Expr, *_rest: exp.Expr) -> exp.Expr:
    return _like(lowered(a), literal_text(call.args[1], "pattern").lower(), like_escape(call.args).lower())


@emits("rlike", "regexp", "regexp_like")
def _emit_rlike(call: Call, a: exp.Expr, _pattern: exp.Expr) -> exp.Expr:
    return fn("regexp_matches", a, text(shared_pattern(literal_text(call.args[1], "pattern"), end_allowed=True)))


@emits("regexp_extract")
def _emit_extract(call: Call, a: exp.Expr, *_rest: exp.Expr) -> exp.Expr:
    pattern = shared_pattern(literal_text(call.args[1], "pattern"), end_allowed=False)
    return fn("regexp_extract", a, text(pattern), number(extract_group(call.args)))


@emits("regexp_replace")
def _emit_replace(call: Call, a: exp.Expr, *_rest: exp.Expr) -> exp.Expr:
    pattern = shared_pattern(literal_text(call.args[1], "pattern"), end_allowed=False)
    return fn("regexp_replace", a, text(pattern), text(replacement(call.args)), text("g"))


@emits("regexp_count")
def _emit_count(call: Call, a: exp.Expr, _pattern: exp.Expr) -> exp.Expr:
    return cast(fn("len", fn("regexp_extract_all", a, text(searched(call.args)))), "INTEGER")


@emits("regexp_substr")
def _emit_substr(call: Call, a: exp.Expr, _pattern: exp.Expr) -> exp.Expr:
    return fn("nullif", fn("regexp_extract", a, text(searched(call.args))), text(""))


@emits("regexp_instr")
def _emit_instr(call: Call, a: exp.Expr, _pattern: exp.Expr) -> exp.Expr:
    pattern = searched(call.args)

    def body(x: exp.Expr) -> exp.Expr:
        before = fn("regexp_extract", x.copy(), text(f"(?s)^(.*?)(?:{pattern})"), number(1))
        place = cast(add(fn("length", before), number(1)), "INTEGER")
        found = fn("regexp_matches", x.copy(), text(pattern))
        return case(is_null(x.copy()), null(t.INT), found, place, number(0))

    return let({"x": a}, body)


@emits("regexp_extract_all")
def _emit_extract_all(call: Call, a: exp.Expr, *_rest: exp.Expr) -> exp.Expr:
    found = fn("regexp_extract_all", a, text(searched(call.args)), number(extract_group(call.args)))
    return each(found, lambda one: fn("coalesce", one, text("")))


@emits("split")
def _emit_split(call: Call, a: exp.Expr, *_rest: exp.Expr) -> exp.Expr:
    return fn("string_split_regex", a, text(searched(call.args)))
