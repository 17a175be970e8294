"""A story about streams with parts as plain data, and the script a person reads and `replay` runs again.

    # seed 17
    CREATE STREAM s0 (ts TIMESTAMP, k STRING) TIMESTAMP BY ts PARTITION LENGTH 10 RETAIN ALL;
    CREATE VIEW v0 AS INITIALIZE v0[i] AS SELECT k FROM s0[i] UPDATE v0[j] AS SELECT k FROM s0[j] PARTITION LENGTH 10;
    epoch
      insert s0
        ["2024-01-01T00:00:03", "a"]
    advance s0 2024-01-01T00:01:00
    fail 2
      insert s0
        ["2024-01-01T00:01:03", "b"]
    reopen

`fail n` is an epoch that fails at the n-th point of `headwater.engine.faults`, so that it has not happened.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from headwater import types as t

from ..values import BY_NAME, decode, encode

Row = tuple[object, ...]


@dataclass(frozen=True)
class Relation:
    """A table, or a stream with parts, whose first column is then its time.

    Attributes:
        length: how many seconds a part of a stream spans; None makes it a table.
        lateness: LATENESS of a stream in seconds, if it has one.
        retain: whether a stream keeps its rows for views that come later.
    """

    name: str
    columns: tuple[t.Field, ...]
    length: int | None = None
    lateness: int | None = None
    retain: bool = True

    @property
    def types(self) -> tuple[t.Type, ...]:
        return tuple(column.type for column in self.columns)

    @property
    def sql(self) -> str:
        columns = ", ".join(map(str, self.columns))
        if self.length is None:
            return f"CREATE TABLE {self.name} ({columns})"
        late = "" if self.lateness is None else f" LATENESS INTERVAL {self.lateness} SECONDS"
        late += " RETAIN ALL" if self.retain else ""
        return f"CREATE STREAM {self.name} ({columns}) TIMESTAMP BY ts PARTITION LENGTH {self.length}{late}"


@dataclass(frozen=True)
class View:
    """A view of parts, or an ordinary one.

    Attributes:
        query: of an ordinary view, a pattern or a window; else empty.
        initialize: what its first part holds, in terms of parts `m[i]`.
        update: what every later part holds, in terms of parts `m[j]`.
        length: how many seconds a part spans.
        backfill: whether it begins with the oldest part of what it reads.
        created: how many steps have passed when it is created.
        dropped: how many steps have passed when it is dropped, if it is.
        duckdb: whether DuckDB's answer to the transpiled text is known to be Spark's.
        fragile: it may fail, and is then out of the story.
    """

    name: str
    query: str = ""
    initialize: str = ""
    update: str = ""
    length: int = 0
    backfill: bool = False
    created: int = 0
    dropped: int | None = None
    duckdb: bool = True
    fragile: bool = False

    @property
    def kind(self) -> str:
        if self.update:
            return "parts"
        return "pattern" if " PATTERN [" in self.query else "window" if "[WINDOW " in self.query else "plain"

    @property
    def has_parts(self) -> bool:
        return self.kind != "plain"

    @property
    def text(self) -> str:
        """All that it reads from."""
        return self.query or f"{self.initialize} {self.update}"

    @property
    def sql(self) -> str:
        if self.query:
            return f"CREATE VIEW {self.name} AS {self.query}"
        tail = f"PARTITION LENGTH {self.length}" + (" BACKFILL" if self.backfill else "")
        first, then = f"INITIALIZE {self.name}[i] AS {self.initialize}", f"UPDATE {self.name}[j] AS {self.update}"
        return f"CREATE VIEW {self.name} AS {first} {then} {tail}"

    def reads(self, relation: str) -> bool:
        return re.search(rf"\b{relation}\b", self.text) is not None


@dataclass(frozen=True)
class Change:
    """Rows that come to a relation, or go from a table; `kind` is `insert` or `delete`."""

    kind: str
    relation: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Step:
    """What happens next.

    Attributes:
        kind: `epoch`; `fail`, an epoch that fails; `advance` a stream; `refresh` a view; `reopen`; `consolidate`.
        changes: of an epoch.
        target: what is advanced or refreshed; an epoch may advance a stream, too.
        moment: to which it is advanced.
        point: at which point an epoch fails.
    """

    kind: str
    changes: tuple[Change, ...] = ()
    target: str = ""
    moment: datetime | None = None
    point: int = 0


KINDS = ("epoch", "fail", "advance", "refresh", "reopen", "consolidate")


@dataclass(frozen=True)
class Case:
    """Relations, views in the order of their creation, and what happens. `disk` puts the warehouse into a folder."""

    seed: int
    relations: tuple[Relation, ...]
    views: tuple[View, ...]
    steps: tuple[Step, ...]
    disk: bool = False

    def __str__(self) -> str:
        return "\n".join(_script(self)) + "\n"


def _script(case: Case) -> Iterator[str]:
    yield f"# seed {case.seed}" + (" on disk" if case.disk else "")
    yield from (relation.sql + ";" for relation in case.relations)
    yield from _views(case, 0)
    for number, step in enumerate(case.steps, 1):
        detail = f"{step.target} {step.moment.isoformat() if step.moment else ''}{step.point or ''}".strip()
        yield f"{step.kind} {detail}".strip()
        for change in step.changes:
            yield f"  {change.kind} {change.relation}"
            yield from (f"    {json.dumps([encode(v) for v in row], ensure_ascii=False)}" for row in change.rows)
        yield from (f"DROP VIEW {view.name};" for view in case.views if view.dropped == number)
        yield from _views(case, number)


def _views(case: Case, step: int) -> Iterator[str]:
    for view in case.views:
        if view.created == step:
            notes = [note for note, on in (("not on duckdb", not view.duckdb), ("fragile", view.fragile)) if on]
            yield f"{view.sql};" + (f"  # {', '.join(notes)}" if notes else "")


_SEED = re.compile(r"# seed (-?\d+)( on disk)?")
_RELATION = re.compile(
    r"CREATE (?:TABLE|STREAM) (\w+) \((.*?)\)(?: TIMESTAMP BY ts PARTITION LENGTH (\d+))?"
    r"(?: LATENESS INTERVAL (\d+) SECONDS)?( RETAIN ALL)?;"
)
_COLUMN = re.compile(r"(\w+) (\w+(?:\(\d+, ?\d+\))?)( NOT NULL)?(?:, |$)")
_PARTS = re.compile(
    r"CREATE VIEW (\w+) AS INITIALIZE \w+\[i\] AS (.*) UPDATE \w+\[j\] AS (.*) PARTITION LENGTH (\d+)( BACKFILL)?;(.*)"
)
_PLAIN = re.compile(r"CREATE VIEW (\w+) AS (.*);(  # .*)?")
_STEP = re.compile(rf"({'|'.join(KINDS)})(?: ([a-z]\w*))?(?: (\d{{4}}-\S+))?(?: (\d+))?")


def parse_script(text: str) -> Case:
    """The inverse of `str(case)`; comments and blank lines are skipped.

    Raises:
        ValueError: a line is none of the script's.
    """
    seed, disk = 0, False
    relations: dict[str, Relation] = {}
    views: dict[str, View] = {}
    steps: list[Step] = []
    for line in text.splitlines():
        if found := _SEED.fullmatch(line):
            seed, disk = int(found[1]), bool(found[2])
        elif not line.strip() or line.startswith("#"):
            continue
        elif line.startswith("DROP VIEW "):
            name = line.removeprefix("DROP VIEW ").rstrip(";")
            views[name] = replace(views[name], dropped=len(steps))
        elif found := _PARTS.fullmatch(line):
            name, first, then, length, backfill, notes = found.groups()
            marks = {"duckdb": "not on duckdb" not in notes, "fragile": "fragile" in notes}
            views[name] = View(name, "", first, then, int(length), bool(backfill), len(steps), **marks)
        elif found := _PLAIN.fullmatch(line):
            name, query, notes = found[1], found[2], found[3] or ""
            marks = {"duckdb": "not on duckdb" not in notes, "fragile": "fragile" in notes}
            views[name] = View(name, query, created=len(steps), **marks)
        elif found := _RELATION.fullmatch(line):
            name, columns, length, late, retain = found.groups()
            fields = tuple(t.Field(c[1], BY_NAME[c[2]], not c[3]) for c in _COLUMN.finditer(columns))
            relations[name] = Relation(name, fields, int(length) if length else None, _number(late), bool(retain))
            if length is None:
                relations[name] = replace(relations[name], retain=True)
        elif line.startswith("    "):
            *others, last = steps[-1].changes
            types = relations[last.relation].types
            row = tuple(decode(value, of) for value, of in zip(json.loads(line), types, strict=True))
            steps[-1] = replace(steps[-1], changes=(*others, replace(last, rows=(*last.rows, row))))
        elif line.startswith("  "):
            kind, name = line.split()
            steps[-1] = replace(steps[-1], changes=(*steps[-1].changes, Change(kind, name, ())))
        elif found := _STEP.fullmatch(line):
            moment = datetime.fromisoformat(found[3]) if found[3] else None
            steps.append(Step(found[1], (), found[2] or "", moment, int(found[4] or 0)))
        else:
            raise ValueError(f"not a line of a case: {line!r}")
    return Case(seed, tuple(relations.values()), tuple(views.values()), tuple(steps), disk)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None else None
