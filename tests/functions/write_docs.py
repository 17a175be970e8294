"""Writes docs/sql/functions.md from the registry and the cases: `python -m tests.functions.write_docs`."""

from __future__ import annotations

import re
from pathlib import Path

from headwater.algebra.functions import REGISTRY, Function
from headwater.algebra.functions.errors import EvaluationError
from headwater.algebra.functions.evaluate import evaluate_scalar
from headwater.algebra.scalars import Literal
from tests.functions.cases import CASES
from tests.functions.harness import Case, spark_literal

PAGE = Path(__file__).parents[2] / "docs" / "sql" / "functions.md"

FAMILIES = {
    "Comparison": "comparison",
    "Logic": "logic",
    "Conditions": "conditional",
    "Arithmetic": "arithmetic",
    "Arithmetic that does not fail": "attempts",
    "Rounding": "rounding",
    "Mathematics": "mathematics",
    "Bits": "bits",
    "Text": "strings",
    "Codes of text": "codes",
    "Patterns": "patterns",
    "Dates and timestamps": "dates",
    "Units and names of time": "moments",
    "Formats": "formats",
    "Text read in a format": "readings",
    "Arrays": "arrays",
    "Maps and structs": "maps",
    "Functions of functions": "lambdas",
}

HEAD = """# Functions

Every scalar function Headwater knows gives Spark's answer in ANSI mode, with the session in UTC. A test holds the
Python definition, DuckDB and Spark to the same values and types for each of them (`tests/functions/`). A function that
is not here is refused with a clear error.

This page is written by `python -m tests.functions.write_docs`.

Where Headwater is narrower than Spark it refuses or raises, and never answers differently:

- CAST of FLOAT or DOUBLE to STRING is refused: the text is Java's own, and Java 17 and 21 do not agree on it. CAST of
  BINARY to STRING raises for bytes that are not UTF-8.
- Casts from STRING take no time without a date, no zone but UTC, GMT and offsets, and no Java suffix as in `1.5f`.
- Patterns and formats are literals. Regular expressions take what Java, RE2 and Python share: no look-around,
  back-references, flags or possessive quantifiers, and `$` only at the end of RLIKE (write `\\z`).
- A decimal product or sum that loses more digits than 38 allow is refused; cast an operand to a narrower DECIMAL.
- UPPER and INITCAP raise for a few letters that become several, such as the ligature ﬁ (ß is known).
- Formats for reading have the year, `yyyy`, and each field once. FORMAT_NUMBER takes no DOUBLE, SPLIT no limit.
- LEVENSHTEIN raises where two texts that are not ASCII have more than 127 kinds of characters together.
- The name of a field is looked up in any case; the separator of ARRAY_JOIN is a literal.
- Beside a DATE, a literal interval of whole days counts as days, however it is written.
- exp, log, sin and their kin may differ from the JVM's in the last digits.
- A DOUBLE of exactly 2^63 does not fit BIGINT; Spark makes it the largest BIGINT.
- Dates end with the year 9999.
- Where a function takes a lambda it has to be one, without aggregates, window functions and queries in it. What
  AGGREGATE's lambda returns has the type of the start, names of fields included. ARRAY_SORT takes no lambda.

The clock, `now()`, `current_timestamp()`, `current_date()`, `curdate()`, `current_week()` (how many whole weeks have
passed since Monday, 5 January 1970; Spark has no such function) and `unix_timestamp()` without an argument, is no
function of its arguments: [queries](queries.md#windows-by-the-clock) says where it may stand. `window` and
`session_window` make rows, and are explained [there](queries.md#windows-of-time), too, with `window_time`.
"""


def page() -> str:
    """The text of the page."""
    parts = [HEAD]
    for title, module in FAMILIES.items():
        parts.append(f"\n## {title}\n\n| function | what it is | example |\n|---|---|---|\n")
        parts += [_row(names, function) for names, function in _grouped(module)]
    return "".join(parts)


def _grouped(module: str) -> list[tuple[list[str], Function]]:
    """Functions of a module, names of one function together."""
    groups: dict[object, list[str]] = {}
    for name, function in REGISTRY.items():
        if not function.internal and function.resolve.__module__ and _home(function) == module:
            groups.setdefault((id(function.evaluate), function.summary), []).append(name)
    return [(names, REGISTRY[names[0]]) for names in groups.values()]


def _home(function: Function) -> str:
    return function.evaluate.__module__.rsplit(".", 1)[1]


def _row(names: list[str], function: Function) -> str:
    shown = ", ".join(f"`{_escaped(name)}`" for name in names)
    return f"| {shown} | {_escaped(function.summary)} | {_example(names)} |\n"


def _example(names: list[str]) -> str:
    """The most telling row of the cases: a value that is not NULL, and neither empty nor one of the arguments."""
    worked = [(one, row, _value(one, row)) for one in CASES if one.function in names for row in one.rows]
    usable = [(one, row, value) for one, row, value in worked if value is not None and None not in row]
    telling = [
        (one, row, value)
        for one, row, value in usable
        if value not in ("", 0, *row) and str(value) not in ("nan", "inf")
    ]
    if not usable:
        return ""
    one, row, value = (telling or usable)[0]
    values = iter(row)
    shown = [arg if isinstance(arg, Literal) else Literal(next(values), arg) for arg in one.args]
    text = one.spark.format(*map(_literal, shown))
    return f"`{_escaped(text)} → {_literal(Literal(value, one.scalar().type))}`"


def _value(one: Case, row: tuple[object, ...]) -> object:
    try:
        return evaluate_scalar(one.scalar(), {f"c{i}": v for i, v in enumerate(row)})
    except EvaluationError:
        return None


def _literal(literal: Literal) -> str:
    """A constant as short as it can be read."""
    text = spark_literal(literal)
    found = re.fullmatch(r"CAST\('?([^']*?)'? AS \w+(?:\(\d+,\d+\))?\)", text)
    return found.group(1) if found and literal.value is not None else text


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page())
    print(f"wrote {PAGE}")
