from tests.docs.worked_example import PAGE, page


def test_the_page_shows_what_the_engine_does() -> None:
    assert PAGE.read_text() == page(), "run: python -m tests.docs.worked_example"
