"""The documentation is true: its examples run as printed, its links lead somewhere, what it names is there.

* A `python` block with `>>>` is run as a doctest. One without is run as a script; a `text` block right below it is what
  it prints. All blocks of a page share their names and a folder of their own.
* A `bash` block that begins with `headwater` is run in that folder, and is held to the `text` block below it.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import headwater as hw

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
#: Pages whose blocks other tests run, or whose blocks are fragments.
ELSEWHERE = {"docs/quickstart.md", "docs/design/worked-example.md"}


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@dataclass(frozen=True)
class Block:
    """A fenced block, and the block of output that stands right below it, if any."""

    kind: str
    text: str
    output: str | None
    line: int


def blocks(text: str) -> list[Block]:
    """All fenced blocks of a page."""
    fence = re.compile(r"^```([^\n]*)\n(.*?)^```\n?", re.MULTILINE | re.DOTALL)
    found = list(fence.finditer(text))
    out: list[Block] = []
    for i, one in enumerate(found):
        below = found[i + 1] if i + 1 < len(found) else None
        follows = below is not None and below[1] == "text" and not text[one.end() : below.start()].strip()
        output = below[2] if below is not None and follows else None
        out.append(Block(one[1], one[2], output, text.count("\n", 0, one.start()) + 1))
    return out


RUN = [
    page
    for page in PAGES
    if name_of(page) not in ELSEWHERE and any(b.kind in ("python", "bash") for b in blocks(page.read_text("utf-8")))
]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    before = Path.cwd()
    os.chdir(tmp_path)
    yield tmp_path
    os.chdir(before)


@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_examples_run_as_printed(page: Path, folder: Path) -> None:
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(page.read_text("utf-8")):
        where = f"{name_of(page)}:{block.line}"
        if block.kind == "python" and block.text.lstrip().startswith(">>>"):
            run_doctest(block.text, names, where)
        elif block.kind == "python":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(block.text, where, "exec"), names)
            assert block.output is None or printed.getvalue() == block.output, where
        elif block.kind == "bash" and block.text.startswith("headwater "):
            told = run_command(block.text, folder)
            assert block.output is None or told == block.output, where


def run_doctest(text: str, names: dict[str, object], where: str) -> None:
    test = doctest.DocTestParser().get_doctest(text, names, where, where, 0)
    told = io.StringIO()
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(test, out=told.write, clear_globs=False)
    names.update(test.globs)
    assert not runner.failures, told.getvalue()


def run_command(command: str, folder: Path) -> str:
    tools = folder / "bin"
    tools.mkdir(exist_ok=True)
    program = tools / "headwater"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m headwater.cli.main "$@"\n')
    program.chmod(0o755)
    environment = os.environ | {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "200"}
    done = subprocess.run(
        ["bash", "-e", "-c", command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# -- links ----------------------------------------------------------------------------------------------------------


def without_code(text: str) -> str:
    """A page's prose: brackets in examples are not links."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)


def links(page: Path) -> list[tuple[Path, str]]:
    """Files a page links to, with the anchor or an empty one."""
    out: list[tuple[Path, str]] = []
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text("utf-8"))):
        if not re.match(r"[a-z]+:", target):
            path, _, anchor = urllib.parse.unquote(target).partition("#")
            out.append(((page.parent / path).resolve() if path else page, anchor))
    return out


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ +(.*?) *$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.replace("`", "").lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    wrong: list[str] = []
    for target, anchor in links(page):
        if not target.is_relative_to(ROOT) or not target.exists():
            wrong.append(f"{target} is not there")
        elif anchor and anchor not in anchors(target):
            wrong.append(f"{name_of(target)} has no heading #{anchor}: {sorted(anchors(target))}")
    assert not wrong


def test_every_page_can_be_reached_from_the_index() -> None:
    seen: set[Path] = set()
    waiting = [ROOT / "docs" / "index.md"]
    while waiting:
        page = waiting.pop()
        if page not in seen and page.suffix == ".md" and page.exists():
            seen.add(page)
            waiting += [target for target, _ in links(page)]
    assert not sorted(name_of(page) for page in set(PAGES) - seen)


# -- names ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_that_are_named_exist(page: Path) -> None:
    for path in re.findall(r"`((?:src|tests|docs|benchmarks|examples)/[\w./-]*)`", page.read_text("utf-8")):
        assert (ROOT / path).exists(), f"{name_of(page)} names {path}, which is not there"


def test_make_targets_that_are_named_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        named = set(re.findall(r"(?:^|`)make ([a-z]+)", page.read_text("utf-8"), re.MULTILINE))
        assert named <= targets, f"{name_of(page)} names a target that does not exist"


def test_codes_that_are_named_exist() -> None:
    known = {code for file in (ROOT / "src").rglob("*.py") for code in re.findall(r"HW\d{3}", file.read_text("utf-8"))}
    for page in PAGES:
        named = set(re.findall(r"HW\d{3}", page.read_text("utf-8")))
        assert named <= known, f"{name_of(page)} names codes that no error has: {sorted(named - known)}"


def public(of: type) -> set[str]:
    return {name for name in vars(of) if not name.startswith("_")}


def test_the_python_page_has_every_public_name() -> None:
    text = (ROOT / "docs" / "python.md").read_text("utf-8")
    spoken = set(
        re.findall(r"\w+", " ".join([*re.findall(r"`[^`\n]+`", text), *re.findall(r"^#+ .*$", text, re.MULTILINE)]))
    )
    wanted = (
        set(hw.__all__)
        | public(hw.Database)
        | public(hw.EpochBuilder)
        | public(hw.RemoteDatabase) - {"connect", "target"}
    )
    assert not sorted(wanted - spoken)
