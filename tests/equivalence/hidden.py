"""Views of a stream that keeps no rows, which hide some groups and change between being kept and being evaluated.

When such a view changes from one to the other, all that is known of the groups it hides is in its maps. Whether any is
lost shows when a group that was hidden comes to be shown.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from headwater import types as t

from .case import Relation, View
from .grammar import Expr, Maker, Query
from .values import bound

#: The stream, and the table that some views join it with.
STREAM, TABLE = "s9", "t9"
_SHARE = 0.3
_TOTALS = {
    "count(*)": t.BIGINT,
    "count(b)": t.BIGINT,
    "sum(b)": t.BIGINT,
    "min(b)": t.INT,
    "max(b)": t.INT,
    "sum(w)": t.BIGINT,
}
_WHERE = ("", "", " WHERE b IS NOT NULL", " WHERE a < 3")
#: They come and go as rows come, but mostly come.
_HAVING = ("count(*) > 1", "count(*) > 2", "count(*) > 3", "count(b) > 1", "count(*) % 2 = 0", "sum(b) > 0")


def hidden(m: Maker, seed: int, epochs: int) -> tuple[View, ...] | None:
    """The views of a case that is about nothing else, with their relations; mostly there are none.

    Such a case is small, and so runs fast: what is to be seen takes several things to come together.
    """
    # The choice is not the maker's, so that the queries of other seeds stay what they are.
    rng = random.Random(f"hidden {seed}")
    if rng.random() > _SHARE:
        return None
    m.bases.clear()
    m.filters.clear()
    m.used.clear()
    m.note("hidden groups of a view that changes its timing")
    columns = (t.Field("a", t.INT), t.Field("b", t.INT))
    m.bases[STREAM] = Relation(STREAM, "STREAM", columns)
    joined = rng.random() < 0.4
    if joined:
        m.note("hidden groups over a join")
        m.bases[TABLE] = Relation(TABLE, "TABLE", (t.Field("k", t.INT), t.Field("w", t.INT)))
    # Mostly all add up the same, so that one may be filled from the map of another, which hides other groups.
    where = rng.choice(_WHERE)
    totals = rng.sample([one for one in _TOTALS if joined or one != "sum(w)"], rng.randint(1, 3))
    views = []
    for number in range(3):
        shown = totals if number == 0 or rng.random() < 0.5 else rng.sample(totals, 1)
        source = f"{STREAM} JOIN {TABLE} ON a = k" if joined else STREAM
        rows = f"{source}{where if rng.random() < 0.8 else rng.choice(_WHERE)}"
        views.append(_view(m, rng, f"v9{number}", rows, shown, epochs))
    return tuple(views)


def _view(m: Maker, rng: random.Random, name: str, rows: str, totals: Sequence[str], epochs: int) -> View:
    items = ", ".join(f"{one} AS x{i}" for i, one in enumerate(totals))
    text = f"SELECT a, {items} FROM {rows} GROUP BY a HAVING {rng.choice(_HAVING)}"
    types = {"a": t.INT, **{f"x{i}": _TOTALS[one] for i, one in enumerate(totals)}}
    m.relations[name] = Query(text, tuple(Expr(one, of, bound(of), name=one) for one, of in types.items()), 20)
    return View(name, text, replanned=rng.randint(2, epochs - 3), refresh="AUTO")
