import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import headwater
from headwater.cli.main import main

SOURCE = str(Path(headwater.__file__).parents[1])


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


@pytest.fixture
def folder(tmp_path_factory, monkeypatch) -> Path:
    """An empty current folder, with a path short enough for a socket."""
    folder = tmp_path_factory.mktemp("c")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def cli(folder, capsys) -> Callable[..., Done]:
    """Run a command in this process."""

    def run(*args: str) -> Done:
        capsys.readouterr()
        code = main(args)
        out, err = capsys.readouterr()
        return Done(code, out, err)

    return run


def environment(**more: str) -> dict[str, str]:
    path = os.pathsep.join(filter(None, [SOURCE, os.environ.get("PYTHONPATH")]))
    # Unbuffered output would hide what happens to a buffer that nobody takes.
    inherited = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    return {**inherited, "PYTHONPATH": path, **more}


def command(*args: str) -> list[str]:
    return [sys.executable, "-m", "headwater.cli.main", *args]


@pytest.fixture
def process(folder) -> Callable[..., Done]:
    """Run a command in a process of its own, with a standard input."""

    def run(*args: str, stdin: str | bytes = "", **env: str) -> Done:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        done = subprocess.run(
            command(*args), input=data, capture_output=True, cwd=folder, env=environment(**env), timeout=60
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run
