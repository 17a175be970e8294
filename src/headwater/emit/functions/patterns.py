"""LIKE and regular expressions in DuckDB."""

from __future__ import annotations

from sqlglot import exp

from headwater.algebra.functions.patterns import (
    extract_group,
    like_escape,
    literal_text,
    replacement,
    shared_pattern,
)
from headwater.algebra.scalars import Call
from headwater.emit.functions.build import emits, fn, number, text, wrap
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
