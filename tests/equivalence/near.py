"""Views that others hold: the text of a view as a derived table, of which a new view asks less, or groups.

Headwater plans them over the view whose text it is, where that may be. The choice is not the maker's, so that the
queries of a seed stay what they are.
"""

from __future__ import annotations

import random
from dataclasses import replace

from headwater import types as t

from .case import View
from .grammar import Expr, Maker, Query
from .values import COLUMN_TYPES, draw, literal

_SHARE = 0.7


def near_views(m: Maker, seed: int, views: tuple[View, ...]) -> tuple[View, ...]:
    """The views of a case, and in most cases one more that one of them holds, made right after it."""
    rng = random.Random(f"near {seed}")
    held = [view for view in views if not view.refresh]
    if not held or rng.random() >= _SHARE:
        return views
    view = rng.choice([one for one in held if one.duckdb] or held)
    query = _near(rng, view.query, m.relations[view.name])
    m.note("view that another one holds")
    name = f"{view.name}_near"
    m.relations[name] = query
    strategy = rng.choice([*[None] * 6, "tree", "first order"])
    fresh = replace(view, name=name, query=query.sql, strategy=strategy, dropped=None, replanned=None, replan=None)
    at = views.index(view) + 1
    return (*views[:at], fresh, *views[at:])


def _near(rng: random.Random, text: str, inner: Query) -> Query:
    where = condition(rng, tuple(replace(one, sql=_name(one)) for one in inner.columns))
    source = f"FROM ({text}) near{f' WHERE {where}' if where else ''}"
    if rng.random() < 0.5:
        kept = [one for one in inner.columns if rng.random() < 0.7] or [inner.columns[0]]
        return Query(f"SELECT {', '.join(map(_name, kept))} {source}", tuple(kept), inner.rows)
    keys = [one for one in inner.columns if t.is_groupable(one.type) and rng.random() < 0.4]
    items = [(_name(one), one) for one in keys]
    items.append(("COUNT(*) AS near_n", Expr("near_n", t.BIGINT, inner.rows, name="near_n")))
    for i, one in enumerate(inner.columns):
        if one.type == t.INT:
            name = f"near_s{i}"
            items.append((f"SUM({_name(one)}) AS {name}", Expr(name, t.BIGINT, one.bound * inner.rows, name=name)))
        elif t.is_orderable(one.type):
            name = f"near_m{i}"
            items.append((f"MAX({_name(one)}) AS {name}", Expr(name, one.type, one.bound, one.exact, name=name)))
    by = f" GROUP BY {', '.join(map(_name, keys))}" if keys else ""
    columns = tuple(one for _, one in items)
    return Query(f"SELECT {', '.join(text for text, _ in items)} {source}{by}", columns, inner.rows)


def condition(rng: random.Random, columns: tuple[Expr, ...]) -> str:
    """A condition on a column that never fails, or nothing."""
    plain = [one for one in columns if one.type in COLUMN_TYPES and t.is_orderable(one.type)]
    if not plain or rng.random() < 0.4:
        return ""
    one = rng.choice(plain)
    if rng.random() < 0.2:
        return f"{one.sql} IS NOT NULL"
    return f"{one.sql} {rng.choice(['<', '>=', '<>', '='])} {literal(draw(rng, one.type, 0.0), one.type)}"


def _name(one: Expr) -> str:
    return one.sql if one.name is None else one.name
