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


STEP = re.compile(
    r"\bWrite `(?P<file>[^`]+)`[^\n]*:\n\n```\w+\n(?P<text>.*?)^```$|^```console\n(?P<console>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


def commands(console: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with the output shown below it; `> ` continues a command."""
    out = []
    for part in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]:
        command, *lines = part.split("\n")
        while lines[0].startswith("> "):
            command += "\n" + lines.pop(0).removeprefix("> ")
        out.append((command, "\n".join(lines)))
    return out


def pattern(expected: str) -> str:
    """What the output must match: three dots stand for any lines, or at the end of a line for the rest of it."""
    out = []
    for line in expected.splitlines():
        rest = line.endswith("...")
        out.append(r"(?:.*\n)*?" if line == "..." else re.escape(line.removesuffix("...")) + (".*\n" if rest else "\n"))
    return "".join(out)


@pytest.mark.slow
def test_the_quickstart_runs_as_printed(folder):
    programs, place = folder / "bin", folder / "home"
    programs.mkdir()
    place.mkdir()
    headwater = programs / "headwater"
    headwater.write_text(f'#!/bin/sh\nexec {sys.executable} -m headwater.cli.main "$@"\n', encoding="utf-8")
    headwater.chmod(0o755)
    python = programs / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    env = environment(PATH=f"{programs}{os.pathsep}{os.environ['PATH']}")
    ran = 0
    for step in STEP.finditer((DOCS / "quickstart.md").read_text(encoding="utf-8")):
        if step["file"]:
            (place / step["file"]).write_text(step["text"], encoding="utf-8")
            continue
        for command, expected in commands(step["console"]):
            done = subprocess.run(
                # A shell for each command; what lasts is the folder that it ends in.
                ["bash", "-c", f"{command}\npwd > {folder}/pwd"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                cwd=place,
                env=env,
                timeout=60,
            )
            assert re.fullmatch(pattern(expected), done.stdout), f"$ {command}\n{done.stdout}"
            place = Path((folder / "pwd").read_text().strip())
            ran += 1
    assert ran > 10
