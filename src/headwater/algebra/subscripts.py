"""Arithmetic on the subscripts of parts: `j`, `j - 1`, `60 * j + 59`, `j / 60`.

A part's subscript is its Unix time divided by the partition length (Yang, Golab and Ozsu, "ViewDF", section 2). A part
reference names parts of a relation by such an expression in the subscript of the view's own part. Divisions round down.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction


class NotLinear(Exception):
    """An expression that no straight line follows, such as `j * j`."""


@dataclass(frozen=True)
class Subscript:
    """An expression in one variable.

    Attributes:
        sign: `+`, `-`, `*`, `/` or `%` of two operands; "" for a number; `j` for the variable.
        operands: what it is computed from.
        number: of a number.
    """

    sign: str
    operands: tuple[Subscript, ...] = ()
    number: int = 0

    def at(self, subscript: int) -> int:
        """Its value for a part.

        Raises:
            ZeroDivisionError: it divides by zero.
        """
        match self.sign, self.operands:
            case "j", _:
                return subscript
            case "", _:
                return self.number
            case "+", (a, b):
                return a.at(subscript) + b.at(subscript)
            case "-", (a, b):
                return a.at(subscript) - b.at(subscript)
            case "*", (a, b):
                return a.at(subscript) * b.at(subscript)
            case "/", (a, b):
                return a.at(subscript) // b.at(subscript)
            case "%", (a, b):
                return a.at(subscript) % b.at(subscript)
        raise AssertionError(f"no operation {self.sign!r}")

    @property
    def is_constant(self) -> bool:
        return self.sign != "j" and all(one.is_constant for one in self.operands)

    @property
    def period(self) -> int:
        """After so many subscripts it has risen by the same amount again.

        Raises:
            NotLinear: there is no such number.
        """
        if self.is_constant or self.sign == "j":
            return 1
        left, right = self.operands
        periods = math.lcm(left.period, right.period)
        if self.sign in "+-":
            return periods
        if self.sign == "*":
            if not left.is_constant and not right.is_constant:
                raise NotLinear
            return periods
        if not right.is_constant:
            raise NotLinear
        return periods * abs(right.at(0))

    @property
    def slope(self) -> Fraction:
        """By how much it rises from one subscript to the next, on average."""
        period = self.period
        return Fraction(self.at(period) - self.at(0), period)

    @property
    def rises(self) -> bool:
        """Whether it is known that it never falls as its variable rises."""
        if self.is_constant or self.sign == "j":
            return True
        left, right = self.operands
        match self.sign:
            case "+":
                return left.rises and right.rises
            case "-":
                return left.rises and right.is_constant
            case "*" | "/":
                if right.is_constant:
                    return left.rises and right.at(0) >= 0
                return self.sign == "*" and left.is_constant and left.at(0) >= 0 and right.rises
        return False

    def keeps_distance(self, other: Subscript) -> bool:
        """Whether both rise, and the other one lies always equally far from it."""
        if not (self.rises and other.rises) or self.slope != other.slope:
            return False
        distance = other.at(0) - self.at(0)
        return all(other.at(j) - self.at(j) == distance for j in range(math.lcm(self.period, other.period)))

    def least_from(self, begin: int) -> int | None:
        """Its least value for `begin` and all later subscripts; None if it has none, or none that is found soon."""
        if self.rises:
            return self.at(begin)
        if self.slope < 0:
            return None
        return min(map(self.at, range(begin, begin + self.period)))

    def first_to_reach(self, value: int, begin: int, end: int) -> int:
        """The first subscript from `begin` to before `end` for which it is at least some value; else `end`."""
        span = range(begin, max(begin, end))
        if self.rises:
            return begin + bisect_left(span, value, key=self.at)
        return next((one for one in span if self.at(one) >= value), span.stop)

    def __str__(self) -> str:
        if self.sign == "j":
            return "j"
        if not self.sign:
            return str(self.number)
        return f" {self.sign} ".join(self._shown(one, place) for place, one in enumerate(self.operands))

    def _shown(self, operand: Subscript, place: int) -> str:
        tight = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2}
        mine, theirs = tight[self.sign], tight.get(operand.sign, 3)
        alone = theirs > mine or (theirs == mine and place == 0)
        return str(operand) if alone else f"({operand})"

    def to_json(self) -> object:
        """Nested lists: `["+", "j", 1]`."""
        if self.sign == "j":
            return "j"
        return [self.sign, *(one.to_json() for one in self.operands)] if self.sign else self.number


VARIABLE = Subscript("j")


def number(value: int) -> Subscript:
    return Subscript("", (), value)


def from_json(data: object) -> Subscript:
    """An expression from its nested lists."""
    match data:
        case "j":
            return VARIABLE
        case int():
            return number(data)
        case [str(sign), *operands]:
            return Subscript(sign, tuple(map(from_json, operands)))
    raise ValueError(f"no subscript: {data!r}")


def _strays(subscript: Subscript) -> tuple[Fraction, Fraction]:
    """How far an expression lies from a straight line through zero at least, and at most."""
    distances = [subscript.at(j) - subscript.slope * j for j in range(subscript.period)]
    return min(distances), max(distances)


def holders(first: Subscript, last: Subscript, part: int, begin: int, end: int) -> Iterator[int]:
    """The subscripts from `begin` to before `end` for which a part lies between two others."""
    span = range(begin, end)
    if first.rises and last.rises:  # those with last >= part, from the first of them on, as long as first <= part
        low = bisect_left(span, part, key=last.at)
        high = bisect_right(span, part, key=first.at)
        yield from span[low:high]
        return
    if first.slope > 0 and last.slope > 0:  # it follows a line, from which it never strays far
        low = math.floor((part - _strays(last)[1]) / last.slope)
        high = math.ceil((part - _strays(first)[0]) / first.slope)
        span = range(max(begin, low), min(end, high + 1))
    yield from (one for one in span if first.at(one) <= part <= last.at(one))
