"""Terms of a sum over a join as polynomials in what each joined relation knows by itself.

    sum(a.x * b.y - a.z)  over A join B   =   sum(a.x) * sum(b.y)  -  sum(a.z) * count(B)      per pair of joined groups

So a relation needs to keep only the columns it is joined or grouped by, and totals of its own factors, never its rows
(Ahmad et al., "DBToaster", section 5.1, rule 2). A monomial is a product of such factors.

Care with NULL: SUM(x + y) over (1, NULL), (2, 3) is 5, not 6. The term is `coalesce(x + y, 0)` then, and every monomial
carries, for each relation, the condition that all its parts of the whole term are there. Only + - * are multiplied out,
and only where they are exact: products of DECIMAL that are not cut. What cannot be multiplied out has no polynomial.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from itertools import product

from headwater import types as t
from headwater.algebra.functions import REGISTRY, may_raise
from headwater.algebra.nodes import ONE
from headwater.algebra.scalars import Call, Cast, Column, Literal, Scalar, call, conjunction

#: Which leaf of a join a scalar reads, as a set: none for constants.
LeavesOf = Callable[[Scalar], frozenset[int]]
#: The leaf under which constants stand.
CONSTANT = -1
#: A polynomial with more monomials than this is not written out.
_MOST = 12
#: Digits that a term must leave free if it has several monomials.
_ROOM = 10

Factors = tuple[tuple[int, Scalar], ...]


@dataclass(frozen=True)
class Monomial:
    """A product of factors, each of them of one leaf; in the order of the leaves. Without factors it is 1."""

    sign: int
    factors: Factors

    def within(self, leaves: Iterable[int]) -> Factors:
        """The factors that belong to some leaves."""
        inside = set(leaves)
        return tuple(one for one in self.factors if one[0] in inside)


ALWAYS = (Monomial(1, ()),)


def polynomial(term: Scalar, leaves_of: LeavesOf) -> tuple[Monomial, ...] | None:
    """A term of a sum as monomials that add up to it; None if it cannot be multiplied out."""
    if may_raise(term):
        return None
    try:
        found = _Expansion(leaves_of).term(term)
    except _NotLinear:
        return None
    return found if len(found) == 1 or _has_room(term) else None


def _has_room(term: Scalar) -> bool:
    """Whether the parts of a sum can be much larger than the sum: they may cancel, and must not overflow before."""
    return not isinstance(term.type, t.Decimal) or term.type.precision <= t.MAX_PRECISION - _ROOM


class _NotLinear(Exception):
    pass


class _Expansion:
    def __init__(self, leaves_of: LeavesOf) -> None:
        self._leaves_of = leaves_of

    def term(self, term: Scalar) -> tuple[Monomial, ...]:
        leaves = self._leaves_of(term)
        if isinstance(term, Call) and term.function == "weigh":
            return self._times(self.term(term.args[0]), self._total(term.args[1]))
        if isinstance(term, Call) and term.function == "carry":
            return self._times(self._total(term.args[0]), self._total(term.args[1]))
        if len(leaves) <= 1:
            return (Monomial(1, ((next(iter(leaves), CONSTANT), term),)),)
        if isinstance(term, Call) and term.function == "coalesce" and _is_zero(term.args[1]) and len(term.args) == 2:
            return self._guarded(term.args[0])
        if isinstance(term, Call) and term.function == "is not null":
            guards = self._guards(self._atoms(term.args[0]))
            return (Monomial(1, tuple(sorted(guards.items()))),)
        return self._whole(self._expand(term))

    def _total(self, scalar: Scalar) -> tuple[Monomial, ...]:
        """What is a total already: it goes on in its own type."""
        if scalar == ONE:
            return ALWAYS
        leaves = self._leaves_of(scalar)
        if len(leaves) != 1:
            raise _NotLinear
        [leaf] = leaves
        return (Monomial(1, ((leaf, call("carry", scalar, ONE)),)),)

    def _expand(self, scalar: Scalar) -> tuple[Monomial, ...]:
        leaves = self._leaves_of(scalar)
        if len(leaves) <= 1:
            return (Monomial(1, ((next(iter(leaves), CONSTANT), scalar),)),)
        if isinstance(scalar, Cast) and _widens(scalar.arg.type, scalar.type):
            return self._expand(scalar.arg)
        if not isinstance(scalar, Call) or not isinstance(scalar.type, t.Decimal):
            raise _NotLinear
        match scalar.function, scalar.args:
            case "+", (a, b):
                return self._whole(self._expand(a) + self._expand(b))
            case "-", (a, b):
                negative = tuple(Monomial(-one.sign, one.factors) for one in self._expand(b))
                return self._whole(self._expand(a) + negative)
            case "*", (a, b):
                return self._times(self._expand(a), self._expand(b))
        raise _NotLinear

    def _times(self, a: tuple[Monomial, ...], b: tuple[Monomial, ...]) -> tuple[Monomial, ...]:
        return self._whole(tuple(self._product(x, y) for x, y in product(a, b)))

    @staticmethod
    def _product(a: Monomial, b: Monomial) -> Monomial:
        factors = dict(a.factors)
        for leaf, scalar in b.factors:
            if leaf in factors:
                both = call("*", factors[leaf], scalar) if _is_exact(factors[leaf]) and _is_exact(scalar) else None
                if both is None or may_raise(both):
                    raise _NotLinear
                scalar = both
            factors[leaf] = scalar
        return Monomial(a.sign * b.sign, tuple(sorted(factors.items(), key=lambda one: one[0])))

    @staticmethod
    def _whole(monomials: tuple[Monomial, ...]) -> tuple[Monomial, ...]:
        if len(monomials) > _MOST:
            raise _NotLinear
        return monomials

    # -- NULL ----------------------------------------------------------------------------------------------------------

    def _guarded(self, scalar: Scalar) -> tuple[Monomial, ...]:
        """coalesce(scalar, 0): every monomial counts only where all parts of the scalar are there."""
        atoms = self._atoms(scalar)
        guards = self._guards(atoms)
        out = []
        for one in self._expand(scalar):
            factors = dict(one.factors)
            for leaf, guard in guards.items():
                value = factors.get(leaf)
                if value is None:
                    factors[leaf] = guard
                elif atoms[leaf] == [value]:
                    factors[leaf] = call("coalesce", value, _zero(value.type))
                else:
                    factors[leaf] = call("if", guard, value, _zero(value.type))
            out.append(Monomial(one.sign, tuple(sorted(factors.items(), key=lambda entry: entry[0]))))
        return tuple(out)

    def _atoms(self, scalar: Scalar) -> dict[int, list[Scalar]]:
        """The largest parts of an arithmetic term that read one leaf, by leaf; NULL in one makes the term NULL."""
        found: dict[int, list[Scalar]] = {}

        def visit(one: Scalar) -> None:
            leaves = self._leaves_of(one)
            if len(leaves) == 1:
                [leaf] = leaves
                if one not in found.setdefault(leaf, []):
                    found[leaf].append(one)
            elif not leaves:
                if not isinstance(one, Literal) or one.value is None:
                    raise _NotLinear
            elif isinstance(one, Cast) or (isinstance(one, Call) and REGISTRY[one.function].strict):
                for child in one.children:
                    visit(child)
            else:
                raise _NotLinear

        visit(scalar)
        return found

    @staticmethod
    def _guards(atoms: dict[int, list[Scalar]]) -> dict[int, Scalar]:
        return {leaf: conjunction([call("is not null", one) for one in parts]) for leaf, parts in sorted(atoms.items())}


def _is_exact(scalar: Scalar) -> bool:
    """Whether it can stand in a product; what counts or is a total already cannot."""
    return isinstance(scalar.type, t.Decimal) and not (isinstance(scalar, Call) and scalar.function == "carry")


def _is_zero(scalar: Scalar) -> bool:
    return isinstance(scalar, Literal) and scalar.value is not None and scalar.value == 0


def _zero(kind: t.Type) -> Literal:
    assert isinstance(kind, t.Decimal)
    return Literal(Decimal(0).scaleb(-kind.scale), kind)


def _widens(before: t.Type, after: t.Type) -> bool:
    """Whether a cast leaves every value as it is."""
    if not isinstance(before, t.Decimal) or not isinstance(after, t.Decimal):
        return False
    return after.scale >= before.scale and after.precision - after.scale >= before.precision - before.scale


def columns_of(scalar: Scalar) -> list[Column]:
    """The columns that a scalar reads, each once, in order."""
    return list(dict.fromkeys(one for one in scalar.walk() if isinstance(one, Column)))
