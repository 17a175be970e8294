"""A query for many parts holds what the query for one part holds, part by part."""

from __future__ import annotations

import random
from collections import Counter

import pytest

import headwater as hw
from headwater.algebra.evaluate import evaluate
from headwater.algebra.lifting import lifted
from headwater.algebra.nodes import Scan
from headwater.algebra.parts import at_part
from headwater.algebra.simplify import simplify
from headwater.plan.parts import PartProgram

STREAMS = """
CREATE STREAM m (ts TIMESTAMP, g STRING, x INT) TIMESTAMP BY ts PARTITION LENGTH 60;
CREATE STREAM n (ts TIMESTAMP, g STRING, x INT) TIMESTAMP BY ts PARTITION LENGTH 60;
CREATE TABLE t (g STRING, x INT)
"""
LIFTED = {
    "rows": (60, "SELECT g, x FROM m[j] WHERE x > 1"),
    "an earlier part": (60, "SELECT g, x FROM m[j - 2]"),
    "groups": (60, "SELECT g, sum(x) AS x FROM m[j] GROUP BY g HAVING count(*) > 1"),
    "two parts": (60, "SELECT a.g, b.x FROM m[j] a JOIN n[j - 1] b ON a.g = b.g"),
    "the same one twice": (60, "SELECT a.g, b.x FROM m[j] a JOIN m[j - 1] b ON a.x = b.x"),
    "left": (60, "SELECT a.g, b.x FROM m[j] a LEFT JOIN n[j - 1] b ON a.g = b.g"),
    "right": (60, "SELECT a.g, b.x FROM m[j] a RIGHT JOIN n[j - 1] b ON a.g = b.g"),
    "full": (60, "SELECT coalesce(a.g, b.g) AS g, b.x FROM m[j] a FULL JOIN n[j - 1] b ON a.g = b.g"),
    "a table": (60, "SELECT a.g, t.x FROM m[j] a LEFT JOIN t ON a.g = t.g"),
    "a table first": (60, "SELECT a.g, t.x FROM t RIGHT JOIN m[j] a ON a.g = t.g"),
    "union": (60, "SELECT g, x FROM m[j] UNION ALL SELECT g, x FROM n[j - 1]"),
    "groups of a union": (60, "SELECT g, max(x) AS x FROM (SELECT g, x FROM m[j] UNION ALL SELECT g, x FROM n[j]) q "
                              "GROUP BY g"),
    "except": (60, "SELECT g, x FROM m[j] EXCEPT SELECT g, x FROM n[j]"),
    "distinct": (60, "SELECT DISTINCT g, x FROM m[j]"),
    "windows": (60, "SELECT g, row_number() OVER (PARTITION BY g ORDER BY x, ts) AS x FROM m[j]"),
    "windows over all": (60, "SELECT g, sum(x) OVER () AS x FROM m[j]"),
    "exists": (60, "SELECT g, x FROM m[j] a WHERE EXISTS (SELECT 1 FROM n[j - 1] b WHERE b.g = a.g)"),
    "all smaller parts": (180, "SELECT g, sum(x) AS x FROM m[3 * j .. 3 * j + 2] GROUP BY g"),
    "some smaller parts": (180, "SELECT g, x FROM m[3 * j + 1 .. 3 * j + 2]"),
    "one smaller part": (180, "SELECT a.g, b.x FROM m[3 * j] a JOIN n[3 * j + 2] b ON a.g = b.g"),
    "smaller parts before": (180, "SELECT g, x FROM m[3 * j - 3 .. 3 * j - 2] UNION ALL SELECT g, x FROM m[3 * j + 2]"),
    "the part itself": (60, "SELECT g, PART AS x FROM m[j]"),
}  # fmt: skip
NOT_LIFTED = {
    "a sliding window": (60, "SELECT g, x FROM m[j - 1 .. j]"),
    "an aggregate without groups": (60, "SELECT max(g) AS g, sum(x) AS x FROM m[j]"),
    "itself": (60, "SELECT g, x FROM v[j - 1] UNION ALL SELECT g, x FROM m[j]"),
    "rows of a table for every part": (60, "SELECT t.g, a.x FROM t LEFT JOIN m[j] a ON a.g = t.g"),
    "rows of a table on the right": (60, "SELECT t.g, a.x FROM m[j] a RIGHT JOIN t ON a.g = t.g"),
    "all rows of a table": (60, "SELECT t.g, a.x FROM m[j] a FULL JOIN t ON a.g = t.g"),
    "a table beside parts": (60, "SELECT g, x FROM m[j] UNION ALL SELECT g, x FROM t"),
    "overlapping parts": (180, "SELECT g, x FROM m[3 * j - 1 .. 3 * j + 2]"),
    "remainders": (60, "SELECT g, x FROM m[j - j % 2]"),
}


def program_of(length: int, update: str) -> PartProgram:
    """The program of a view with some UPDATE."""
    with hw.connect() as db:
        assert isinstance(db, hw.Database)
        db.execute(STREAMS)
        first = {60: "m[i]", 180: "m[3 * i .. 3 * i + 2]"}[length]
        kind = "BIGINT" if "PART" in update or "sum(" in update else "INT"
        kind = "INT" if "row_number" in update else kind
        db.execute(
            f"CREATE VIEW v AS INITIALIZE v[i] AS SELECT g, CAST(x AS {kind}) AS x FROM {first} "
            f"UPDATE v[j] AS {update} PARTITION LENGTH {length}"
        )
        program = db.find("v").parts
    assert program is not None
    return program


def _row(rng: random.Random, relation: str, part: int) -> tuple[object, ...]:
    values = rng.choice(["a", "b", None]), rng.choice([0, 1, 2, None])
    return values if relation == "t" else (None, *values, part)


@pytest.mark.parametrize("kind", LIFTED)
def test_the_query_for_many_parts_is_that_for_one(kind: str) -> None:
    length, update = LIFTED[kind]
    query = program_of(length, update).update
    many = lifted(query, "v")
    assert many is not None
    rng = random.Random(kind)
    some = 0
    for _ in range(6):
        held = {
            name: Counter(_row(rng, name, part) for part in range(24) for _ in range(rng.choice([0, 1, 1, 3])))
            for name in ("m", "n", "t")
        }

        def read(scan: Scan, held: dict[str, Counter[tuple[object, ...]]] = held) -> Counter[tuple[object, ...]]:
            return held[scan.relation]

        first, last = rng.choice([(3, 5), (4, 4), (2, 6)])
        expected: Counter[tuple[object, ...]] = Counter()
        for part in range(first, last + 1):
            for row, n in evaluate(at_part(query.query, query.bounds(part)), read).items():
                expected[(*row, part)] += n
        some += expected.total()
        bounds = many.bounds(first, last)
        assert evaluate(at_part(many.query, bounds), read) == expected
        assert evaluate(at_part(simplify(many.query), bounds), read) == expected
    assert some


@pytest.mark.parametrize("kind", NOT_LIFTED)
def test_what_is_evaluated_part_by_part(kind: str) -> None:
    assert lifted(program_of(*NOT_LIFTED[kind]).update, "v") is None


@pytest.mark.parametrize(
    ("update", "blind"),
    [
        ("SELECT g, x FROM m[j]", True),
        ("SELECT g, x FROM m[j - 1 .. j] WHERE x > 1", True),
        ("SELECT a.g, a.x FROM m[j] a JOIN n[j - 1] b ON a.g = b.g", True),
        ("SELECT g, x FROM m[j] WHERE PART % 2 = 0", False),
        ("SELECT g, x FROM m[j] WHERE PART_TIMESTAMP > TIMESTAMP '2024-01-01 00:00:00'", False),
        ("SELECT g, x FROM m[j] ORDER BY PART, x, g LIMIT 1", False),
        ("SELECT g, max(x) AS x FROM m[j - 2 .. j] GROUP BY g, PART", False),
        ("SELECT a.g, a.x FROM m[j - 2 .. j] a JOIN n[j - 2 .. j] b ON a.PART = b.PART", False),
        ("SELECT g, x FROM m[j] WHERE EXISTS (SELECT 1 FROM n[j] b WHERE b.PART > 7 AND b.g = m.g)", False),
    ],
)
def test_whether_a_query_looks_at_the_part(update: str, blind: bool) -> None:
    assert program_of(60, update).update.is_blind is blind
