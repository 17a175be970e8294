"""Queries of parts. All of them have the columns k STRING, g INT and v BIGINT, and values that stay small."""

from __future__ import annotations

import re

from headwater import types as t

from ..generate import make_case  # noqa: F401  (its modules register what a query is made of)
from ..grammar import CONSTRUCTS, Expr, Maker, Query, kind_of
from ..policies import _CLOCK
from .draft import Draft, shape


def _where(d: Draft, a: str, share: float = 0.5) -> str:
    if not d.chance(share):
        return ""
    d.note("where")
    return " WHERE " + d.pick(
        f"{a}.v > 0", f"{a}.k IS NOT NULL", f"{a}.g IN (1, 2)", f"{a}.PART % 2 = 0", f"{a}.v IS NULL OR {a}.g < 2",
        f"{a}.k <> 'a' AND {a}.v <= 5", f"{a}.v >= {a}.g",
    )  # fmt: skip


def _small(text: str) -> str:
    return f"CAST(({text}) % 100 AS BIGINT)"


def _count(text: str = "count(*)") -> str:
    return f"CAST({text} % 100 AS INT)"


def _values(d: Draft, a: str) -> str:
    """g and v of a row."""
    g = d.pick(f"{a}.g", f"{a}.g", f"coalesce({a}.g, 7)", f"CAST({a}.PART % 5 AS INT)", "1")
    v = d.pick(f"{a}.v", f"{a}.v", f"{a}.v + {a}.g", f"coalesce({a}.v, 0) + 1", f"-{a}.v", f"{a}.PART")
    if "PART" in g + v:
        d.note("PART in a view of parts")
    return f"{g} AS g, {_small(v)} AS v"


def _sums(d: Draft, a: str) -> str:
    g = d.pick("count(*)", f"count({a}.v)", f"count(DISTINCT {a}.v)", f"max({a}.g)", f"min({a}.g)")
    v = d.pick(f"sum({a}.v)", f"sum({a}.v)", f"max({a}.v)", f"min({a}.v)", f"sum({a}.g) + count(*)")
    return f"{_count(g)} AS g, {_small(v)} AS v"


def _on(d: Draft, a: str, b: str) -> str:
    return d.pick(
        f"{a}.k = {b}.k", f"{a}.k = {b}.k", f"{a}.k <=> {b}.k", f"{a}.g = {b}.g", f"{a}.k = {b}.k AND {a}.g = {b}.g"
    )


# Queries that do not read the view itself


@shape("query", "rows", 5)
def rows(d: Draft) -> str:
    a = d.alias()
    return f"SELECT {a}.k, {_values(d, a)} FROM {d.part()} {a}{_where(d, a)}"


@shape("query", "rows as they are", 2)
def plain_rows(d: Draft) -> str:
    return f"SELECT k, g, CAST(v AS BIGINT) AS v FROM {d.part()}"


@shape("query", "groups", 6)
def groups(d: Draft) -> str:
    a = d.alias()
    having = d.pick("", "", " HAVING count(*) > 1", f" HAVING sum({a}.v) > 2")
    return f"SELECT {a}.k, {_sums(d, a)} FROM {d.part()} {a}{_where(d, a, 0.3)} GROUP BY {a}.k{having}"


@shape("query", "groups by expression", 1)
def groups_by_expression(d: Draft) -> str:
    a = d.alias()
    return (
        f"SELECT CAST({a}.g % 2 AS STRING) AS k, {_sums(d, a)} FROM {d.part()} {a}"
        f"{_where(d, a, 0.3)} GROUP BY {a}.g % 2"
    )


@shape("query", "one row over all", 3)
def total(d: Draft) -> str:
    a = d.alias()
    return f"SELECT max({a}.k) AS k, {_sums(d, a)} FROM {d.part()} {a}{_where(d, a, 0.3)}"


@shape("query", "distinct", 2)
def distinct(d: Draft) -> str:
    a = d.alias()
    return f"SELECT DISTINCT {a}.k, {_values(d, a)} FROM {d.part()} {a}{_where(d, a)}"


@shape("query", "set operation", 3)
def set_operation(d: Draft) -> str:
    word = d.rng.choices(["UNION ALL", "UNION", "EXCEPT", "INTERSECT"], [5, 1, 1, 1])[0]
    d.note(word)
    first, second = (f"SELECT k, g, CAST(v AS BIGINT) AS v FROM {d.part()} {d.alias()}" for _ in range(2))
    return f"{first} {word} {second}"


@shape("query", "join of parts", 4)
def join(d: Draft) -> str:
    a, b = d.alias(), d.alias()
    word = d.rng.choices(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL OUTER JOIN"], [4, 2, 1, 2])[0]
    d.note(f"{word} of parts")
    inside = (
        f"SELECT coalesce({a}.k, {b}.k) AS k, {b}.g AS g, {_small(f'coalesce({a}.v, 0) + coalesce({b}.v, 0)')} AS v"
        f" FROM {d.part()} {a} {word} {d.part()} {b} ON {_on(d, a, b)}"
    )
    return _limited(d, inside)


@shape("query", "join with a whole relation", 4)
def join_whole(d: Draft) -> str | None:
    if not d.wholes:
        return None
    a, b = d.alias(), d.alias()
    word = d.pick("JOIN", "LEFT JOIN", "FULL OUTER JOIN")
    d.note(f"{word} with a whole relation")
    inside = (
        f"SELECT coalesce({a}.k, {b}.k) AS k, {a}.g AS g, {_small(f'coalesce({a}.v, 0) + coalesce({b}.w, 0)')} AS v"
        f" FROM {d.part()} {a} {word} {d.pick(*d.wholes)} {b} ON {a}.k = {b}.k"
    )
    return _limited(d, inside)


@shape("query", "subquery over parts", 3)
def subquery(d: Draft) -> str:
    a, b = d.alias(), d.alias()
    other = d.part()
    condition = d.pick(
        f"NOT EXISTS (SELECT 1 FROM {other} {b} WHERE {b}.k = {a}.k)",
        f"EXISTS (SELECT 1 FROM {other} {b} WHERE {b}.k = {a}.k AND {b}.v > 0)",
        f"{a}.k IN (SELECT {b}.k FROM {other} {b})",
        f"{a}.v >= (SELECT max({b}.v) FROM {other} {b})",
        f"{a}.v >= (SELECT coalesce(sum({b}.v), 0) FROM {other} {b} WHERE {b}.k = {a}.k)",
    )
    return f"SELECT {a}.k, {_values(d, a)} FROM {d.part()} {a} WHERE {condition}"


@shape("query", "subquery over a whole relation", 1)
def subquery_whole(d: Draft) -> str | None:
    if not d.wholes:
        return None
    a, b = d.alias(), d.alias()
    condition = d.pick(
        f"{a}.k NOT IN (SELECT {b}.k FROM W {b} WHERE {b}.k IS NOT NULL)", f"{a}.v > (SELECT min({b}.w) FROM W {b})"
    )
    condition = condition.replace(" W ", f" {d.pick(*d.wholes)} ")
    return f"SELECT {a}.k, {_values(d, a)} FROM {d.part()} {a} WHERE {condition}"


@shape("query", "window function", 2)
def window(d: Draft) -> str:
    a = d.alias()
    order = f"ORDER BY {a}.v, {a}.g, {a}.k"
    over = d.pick(f"PARTITION BY {a}.k {order}", order)
    made = d.pick(
        f"rank() OVER ({over})", f"row_number() OVER ({over})", f"lag({a}.v) OVER ({over})",
        f"sum({a}.v) OVER ({over} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)", f"sum({a}.v) OVER (PARTITION BY {a}.k)",
    )  # fmt: skip
    return f"SELECT {a}.k, {a}.g, {_small(made)} AS v FROM {d.part()} {a}{_where(d, a, 0.3)}"


@shape("query", "top rows", 2)
def top(d: Draft) -> str:
    a = d.alias()
    return (
        f"SELECT {a}.k, {a}.g, CAST({a}.v AS BIGINT) AS v FROM {d.part()} {a}{_where(d, a, 0.3)}"
        f" ORDER BY v DESC, k, g LIMIT {d.pick(1, 2, 3)}"
    )


_NOT_ANY = ("remainder that may fail", "element that may be missing")


@shape("query", "any query", 6)
def any_query(d: Draft) -> str | None:
    """A query of the other generator over parts, cut to the columns that all views of parts have."""
    m = Maker(d.rng)
    parts: dict[str, str] = {}
    for number in range(d.pick(1, 2, 2)):
        parts[f"v90{number}"] = d.part()
    for name in parts:
        m.relations[name] = Query("", (_column("k", t.STRING), _column("g", t.INT), _column("v", t.BIGINT)), 12)
    for name in d.wholes[:1]:
        m.bases[name] = None  # type: ignore[assignment]  # only its name counts
        m.relations[name] = Query("", (_column("k", t.STRING), _column("g", t.INT), _column("w", t.INT)), 8)
    made: Query = m.make("query")
    names = [column.name for column in made.columns]
    if len(set(names)) < len(names) or _CLOCK.search(made.sql) or m.marks & set(_NOT_ANY) or "v90" not in made.sql:
        return None
    if any(len(re.findall(rf"\b{name}\b", made.sql)) > 3 for name in parts):
        return None
    d.duckdb = d.duckdb and m.duckdb and all(CONSTRUCTS[mark].duckdb for mark in m.marks if mark in CONSTRUCTS)
    d.used.update(f"any query: {mark}" for mark in m.marks)
    text = re.sub(r"\bv90\d\b", lambda one: parts[one[0]], made.sql)
    return _limited(d, _fitted(d, text, made))


def _column(name: str, of: t.Type) -> Expr:
    return Expr(name, of, 100.0, name=name)


def _fitted(d: Draft, text: str, made: Query) -> str:
    q = d.alias()
    kinds = {"string": "'x'", "int": "1", "bigint": "CAST(2 AS BIGINT)"}
    chosen = {}
    for kind, otherwise in kinds.items():
        fitting = [column.name for column in made.columns if kind_of(column.type) == kind]
        chosen[kind] = f"{q}.{d.rng.choice(fitting)}" if fitting else otherwise
    return (
        f"SELECT substr({chosen['string']}, 1, 3) AS k, CAST({chosen['int']} % 100 AS INT) AS g,"
        f" {_small(chosen['bigint'])} AS v FROM ({text}) {q}"
    )


def _limited(d: Draft, inside: str) -> str:
    """A query that has few rows, whatever it joins."""
    q = d.alias()
    return d.pick(
        f"SELECT {q}.k, {_sums(d, q)} FROM ({inside}) {q} GROUP BY {q}.k",
        f"SELECT {q}.k, {q}.g, {q}.v FROM ({inside}) {q} ORDER BY k, g, v LIMIT 12",
    )


# Queries that read earlier parts of the view


@shape("recursion", "counting on", 5)
def counting_on(d: Draft) -> str:
    """The paper's Helper: what is new, joined with what was there."""
    new, prev = d.alias(), d.alias()
    a = d.alias()
    word = d.rng.choices(["LEFT OUTER JOIN", "FULL OUTER JOIN", "RIGHT JOIN", "JOIN"], [3, 4, 1, 1])[0]
    d.note(f"{word} with itself")
    source = f"(SELECT {a}.k, {_sums(d, a)} FROM {d.part()} {a} GROUP BY {a}.k)"
    q = d.alias()
    inside = (
        f"SELECT coalesce({new}.k, {prev}.k) AS k, {_count(f'(coalesce({prev}.g, 0) + 1)')} AS g,"
        f" {_small(f'coalesce({prev}.v, 0) + coalesce({new}.v, 0)')} AS v"
        f" FROM {source} {new} {word} {d.earlier()} {prev} ON {d.pick(f'{new}.k = {prev}.k', f'{new}.k <=> {prev}.k')}"
    )
    if d.chance(0.5):
        return f"SELECT {q}.k, max({q}.g) AS g, {_small(f'sum({q}.v)')} AS v FROM ({inside}) {q} GROUP BY {q}.k"
    return f"SELECT {q}.k, {q}.g, {q}.v FROM ({inside}) {q} ORDER BY k, g, v LIMIT 12"


@shape("recursion", "running sums", 4)
def running(d: Draft) -> str:
    q = d.alias()
    inside = f"SELECT k, g, v FROM {d.earlier()} UNION ALL SELECT k, g, CAST(v AS BIGINT) AS v FROM {d.part()}"
    return f"SELECT {q}.k, {_sums(d, q)} FROM ({inside}) {q} GROUP BY {q}.k"


@shape("recursion", "running total", 2)
def running_total(d: Draft) -> str:
    q = d.alias()
    inside = f"SELECT k, g, v FROM {d.earlier()} UNION ALL SELECT k, g, CAST(v AS BIGINT) AS v FROM {d.part()}"
    return f"SELECT max({q}.k) AS k, {_sums(d, q)} FROM ({inside}) {q}"


@shape("recursion", "best so far", 2)
def best(d: Draft) -> str:
    q = d.alias()
    inside = f"SELECT k, g, v FROM {d.earlier()} UNION ALL SELECT k, g, CAST(v AS BIGINT) AS v FROM {d.part()}"
    return f"SELECT {q}.k, {q}.g, {q}.v FROM ({inside}) {q} ORDER BY v DESC, k, g LIMIT {d.pick(2, 5)}"


@shape("recursion", "what is new", 2)
def what_is_new(d: Draft) -> str:
    a, b = d.alias(), d.alias()
    return (
        f"SELECT {a}.k, {_values(d, a)} FROM {d.part()} {a}"
        f" WHERE NOT EXISTS (SELECT 1 FROM {d.earlier()} {b} WHERE {b}.k = {a}.k)"
    )


@shape("recursion", "a step of something", 2)
def clock(d: Draft) -> str:
    """One that changes in every part, whatever comes."""
    a, b = d.alias(), d.alias()
    return (
        f"SELECT max({a}.k) AS k, {_count(f'coalesce(max({b}.g), 0) + 1')} AS g, {_small(f'sum({b}.v)')} AS v"
        f" FROM {d.part()} {a} FULL OUTER JOIN {d.earlier()} {b} ON {a}.k = {b}.k"
    )
