"""The documentation says what the commands do: every option is described, every command shown is run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.cli.main import build_parser

from .conftest import environment

DOCS = Path(__file__).parents[2] / "docs"


def command_parsers():
    [subparsers] = [action for action in build_parser()._actions if action.dest == "command"]
    return subparsers.choices


def section(text: str, title: str) -> str:
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"docs/cli.md has no section {title!r}"
    return found[1]


CASES = [
    (name, action) for name, parser in command_parsers().items() for action in parser._actions if action.dest != "help"
]


@pytest.mark.parametrize(("name", "action"), CASES, ids=[f"{name}-{action.dest}" for name, action in CASES])
def test_every_option_of_every_command_is_documented(name, action):
    text = section((DOCS / "cli.md").read_text(encoding="utf-8"), f"headwater {name}")
    for word in action.option_strings or [action.metavar.replace("|", r"\|")]:
        assert re.search(rf"^\|.*`{re.escape(word)}[ `]", text, re.MULTILINE), f"{word} is not in the table of {name}"
    for choice in action.choices or ():
        assert f"`{choice}`" in text


def test_no_option_is_documented_that_does_not_exist():
    text = (DOCS / "cli.md").read_text(encoding="utf-8")
    for name, parser in command_parsers().items():
        known = {option for action in parser._actions for option in action.option_strings}
        assert set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", section(text, f"headwater {name}"))) <= known


def test_every_command_is_listed_first():
    text = (DOCS / "cli.md").read_text(encoding="utf-8").split("\n## ")[0]
    for name in command_parsers():
        assert f"`headwater {name}`" in text
    assert "`headwater --version`" in text


def blocks(page: Path) -> list[tuple[str, str]]:
    """The commands of a page's console blocks, each with the output shown below it."""
    out = []
    for block in re.findall(r"^```console\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = part.split("\n")
            ends = 1
            while lines[ends - 1].endswith("\\") or (ends < len(lines) and lines[ends].startswith("> ")):
                ends += 1
            command = "\n".join([lines[0], *(line.removeprefix("> ") for line in lines[1:ends])])
            out.append((command, "\n".join(lines[ends:])))
    return out


def test_the_quickstart_runs_as_printed(folder):
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    headwater = bin_folder / "headwater"
    headwater.write_text(f'#!/bin/sh\nexec {sys.executable} -m headwater.cli.main "$@"\n', encoding="utf-8")
    headwater.chmod(0o755)
    (bin_folder / "python").symlink_to(sys.executable)
    place = folder / "home"
    place.mkdir()
    env = environment(PATH=f"{bin_folder}{os.pathsep}{os.environ['PATH']}")
    steps = blocks(DOCS / "quickstart.md")
    assert len(steps) > 10
    for command, expected in steps:
        done = subprocess.run(
            # One shell a command: the page changes its folder once, which has to last.
            ["bash", "-c", f"{command}\npwd > {folder}/pwd"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=place,
            env=env,
            timeout=60,
        )
        assert done.stdout == expected, command
        place = Path((folder / "pwd").read_text().strip())
