"""Broken statements by the thousand: whatever is thrown at `parse`, a `HeadwaterError` with a place comes back."""

from __future__ import annotations

import logging
import random
import re
from collections.abc import Callable

import pytest

from headwater.errors import HeadwaterError, InternalError
from headwater.sql.parse import parse
from headwater.sql.types import parse_type

STATEMENTS = [
    "CREATE STREAM m (ts TIMESTAMP, src STRING, n INT) TIMESTAMP BY ts PARTITION LENGTH 60 RETAIN 7 DAYS FROM csv '/d'",
    "CREATE STREAM r (room INT, at TIMESTAMP) KEY (room) SEQUENCE BY at LATENESS INTERVAL '5 minutes' FROM rate 10",
    "CREATE STATIC TABLE t (a INT PRIMARY KEY, b STRUCT<x: ARRAY<MAP<STRING, INT>>>, `c d` DECIMAL(10, 2) NOT NULL)",
    "CREATE STREAMED VIEW v (a, b) REFRESH EVERY 2 SECONDS STRICT STRATEGY 'first order' AS SELECT a, sum(b) FROM t",
    "INSERT INTO t (a, b) VALUES (1, 'it''s'), (2, NULL), (3, -1.5e3), (4, X'1F')",
    "INSERT INTO TABLE t WITH x AS (SELECT 1 AS a UNION ALL SELECT 2) SELECT x.* FROM x /* all */ -- of them",
    "DELETE FROM t AS x WHERE x.a IN (SELECT a FROM u WHERE EXISTS (SELECT 1)) OR x.b BETWEEN 1 AND 2",
    "UPDATE t SET a = CASE WHEN a > 1 THEN 0 ELSE a + 1 END, t.b = 'x' || b WHERE NOT b IS NULL",
    "COPY INTO t (a, b) FROM '/d/x.csv' CSV (header true, delimiter = ';', null '')",
    "DROP VIEW IF EXISTS `v w` CASCADE; SHOW TABLES LIKE 'x%'; DESCRIBE VIEW v; REFRESH VIEW v",
    "EXPLAIN CREATE VIEW v AS SELECT count(DISTINCT a) FILTER (WHERE b > 0) FROM t GROUP BY c HAVING count(*) > 1",
    "SELECT CAST(a AS INT), a::STRING, DATE '2020-01-01' + INTERVAL 3 DAYS, m['k'][0].f, -b % 2 <=> c FROM t",
    "SELECT * FROM t LEFT JOIN u USING (a) CROSS JOIN (VALUES (1, 2)) AS v(a, b) ORDER BY 1 DESC NULLS LAST LIMIT 5",
    "SELECT sum(a) OVER (PARTITION BY b ORDER BY c ROWS BETWEEN 1 PRECEDING AND CURRENT ROW), trim(BOTH 'x' FROM d)",
]
TOKEN = re.compile(r"'(?:[^'\\]|''|\\.)*'|`[^`]*`|\w+|\s+|.", re.DOTALL)
STRANGE = [
    *"'\"`;()[]{}<>.\\$@#?é☃😀٣\x00\ufeff\u2028\u202e\ud800\n\r\t",
    *(
        "/*",
        "*/",
        "--",
        "/*+",
        "::",
        "..",
        "|>",
        "->",
        "{{",
        "{%",
        ":x",
        "0x",
        "1e",
        "9" * 50,
        "X'",
        "r'",
        "``",
        "`#a`",
    ),
    *(
        "NULL",
        "SELECT",
        "VALUES",
        "AS",
        "BY",
        "INTERVAL",
        "ARRAY",
        "STRUCT<",
        "OVER",
        "CASE",
        "END",
        "KEY",
        "PRIMARY KEY",
    ),
    *("CREATE", "WITH", "FROM", "ON", "IN"),
]


def broken(rng: random.Random) -> str:
    """A statement with one to three faults."""
    parts = TOKEN.findall(rng.choice(STATEMENTS))
    for _ in range(rng.choice([1, 1, 2, 3])):
        place = rng.randrange(len(parts)) if parts else 0
        match rng.randrange(7):
            case 0:
                del parts[place : place + 1]
            case 1:
                parts[place:place] = parts[place : place + rng.choice([1, 3])]
            case 2 if parts:
                other = rng.randrange(len(parts))
                parts[place], parts[other] = parts[other], parts[place]
            case 3:
                parts.insert(place, rng.choice(STRANGE))
            case 4:
                parts = parts[:place]
            case 5:
                more = TOKEN.findall(rng.choice(STATEMENTS))
                parts[place:] = more[rng.randrange(len(more)) :]
            case _:
                parts.insert(
                    place, "".join(chr(rng.choice([rng.randrange(128), rng.randrange(0x3000)])) for _ in range(3))
                )
    return "".join(parts)


def refusal(read: Callable[[str], object], text: str) -> HeadwaterError | None:
    """The error, if there is one; any other exception is the test's failure."""
    try:
        read(text)
    except HeadwaterError as error:
        return error
    return None


@pytest.mark.parametrize("seed", range(6))
def test_only_our_errors_escape(seed: int, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]):
    rng = random.Random(seed)
    refused = 0
    with caplog.at_level(logging.DEBUG):
        for _ in range(700):
            text = broken(rng)
            error = refusal(parse, text)
            if error is None:
                assert all(s.text == s.text.strip() != "" for s in parse(text)), text
                continue
            refused += 1
            assert not isinstance(error, InternalError), f"{text!r}: {error}"
            assert error.span is not None, text
            assert 0 <= error.span.start <= error.span.end <= len(text), text
            assert str(error).startswith(f"error[{error.code}]: "), text
            assert len(str(error).split("\n")) in (4, 5), text
    assert refused > 300, "the faults are too harmless"
    told = [one for one in caplog.records if one.name.split(".")[0] in ("headwater", "sqlglot")]
    assert told == []  # a Spark of other tests may log what it cleans up
    assert capsys.readouterr() == ("", "")


def test_every_statement_is_good_before_it_is_broken():
    for statement in STATEMENTS:
        assert parse(statement)


def test_types_too():
    rng = random.Random(7)
    pieces = [*"<>(),:;.aé", "`b`", "'c'", "10", "ARRAY", "MAP", "STRUCT", "INT", "DECIMAL", "VARCHAR", "VOID"]
    pieces += ["INTERVAL", "DAY", "TO", "SECOND", "NOT", "NULL"]
    for _ in range(2000):
        text = " ".join(rng.choices(pieces, k=rng.randrange(1, 9)))
        error = refusal(parse_type, text)
        if error is not None:
            assert not isinstance(error, InternalError), f"{text!r}: {error}"
            assert error.span is not None, text
