"""What goes wrong when a scalar is computed for a row."""

from __future__ import annotations

from headwater.errors import UserError

DIVISION_BY_ZERO = "HW501"
OVERFLOW = "HW502"
INVALID_VALUE = "HW503"


class EvaluationError(UserError):
    """An expression has no value for a row: division by zero, overflow, or a value that cannot be converted."""


def division_by_zero() -> EvaluationError:
    """Something divided by zero."""
    return EvaluationError(DIVISION_BY_ZERO, "division by zero", hint="guard the divisor, as in x / nullif(y, 0)")


def overflow(what: object) -> EvaluationError:
    """A result that its type does not hold."""
    return EvaluationError(OVERFLOW, f"{what} is out of range", hint="cast an operand to a wider type first")


def invalid_value(message: str) -> EvaluationError:
    """A value that means nothing in the type or function it is given to."""
    return EvaluationError(INVALID_VALUE, message, hint="use try_cast to get NULL instead, or filter such rows out")
