"""SyncSQL's way to name relations in FROM: `R(S)`, `R(S, Sync)`, and `R(S) a - R(T) b` for their difference."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from headwater.algebra.compose import subtract
from headwater.algebra.nodes import Node, Project
from headwater.sql.place import Place

_RELATION = "R"


def is_function(node: exp.Table) -> bool:
    """Whether a table of FROM is a function."""
    return not isinstance(node.this, exp.Identifier)


def names_of(node: exp.Table, place: Place) -> tuple[exp.Identifier, exp.Identifier | None]:
    """The relation that R names, and the synchronisation stream if there is one.

    Raises:
        NotSupported: HW207, it is another function.
        UserError: HW130, R has other arguments than names.
    """
    call = node.this
    if not isinstance(call, exp.Anonymous) or str(call.this).upper() != _RELATION:
        raise place.unsupported("HW207", "functions in FROM are not supported yet", node)
    given = [one.this for one in call.expressions if isinstance(one, exp.Column) and not one.table]
    if len(given) != len(call.expressions) or len(given) not in (1, 2):
        hint = "write R(relation) or R(relation, synchronisation_stream)"
        raise place.mistake("HW183", f"{place.text(call)} does not name a relation", node, hint)
    return given[0], given[1] if len(given) == 2 else None


def difference(left: Node, right: Node, stamps: frozenset[str], fresh: Callable[[], str]) -> Node:
    """The rows of one relation without those of another, each as often as it is there more often.

    SyncSQL gives every relation the time at which a row came as a column; that is no part of the comparison. It counts
    copies, so that a car that has come back is in the lot.

    Args:
        left: whose columns the result has.
        right: with columns of the same types.
        stamps: columns that hold the time a row came.
        fresh: gives names for columns.
    """

    def compared(node: Node, names: tuple[str, ...]) -> Node:
        columns = [name for name in node.column_names if name not in stamps]
        return Project(node, tuple((name, node.column(of)) for name, of in zip(names, columns, strict=True)))

    names = tuple(name for name in left.column_names if name not in stamps)
    return subtract(compared(left, names), compared(right, names), True, fresh)
