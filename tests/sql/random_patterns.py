"""Random patterns over random rows, and a state machine in Python that says what each part has to show.

It shares nothing with the translation: predicates are Python functions beside their SQL, and a match is a list of rows.
"""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from headwater import types as t
from headwater.sql.translate import Parted

from .parts import Row

#: The columns of the relation; `dest` may be NULL and is a group all the same.
FIELDS = (
    t.Field("ts", t.TIMESTAMP, False),
    t.Field("src", t.STRING, False),
    t.Field("dest", t.INT),
    t.Field("loss", t.INT),
    t.Field("cost", t.Decimal(6, 2)),
    t.Field("Rate", t.DOUBLE, False),
)
M = Parted("M", FIELDS, 60, "ts")
TS, SRC, DEST, LOSS, COST, RATE = range(6)

Alone = Callable[[Row], bool]
Paired = Callable[[Row, Row], bool]


def _known(*values: object) -> bool:
    return all(one is not None for one in values)


#: Predicates on one row `a`.
ALONE: tuple[tuple[str, Alone], ...] = (
    ("{a}.loss > 2", lambda a: _known(a[LOSS]) and a[LOSS] > 2),
    ("{a}.loss <= 3", lambda a: _known(a[LOSS]) and a[LOSS] <= 3),
    ("({a}.loss IS NULL OR {a}.cost > 1)", lambda a: a[LOSS] is None or (_known(a[COST]) and a[COST] > 1)),
    ("{a}.RATE * 2 >= 1 AND {a}.src <> 'z'", lambda a: a[RATE] * 2 >= 1 and a[SRC] != "z"),
    ("NOT {a}.cost IN (0.00, 1.00)", lambda a: _known(a[COST]) and a[COST] not in (0, 1)),
)  # fmt: skip

#: Predicates on the row before, `a`, and this one, `b`.
PAIRED: tuple[tuple[str, Paired], ...] = (
    ("{b}.loss > {a}.loss", lambda a, b: _known(a[LOSS], b[LOSS]) and b[LOSS] > a[LOSS]),
    ("{a}.cost <=> {b}.cost", lambda a, b: a[COST] == b[COST]),
    (
        "{b}.rate + {a}.rate < 2 OR {a}.loss = 0",
        lambda a, b: b[RATE] + a[RATE] < 2 or (_known(a[LOSS]) and a[LOSS] == 0),
    ),
    ("{b}.src = {a}.src", lambda a, b: b[SRC] == a[SRC]),
)


def _sum(values: list[object]) -> object:
    known = [one for one in values if one is not None]
    return sum(known) if known else None


def _avg_cost(rows: list[Row]) -> object:
    known = [row[COST] for row in rows if row[COST] is not None]
    if not known:
        return None
    return (sum(known) / Decimal(len(known))).quantize(Decimal("1.000000"), ROUND_HALF_UP)


def _extreme(pick: Callable[[list[object]], object], column: int) -> Callable[[list[Row]], object]:
    return lambda rows: pick(known) if (known := [row[column] for row in rows if row[column] is not None]) else None


#: What can be selected besides groups, as a function of the rows of a match.
SELECTED: tuple[tuple[str, Callable[[list[Row]], object]], ...] = (
    ("count(*)", len),
    ("COUNT(loss)", lambda rows: sum(row[LOSS] is not None for row in rows)),
    ("count(loss, cost)", lambda rows: sum(_known(row[LOSS], row[COST]) for row in rows)),
    ("sum(loss)", lambda rows: _sum([row[LOSS] for row in rows])),
    ("sum(cost)", lambda rows: _sum([row[COST] for row in rows])),
    ("sum(rate)", lambda rows: sum(row[RATE] for row in rows)),
    ("sum(loss + 1) + count(*)", lambda rows: _plus(_sum([_plus(row[LOSS], 1) for row in rows]), len(rows))),
    ("min(loss)", _extreme(min, LOSS)),
    ("max(cost)", _extreme(max, COST)),
    ("max(rate)", _extreme(max, RATE)),
    ("min(src)", _extreme(min, SRC)),
    ("avg(loss)", lambda rows: _mean([row[LOSS] for row in rows if row[LOSS] is not None])),
    ("avg(cost)", _avg_cost),
    ("first(loss)", lambda rows: rows[0][LOSS]),
    ("last(loss)", lambda rows: rows[-1][LOSS]),
    ("first(ts)", lambda rows: rows[0][TS]),
    ("last(cost)", lambda rows: rows[-1][COST]),
)  # fmt: skip


def _plus(a: object, b: int) -> object:
    return None if a is None else a + b  # type: ignore[operator]


def _mean(values: list[int]) -> object:
    return sum(values) / len(values) if values else None


@dataclass(frozen=True)
class Case:
    """A pattern, and rows by part."""

    seed: int
    statement: str
    plus: tuple[bool, ...]
    alone: tuple[tuple[Alone, ...], ...]
    paired: tuple[tuple[Paired, ...], ...]
    groups: tuple[int, ...]
    hidden: bool
    selected: tuple[Callable[[list[Row]], object], ...]
    having: Callable[[list[Row]], bool]
    parts: dict[int, list[Row]]


def make_case(seed: int, parts: int = 5) -> Case:
    """The case of a seed."""
    pick = random.Random(seed)
    names = [f"v{n}" for n in range(1, pick.choice((1, 2, 2, 3, 4)) + 1)]
    plus = tuple(pick.random() < 0.4 for _ in names)
    alone = [pick.sample(ALONE, pick.choice((0, 1, 1, 1, 2))) for _ in names]
    paired = [[] if not n else pick.sample(PAIRED, pick.choice((0, 0, 1))) for n in range(len(names))]
    conditions = [text.format(a=name) for name, some in zip(names, alone, strict=True) for text, _ in some]
    conditions += [text.format(a=names[n - 1], b=names[n]) for n, some in enumerate(paired) for text, _ in some]
    pick.shuffle(conditions)
    groups = pick.choice(((), (SRC,), (SRC, DEST), (DEST,)))
    selected = pick.sample(SELECTED, pick.randint(1, 4))
    hidden = pick.random() < 0.15
    shown = [FIELDS[one].name for one in groups if not hidden] + [
        f"{text} AS c{n}" for n, (text, _) in enumerate(selected)
    ]
    having = pick.random() < 0.2
    pattern = ", ".join(f"{name}{'+' if more else ''}" for name, more in zip(names, plus, strict=True))
    clauses = [f"SELECT {', '.join(shown)}", f"FROM m PATTERN [{pattern}]"]
    clauses += [f"WHERE {' AND '.join(f'({one})' for one in conditions)}"] if conditions else []
    clauses += [f"GROUP BY {', '.join(FIELDS[one].name for one in groups)}"] if groups else []
    clauses += ["HAVING count(*) > 1"] if having else []
    return Case(
        seed,
        f"CREATE VIEW v AS {' '.join(clauses)}",
        plus,
        tuple(tuple(test for _, test in some) for some in alone),
        tuple(tuple(test for _, test in some) for some in paired),
        groups,
        hidden,
        tuple(of for _, of in selected),
        (lambda rows: len(rows) > 1) if having else (lambda rows: True),
        {part: _rows(pick, part) for part in range(100, 100 + parts)},
    )


def _rows(pick: random.Random, part: int) -> list[Row]:
    rows: list[Row] = []
    for _ in range(pick.choice((0, 1, 3, 6, 12))):
        # Few different times, so that rows come at the same time and the other columns decide.
        ts = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=part * 60 + pick.choice((0, 0, 7, 7, 30, 59)))
        loss = pick.choice((None, 0, 1, 2, 3, 3, 4, 5))
        cost = pick.choice((None, *map(Decimal, ("0.00", "1.00", "1.25", "2.50"))))
        rows.append((ts, pick.choice("abz"), pick.choice((None, 1)), loss, cost, pick.choice((0.25, 0.5, 1.5))))
    return rows


def expected(case: Case) -> dict[int, Counter[Row]]:
    """What each part shows."""
    last = len(case.plus)
    states: dict[Row, tuple[int, list[Row]]] = {}
    shown: dict[int, Counter[Row]] = {}
    for part, rows in sorted(case.parts.items()):
        closed: list[tuple[Row, list[Row]]] = []
        touched: set[Row] = set()
        for row in sorted(rows, key=_order(case)):
            group = tuple(row[one] for one in case.groups)
            state, match = states.get(group, (0, []))
            after = _next(case, state, match, row)
            if after is not None:
                states[group] = (after, [*match, row])
            else:
                if state == last and group in touched:
                    closed.append((group, match))
                begins = all(test(row) for test in case.alone[0])
                states[group] = (1, [row]) if begins else (0, [])
            touched.add(group)
        standing = [(group, match) for group, (state, match) in states.items() if state == last]
        shown[part] = Counter(
            (*(() if case.hidden else group), *(of(match) for of in case.selected))
            for group, match in (*closed, *standing)
            if case.having(match)
        )
    return shown


def _next(case: Case, state: int, match: list[Row], row: Row) -> int | None:
    """The state that a match goes on to, or None where it is broken."""
    if state and case.plus[state - 1] and all(test(row) for test in case.alone[state - 1]):
        return state
    if 0 < state < len(case.plus):
        fits = all(test(row) for test in case.alone[state])
        if fits and all(test(match[-1], row) for test in case.paired[state]):
            return state + 1
    return None


def _order(case: Case) -> Callable[[Row], object]:
    """The order of rows: time, then the other columns that are not groups, NULL first."""
    columns = [TS, *(n for n in range(len(FIELDS)) if n != TS and n not in case.groups)]
    return lambda row: tuple((row[one] is not None, row[one] if row[one] is not None else 0) for one in columns)
