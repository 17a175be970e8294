"""What a view of groups shows of its totals, so that groups of groups can be added up.

| shown | its total |
|---|---|
| COUNT(*), COUNT(x), COUNT_IF(p) | as it is |
| SUM(x), exact | as it is, 0 where it is NULL; whether some x was there, not how often |
| MIN(x), MAX(x) | the least of the least, the greatest of the greatest |

Sums of DOUBLE are not among them: added up in another order they come out otherwise in the last digits. Nor is AVG: it
follows from SUM and COUNT, where both are shown.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable

from headwater import types as t
from headwater.algebra.folds import Pick
from headwater.algebra.functions.picks import PICKS
from headwater.algebra.nodes import COUNT, total_of
from headwater.algebra.scalars import Call, Cast, Column, Literal, Scalar, call, cast
from headwater.plan.spjg import Groups, NoMatch

#: The total of the rows that groups of a view stand for.
ROWS = "#rows"


class Totals:
    """The totals that can be had of a view's groups.

    Attributes:
        exact: by what is added up, in canonical form.
        any: whether something was there that is added up, by the condition that says so; TRUE or FALSE.
        rows: how many rows a group has; None if the view does not show it.
        picks: what is shown of picks.
    """

    def __init__(self, groups: Groups, known: Callable[[Scalar], Scalar], shown: Callable[[str], Column]) -> None:
        """Look at what a view shows.

        Args:
            groups: of the view.
            known: the canonical form of a scalar over the view's leaves.
            shown: the column that reads what the view shows under a name.
        """
        terms = dict(groups.terms)
        picks = dict(groups.picks)
        self.exact: dict[Scalar, Scalar] = {}
        self.any: dict[Scalar, Scalar] = {}
        self.rows: Scalar | None = None
        self.picks: dict[Pick, Scalar] = {}
        for name, scalar in groups.outputs:
            match scalar:
                case Column(name=of) if of == COUNT:
                    self.rows = shown(name)
                case Column(name=of) if of in picks:
                    self.picks[picks[of].map(known)] = shown(name)
                case Column(name=of) if of in terms and terms[of].type == t.BOOLEAN:
                    self.exact[known(terms[of])] = shown(name)
                case Cast(arg=Column(name=of), safe=False) if of in terms and _is_exact(terms[of]):
                    self.exact[known(terms[of])] = cast(shown(name), total_of(terms[of]))
                case Call(
                    function="if",
                    args=(
                        Call(function=">", args=(Column(name=n), Literal(value=0))),
                        Cast(arg=Column(name=of), safe=False),
                        Literal(value=None),
                    ),
                ) if of in terms and n in terms and _is_sum(terms[of], terms[n]):
                    total = total_of(terms[of])
                    self.exact[known(terms[of])] = call("coalesce", cast(shown(name), total), _zero(total))
                    self.any[known(terms[n])] = call("is not null", shown(name))

    def picked(self, pick: Pick, known: Callable[[Scalar], Scalar], over: Callable[[Scalar], Scalar]) -> Pick:
        """A pick of all rows, as one of the groups; `over` is a scalar over the groups' keys.

        Raises:
            NoMatch: it is not to be had.
        """
        found = self.picks.get(pick.map(known))
        if found is not None and pick.function in ("min", "max"):
            return Pick(pick.function, (found,))
        if PICKS[pick.function].weighed:  # it matters how often a row is there
            raise NoMatch(f"does not show {pick}")
        return pick.map(over)


def _is_exact(term: Scalar) -> bool:
    return isinstance(term.type, t.Integer | t.Decimal)


def _is_sum(term: Scalar, counted: Scalar) -> bool:
    """Whether something is added up where it is not NULL, and what is counted is how often it is not."""
    match term, counted:
        case Call(function="coalesce", args=(x, Literal(value=zero))), Call(function="is not null", args=(y,)):
            return _is_exact(term) and zero == 0 and x == y
    return False


def _zero(kind: t.Type) -> Literal:
    assert isinstance(kind, t.Decimal)
    return Literal(decimal.Decimal(0).scaleb(-kind.scale), kind)


def only_whether_any(groups: Groups) -> frozenset[str]:
    """Names of totals of which it only matters whether they are greater than 0."""
    return frozenset(name for name, _ in groups.terms) - _read(groups)


def reads_count(groups: Groups) -> bool:
    """Whether it matters how many rows a group has."""
    return COUNT in _read(groups)


def _read(groups: Groups) -> frozenset[str]:
    """Names of totals that are read otherwise than by `total > 0`."""
    found: set[str] = set()

    def look(scalar: Scalar) -> None:
        match scalar:
            case Call(function=">", args=(Column(), Literal(value=0))):
                return
            case Column(name=name):
                found.add(name)
        for child in scalar.children:
            look(child)

    for scalar in (*(one for _, one in groups.outputs), groups.having):
        look(scalar)
    return frozenset(found)
