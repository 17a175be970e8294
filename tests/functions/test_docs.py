"""docs/sql/functions.md says what the registry holds."""

from __future__ import annotations

from tests.functions.write_docs import PAGE, page


def test_the_page_of_functions_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "run `python -m tests.functions.write_docs`"
