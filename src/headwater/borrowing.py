"""New views over existing ones that their text does not name, where that costs less.

A new view that is contained in an existing one can be planned over it: it then follows the changes of that view, which
are fewer, or have been joined already. Whether it is cheaper is weighed as strategies are (Ghanem et al., "Supporting
Views in Data Stream Management Systems", section 9; section 10.6.3 has the cases in which it is not).

Only a view that never fails on a value lends its rows: one that may be suspended would hold up others that have nothing
to do with what it fails on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headwater import types as t
from headwater.algebra.functions import may_raise
from headwater.algebra.nodes import Node, Present, Scan, scalars
from headwater.algebra.renaming import canonical, reread
from headwater.algebra.scalars import Cast, Column, Scalar, transform
from headwater.algebra.simplify import simplify
from headwater.answering import may_answer
from headwater.engine import definitions
from headwater.errors import HeadwaterError, UserError
from headwater.plan.answer_from import Outcome, Views, answer_from, offers_of
from headwater.plan.compile import Surroundings, compile_view
from headwater.plan.cost import Costing, cost_of
from headwater.plan.facts import Facts
from headwater.plan.match import Offer
from headwater.plan.peel import Peeled, peel
from headwater.plan.program import Borrowed, Program
from headwater.plan.spjg import Block, block_of
from headwater.planning import surroundings
from headwater.relations import CatalogRelations
from headwater.sql.names import fold
from headwater.store.catalog import Catalog, Relation
from headwater.store.policies import Policy, When
from headwater.store.policies import synchronised as synchronised_name

if TYPE_CHECKING:
    from headwater.database import Database

#: Another view is read only if that costs this much less: it makes the two depend on each other.
WORTH = 0.8
#: Aggregates of rows that have a value whatever the rows are.
_TAME = frozenset({"min", "max", "count_distinct", "collect_set", "collect_list", "first"})
#: A sum of numbers of so many bits or digits is out of range only after more rows than a file holds.
_MOST_BITS, _MOST_DIGITS = 32, 28


@dataclass(frozen=True)
class Planned:
    """A new view's program, and what is to be said of the views that it could read.

    Attributes:
        program: over what the view's text names, or over views.
        notes: which views were weighed, and what came of it.
        others: programs that other views get with it, because they share finer groups with it.
    """

    program: Program
    notes: tuple[str, ...] = ()
    others: tuple[Program, ...] = ()


def over_views(
    db: Database, name: str, node: Node, strategy: str | None, relations: CatalogRelations, from_views: bool
) -> Planned:
    """The program of a new view: over what its text names, or over views that it is contained in, if that is cheaper.

    Args:
        db: where it is made.
        name: of the view.
        node: its query.
        strategy: one that was asked for; then nothing is weighed.
        relations: by which it was bound; what has to be made for the program is added to what these make.
        from_views: whether views may stand for what the text names.
    """
    among = surroundings(db, relations.made.values())
    plain = compile_view(name, node, strategy, among)
    if strategy is not None or not from_views:
        return Planned(plain)
    catalog = db.engine.catalog
    synchronised = _synchronised((*catalog, *relations.made.values()))
    lenders = list(_near(node, synchronised, catalog))
    if not lenders:
        return Planned(plain)
    seen = {one.name for one in lenders if among.observed[one.name].columns}
    among = _with_rates(among, lenders)
    instead = _cost(plain, among)
    best, notes = plain, []
    for tree, views, back in _ways(node, lenders, synchronised, relations, catalog, among):
        among = _with_made(among, relations.made.values())
        program = compile_view(name, simplify(tree), None, among)
        cost = _cost(program, among)
        taken = _is_worth(cost, instead, seen.issuperset(views))
        taken = taken and (best.borrowed is None or cost < best.borrowed.milliseconds)
        if taken:
            best = replace(program, borrowed=Borrowed(node if back else None, views, cost, instead))
        else:
            shown = f"{', '.join(views)}: {cost:,.1f} ms an epoch, instead of {instead:,.1f} ms"
            notes.append(f"it could be computed from {shown}, which is not worth it")
    return Planned(best, tuple(notes))


def _is_worth(cost: float, instead: float, seen: bool) -> bool:
    """Whether to read views; guesses about views that have no rows yet are not worth it, whatever comes of them."""
    return cost < instead * WORTH and (seen or WORTH > 1.0)


def _cost(program: Program, among: Surroundings) -> float:
    return cost_of(program, among.observed, among.maps_beside(program.view)).milliseconds


def _with_rates(among: Surroundings, views: Iterable[Relation]) -> Surroundings:
    """What is known, with how fast views change: as fast as follows from what they read."""
    observed = dict(among.observed)
    for one in views:
        assert one.program is not None
        costing = Costing(one.program, observed)
        costing.total()
        expected = costing.observed(one.name)
        known = observed[one.name]
        rows = known.rows if known.columns else expected.rows
        # A group that changes goes as it was, and comes as it is.
        rate = expected.rate * (2.0 if one.program.map(one.name).present is not None else 1.0)
        columns = known.columns or expected.columns
        observed[one.name] = replace(known, rows=rows, rate=rate, share=expected.share, columns=columns)
    return replace(among, observed=observed)


def _with_made(among: Surroundings, made: Iterable[Relation]) -> Surroundings:
    """What is known, with relations that would be made: what stands for a relation is as large as that."""
    more = {one.name: among.observed[one.of] for one in made if one.of is not None and one.of in among.observed}
    return replace(among, observed={**among.observed, **more})


# -- which views lend --------------------------------------------------------------------------------------------------


def is_lender(view: Relation, catalog: Catalog) -> bool:
    """Whether a view may be read by views that do not name it: it is current, and stays so."""
    return may_answer(view, catalog) and view.helper is None and view.program is not None and _never_fails(view.program)


def _never_fails(program: Program) -> bool:
    for node in program.query.walk():
        tame: frozenset[str] = frozenset()
        if isinstance(node, Present):
            tame = frozenset(name for name, term in node.sums.terms if _has_room(term.type))
            if any(pick.function not in _TAME for _, pick in node.sums.picks):
                return False
        if any(may_raise(_without_casts(one, tame)) for one in scalars(node)):
            return False
    return True


def _has_room(kind: t.Type) -> bool:
    match kind:
        case t.Integer(bits):
            return bits <= _MOST_BITS
        case t.Decimal(precision, _):
            return precision <= _MOST_DIGITS
    return isinstance(kind, t.Boolean)


def _without_casts(scalar: Scalar, tame: frozenset[str]) -> Scalar:
    """A scalar with totals that have room as they are shown."""

    def one(part: Scalar) -> Scalar | None:
        match part:
            case Cast(arg=Column(name=name), type=kind) if name in tame:
                return Column(name, kind)
        return None

    return transform(scalar, one)


# -- ways to read them -------------------------------------------------------------------------------------------------


def _near(node: Node, synchronised: Mapping[str, tuple[str, Policy]], catalog: Catalog) -> Iterator[Relation]:
    """Views that may lend and read nothing else than a query does, synchronised or not."""

    def finest(read: Iterable[str]) -> set[str]:
        return {synchronised[name][0] if name in synchronised else name for name in read}

    mine = finest(node.relations)
    for one in catalog:
        if one.program is None:
            continue
        inside = any(finest(tree.relations) <= mine for tree in (one.program.query, one.program.written))
        if inside and is_lender(one, catalog):
            yield one


def _ways(
    node: Node,
    lenders: list[Relation],
    synchronised: Mapping[str, tuple[str, Policy]],
    relations: CatalogRelations,
    catalog: Catalog,
    among: Surroundings,
) -> Iterator[tuple[Node, tuple[str, ...], bool]]:
    """Trees over views, with the views that they read, and whether the view could turn back to what its text names."""
    still = frozenset(one.name for one in catalog if one.static)
    mine = peel(node, synchronised, still)
    if not mine.points:
        offers = [offer for view in lenders for tree in _trees(view) for offer in _offers(view, tree, catalog)]
        found = _found(node, offers, among)
        if found.uses:
            yield found.node, _views(found), True
    if mine.mixed or len(mine.points) != 1:
        return
    [policy] = mine.points
    made = {one.name for one in relations.made.values()}
    begins = all(name in made for name in node.relations if name in synchronised)
    late = []
    for view in lenders:
        assert view.program is not None
        theirs = peel(view.program.query, synchronised, still)
        if _holds(theirs, policy, begins and catalog.find(synchronised_name(view.name, policy)) is None, catalog):
            late += _offers(view, theirs.data, catalog)
    found = _found(mine.data, late, among)
    if found.uses:
        yield _at(found.node, policy, relations, node), _views(found), False


def _trees(view: Relation) -> list[Node]:
    assert view.program is not None
    return list(dict.fromkeys((view.program.query, view.program.written)))


def _offers(view: Relation, tree: Node, catalog: Catalog) -> list[Offer]:
    return offers_of(view.name, view.fields, tree, catalog.keys)


def _found(node: Node, offers: list[Offer], among: Surroundings) -> Outcome:
    def rows(name: str) -> float:
        known = among.observed.get(name)
        return known.rate if known is not None else 0.0

    return answer_from(node, Views(offers), rows, lambda before, after: True)


def _views(found: Outcome) -> tuple[str, ...]:
    read = found.node.relations
    return tuple(dict.fromkeys(use.view for use in found.uses if use.view in read))


def _synchronised(relations: Iterable[Relation]) -> dict[str, tuple[str, Policy]]:
    """Synchronised relations with what they stand for; of streams that only grow, it matters since when."""
    return {
        one.name: (one.of, one.policy)
        for one in relations
        if one.policy is not None and one.of is not None and not one.appends
    }


def _at(tree: Node, policy: Policy, relations: CatalogRelations, node: Node) -> Node:
    """A tree over the relations themselves, as synchronised by a policy."""

    def scan(one: Scan) -> Scan:
        return one if one.relation in still else replace(one, relation=relations.follower_of(one.relation, policy))

    still = node.relations
    return reread(tree, scan)


def _holds(theirs: Peeled[Policy], policy: Policy, begins: bool, catalog: Catalog) -> bool:
    """Whether a view is up to date whenever a policy ticks.

    What is synchronised by the policy already is as of its last tick, and the view as of another one, unless it has the
    same policy. So others are read only where the policy begins with the new view (`begins`).
    """
    if theirs.mixed or theirs.points == {policy}:
        return not theirs.mixed
    return begins and all(contained(policy, one, catalog) for one in theirs.points)


def contained(policy: Policy, other: Policy, catalog: Catalog) -> bool:
    """Whether another policy ticks whenever one does (section 6.3.1, proposition 1).

    Of two synchronisation streams that filter the same stream, the one that asks for more is contained in the other.
    """
    if policy.within(other):
        return True
    if policy.when is not When.ON or other.when is not When.ON:
        return False
    mine, theirs = (_points(catalog.find(one.name)) for one in (policy, other))
    if mine is None or theirs is None or _kind(mine) != _kind(theirs):
        return False
    [a], [b] = mine.leaves, theirs.leaves
    names: Mapping[str, Scalar] = {y.name: Column(x.name, x.type) for x, y in zip(a.schema, b.schema, strict=True)}
    facts = Facts(mine.conditions, mine.not_null)
    return all(facts.implies(_renamed(one, names)) for one in theirs.conditions)


def _points(stream: Relation | None) -> Block | None:
    """A synchronisation stream as a block: some rows of one stream that only grows."""
    block = block_of(stream.program.written) if stream is not None and stream.program is not None else None
    if block is None or block.groups is not None or len(block.leaves) != 1:
        return None
    leaf = block.leaves[0]
    return block if isinstance(leaf, Scan) and leaf.grows else None


def _kind(block: Block) -> str:
    """What the points are of, whenever they began to be looked at."""
    [leaf] = block.leaves
    assert isinstance(leaf, Scan)
    return canonical(replace(leaf, since=0))


def _renamed(scalar: Scalar, names: Mapping[str, Scalar]) -> Scalar:
    return transform(scalar, lambda part: names.get(part.name) if isinstance(part, Column) else None)


# -- taking back -------------------------------------------------------------------------------------------------------


def release(db: Database, relation: Relation, cascade: bool) -> None:
    """Before a relation is dropped: plan views that only borrow from what goes over what their text names.

    Nothing is done if it cannot be dropped, because something names it.

    Args:
        db: where.
        relation: what is to be dropped.
        cascade: whether what names it goes, too, and what cannot be without it.

    Raises:
        UserError: HW105, a view that borrows needs rows that are not kept.
    """
    catalog = db.engine.catalog
    going = _going(relation, catalog)
    if not cascade and any(one.policy is None for one in catalog if one.folded in going - {relation.folded}):
        return
    for one in catalog:
        borrowed = one.program.borrowed if one.program is not None else None
        if borrowed is None or one.folded in going or not going & {fold(name) for name in borrowed.views}:
            continue
        try:
            _turn_back(db, one)
        except HeadwaterError as error:
            if not cascade:
                raise UserError(
                    "HW105",
                    f"{relation.name} is read by {one.name}, which cannot be planned without it: {error.message}",
                    hint=f"drop {one.name} first, or DROP VIEW {relation.name} CASCADE",
                ) from error


def _going(relation: Relation, catalog: Catalog) -> set[str]:
    """A relation, and what names it, or names what does, by their folded names."""
    going = {relation.folded}
    for one in catalog:
        turns_back = one.program is not None and one.program.borrowed is not None
        named = one.program.written.relations if one.program is not None and turns_back else one.reads
        if going & {fold(name) for name in named}:
            going.add(one.folded)
    return going


def _turn_back(db: Database, view: Relation) -> None:
    assert view.program is not None
    if view.suspended:
        raise UserError("HW507", f"view {view.name} is suspended")
    definitions.replan(db.engine, view, compile_view(view.name, view.program.written, None, surroundings(db)))
