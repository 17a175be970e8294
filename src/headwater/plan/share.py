"""Equal maps are one map: within a view, and across all views of a warehouse.

A program lists everything that its view needs, so a map that several views need stands in all their programs, under one
name, with the same definition and statements. It is stored and maintained once, and lives until the last program that
lists it is gone. (Ahmad et al., "DBToaster", section 5.1, duplicate view elimination; the key-value concept, section 4,
merges equal views of the DAG.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from headwater.algebra.nodes import Node, Scan
from headwater.algebra.renaming import canonical, reread
from headwater.delta.clock import coming_from
from headwater.plan.program import Map, Program, Recompute, Statement
from headwater.plan.strategies.first_order import statements_of
from headwater.sql.names import fold

_Key = tuple[str, bool]


@dataclass(frozen=True)
class _Known:
    """A map that exists, and the program that says how it is maintained."""

    map: Map
    program: Program


def share(program: Program, others: Sequence[Program]) -> Program:
    """The program with maps of other programs in place of equal ones of its own, and with names that are free."""
    if len(program.maps) == 1 and any(isinstance(one, Recompute) for one in program.statements):
        return program
    return _Sharing(program, others).shared()


class _Sharing:
    def __init__(self, program: Program, others: Sequence[Program]) -> None:
        self._program = program
        self._existing: dict[_Key, _Known] = {}
        self._taken = {fold(one.name) for other in others for one in other.maps}
        for other in others:
            for one in other.maps:
                if one.name != other.view:
                    self._existing.setdefault(_key(one), _Known(one, other))
        self._maps: dict[str, Map] = {}
        self._statements: list[Statement] = []
        self._renamed: dict[str, Map] = {}
        self._number = 0

    def shared(self) -> Program:
        program = self._program
        own: dict[_Key, Map] = {}
        kept: list[str] = []
        for one in program.maps:
            after = replace(one, definition=self._reread(one.definition), coming=self._coming(one))
            key = _key(after)
            if one.name == program.view:
                kept.append(one.name)
                self._maps[one.name] = self._renamed[one.name] = after
            elif key in self._existing:
                known = self._existing[key]
                self._adopt(known)
                self._renamed[one.name] = known.map
            elif key in own:
                self._renamed[one.name] = own[key]
            else:
                own[key] = self._renamed[one.name] = replace(after, name=self._free_name())
                self._maps[own[key].name] = own[key]
                kept.append(one.name)
        order = {one.target: i for i, one in reversed(list(enumerate(program.statements)))}
        for name in sorted(kept, key=lambda one: order.get(one, -1)):
            self._statements += self._statements_of(program.map(name))
        upper = None if program.upper is None else self._reread(program.upper)
        return replace(program, maps=tuple(self._maps.values()), statements=tuple(self._statements), upper=upper)

    def _statements_of(self, one: Map) -> list[Statement]:
        """The statements of a map that stays.

        Those that follow from its definition follow from it anew: maps that have become one change at the same time.
        """
        after = self._renamed[one.name]
        if self._program.recomputes(one.name):
            return [Recompute(after.name)]
        own = [statement for statement in self._program.steps if statement.target == one.name]
        if own == statements_of(one):
            return statements_of(after)
        return [
            replace(
                statement,
                on=self._renamed[statement.on].name if statement.on in self._renamed else statement.on,
                target=after.name,
                term=self._reread(statement.term),
            )
            for statement in own
        ]

    def _adopt(self, known: _Known) -> None:
        """Take over a map, with all that it is maintained from."""
        names = closure(known.program, [known.map.name])
        new = [one for one in known.program.maps if one.name in names and one.name not in self._maps]
        self._maps |= {one.name: one for one in new}
        targets = {one.name for one in new}
        self._statements += [one for one in known.program.statements if one.target in targets]

    def _free_name(self) -> str:
        while True:
            self._number += 1
            name = f"{self._program.view}${self._number}"
            if fold(name) not in self._taken:
                return name

    def _coming(self, one: Map) -> Scan | None:
        target = self._renamed.get(one.coming.relation) if one.coming is not None else None
        return one.coming if target is None else coming_from(target.name, target.fields)

    def _reread(self, node: Node) -> Node:
        def scan(one: Scan) -> Scan:
            target = self._renamed.get(one.relation)
            return one if target is None else replace(one, relation=target.name, fields=target.fields)

        return reread(node, scan)


def _key(one: Map) -> _Key:
    return canonical(one.definition), one.stepwise


def closure(program: Program, names: Iterable[str]) -> frozenset[str]:
    """Some maps of a program, and all of its maps that these are maintained from."""
    own = {one.name: one for one in program.maps}
    found: set[str] = set()
    left = [name for name in names if name in own]
    while left:
        name = left.pop()
        if name in found:
            continue
        found.add(name)
        read = set(own[name].definition.relations)
        for statement in program.steps:
            if statement.target == name:
                read |= statement.term.relations
        left += [one for one in read if one in own]
    return frozenset(found)


def needed(program: Program) -> Program:
    """The program without maps that nothing leads from to the view."""
    names = closure(program, program.upper.relations if program.upper is not None else [program.view])
    return replace(
        program,
        maps=tuple(one for one in program.maps if one.name in names),
        statements=tuple(one for one in program.statements if one.target in names),
    )
