"""`headwater check`: compile a project's files on a warehouse in memory, without touching data."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlglot import exp

from headwater.cli.render import counted, say
from headwater.cli.split import Piece, split
from headwater.cli.target import read_source
from headwater.database import Database
from headwater.errors import HeadwaterError, InternalError
from headwater.project import Project, load_project
from headwater.sql import statements as s
from headwater.sql.names import fold
from headwater.sql.parse import parse

_EXAMPLES = """\
examples:
  headwater check                check the project in the current folder
  headwater check shop           check the project in the folder shop
  headwater check --format json

All files are compiled, in order of name, on an empty warehouse in memory: every error is reported, not only the first.
INSERT, UPDATE, DELETE and COPY are read and not run.
"""

OK, ERROR, SKIPPED, NOT_RUN = "ok", "error", "skipped", "not run"

#: Enough of a statement that does not parse to know which relation will be missing.
_CREATED = re.compile(
    r"(?:CREATE|REGISTER)\s+(?:\w+\s+)*?(STREAM|SOURCE|TABLE|VIEW)\s+(?:IF\s+NOT\s+EXISTS\s+)?`?(\w+)", re.IGNORECASE
)
_LABEL_WIDTH = 60


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "check",
        help="compile a project's files without running them",
        description="Compile a project's .sql files without running them, and report every error.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[common],
    )
    parser.add_argument(
        "project", nargs="?", default=".", metavar="PROJECT", help="the project's folder (default: the current one)"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="for people or for programs")
    parser.set_defaults(run=run)


@dataclass(frozen=True)
class Finding:
    """What became of one statement.

    Attributes:
        piece: the statement.
        label: what it is about, such as `view revenue`.
        outcome: `ok`, `error`, `skipped` or `not run`.
        error: what is wrong, for `error`.
        needs: the relation with an error that it reads, for `skipped`.
    """

    piece: Piece
    label: str
    outcome: str
    error: HeadwaterError | None = None
    needs: str | None = None

    def to_dict(self) -> dict[str, object]:
        """The finding for programs."""
        out: dict[str, object] = {
            "file": self.piece.source.name,
            "line": self.piece.line,
            "statement": self.label,
            "outcome": self.outcome,
        }
        if self.error:
            out["error"] = self.error.to_dict()
        if self.needs:
            out["needs"] = self.needs
        return out


def run(args: argparse.Namespace) -> int:
    """Carry the command out."""
    project = load_project(args.project)
    findings = check_project(project)
    if args.format == "json":
        found = list(findings)
        report = {"project": str(project.folder), "ok": _all_right(found), "statements": [f.to_dict() for f in found]}
        say(json.dumps(report, ensure_ascii=False, indent=2))
    else:
        found = list(_printed(findings))
        say(_summary(found, project))
    if any(isinstance(finding.error, InternalError) for finding in found):
        return 3
    return 0 if _all_right(found) else 1


def check_project(project: Project) -> Iterator[Finding]:
    """Compile the statements of all files, one after the other."""
    with Database() as database:
        checker = _Checker(database)
        for file in project.files:
            for piece in split(read_source(file)):
                yield checker.check(piece)


class _Checker:
    """Compiles statements, and remembers which relations are missing because their own statement has an error."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._broken: dict[str, str] = {}

    def check(self, piece: Piece) -> Finding:
        try:
            [statement] = parse(piece.text, piece.source.name)
        except HeadwaterError as error:
            created = _CREATED.match(piece.text)
            if created:
                self._broken[fold(created[2])] = created[2]
            label = f"{created[1].lower()} {created[2]}" if created else _shortened(piece.text)
            return Finding(piece, label, ERROR, piece.place(error))
        label = _label(statement)
        made = statement.name.text if isinstance(statement, _MAKES) else None
        needs = next((self._broken[fold(name)] for name in _reads(statement) if fold(name) in self._broken), None)
        if needs is not None:
            if made is not None:
                self._broken[fold(made)] = made
            return Finding(piece, label, SKIPPED, needs=needs)
        try:
            return Finding(piece, label, self._compile(statement, piece))
        except HeadwaterError as error:
            if made is not None and not _exists(self._database, made):
                self._broken[fold(made)] = made
            return Finding(piece, label, ERROR, piece.place(error.at(None, statement.source)))

    def _compile(self, statement: s.Statement, piece: Piece) -> str:
        if isinstance(statement, _CHANGES):
            try:
                self._database.find(statement.target.text)
            except HeadwaterError as error:
                raise error.at(statement.target.span) from None
            return NOT_RUN
        self._database.execute(piece.text, name=piece.source.name)
        return OK


_MAKES = (s.CreateTable, s.CreateStream, s.CreateTagged, s.CreateView, s.CreatePartView)
_CHANGES = (s.Insert, s.Delete, s.Update, s.Copy)


def _reads(statement: s.Statement) -> Iterator[str]:
    """Names of the relations that a statement needs to be there."""
    match statement:
        case s.Insert(target=target) | s.Delete(target=target) | s.Update(target=target) | s.Copy(target=target):
            yield target.text
        case s.Drop(name=name) | s.Describe(name=name) | s.Refresh(name=name) | s.Explain(target=s.Name() as name):
            yield name.text
        case s.CreateTagged(over=name) | s.AdvanceStream(name=name):
            yield name.text
        case s.CreatePartView(name=own, initialize=first, update=later):
            tables = [table for one in (first, later) for table in one.query.find_all(exp.Table)]
            yield from dict.fromkeys(table.name for table in tables if fold(table.name) != fold(own.text))
    for tree in (getattr(statement, "query", None), getattr(statement, "target", None)):
        if isinstance(tree, exp.Expression):
            yield from (table.name for table in tree.find_all(exp.Table))


def _exists(database: Database, name: str) -> bool:
    return any(fold(str(one["name"])) == fold(name) for one in database.relations())


def _label(statement: s.Statement) -> str:
    match statement:
        case s.CreateTable(name=name):
            return f"table {name.text}"
        case s.CreateStream(name=name) | s.CreateTagged(name=name):
            return f"stream {name.text}"
        case s.CreateView(name=name) | s.CreatePartView(name=name):
            return f"view {name.text}"
        case s.Insert(target=name):
            return f"INSERT INTO {name.text}"
        case s.Delete(target=name):
            return f"DELETE FROM {name.text}"
        case s.Update(target=name):
            return f"UPDATE {name.text}"
        case s.Copy(target=name):
            return f"COPY {name.text}"
    return _shortened(statement.text)


def _shortened(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _LABEL_WIDTH else words[: _LABEL_WIDTH - 1] + "…"


def _printed(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Print findings as they come: the list on stdout, errors in full on stderr."""
    file = None
    for finding in findings:
        if finding.piece.source.name != file:
            file = finding.piece.source.name
            say(Path(file).name)
        why = f"  (needs {finding.needs}, which has an error)" if finding.needs else ""
        say(f"  {finding.outcome:8} {finding.label}{why}")
        if finding.error:
            print(finding.error, file=sys.stderr, flush=True)
        yield finding


def _summary(findings: list[Finding], project: Project) -> str:
    if not project.files:
        return f"no .sql files in {project.folder}"
    numbers = {outcome: sum(f.outcome == outcome for f in findings) for outcome in (OK, ERROR, SKIPPED, NOT_RUN)}
    told = [f"{number} {outcome}" for outcome, number in numbers.items() if number]
    return f"{counted(len(findings), 'statement')}: {', '.join(told)}" if told else "no statements"


def _all_right(findings: list[Finding]) -> bool:
    return all(finding.outcome in (OK, NOT_RUN) for finding in findings)
