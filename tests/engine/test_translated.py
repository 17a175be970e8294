"""PATTERN and sliding windows through the engine: rows that come in any order, on time or late, and views made late."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from dataclasses import replace

import pytest

import headwater as hw
from headwater import types as t
from tests.equivalence.check import nearly
from tests.equivalence.values import canonical_row
from tests.sql import random_patterns, random_windows
from tests.sql.parts import Row, by_definition
from tests.sql.shop import parse as parse_query

PARTS = range(100, 105)


def moment(part: int) -> dt.datetime:
    return dt.datetime(1970, 1, 1) + dt.timedelta(minutes=part)


def declared(name: str, fields: t.Schema) -> str:
    columns = ", ".join(f"`{f.name}` {f.type}{'' if f.nullable else ' NOT NULL'}" for f in fields)
    return f"CREATE STREAM {name} ({columns}) TIMESTAMP BY ts PARTITION LENGTH 60 LATENESS 1 DAY RETAIN 7 DAYS"


def feed(db: hw.Database, name: str, parts: dict[int, list[Row]], statement: str, pick: random.Random) -> None:
    """Rows part by part, some of them late; the view is made at the beginning, in the middle or at the end."""
    made = pick.choice((PARTS.start, PARTS.start, PARTS.start + 2, PARTS.stop))
    late: list[Row] = []
    db.execute(f"ADVANCE STREAM {name} TO '{moment(PARTS.start)}'")
    for part in PARTS:
        if part == made:
            db.execute(statement)
        rows = list(parts[part])
        pick.shuffle(rows)
        on_time = pick.choice((len(rows), len(rows), len(rows) // 2)) if part != PARTS.start else len(rows)
        late += rows[on_time:]
        if rows[:on_time]:
            db.insert(name, rows[:on_time])
        db.execute(f"ADVANCE STREAM {name} TO '{moment(part + 1)}'")
        if late and pick.random() < 0.5:
            db.insert(name, late)
            late = []
    if late:
        db.insert(name, late)
    if made == PARTS.stop:
        db.execute(statement)


def shown(db: hw.Database, part: int) -> Counter[Row]:
    rows = db.query(f"SELECT * FROM v WHERE PART_TIMESTAMP = TIMESTAMP '{moment(part)}'").to_pylist()
    return Counter(canonical_row(row.values()) for row in rows)


@pytest.mark.parametrize("seeds", [range(n, n + 10) for n in range(0, 40, 10)], ids=str)
def test_patterns(seeds: range) -> None:
    for seed in seeds:
        case = random_patterns.make_case(seed, parts=len(PARTS))
        if not case.parts[PARTS.start]:
            # What a stream begins with is its oldest part: give it one.
            case = replace(case, parts={**case.parts, PARTS.start: [(moment(PARTS.start), "a", 1, 3, None, 0.5)]})
        with hw.connect() as db:
            db.execute(declared("M", random_patterns.FIELDS))
            feed(db, "M", case.parts, case.statement, random.Random(seed))
            for part, wanted in random_patterns.expected(case).items():
                wrong = nearly(shown(db, part), wanted)
                assert not wrong, f"seed {seed}, part {part}: {case.statement}\n{dict(wrong)}"


@pytest.mark.parametrize("seeds", [range(n, n + 10) for n in range(0, 40, 10)], ids=str)
def test_windows(seeds: range) -> None:
    fields = (t.Field("ts", t.TIMESTAMP, False), *random_windows.FIELDS[1:])
    for seed in seeds:
        query, whole, width = random_windows.make_query(seed)
        parts = {
            part: [(dt.datetime(1970, 1, 1) + dt.timedelta(seconds=row[0]), *small(row)) for row in rows]  # type: ignore[arg-type]
            for part, rows in random_windows.make_rows(seed, PARTS).items()
        }
        parts[PARTS.start] = parts[PARTS.start] or [(moment(PARTS.start), "x", 1, 2, 3, None, 0.5, 1, True, None)]
        with hw.connect() as db:
            db.execute(declared("S", fields))
            feed(db, "S", parts, f"CREATE VIEW v AS {query}", random.Random(seed))
            for part in PARTS:
                rows = [row for one in range(part - width + 1, part + 1) for row in parts.get(one, [])]
                _, wanted = by_definition(parse_query(whole), {"S": (fields, rows)})
                wrong = nearly(shown(db, part), Counter(map(canonical_row, wanted)))
                assert not wrong, f"seed {seed}, part {part}: {query}\n{dict(wrong)}"


def small(row: Row) -> Row:
    """The row without its time, and with a BIGINT whose sums stay in range."""
    _, g, h, a, b, *rest = row
    return (g, h, a, 7 if b == 2**62 else b, *rest)


def test_sums_beyond_bigint_within_a_part() -> None:
    """What a part adds up to may be out of range, though what the window adds up to is not."""
    with hw.connect() as db:
        db.execute("CREATE STREAM S (ts TIMESTAMP NOT NULL, x BIGINT) TIMESTAMP BY ts PARTITION LENGTH 60")
        db.execute("CREATE VIEW v AS SELECT sum(x) AS s, avg(x) AS a FROM S [WINDOW 2 PARTS]")
        big = 2**62
        first, second = moment(100), moment(101)
        db.insert("S", [(first, 5)])
        db.execute(f"ADVANCE STREAM S TO '{second}'")
        with db.epoch() as epoch:
            epoch.insert("S", [(second, big), (second, big), (second, big), (second, -big), (second, -big)])
        db.execute(f"ADVANCE STREAM S TO '{moment(102)}'")
        assert db.query("SELECT s FROM v ORDER BY s").to_pylist() == [{"s": 5}, {"s": big + 5}]


def test_nothing_in_the_window() -> None:
    """Without GROUP BY there is a row for every part, also where the window is empty."""
    with hw.connect() as db:
        db.execute("CREATE STREAM S (ts TIMESTAMP NOT NULL, x DOUBLE, y INT) TIMESTAMP BY ts PARTITION LENGTH 60")
        db.execute("CREATE VIEW v AS SELECT sum(x) AS x, min(y) AS y FROM S [WINDOW 2 PARTS] WHERE x IS NOT NULL")
        db.execute("CREATE VIEW w AS SELECT count(*) AS n, sum(y) AS y, avg(y) AS a FROM S [WINDOW 2 PARTS]")
        db.insert("S", [(moment(100), 0.5, 7)])
        db.execute(f"ADVANCE STREAM S TO '{moment(103)}'")
        assert [tuple(row.values()) for row in db.query("SELECT x, y FROM v ORDER BY PART").to_pylist()] == [
            (0.5, 7), (0.5, 7), (None, None)
        ]  # fmt: skip
        assert [tuple(row.values()) for row in db.query("SELECT n, y, a FROM w ORDER BY PART").to_pylist()] == [
            (1, 7, 7.0), (1, 7, 7.0), (0, None, None)
        ]  # fmt: skip


def test_the_paper_s_pattern() -> None:
    """Section 2 of ViewDF: reported at 10:04 and at 10:05."""
    with hw.connect() as db:
        columns = "ts TIMESTAMP NOT NULL, src STRING NOT NULL, dest STRING NOT NULL, loss INT NOT NULL"
        db.execute(f"CREATE STREAM M ({columns}) TIMESTAMP BY ts PARTITION LENGTH 60")
        db.execute("""
            CREATE VIEW View1 AS
            SELECT src, dest, count(*) AS ct, sum(loss) AS sum_loss
            FROM M PATTERN [a, b, c, d+]
            WHERE a.loss>10 AND b.loss>10 AND c.loss>10 AND d.loss>10
            GROUP BY src, dest
        """)
        times = [dt.datetime(2015, 1, 1, 10, minute) for minute in range(8)]
        for time, loss in zip(times, (6, 12, 15, 24, 20, 16, 7), strict=False):
            db.insert("M", [(time, "x", "y", loss)])
        db.execute(f"ADVANCE STREAM M TO '{times[-1]}'")
        rows = db.query("SELECT ct, sum_loss, PART_TIMESTAMP FROM View1 ORDER BY ct").to_pylist()
        assert [tuple(row.values()) for row in rows] == [(4, 71, times[4]), (5, 87, times[5])]
