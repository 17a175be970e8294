"""The clauses of CREATE STREAM and CREATE VIEW.

Each becomes an `Option`; its value has one of these forms:

| clause | value |
|---|---|
| `KEY (a, b)`, `KEY a, b` | tuple of `Name` |
| `OP BY c [(UPSERT 'i', 'u', DELETE 'd', IGNORE 'x')]` | `OpBy` |
| `SEQUENCE BY c`, `TIMESTAMP BY c` | `Name` |
| `PARTITION LENGTH n` | int, seconds |
| `LATENESS d` | int, microseconds |
| `RETAIN d`, `RETAIN ALL` | int, microseconds, or `"ALL"` |
| `ROLL UP AFTER d INTO n` | tuple of int, microseconds, and int, seconds |
| `FROM format ...` | `Feed` |
| `STREAMED`, `COMPLETE`, `STRICT`, `BACKFILL` | True |
| `REFRESH EVERY EPOCH`, `ON QUERY`, `AUTO`, `MANUAL` | `"EVERY EPOCH"`, `"ON QUERY"`, `"AUTO"`, `"MANUAL"` |
| `REFRESH EVERY d` | int, microseconds |
| `REFRESH ON p` | `Name` |
| `RETAIN CHANGES d`, `RETAIN CHANGES ALL` | int, microseconds, or `"ALL"` |
| `STRATEGY 's'` | str, in small letters |

A length of time `d` is `7 DAYS`, `1 HOUR 30 MINUTES`, or an interval: `INTERVAL 5 MINUTES`, `INTERVAL '5' MINUTE`,
`INTERVAL '5 minutes'`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal

from headwater.errors import Span, UserError
from headwater.sql.dialect import Headwater
from headwater.sql.statements import (
    Feed,
    Name,
    OpBy,
    Option,
)

STRATEGIES = ("tree", "viewlet", "viewlet naive", "first order", "re-evaluate", "recompute")
EXPLAIN_FORMATS = ("text", "tree", "mermaid", "json")
FEEDS = ("json", "csv", "parquet", "kafka", "socket", "rate")

_MICROSECONDS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}
_NOT_FIXED = ("MONTH", "QUARTER", "YEAR")
_LONGEST = (1 << 63) - 1

Clauses = dict[str, Callable[[Headwater.Parser], object]]


def read_stream_options(parser: Headwater.Parser) -> tuple[Option, ...]:
    """Read the clauses after the columns of CREATE STREAM, in any order."""
    return _read(parser, _STREAM_CLAUSES)


def read_table_options(parser: Headwater.Parser) -> tuple[Option, ...]:
    """Read the clauses after the columns of CREATE TABLE."""
    return _read(parser, _TABLE_CLAUSES)


def read_tagged_options(parser: Headwater.Parser) -> tuple[Option, ...]:
    """Read the clauses of CREATE TAGGED STREAM, in any order."""
    return _read(parser, {name: _STREAM_CLAUSES[name] for name in TAGGED_CLAUSES})


def read_port(parser: Headwater.Parser) -> Feed:
    """Read where REGISTER SOURCE listens: `port5501`, `port 5501` or `5501`, on this machine."""
    place = parser.here
    word = parser.word()
    if word == "PORT":
        parser.take("PORT")
        word = ""
    digits = parser.number("a port, such as port5501") if not word else parser.name("a port").text[4:]
    wrong = (word and not word.startswith("PORT")) or not re.fullmatch(r"\d{1,5}", digits, re.ASCII)
    if wrong or not 0 < int(digits) < 65536:
        raise UserError("HW004", "this is no port", span=parser.since(place), hint="write port5501, say")
    return Feed("socket", f"localhost:{digits}")


def read_view_options(parser: Headwater.Parser) -> tuple[Option, ...]:
    """Read the clauses between the name of CREATE VIEW and its AS, in any order."""
    return _read(parser, _VIEW_CLAUSES)


def read_part_options(parser: Headwater.Parser) -> tuple[Option, ...]:
    """Read the clauses at the end of a view of parts, in any order."""
    return _read(parser, _PART_CLAUSES)


def _read(parser: Headwater.Parser, clauses: Clauses) -> tuple[Option, ...]:
    options: dict[str, Option] = {}
    while keyword := next((k for k in clauses if parser.at(k)), None):
        start = parser.here
        parser.take(keyword)
        option = Option(keyword, clauses[keyword](parser), parser.since(start))
        refuse_again(tuple(options.values()), (option,))
        options[keyword] = option
    return tuple(options.values())


def refuse_again(options: tuple[Option, ...], more: tuple[Option, ...]) -> None:
    """Refuse further clauses that are there already."""
    for option in more:
        if any(option.name == one.name for one in options):
            raise UserError("HW003", f"{option.name} is given twice", span=option.span, hint="keep one of them")


def no_format(name: str, span: Span | None = None) -> UserError:
    """The refusal of a format that EXPLAIN does not have."""
    hint = f"formats are {', '.join(EXPLAIN_FORMATS)}"
    return UserError("HW004", f"there is no format {str(name)[:40]}", span=span, hint=hint)


def read_duration(parser: Headwater.Parser) -> int:
    """Read a length of time, in microseconds."""
    start = parser.here
    interval = parser.take("INTERVAL")
    if interval and parser.next_is_string():
        text = parser.string("a length of time")
        if pairs := re.findall(r"\s*([\d.]+)\s+([a-zA-Z]+)", text):
            if re.fullmatch(r"(\s*[\d.]+\s+[a-zA-Z]+)+\s*", text):
                return _total([_microseconds(n, unit, parser.since(start)) for n, unit in pairs], parser.since(start))
            raise _no_duration(text, parser.since(start))
        parts = [_read_unit(parser, text, start)]
    else:
        parts = [_read_unit(parser, parser.number("a length of time, such as 7 DAYS"), start)]
    while parser.next_is_number():
        parts.append(_read_unit(parser, parser.number("a number"), start))
    return _total(parts, parser.since(start))


def _read_unit(parser: Headwater.Parser, number: str, start: Span) -> int:
    unit = parser.word()
    if not unit:
        raise parser.expected("a unit of time, such as MINUTES")
    parser.take(unit)
    return _microseconds(number, unit, parser.since(start))


def _microseconds(number: str, unit: str, span: Span) -> int:
    singular = unit.upper().removesuffix("S")
    if singular in _NOT_FIXED:
        raise UserError("HW004", f"a {singular} has no fixed length", span=span, hint="write it in DAYS")
    if singular not in _MICROSECONDS:
        units = ", ".join(f"{name}S" for name in _MICROSECONDS)
        raise UserError("HW004", f"{unit} is not a unit of time", span=span, hint=f"units are {units}")
    if not re.fullmatch(r"\d{1,18}(\.\d{1,6})?", number, re.ASCII):
        raise _no_duration(number, span)
    exact = Decimal(number) * _MICROSECONDS[singular]
    if exact != int(exact):
        raise UserError("HW004", f"{number} {unit} is not a whole number of microseconds", span=span)
    return int(exact)


def _total(parts: list[int], span: Span) -> int:
    if sum(parts) > _LONGEST:
        raise UserError("HW004", "this length of time is too long", span=span, hint="RETAIN ALL keeps everything")
    return sum(parts)


def _no_duration(text: str, span: Span) -> UserError:
    return UserError(
        "HW004", f"'{text[:40]}' is not a length of time", span=span, hint="write it as INTERVAL 1 DAY 2 HOURS"
    )


def _read_retain(parser: Headwater.Parser) -> int | str:
    return "ALL" if parser.take("ALL") else read_duration(parser)


def _read_seconds(parser: Headwater.Parser) -> int:
    place = parser.here
    digits = parser.number("a number of seconds")
    if not re.fullmatch(r"\d{1,10}", digits, re.ASCII) or int(digits) == 0:
        raise UserError("HW004", f"{digits[:40]} is not a length in whole seconds", span=place, hint="write 60, say")
    return int(digits)


def _read_feed(parser: Headwater.Parser) -> Feed:
    place = parser.here
    name = parser.name(f"where rows come from: {', '.join(FEEDS)}").text.lower()
    if name not in FEEDS:
        raise UserError("HW004", f"there is no source {name}", span=place, hint=f"sources are {', '.join(FEEDS)}")
    if name == "rate":
        digits = parser.number("rows per second")
        if not re.fullmatch(r"\d{1,9}", digits, re.ASCII):
            raise UserError("HW004", "the rate is a whole number of rows per second", span=parser.since(place))
        return Feed(name, digits)
    location = parser.string({"socket": "'host:port'", "kafka": "the topic in quotes"}.get(name, "a path in quotes"))
    return Feed(name, location, read_settings(parser) if parser.at("(") else {})


def read_settings(parser: Headwater.Parser) -> dict[str, object]:
    """Read `(name value, name = value, flag)`; values are strings, whole numbers, words, TRUE and FALSE."""
    settings: dict[str, object] = {}

    def setting() -> None:
        place = parser.here
        name = parser.word().lower()
        if not name:
            raise parser.expected("an option")
        parser.take(name.upper())
        if name in settings:
            raise UserError("HW003", f"{name} is given twice", span=place, hint="keep one of them")
        settings[name] = True if parser.at(",") or parser.at(")") else _read_value(parser)

    parser.listed(setting)
    return settings


def _read_value(parser: Headwater.Parser) -> object:
    parser.take("=")
    if parser.next_is_string():
        return parser.string("a value")
    word = parser.word()
    if word:
        parser.take(word)
        return {"TRUE": True, "FALSE": False}.get(word, word.lower())
    place = parser.here
    digits = parser.number("a value")
    if not re.fullmatch(r"\d{1,18}", digits, re.ASCII):
        raise UserError("HW004", f"{digits[:40]} is not a whole number", span=place)
    return int(digits)


def _read_refresh(parser: Headwater.Parser) -> object:
    for policy in ("EVERY EPOCH", "ON QUERY", "AUTO", "MANUAL"):
        if parser.take(policy):
            return policy
    if parser.take("ON"):
        return parser.name("the name of a refresh policy")
    if not parser.take("EVERY"):
        raise parser.expected("EVERY EPOCH, EVERY n SECONDS, ON name, ON QUERY, AUTO or MANUAL")
    place = parser.here
    period = read_duration(parser)
    if period == 0:
        raise UserError("HW004", "the time between two refreshes must be positive", span=parser.since(place))
    return period


def read_strategy(parser: Headwater.Parser) -> str:
    place = parser.here
    strategy = " ".join(parser.string("a strategy in quotes, such as 'first order'").lower().split())
    if strategy not in STRATEGIES:
        known = ", ".join(f"'{name}'" for name in STRATEGIES)
        raise UserError("HW004", f"there is no strategy '{strategy[:40]}'", span=place, hint=f"strategies are {known}")
    return strategy


def _read_key(parser: Headwater.Parser) -> tuple[Name, ...]:
    if parser.at("("):
        return parser.names("a column")
    names = [parser.name("a column")]
    while parser.take(","):
        names.append(parser.name("a column"))
    return tuple(names)


#: What OP BY understands if it is not told: the codes of Debezium, and of Spark's change feeds.
OPERATIONS: dict[str, tuple[str, ...]] = {
    "UPSERT": ("c", "r", "u", "insert", "update", "update_postimage"),
    "DELETE": ("d", "delete"),
    "IGNORE": ("update_preimage",),
}


def _read_op_by(parser: Headwater.Parser) -> OpBy:
    """`OP BY column`, and perhaps what its values mean."""
    column = parser.name("a column")
    if not parser.at("("):
        return OpBy(column, dict(OPERATIONS))
    found: dict[str, list[str]] = {name: [] for name in OPERATIONS}
    action = ""

    def value() -> None:
        nonlocal action
        action = next((name for name in OPERATIONS if parser.take(name)), action)
        if not action:
            raise parser.expected("UPSERT, DELETE or IGNORE")
        place = parser.here
        text = parser.string(f"a value of {column.text} in quotes")
        if any(text in values for values in found.values()):
            raise UserError("HW003", f"'{text[:40]}' is given twice", span=place, hint="a value has one meaning")
        found[action].append(text)

    parser.listed(value)
    return OpBy(column, {name: tuple(values) for name, values in found.items()})


def _read_roll_up(parser: Headwater.Parser) -> tuple[int, int]:
    parser.expect("AFTER")
    after = read_duration(parser)
    parser.expect("INTO")
    return after, _read_seconds(parser)


_STREAM_CLAUSES: Clauses = {
    "KEY": _read_key,
    "OP BY": _read_op_by,
    "STRICT": lambda parser: True,
    "SEQUENCE BY": lambda parser: parser.name("a column"),
    "TIMESTAMP BY": lambda parser: parser.name("a column"),
    "PARTITION LENGTH": _read_seconds,
    "LATENESS": read_duration,
    "RETAIN CHANGES": _read_retain,
    "RETAIN": _read_retain,
    "ROLL UP": _read_roll_up,
    "FROM": _read_feed,
}
#: The clauses that a tagged stream may have: its columns and its source are those of the raw stream.
TAGGED_CLAUSES = ("KEY", "SEQUENCE BY", "STRICT", "RETAIN")
_TABLE_CLAUSES: Clauses = {"RETAIN CHANGES": _read_retain}
_VIEW_CLAUSES: Clauses = {
    "RETAIN CHANGES": _read_retain,
    "RETAIN": _read_retain,
    "ROLL UP": _read_roll_up,
    "REFRESH": _read_refresh,
    "STRICT": lambda parser: True,
    "STRATEGY": read_strategy,
}


#: The clauses at the end of a view of parts.
_PART_CLAUSES: Clauses = {
    "PARTITION LENGTH": _read_seconds,
    "BACKFILL": lambda parser: True,
    "RETAIN": _read_retain,
    "ROLL UP": _read_roll_up,
}
