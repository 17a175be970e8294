"""EXPLAIN: a program as text for people and as data for programs. It decides nothing; it prints what is there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property

from headwater.algebra.clock import CLOCK
from headwater.algebra.nodes import During
from headwater.plan.answer_from import Outcome
from headwater.plan.dag import Dag, InputNote, Sizes, dag_of, kept_how
from headwater.plan.explain_answer import answer_facts, answer_lines
from headwater.plan.explain_tasks import TaskNotes
from headwater.plan.pipelines import pipeline_lines, pipelines_of
from headwater.plan.program import Add, Map, Program, Rival, Touch
from headwater.plan.render_mermaid import render_mermaid
from headwater.plan.render_tree import render_tree
from headwater.plan.roles import roles_text, window_of


@dataclass(frozen=True)
class EmittedSQL:
    """The SQL an engine will run, in the order of the program's statements.

    Attributes:
        steps: one per `Add`.
        settle: per map, how its pending change becomes its change.
        append: per map, how the change is stored.
        upper: what evaluates the view when it is read, and before it what is held for that, by name.
    """

    steps: tuple[str, ...]
    settle: Mapping[str, str]
    append: Mapping[str, str]
    upper: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Explanation:
    """`str()` in the format that was asked for, `to_dict()` for programs.

    Attributes:
        program: what is explained.
        inputs: the relations that it reads.
        sql: what runs.
        notes: what else is to be said.
        sizes: of the stores that there are, by their names.
        format: `text`, `tree`, `mermaid` or `json`.
        rivals: ways to maintain the view that were weighed, cheapest first; those of the program by default.
        answer: of a query, from which views it would be answered now.
        tasks: how it is spread over tasks, if it is.
    """

    program: Program
    inputs: tuple[InputNote, ...]
    sql: EmittedSQL
    notes: tuple[str, ...] = field(default=())
    sizes: Sizes = field(default_factory=dict)
    format: str = "text"
    rivals: tuple[Rival, ...] | None = None
    answer: Outcome | None = None
    tasks: TaskNotes | None = None

    @property
    def weighed(self) -> tuple[Rival, ...]:
        return self.program.rivals if self.rivals is None else self.rivals

    @cached_property
    def dag(self) -> Dag:
        """The program's relations, and what flows between them."""
        return dag_of(self.program, self.inputs, self.sizes)

    def __str__(self) -> str:
        match self.format:
            case "tree":
                return "\n".join([*self._asked_rivals(), render_tree(self.dag)])
            case "mermaid":
                return "\n".join([render_mermaid(self.dag), *(f"%% {line}" for line in self._asked_rivals() if line)])
            case "json":
                return json.dumps(self.to_dict(), ensure_ascii=False, indent=2)
        return self._text()

    def _asked_rivals(self) -> list[str]:
        """What was weighed, if that was asked for."""
        return rival_lines(self.rivals or (), self.program.strategy)

    def to_dict(self) -> dict[str, object]:
        data = self.program.to_dict()
        data["inputs"] = [{"name": i.name, "kind": i.kind, "kept": i.kept} for i in self.inputs]
        data["maps"] = [
            {
                **_map_facts(one),
                "roles": self._roles(one),
                "settle_sql": self.sql.settle.get(one.name),
                "append_sql": self.sql.append[one.name],
            }
            for one in self.program.maps
        ]
        adds = [s for s in self.program.statements if isinstance(s, Add | Touch)]
        data["statements"] = [
            {"on": s.on, "target": s.target, "term": str(s.term), "sql": text}
            for s, text in zip(adds, self.sql.steps, strict=True)
        ]
        data["blocks"] = [_block_facts(one, self.program) for one in self.program.maps]
        data["recomputed"] = [one.name for one in self.program.maps if self.program.recomputes(one.name)]
        data["dag"] = self.dag.to_dict()
        if self.program.lazy:
            data["pipelines"] = [one.to_dict() for one in pipelines_of(self.program)]
            data["upper_sql"] = dict(self.sql.upper)
        data["rivals"] = [asdict(one) for one in self.weighed]
        data["notes"] = list(self.notes)
        if self.answer is not None:
            data["answer"] = answer_facts(self.answer)
        if self.tasks is not None:
            data["tasks"] = self.tasks.to_dict()
        return data

    def _roles(self, one: Map) -> list[str]:
        return [role.value for role in self.dag.vertex(one.name).roles]

    def _text(self) -> str:
        program = self.program
        why = ", as asked for" if program.hinted else ", chosen by cost" if len(program.rivals) > 1 else ""
        lines = [f"VIEW {program.view}   (strategy: {program.strategy}{why})", ""]
        lines += rival_lines(self.weighed, program.strategy)
        answered = answer_lines(self.answer) if self.answer is not None else []
        lines += ["asked once, now", *(f"  {line}" for line in answered), ""] if answered else []
        lines += ["query", *_indent(str(program.query))]
        lines += ["", "relations"]
        lines += [f"  {i.name}: {i.kind}{'' if i.kept else ', only its changes are read'}" for i in self.inputs]
        lines += ["", "maps"]
        for one in program.maps:
            lines += [f"  {self._heading(one)}", f"  {_signature(one)}", *_indent(str(one.definition), 4)]
        if program.why:
            lines += ["", f"  {program.why}"]
        lines += self._when_read()
        lines += ["", *self.tasks.lines()] if self.tasks is not None else []
        lines += ["", "blocks", *(f"  {line}" for one in program.maps for line in _block_lines(one, program))]
        for relation in self._changing():
            lines += ["", "as the clock advances" if relation == CLOCK else f"on change of {relation}"]
            for statement, text in self._steps(relation):
                what = f"Δ{statement.target} +="
                if isinstance(statement, Touch):
                    what = f"keys of {statement.target} to evaluate anew:"
                elif program.map(statement.target).stepwise:
                    what = f"{statement.target} +="
                lines += [f"  {what}", *_indent(str(statement.term), 4), *_indent(text, 6)]
        for one in program.maps:
            heading = "recompute and compare" if program.recomputes(one.name) else "settle"
            if one.keys is not None and heading == "settle":
                by = ", ".join(name for name, _ in one.keys)
                heading = f"evaluate touched keys ({by}) of" if by else "evaluate"
            if one.stepwise:
                continue
            if one.sums is not None:
                heading = "add to"
            lines += ["", f"{heading} {one.name}", *_indent(self.sql.settle.get(one.name, ""), 6)]
            lines += _indent(self.sql.append[one.name], 6)
        if self.notes:
            lines += ["", "notes", *(f"  {note}" for note in self.notes)]
        return "\n".join(lines)

    def _when_read(self) -> list[str]:
        """What is left for whoever reads the view."""
        program = self.program
        if program.upper is None:
            return []
        lines = ["", "pipelines", *(f"  {line}" for line in pipeline_lines(pipelines_of(program)))]
        for one in program.held:
            lines += ["", f"held until {', '.join(sorted(one.definition.relations))} changes"]
            lines += [f"  {one.name} :=", *_indent(str(one.definition), 4), *_indent(self.sql.upper[one.name], 6)]
        lines += ["", "when it is read, unless nothing has changed since", *_indent(str(program.upper), 4)]
        return [*lines, *_indent(self.sql.upper[program.view], 6)]

    def _heading(self, one: Map) -> str:
        """What a map is there for, and how large it is."""
        vertex = self.dag.vertex(one.name)
        size = f"; {vertex.size}" if vertex.size is not None else ""
        return f"-- {one.name}: {roles_text(vertex.roles)}{size}"

    def _changing(self) -> list[str]:
        adds = [s for s in self.program.statements if isinstance(s, Add | Touch)]
        return list(
            dict.fromkeys([*(i.name for i in self.inputs if any(s.on == i.name for s in adds)), *(s.on for s in adds)])
        )

    def _steps(self, relation: str) -> list[tuple[Add | Touch, str]]:
        adds = [s for s in self.program.statements if isinstance(s, Add | Touch)]
        return [(s, text) for s, text in zip(adds, self.sql.steps, strict=True) if s.on == relation]


def rival_lines(rivals: tuple[Rival, ...], strategy: str) -> list[str]:
    """What was weighed, as a table, with a mark at the one in use; nothing if there was nothing to choose from."""
    if len(rivals) < 2:
        return []
    wide = max(len(one.strategy) for one in rivals)
    lines = ["weighed: what an epoch is expected to cost"]
    for one in rivals:
        mark = ">" if one.strategy == strategy else " "
        cost = f"{one.milliseconds:>10,.1f} ms {one.statements:>6.0f} statements {one.rows:>14,.0f} rows in maps"
        lines.append(f"{mark} {one.strategy:<{wide}} {cost}")
    return [*lines, ""]


def _block_facts(one: Map, program: Program) -> dict[str, object]:
    """How a map is kept, by which key, and what touches it."""
    sums = one.sums or (one.present.sums if one.present is not None else None)
    keys = sums.keys if sums is not None else one.keys
    return {
        "map": one.name,
        "kept": kept_how(one, program),
        "key": [str(key) for _, key in keys or ()],
        "touched_by": sorted(one.definition.relations),
        "reads": sorted(one.source.relations) if one.keys is not None else [],
    }


def _block_lines(one: Map, program: Program) -> list[str]:
    """The same for people."""
    relations = ", ".join(sorted(one.definition.relations)) or "nothing"
    if isinstance(one.definition, During) and not program.recomputes(one.name):
        return _window_lines(one, program, relations)
    match kept_how(one, program):
        case "recomputed":
            return [f"{one.name}: evaluated whole from {relations}, whenever one of them changes"]
        case "by key":
            keys = ", ".join(str(key) for _, key in one.keys or ())
            return [
                f"{one.name}: by key ({keys})",
                f"  a change of {relations} touches the keys of its rows;",
                f"  these are evaluated anew from all stored rows of {relations} that have them",
            ]
        case "whole":
            return [
                f"{one.name}: without a key",
                f"  a change of {relations} touches everything;",
                f"  it is evaluated anew from all stored rows of {relations}",
            ]
        case "merged":
            return [
                f"{one.name}: from the changes of {relations} and what is stored, because rows of {relations} never go"
            ]
    return [f"{one.name}: from the changes of {relations}"]


def _window_lines(one: Map, program: Program, relations: str) -> list[str]:
    held = f"{one.name}: rows come and go with the changes of {relations},"
    window = window_of(one, program)
    if window is not None:
        return [held, f"  and leave for {window} as the clock advances to their time"]
    come = f"  come from {one.coming.relation} when the clock says that it is their time," if one.coming else ""
    ends = (
        "  and leave as the clock advances"
        if any(s.on == CLOCK and s.target == one.name for s in program.steps)
        else ""
    )
    return [line for line in (held, come, ends) if line]


def _signature(one: Map) -> str:
    """`name[keys] -> payload` for a map stored by group, `name(columns)` for rows."""
    sums = one.sums or (one.present.sums if one.present is not None else None)
    if sums is None:
        return f"{one.name}({', '.join(str(f) for f in one.fields)}) := rows of"
    keys = ", ".join(f"{name} {key.type}" for name, key in sums.keys)
    payload = ", ".join(f"{f.name} {f.type}" for f in sums.payload)
    return f"{one.name}[{keys}] -> ({payload}) :="


def _map_facts(one: Map) -> dict[str, object]:
    facts: dict[str, object] = {"name": one.name, "definition": str(one.definition)}
    sums = one.sums or (one.present.sums if one.present is not None else None)
    if sums is None:
        return facts | {"stored": "rows", "columns": [[f.name, str(f.type)] for f in one.fields]}
    return facts | {
        "stored": "partial sums" if one.sums else "groups",
        "keys": [[name, str(key.type)] for name, key in sums.keys],
        "payload": [[f.name, str(f.type)] for f in sums.payload],
        "columns": [[f.name, str(f.type)] for f in one.fields],
    }


def _indent(text: str, by: int = 2) -> list[str]:
    return [" " * by + line for line in text.splitlines()]
