"""EXPLAIN of a view of parts: what it reads, how far it is, and what evaluates a part."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from headwater.plan.explain_tasks import TaskNotes
from headwater.plan.parts import PartProgram


@dataclass(frozen=True)
class PartState:
    """How far a view of parts is: its first part, the next one to build, and when these begin; None if it has none."""

    first: int
    next: int
    begins: str
    ends: str
    rows: int


@dataclass(frozen=True)
class PartExplanation:
    """`str()` in the format that was asked for, `to_dict()` for programs.

    Attributes:
        program: what is explained.
        statements: the views of parts that it stands for, as statements that can be pasted back; the last is itself.
        kinds: what each relation that it reads is.
        sql: what initializes a part, what builds one, and what builds one again.
        state: how far it is, if it is there.
        notes: what else is to be said.
        format: `text`, `tree`, `mermaid` or `json`.
        helpers: the programs of views that were made for it.
        tasks: where its parts are built, in a warehouse whose programs run in tasks.
    """

    program: PartProgram
    statements: Sequence[str]
    kinds: dict[str, str]
    sql: dict[str, str]
    state: PartState | None = None
    notes: tuple[str, ...] = ()
    format: str = "text"
    helpers: tuple[PartProgram, ...] = field(default=())
    tasks: TaskNotes | None = None

    def __str__(self) -> str:
        match self.format:
            case "tree":
                return "\n".join(self._tree())
            case "mermaid":
                return "\n".join(["flowchart TD", *self._edges()])
            case "json":
                return json.dumps(self.to_dict(), ensure_ascii=False, indent=2)
        return self._text()

    def to_dict(self) -> dict[str, object]:
        program = self.program
        return {
            **program.to_dict(),
            "inputs": [{"name": name, "kind": kind} for name, kind in self.kinds.items()],
            "reads": self._reads(),
            "statements": list(self.statements),
            "state": vars(self.state) if self.state else None,
            "sql": self.sql,
            "notes": list(self.notes),
            **({"tasks": self.tasks.to_dict()} if self.tasks is not None else {}),
        }

    def _reads(self) -> list[str]:
        """What a part reads, each once."""
        queries = (self.program.initialize, self.program.update)
        found = [str(one) for query in queries for one in query.references]
        found += sorted(queries[0].whole | queries[1].whole)
        return list(dict.fromkeys(found))

    def _text(self) -> str:
        program = self.program
        lines = [f"VIEW {program.view}   (parts of {program.length} seconds)"]
        for text in self.statements:
            lines += ["", *(f"  {line}" for line in text.splitlines())]
        lines += ["", "a part j reads"]
        for one in self._reads():
            name = one.partition("[")[0]
            lines.append(f"  {one}: {'itself' if name == program.view else self.kinds.get(name, 'relation')}")
        if self.state is not None:
            state = self.state
            lines += ["", "parts"]
            lines.append(f"  {state.first} ({state.begins}) to before {state.next} ({state.ends}), {state.rows:,} rows")
        for heading, query in (("initialize", program.initialize), ("update", program.update)):
            lines += ["", heading, *(f"  {line}" for line in str(query.query).splitlines())]
        for heading, text in self.sql.items():
            lines += ["", heading, *(f"      {line}" for line in text.splitlines())]
        if self.tasks is not None:
            lines += ["", *self.tasks.lines()]
        if self.notes:
            lines += ["", "notes", *(f"  {note}" for note in self.notes)]
        return "\n".join(lines)

    def _tree(self) -> list[str]:
        lines: list[str] = []
        programs = {one.view: one for one in (*self.helpers, self.program)}

        def visit(name: str, label: str, depth: int) -> None:
            lines.append("  " * depth + label)
            program = programs.get(name)
            if program is None or depth > 20:
                return
            for one in dict.fromkeys(program.update.references):
                visit("" if one.relation == program.view else one.relation, str(one), depth + 1)
            for whole in sorted(program.update.whole):
                visit(whole, whole, depth + 1)

        visit(self.program.view, f"{self.program.view}[j]", 0)
        return lines

    def _edges(self) -> list[str]:
        lines: list[str] = []
        for program in (*self.helpers, self.program):
            for one in dict.fromkeys(program.update.references):
                inside = str(one).removeprefix(one.relation)
                lines.append(
                    f'  {_id(one.relation)}["{one.relation}"] -->|"{inside}"| {_id(program.view)}["{program.view}"]'
                )
            for name in sorted(program.update.whole):
                lines.append(f'  {_id(name)}["{name}"] --> {_id(program.view)}["{program.view}"]')
        return list(dict.fromkeys(lines))


def _id(name: str) -> str:
    return "n_" + "".join(char if char.isalnum() else "_" for char in name)
