"""Reads a PATTERN query: its machine, its groups, and its select list over what is kept of a match."""

from __future__ import annotations

from sqlglot import exp

from headwater import types as t
from headwater.errors import UserError
from headwater.sql.calls import function_name
from headwater.sql.function_names import AGGREGATES
from headwater.sql.lower_select import output_name
from headwater.sql.names import fold
from headwater.sql.parted import Names, Parted, plain, replaced, table, with_aliases
from headwater.sql.pattern_aggregates import MatchAggregates
from headwater.sql.patterns import Pattern
from headwater.sql.place import Place
from headwater.sql.state_machine import state_machine
from headwater.sql.statements import Name

_CLAUSES = ("expressions", "from_", "where", "group", "having")


def read_pattern(
    query: exp.Select, source: exp.Table, parted: Parted, columns: tuple[Name, ...], place: Place
) -> tuple[Pattern, Names]:
    """A pattern query taken apart, and the names of columns that are taken.

    Args:
        query: whose FROM is one relation with a pattern.
        source: that relation.
        parted: the same.
        columns: the names that CREATE VIEW gives to the columns, or none.
        place: where the query stands in the text.
    """
    place.only(query, _CLAUSES)
    qualifier = source.alias or source.name
    _refuse_variables(query, source, place)
    fields = _outputs(query, source, parted, columns, place)
    groups = _groups(query, parted, qualifier, place)
    where = query.args.get("where")
    names = tuple(one.name for one in groups)
    machine = state_machine(source.args["pattern"], where.this if where else None, parted, names, place)
    taken = Names.beside(parted)
    kept = MatchAggregates(parted, place, taken)
    items: dict[str, exp.Expr] = {}
    outputs: list[tuple[str, exp.Expr]] = []
    for item, output in zip(query.expressions, fields, strict=True):
        tree = with_aliases(plain(item.unalias(), parted, qualifier), parted, items)
        items.setdefault(fold(item.alias_or_name), tree)
        outputs.append((output.name, replaced(tree, lambda node: kept.value(node, node))))
    having = query.args.get("having")
    condition = None
    if having is not None:
        grouped = {fold(one) for one in names}
        tree = with_aliases(plain(having.this, parted, qualifier), parted, items, lambda one: fold(one) in grouped)
        condition = replaced(tree, lambda node: kept.value(node, node))
    return Pattern(parted, machine, groups, tuple(kept.kept), tuple(outputs), condition), taken


def _refuse_variables(query: exp.Select, source: exp.Table, place: Place) -> None:
    """A variable is one row of a match, and what is selected is about the whole of it."""
    variables = {fold(one.name) for one in source.args["pattern"].expressions}
    clauses = [*query.expressions, *filter(None, (query.args.get("group"), query.args.get("having")))]
    for one in (found for clause in clauses for found in clause.find_all(exp.Column)):
        if isinstance(one.this, exp.Star):
            continue
        if len(one.parts) > 1 and fold(one.parts[0].name) in variables:
            rest = ".".join(part.name for part in one.parts[1:])
            raise place.mistake(
                "HW192",
                f"{place.text(one)} is about one row, and what is selected about the whole match",
                one,
                f"write {rest} alone, in an aggregate: aggregates are over all rows of the match",
            )
    for item in query.expressions:
        if item.is_star:
            raise place.mistake(
                "HW193", "a match has no columns that * could mean", item, "name the groups, and aggregate the others"
            )


def _outputs(query: exp.Select, source: exp.Table, parted: Parted, columns: tuple[Name, ...], place: Place) -> t.Schema:
    """The columns of the result, as if the query were about all rows of a group; what is wrong with them is refused."""
    like = exp.Select(expressions=[_without_order(one) for one in query.expressions])
    like = like.from_(table(parted.name, source.alias or source.name))
    group, having = query.args.get("group"), query.args.get("having")
    like.set("group", group.copy() if group else None)
    like.set("having", _without_order(having) if having else exp.Having(this=exp.true()))
    return parted.lower(like, place.source, columns)


def _without_order(node: exp.Expr) -> exp.Expr:
    """FIRST and LAST need an order, which a match has: for their types any value is as good."""

    def one(part: exp.Expr) -> exp.Expr:
        is_call = isinstance(part, exp.Anonymous) and AGGREGATES.get(function_name(part)) in ("first", "last")
        if is_call and len(part.expressions) == 1:
            part.set("this", "any_value")
        return part

    made = node.copy().transform(one, copy=False)
    return (
        made
        if isinstance(node, exp.Alias | exp.Column | exp.Having)
        else exp.alias_(made, output_name(node), quoted=True)
    )


def _groups(query: exp.Select, parted: Parted, qualifier: str, place: Place) -> tuple[t.Field, ...]:
    clause = query.args.get("group")
    if clause is None:
        return ()
    found: dict[str, t.Field] = {}
    if any(value for key, value in clause.args.items() if key != "expressions"):
        raise _no_group(clause, place)
    items = {fold(one.alias_or_name): one.unalias() for one in query.expressions}
    for node in clause.expressions:
        tree = node
        if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
            tree = query.expressions[int(node.name) - 1].unalias()  # the query was lowered: there is one
        tree = plain(with_aliases(plain(tree, parted, qualifier), parted, items), parted, qualifier)
        field = parted.field(tree.name) if isinstance(tree, exp.Column) and len(tree.parts) == 1 else None
        if field is None:
            raise _no_group(node, place)
        found[field.name] = field
    return tuple(found.values())


def _no_group(node: exp.Expr, place: Place) -> UserError:
    return place.mistake(
        "HW193",
        "the groups of a pattern are columns of its relation",
        node,
        "make the expression a column in a view of parts, and read that",
    )
