"""Names: which relations exist, and which columns a clause of a query can see."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp

from headwater import types as t
from headwater.algebra.scalars import Column
from headwater.errors import HeadwaterError
from headwater.sql.names import fold
from headwater.sql.place import Place, did_you_mean


@dataclass(frozen=True)
class RelationInfo:
    """A stream, table or view as a query sees it.

    Attributes:
        name: as its creator spelt it.
        fields: its columns.
        since: the epoch up to which a new view does not see its rows (`Scan.since`).
        grows: its rows never go (`Scan.grows`).
        stamp: a column that holds the time at which a row came.
        length: how many seconds a part of it spans, if it has parts; its last column is then PART.
    """

    name: str
    fields: t.Schema
    since: int = 0
    grows: bool = False
    stamp: str | None = None
    length: int | None = None


class Relations(Protocol):
    """The catalogue, as far as binding needs it."""

    def find(self, name: str) -> RelationInfo | None:
        """The relation of a name already folded by `names.fold`."""

    def synchronised(self, name: str, policy: str) -> RelationInfo | None:
        """A relation as of the last point of a synchronisation stream; both names folded."""

    def names(self) -> Iterable[str]:
        """All names, for suggestions."""


class WithMore:
    """A catalogue, and relations that are about to be made."""

    def __init__(self, relations: Relations, *more: RelationInfo) -> None:
        self._relations = relations
        self._more = {fold(one.name): one for one in more}

    def add(self, relation: RelationInfo) -> None:
        self._more[fold(relation.name)] = relation

    def find(self, name: str) -> RelationInfo | None:
        return self._more.get(name) or self._relations.find(name)

    def synchronised(self, name: str, policy: str) -> RelationInfo | None:
        return self._relations.synchronised(name, policy)

    def names(self) -> Iterable[str]:
        return [*self._relations.names(), *(one.name for one in self._more.values())]


@dataclass(frozen=True)
class Visible:
    """One relation of a FROM clause: the name it goes by, and its columns under the names they are called by.

    `alias` is None for a derived table without one. Names may repeat (`SELECT a, a`); a reference to one is then
    ambiguous, `*` is not.
    """

    alias: str | None
    columns: tuple[tuple[str, Column], ...]


@dataclass(frozen=True)
class Scope:
    """The relations of a FROM clause, in order.

    `hidden` are columns that JOIN ... USING merged into others: only their relation's alias still reaches them.
    `first` are the columns they were merged into, which `*` gives first. `unlisted` are columns that are there for
    whoever names them, and are not among those of `*`: PART and PART_TIMESTAMP.
    """

    relations: tuple[Visible, ...] = ()
    hidden: frozenset[Column] = frozenset()
    first: tuple[tuple[str, Column], ...] = ()
    unlisted: frozenset[Column] = frozenset()

    def __add__(self, other: Scope) -> Scope:
        return Scope(
            self.relations + other.relations,
            self.hidden | other.hidden,
            self.first + other.first,
            self.unlisted | other.unlisted,
        )

    def merged(self, left: tuple[tuple[str, Column], ...], right: Iterable[Column]) -> Scope:
        """The scope after USING: columns of the left side stand for columns of the right side too."""
        others = tuple(column for column in self.first if column not in left)
        return Scope(self.relations, self.hidden | frozenset(right), left + others, self.unlisted)

    def find(self, node: exp.Column) -> list[Column]:
        """All columns a reference may mean."""
        table, name = fold(node.table), fold(node.name)
        return [
            column
            for relation in self.relations
            if not table or (relation.alias is not None and fold(relation.alias) == table)
            for shown, column in relation.columns
            if fold(shown) == name and (table or column not in self.hidden)
        ]

    @property
    def columns(self) -> list[tuple[str, Column]]:
        """What `*` stands for."""
        every = [column for relation in self.relations for column in relation.columns if column[1] not in self.unlisted]
        return [*self.first, *(c for c in every if c not in self.first and c[1] not in self.hidden)]

    def column(self, node: exp.Column, place: Place) -> Column:
        """The column a reference means.

        Raises:
            UserError: there is none, or more than one.
        """
        found = self.find(node)
        if not found:
            raise self.unknown(node, place)
        if len(found) > 1:
            readings = [f"{holder.alias or 'a derived table'} has it" for holder in self._holders(node)]
            if len(readings) == 1:
                readings = [readings[0] + " more than once"]
            raise place.mistake(
                "HW120",
                f"{place.text(node)} is ambiguous: {', '.join(readings)}",
                node,
                "put the relation's alias in front, and give what is joined or selected twice different names",
            )
        return found[0]

    def star(self, qualifier: exp.Identifier | None, node: exp.Expr, place: Place) -> list[tuple[str, Column]]:
        """What `*` or `alias.*` stands for."""
        if qualifier is None:
            if not self.relations:
                raise place.mistake("HW101", "* needs a FROM clause", node)
            return self.columns
        chosen = [r for r in self.relations if r.alias is not None and fold(r.alias) == fold(qualifier.name)]
        if not chosen:
            raise self._no_relation(qualifier.name, qualifier, place)
        return [column for relation in chosen for column in relation.columns if column[1] not in self.unlisted]

    def unknown(self, node: exp.Column, place: Place, more: Iterable[str] = ()) -> HeadwaterError:
        """The error for a reference that means nothing; `more` are further names it could have meant."""
        aliases = {fold(r.alias) for r in self.relations if r.alias is not None}
        if node.table and fold(node.table) not in aliases:
            return self._no_relation(node.table, node.args["table"], place)
        holders = [r for r in self.relations if not node.table or fold(r.alias or "") == fold(node.table)]
        known = [*(shown for r in holders for shown, _ in r.columns), *more]
        hint = did_you_mean(node.name, known)
        if hint is None and known:
            shown = list(dict.fromkeys(known))
            hint = "there are " + ", ".join(shown[:12]) + (", ..." if len(shown) > 12 else "")
        where = f" in {node.table}" if node.table else ""
        return place.mistake("HW101", f"there is no column {node.name}{where}", node, hint)

    def _holders(self, node: exp.Column) -> list[Visible]:
        return [relation for relation in self.relations if Scope((relation,), self.hidden).find(node)]

    def _no_relation(self, name: str, node: exp.Expr, place: Place) -> HeadwaterError:
        known = [r.alias for r in self.relations if r.alias is not None]
        hint = did_you_mean(name, known)
        if hint is None and known:
            hint = "FROM has " + ", ".join(known)
        return place.mistake("HW102", f"no relation in this FROM clause is called {name}", node, hint)


def find_relation(
    named: exp.Identifier, relations: Relations, more: Iterable[str], place: Place, policy: exp.Identifier | None = None
) -> RelationInfo:
    """The relation a FROM clause names.

    Args:
        named: its name.
        relations: where to look.
        more: names of common table expressions, for suggestions.
        place: the text.
        policy: the name of a synchronisation stream, if it is read as of its last point.
    """
    at = named
    if policy is not None and fold(named.name) in {fold(one) for one in more}:
        reason = f"{named.name} is defined by WITH, and has no points of its own"
        raise place.mistake("HW183", reason, named, "make it a view, and synchronise that")
    try:
        info = relations.find(fold(named.name))
        if info is not None and policy is not None:
            at = policy
            info = relations.synchronised(fold(named.name), fold(policy.name))
    except HeadwaterError as error:  # it exists, and cannot be read
        raise error.at(place.span(at), place.source) from None
    if info is None:
        hint = did_you_mean(at.name, [*relations.names(), *more])
        raise place.mistake("HW102", f"there is no relation {at.name}", at, hint)
    return info
