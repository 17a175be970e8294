"""Finer groups that several views share: one pass over the rows, and each view's groups follow from the few finer ones.

(Ghanem et al., "Supporting Views in Data Stream Management Systems", section 10.6.1, figure 12(b).) Views that add up
the same rows by different keys can share a map grouped by the keys of all, with the terms of all. It is partial sums,
so nothing is looked up to keep it. A view's own groups are then added up from its changes:

    sum[a; x](R)   =   sum[a; carry(x)](F),   F = sum[a, b; x, y](R)

The paper's upper operators read the finer groups as they are after each point in time; ours read what has come to them,
which is at most as many entries as rows have changed.

Only what adds up exactly is shared. Sums of DOUBLE are not: in another order they come out otherwise. Nor is what has
to be evaluated by key (COUNT DISTINCT, MIN of rows that may go), nor a key or term that may fail on a value: whoever
needs it fails alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from headwater import types as t
from headwater.algebra.functions import may_raise
from headwater.algebra.nodes import COUNT, ONE, Node, Present, Scan, Sum, only_grows
from headwater.algebra.renaming import canonical
from headwater.algebra.scalars import TRUE, Column, Scalar, substitute
from headwater.plan.blocks import cut
from headwater.plan.program import BlockPlan, Map, Program
from headwater.plan.sizes import Sizes
from headwater.plan.strategies.first_order import statements_of
from headwater.plan.strategies.sums import again, names_of
from headwater.plan.strategies.tree import trees

NAME = "finer"
T = TypeVar("T")
#: What a map reads finer groups as; no query can use it.
ALIAS = "#fine"


@dataclass(frozen=True)
class Finer:
    """Groups that are fine enough for several views.

    Attributes:
        sums: what they are, over the rows.
        plan: how they are kept; the last map is theirs.
    """

    sums: Sum
    plan: BlockPlan


def shareable(view: str, query: Node) -> Iterator[Sum]:
    """What a view adds up of rows that are not its own, and could add up from finer groups."""
    blocks = cut(view, query)
    own = {one.name for one in blocks}
    for one in blocks:
        sums = _sums(one)
        if sums is not None and not sums.relations & own:
            yield sums


def _sums(block: Map) -> Sum | None:
    """What a block adds up, if it adds up exactly and never fails."""
    sums = block.present.sums if block.present is not None and block.keys is None else None
    if sums is None or sums.count != ONE or not sums.relations:
        return None
    if any(isinstance(term.type, t.Double | t.Float) for _, term in sums.terms):
        return None
    asked = [one for _, one in (*sums.keys, *sums.terms)]
    asked += [arg for _, pick in sums.picks for arg in pick.args]
    return None if any(may_raise(one) for one in asked) else sums


def rows_of(sums: Sum) -> str:
    """Which rows are added up, whatever by."""
    return canonical(sums.input)


def united(several: Sequence[Sum]) -> Sum:
    """The groups that are fine enough for several sums over the same rows; the same whichever comes first."""
    rows = several[0].input
    plain: dict[str, Scalar] = {f.name: Column(f"c{i}", f.type) for i, f in enumerate(rows.schema)}
    translated = [_over(one, rows) for one in several]
    keys = _all((key for one in translated for _, key in one.keys), lambda one: str(substitute(one, plain)))
    terms = _all((term for one in translated for _, term in one.terms), lambda one: str(substitute(one, plain)))
    picks = _all(
        (pick for one in translated for _, pick in one.picks),
        lambda one: str(one.map(lambda arg: substitute(arg, plain))),
    )
    names = names_of(keys)
    taken = {name.lower() for name in names}
    return Sum(
        rows,
        tuple(zip(names, keys, strict=True)),
        tuple(zip(_free("s", len(terms), taken), terms, strict=True)),
        tuple(zip(_free("p", len(picks), taken), picks, strict=True)),
    )


def _all(values: Iterable[T], text: Callable[[T], str]) -> list[T]:
    """Each value once, in the order of its text."""
    return [one for _, one in sorted({text(one): one for one in values}.items(), key=lambda item: item[0])]


def _over(sums: Sum, rows: Node) -> Sum:
    """A sum over the same rows under other names."""
    columns: dict[str, Scalar] = {
        mine.name: Column(theirs.name, theirs.type) for mine, theirs in zip(sums.input.schema, rows.schema, strict=True)
    }
    return Sum(
        rows,
        tuple((name, substitute(one, columns)) for name, one in sums.keys),
        tuple((name, substitute(one, columns)) for name, one in sums.terms),
        tuple((name, pick.map(lambda one: substitute(one, columns))) for name, pick in sums.picks),
    )


def _free(letter: str, many: int, taken: set[str]) -> list[str]:
    while any(f"{letter}{i}" in taken for i in range(1, many + 1)):
        letter += "_"
    return [f"{letter}{i}" for i in range(1, many + 1)]


def ways_to_keep(sums: Sum, sizes: Sizes) -> list[BlockPlan]:
    """How finer groups can be kept: from the changes of rows, or over a tree of joins."""
    shown = Map(NAME, Present(sums, (), TRUE))
    plans: list[BlockPlan] = []
    for one in (BlockPlan([shown], []), *trees(shown, NAME, 0, sizes)):
        top = one.maps[-1].present
        assert top is not None
        maps = [*one.maps[:-1], Map(NAME, top.sums)]
        plan = BlockPlan(maps, [statement for each in maps for statement in statements_of(each)])
        plans += [plan] if plan not in plans else []
    return plans


def read_finer(block: Map, finer: Finer) -> BlockPlan | None:
    """How a block follows from finer groups; None if these are not fine enough, or of other rows."""
    sums = _sums(block)
    if sums is None or rows_of(sums) != rows_of(finer.sums):
        return None
    one = _over(sums, finer.sums.input)
    names = _names_in(finer.sums, one)
    if names is None or block.present is None:
        return None
    kept = finer.plan.maps[-1]
    scan = Scan(kept.name, ALIAS, kept.fields, grows=only_grows(sums.input))
    read = {name: scan.column(f"{ALIAS}.{theirs}") for name, theirs in names.items()}
    own = Map(block.name, replace(block.present, input=again(sums, scan, read)))
    return BlockPlan([*finer.plan.maps, own], [*finer.plan.statements, *statements_of(own)])


def _names_in(fine: Sum, one: Sum) -> Mapping[str, str] | None:
    """Under which names finer groups have the columns of a sum; None if they lack one."""
    names = {COUNT: COUNT}
    for theirs, mine in ((fine.keys, one.keys), (fine.terms, one.terms), (fine.picks, one.picks)):
        known = {str(value): name for name, value in theirs}
        for name, value in mine:
            if str(value) not in known:
                return None
            names[name] = known[str(value)]
    return names


def finer_map(program: Program) -> str | None:
    """The map of finer groups that a program reads, if it reads one."""
    scans = (node for one in program.maps for node in one.definition.walk() if isinstance(node, Scan))
    return next((scan.relation for scan in scans if scan.alias == ALIAS), None)
