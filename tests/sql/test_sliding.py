"""Queries over windows of parts as views of parts: the texts, what they give, and what is refused."""

from __future__ import annotations

from collections import Counter

import pytest

from headwater import types as t
from headwater.algebra.functions.errors import EvaluationError
from headwater.errors import HeadwaterError
from headwater.sql.parse import parse
from headwater.sql.translate import Parted
from tests.equivalence.check import nearly
from tests.fixtures.golden import check_golden

from . import random_windows
from .parts import Relation, by_definition, run, texts
from .shop import parse as parse_query

S = Parted("S", (t.Field("ts", t.TIMESTAMP, False), t.Field("G", t.STRING), t.Field("A", t.INT)), 60, "ts")
PARTS = range(10, 18)


@pytest.mark.parametrize("seeds", [range(n, n + 20) for n in range(0, 160, 20)], ids=str)
def test_every_part_equals_the_query_over_its_window(seeds: range) -> None:
    for seed in seeds:
        query, whole, width = random_windows.make_query(seed)
        parts = random_windows.make_rows(seed, PARTS)
        relations = {"S": Relation(random_windows.FIELDS, parts)}
        tree = parse_query(whole)
        try:
            wanted = {
                part: by_definition(
                    tree,
                    {
                        "S": (
                            random_windows.FIELDS,
                            [row for one in range(part - width + 1, part + 1) for row in parts.get(one, [])],
                        )
                    },
                )
                for part in PARTS
            }
        except EvaluationError:
            continue  # a sum out of range
        made = run(texts(f"CREATE VIEW v AS {query}", random_windows.S), relations, PARTS, by_definition)
        for part, (fields, rows) in wanted.items():
            assert [(one.name, one.type) for one in made.fields] == [(one.name, one.type) for one in fields], query
            assert not nearly(Counter(made.parts[part]), Counter(rows)), (seed, query, part)


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("max", "SELECT G, max(A) FROM S [WINDOW 10 MINUTES] GROUP BY G HAVING max(A) > 3"),
        ("sum", "SELECT G, sum(A) AS sum_A FROM S [WINDOW 10 minutes] GROUP BY G HAVING sum_A > 0"),
        ("rows", "SELECT median(A) AS m, count(*) AS n FROM S [WINDOW 2 PARTS] AS s WHERE s.A > 0 GROUP BY upper(G)"),
    ],
)
def test_texts(name: str, query: str, update: bool) -> None:
    check_golden(f"parts/window_{name}.sql", "\n\n".join(texts(f"CREATE VIEW View5 AS {query}", S)) + "\n", update)


def test_random_queries_are_translated_in_every_way() -> None:
    """Otherwise the test above might say little."""
    ways = Counter(
        len(texts(f"CREATE VIEW v AS {query}", random_windows.S))
        for query, _, width in map(random_windows.make_query, range(160))
        if width > 1
    )
    assert min(ways[1], ways[2], ways[3]) > 10, ways


@pytest.mark.parametrize(
    ("query", "code", "at"),
    [
        ("SELECT count(*) AS n FROM S [WINDOW 90 SECONDS]", "HW195", "90"),
        ("SELECT count(*) AS n FROM S [WINDOW 0 PARTS]", "HW195", "0"),
        ("SELECT count(*) AS n FROM S [WINDOW 1 FORTNIGHT]", "HW195", None),
        ("SELECT count(*) AS n FROM S [WINDOW 5 PARTS], S", "HW190", None),
        ("SELECT count(*) AS n FROM S [WINDOW 5 PARTS] WHERE A > (SELECT 1)", "HW190", None),
        ("WITH x AS (SELECT 1 AS y) SELECT count(*) AS n FROM S [WINDOW 5 PARTS]", "HW190", None),
        ("SELECT G, A FROM S [WINDOW 5 PARTS] GROUP BY G", "HW124", "A"),
        ("SELECT B FROM S [WINDOW 5 PARTS]", "HW101", "B"),
    ],
)
def test_what_is_refused(query: str, code: str, at: str | None) -> None:
    with pytest.raises(HeadwaterError) as raised:
        texts(f"CREATE VIEW v AS {query}", S)
    assert raised.value.code == code, raised.value
    assert raised.value.span is not None and raised.value.source is not None
    if at is not None:
        assert raised.value.source.text[raised.value.span.start : raised.value.span.end] == at


@pytest.mark.parametrize(("text", "parts"), [("600 SECONDS", 10), ("1 hour", 60), ("0.5 DAYS", 720), ("7 parts", 7)])
def test_how_long_a_window_is(text: str, parts: int) -> None:
    *_, view = texts(f"CREATE VIEW v AS SELECT max(A) AS m FROM S [WINDOW {text}]", S)
    assert f"FROM v_helper[j - {parts - 1} .. j]" in view


def test_a_window_of_one_part_is_the_part() -> None:
    [view] = texts("CREATE VIEW v (m) AS SELECT max(A) FROM S [WINDOW 1 MINUTE]", S)
    assert "max(A) AS m\n  FROM S[j]\n" in view
    assert len(parse(view)) == 1
