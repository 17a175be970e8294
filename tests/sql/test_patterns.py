"""PATTERN queries as views of parts: the texts, what they give, and what is refused."""

from __future__ import annotations

from collections import Counter

import pytest

from headwater import types as t
from headwater.errors import HeadwaterError
from headwater.sql.parse import parse
from headwater.sql.translate import Parted, translates
from tests.equivalence.check import nearly
from tests.fixtures.golden import check_golden

from . import random_patterns
from .parts import Relation, by_definition, run, texts

M = Parted(
    "M",
    (
        t.Field("ts", t.TIMESTAMP, False),
        t.Field("src", t.STRING, False),
        t.Field("dest", t.STRING, False),
        t.Field("loss", t.INT, False),
        t.Field("wide", t.Decimal(30, 10)),
        t.Field("tags", t.Array(t.STRING)),
    ),
    60,
    "ts",
)

VIEW1 = """
CREATE VIEW View1 AS
SELECT src, dest, count(*) AS ct,
       sum(loss) AS sum_loss
FROM M PATTERN [a, b, c, d+]
WHERE a.loss>10 AND b.loss>10
AND c.loss>10 AND d.loss>10
GROUP BY src, dest
"""
RISING = """
CREATE VIEW rising (pair, least, mean) AS
SELECT src, min(x.loss), avg(loss) AS mean FROM M PATTERN [a+, b] AS x
WHERE a.loss > 10 AND b.loss > a.loss
GROUP BY x.SRC HAVING mean < 100 OR src = 'x'
"""


@pytest.mark.parametrize(("name", "statement"), [("view1", VIEW1), ("rising", RISING)])
def test_texts(name: str, statement: str, update: bool) -> None:
    check_golden(f"parts/pattern_{name}.sql", "\n\n".join(texts(statement, M)) + "\n", update)


@pytest.mark.parametrize("seeds", [range(n, n + 15) for n in range(0, 60, 15)], ids=str)
def test_every_part_shows_what_the_machine_says(seeds: range) -> None:
    for seed in seeds:
        case = random_patterns.make_case(seed)
        relations = {"M": Relation(random_patterns.FIELDS, case.parts)}
        parts = range(min(case.parts), max(case.parts) + 1)
        made = run(texts(case.statement, random_patterns.M), relations, parts, by_definition)
        for part, wanted in random_patterns.expected(case).items():
            wrong = nearly(Counter(made.parts[part]), wanted)
            assert not wrong, f"seed {seed}, part {part}: {case.statement}\n{dict(wrong)}"


def test_random_cases_have_all_kinds_of_matches() -> None:
    """Otherwise the test above might say little."""
    shown = carried = several = 0
    for seed in range(150):
        case = random_patterns.make_case(seed)
        for part, rows in random_patterns.expected(case).items():
            shown += bool(rows)
            carried += bool(rows) and not case.parts[part]
            groups = Counter(tuple(row[: len(case.groups)]) for row in rows.elements())
            several += not case.hidden and any(count > 1 for count in groups.values())
    assert shown > 200 and carried > 20 and several > 20, (shown, carried, several)


def test_names_that_the_relation_has_are_left_to_it() -> None:
    fields = tuple(
        t.Field(name, t.INT, False) for name in ("ts", "state", "n", "open", "ct", "closed", "here", "found", "from")
    )
    relation = Parted("order by", fields, 60, "ts")
    statement = "CREATE VIEW v AS SELECT state, sum(`from`) AS s, count(*) AS c FROM `order by` PATTERN [a, b]"
    statement += " WHERE b.closed > a.closed AND b.here > a.n GROUP BY state"
    rows = [(100 * 60 + n, 1, n, n, n, n, n + 5, n, n) for n in range(3)]
    held = {"order by": Relation(fields, {100: rows, 101: rows[:1]})}
    made = run(texts(statement, relation), held, range(100, 102), by_definition)
    assert made.parts == {100: [(1, 1, 2)], 101: []}


@pytest.mark.parametrize(
    ("query", "code", "at"),
    [
        ("SELECT 1 AS x FROM M PATTERN [a, a]", "HW194", "a"),
        ("SELECT src FROM M PATTERN [a, b, c] WHERE a.loss < c.loss GROUP BY src", "HW191", "a.loss < c.loss"),
        ("SELECT src FROM M PATTERN [a] WHERE loss > 1 GROUP BY src", "HW191", "loss"),
        ("SELECT src FROM M PATTERN [a] WHERE b.loss > 1 GROUP BY src", "HW191", "b"),
        ("SELECT src FROM M PATTERN [a] WHERE 1 = 1 GROUP BY src", "HW191", "1 = 1"),
        ("SELECT src FROM M PATTERN [a] WHERE a.loss IN (SELECT 1) GROUP BY src", "HW190", None),
        ("SELECT src FROM M PATTERN [a] WHERE a.lost > 1 GROUP BY src", "HW101", "a.lost"),
        ("SELECT src FROM M PATTERN [a] WHERE a.loss GROUP BY src", "HW112", "a.loss"),
        ("SELECT sum(a.loss) AS s FROM M PATTERN [a]", "HW192", "a.loss"),
        ("SELECT count(DISTINCT loss) AS s FROM M PATTERN [a]", "HW192", "count(DISTINCT loss)"),
        ("SELECT median(loss) AS s FROM M PATTERN [a]", "HW192", "median(loss)"),
        ("SELECT sum(loss) FILTER (WHERE loss > 1) AS s FROM M PATTERN [a]", "HW192", None),
        ("SELECT avg(wide) AS s FROM M PATTERN [a]", "HW192", "avg(wide)"),
        ("SELECT sum(wide) AS s FROM M PATTERN [a]", "HW192", "sum(wide)"),
        ("SELECT loss FROM M PATTERN [a]", "HW124", "loss"),
        ("SELECT loss + 1 AS k FROM M PATTERN [a] GROUP BY loss + 1", "HW193", "loss + 1"),
        ("SELECT * FROM M PATTERN [a]", "HW193", None),
        ("SELECT first(tags) AS x FROM M PATTERN [a]", "HW122", None),
        ("SELECT count(*) AS n FROM M PATTERN [a] WHERE a.tags[0] = 'x'", "HW196", "a.tags"),
        ("SELECT DISTINCT src FROM M PATTERN [a] GROUP BY src", "HW201", None),
        ("SELECT count(*) AS n FROM M PATTERN [a], M", "HW190", None),
        ("SELECT n FROM (SELECT count(*) AS n FROM M PATTERN [a])", "HW190", None),
        ("SELECT 1 AS x FROM M PATTERN [a] UNION ALL SELECT 1 FROM M", "HW190", None),
    ],
)
def test_what_is_refused(query: str, code: str, at: str | None) -> None:
    with pytest.raises(HeadwaterError) as raised:
        texts(f"CREATE VIEW v AS {query}", M)
    assert raised.value.code == code, raised.value
    assert raised.value.span is not None and raised.value.source is not None
    if at is not None:
        assert raised.value.source.text[raised.value.span.start : raised.value.span.end] == at


def test_options_go_to_the_view_itself() -> None:
    statement = "CREATE STREAMED VIEW v RETAIN CHANGES 2 DAYS AS SELECT count(*) AS n FROM M PATTERN [a]"
    helper, view = texts(statement, M)
    assert helper.startswith("CREATE VIEW v_helper AS\n")
    assert view.startswith("CREATE STREAMED VIEW v RETAIN CHANGES 2 DAYS AS\nINITIALIZE v[i] AS\n")
    assert [one.name for one in parse(view)[0].options] == [
        "STREAMED",
        "RETAIN CHANGES",
        "PARTITION LENGTH",
        "BACKFILL",
    ]  # type: ignore[attr-defined]


def test_other_queries_are_not_translated() -> None:
    [view] = parse("CREATE VIEW v AS SELECT 1 AS x FROM M[3]")
    assert not translates(view.query)  # type: ignore[attr-defined]
