"""Scalar expressions as DuckDB SQL.

A node becomes an expression whose DuckDB type is exactly the node's type; casts appear only where DuckDB would choose
another. Run-time failures surface as DuckDB exceptions; `explain_runtime_error` turns their text into our codes.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from headwater.algebra.functions.errors import DIVISION_BY_ZERO, INVALID_VALUE, OVERFLOW, EvaluationError
from headwater.algebra.scalars import Call, Cast, Column, Given, Lambda, Literal, Parameter, Scalar
from headwater.emit.functions import EMITTERS
from headwater.emit.functions.build import cast, duckdb_type, failure, recast
from headwater.emit.functions.casts import emit_cast
from headwater.emit.functions.lambdas import parameter_name
from headwater.emit.functions.literals import constant, duckdb_literal

__all__ = ["duckdb_literal", "duckdb_scalar", "duckdb_type", "explain_runtime_error"]


def duckdb_scalar(scalar: Scalar, column: Callable[[str], exp.Expr]) -> exp.Expr:
    """The expression in DuckDB's SQL.

    Args:
        scalar: what to compute.
        column: the SQL for a column of this name; called once for each use, so it returns a fresh node.
    """
    match scalar:
        case Column(name=name):
            return column(name)
        case Literal(value=value, type=kind):
            return duckdb_literal(value, kind)
        case Given(number=number, type=kind):
            return recast(exp.Parameter(this=exp.Var(this=given_name(number))), duckdb_type(kind))
        case Parameter():
            return parameter_name(scalar)
        case Lambda(parameters=parameters, body=body):
            return exp.Lambda(this=duckdb_scalar(body, column), expressions=list(map(parameter_name, parameters)))
    try:
        folded = constant(scalar)
    except EvaluationError as error:
        return cast(failure(error.code, error.message), duckdb_type(scalar.type))
    if folded is not None:
        return duckdb_literal(folded.value, folded.type)
    match scalar:
        case Cast(arg=arg):
            return emit_cast(scalar, duckdb_scalar(arg, column))
        case Call(function=function, args=args):
            return EMITTERS[function](scalar, *(duckdb_scalar(arg, column) for arg in args))
    raise AssertionError(f"{type(scalar).__name__} is not a scalar")


def given_name(number: int) -> str:
    """What a statement calls the constant that it is given under a number."""
    return f"given{number}"


_OURS = re.compile(r"(HW5\d\d): ([^\n]*)")
_KNOWN = (
    (re.compile(r"division by zero", re.I), DIVISION_BY_ZERO, "division by zero"),
    (re.compile(r"Overflow in (\w+) of [^(]*\(([^)]*)\)", re.I), OVERFLOW, "{0} out of range: {1}"),
    (re.compile(r"((?:Date|Time) out of range: [^\n]*)"), INVALID_VALUE, "{0}"),
    (re.compile(r"Could not convert string '([^']*)' to (\w+)", re.I), INVALID_VALUE, "'{0}' is not a valid {1}"),
    (re.compile(r'Could not convert string "([^"]*)" to (DECIMAL\S*)', re.I), OVERFLOW, "{0} is out of range for {1}"),
    (re.compile(r"Failed to cast decimal value (\S+) to type (\w+)"), OVERFLOW, "{0} is out of range for {1}"),
    (re.compile(r"overflow", re.I), OVERFLOW, "the result is out of range"),
    (re.compile(r"with value (\S+) can't be cast[^\n]*destination type (\w+)", re.I), OVERFLOW, "{0} is out of range"),
    (re.compile(r'Casting value "([^"]*)" to type (\S+) failed', re.I), OVERFLOW, "{0} is out of range for {1}"),
    (re.compile(r"Could not cast value (\S+) to (DECIMAL\(\d+,\d+\))", re.I), OVERFLOW, "{0} is out of range for {1}"),
    (re.compile(r"out of range", re.I), OVERFLOW, "a value is out of range"),
    (re.compile(r"Conversion Error: ([^\n]*)"), INVALID_VALUE, "{0}"),
)


#: What DuckDB calls types inside.
_TYPE_NAMES = {"INT8": "TINYINT", "INT16": "SMALLINT", "INT32": "INT", "INT64": "BIGINT", "VARCHAR": "STRING"}


def explain_runtime_error(message: str) -> tuple[str, str]:
    """Our code and one sentence for the text of an exception that DuckDB raised while computing a scalar.

    >>> explain_runtime_error("Invalid Input Error: HW501: division by zero")
    ('HW501', 'division by zero')
    """
    message = message.split("\nLINE ")[0]  # what follows quotes the statement, with all the errors it might have raised
    ours = _OURS.search(message)
    if ours:
        return ours.group(1), ours.group(2).strip()
    for pattern, code, template in _KNOWN:
        found = pattern.search(message)
        if found:
            names = [_TYPE_NAMES.get(text, text) for text in found.groups()]
            return code, template.format(*names)
    return INVALID_VALUE, message.strip().split("\n")[0]
