from tests.docs.tasks_example import BLOCK, PAGE, page


def test_the_page_shows_what_is_planned() -> None:
    now = PAGE.read_text("utf-8")
    assert BLOCK.search(now)
    assert now == page(), "run: python -m tests.docs.tasks_example"
