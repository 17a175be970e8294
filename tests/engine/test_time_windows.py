"""Views over windows of time and over sessions, beside what a few lines of Python make of the same rows."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable

import pytest

import headwater as hw
from tests.engine.support import Changes, bag, check_views, opened

Row = tuple[int, str | None, dt.datetime | None, int]
Groups = dict[tuple[object, ...], list[int]]

START = dt.datetime(1969, 12, 31, 23, 50)  # some of the times are before 1970
MICRO = dt.timedelta(microseconds=1)
TABLE = "CREATE TABLE seen (id INT PRIMARY KEY, k STRING, ts TIMESTAMP, v INT NOT NULL)"


def minutes(number: float) -> dt.timedelta:
    return dt.timedelta(minutes=number)


def in_windows(rows: Iterable[Row], length: float, slide: float, start: float) -> Groups:
    """Every window is tried: which rows are in it."""
    found: Groups = defaultdict(list)
    first = dt.datetime(1969, 12, 31) + minutes(start)
    for number in range(round(3 * 24 * 60 / slide)):
        begin = first + number * minutes(slide)
        for _, k, ts, v in rows:
            if ts is not None and begin <= ts < begin + minutes(length):
                found[k, begin, begin + minutes(length)].append(v)
    return found


def in_sessions(rows: Iterable[Row], gap: dt.timedelta, by_key: bool) -> Groups:
    """Rows in the order of time, each into the session before or into a new one."""
    found: Groups = {}
    keys: dict[object, list[tuple[dt.datetime, int]]] = defaultdict(list)
    for _, k, ts, v in rows:
        if ts is not None:
            keys[k if by_key else "all"].append((ts, v))
    for k, times in keys.items():
        session: list[tuple[dt.datetime, int]] = []
        for ts, v in [*sorted(times), (dt.datetime.max, 0)]:
            if session and ts - session[-1][0] > gap:
                found[(k, session[0][0], session[-1][0] + gap)] = [one for _, one in session]
                session = []
            session.append((ts, v))
    return found


WINDOWS = [
    ("'10 minutes'", (10, 10, 0)),
    ("'10 minutes', '5 minutes'", (10, 5, 0)),
    ("'10 minutes', '3 minutes'", (10, 3, 0)),
    ("'10 minutes', '4 minutes', '-1 minute'", (10, 4, 3)),
    ("'1 hour', '10 minutes', '7 minutes'", (60, 10, 7)),
    ("'1 minute 30 seconds', 30000000", (1.5, 0.5, 0)),
]


def changed_at_random(db: hw.Database, rows: dict[int, Row], rng: random.Random) -> None:
    """One epoch: rows come, go and move; times are on the edges of windows, or a microsecond before."""

    def made(number: int) -> Row:
        ts = START + minutes(rng.randint(0, 40)) - rng.choice([dt.timedelta(0), MICRO])
        return number, rng.choice(["a", "b", None]), None if rng.random() < 0.1 else ts, rng.randint(1, 9)

    gone = rng.sample(sorted(rows), min(len(rows), rng.randint(0, 6)))
    for number in gone:
        del rows[number]
    put = {number: made(number) for number in rng.sample(range(40), 8)}
    rows.update(put)
    with db.epoch() as epoch:
        epoch.delete_keys("seen", [(number,) for number in gone if number not in put])
        epoch.upsert("seen", list(put.values()))


def follows(query: str, expected: Callable[[Iterable[Row]], Counter[tuple[object, ...]]], seed: int) -> None:
    """The view holds what is expected after every epoch, and its changes add up to it."""
    rng = random.Random(seed)
    with opened() as db:
        db.execute(TABLE)
        db.execute(f"CREATE VIEW shown AS {query}")
        changes = Changes(db)
        rows: dict[int, Row] = {}
        told: Counter[tuple[object, ...]] = Counter()
        for _ in range(8):
            changed_at_random(db, rows, rng)
            told.update(changes.last.get("shown", {}))
            wanted = expected(rows.values())
            assert bag(db, "SELECT * FROM shown") == wanted
            assert Counter({row: n for row, n in told.items() if n}) == wanted
            assert bag(db, query) == wanted
            check_views(db)


@pytest.mark.parametrize(("arguments", "given"), WINDOWS, ids=[arguments for arguments, _ in WINDOWS])
def test_windows_follow_their_rows(arguments: str, given: tuple[float, float, float]) -> None:
    def expected(rows: Iterable[Row]) -> Counter[tuple[object, ...]]:
        return Counter([(*key, len(vs), sum(vs)) for key, vs in in_windows(rows, *given).items()])

    follows(
        f"SELECT k, window.start, window.end, count(*) AS n, sum(v) AS s FROM seen GROUP BY window(ts, {arguments}), k",
        expected,
        seed=1,
    )


def test_aggregates_that_do_not_add_up() -> None:
    def expected(rows: Iterable[Row]) -> Counter[tuple[object, ...]]:
        groups = in_windows(rows, 10, 3, 0)
        return Counter([(max(vs), (a, b), len(set(vs)), k) for (k, a, b), vs in groups.items() if len(vs) > 1])

    follows(
        "SELECT max(v) AS m, window AS w, count(DISTINCT v) AS d, k FROM seen "
        "GROUP BY k, window(ts, '10 minutes', '3 minutes') HAVING count(*) > 1",
        expected,
        seed=2,
    )


def test_rows_in_windows() -> None:
    def expected(rows: Iterable[Row]) -> Counter[tuple[object, ...]]:
        return Counter([(v, a) for (_, a, _), vs in in_windows(rows, 10, 5, 0).items() for v in vs if v > 3])

    follows("SELECT v, window(ts, '10 minutes', '5 minutes').start AS a FROM seen WHERE v > 3", expected, seed=3)


GAPS = [("5 minutes", minutes(5)), ("4 minutes 59.999999 seconds", minutes(5) - MICRO), ("1 microsecond", MICRO)]


@pytest.mark.parametrize(("text", "gap"), GAPS, ids=[text for text, _ in GAPS])
def test_sessions_follow_their_rows(text: str, gap: dt.timedelta) -> None:
    def expected(rows: Iterable[Row]) -> Counter[tuple[object, ...]]:
        return Counter([(*key, len(vs), sum(vs), min(vs)) for key, vs in in_sessions(rows, gap, by_key=True).items()])

    follows(
        "SELECT k, session_window.start, session_window.end, count(*) AS n, sum(v) AS s, min(v) AS m FROM seen "
        f"GROUP BY k, session_window(ts, '{text}')",
        expected,
        seed=4,
    )


def test_sessions_without_another_key() -> None:
    def expected(rows: Iterable[Row]) -> Counter[tuple[object, ...]]:
        sessions = in_sessions(rows, minutes(2), by_key=False)
        return Counter([((a, b), len(vs)) for (_, a, b), vs in sessions.items() if b > dt.datetime(1970, 1, 1)])

    follows(
        "SELECT session_window AS w, count(*) AS n FROM seen GROUP BY session_window(ts, '2 minutes') "
        "HAVING session_window.end > TIMESTAMP '1970-01-01 00:00:00'",
        expected,
        seed=5,
    )


def test_a_subscriber_knows_a_window_again() -> None:
    with opened() as db:
        db.execute(TABLE)
        db.execute("""
            CREATE VIEW hourly AS SELECT window AS w, sum(v) AS s FROM seen GROUP BY window(ts, '1 hour');
            INSERT INTO seen VALUES (1, 'a', TIMESTAMP '2024-01-01 10:15:00', 5)
        """)
        changes = db.subscribe("hourly", timeout=0)
        db.execute("INSERT INTO seen VALUES (2, 'a', TIMESTAMP '2024-01-01 10:59:59.999999', 6)")
        db.execute("UPDATE seen SET ts = TIMESTAMP '2024-01-01 11:00:00' WHERE id = 1")
        told = [(one["_op"], one["w"]["start"].hour, one["s"]) for one in changes]
        assert told == [("+", 10, 5), ("u", 10, 11), ("u", 10, 6), ("+", 11, 5)]


def test_the_map_of_a_window_has_its_start_as_key() -> None:
    with opened() as db:
        db.execute(TABLE)
        db.execute(
            "CREATE VIEW w AS SELECT window, k, count(*) AS n FROM seen GROUP BY window(ts, '1 hour', '1 minute'), k"
        )
        assert "window_starts(seen.ts, 3600000000L, 60000000L, 0L)" in str(db.explain("w"))
        assert "start TIMESTAMP] -> (#count BIGINT)" in str(db.explain("w"))
