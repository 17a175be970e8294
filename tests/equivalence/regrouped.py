"""Views that add up the same rows by different keys, and so can share finer groups.

The choice is not the maker's, so that the queries of a seed stay what they are.
"""

from __future__ import annotations

import random
from dataclasses import replace

from headwater import types as t

from .case import Relation, View
from .grammar import Expr, Maker, Query
from .near import condition
from .policies import PERIODS

_SHARE = 0.5
#: Of these, DuckDB's groups, sums and extremes are Spark's.
_PLAIN = (t.INT, t.BIGINT, t.STRING, t.DATE, t.BOOLEAN, t.TIMESTAMP)


def regrouped_views(m: Maker, seed: int, views: tuple[View, ...], epochs: int) -> tuple[View, ...]:
    """The views of a case, and in half of all cases some more that group the same rows."""
    rng = random.Random(f"regrouped {seed}")
    if rng.random() >= _SHARE:
        return views
    m.note("views that group the same rows")
    rows = _Rows(m, rng)
    refresh = rng.choice(["", "", "", "", rng.choice(PERIODS)])
    begin = rng.randint(1, epochs - 4) if rows.keeps_all and rng.random() < 0.3 else 0
    made = []
    for number in range(rng.choice([2, 2, 3, 4])):
        query, plain = rows.grouped(number)
        name = f"vg{number}"
        m.relations[name] = query
        later = rng.randint(0, 2) if rows.keeps_all and rng.random() < 0.4 else 0
        view = View(name, query.sql, None, begin + later, plain)
        mine = refresh if rng.random() < 0.9 else ""
        changes = rng.choice(["", "", "RETAIN CHANGES ALL", "STREAMED"])
        strategy = rng.choice([*[None] * 8, "tree", "first order"])
        replanned = rng.randint(view.created + 1, epochs - 1) if rng.random() < 0.5 else None
        replan = rng.choice([*[None] * 5, "first order", "recompute"]) if replanned is not None else None
        dropped = rng.randint(view.created + 1, epochs - 1) if rng.random() < 0.25 else None
        if dropped is not None and replanned is not None and dropped <= replanned:
            replanned = replan = None
        view = replace(view, refresh=mine, strategy=strategy, changes=changes)
        made.append(replace(view, replanned=replanned, replan=replan, dropped=dropped))
    return tuple(sorted((*views, *made), key=lambda view: view.created))


class _Rows:
    """A relation, or two that are joined, some of whose rows are grouped."""

    def __init__(self, m: Maker, rng: random.Random) -> None:
        self._rng = rng
        names = list(m.bases)
        chosen = [rng.choice(names)]
        if len(names) > 1 and rng.random() < 0.35:
            chosen.append(rng.choice([name for name in names if name != chosen[0]]))
        bases = [m.bases[name] for name in chosen]
        self.keeps_all = all(one.keeps_all for one in bases)
        #: Extremes of rows that may go are evaluated by key, and share nothing.
        grow = all(one.kind == "STREAM" and not one.key for one in bases)
        self._extremes = 0.8 if grow else 0.1
        self.columns = tuple(
            replace(column, sql=f"r{i}.{column.name}")
            for i, name in enumerate(chosen)
            for column in m.relations[name].columns
        )
        self._rows = 1.0
        for name in chosen:
            self._rows *= m.relations[name].rows
        texts = [f"(SELECT * FROM {name} WHERE {m.filters[name]})" if name in m.filters else name for name in chosen]
        self._source = " CROSS JOIN ".join(f"{text} r{i}" for i, text in enumerate(texts))
        asked = [condition(rng, self.columns), *self._equality(bases)]
        self._where = " AND ".join(one for one in asked if one)

    def _equality(self, bases: list[Relation]) -> list[str]:
        if len(bases) < 2:
            return []
        a, b = bases
        pairs = [f"r0.{x.name} = r1.{y.name}" for x in a.columns for y in b.columns if x.type == y.type in _PLAIN]
        return [self._rng.choice(pairs)] if pairs else []

    def grouped(self, number: int) -> tuple[Query, bool]:
        """A view of groups, and whether DuckDB's answer is Spark's."""
        rng = self._rng
        able = [one for one in self.columns if t.is_groupable(one.type)]
        keys = rng.sample(able, min(len(able), rng.choice([0, 1, 1, 1, 2])))
        items = [(f"{one.sql} AS k{i}", replace(one, sql=f"k{i}", name=f"k{i}")) for i, one in enumerate(keys)]
        used = [one.type for one in keys]
        items.append(("COUNT(*) AS n", Expr("n", t.BIGINT, self._rows, name="n")))
        for i, one in enumerate(self.columns):
            if rng.random() < 0.5:
                text, kind = self._aggregate(one)
                items.append((f"{text} AS m{i}", Expr(f"m{i}", kind, 0.0, name=f"m{i}")))
                used.append(one.type)
        where = f" WHERE {self._where}" if self._where else ""
        by = f" GROUP BY {', '.join(one.sql for one in keys)}" if keys else ""
        having = f" HAVING COUNT(*) > {rng.randint(1, 3)}" if rng.random() < 0.3 else ""
        text = f"SELECT {', '.join(text for text, _ in items)} FROM {self._source}{where}{by}{having}"
        return Query(text, tuple(one for _, one in items), self._rows), all(one in _PLAIN for one in used)

    def _aggregate(self, one: Expr) -> tuple[str, t.Type]:
        ways: list[tuple[str, t.Type]] = [(f"COUNT({one.sql})", t.BIGINT)]
        if isinstance(one.type, t.Integer):
            ways += [(f"SUM({one.sql})", t.BIGINT), (f"AVG({one.sql})", t.DOUBLE)] * 2
        if t.is_orderable(one.type) and self._rng.random() < self._extremes:
            ways += [(f"{self._rng.choice(['MIN', 'MAX'])}({one.sql})", one.type)] * 2
        if t.is_groupable(one.type) and self._rng.random() < 0.1:
            ways.append((f"COUNT(DISTINCT {one.sql})", t.BIGINT))
        return self._rng.choice(ways)
