"""From a seed to a story about streams with parts."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta

from headwater import types as t

from . import over, shapes  # noqa: F401  (they register)
from .case import Case, Relation, View
from .draft import Draft
from .story import Story
from .subscripts import references

STEPS = 12
_LENGTHS = (10, 20, 60)


def make_case(seed: int) -> Case:
    """The case of a seed: always the same one."""
    return generate(seed)[0]


def generate(seed: int) -> tuple[Case, Counter[str]]:
    """The case of a seed, and how often each shape occurs in it."""
    d = Draft(random.Random(f"parts {seed}"))
    relations = _relations(d)
    views = _views(d, relations)
    views = tuple(_perhaps_dropped(d, view, views) for view in views)
    if d.chance(0.15):
        d.note("before anything else there was 1970")
        start = datetime(1970, 1, 1) + timedelta(seconds=d.rng.randrange(30))
    else:
        start = datetime(2024, 1, 1) + timedelta(seconds=d.rng.randrange(600))
    names = tuple(view.name for view in views if not view.fragile)
    story = Story(d, relations, names, start, has_long_gap=d.chance(0.1))
    return Case(seed, relations, views, story.steps(STEPS), disk=seed % 5 == 0), d.used


def _relations(d: Draft) -> tuple[Relation, ...]:
    made: list[Relation] = []
    for number in range(d.pick(1, 1, 2)):
        columns = [t.Field("ts", t.TIMESTAMP, False), t.Field("k", t.STRING), t.Field("g", t.INT), t.Field("v", t.INT)]
        if d.chance(0.2):
            columns.append(t.Field("x", t.DOUBLE))
        lateness = d.rng.choices([None, 0, 10, 45, 120], [6, 1, 1, 2, 2])[0]
        d.note(f"lateness {lateness}")
        retain = d.chance(0.7)
        d.note("stream with RETAIN" if retain else "stream without RETAIN")
        if not retain and lateness is not None:
            d.note("stream whose old parts may go")
            d.thrifty.add(f"s{number}")
        made.append(Relation(f"s{number}", tuple(columns), d.pick(*_LENGTHS), lateness, retain))
        d.lengths[made[-1].name] = made[-1].length or 0
    if d.chance(0.6):
        columns = [t.Field("k", t.STRING), t.Field("g", t.INT), t.Field("w", t.INT)]
        made.append(Relation("t0", tuple(columns)))
        d.wholes.append("t0")
    return tuple(made)


def _views(d: Draft, relations: tuple[Relation, ...]) -> tuple[View, ...]:
    made: dict[str, View] = {}
    if d.wholes and d.chance(0.4):
        d.note("ordinary view that is read whole")
        made["o0"] = View("o0", "SELECT k, max(g) AS g, CAST(count(*) AS INT) AS w FROM t0 GROUP BY k")
        d.wholes.append("o0")
    streams = [one for one in relations if one.length is not None]
    for number in range(d.pick(2, 3, 3, 4, 5)):
        view = _part_view(d, f"v{number}", [one.name for one in streams], made)
        made[view.name] = _when(d, view, made)
        d.lengths[view.name] = view.length
        _more(d, number, made, [one.name for one in streams if one.retain])
    return tuple(sorted(made.values(), key=lambda view: view.created))


def _more(d: Draft, number: int, made: dict[str, View], retained: list[str]) -> None:
    """Other views over what there is."""
    parted = [name for name, view in made.items() if view.update]
    if d.chance(0.5):
        d.only, d.duckdb = tuple(parted + retained), True
        plain = View(f"o{number + 1}", d.make("ordinary"))
        made[plain.name] = _when(d, plain, made)
        if " AS g, " in plain.query and plain.created == 0 and d.chance(0.7):
            d.note("ordinary view over parts that is read whole")
            d.wholes.append(plain.name)
    if d.chance(0.12):
        d.note("view that fails")
        name = f"f{number}"
        read = d.rng.choice(parted)
        text = d.pick(
            f"SELECT 10 DIV (v - {d.pick(1, 2, 3)}) AS x FROM {read}", f"SELECT assert_true(g < 2) AS x FROM {read}"
        )
        text = text if "DIV" in text else f"SELECT k, 10 % (g - 1) AS x FROM {read}"
        made[name] = _when(d, View(name, text, fragile=True), made)
    for family in ("window", "pattern"):
        if d.chance(0.2):
            d.only = tuple(parted + [name for name in d.lengths if name.startswith("s")])
            view = View(f"{family[0]}{number}", d.make(family))
            made[view.name] = _when(d, view, made)


def _part_view(d: Draft, name: str, streams: list[str], made: dict[str, View]) -> View:
    d.duckdb, d.itself = True, None
    d.own = d.rng.choices(_LENGTHS, [4, 4, 3])[0]
    usable = [one for one in d.lengths if max(d.lengths[one], d.own) % min(d.lengths[one], d.own) == 0]
    sources = d.rng.sample(usable, min(len(usable), d.rng.choices([1, 2], [3, 2])[0]))
    while (
        d.chance(0.6) and not any(one.startswith("v") for one in sources) and any(one.startswith("v") for one in usable)
    ):
        sources[0] = d.rng.choice([one for one in usable if one.startswith("v")])
    thrifty = not d.thrifty.isdisjoint(sources)
    if thrifty:
        sources = [one for one in sources if one in d.thrifty or one in streams or made[one].created == 0]
        d.thrifty.add(name)
    d.only = tuple(dict.fromkeys(sources))
    wholes, d.wholes = d.wholes, [] if thrifty else d.wholes
    recursive = d.chance(0.45)
    d.variable = "j"
    if recursive:
        d.note("view over itself")
        d.itself = name
        update = d.make("recursion")
    else:
        update = d.make("query")
    initialize = _first(d, update)
    d.wholes = wholes
    backfill = d.chance(0.5)
    d.note("BACKFILL" if backfill else "no BACKFILL")
    return View(name, "", initialize, update, d.own, backfill, duckdb=d.duckdb)


def _first(d: Draft, update: str) -> str:
    """What the first part holds; it reads something of the present."""
    if d.itself is None and d.chance(0.6) and _reads_present(d, update):
        return re.sub(r"\[([^\]]*)\]", lambda one: one[0].replace("j", "i"), update)
    d.variable, d.itself = "i", None
    while True:
        made = d.make("query")
        if _reads_present(d, made):
            return made


def _reads_present(d: Draft, query: str) -> bool:
    """Whether nothing that a query reads is of a distant past, so that it is clear where to begin."""
    for one in references(query):
        reach = max(
            (last + 1) * d.lengths[one.relation] - at * d.own
            for at in range(600, 660)
            for last in [max(one.parts(at), default=0)]
        )
        if reach == d.own or (d.lengths[one.relation] > d.own and reach <= d.own):
            return True
    return False


def _when(d: Draft, view: View, made: dict[str, View]) -> View:
    below = [other.created for other in made.values() if view.reads(other.name)]
    created = max(below, default=0)
    late = view.has_parts and any(view.reads(name) for name in d.thrifty)
    if d.chance(0.3) and not late:
        d.note("view created in mid-run")
        created = d.rng.randint(created, STEPS - 3)
    return replace(view, created=created)


def _perhaps_dropped(d: Draft, view: View, views: tuple[View, ...]) -> View:
    if any(other.reads(view.name) for other in views if other is not view) or not d.chance(0.15):
        return view
    d.note("view dropped in mid-run")
    return replace(view, dropped=d.rng.randint(view.created + 1, STEPS))
