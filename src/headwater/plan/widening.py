"""Partial sums that several views share though they sum different things: one map with the terms of all.

(Ghanem et al., "Supporting Views in Data Stream Management Systems", section 10.6: views over the same stream share a
pre-aggregation.) Where two views add up the same rows by the same keys, one map costs one pass over the rows that come
and stores the keys once; nothing is lost by it. A map that has all terms of another one is as good as that. Others can
take further terms as long as nothing has come to them, which is so if no epoch has passed since they were made. Terms
that may fail are not shared: whoever needs them fails alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from headwater.algebra.folds import Pick
from headwater.algebra.functions import may_raise
from headwater.algebra.nodes import Node, Project, Scan, Sum, only_grows, scalars, transform
from headwater.algebra.renaming import canonical
from headwater.algebra.scalars import Column, Scalar, substitute
from headwater.plan.program import Map, Program, Statement
from headwater.plan.strategies.first_order import statements_of

T = TypeVar("T", Scalar, Pick)


@dataclass(frozen=True)
class Widened:
    """A program whose maps are parts of others, and these others.

    Attributes:
        program: the new one.
        maps: maps that there are, with more terms than they have.
    """

    program: Program
    maps: Mapping[str, Map] = field(default_factory=dict)

    def of(self, other: Program) -> Program:
        """Another program that has some of these maps."""
        return _with_maps(other, self.maps)


def widened(program: Program, others: Sequence[Program], epoch: int | None) -> Widened:
    """A new program with the partial sums of other programs in place of its own, where these can take its terms.

    Args:
        program: the new one; maps that it has in common with others are theirs already.
        others: those that there are.
        epoch: the last one; None if no map is to take further terms.
    """
    theirs = {one.name: one for other in others for one in other.maps}
    found: dict[str, Map] = {}
    replaced: dict[str, tuple[Map, Mapping[str, str]]] = {}
    own = [one for one in program.maps if one.name not in theirs and _is_partial(one)]
    by_rows: dict[str, list[Map]] = {}
    for one in theirs.values() if own else ():
        if _is_partial(one):
            by_rows.setdefault(_rows(one), []).append(one)
    for one in own:
        for other in by_rows.get(_rows(one), ()):
            wide = found.get(other.name, other)
            united, names = _united(wide, one)
            if united.definition == wide.definition or (_can_grow(wide, epoch) and _can_grow(one, epoch)):
                found[wide.name] = united
                replaced[one.name] = united, names
                break
    if not replaced:
        return Widened(program)
    kept = [one for one in program.maps if one.name not in replaced]
    taken = {wide.name: found[wide.name] for wide, _ in replaced.values()}
    rest = [one for one in program.statements if one.target not in replaced]
    more: list[Statement] = [one for wide in taken.values() for one in statements_of(wide)]
    reading = {name: (found[wide.name], names) for name, (wide, names) in replaced.items()}
    upper = None if program.upper is None else _reading(program.upper, reading)
    maps = tuple(replace(one, definition=_reading(one.definition, reading)) for one in kept)
    shared = replace(program, maps=(*taken.values(), *maps), statements=(*more, *rest), upper=upper)
    grown = {name: one for name, one in found.items() if one.definition != theirs[name].definition}
    return Widened(_with_maps(shared, found), grown)


def _is_partial(one: Map) -> bool:
    """Whether it is partial sums of streams."""
    return one.stepwise and one.sums is not None and only_grows(one.sums.input) and bool(one.sums.relations)


def _can_grow(one: Map, epoch: int | None) -> bool:
    """Whether nothing has come to it yet, and nothing in it may fail."""
    assert one.sums is not None
    if epoch is None:
        return False
    scans = [node for node in one.sums.input.walk() if isinstance(node, Scan)]
    return all(scan.since >= epoch for scan in scans) and not any(
        may_raise(scalar) for node in one.sums.walk() for scalar in scalars(node)
    )


def _rows(one: Map) -> str:
    """Which rows it adds up, and by which keys."""
    assert one.sums is not None
    return rows_of(one.sums)


def rows_of(sums: Sum) -> str:
    """Which rows a sum adds up, and by which keys."""
    return canonical(replace(sums, terms=(), picks=()))


def names_in(wide: Sum, sums: Sum) -> Mapping[str, str] | None:
    """Under which names a sum has the columns of another over the same rows, by the same keys; None if it lacks one."""
    united, names = _united_sums(wide, sums)
    return names if united == wide else None


def _united(wide: Map, other: Map) -> tuple[Map, Mapping[str, str]]:
    """A map with the terms of two, and under which names it has those of the second."""
    assert wide.sums is not None and other.sums is not None
    sums, names = _united_sums(wide.sums, other.sums)
    return replace(wide, definition=sums), names


def _united_sums(a: Sum, b: Sum) -> tuple[Sum, Mapping[str, str]]:
    columns: dict[str, Scalar] = {
        theirs.name: Column(ours.name, ours.type) for ours, theirs in zip(a.input.schema, b.input.schema, strict=True)
    }
    names = {theirs: ours for (ours, _), (theirs, _) in zip(a.keys, b.keys, strict=True)}
    names[b.payload[0].name] = a.payload[0].name
    terms, picks = dict(a.terms), dict(a.picks)
    taken = {name.lower() for name, _ in (*a.keys, *a.terms, *a.picks)}
    for name, term in b.terms:
        names[name] = _named(terms, substitute(term, columns), "s", taken)
    for name, pick in b.picks:
        names[name] = _named(picks, pick.map(lambda one: substitute(one, columns)), "p", taken)
    return replace(a, terms=tuple(terms.items()), picks=tuple(picks.items())), names


def _named(known: dict[str, T], value: T, letter: str, taken: set[str]) -> str:
    """The name under which something is known; a new one if it is not."""
    for name, one in known.items():
        if one == value:
            return name
    number = 1
    while f"{letter}{number}" in taken:
        number += 1
    name = f"{letter}{number}"
    taken.add(name)
    known[name] = value
    return name


def _reading(node: Node, replaced: Mapping[str, tuple[Map, Mapping[str, str]]]) -> Node:
    """A tree that reads wider maps in place of some."""

    def read(one: Node) -> Node:
        if not isinstance(one, Scan) or one.relation not in replaced:
            return one
        wide, names = replaced[one.relation]
        scan = Scan(wide.name, one.alias, wide.fields)
        shown = ((f, scan.column(f"{scan.alias}.{names[f.name]}")) for f in one.fields)
        return Project(scan, tuple((f"{one.alias}.{f.name}", column) for f, column in shown))

    return transform(node, read)


def _with_maps(program: Program, maps: Mapping[str, Map]) -> Program:
    """A program in which some maps have more terms; who reads them sees those that there were."""
    if not any(one.name in maps for one in program.maps):
        return program
    statements: list[Statement] = []
    done: set[str] = set()
    for one in program.statements:
        if one.target not in maps:
            statements.append(one)
        elif one.target not in done:
            done.add(one.target)
            statements += statements_of(maps[one.target])
    return replace(program, maps=tuple(maps.get(one.name, one) for one in program.maps), statements=tuple(statements))
