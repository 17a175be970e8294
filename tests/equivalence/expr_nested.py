"""Arrays, maps, structs, and the rarer functions of text and time; few of them are the same in DuckDB by name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from headwater import types as t

from .grammar import Expr, Maker, construct, fits
from .values import ARRAY_TYPE


def _int(sql: str, bound: float = 60) -> Expr:
    return Expr(sql, t.INT, bound)


def _string(sql: str) -> Expr:
    return Expr(sql, t.STRING)


def _boolean(sql: str) -> Expr:
    return Expr(sql, t.BOOLEAN)


# Functions of functions


@contextmanager
def _calling(m: Maker, *parameters: Expr) -> Iterator[None]:
    """Within this context, expressions are bodies of a lambda: they read its parameters, and columns, no aggregates."""
    hidden = {one.sql for one in parameters}
    captured = [one for one in m.scope if one.sql not in hidden and "(" not in one.sql]
    with m.over((*captured, *parameters)), m.holding(0):
        yield


def _element(m: Maker, arg: Expr) -> Expr:
    """A parameter that is called with the elements of an array; now and then it hides a column."""
    hidden = [one.sql for one in m.scope if one.sql.isidentifier()]
    name = m.rng.choice(hidden) if hidden and m.chance(0.1) else m.alias("x")
    return Expr(name, t.INT, arg.bound)


@construct("array", "transform", 1, duckdb=False)
def transformed(m: Maker, depth: int) -> Expr:
    arg = _held(m, depth)
    x, place = _element(m, arg), Expr(m.alias("i"), t.INT, 10_000)
    counted = m.chance(0.4)
    with _calling(m, x, *([place] if counted else [])):
        body = m.scalar("int", depth)
    return _array(f"transform({arg.sql}, {f'({x.sql}, {place.sql})' if counted else x.sql} -> {body.sql})", body)


@construct("array", "filter", 1, duckdb=False)
def filtered(m: Maker, depth: int) -> Expr:
    arg = _held(m, depth)
    x, place = _element(m, arg), Expr(m.alias("i"), t.INT, 10_000)
    counted = m.chance(0.4)
    with _calling(m, x, *([place] if counted else [])):
        test = m.scalar("boolean", depth)
    return _array(f"filter({arg.sql}, {f'({x.sql}, {place.sql})' if counted else x.sql} -> {test.sql})", arg)


@construct("boolean", "exists, forall", 0.5, duckdb=False)
def decided(m: Maker, depth: int) -> Expr:
    arg = _held(m, depth)
    x = _element(m, arg)
    with _calling(m, x):
        test = m.scalar("boolean", depth)
    return _boolean(f"{m.rng.choice(['exists', 'forall'])}({arg.sql}, {x.sql} -> {test.sql})")


@construct("int", "aggregate", 0.7, duckdb=False)
def aggregated(m: Maker, depth: int) -> Expr | None:
    arg, start = _held(m, depth), m.scalar("int", depth)
    x, merged = _element(m, arg), Expr(m.alias("acc"), t.INT, 3_000)
    with _calling(m, merged, x):
        body = m.scalar("int", depth)
    with _calling(m, merged):
        last = m.scalar("int", depth)
    if x.sql == merged.sql or not fits(3 * 1_000 + body.bound, t.INT):
        return None
    finish = f", {merged.sql} -> {last.sql}" if m.chance(0.3) else ""
    name = m.rng.choice(["aggregate", "reduce"])
    merge = f"({merged.sql}, {x.sql}) -> ({merged.sql} * 3 + {body.sql}) % 1000"
    return _int(f"{name}({arg.sql}, {start.sql} % 1000, {merge}{finish})", max(3_000, last.bound))


@construct("int", "aggregate into a struct", 0.4, duckdb=False)
def merged_into_struct(m: Maker, depth: int) -> Expr:
    arg = _held(m, depth)
    x, count = _element(m, arg), Expr("acc.n", t.INT, 10_000)
    with _calling(m, x, count):
        test, value = m.scalar("boolean", depth), m.scalar("int", depth)
    start = "named_struct('n', 0, 'most', CAST(NULL AS INT), 'flag', FALSE)"
    kept = f"named_struct('n', acc.n + 1, 'most', greatest(acc.most, {value.sql}), 'flag', acc.flag)"
    other = "named_struct('n', 0, 'most', acc.most, 'flag', TRUE)"
    merge = f"(acc, {x.sql}) -> CASE WHEN {test.sql} THEN {kept} ELSE {other} END"
    finish = "acc -> CASE WHEN acc.flag THEN acc.n ELSE coalesce(acc.most, -1) END"
    return _int(f"aggregate({arg.sql}, {start}, {merge}, {finish})", max(10_000, value.bound))


# Arrays


def _array(sql: str, *args: Expr) -> Expr:
    return Expr(sql, ARRAY_TYPE, max((arg.bound for arg in args), default=5))


def _held(m: Maker, depth: int) -> Expr:
    """An array; its elements have no larger magnitude than its bound, or that of values in columns."""
    arg = m.scalar("array", depth)
    return Expr(arg.sql, arg.type, max(arg.bound, 5))


@construct("array", "array of values", 2)
def array_made(m: Maker, depth: int) -> Expr:
    a, b = m.scalar("int", depth), m.scalar("int", depth)
    return _array(f"array({a.sql}, {b.sql})", a, b)


@construct("array", "array_repeat", 0.5, duckdb=False)
def array_repeated(m: Maker, depth: int) -> Expr:
    a = m.scalar("int", depth)
    return _array(f"array_repeat({a.sql}, 2)", a)


@construct("array", "array in order", 1.5)
def array_sorted(m: Maker, depth: int) -> Expr:
    arg = _held(m, depth)
    return _array(f"{m.rng.choice(['sort_array', 'array_sort', 'array_compact'])}({arg.sql})", arg)


@construct("array", "array_distinct, reverse", 1.2, duckdb=False)
def array_changed(m: Maker, depth: int) -> Expr:
    arg = _held(m, depth)
    return _array(f"{m.rng.choice(['array_distinct', 'reverse'])}({arg.sql})", arg)


@construct("array", "array with one more", 1)
def array_longer(m: Maker, depth: int) -> Expr:
    arg, value = _held(m, depth), m.scalar("int", depth)
    return _array(f"{m.rng.choice(['array_append', 'array_prepend'])}({arg.sql}, {value.sql})", arg, value)


@construct("array", "array concatenation", 1)
def array_concatenation(m: Maker, depth: int) -> Expr:
    a, b = _held(m, depth), _held(m, depth)
    return _array(f"concat({a.sql}, {b.sql})", a, b)


@construct("array", "array of two arrays", 0.7, duckdb=False)
def array_combined(m: Maker, depth: int) -> Expr:
    a, b = _held(m, depth), _held(m, depth)
    forms = ["array_union({0}, {1})", "array_intersect({0}, {1})", "array_except({0}, {1})", "flatten(array({0}, {1}))"]
    forms.append("array_remove({0}, get({1}, 0))")
    return _array(m.rng.choice(forms).format(a.sql, b.sql), a, b)


@construct("array", "slice", 1)
def array_part(m: Maker, depth: int) -> Expr:
    arg = _held(m, depth)
    return _array(f"slice({arg.sql}, {m.rng.choice([1, 2, -1])}, {m.rng.choice([1, 2])})", arg)


@construct("int", "size of an array", 0.7)
def sizes(m: Maker, depth: int) -> Expr:
    return _int(f"{m.rng.choice(['size', 'cardinality', 'array_size'])}({m.scalar('array', depth).sql})", 100)


@construct("int", "element of an array", 1)
def element(m: Maker, depth: int) -> Expr:
    arg = _held(m, depth)
    forms = ["try_element_at({0}, -1)", "array_min({0})", "array_max({0})", "if(size({0}) > 0, {0}[0], NULL)"]
    forms.append("CASE WHEN size({0}) > 1 THEN element_at({0}, 2) END")
    return _int(m.rng.choice(forms).format(arg.sql), arg.bound)


@construct("int", "get from an array", 0.3, duckdb=False)
def got(m: Maker, depth: int) -> Expr:
    arg = _held(m, depth)
    return _int(f"get({arg.sql}, {m.rng.choice([0, 1, 7])})", arg.bound)


@construct("int", "element that may be missing", 0.15, duckdb=False)
def element_unguarded(m: Maker, depth: int) -> Expr:
    arg = _held(m, 0)
    return _int(m.rng.choice(["{0}[0]", "element_at({0}, 1)"]).format(arg.sql), arg.bound)


@construct("int", "value of a map", 0.4)
def map_value(m: Maker, depth: int) -> Expr:
    value = m.scalar("int", depth)
    made = f"map('a', {value.sql}, 'b', 1)"
    return _int(m.rng.choice([f"{made}['a']", f"element_at({made}, 'b')", f"{made}['c']"]), max(value.bound, 1))


@construct("int", "parts of a map", 0.3, duckdb=False)
def map_parts(m: Maker, depth: int) -> Expr:
    value = m.scalar("int", depth)
    made = f"map_from_arrays(array('a', 'b'), array({value.sql}, 1))"
    forms = [f"get(map_values({made}), 0)", f"map_entries({made})[0].value", f"size(map_keys({made}))"]
    return _int(m.rng.choice(forms), max(value.bound, 2))


@construct("int", "field of a struct", 0.7)
def struct_field(m: Maker, depth: int) -> Expr:
    held = m.columns("struct")
    if held and m.chance(0.8):
        return _int(f"{m.rng.choice(held).sql}.x", 5)
    value = m.scalar("int", depth)
    made = m.rng.choice(["struct({0} AS q)", "named_struct('q', {0})"]).format(value.sql)
    return _int(f"{made}.q", value.bound)


@construct("string", "text field of a struct", 1)
def struct_text(m: Maker, depth: int) -> Expr:
    held = m.columns("struct")
    made = m.rng.choice(held).sql if held else f"named_struct('y', {m.leaf('string').sql})"
    return _string(f"{made}.y")


@construct("boolean", "array_contains", 0.5, duckdb=False)
def contained(m: Maker, depth: int) -> Expr:
    held = m.scalar("array", depth).sql
    forms = [f"arrays_overlap({held}, {m.scalar('array', depth).sql})", f"array_contains({held}, {m.leaf('int').sql})"]
    forms.append(f"map_contains_key(map('a', 1), {m.leaf('string').sql})")
    return _boolean(m.rng.choice(forms))


@construct("bigint", "array_position", 0.3, duckdb=False)
def position(m: Maker, depth: int) -> Expr:
    return Expr(f"array_position({m.scalar('array', depth).sql}, {m.scalar('int', depth).sql})", t.BIGINT, 100)


@construct("string", "array_join, split", 0.7)
def joined(m: Maker, depth: int) -> Expr:
    text = m.scalar("string", depth).sql
    held = m.scalar("array", depth).sql
    forms = [f"array_join({held}, '-')", f"array_join({held}, ',', '?')", f"array_join(split({text}, 'a'), '+')"]
    forms += [f"split({text}, 'b')[0]", f"array_join(regexp_extract_all({text}, '([ab])'), '')"]
    return _string(m.rng.choice(forms))


# Text


@construct("string", "decode, url_decode", 0.4)
def decoded(m: Maker, depth: int) -> Expr:
    text = m.scalar("string", depth).sql
    forms = ["url_decode(url_encode({0}))", "decode(encode({0}, 'UTF-8'), 'UTF-8')"]
    forms.append("decode({0}, 'a', 'x', NULL, 'none', 'other')")
    return _string(m.rng.choice(forms).format(text))


@construct("string", "codes of text", 0.5, duckdb=False)
def codes(m: Maker, depth: int) -> Expr:
    text = m.scalar("string", depth).sql
    forms = ["soundex({0})", "mask({0})", "url_encode({0})", "CAST(unbase64(base64({0})) AS STRING)"]
    forms += ["regexp_substr({0}, '[ab]+')", "elt(2, 'x', {0})", "typeof({0})", "mask({0}, 'U', 'l', NULL, '.')"]
    return _string(m.rng.choice(forms).format(text))


@construct("string", "format_number", 0.3, duckdb=False)
def number_text(m: Maker, depth: int) -> Expr | None:
    arg = m.scalar(m.rng.choice(["int", "bigint", "decimal"]), depth)
    if isinstance(arg.type, t.Decimal) and arg.type.precision > 30:
        return None
    return _string(f"format_number({arg.sql}, {m.rng.choice([0, 1, 3])})")


@construct("string", "names of days and months", 0.3, duckdb=False)
def names(m: Maker, depth: int) -> Expr:
    return _string(f"{m.rng.choice(['dayname', 'monthname'])}({m.scalar('date', depth).sql})")


@construct("int", "regexp_count, regexp_instr", 0.5)
def matches(m: Maker, depth: int) -> Expr:
    text = m.scalar("string", depth).sql
    return _int(m.rng.choice([f"regexp_count({text}, '[ab]')", f"regexp_instr({text}, 'b')"]))


@construct("int", "levenshtein, find_in_set", 0.4, duckdb=False)
def searches(m: Maker, depth: int) -> Expr:
    a, b = m.scalar("string", depth).sql, m.scalar("string", depth).sql
    forms = [f"levenshtein({a}, {b})", f"find_in_set({a}, 'a,b,,abc')", f"levenshtein({a}, {b}, 1)"]
    return _int(m.rng.choice(forms))


@construct("boolean", "like any, like all", 0.4)
def like_several(m: Maker, depth: int) -> Expr:
    word, quantity = m.rng.choice(["", "NOT "]), m.rng.choice(["ANY", "ALL"])
    return _boolean(f"({m.scalar('string', depth).sql} {word}LIKE {quantity} ('a%', '%b', 'é'))")


@construct("boolean", "equal_null", 0.3)
def equal_null(m: Maker, depth: int) -> Expr:
    return _boolean(f"equal_null({m.scalar('int', depth).sql}, {m.scalar('int', depth).sql})")


@construct("boolean", "luhn_check", 0.2, duckdb=False)
def luhn_check(m: Maker, depth: int) -> Expr:
    return _boolean(f"luhn_check(CAST({m.scalar('int', depth).sql} AS STRING))")


# Numbers


@construct("int", "arithmetic that does not fail", 0.4, duckdb=False)
def tried(m: Maker, depth: int) -> Expr | None:
    a, b = m.scalar("int", depth), m.scalar("int", depth)
    total = a.bound + b.bound
    names = [("try_add", total), ("try_subtract", total), ("try_mod", a.bound), ("try_multiply", a.bound * b.bound)]
    name, bound = m.rng.choice(names)
    return _int(f"{name}({a.sql}, {b.sql})", bound) if fits(bound, t.INT) else None


@construct("double", "try_divide", 0.5)
def tried_quotient(m: Maker, depth: int) -> Expr:
    a, b = m.scalar("int", depth), m.scalar("int", depth)
    return Expr(f"try_divide({a.sql}, {b.sql})", t.DOUBLE, a.bound, exact=False)


@construct("int", "bround, bits", 0.3, duckdb=False)
def rounded(m: Maker, depth: int) -> Expr:
    arg = m.scalar("int", depth)
    if m.chance(0.4):
        return _int(f"CAST(bit_get({arg.sql}, {m.rng.choice([0, 1, 31])}) AS INT)", 1)
    return _int(f"bround({arg.sql}, -1)", arg.bound + 10)


@construct("decimal", "bround, ceil and floor to digits", 0.4, duckdb=False)
def rounded_decimal(m: Maker, depth: int) -> Expr | None:
    arg = m.scalar("decimal", depth)
    held = arg.type
    assert isinstance(held, t.Decimal)
    if held.scale < 1 or not fits(arg.bound + 1, held):
        return None
    of = t.Decimal(held.precision - held.scale + 2, 1)
    return Expr(f"{m.rng.choice(['bround', 'ceil', 'floor'])}({arg.sql}, 1)", of, arg.bound + 1, arg.exact)


@construct("bigint", "width_bucket", 0.3, duckdb=False)
def bucket(m: Maker, depth: int) -> Expr:
    return Expr(f"width_bucket({m.leaf('double').sql}, -1, 3, 4)", t.BIGINT, 5)


# Time


@construct("timestamp", "timestampadd", 0.7)
def timestampadd(m: Maker, depth: int) -> Expr:
    unit = m.rng.choice(["YEAR", "MONTH", "WEEK", "DAY", "HOUR", "SECOND"])
    count = m.rng.choice(["1", "(-1)", "13"])
    return Expr(f"timestampadd({unit}, {count}, {m.scalar('timestamp', depth).sql})", t.TIMESTAMP)


@construct("timestamp", "made and read timestamps", 0.5)
def made_timestamp(m: Maker, depth: int) -> Expr:
    day = m.scalar("date", depth).sql
    forms = ["make_timestamp(2024, 2, 29, 23, 59, 60)", f"to_timestamp(CAST({day} AS STRING), 'yyyy-MM-dd')"]
    return Expr(m.rng.choice(forms), t.TIMESTAMP)


@construct("timestamp", "try_to_timestamp", 0.2, duckdb=False)
def tried_timestamp(m: Maker, depth: int) -> Expr:
    return Expr(f"try_to_timestamp({m.scalar('string', depth).sql}, 'yyyy')", t.TIMESTAMP)


@construct("date", "dates read in a format", 0.5)
def read_date(m: Maker, depth: int) -> Expr:
    return Expr(f"to_date(date_format({m.scalar('date', depth).sql}, 'dd/MM/yyyy'), 'dd/MM/yyyy')", t.DATE)


@construct("date", "try_to_date", 0.2, duckdb=False)
def tried_date(m: Maker, depth: int) -> Expr:
    return Expr(f"try_to_date({m.scalar('string', depth).sql}, 'yyyy-MM-dd')", t.DATE)


@construct("bigint", "timestampdiff, unix_timestamp", 0.4, duckdb=False)
def timestampdiff(m: Maker, depth: int) -> Expr:
    unit = m.rng.choice(["YEAR", "QUARTER", "MONTH", "DAY", "HOUR"])
    a, b = m.scalar("timestamp", depth).sql, m.scalar("timestamp", depth).sql
    if m.chance(0.3):
        return Expr(f"unix_timestamp(CAST({m.scalar('date', depth).sql} AS STRING), 'yyyy-MM-dd')", t.BIGINT, 1e11)
    return Expr(f"timestampdiff({unit}, {a}, {b})", t.BIGINT, 1e6)
