"""Plans that serve all texts of a shape give what a plan of one's own gives: rows, types, names, and errors."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal

import pyarrow as pa
import pytest

import headwater as hw
from headwater.bound import Key
from headwater.database import _one_query
from headwater.errors import HeadwaterError, Source
from headwater.reading import Reading
from headwater.sql.lifting import lift

#: Constants that are asked for in turn: edges of types, other types, more digits, and what is no number at all.
NUMBERS: tuple[str, ...] = (
    "1",
    "2",
    "3",
    "0",
    "7",
    "007",
    "1.5",
    "2.5",
    "1.50",
    "12.345",
    "100",
    "2147483647",
    "2147483648",
)
NUMBERS += ("9223372036854775807", "9223372036854775808", "99999999999999999999999999999999999999", "1e0", "2L", "NULL")
NUMBERS += ("9" * 39, "0.00000000000000000000000000000000000001", "'2'", "'x'", "1.5.5", "1 + 1", "-1", "- 2", "3")
TEXTS: tuple[str, ...] = (
    "'a'",
    "'b'",
    "''",
    "'B'",
    "' b'",
    "'b '",
    "'2'",
    "'o''b'",
    "'\\\\'",
    "'ä'",
    '"b"',
    "5",
    "NULL",
    "'c'",
    "'b'",
)
DATES: tuple[str, ...] = (
    "'2024-01-02'",
    "'2024-01-03'",
    "'2024-02-30'",
    "'2024'",
    "'x'",
    "'2024-01-03 12:00:00'",
    "'2024-01-04'",
)
DATES += ("DATE '2024-01-03'", "5", "'2024-01-02'")

#: A shape, its constants, and whether it is one that plans are shared for.
SHAPES = [
    ("SELECT * FROM t WHERE i > {}", NUMBERS, True),
    ("SELECT * FROM t WHERE {} >= i", NUMBERS, True),
    ("SELECT i FROM t WHERE i = -{}", NUMBERS, True),
    ("SELECT i FROM t WHERE big <= {} OR NOT (i <> {})", NUMBERS, True),
    ("SELECT i FROM t WHERE d < {}", NUMBERS, True),
    ("SELECT i FROM t WHERE x > {}", NUMBERS, True),
    ("SELECT i FROM t WHERE f = {}", NUMBERS, True),
    ("SELECT i FROM t WHERE i BETWEEN {} AND 3", NUMBERS, True),
    ("SELECT i FROM t WHERE i BETWEEN 0 AND {} AND x < 100", NUMBERS, True),
    ("SELECT s, count(*) AS n FROM t GROUP BY s HAVING count(*) >= {} ORDER BY 1", NUMBERS, True),
    ("SELECT s, sum(d) AS d FROM t WHERE i > {} GROUP BY s HAVING sum(d) > 1.5", NUMBERS, True),
    ("SELECT a.i, b.s FROM t a JOIN t b ON a.i = b.i AND b.x > {}", NUMBERS, True),
    ("SELECT a.i, b.s FROM t a LEFT JOIN t b ON a.i = b.i AND b.x > {} WHERE a.i < 5", NUMBERS, True),
    ("WITH w AS (SELECT i, x FROM t WHERE i > {}) SELECT sum(x) AS x FROM w", NUMBERS, True),
    ("SELECT i FROM t WHERE i > {} UNION ALL SELECT i FROM t WHERE x < 2.5", NUMBERS, True),
    ("SELECT i FROM t WHERE 10 / i > {}", NUMBERS, True),  # fails for a row, whatever the constant is
    ("SELECT s FROM t WHERE s >= {}", TEXTS, True),
    ("SELECT s FROM t WHERE day >= {}", DATES, True),
    ("SELECT s FROM t WHERE at < {}", DATES, True),
    # The constant has a say in what the query is: it is a part of what the plan is known by, or there is no such plan.
    ("SELECT i + {} FROM t", NUMBERS, False),
    ("SELECT i > {} FROM t", NUMBERS, False),
    ("SELECT i > {} AS c, count(*) AS n FROM t GROUP BY i > {}", NUMBERS, False),
    ("SELECT count(*) AS n FROM t GROUP BY i > 2 HAVING (i > {}) = true", NUMBERS, False),
    ("SELECT count(*) FILTER (WHERE i > {}) FROM t", NUMBERS, False),
    ("SELECT (SELECT max(x) FROM t WHERE i > {}) FROM t", NUMBERS, False),
    ("SELECT i FROM t ORDER BY {}", NUMBERS, False),
    ("SELECT i FROM t ORDER BY i LIMIT {}", NUMBERS, False),
    ("SELECT i FROM t ORDER BY i LIMIT 5 OFFSET {}", NUMBERS, False),
    ("SELECT round(x, {}) AS r FROM t", NUMBERS, False),
    ("SELECT i / {} AS r FROM t", NUMBERS, False),
    ("SELECT CAST({} AS INT) AS r FROM t", TEXTS, False),
    ("SELECT at + INTERVAL {} DAY AS r FROM t", NUMBERS, False),
    ("SELECT i FROM t WHERE at > TIMESTAMP '2024-01-03 00:00:00' - INTERVAL {} HOURS", NUMBERS, False),
    ("SELECT i FROM t WHERE day = DATE {}", DATES, False),
    ("SELECT i FROM t WHERE i IN (1, {})", NUMBERS, False),
    ("SELECT i FROM t WHERE i % {} = i", NUMBERS, False),
    ("SELECT i FROM t WHERE 2 > {}", NUMBERS, False),
    ("SELECT i FROM t WHERE s LIKE {}", TEXTS, False),
    ("SELECT x FROM (VALUES (1), (2)) AS v(x) WHERE x > {}", NUMBERS, True),
    ("SELECT i FROM t WHERE i > {} -- 2", NUMBERS, False),
    ("SELECT i FROM t WHERE i > {} /* 2 */", NUMBERS, False),
    ("SELECT /*+ ENGINE(duckdb) */ i FROM t WHERE i > {}", NUMBERS, False),
]


@pytest.fixture(scope="module")
def db() -> Iterator[hw.Database]:
    made = hw.connect(":memory:", cache_bytes=0)
    assert isinstance(made, hw.Database)
    made.execute(
        "CREATE TABLE t (i INT, big BIGINT, d DECIMAL(8, 2), x DOUBLE, f FLOAT, s STRING, day DATE, at TIMESTAMP)"
    )
    made.insert("t", list(rows()))
    yield made
    made.close()


def rows() -> Iterator[dict[str, object]]:
    yield dict.fromkeys(("i", "big", "d", "x", "f", "s", "day", "at"))
    for n in (-2147483648, -2, -1, 0, 1, 2, 2, 3, 7, 2147483647):
        day = dt.date(2024, 1, 1) + dt.timedelta(days=abs(n) % 5)
        yield {
            "i": n,
            "big": n * 2**32 + (n == 2147483647) * (2**32 - 1),
            "d": Decimal(n % 1000) / 4,
            "x": n / 2,
            "f": n / 2,
            "s": ("a", "b", "B", "b ", "")[n % 5],
            "day": day,
            "at": dt.datetime.combine(day, dt.time(12)),
        }
    yield {"i": 4, "big": 4, "d": None, "x": float("nan"), "f": float("inf"), "s": "o'b", "day": None, "at": None}


def outcome(reading: Reading, text: str) -> object:
    """What comes of a query: sorted rows with their names and types, or an error with its place."""
    try:
        table = reading.look(Key(text), lambda: _one_query(text))
    except HeadwaterError as error:
        error.at(None, Source(text))
        if error.code >= "HW500":  # which of several rows fails first, and so over what, is for chance to say
            return "a row fails", error.span
        return error.code, error.message, error.span, error.hint
    return table.schema, sorted(map(repr, table.to_pylist()))


def alone(db: hw.Database) -> Reading:
    """A reader that knows of no text yet."""
    return Reading(db.engine, db.uppers, db.answering, 0)


@pytest.mark.parametrize(("shape", "constants", "shared"), SHAPES, ids=[one for one, _, _ in SHAPES])
def test_a_shared_plan_answers_as_a_plan_of_ones_own(
    db: hw.Database, shape: str, constants: tuple[str, ...], shared: bool
) -> None:
    reading = alone(db)
    for constant in (*constants, *constants[::-1]):
        text = shape.replace("{}", constant)
        reading._prepared.clear()  # each text is new
        assert outcome(reading, text) == outcome(alone(db), text), text
    assert (reading.shapes.hits > 0) is shared


def test_a_view_that_could_answer_decides_for_itself(db: hw.Database) -> None:
    """A view with i > 1 holds what is asked with i > 2, and not what is asked with i > 0."""
    with hw.connect(":memory:", cache_bytes=0) as made:
        assert isinstance(made, hw.Database)
        made.execute("CREATE TABLE t (i INT, s STRING); CREATE VIEW v AS SELECT i, s FROM t WHERE i > 1")
        made.insert("t", [{"i": n % 10, "s": "x"} for n in range(1000)])
        for constant in (3, 2, 1, 0, 5, -1, 0):
            text = f"SELECT i, s FROM t WHERE i > {constant}"
            made.reading._prepared.clear()
            assert outcome(made.reading, text) == outcome(alone(made), text)
        assert not made.reading.shapes.hits


def test_a_plan_is_gone_with_its_catalogue() -> None:
    with hw.connect(":memory:", cache_bytes=0) as made:
        assert isinstance(made, hw.Database)
        made.execute("CREATE TABLE t (i INT); INSERT INTO t VALUES (1), (5)")
        for n in range(4):
            made.query(f"SELECT i FROM t WHERE i > {n}")
        assert made.reading.shapes.hits == 2
        made.execute("DROP TABLE t; CREATE TABLE t (i STRING); INSERT INTO t VALUES ('4')")
        assert made.query("SELECT i FROM t WHERE i < 6").schema == pa.schema([("i", pa.string())])


def test_what_is_shared_follows_the_rows() -> None:
    with hw.connect(":memory:") as made:
        assert isinstance(made, hw.Database)
        made.execute("CREATE TABLE t (i INT)")
        for n in range(20):
            made.insert("t", [{"i": n}])
            assert made.query(f"SELECT i FROM t WHERE i >= {n - 1}").num_rows == min(n + 1, 2)
        assert made.reading.shapes.hits


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1L", "SELECT 1e3", "SELECT t.1", "SELECT 1.5.5", "SELECT r'1'", "SELECT x'1F'", "SELECT 'a''b'",
        "SELECT 'a' 'b', '\\''", 'SELECT "1", 2', "SELECT 1 -- 2", "SELECT 1 /* 2 */", "SELECT ?, 1", "SELECT $1",
        "SELECT 'a\udc80'", "SELECT 'a\n'", "SELECT ä, 1", "SELECT `1`", "SELECT a1", "SELECT '1", "SELECT `a, 1",
        "SELECT 1a",
    ],
)  # fmt: skip
def test_texts_that_are_not_taken_apart(text: str) -> None:
    assert lift(text) is None
