"""The prompt of `headwater sql`, typed at through a pretended terminal."""

import io
import os
import stat
import subprocess
import sys

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

import headwater as hw
from headwater.cli.complete import SqlCompleter
from headwater.cli.prompt import Shell
from headwater.cli.render import Screen, Writer
from headwater.cli.session import Session
from headwater.cli.target import Target

from .conftest import environment

ENTER, CTRL_C, CTRL_D, TAB = "\r", "\x03", "\x04", "\t"


@pytest.fixture
def state(folder, monkeypatch):
    """Where the history is kept."""
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    return folder / "state" / "headwater"


@pytest.fixture
def typed(folder, state, capsys):
    """What is printed when keys are typed at a prompt that ends by itself."""

    def run(*keys: str, path: str = ":memory:") -> tuple[str, str]:
        with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
            pipe.send_text("".join(keys))
            shell = Shell(Session(Target(path)), Writer(sys.stdout, "table", Screen(80, 5, timing=True)))
            assert shell.run() == 0
        out, err = capsys.readouterr()
        return out, err

    return run


def test_a_statement_over_several_lines_ends_at_its_semicolon(typed):
    out, err = typed("SELECT 1", ENTER, "  AS one", ENTER, ";", ENTER, "\\q", ENTER)
    assert err == ""
    assert "one\n---\n  1\n(1 row, 0." in out


def test_results_say_how_long_they_took(typed):
    out, _ = typed("CREATE TABLE t (n INT);", ENTER, CTRL_D)
    assert "created table t (0." in out
    assert out.rstrip().endswith(" s)")


def test_rows_beyond_the_screen_are_counted(typed):
    out, _ = typed("SELECT * FROM (VALUES (1), (2), (3), (4), (5), (6), (7)) AS v(n);", ENTER, CTRL_D)
    assert "... 2 more rows\n(7 rows, " in out


def test_ctrl_c_drops_the_line_and_ctrl_d_leaves(typed):
    out, err = typed("SELECT nonsense", CTRL_C, "SELECT 2 AS two;", ENTER, CTRL_D)
    assert err == ""
    assert "two\n" in out


@pytest.mark.parametrize("leave", ["\\q", "exit", "quit;"])
def test_ways_to_leave(typed, leave):
    typed(leave, ENTER)


def test_an_error_is_shown_and_the_prompt_goes_on(typed):
    out, err = typed("SELECT nope;", ENTER, "SELECT 2 AS two;", ENTER, CTRL_D)
    assert "<sql>:1:8\n1 | SELECT nope;\n  |        ^^^^" in err
    assert "two\n" in out


def test_statements_before_an_error_on_one_line_are_shown(typed):
    out, err = typed("SELECT 1 AS one; SELECT nope; SELECT 3 AS three;", ENTER, CTRL_D)
    assert "one\n" in out
    assert "three\n" not in out
    assert "^^^^" in err


def test_listing_and_describing(typed):
    out, err = typed(
        "\\d", ENTER, "CREATE TABLE t (n INT, price DECIMAL(10,2));", ENTER, "\\d", ENTER, "\\d T", ENTER, CTRL_D
    )
    assert err == ""
    assert "no relations yet" in out
    assert "name | kind\n-----+------\nt    | table\n" in out
    assert "column | type\n-------+--------------\nn      | INT\nprice  | DECIMAL(10,2)\n" in out


def test_help_and_unknown_commands(typed):
    out, err = typed("\\?", ENTER, "\\x", ENTER, "\\d nowhere", ENTER, CTRL_D)
    assert "\\d NAME" in out
    assert "there is no command \\x" in err
    assert "there is no relation nowhere" in err


def test_history_is_kept_for_its_owner_only(typed, state):
    typed("SELECT 1 AS one;", ENTER, CTRL_D)
    history = state / "history"
    assert "SELECT 1 AS one;" in history.read_text(encoding="utf-8")
    assert stat.S_IMODE(history.stat().st_mode) == 0o600


def test_no_place_for_history_is_no_reason_to_fail(typed, folder, monkeypatch):
    (folder / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "file"))
    out, _ = typed("SELECT 1 AS one;", ENTER, CTRL_D)
    assert "one\n" in out


def test_beside_a_process_that_has_the_warehouse_open(typed, folder):
    with hw.connect(folder / "w") as database:
        out, _ = typed("CREATE TABLE t (n INT);", ENTER, "\\d", ENTER, CTRL_D, path=str(folder / "w"))
        assert f"through process {os.getpid()}" in out
        assert "t    | table" in out
        assert [one["name"] for one in database.relations()] == ["t"]


def test_when_that_process_ends_the_prompt_opens_the_warehouse_itself(folder, state, capsys):
    database = hw.connect(folder / "w")
    shell = Shell(Session(Target(folder / "w")), Writer(io.StringIO(), "table"))
    assert shell.handle("CREATE TABLE u (n INT);")
    database.close()
    assert shell.handle("CREATE TABLE t (n INT);")
    assert capsys.readouterr().err == ""
    shell._session.close()


def test_when_it_is_killed_that_is_told_and_the_prompt_goes_on(folder, state, capsys):
    script = "import sys, headwater as hw; db = hw.connect('w'); print('open', flush=True); sys.stdin.read()"
    holder = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder, env=environment()
    )
    assert holder.stdout.readline() == b"open\n"
    shell = Shell(Session(Target(folder / "w")), Writer(io.StringIO(), "table"))
    holder.kill()
    holder.communicate()
    assert shell.handle("CREATE TABLE t (n INT);")
    err = capsys.readouterr().err
    assert f"error[HW453]: process {holder.pid} closed the connection" in err
    assert err.endswith("connected again\n")
    assert shell.handle("CREATE TABLE t (n INT);")
    assert capsys.readouterr().err == ""
    shell._session.close()


def test_a_bug_costs_a_statement_not_the_session(folder, state, capsys, monkeypatch):
    shell = Shell(Session(Target(":memory:")), Writer(sys.stdout, "table"))
    monkeypatch.setattr(shell._session.database, "relations", lambda: 1 / 0)
    assert shell.handle("\\d")
    err = capsys.readouterr().err
    assert err.startswith("error[HW990]: ZeroDivisionError")
    assert "Traceback" not in err
    assert shell.handle("SELECT 1 AS one;")
    assert "(1 row)" in capsys.readouterr().out


# -- completion ---

COLUMNS = {"orders": ["id", "customer"], "customers": ["customer", "city"]}


def completions(text: str) -> list[str]:
    completer = SqlCompleter(lambda: COLUMNS)
    return [c.text for c in completer.get_completions(Document(text), CompleteEvent(completion_requested=True))]


def test_relations_come_first_then_columns_then_keywords_and_functions():
    found = completions("SELECT c")
    assert found[:5] == ["customers", "customer", "city", "case", "cast"]
    assert found.index("count") < found.index("coalesce")
    assert completions("SELECT CR") == ["CREATE", "CROSS"]


def test_columns_of_the_relations_in_the_statement():
    assert completions("SELECT * FROM orders WHERE i")[0] == "id"
    assert "city" not in completions("SELECT * FROM orders WHERE c")
    assert "city" in completions("SELECT c")


def test_columns_after_a_dot():
    assert completions("SELECT orders.") == ["id", "customer"]
    assert completions("SELECT * FROM customers AS c WHERE c.") == ["customer", "city"]


def test_keywords_follow_the_case_of_what_was_typed():
    assert "select" in completions("sel")
    assert "SELECT" in completions("SEL")


def test_nothing_is_completed_inside_quotes():
    assert completions("SELECT 'cust") == []
    assert "customer" in completions("SELECT 'a', cust")


def test_backslash_commands():
    assert completions("\\") == ["\\q", "\\d", "\\?"]
    assert completions("\\d ord") == ["orders"]
