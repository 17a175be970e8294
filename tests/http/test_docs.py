"""docs/http.md is true: every command in it is run, and its tables say what the code does."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.http.failures import STATUS
from headwater.http.formats import TYPES
from headwater.http.limits import Limits

from .conftest import environment, port_of, process

PAGE = (Path(__file__).parents[2] / "docs" / "http.md").read_text("utf-8")


def commands() -> list[tuple[str, str]]:
    """The commands of the page, each with the output shown below it; `> ` continues a command."""
    out = []
    for block in re.findall(r"^```console\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *lines = part.split("\n")
            while lines[0].startswith("> "):
                command += "\n" + lines.pop(0).removeprefix("> ")
            out.append((command, "\n".join(lines)))
    return out


def pattern(expected: str) -> str:
    """What the output must match: three dots stand for anything within a line."""
    return re.escape(expected).replace(r"\.\.\.", ".*")


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_the_page_runs_as_printed(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "headwater"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m headwater.cli.main "$@"\n')
    program.chmod(0o755)
    env = environment(PATH=f"{program.parent}{os.pathsep}{os.environ['PATH']}", NO_PROXY="*")
    (first, expected), (serve, line), *others = commands()
    assert run(first, tmp_path, env) == expected
    assert serve == "headwater serve shop &"
    with process("serve", str(tmp_path / "shop"), "--port", "0") as (_, told):
        port = str(port_of(told))
        assert told == line.replace("8411", port).replace("serving shop", f"serving {tmp_path / 'shop'}")
        for command, expected in others:
            output = run(command.replace("8411", port), tmp_path, env)
            assert re.fullmatch(pattern(expected), output), f"$ {command}\n{output}"
    assert len(others) >= 15


def run(command: str, folder: Path, env: dict[str, str]) -> str:
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_status_is_listed() -> None:
    listed = {int(one) for row in re.findall(r"^\| ([0-9, ]+) \|", PAGE, re.MULTILINE) for one in row.split(",")}
    assert set(STATUS.values()) | {400, 422, 500} == listed


def test_every_form_is_listed() -> None:
    for form, kind in TYPES.items():
        assert re.search(rf"^\| `{form}`.*`{re.escape(kind.partition(';')[0])}`", PAGE, re.MULTILINE)


def test_the_limits_are_the_defaults() -> None:
    limits = Limits()
    assert (limits.body_bytes, limits.result_bytes, limits.header_bytes) == (64 << 20, 64 << 20, 16 << 10)
    assert (limits.result_rows, limits.requests, limits.running, limits.subscriptions) == (100_000, 64, 8, 64)
    assert (limits.seconds, limits.body_seconds, limits.send_seconds, limits.heartbeat_seconds) == (30, 30, 30, 15)
    assert limits.connections == 512
