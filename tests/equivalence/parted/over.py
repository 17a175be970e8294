"""Ordinary views over parts, sliding windows and patterns."""

from __future__ import annotations

from .draft import Draft, shape


def _relation(d: Draft) -> str:
    return d.rng.choice(d.only)


# Ordinary views


@shape("ordinary", "sums by part", 4)
def sums_by_part(d: Draft) -> str:
    return f"SELECT PART, k, count(*) AS n, sum(v) AS v FROM {_relation(d)} GROUP BY PART, k"


@shape("ordinary", "sums over all parts", 3)
def sums(d: Draft) -> str:
    return f"SELECT k, count(*) AS n, max(v) AS v, max(PART_TIMESTAMP) AS last FROM {_relation(d)} GROUP BY k"


@shape("ordinary", "all rows", 3)
def all_rows(d: Draft) -> str:
    return f"SELECT * FROM {_relation(d)}" + d.pick("", " WHERE v > 0")


@shape("ordinary", "rows of some parts", 2)
def some_parts(d: Draft) -> str:
    condition = d.pick("PART % 2 = 0", "PART_TIMESTAMP > TIMESTAMP '2024-01-01 00:02:00'", "PART_TIMESTAMP IS NOT NULL")
    return f"SELECT k, v, PART AS part_number FROM {_relation(d)} WHERE {condition}"


@shape("ordinary", "join with what is read whole", 2)
def join_whole(d: Draft) -> str | None:
    if not d.wholes:
        return None
    word = d.pick("JOIN", "LEFT JOIN")
    return f"SELECT a.k, a.v, a.PART, b.w FROM {_relation(d)} a {word} {d.pick(*d.wholes)} b ON a.k = b.k"


@shape("ordinary", "join by part", 3)
def join_by_part(d: Draft) -> str | None:
    one, other = _relation(d), _relation(d)
    if d.lengths[one] != d.lengths[other]:
        return None
    word, shift = d.pick("JOIN", "LEFT JOIN", "FULL OUTER JOIN"), d.pick("", " + 1")
    return f"SELECT a.k, a.v AS x, b.v AS y FROM {one} a {word} {other} b ON a.PART = b.PART{shift} AND a.k = b.k"


@shape("ordinary", "as a whole relation", 2)
def as_whole(d: Draft) -> str:
    """One that views of parts may read whole."""
    return f"SELECT k, CAST(count(*) % 100 AS INT) AS g, CAST(max(v) % 100 AS INT) AS w FROM {_relation(d)} GROUP BY k"


# Windows


@shape("window", "sums of a window", 3)
def subtractable(d: Draft) -> str:
    return _window(
        d, d.pick("count(*) AS n, sum(v) AS s", "avg(v) AS m, count(v) AS c", "sum(v + g) AS s, count(*) AS n")
    )


@shape("window", "extremes of a window", 3)
def distributive(d: Draft) -> str:
    return _window(
        d, d.pick("min(v) AS a, max(g) AS b", "max(v) AS a, sum(v) AS s", "bool_or(v > 2) AS o, count(*) AS n")
    )


@shape("window", "holistic aggregates of a window", 2)
def holistic(d: Draft) -> str:
    return _window(d, d.pick("count(DISTINCT v) AS n", "count(DISTINCT g) AS n, sum(v) AS s", "median(v) AS m"))


def _window(d: Draft, items: str) -> str:
    relation = _relation(d)
    count = d.pick(1, 2, 3, 5)
    size = f"{count} PARTS" if d.chance(0.7) else f"{count * d.lengths[relation]} SECONDS"
    where = d.pick("", "", " WHERE v > 0", " WHERE k IS NOT NULL")
    group, having = d.pick(("k, ", " GROUP BY k"), ("k, ", " GROUP BY k"), ("", "")), ""
    if group[0] and d.chance(0.3):
        having = " HAVING count(*) > 1"
    return f"SELECT {group[0]}{items} FROM {relation} [WINDOW {size}]{where}{group[1]}{having}"


# Patterns


@shape("pattern", "pattern", 1)
def pattern(d: Draft) -> str:
    names = list("abcd"[: d.rng.choices([1, 2, 3, 4], [1, 4, 4, 1])[0]])
    plus = [d.chance(0.35) for _ in names]
    conditions: list[str] = []
    for at, name in enumerate(names):
        if d.chance(0.75):
            conditions.append(
                d.pick(
                    f"{name}.v > 0",
                    f"{name}.v >= 2",
                    f"{name}.g <> 1",
                    f"({name}.v IS NULL OR {name}.v < 3)",
                    f"{name}.v + {name}.g > 1",
                )
            )
        if at and d.chance(0.4):
            before = names[at - 1]
            conditions.append(
                d.pick(f"{name}.v > {before}.v", f"{name}.g <=> {before}.g", f"{name}.v <= {before}.v + 1")
            )
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    group = d.pick("k", "k", "k, g", "")
    aggregates = d.rng.sample(
        [
            "count(*) AS n",
            "sum(v) AS s",
            "min(v) AS a",
            "max(g) AS b",
            "first(v) AS f",
            "last(v) AS l",
            "avg(v) AS m",
            "count(v) + 1 AS c",
        ],
        d.pick(1, 2, 3),
    )
    items = ", ".join([*(group.split(", ") if group else []), *aggregates])
    having = " HAVING count(*) > 1" if d.chance(0.2) else ""
    tail = f" GROUP BY {group}" if group else ""
    shown = ", ".join(name + ("+" if more else "") for name, more in zip(names, plus, strict=True))
    return f"SELECT {items} FROM {_relation(d)} PATTERN [{shown}]{where}{tail}{having}"
