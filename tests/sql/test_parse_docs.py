"""The grammar page shows nothing that is not so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headwater.errors import HeadwaterError
from headwater.sql import statements as st
from headwater.sql.options import STRATEGIES
from headwater.sql.parse import parse
from headwater.sql.reading import split_statements

PAGE = (Path(__file__).parents[2] / "docs" / "sql" / "statements.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sql( refused)?\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
SHOWN = [text for refused, text in BLOCKS if not refused]


@pytest.mark.parametrize("text", SHOWN)
def test_every_example_parses(text: str):
    assert parse(text)


def test_every_kind_of_statement_has_an_example():
    kinds = {type(statement) for text in SHOWN for statement in parse(text)}
    assert kinds == set(st.Statement.__subclasses__())


def test_every_refused_example_is_refused():
    (text,) = (text for refused, text in BLOCKS if refused)
    statements = split_statements(st.Source(text))
    assert len(statements) > 5
    for tokens in statements:
        with pytest.raises(HeadwaterError):
            parse(text[tokens[0].start : tokens[-1].end + 1])


def test_every_strategy_is_named():
    assert all(f"'{strategy}'" in PAGE for strategy in STRATEGIES)
