"""EXPLAIN: a program as text for people and as data for programs. It decides nothing; it prints what is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headwater.plan.program import Add, Map, Program, Touch


@dataclass(frozen=True)
class InputNote:
    """What the catalogue knows of a relation that a program reads."""

    name: str
    kind: str
    kept: bool


@dataclass(frozen=True)
class EmittedSQL:
    """The SQL an engine will run, in the order of the program's statements.

    Attributes:
        steps: one per `Add`.
        settle: per map, how its pending change becomes its change.
        append: per map, how the change is stored.
    """

    steps: tuple[str, ...]
    settle: Mapping[str, str]
    append: Mapping[str, str]


@dataclass(frozen=True)
class Explanation:
    """`str()` for people, `to_dict()` for programs."""

    program: Program
    inputs: tuple[InputNote, ...]
    sql: EmittedSQL
    notes: tuple[str, ...] = field(default=())

    def to_dict(self) -> dict[str, object]:
        data = self.program.to_dict()
        data["inputs"] = [{"name": i.name, "kind": i.kind, "kept": i.kept} for i in self.inputs]
        data["maps"] = [
            {**_map_facts(one), "settle_sql": self.sql.settle[one.name], "append_sql": self.sql.append[one.name]}
            for one in self.program.maps
        ]
        adds = [s for s in self.program.statements if isinstance(s, Add | Touch)]
        data["statements"] = [
            {"on": s.on, "target": s.target, "term": str(s.term), "sql": text}
            for s, text in zip(adds, self.sql.steps, strict=True)
        ]
        data["blocks"] = [_block_facts(one, self.program) for one in self.program.maps]
        data["recomputed"] = [one.name for one in self.program.maps if self.program.recomputes(one.name)]
        data["notes"] = list(self.notes)
        return data

    def __str__(self) -> str:
        program = self.program
        lines = [f"VIEW {program.view}   (strategy: {program.strategy})", "", "query", *_indent(str(program.query))]
        lines += ["", "relations"]
        lines += [f"  {i.name}: {i.kind}{'' if i.kept else ', only its changes are read'}" for i in self.inputs]
        lines += ["", "maps"]
        for one in program.maps:
            lines += [f"  {_signature(one)}", *_indent(str(one.definition), 4)]
        lines += ["", "blocks", *(f"  {line}" for one in program.maps for line in _block_lines(one, program))]
        for relation in self._changing():
            lines += ["", f"on change of {relation}"]
            for statement, text in self._steps(relation):
                what = (
                    f"keys of {statement.target} to evaluate anew:"
                    if isinstance(statement, Touch)
                    else f"Δ{statement.target} +="
                )
                lines += [f"  {what}", *_indent(str(statement.term), 4), *_indent(text, 6)]
        for one in program.maps:
            heading = "recompute and compare" if program.recomputes(one.name) else "settle"
            if one.keys is not None and heading == "settle":
                by = ", ".join(name for name, _ in one.keys)
                heading = f"evaluate touched keys ({by}) of" if by else "evaluate"
            if one.sums is not None:
                heading = "add to"
            lines += ["", f"{heading} {one.name}", *_indent(self.sql.settle.get(one.name, ""), 6)]
            lines += _indent(self.sql.append[one.name], 6)
        if self.notes:
            lines += ["", "notes", *(f"  {note}" for note in self.notes)]
        return "\n".join(lines)

    def _changing(self) -> list[str]:
        adds = [s for s in self.program.statements if isinstance(s, Add | Touch)]
        return list(
            dict.fromkeys([*(i.name for i in self.inputs if any(s.on == i.name for s in adds)), *(s.on for s in adds)])
        )

    def _steps(self, relation: str) -> list[tuple[Add | Touch, str]]:
        adds = [s for s in self.program.statements if isinstance(s, Add | Touch)]
        return [(s, text) for s, text in zip(adds, self.sql.steps, strict=True) if s.on == relation]


def _kind(one: Map, program: Program) -> str:
    if program.recomputes(one.name):
        return "recomputed"
    if one.keys is not None:
        return "by key" if one.keys else "whole"
    return "merged" if one.merges else "by changes"


def _block_facts(one: Map, program: Program) -> dict[str, object]:
    """How a map is kept, by which key, and what touches it."""
    sums = one.sums or (one.present.sums if one.present is not None else None)
    keys = sums.keys if sums is not None else one.keys
    return {
        "map": one.name,
        "kept": _kind(one, program),
        "key": [str(key) for _, key in keys or ()],
        "touched_by": sorted(one.definition.relations),
        "reads": sorted(one.source.relations) if one.keys is not None else [],
    }


def _block_lines(one: Map, program: Program) -> list[str]:
    """The same for people."""
    relations = ", ".join(sorted(one.definition.relations)) or "nothing"
    match _kind(one, program):
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
