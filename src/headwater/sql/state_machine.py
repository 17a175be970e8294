"""A pattern as a state machine: Algorithm 1 of Yang, Golab and Ozsu, "ViewDF", section 5.1.1.

State 0 is the beginning, state k means that the last row was bound to variable k, and the last state accepts. A row in
state k takes the first of these edges whose predicates are all TRUE: the one to k itself, if variable k has a plus, and
the one to k + 1. If there is none, the match is broken, and the row may itself be the first of the next one: the paper
does not say so, but otherwise a match that begins where another breaks would be missed.

A predicate on one variable is on the edge into its state, and for a plus on the edge from the state to itself as well:
the paper's algorithm says the latter only, its figure 4 and the code that it generates show both. A predicate on two
neighbours is on the edge from the one to the other; the first of them is the row before, of which the helper view keeps
what is read.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from headwater import types as t
from headwater.errors import UserError
from headwater.sql.names import fold
from headwater.sql.parted import Parted, column, conjuncts, table
from headwater.sql.place import Place, did_you_mean

#: What columns in predicates are qualified with: the row at hand, and the one before it.
NEW, PREV = "New", "Prev"


@dataclass(frozen=True)
class Variable:
    """A variable of a pattern; with a plus it is bound to one row or more."""

    name: str
    plus: bool


@dataclass(frozen=True)
class Edge:
    """The way from a state to another, or to itself, and what must be TRUE for it."""

    start: int
    end: int
    predicates: tuple[exp.Expr, ...]


@dataclass(frozen=True)
class Machine:
    """States, edges, and what is remembered of the row before.

    Attributes:
        variables: one for each state but the first.
        edges: by state; where two leave one state, the one that is tried first comes first.
        remembered: the paper's auxiliary attributes: columns that predicates read of the row before.
    """

    variables: tuple[Variable, ...]
    edges: tuple[Edge, ...]
    remembered: tuple[str, ...]

    @property
    def accepting(self) -> int:
        return len(self.variables)

    @property
    def first(self) -> Edge:
        """The edge that begins a match."""
        return self.edges[0]

    @property
    def read(self) -> tuple[str, ...]:
        """The columns that predicates read, of either row."""
        found = (one for edge in self.edges for part in edge.predicates for one in part.find_all(exp.Column))
        return tuple(dict.fromkeys(one.name for one in found))


def state_machine(
    pattern: exp.Tuple, where: exp.Expr | None, parted: Parted, groups: tuple[str, ...], place: Place
) -> Machine:
    """The machine of a pattern.

    Args:
        pattern: the variables, as `headwater.sql.parts_parser` gives them.
        where: the condition of WHERE.
        parted: the relation.
        groups: its columns that are the same in all rows of a match, so that they need not be remembered.
        place: where the query stands in the text.
    """
    variables = _variables(pattern, place)
    alone: dict[int, list[exp.Expr]] = {n: [] for n in range(1, len(variables) + 1)}
    paired: dict[int, list[exp.Expr]] = {n: [] for n in range(1, len(variables) + 1)}
    for one in conjuncts(where) if where is not None else ():
        named = _named(one, variables, place)
        _check(one, [variables[n - 1].name for n in named], parted, place)
        predicate = _over_rows(one, named, variables, parted, place)
        (alone if len(named) == 1 else paired)[named[-1]].append(predicate)
    edges = []
    for state in range(len(variables)):
        if state and variables[state - 1].plus:
            edges.append(Edge(state, state, tuple(alone[state])))
        edges.append(Edge(state, state + 1, (*alone[state + 1], *paired[state + 1])))
    if variables[-1].plus:
        edges.append(Edge(len(variables), len(variables), tuple(alone[len(variables)])))
    before = (one for parts in paired.values() for part in parts for one in part.find_all(exp.Column))
    remembered = (one.name for one in before if one.table == PREV and one.name not in groups)
    return Machine(variables, tuple(edges), tuple(dict.fromkeys(remembered)))


def _variables(pattern: exp.Tuple, place: Place) -> tuple[Variable, ...]:
    found: dict[str, Variable] = {}
    for one in pattern.expressions:
        if fold(one.name) in found:
            raise place.mistake(
                "HW194", f"the pattern has two variables {one.name}", one, "give each row of a match a name of its own"
            )
        found[fold(one.name)] = Variable(one.name, bool(one.args.get("plus")))
    return tuple(found.values())


def _named(condition: exp.Expr, variables: tuple[Variable, ...], place: Place) -> list[int]:
    """The variables that a condition names, from 1, in their order: one, or two neighbours."""
    if condition.find(exp.Query) is not None:
        raise place.mistake(
            "HW191", "a condition of a pattern cannot hold a query", condition, "join in a view that the pattern reads"
        )
    numbers = {fold(one.name): n for n, one in enumerate(variables, 1)}
    example = f"{variables[0].name}.x > 10"
    found: set[int] = set()
    for one in condition.find_all(exp.Column):
        first = one.parts[0]
        if len(one.parts) < 2:
            raise place.mistake(
                "HW191",
                f"{one.name} says not of which row of the pattern",
                one,
                f"write a variable in front of it: {variables[0].name}.{one.name}",
            )
        if fold(first.name) not in numbers:
            raise place.mistake(
                "HW191",
                f"the pattern has no variable {first.name}",
                first,
                did_you_mean(first.name, [variable.name for variable in variables]),
            )
        found.add(numbers[fold(first.name)])
    if not found:
        raise place.mistake(
            "HW191",
            "a condition of a pattern is about one of its rows, and this one about none",
            condition,
            f"write it with a variable, such as {example}; or put it into a view that the pattern reads",
        )
    if len(found) > 2 or max(found) - min(found) > 1:
        raise _not_neighbours(condition, sorted(found), variables, place)
    return sorted(found)


def check_kept(found: t.Field, node: exp.Expr, place: Place) -> None:
    """Refuse a column that cannot be kept from row to row."""
    if not t.is_orderable(found.type):
        raise place.mistake(
            "HW196",
            f"a pattern cannot read {found.name}, which is {found.type} and has no order",
            node,
            "take what is needed out of it in a view that the pattern reads",
        )


def _not_neighbours(condition: exp.Expr, found: list[int], variables: tuple[Variable, ...], place: Place) -> UserError:
    names = ", ".join(variables[n - 1].name for n in found)
    return place.mistake(
        "HW191",
        f"a condition of a pattern names one variable, or two that follow each other, and this one {names}",
        condition,
        "compare neighbours, each with the row before it",
    )


def _check(condition: exp.Expr, names: list[str], parted: Parted, place: Place) -> None:
    """Refuse what is wrong with a condition's columns and types: variables are rows of the relation."""
    query = exp.Select(expressions=[exp.alias_(exp.Literal.number(1), "x")])
    query = query.from_(table(parted.name, names[0])).where(condition.copy())
    for name in names[1:]:
        query = query.join(table(parted.name, name), join_type="cross")
    parted.lower(query, place.source)


def _over_rows(
    condition: exp.Expr, named: list[int], variables: tuple[Variable, ...], parted: Parted, place: Place
) -> exp.Expr:
    """The condition over the row at hand and the one before it."""
    last = fold(variables[named[-1] - 1].name)

    def one(part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Anonymous) and isinstance(part.this, str):
            part.set("this", part.this.lower())
        if not isinstance(part, exp.Column):
            return part
        first, *rest = part.parts
        found = parted.field(rest[0].name)
        assert found is not None  # the condition was lowered
        check_kept(found, part, place)
        row = NEW if fold(first.name) == last else PREV
        made = column([exp.to_identifier(row), exp.to_identifier(found.name), *rest[1:]])
        made.this.update_positions(part.this)
        return made

    return condition.copy().transform(one, copy=False)
