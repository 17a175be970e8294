"""Whether a block of a query can be computed from a view, and how.

The conditions are those of Goldstein and Larson, "Optimizing queries using materialized views: a practical, scalable
solution" (SIGMOD 2001, section 3), which Ghanem et al., "Supporting Views in Data Stream Management Systems" (TODS
2010, section 7.2), use as their second step. In short: the view has all rows that the query needs (what it asks of rows
follows from what the query asks), what it has too many of can be told from columns that it shows, and so can everything
that the query shows; groups of the view can be added up to groups of the query.

Beyond the paper, a view may stand for a part of a join, also a view of groups, whose groups then count for as many rows
as they have. Without foreign keys in the catalogue, a view that joins more than the query never matches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from headwater import types as t
from headwater.algebra.functions import may_raise
from headwater.algebra.joins import joined
from headwater.algebra.nodes import COUNT, ONE, Filter, Named, Node, Present, Project, Scan, Sum, total_of
from headwater.algebra.scalars import TRUE, Column, Literal, Scalar, call, conjunction, conjuncts, substitute, transform
from headwater.plan.facts import Facts
from headwater.plan.spjg import Block, Groups, NoMatch
from headwater.plan.totals import ROWS, Totals, only_whether_any, reads_count

#: Of relations that are joined several times, so many ways to tell them apart are tried.
_MOST_WAYS = 48


@dataclass(frozen=True)
class Offer:
    """A view that may answer: its name, its columns, and what it holds."""

    view: str
    fields: t.Schema
    block: Block


def computed_from(query: Block, names: Sequence[str], offer: Offer, alias: str) -> Node:
    """The rows of a query's block, computed from a view and what the view does not join.

    Args:
        query: the block.
        names: of its columns, in order.
        offer: the view.
        alias: under which the view is scanned; nothing else has it.

    Raises:
        NoMatch: it cannot be; of several ways to try, why the last one fails.
    """
    if offer.block.groups is not None and query.groups is None:
        raise NoMatch("shows groups, and how often each row is there is not among what it shows")
    refusal = NoMatch("reads what the query does not read")
    for places in _ways(offer.block.kinds, query.kinds):
        try:
            way = _Way(query, offer, places, alias)
            return way.of_groups(names) if offer.block.groups is not None else way.of_rows(names)
        except NoMatch as why:
            refusal = why
    raise refusal


def _ways(view: Sequence[str], query: Sequence[str]) -> Iterator[tuple[int, ...]]:
    """Which leaf of the query each leaf of the view can stand for."""

    def place(number: int, taken: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if number == len(view):
            yield taken
            return
        for i, kind in enumerate(query):
            if kind == view[number] and i not in taken:
                yield from place(number + 1, (*taken, i))

    for count, found in enumerate(place(0, ())):
        if count == _MOST_WAYS:
            return
        yield found


class _Way:
    """One way to see a view's leaves in a query."""

    def __init__(self, query: Block, offer: Offer, places: tuple[int, ...], alias: str) -> None:
        self._query, self._offer = query, offer
        self._scan = Scan(offer.view, alias, offer.fields)
        self._rest = [leaf for i, leaf in enumerate(query.leaves) if i not in places]
        self._names: dict[str, Scalar] = {}
        for leaf, place in zip(offer.block.leaves, places, strict=True):
            for mine, theirs in zip(leaf.schema, query.leaves[place].schema, strict=True):
                self._names[mine.name] = Column(theirs.name, theirs.type)
        self._asked = query.facts
        conditions = [self._moved(one) for one in offer.block.conditions]
        for one in conditions:
            if not self._asked.implies(one):
                raise NoMatch(f"has only rows where {one}")
        self._held = Facts(conditions, query.not_null)
        self._left = [one for one in query.conditions if not self._held.implies(one)]

    def _moved(self, scalar: Scalar) -> Scalar:
        """What a scalar over the view's leaves is over those of the query."""
        return substitute(scalar, self._names)

    def _shown(self, name: str) -> Column:
        return self._scan.column(f"{self._scan.alias}.{name}")

    def _offered(self, facts: Facts, columns: Iterable[Named]) -> dict[Scalar, Scalar]:
        """What can be had, in canonical form: columns of the view, and those of leaves that it does not join."""
        out: dict[Scalar, Scalar] = {}
        for leaf in self._rest:
            out |= {facts.canonical(Column(f.name, f.type)): Column(f.name, f.type) for f in leaf.schema}
        for name, scalar in columns:
            if not isinstance(scalar, Literal):
                out[facts.canonical(self._moved(scalar))] = self._shown(name)
        return out

    def _source(self, columns: Iterable[Named]) -> Node:
        """The view joined with the rest, and only the rows that the query asks for.

        What is still to be asked must not be taken for granted: only what the view knows to be equal counts here.
        """
        offered = self._offered(self._held, columns)
        return joined([self._scan, *self._rest], [_express(one, self._held, offered) for one in self._left])

    # -- a view of rows ------------------------------------------------------------------------------------------------

    def of_rows(self, names: Sequence[str]) -> Node:
        columns = self._offer.block.columns.items()
        offered = self._offered(self._asked, columns)
        source = self._source(columns)

        def over(scalar: Scalar) -> Scalar:
            return _express(scalar, self._asked, offered)

        groups = self._query.groups
        if groups is None:
            return Project(source, tuple((name, over(self._query.columns[name])) for name in names))
        keys = tuple((name, over(key)) for name, key in groups.keys)
        terms = tuple((name, over(term)) for name, term in groups.terms)
        picks = tuple((name, pick.map(over)) for name, pick in groups.picks)
        return Present(Sum(source, keys, terms, picks), groups.outputs, groups.having)

    # -- a view of groups ----------------------------------------------------------------------------------------------

    def of_groups(self, names: Sequence[str]) -> Node:
        mine, theirs = self._query.groups, self._offer.block.groups
        assert mine is not None and theirs is not None
        if not theirs.keys and mine.keys:
            raise NoMatch("shows one row for everything")
        if self._is_as_fine(mine, theirs):
            try:
                return self._as_they_are(mine, theirs)
            except NoMatch:
                if not theirs.keys or theirs.having != TRUE:
                    raise
        if not theirs.keys:
            raise NoMatch("shows one row for everything")
        return self._added_up(mine, theirs)

    def _is_as_fine(self, mine: Groups, theirs: Groups) -> bool:
        """Whether a group of the query is one of the view."""
        if self._rest or bool(mine.keys) != bool(theirs.keys):
            return False
        told = {self._asked.canonical(key) for _, key in mine.keys}
        keys = {self._asked.canonical(self._moved(key)) for _, key in theirs.keys}
        apart = told ^ keys  # what only one of the two tells apart must be the same everywhere
        return all(self._asked.constant(key) is not None for key in apart)

    def _as_they_are(self, mine: Groups, theirs: Groups) -> Node:
        """The query's groups are some of the view's."""
        if not mine.keys and self._left:  # its one group is there even if no row is
            raise NoMatch("shows one row for everything")
        facts = self._asked
        names_of = _Named(facts, mine, lambda scalar: scalar), _Named(facts, theirs, self._moved)
        asked = Facts([*self._query.conditions, *conjuncts(names_of[0].over(mine.having))], self._query.not_null)
        held = [names_of[1].over(one) for one in conjuncts(theirs.having)]
        for one, text in zip(held, conjuncts(theirs.having), strict=True):
            if not asked.implies(one):
                raise NoMatch(f"has only groups where {text}")
        offered = {facts.canonical(names_of[1].over(scalar)): self._shown(name) for name, scalar in theirs.outputs}
        known = Facts(held)
        having = [one for one in conjuncts(names_of[0].over(mine.having)) if not known.implies(one)]
        source = self._source(_of_keys(theirs))
        wanted = conjunction([_express(one, facts, offered) for one in having])
        columns = tuple((name, _express(names_of[0].over(one), facts, offered)) for name, one in mine.outputs)
        return Project(source if wanted == TRUE else Filter(source, wanted), columns)

    def _added_up(self, mine: Groups, theirs: Groups) -> Node:
        """The query's groups are made of the view's."""
        if theirs.having != TRUE:
            raise NoMatch(f"has only groups where {theirs.having}")
        facts = self._asked
        source = self._source(_of_keys(theirs))
        offered = self._offered(facts, _of_keys(theirs))
        totals = Totals(theirs, lambda scalar: facts.canonical(self._moved(scalar)), self._shown)
        whether = only_whether_any(mine)
        keys = tuple((name, _express(key, facts, offered)) for name, key in mine.keys)
        terms: list[Named] = []
        for name, term in mine.terms:
            wanted = facts.canonical(term)
            if wanted in totals.exact:
                terms.append((name, call("carry", totals.exact[wanted], ONE)))
            elif term.type == t.BOOLEAN and facts.implies(term) and totals.rows is not None:
                terms.append((name, call("carry", totals.rows, ONE)))
            elif name in whether and wanted in totals.any:
                terms.append((name, totals.any[wanted]))
            else:
                terms.append((name, self._weighed(term, offered, totals.rows)))

        def over(scalar: Scalar) -> Scalar:
            return _express(scalar, facts, offered)

        picks = tuple((name, totals.picked(pick, facts.canonical, over)) for name, pick in mine.picks)
        outputs, having = mine.outputs, mine.having
        if reads_count(mine):
            if totals.rows is None:
                raise NoMatch("does not show COUNT(*)")
            terms.append((ROWS, call("carry", totals.rows, ONE)))
            rows: Mapping[str, Scalar] = {COUNT: Column(ROWS, t.BIGINT)}
            outputs = tuple((name, substitute(scalar, rows)) for name, scalar in outputs)
            having = substitute(having, rows)
        return Present(Sum(source, keys, tuple(terms), picks), outputs, having)

    def _weighed(self, term: Scalar, offered: Mapping[Scalar, Scalar], rows: Scalar | None) -> Scalar:
        """A term that is the same for all rows of a group, as often as these are."""
        try:
            over = _express(term, self._asked, offered)
        except NoMatch:
            raise NoMatch(f"does not show the total of {term}") from None
        if rows is None:
            raise NoMatch("does not show COUNT(*)")
        if may_raise(term) or isinstance(term.type, t.Double):
            raise NoMatch(f"does not show the total of {term}")
        return call("weigh", over, rows)


class _Named:
    """Scalars over the groups of a query, or a view, in names that both have in common.

    A key is what it is made of. A total, a pick or the count is a column that is named after what it is made of.
    """

    def __init__(self, facts: Facts, groups: Groups, moved: Callable[[Scalar], Scalar]) -> None:
        of: dict[str, Scalar] = {name: facts.canonical(moved(key)) for name, key in groups.keys}
        for name, term in groups.terms:
            of[name] = Column(f"#the total of {facts.canonical(moved(term))}", total_of(term))
        for name, pick in groups.picks:
            of[name] = Column(f"#{pick.map(lambda one: facts.canonical(moved(one)))}", pick.type)
        self._of = of

    def over(self, scalar: Scalar) -> Scalar:
        return substitute(scalar, self._of)


def _of_keys(groups: Groups) -> list[Named]:
    """What a view of groups shows of their keys alone, over the leaves' columns."""
    keys = dict(groups.keys)
    return [(name, substitute(one, keys)) for name, one in groups.outputs if one.columns and one.columns <= keys.keys()]


def _express(scalar: Scalar, facts: Facts, offered: Mapping[Scalar, Scalar]) -> Scalar:
    """A scalar over what can be had; what has one value only is that value."""

    def one(part: Scalar) -> Scalar | None:
        if isinstance(part, Literal):
            return part
        found = offered.get(facts.canonical(part)) or facts.constant(part)
        if found is None and isinstance(part, Column):
            raise NoMatch(f"does not show {part.name.removeprefix('#')}")
        return found

    return transform(scalar, one)
