"""From a seed to a case."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import replace

from headwater import types as t

from . import (  # noqa: F401  (they register)
    expr_logic,
    expr_nested,
    expr_number,
    expr_text_time,
    policies,
    queries,
    queries_groups,
    queries_more,
    queries_time,
    sources,
    windows,
)
from .bags import Bags
from .case import Case, Epoch, Relation, View
from .grammar import CONSTRUCTS, Expr, Maker, Query, construct
from .hidden import hidden
from .near import near_views
from .operations import MOST_ROWS, Changes
from .regrouped import regrouped_views
from .values import ARRAY_TYPE, DECIMAL_TYPES, STRUCT_TYPE, bound, draw, literal

EPOCHS = 10

_TYPE_WEIGHTS: dict[t.Type, float] = {
    t.INT: 10,
    t.BIGINT: 5,
    t.STRING: 8,
    t.DOUBLE: 4,
    t.DATE: 3,
    t.BOOLEAN: 3,
    t.TIMESTAMP: 3,
    t.TINYINT: 0.7,
    t.SMALLINT: 0.7,
    t.FLOAT: 0.7,
    t.BINARY: 0.5,
    ARRAY_TYPE: 0.7,
    STRUCT_TYPE: 0.7,
} | dict.fromkeys(DECIMAL_TYPES, 1.2)
_KEY_TYPES = (t.INT, t.INT, t.STRING, t.DATE, t.BIGINT)


def make_case(seed: int) -> Case:
    """The case of a seed: always the same one."""
    return generate(seed)[0]


def generate(seed: int) -> tuple[Case, Counter[str]]:
    """The case of a seed, and how often each construct occurs in it."""
    case, m = _make(seed)
    return case, m.used


def expected_types(seed: int) -> dict[str, tuple[t.Type, ...]]:
    """The column types of each view of a seed's case by the generator's own reckoning."""
    case, m = _make(seed)
    return {view.name: tuple(column.type for column in m.relations[view.name].columns) for view in case.views}


def _make(seed: int) -> tuple[Case, Maker]:
    m = Maker(random.Random(seed))
    for number in range(m.rng.choice([1, 2, 2, 3])):
        relation: Relation = m.make("relation", number)
        m.bases[relation.name] = relation
        columns = tuple(Expr(c.name, c.type, bound(c.type), name=c.name) for c in relation.columns)
        m.relations[relation.name] = Query(f"SELECT * FROM {relation.name}", columns, MOST_ROWS[relation.kind] + 3)
        if not relation.keeps_all and m.chance(0.6):
            m.note("keyed stream that all views filter")
            m.filters[relation.name] = _filter(m, relation)
    views = tuple(_perhaps_kept(m, random.Random(f"changes {seed} {view.name}"), view) for view in _views(m))
    views, pointed = policies.synchronised(m, seed, views)
    views = near_views(m, seed, views)
    views = regrouped_views(m, seed, views, EPOCHS)
    views = policies.on_query(m, seed, views)
    hiding = hidden(m, seed, EPOCHS)
    if hiding is not None:
        views = hiding
    elif pointed:
        m.bases[policies.POINTS] = policies.points(seed)
    else:
        views = _perhaps_late(m, seed, views)
    epochs = _epochs(m, views)
    return Case(seed, tuple(m.bases.values()), views, epochs, windows.clocks(m, EPOCHS)), m


def _filter(m: Maker, relation: Relation) -> str:
    """A condition that never fails, on a column that has a literal; mostly not one of the key."""
    plain = [c for c in relation.columns if c.type in _KEY_TYPES]
    column = m.rng.choice([c for c in plain if c.name not in (*relation.key, relation.sequence)] or plain)
    conditions = [
        f"{column.name} {sign} {literal(draw(m.rng, column.type, 0.0), column.type)}" for sign in (">", "<=", "<>")
    ]
    return m.rng.choice([*conditions, f"{column.name} IS NOT NULL"])


def _columns(m: Maker) -> list[t.Field]:
    kinds = m.rng.choices(list(_TYPE_WEIGHTS), list(_TYPE_WEIGHTS.values()), k=m.rng.choice([2, 3, 3, 4, 5]))
    return [t.Field("abcde"[i], of, nullable=m.chance(0.85)) for i, of in enumerate(kinds)]


@construct("relation", "table without key", 5)
def plain_table(m: Maker, number: int) -> Relation:
    return Relation(f"t{number}", "TABLE", tuple(_columns(m)), rare=_rare(m))


@construct("relation", "keyed table", 4)
def keyed_table(m: Maker, number: int) -> Relation:
    key = [t.Field(name, m.rng.choice(_KEY_TYPES), False) for name in ("k", "l")[: m.rng.choice([1, 1, 2])]]
    return Relation(f"t{number}", "TABLE", (*key, *_columns(m)), tuple(c.name for c in key), rare=_rare(m))


@construct("relation", "stream", 2)
def plain_stream(m: Maker, number: int) -> Relation:
    return Relation(f"s{number}", "STREAM", tuple(_columns(m)), rare=_rare(m))


@construct("relation", "retained stream", 2)
def retained_stream(m: Maker, number: int) -> Relation:
    return Relation(f"s{number}", "STREAM", tuple(_columns(m)), retain=True, rare=_rare(m))


@construct("relation", "keyed stream", 3)
def keyed_stream(m: Maker, number: int) -> Relation:
    key = [t.Field(name, m.rng.choice(_KEY_TYPES), False) for name in ("k", "l")[: m.rng.choice([1, 1, 1, 2])]]
    columns = [*key, *_columns(m)]
    sequence = "q" if m.chance(0.6) else None
    if sequence:
        m.note("SEQUENCE BY")
        columns.append(t.Field("q", t.INT, False))
    codes = m.chance(0.4)
    if codes:
        m.note("OP BY")
    retain = m.chance(0.3)
    keys = tuple(c.name for c in key)
    return Relation(f"s{number}", "STREAM", tuple(columns), keys, retain, sequence, codes, _rare(m))


def _rare(m: Maker) -> bool:
    if m.chance(0.15):
        m.note("NaN and infinities")
        return True
    return False


def _views(m: Maker) -> tuple[View, ...]:
    views: list[View] = []
    levels: dict[str, int] = {}
    for number in range(m.rng.choice([1, 2, 2, 3, 3, 4])):
        hidden = {name: m.relations.pop(name) for name, level in levels.items() if level >= 3}
        view, query = _view(m, f"v{number}", views)
        m.relations |= hidden
        levels[view.name] = 1 + max((levels.get(name, 0) for name in m.reads), default=0)
        if levels[view.name] > 1:
            m.note(f"view of level {levels[view.name]}")
        m.relations[view.name] = query
        views.append(view)
        if m.chance(0.25):
            m.note("view that another one repeats")
            strategy = view.strategy if m.chance(0.6) else _strategy(m)
            views.append(replace(view, name=f"{view.name}_again", strategy=strategy))
            m.relations[views[-1].name] = query
            levels[views[-1].name] = levels[view.name]
    ordered = tuple(sorted(views, key=lambda view: view.created))
    return tuple(_perhaps_dropped(m, _perhaps_replanned(m, view), ordered) for view in ordered)


def _perhaps_kept(m: Maker, rng: random.Random, view: View) -> View:
    """Some views keep their changes. The choice is not the maker's, so that seeds stay what they are."""
    changes = rng.choices(["", "RETAIN CHANGES ALL", "STREAMED", "COMPLETE"], [4, 3, 2, 1])[0]
    m.note(f"view with changes: {changes or 'not kept'}")
    return replace(view, changes=changes)


def _perhaps_late(m: Maker, seed: int, views: tuple[View, ...]) -> tuple[View, ...]:
    """In some of the cases that run in tasks, all views come when rows have come: they are filled in tasks then."""
    rng = random.Random(f"late {seed}")
    if seed % 5 != 4 or rng.random() < 0.4 or not all(one.keeps_all for one in m.bases.values()):
        return views
    last = min(min(view.dropped or EPOCHS, view.replanned or EPOCHS) for view in views) - 1
    begins = min(last, rng.randint(2, 6))
    m.note("all views created in mid-run")
    return tuple(replace(view, created=max(view.created, begins)) for view in views)


def _perhaps_replanned(m: Maker, view: View) -> View:
    if not m.chance(0.15):
        return view
    m.note("view with another plan in mid-run")
    return replace(view, replanned=m.rng.randint(view.created + 1, EPOCHS - 1), replan=_strategy(m))


def _perhaps_dropped(m: Maker, view: View, views: tuple[View, ...]) -> View:
    """A view that no other reads may be dropped; those that share maps with it go on."""
    if any(re.search(rf"\b{view.name}\b", other.query) for other in views) or not m.chance(0.15):
        return view
    m.note("view dropped in mid-run")
    return replace(view, dropped=m.rng.randint(view.created + 1, EPOCHS - 1))


def _strategy(m: Maker) -> str | None:
    named = ["tree", "viewlet", "viewlet naive", "first order", "re-evaluate", "recompute"]
    strategy = m.rng.choices([None, *named], [5, 3, 3, 1, 2, 2, 1])[0]
    m.note(f"strategy {strategy or 'by default'}")
    return strategy


def _view(m: Maker, name: str, earlier: list[View]) -> tuple[View, Query]:
    m.marks, m.reads, m.leaves, m.duckdb = set(), set(), 0, True
    query: Query = m.make("query")
    while len({column.name for column in query.columns}) < len(query.columns):
        query = m.make("query")
    below = [view for view in earlier if view.name in m.reads]
    created = max((view.created for view in below), default=0)
    # What a keyed stream holds for a view that comes later depends on what the views before it could use.
    kept = all(m.bases[name].keeps_all for name in m.reads if name in m.bases)
    if created == 0 and kept and m.chance(0.2):
        m.note("view created in mid-run")
        created = m.rng.randint(1, EPOCHS - 3)
    strategy = _strategy(m)
    safe = m.duckdb and all(CONSTRUCTS[mark].duckdb for mark in m.marks if mark in CONSTRUCTS)
    duckdb = safe and all(view.duckdb for view in below)
    return View(name, query.sql, strategy, created, duckdb), query


def _epochs(m: Maker, views: tuple[View, ...]) -> tuple[Epoch, ...]:
    changes = Changes(m, Bags(m.bases))
    refreshed = policies.refreshed_epochs(m, views, EPOCHS)
    return tuple(refreshed.get(number) or m.make("epoch", changes) for number in range(1, EPOCHS + 1))
