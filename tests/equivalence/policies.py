"""Refresh policies of a case's views, and what they mean, said plainly.

A view reads `t@p` where it would read `t`: what t held at the last tick of policy p. Nothing here is Headwater's but
the names of such relations.
"""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from headwater import types as t

from .bags import Bag
from .case import Case, Epoch, Operation, Relation, View
from .grammar import Maker

#: The relation that gives points, and nothing else.
POINTS = "p0"
PERIODS = ("EVERY 4 SECONDS", "EVERY 5 MINUTES", "EVERY 1 DAY", "EVERY 30 DAYS")
_SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86_400}
_TIMES = (t.INT, t.BIGINT, t.SMALLINT, t.TINYINT, t.DATE, t.TIMESTAMP)
#: What REFRESH says of views that have no policy.
TIMINGS = ("ON QUERY", "AUTO")
_CLOCK = re.compile(r"\b(now|current_timestamp|current_date|curdate|unix_timestamp)\b", re.IGNORECASE)
_READ = re.compile(r"\b(FROM|JOIN) ([tsv]\d\w*)\b")
_ZERO = datetime(1970, 1, 1)


def points(seed: int) -> Relation:
    """A stream of points, or a table, from which they can also go."""
    kind = random.Random(f"points {seed}").choice(["STREAM", "TABLE", "TABLE"])
    return Relation(POINTS, kind, (t.Field("at", t.BIGINT, False),))


def synchronised(m: Maker, seed: int, views: Sequence[View]) -> tuple[tuple[View, ...], bool]:
    """The views of a case with refresh policies, and whether it needs points."""
    out: list[View] = []
    for view in views:
        # The choice is not the maker's, so that the queries of a seed stay what they are.
        rng = random.Random(f"refresh {seed} {view.name}")
        streams = [POINTS, *(one.name for one in out if _is_time(m, one) and _lives_as_long(one, view))]
        out.append(_with_one_input(m, rng, _with_policy(m, rng, view, streams), streams))
    used = any(re.search(rf"\b{POINTS}\b", f"{one.refresh} {one.query}") for one in out)
    return tuple(out), used


def on_query(m: Maker, seed: int, views: Sequence[View]) -> tuple[View, ...]:
    """The views of a case, some of which are evaluated when they are read, or perhaps are."""
    out = list(views)
    for place, view in enumerate(views):
        rng = random.Random(f"on query {seed} {view.name}")
        if rng.random() > 0.3 or view.refresh or not _may_wait(m, view, views):
            continue
        refresh = "AUTO" if view.replanned is not None or rng.random() < 0.25 else "ON QUERY"
        m.note(f"REFRESH {refresh}")
        out[place] = replace(view, refresh=refresh, strategy=None, changes="", replan=None)
    return tuple(out)


def _may_wait(m: Maker, view: View, views: Sequence[View]) -> bool:
    """Nothing needs its changes, and what is over it can be made when it is."""
    for other in views:
        if not re.search(rf"\b{view.name}\b", f"{other.query} {other.refresh}"):
            continue
        if other.refresh or f"R({view.name}" in other.query or re.search(rf"R\(\w+, {view.name}\)", other.query):
            return False
        if other.created != view.created or other.strategy is not None or other.replanned is not None:
            return False
    return True


def _is_time(m: Maker, view: View) -> bool:
    columns = m.relations[view.name].columns
    return len(columns) == 1 and columns[0].type in _TIMES


def _lives_as_long(stream: View, view: View) -> bool:
    return stream.dropped is None and stream.created <= view.created


def _with_policy(m: Maker, rng: random.Random, view: View, streams: Sequence[str]) -> View:
    if _CLOCK.search(view.query) or rng.random() > 0.35:
        return view
    stream = rng.choice(streams)
    refresh = rng.choice([*PERIODS, "MANUAL", "MANUAL", *([f"ON {stream}"] * 4)])
    m.note(f"REFRESH {'ON a view' if refresh.startswith('ON v') else refresh.split()[0]}")
    return replace(view, refresh=refresh)


def _with_one_input(m: Maker, rng: random.Random, view: View, streams: Sequence[str]) -> View:
    """Perhaps one input has a synchronisation stream of its own."""
    reads = list(_READ.finditer(view.query))
    if not reads or rng.random() > 0.15:
        return view
    read = rng.choice(reads)
    m.note("R(relation, stream)")
    text = f"{read[1]} R({read[2]}, {rng.choice(streams)})"
    return replace(view, query=view.query[: read.start()] + text + view.query[read.end() :])


def refreshed_epochs(m: Maker, views: Sequence[View], epochs: int) -> dict[int, Epoch]:
    """Epochs that are REFRESH statements, by number from 1."""
    out: dict[int, Epoch] = {}
    for view in views:
        if view.refresh and view.refresh not in TIMINGS:
            share = 0.3 if view.refresh == "MANUAL" else 0.06
            for number in range(view.created + 1, (view.dropped or epochs) + 1):
                if m.rng.random() < share:
                    m.note("REFRESH of a view with a policy")
                    out[number] = (Operation("refresh", view.name),)
    return out


# -- what they mean --


def is_synchronised(name: str) -> bool:
    return "@" in name


def source_of(name: str) -> str:
    """The relation that a synchronised relation stands for."""
    return name.split("@", 1)[0]


def policy_of(name: str) -> str:
    return name.split("@", 1)[1]


def name_of(relation: str, refresh: str, view: str) -> str:
    """The name of a relation as a view with this policy reads it."""
    if refresh == "MANUAL":
        return f"{relation}@manual {view}"
    if refresh.startswith("ON "):
        return f"{relation}@{refresh[3:]}"
    _, count, unit = refresh.split()
    short = {"SECONDS": "s", "MINUTES": "min", "DAY": "d", "DAYS": "d"}[unit]
    return f"{relation}@{count}{short}"


def begins_empty(name: str, relations: Collection[Relation]) -> bool:
    """Whether a synchronised relation has none of what its relation held when it was made."""
    found = next((one for one in relations if one.name == source_of(name)), None)
    return found is not None and found.kind == "STREAM" and not found.key and not found.retain


def ticks(policy: str, before: datetime | None, now: datetime, changes: Mapping[str, Bag], asked: set[str]) -> bool:
    """Whether a policy ticks in an epoch.

    Args:
        policy: what stands behind the @.
        before: the clock of the epoch before.
        now: the clock of this one.
        changes: of relations and views in it.
        asked: policies of a view that is refreshed in it.
    """
    if policy in asked:
        return True
    if policy.startswith("manual "):
        return False
    if found := re.fullmatch(r"(\d+)(s|min|h|d)", policy):
        period = int(found[1]) * _SECONDS[found[2]]
        if before is None:
            return (now - _ZERO).total_seconds() % period == 0
        return (now - _ZERO).total_seconds() // period > (before - _ZERO).total_seconds() // period
    return any(n > 0 for n in changes.get(policy, {}).values())


def without_lost_refreshes(case: Case) -> Case:
    """The case without REFRESH of views that are not there (any more), or have no policy."""

    def there(operation: Operation, number: int) -> bool:
        view = next((one for one in case.views if one.name == operation.relation), None)
        return view is not None and view.created < number and (view.dropped is None or number <= view.dropped)

    epochs = tuple(
        tuple(one for one in epoch if one.kind != "refresh" or there(one, number))
        for number, epoch in enumerate(case.epochs, 1)
    )
    return replace(case, epochs=epochs)
