"""Random queries over windows of parts, over random rows."""

from __future__ import annotations

import random
from decimal import Decimal

from headwater import types as t
from headwater.sql.translate import Parted

from .parts import Row

FIELDS = (
    t.Field("ts", t.BIGINT, False),
    t.Field("g", t.STRING),
    t.Field("H", t.INT, False),
    t.Field("a", t.INT),
    t.Field("b", t.BIGINT),
    t.Field("c", t.Decimal(7, 2)),
    t.Field("d", t.DOUBLE),
    t.Field("e", t.INT, False),
    t.Field("f", t.BOOLEAN),
    t.Field("w", t.Decimal(30, 4)),
)
S = Parted("S", FIELDS, 60, "ts")

#: Aggregates whose sums can be taken back, those that merge, and those that need the rows.
SUBTRACTABLE = (
    "count(*)", "count(a)", "count_if(f)", "sum(a)", "SUM(s.B)", "sum(c)", "sum(e)", "avg(a)", "avg(b)", "avg(c)",
    "avg(e)", "stddev(a)", "var_pop(c)", "stddev_pop(e)", "variance(a + e)", "sum(a * 2 - e)",
    "count(*) FILTER (WHERE a > 1)", "sum(c) FILTER (WHERE f)", "avg(e) FILTER (WHERE NOT f)",
    "sum(a) + count(*)", "coalesce(sum(c), 0)",
)  # fmt: skip
MERGING = (
    "min(a)", "max(c)", "max(g)", "bool_and(f)", "every(f)", "bool_or(a > 2)", "sum(d)", "avg(d)", "max(a) - min(a)",
    "any_value(a)", "max(b) FILTER (WHERE f)",
)  # fmt: skip
ROWS = (
    "median(a)",
    "count(DISTINCT a)",
    "avg(w)",
    "sum(w)",
    "stddev(d)",
    "stddev(b)",
    "min(a) FILTER (WHERE f) + count(DISTINCT g)",
)

GROUPS = ((), ("g",), ("g", "H"), ("h % 2",), ("g", "s.h + 1"))


def make_query(seed: int) -> tuple[str, str, int]:
    """A query with its window, the same without it, and how many parts the window has."""
    pick = random.Random(seed)
    among = pick.choice((SUBTRACTABLE, SUBTRACTABLE, MERGING, (*SUBTRACTABLE, *MERGING), (*MERGING, *ROWS)))
    groups = pick.choice(GROUPS)
    items = [f"{one} AS k{n}" if pick.random() < 0.5 or not one.isidentifier() else one for n, one in enumerate(groups)]
    items += [f"{one} AS c{n}" for n, one in enumerate(pick.sample(among, pick.randint(0 if groups else 1, 4)))]
    by_place = len(items) == 1 or pick.random() < 0.8
    if groups and not by_place:  # groups need not be shown
        items = items[1:]
    width = pick.randint(1, 4)
    tail = pick.choice(("", "", " WHERE a > 1 OR f", " WHERE s.d IS NOT NULL"))
    tail += (
        f" GROUP BY {', '.join(pick.choice((one, str(n))) if by_place else one for n, one in enumerate(groups, 1))}"
        if groups
        else ""
    )
    tail += pick.choice(("", "", " HAVING count(*) > 1", " HAVING sum(a) > 2 OR sum(a) IS NULL"))
    head = f"SELECT {', '.join(items)} FROM S"
    return f"{head} [WINDOW {width} PARTS]{tail}", f"{head}{tail}", width


def make_rows(seed: int, parts: range) -> dict[int, list[Row]]:
    """Rows by part; some parts have none."""
    pick = random.Random(f"rows of {seed}")
    return {
        part: [
            (
                part * 60 + pick.randint(0, 59),
                pick.choice((None, "x", "y")),
                pick.randint(0, 3),
                pick.choice((None, None, 0, 1, 2, 3, -2)),
                pick.choice((None, 5, -5, 2**62)),
                pick.choice((None, Decimal("0.00"), Decimal("1.25"), Decimal("-1.25"), Decimal("99999.99"))),
                pick.choice((None, 0.5, 1.5, -0.5)),
                pick.randint(-2, 2),
                pick.choice((None, True, False)),
                pick.choice((None, Decimal("1.0000"))),
            )
            for _ in range(pick.choice((0, 0, 1, 2, 4)))
        ]
        for part in parts
    }
