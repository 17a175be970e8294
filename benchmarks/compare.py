"""Two files of figures side by side."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.table import render

#: The columns that say which row a row is, by suite; the others are figures.
IDENTITY: Mapping[str, tuple[str, ...]] = {
    "aim": ("measure", "case", "system"),
    "constructs": ("construct",),
    "epochs": ("scenario", "epochs"),
    "finance": ("query", "changes", "system"),
    "groups": ("case", "pipeline"),
    "growth": ("query", "scale", "changes", "system"),
    "large_state": ("epochs of", "groups"),
    "pipeline": ("view", "changes", "system"),
    "proportion": ("view", "rows", "changes"),
    "queries": ("suite", "query"),
    "rolling": ("rows", "relation", "query"),
    "sharing": ("changes", "system"),
    "spine": ("changes",),
    "split": ("figure", "case", "system"),
    "state": ("rows", "system"),
    "subscriptions": ("view", "way"),
    "sync": ("part", "case", "pipeline"),
    "filling": ("query", "scale", "way"),
    "tasks": ("query", "views", "scale", "changes", "executors", "system"),
    "tpch": ("query", "scale", "changes", "system"),
    "viewdf": ("figure", "case", "system"),
    "windows": ("rows", "leaving"),
}
#: How the name of a column of times ends.
TIME = " ms"

Row = dict[str, object]
Identity = tuple[object, ...]


class CannotCompare(Exception):
    """The files have nothing to compare, with the reason."""


@dataclass(frozen=True)
class Figures:
    """A file that `benchmarks.run` wrote."""

    file: Path
    suite: str
    machine: Mapping[str, object]
    rows: Mapping[Identity, Row]


def compare(first: Path, second: Path) -> str:
    """Both files' figures, one a line, with the ratio of second to first where it is a time.

    Raises:
        CannotCompare: a file is missing or is no file of figures, or they are of different suites.
    """
    a, b = load(first), load(second)
    if a.suite != b.suite:
        raise CannotCompare(f"{first} is of suite {a.suite}, {second} of suite {b.suite}")
    lines = [line for identity in dict.fromkeys([*a.rows, *b.rows]) for line in _lines(identity, a, b)]
    if not lines:
        raise CannotCompare(f"{first} and {second} have no figures")
    told = [f"suite {a.suite}", f"A: {_about(a)}", f"B: {_about(b)}"]
    if differing := _differing(a.machine, b.machine):
        told.append(f"not measured on the same: {', '.join(differing)}")
    return "\n".join([*told, "", render(lines)])


def load(file: Path) -> Figures:
    """Read a file of figures.

    Raises:
        CannotCompare: it is missing or is none.
    """
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise CannotCompare(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise CannotCompare(f"{file} is no JSON: {error}") from error
    match content:
        case {"suite": str(suite), "machine": dict(machine), "rows": list(rows)} if suite in IDENTITY:
            return Figures(file, suite, machine, _by_identity(file, suite, rows))
        case {"suite": suite, "rows": _} if suite not in IDENTITY:
            raise CannotCompare(f"{file} is of suite {suite!r}, which is not one of {', '.join(IDENTITY)}")
    raise CannotCompare(f"{file} is no file of figures: it needs suite, machine and rows")


def _by_identity(file: Path, suite: str, rows: list[object]) -> dict[Identity, Row]:
    out: dict[Identity, Row] = {}
    for row in rows:
        if not isinstance(row, dict) or not all(
            isinstance(row.get(name), str | int | float) for name in IDENTITY[suite]
        ):
            raise CannotCompare(f"{file}: a row does not say its {', '.join(IDENTITY[suite])}")
        identity = tuple(row[name] for name in IDENTITY[suite])
        if identity in out:
            raise CannotCompare(f"{file}: there are two rows of {', '.join(map(str, identity))}")
        out[identity] = {name: value for name, value in row.items() if name not in IDENTITY[suite]}
    return out


def _lines(identity: Identity, a: Figures, b: Figures) -> list[Row]:
    one, two = a.rows.get(identity, {}), b.rows.get(identity, {})
    names = dict(zip(IDENTITY[a.suite], identity, strict=True))
    lines: list[Row] = []
    for figure in dict.fromkeys([*one, *two]):
        before, after = one.get(figure), two.get(figure)
        if before is not None or after is not None:
            ratio = _ratio(figure, before, after)
            lines.append({**names, "figure": figure, "A": before, "B": after, "B/A": ratio})
    return lines


def _ratio(figure: str, before: object, after: object) -> float | None:
    if figure.endswith(TIME) and isinstance(before, int | float) and isinstance(after, int | float) and before:
        return after / before
    return None


def _about(figures: Figures) -> str:
    machine = figures.machine
    return f"{figures.file}, commit {machine.get('commit', 'unknown')}, {machine.get('date', 'no date')}"


def _differing(a: Mapping[str, object], b: Mapping[str, object]) -> list[str]:
    names = (name for name in dict.fromkeys([*a, *b]) if name not in ("commit", "date"))
    return [f"{name} ({a.get(name)}, {b.get(name)})" for name in names if a.get(name) != b.get(name)]
