"""Conditions on the clock as windows: what becomes of them, what is refused, and how they follow the clock."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter

import pytest

from headwater import types as t
from headwater.algebra.clock import rises
from headwater.algebra.during import NoWindow, at, follows_clock, with_windows
from headwater.algebra.evaluate import Bag, evaluate
from headwater.algebra.nodes import During, Node, Scan, Version
from headwater.algebra.read import read_node, read_scalar
from headwater.delta.clock import coming_from, entering, leaving, to_come
from headwater.delta.interpret import plus

SCHEMAS: dict[str, t.Schema] = {
    "e": (t.Field("a", t.INT), t.Field("ts", t.TIMESTAMP), t.Field("d", t.DATE), t.Field("s", t.BIGINT)),
    "f": (t.Field("a", t.INT), t.Field("ts", t.TIMESTAMP)),
}
MINUTE, HOUR = "{INTERVAL DAY TO SECOND '60000000'}", "{INTERVAL DAY TO SECOND '3600000000'}"
MONTH = "{INTERVAL YEAR TO MONTH '1'}"
COLUMNS: dict[str, t.Type] = {f"e.{f.name}": f.type for f in SCHEMAS["e"]}


def windowed(condition: str) -> Node:
    return with_windows(read_node(f"filter[{condition}](e as e)", SCHEMAS))


@pytest.mark.parametrize(
    ("condition", "starts", "ends"),
    [
        ("e.ts > now()", "true", "e.ts > now()"),
        ("e.ts <= now()", "e.ts <= now()", "true"),
        ("now() < e.ts", "true", "e.ts > now()"),
        (f"now() - {MINUTE} < e.ts and e.ts <= now()", "e.ts <= now()", f"e.ts > now() - {MINUTE}"),
        ("not e.ts > now()", "e.ts <= now()", "true"),
        ("not (e.ts > now() or now() < e.ts)", "e.ts <= now()", "true"),
        ("e.d = cast(now() as DATE)", "e.d <= cast(now() as DATE)", "e.d >= cast(now() as DATE)"),
        (f"now() - e.ts < {MINUTE}", "true", f"e.ts > now() - {MINUTE}"),
        (f"e.ts + {MINUTE} >= now()", "true", f"e.ts >= now() - {MINUTE}"),
        ("unix_seconds(now()) - e.s <= 5L", "true", "e.s >= unix_seconds(now()) - 5L"),
        ("datediff(cast(now() as DATE), e.d) < 7", "true", "e.d > cast(now() as DATE) - 7"),
        (f"e.d > cast(now() as DATE) - {MONTH}", "true", f"e.d > cast(now() as DATE) - {MONTH}"),
        ("now() > {TIMESTAMP '2020-01-01T00:00:00'}", "{TIMESTAMP '2020-01-01T00:00:00'} < now()", "true"),
    ],
)
def test_what_becomes_of_a_condition(condition: str, starts: str, ends: str) -> None:
    node = windowed(condition)
    assert isinstance(node, During)
    assert (str(node.starts), str(node.ends)) == (starts, ends)
    assert read_node(str(node), SCHEMAS) == node


@pytest.mark.parametrize(
    "condition",
    [
        "e.ts <> now()",
        "e.ts > now() or e.a > 1",
        "e.ts <=> now()",
        "e.ts > now() - (now() - e.ts)",
        f"e.ts > now() - {MONTH}",
        "e.a > month(cast(now() as DATE))",
        "e.s > 5L - unix_seconds(now())",
        "case(e.ts > now(), true, false)",
        "e.ts > now() - {INTERVAL DAY TO SECOND '100000000000000000'}",
    ],
)
def test_what_has_no_two_moments_is_no_window(condition: str) -> None:
    with pytest.raises(NoWindow):
        windowed(condition)


def test_the_clock_has_no_place_outside_conditions() -> None:
    for tree in ("project[x := now()](e as e)", "present[n := #count](sum[k := now(); ](e as e))"):
        with pytest.raises(NoWindow):
            with_windows(read_node(tree, SCHEMAS))


def test_months_are_added_to_days_only() -> None:
    for text, good in [
        (f"now() + {MONTH}", False),
        (f"cast(now() as DATE) + {MONTH}", True),
        (f"date_trunc('DAY', now()) - {MONTH}", True),
        (f"date_trunc('HOUR', now()) - {MONTH}", False),
    ]:
        assert rises(read_scalar(text, {})) is good, text


def test_what_may_raise_stays_behind_the_window_that_is_written_before_it() -> None:
    node = windowed("e.a > 0 and e.ts > now() and {DOUBLE '1.0'} / cast(e.a as DOUBLE) > {DOUBLE '0.5'} and e.a < 9")
    assert [type(one).__name__ for one in node.walk()] == ["Filter", "During", "Filter", "Scan"]


def test_a_window_holds_only_what_is_needed_above_it() -> None:
    tree = "present[n := #count](sum[k := e.a; ](filter[e.ts > now()](e as e)))"
    [window] = [one for one in with_windows(read_node(tree, SCHEMAS)).walk() if isinstance(one, During)]
    assert window.column_names == ("e.a", "e.ts")


def test_windows_that_are_alike_hold_the_same() -> None:
    window = "filter[{0}.ts > now() and {0}.a > 1](f as {0})"
    tree = f"project[x := x.a](join[x.a = y.a and y.ts < x.ts]({window.format('x')}, {window.format('y')}))"
    both = f"project[x := x.a](join[y.a > 0](project[x.a := x.a]({window.format('x')}), {window.format('y')}))"
    for text in (tree, both):
        found = [one for one in with_windows(read_node(text, SCHEMAS)).walk() if isinstance(one, During)]
        assert {len(one.column_names) for one in found} == {2}
    below = f"project[x := x.a]({window.format('x')})".replace("f as", "e as").replace("x.a > 1", "x.s > 1L")
    [one] = [one for one in with_windows(read_node(below, SCHEMAS)).walk() if isinstance(one, During)]
    assert one.column_names == ("x.a", "x.ts")


def test_a_condition_of_a_join_becomes_a_window_above_it() -> None:
    node = with_windows(read_node("join[e.a = f.a and f.ts > now()](e as e, f as f)", SCHEMAS))
    assert [type(one).__name__ for one in node.walk()] == ["During", "Join", "Scan", "Scan"]


CONDITIONS = [
    "e.ts > now()",
    "e.ts <= now()",
    f"now() - {HOUR} < e.ts and e.ts <= now()",
    "e.d = cast(now() as DATE)",
    "date_trunc('MONTH', e.ts) = date_trunc('MONTH', now())",
    f"e.d <= cast(now() as DATE) and e.d > cast(now() as DATE) - {MONTH}",
    f"e.ts <= now() and e.d >= cast(now() as DATE) and e.ts > now() - {HOUR}",
    "e.ts <= now() and e.d <= cast(now() as DATE)",
    "unix_seconds(now()) - 1704067200L - e.s < 5L",
    "now() >= {TIMESTAMP '2024-01-02T00:00:00'}",
]
START = dt.datetime(2024, 1, 1)


def random_rows(rng: random.Random) -> Bag:
    def row() -> tuple[object, ...]:
        ts = START + dt.timedelta(minutes=15 * rng.randint(0, 200)) if rng.random() < 0.9 else None
        day = (START + dt.timedelta(days=rng.randint(0, 60))).date() if rng.random() < 0.9 else None
        return rng.randint(0, 2), ts, day, rng.randint(0, 50) if rng.random() < 0.9 else None

    return Counter(row() for _ in range(30))


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_window_follows_the_clock_by_what_it_holds(condition: str) -> None:
    """What `leaving` and `entering` say leads from the window at one moment to the window at the next."""
    tree = read_node(f"filter[{condition}](e as e)", SCHEMAS)
    window = with_windows(tree)
    assert isinstance(window, During)
    coming = to_come(window)
    rng = random.Random(condition)
    for _ in range(5):
        rows = random_rows(rng)
        before = START
        for _ in range(12):
            now = before + rng.choice(STEPS)
            alive, later = (filled(one, rows, now) for one in (window, coming))
            was_alive, was_later = (filled(one, rows, before) for one in (window, coming))
            assert alive == evaluate(at(tree, now), lambda scan, rows=rows: rows)
            step = Step({"m": was_alive, "f": was_later}, now, before)
            for term in leaving(coming, "f", coming.schema) if coming is not None else ():
                step.add("f", term)
            for term in leaving(window, "m", window.schema):
                step.add("m", term)
            if coming is not None:
                step.add("m", entering(window, coming_from("f", coming.schema)))
            assert step.now("m") == alive, f"{before} to {now}"
            assert step.now("f") == later, f"{before} to {now}"
            before = now


STEPS = [dt.timedelta(0), dt.timedelta(minutes=15), dt.timedelta(hours=1), dt.timedelta(days=1), dt.timedelta(days=31)]


def filled(window: During | None, rows: Bag, moment: dt.datetime) -> Bag:
    return evaluate(at(window, moment), lambda scan: rows) if window is not None else Counter()


class Step:
    """The clock's step: changes of maps add up beside what they hold."""

    def __init__(self, held: dict[str, Bag], now: dt.datetime, before: dt.datetime) -> None:
        self._held, self._clocks = held, {"now": now, "before": before}
        self._changes: dict[str, Bag] = {name: Counter() for name in held}

    def add(self, name: str, term: Node) -> None:
        def read(scan: Scan) -> Bag:
            return self._changes[scan.relation] if scan.version is Version.DELTA else self._held[scan.relation]

        fixed = at(with_before(term, self._clocks["before"]), self._clocks["now"])
        self._changes[name] = plus(self._changes[name], evaluate(fixed, read))

    def now(self, name: str) -> Bag:
        return plus(self._held[name], self._changes[name])


def with_before(node: Node, moment: dt.datetime) -> Node:
    from headwater.algebra.clock import with_clock
    from headwater.algebra.nodes import transform
    from headwater.algebra.scalars import Literal
    from headwater.algebra.simplify.scalars_of import map_scalars

    values = {"before": Literal(moment, t.TIMESTAMP)}
    return transform(node, lambda one: map_scalars(one, lambda scalar: with_clock(scalar, values)))


def test_only_trees_with_a_clock_follow_it() -> None:
    assert not follows_clock(read_node("filter[e.a > 1](e as e)", SCHEMAS))
    assert follows_clock(windowed("e.ts > now()"))
