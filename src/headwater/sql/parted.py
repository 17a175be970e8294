"""A relation of parts as a translation sees it, and what a query says in terms of its columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from sqlglot import exp

from headwater import types as t
from headwater.errors import Source
from headwater.sql.lower import lower_view
from headwater.sql.names import fold
from headwater.sql.scope import RelationInfo
from headwater.sql.statements import Name


@dataclass(frozen=True)
class Parted:
    """A stream with parts, or a view of parts.

    Attributes:
        name: as its creator spelt it.
        fields: its columns.
        length: how many seconds a part spans.
        timestamp: the column that says to which part a row belongs, and comes first where its rows are put in order. A
            view of parts may have none.
    """

    name: str
    fields: t.Schema
    length: int
    timestamp: str | None = None

    def field(self, name: str) -> t.Field | None:
        """The column of a name, whatever its case."""
        return next((one for one in self.fields if fold(one.name) == fold(name)), None)

    def lower(self, query: exp.Expr, source: Source, columns: tuple[Name, ...] = ()) -> t.Schema:
        """The columns of a query over the relation, which is refused as one over all its parts would be."""
        return lower_view(query, _Alone(RelationInfo(self.name, self.fields)), source, columns=columns).schema

    def typed(self, expression: exp.Expr, source: Source) -> t.Field:
        """The type of an expression over the relation's columns, and whether it can be NULL."""
        query = exp.Select(expressions=[exp.alias_(expression.copy(), "x")]).from_(table(self.name))
        return self.lower(query, source)[0]


@dataclass(frozen=True)
class _Alone:
    """A catalogue of one relation."""

    relation: RelationInfo

    def find(self, name: str) -> RelationInfo | None:
        return self.relation if fold(self.relation.name) == name else None

    def synchronised(self, name: str, policy: str) -> RelationInfo | None:
        return None

    def names(self) -> Iterable[str]:
        return [self.relation.name]


@dataclass
class Names:
    """Names of columns that are made up: each once, and none that a relation has."""

    taken: set[str] = field(default_factory=set)

    @classmethod
    def beside(cls, parted: Parted) -> Names:
        """Names that the relation's columns do not have."""
        return cls({fold(one.name) for one in parted.fields})

    def fresh(self, wanted: str) -> str:
        """The wanted name, or that name with a number."""
        name, number = wanted, 2
        while fold(name) in self.taken:
            name, number = f"{wanted}_{number}", number + 1
        self.taken.add(fold(name))
        return name


def table(name: str, alias: str | None = None) -> exp.Table:
    """A relation in FROM."""
    made = exp.Table(this=exp.to_identifier(name, quoted=True))
    if alias is not None:
        made.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
    return made


def plain(node: exp.Expr, parted: Parted, qualifier: str) -> exp.Expr:
    """A copy in one spelling: columns as the relation spells them, unqualified, and functions in small letters.

    So what means the same is equal, mostly; what is not recognised as equal is only translated less well.

    Args:
        node: an expression over the relation.
        parted: the relation.
        qualifier: what it goes by in FROM.
    """

    def one(part: exp.Expr) -> exp.Expr:
        match part:
            case exp.Column() if not isinstance(part.this, exp.Star):
                names = part.parts
                if len(names) > 1 and fold(names[0].name) == fold(qualifier):
                    names = names[1:]
                return column(_spelt(names, parted))
            case exp.Anonymous(this=str(name)):
                part.set("this", name.lower())
        return part

    return node.copy().transform(one, copy=False)


def _spelt(names: list[exp.Expr], parted: Parted) -> list[exp.Expr]:
    found = parted.field(names[0].name)
    first = exp.to_identifier(found.name, quoted=False) if found is not None else names[0]
    if first is not names[0]:
        first.update_positions(names[0])
    return [first, *names[1:]]


def column(names: list[exp.Expr]) -> exp.Column:
    """A column by the parts of its name."""
    keys = ("this", "table", "db", "catalog")
    return exp.Column(**dict(zip(keys, reversed(names), strict=False)))


def with_aliases(
    node: exp.Expr, parted: Parted, items: dict[str, exp.Expr], first: Callable[[str], bool] | None = None
) -> exp.Expr:
    """A copy in which the names of select items stand for the items.

    Args:
        node: an expression in plain spelling.
        parted: the relation.
        items: the select items by their folded names.
        first: whether a column of the relation comes before an item of its name. All do, if nothing is given.
    """

    def found(part: exp.Expr) -> exp.Expr | None:
        if not isinstance(part, exp.Column) or len(part.parts) > 1:
            return None
        item = items.get(fold(part.name))
        is_column = parted.field(part.name) is not None
        if item is None or (is_column and (first is None or first(part.name))):
            return None
        return item.copy() if isinstance(item, exp.Column | exp.Anonymous | exp.Literal) else exp.paren(item)

    return replaced(node, found)


def replaced(node: exp.Expr, found: Callable[[exp.Expr], exp.Expr | None]) -> exp.Expr:
    """A copy with parts exchanged, from the top: what was put in is not searched again."""
    made = found(node)
    if made is not None:
        return made
    out = node.copy()
    for child in list(out.iter_expressions()):
        after = replaced(child, found)
        if after is not child:
            child.replace(after)
    return out


def conjuncts(node: exp.Expr) -> list[exp.Expr]:
    """The conditions that AND connects."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.And):
        return [*conjuncts(node.this), *conjuncts(node.expression)]
    return [node]


def as_type(tree: exp.Expr, kind: t.Type) -> exp.Expr:
    """CAST of a tree."""
    return exp.Cast(this=tree.copy(), to=exp.DataType.build(str(kind), dialect="spark"))
