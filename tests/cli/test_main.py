"""How the command ends: exit codes, where messages go, and that nobody ever sees a traceback unasked."""

import json
import os
import re
import shlex
import signal
import subprocess
import time

import pytest

import headwater as hw
from headwater.cli import status
from headwater.cli.main import build_parser

from .conftest import command, environment


def test_version(cli):
    done = cli("--version")
    assert (done.code, done.out) == (0, f"headwater {hw.__version__}\n")


def test_help_shows_commands_and_examples(cli):
    done = cli("--help")
    assert done.code == 0
    for word in ("sql", "explain", "status", "check", "examples:", "exit codes:"):
        assert word in done.out


@pytest.mark.parametrize("name", ["sql", "explain", "status", "check"])
def test_every_command_has_help_with_examples(cli, name):
    done = cli(name, "--help")
    assert done.code == 0
    assert f"headwater {name}" in done.out.split("examples:")[1]


@pytest.mark.parametrize(
    "args", [(), ("fly",), ("sql", "--format", "xml"), ("explain",), ("sql", "--rows", "-1"), ("sql", "--rows", "x")]
)
def test_wrong_usage_is_2_and_told_on_stderr(cli, args):
    done = cli(*args)
    assert (done.code, done.out) == (2, "")
    assert "usage: headwater" in done.err


def test_your_mistake_is_1_and_told_on_stderr_with_the_place(cli):
    done = cli("sql", ":memory:", "-c", "SELECT 1 AS one;\nSELECT nope")
    assert (done.code, done.out.splitlines()[-1]) == (1, "(1 row)")
    assert re.match(r"error\[HW\d\d\d\]: ", done.err)
    assert "--> <command line>:2:8\n2 | SELECT nope\n  |        ^^^^\n" in done.err


def test_what_is_not_supported_is_1_too(cli):
    done = cli("sql", ":memory:", "-c", "CREATE TEMPORARY VIEW v AS SELECT 1 AS one")
    assert done.code == 1
    assert "HW261" in done.err


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_programs_get_errors_as_one_json_object(cli, form):
    done = cli("sql", ":memory:", "--format", form, "-c", "SELECT nope")
    assert done.code == 1
    error = json.loads(done.err)
    assert error["kind"] == "your mistake"
    assert (error["source"], error["line"], error["column"]) == ("<command line>", 1, 8)


@pytest.fixture
def broken(monkeypatch):
    """A command with a bug."""

    def fail(args):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(status, "run", fail)
    monkeypatch.delenv("HEADWATER_DEBUG", raising=False)


def test_our_bug_is_3_and_asks_for_a_report_without_a_traceback(cli, broken):
    done = cli("status")
    assert done.code == 3
    assert done.err.startswith("error[HW990]: ZeroDivisionError: division by zero\n")
    assert "please report it" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("args", [("--debug", "status"), ("status", "--debug")])
def test_debug_shows_the_traceback(cli, broken, args):
    done = cli(*args)
    assert done.code == 3
    assert "Traceback" in done.err
    assert "ZeroDivisionError" in done.err


def test_so_does_the_environment(cli, broken, monkeypatch):
    monkeypatch.setenv("HEADWATER_DEBUG", "1")
    assert "Traceback" in cli("status").err
    monkeypatch.setenv("HEADWATER_DEBUG", "0")
    assert "Traceback" not in cli("status").err


def test_a_reader_that_leaves_is_no_error(folder):
    hw.connect(folder / "warehouse").close()
    with hw.connect(folder / "warehouse") as database:
        database.execute("CREATE TABLE t (n INT)")
        database.insert("t", [(i,) for i in range(50_000)])
    running = subprocess.Popen(
        command("sql", "--format", "csv", "-c", "SELECT * FROM t"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=environment(),
    )
    assert running.stdout.readline() == b"n\n"
    running.stdout.close()
    assert running.wait(60) == 141
    assert running.stderr.read() == b""
    running.stderr.close()


def test_a_reader_that_left_before_is_no_error_either(folder):
    hw.connect(folder / "warehouse").close()
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        command("status"), stdout=writing, stderr=subprocess.PIPE, cwd=folder, env=environment(), timeout=60
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize(
    "redirection",
    ["status > /dev/full", "sql -c 'SELECT 1 AS one' > /dev/full", "sql --output /dev/full -c 'SELECT 1 AS one'"],
)
def test_a_full_disk_is_not_our_bug(folder, redirection):
    hw.connect(folder / "warehouse").close()
    shell = f"{shlex.join(command())} {redirection}"
    done = subprocess.run(
        ["sh", "-c", shell], cwd=folder, env=environment(), capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert re.match(r"error\[HW462\]: .* cannot be written: No space left on device\n", done.stderr)


def test_closed_streams_are_no_reason_to_fail(folder):
    shell = f"{shlex.join(command())} sql :memory: <&- >&-"
    done = subprocess.run(["sh", "-c", shell], cwd=folder, env=environment(), capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")


def test_ctrl_c_is_130_without_a_word(folder):
    running = subprocess.Popen(
        command("sql", ":memory:"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=environment(),
    )
    time.sleep(5)  # it now waits for its standard input, also on a busy machine
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert (running.returncode, out, err) == (130, b"", b"")


def test_a_terminal_without_utf8_is_no_reason_to_fail(process):
    done = process("sql", ":memory:", "-c", "SELECT 'é' AS e", PYTHONIOENCODING="ascii")
    assert (done.code, done.err) == (0, "")
    assert "\\xe9" in done.out


def test_parser_has_no_option_without_help():
    for name, parser in commands().items():
        for action in parser._actions:
            assert action.help, f"{name}: {action.dest}"


def commands():
    """Each command's own parser."""
    [subparsers] = [a for a in build_parser()._actions if a.dest == "command"]
    return subparsers.choices
