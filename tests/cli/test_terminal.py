"""`headwater sql` on a real terminal, as far as a pseudo-terminal is one."""

import os
import pty
import re
import select
import signal
import time

import pytest

import headwater as hw

from .conftest import command, environment

CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\x1b\][^\x07]*\x07")
SECONDS = 30


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, *args: str) -> None:
        env = environment(TERM="xterm", PROMPT_TOOLKIT_NO_CPR="1", COLUMNS="80", LINES="24")
        self.pid, self.screen = pty.fork()
        if self.pid == 0:
            os.execve(command()[0], command(*args), env)
        self.text = ""

    def wait_for(self, text: str) -> str:
        """Read until the text appears; returns what came up to it."""
        deadline = time.monotonic() + SECONDS
        while text not in self.text:
            assert time.monotonic() < deadline, f"no {text!r} in {self.text!r}"
            if select.select([self.screen], [], [], 0.2)[0]:
                try:
                    new = os.read(self.screen, 65536)
                except OSError:
                    raise AssertionError(f"it ended without {text!r}: {self.text!r}") from None
                self.text += CONTROL.sub("", new.decode("utf-8", "replace"))
        before, _, self.text = self.text.partition(text)
        return before + text

    def type(self, keys: str) -> None:
        os.write(self.screen, keys.encode())

    def end(self) -> int:
        """Wait until the command has ended; returns its exit code."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
            if select.select([self.screen], [], [], 0.1)[0]:
                try:
                    os.read(self.screen, 65536)
                except OSError:  # the other end is closed
                    time.sleep(0.05)
        raise AssertionError("the command does not end")

    def close(self) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.screen)


@pytest.fixture
def terminal(folder, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    opened = []

    def open_terminal(*args: str) -> Terminal:
        opened.append(Terminal(*args))
        return opened[-1]

    yield open_terminal
    for one in opened:
        one.close()


def test_typing_completing_and_leaving(terminal):
    screen = terminal("sql", ":memory:")
    screen.wait_for("headwater>")
    screen.type("CREATE TABLE measurements (station INT, label STRING);\r")
    screen.wait_for("created table measurements (")
    screen.wait_for("headwater>")
    screen.type("SELECT lab\t")
    screen.wait_for("label")
    screen.type(" FROM measu\t")
    screen.wait_for("measurements")
    screen.type(";\r")
    screen.wait_for("(0 rows, ")
    screen.wait_for("headwater>")
    screen.type("SELECT 'dropped'\x03")
    screen.wait_for("headwater>")
    screen.type("SELECT 40 + 2\r")
    screen.wait_for("..>")
    screen.type("AS answer;\r")
    screen.wait_for("answer\r\n")
    screen.wait_for("42\r\n(1 row, ")
    screen.wait_for("headwater>")
    screen.type("\x04")
    assert screen.end() == 0


def test_long_cells_are_cut_to_the_terminal(terminal):
    screen = terminal("sql", ":memory:", "-c", f"SELECT '{'x' * 200}' AS t")
    shown = screen.wait_for("(1 row)")
    assert "x…" in shown
    assert "x" * 81 not in shown
    assert screen.end() == 0


def test_an_earlier_session_is_remembered(terminal):
    screen = terminal("sql", ":memory:")
    screen.wait_for("headwater>")
    screen.type("SELECT 123 AS remembered;\r")
    screen.wait_for("(1 row, ")
    screen.wait_for("headwater>")
    screen.type("\x04")
    assert screen.end() == 0
    screen = terminal("sql", ":memory:")
    screen.wait_for("headwater>")
    screen.type("\x1b[A")
    screen.wait_for("remembered;")
    screen.type("\r")
    screen.wait_for("(1 row, ")


LONG = "SELECT count(*) AS c FROM n a, n b, n c WHERE a.n + b.n + c.n = 7"


@pytest.fixture
def numbers(folder):
    with hw.connect(folder / "w") as database:
        database.execute("CREATE TABLE n (n BIGINT)")
        database.insert("n", [(i,) for i in range(20_000)])
    return "w"


def test_a_statement_is_given_up_with_ctrl_c(terminal, numbers):
    screen = terminal("sql", numbers)
    screen.wait_for("headwater>")
    screen.type(f"{LONG};\r")
    screen.wait_for("c.n = 7;")
    time.sleep(1)
    screen.type("\x03")
    screen.wait_for("given up")
    screen.wait_for("headwater>")
    screen.type("SELECT 1 AS alive;\r")
    screen.wait_for("(1 row, ")
    screen.wait_for("headwater>")
    screen.type("\\q\r")
    assert screen.end() == 0


def test_so_is_a_command(terminal, numbers):
    screen = terminal("sql", numbers, "-c", "SELECT 1 AS before", "-c", LONG)
    screen.wait_for("(1 row)")
    time.sleep(1)
    screen.type("\x03")
    assert screen.end() == 130
    with hw.connect(numbers) as database:
        assert database.query("SELECT count(*) AS c FROM n").to_pylist() == [{"c": 20_000}]
