"""How a window follows the clock: which rows leave it, and which rows' time has come.

A window is kept as one map or two: the rows whose time it is, and, if rows may be there before their time, those that
are still to come:

    m  =  during[starts; ends](Q)               f  =  during[true; not starts](Q)

The clock's step comes first in an epoch, before that of any relation. In it Q stands still, so both change by rows that
they hold: a row leaves when its end has come, and what leaves f because its time has come enters m. Then the relations
have their steps, in which the clock stands still, and m and f take what meets their condition by then
(`headwater.delta.derive`). Q itself is never read again, and need not be stored.

A row that leaves now was there at the clock of the epoch before: with both ends of that span in the condition, only the
rows of the span are read, and not those that left long ago and are still in the store with both signs.
"""

from __future__ import annotations

from dataclasses import replace

from headwater import types as t
from headwater.algebra.clock import opposite, reads_clock, with_clock
from headwater.algebra.joins import TURNED
from headwater.algebra.nodes import During, Filter, Negate, Node, Project, Scan, Version
from headwater.algebra.scalars import TRUE, Call, Scalar, call, conjunction, conjuncts, substitute

#: The alias of a window's map in its own statements.
_SELF = "#w"


def to_come(window: During) -> During | None:
    """The window of the rows that are still to come; None if there can be none."""
    if window.starts == TRUE:
        return None
    return replace(window, starts=TRUE, ends=opposite(window.starts))


def leaving(window: During, store: str, fields: t.Schema) -> tuple[Node, ...]:
    """How a window changes when the clock advances, by the rows that it holds; terms to add up.

    One term for each condition that ends a row's time, of the rows for which those before it still hold.
    """
    terms: list[Node] = []
    held: list[Scalar] = []
    for condition in conjuncts(window.ends):
        if not reads_clock(condition):
            continue
        ended = [*held, _over(condition), with_clock(condition, {"now": call("before")})]
        terms.append(_rows(Scan(store, _SELF, fields), window, conjunction(ended)))
        held.append(condition)
    return tuple(terms)


def _over(condition: Scalar) -> Scalar:
    """That a condition which was TRUE is not any more: a comparison is FALSE then, others may be NULL."""
    if isinstance(condition, Call) and condition.function in TURNED:
        return opposite(condition)
    return call("is not true", condition)


def coming_from(store: str, fields: t.Schema) -> Scan:
    """What reads the change of the map of the rows to come."""
    return Scan(store, _SELF, fields, Version.DELTA)


def entering(window: During, coming: Scan) -> Node:
    """How a window changes when rows leave the map of those to come: those whose time it is now come to it."""
    return _rows(coming, window, conjunction([window.starts, window.ends]))


def _rows(scan: Scan, window: During, condition: Scalar) -> Node:
    """The rows of a window's map for which a condition holds, with the opposite sign."""
    own = {name: scan.column(f"{_SELF}.{f.name}") for name, f in zip(window.column_names, scan.fields, strict=True)}
    found = Filter(scan, substitute(condition, own))
    return Negate(Project(found, tuple(own.items())))
