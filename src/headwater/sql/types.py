"""Spark's type names, read from text and from sqlglot's trees."""

from __future__ import annotations

from sqlglot import exp

from headwater import types as t
from headwater.errors import NotSupported, Source, Span, UserError
from headwater.sql.dialect import Headwater, new_parser
from headwater.sql.names import fold
from headwater.sql.reading import guard, split_statements

_SIMPLE: dict[str, t.Type] = {
    "BOOLEAN": t.BOOLEAN,
    "TINYINT": t.TINYINT,
    "BYTE": t.TINYINT,
    "SMALLINT": t.SMALLINT,
    "SHORT": t.SMALLINT,
    "INT": t.INT,
    "INTEGER": t.INT,
    "BIGINT": t.BIGINT,
    "LONG": t.BIGINT,
    "FLOAT": t.FLOAT,
    "REAL": t.FLOAT,
    "DOUBLE": t.DOUBLE,
    "STRING": t.STRING,
    "VARCHAR": t.STRING,
    "BINARY": t.BINARY,
    "DATE": t.DATE,
    "TIMESTAMP": t.TIMESTAMP,
    "TIMESTAMP_LTZ": t.TIMESTAMP,
    "VOID": t.NULL,
}
_DECIMALS = ("DECIMAL", "DEC", "NUMERIC")
_INTERVALS: dict[tuple[str, str], t.Type] = {
    ("DAY", "SECOND"): t.DAY_TIME_INTERVAL,
    ("YEAR", "MONTH"): t.YEAR_MONTH_INTERVAL,
}
_INTERVAL_UNITS = ("DAY", "HOUR", "MINUTE", "SECOND", "YEAR", "MONTH")

# Types that Spark has and Headwater does not, with what to write instead.
_UNSUPPORTED = {
    "TIMESTAMP_NTZ": "use TIMESTAMP, which Headwater reads and writes in UTC",
    "VARIANT": "use STRING, or a STRUCT of the fields you need",
    "TIME": "use STRING, or INTERVAL DAY TO SECOND",
    "CHAR": "use STRING",
    "CHARACTER": "use STRING",
    "GEOMETRY": "use STRING or BINARY",
    "GEOGRAPHY": "use STRING or BINARY",
}
_OTHER_NAMES = {
    "TEXT": "STRING",
    "STR": "STRING",
    "UUID": "STRING",
    "JSON": "STRING",
    "BOOL": "BOOLEAN",
    "INT2": "SMALLINT",
    "INT4": "INT",
    "INT8": "BIGINT",
    "INT16": "SMALLINT",
    "INT32": "INT",
    "INT64": "BIGINT",
    "HUGEINT": "DECIMAL(38,0)",
    "NUMBER": "DECIMAL(p,s)",
    "FLOAT4": "FLOAT",
    "FLOAT8": "DOUBLE",
    "DATETIME": "TIMESTAMP",
    "TIMESTAMPTZ": "TIMESTAMP",
    "BLOB": "BINARY",
    "BYTEA": "BINARY",
    "LIST": "ARRAY<...>",
    "ROW": "STRUCT<...>",
}


def parse_type(text: str) -> t.Type:
    """The type of this name, in any spelling Spark accepts.

    >>> str(parse_type("struct<a: int, b: array<dec(10, 2)>>"))
    'STRUCT<a: INT, b: ARRAY<DECIMAL(10,2)>>'
    """
    source = Source(text, "<type>")
    statements = split_statements(source)
    if len(statements) != 1:
        raise UserError("HW163", "expected one type", span=Span(0, len(text)), source=source)
    parser = new_parser()
    with guard(source, Span(0, len(text)), statements[0]):
        parser.begin(source, statements[0])
        found = read_type(parser)
        parser.end()
    return found


def is_type(word: str) -> bool:
    """Whether a word in capitals begins the name of a type."""
    return word in _SIMPLE or word in (*_DECIMALS, "ARRAY", "MAP", "STRUCT", "INTERVAL")


def read_type(parser: Headwater.Parser) -> t.Type:
    """Read a type at the cursor."""
    start = parser.here
    word = parser.word()
    if not word:
        raise parser.expected("a type")
    parser.take(word)
    if word in _DECIMALS:
        return _decimal(parser.listed(lambda: parser.number("a number")) if parser.at("(") else (), parser.since(start))
    if word in ("ARRAY", "MAP", "STRUCT"):
        return _read_nested(parser, word, start)
    if word == "INTERVAL":
        return _read_interval(parser, start)
    if parser.at("("):
        parser.listed(lambda: parser.number("a number"))
        if word == "VARCHAR" or word in _UNSUPPORTED:
            name = parser.source.text[start.start : parser.since(start).end]
            raise _unsupported(name, _UNSUPPORTED.get(word, "use STRING, which has no bound"), parser.since(start))
        if word in _SIMPLE:
            raise UserError("HW163", f"{word} takes no parameters", span=parser.since(start))
    return _simple(word, start)


def _simple(word: str, span: Span | None) -> t.Type:
    if word in _SIMPLE:
        return _SIMPLE[word]
    if word in _UNSUPPORTED:
        raise _unsupported(word, _UNSUPPORTED[word], span)
    other = _OTHER_NAMES.get(word)
    raise UserError(
        "HW163",
        f"there is no type {word}",
        span=span,
        hint=f"Spark's name for it is {other}"
        if other
        else "types are named as in Spark SQL; see docs/sql/statements.md",
    )


def _unsupported(name: str, instead: str, span: Span | None) -> NotSupported:
    return NotSupported("HW263", f"type {name} is not supported", span=span, hint=instead)


def _decimal(digits: tuple[str, ...], span: Span | None) -> t.Type:
    if len(digits) > 2 or not all(part.isascii() and part.isdigit() and len(part) <= 4 for part in digits):
        raise UserError("HW163", "DECIMAL takes a precision and a scale", span=span, hint="write DECIMAL(10,2)")
    precision, scale = (*map(int, digits), *(10, 0)[len(digits) :])
    try:
        return t.Decimal(precision, scale)
    except ValueError as error:
        hint = f"the precision is 1 to {t.MAX_PRECISION}, the scale at most the precision"
        raise UserError("HW163", str(error), span=span, hint=hint) from None


def _read_interval(parser: Headwater.Parser, start: Span) -> t.Type:
    first = last = ""
    if parser.word() in _INTERVAL_UNITS:
        first = last = parser.word()
        parser.take(first)
        if parser.take("TO"):
            last = parser.word()
            if last not in _INTERVAL_UNITS:
                raise parser.expected("a unit of time")
            parser.take(last)
    return _interval(first, last, parser.since(start))


def _interval(first: str, last: str, span: Span | None) -> t.Type:
    found = _INTERVALS.get((first, last))
    if found is None:
        name = " ".join(dict.fromkeys(("INTERVAL", first, "TO" if first != last else "", last))).strip()
        raise _unsupported(name, "use INTERVAL DAY TO SECOND or INTERVAL YEAR TO MONTH", span)
    return found


def _read_nested(parser: Headwater.Parser, word: str, start: Span) -> t.Type:
    if parser.at("<>"):
        raise parser.expected("what the type is made of")
    parser.expect("<")
    found: t.Type
    if word == "STRUCT":
        fields = [_read_field(parser)]
        while parser.take(","):
            fields.append(_read_field(parser))
        found = _struct(fields, parser.since(start))
    elif word == "ARRAY":
        found = t.Array(read_type(parser))
    else:
        key = read_type(parser)
        parser.expect(",")
        found = _map(key, read_type(parser), parser.since(start))
    parser.expect(">")
    return found


def _read_field(parser: Headwater.Parser) -> tuple[str, t.Type]:
    name = parser.name("a field's name")
    parser.take(":")
    found = read_type(parser)
    for word in ("NOT", "COMMENT", "COLLATE"):
        if parser.at(word):
            raise NotSupported(
                "HW261", f"{word} in a field of a STRUCT is not supported", span=parser.here, hint="leave it out"
            )
    return name.text, found


def _struct(fields: list[tuple[str, t.Type]], span: Span | None) -> t.Type:
    seen: set[str] = set()
    for name, _ in fields:
        if fold(name) in seen:
            raise UserError("HW160", f"field {name} is declared twice", span=span, hint="give each field its own name")
        seen.add(fold(name))
    return t.Struct(tuple(fields))


def _map(key: t.Type, value: t.Type, span: Span | None) -> t.Type:
    if not t.is_groupable(key):
        raise UserError("HW163", f"{key} cannot be the key of a MAP", span=span, hint="a MAP has no equality")
    return t.Map(key, value)


_FROM_SQLGLOT = {
    exp.DType.BOOLEAN: "BOOLEAN",
    exp.DType.TINYINT: "TINYINT",
    exp.DType.SMALLINT: "SMALLINT",
    exp.DType.INT: "INT",
    exp.DType.BIGINT: "BIGINT",
    exp.DType.FLOAT: "FLOAT",
    exp.DType.DOUBLE: "DOUBLE",
    exp.DType.TEXT: "STRING",
    exp.DType.VARCHAR: "VARCHAR",
    exp.DType.CHAR: "CHAR",
    exp.DType.BINARY: "BINARY",
    exp.DType.DATE: "DATE",
    exp.DType.TIMESTAMP: "TIMESTAMP",
    exp.DType.TIMESTAMPTZ: "TIMESTAMP",
    exp.DType.TIMESTAMPLTZ: "TIMESTAMP",
    exp.DType.TIMESTAMPNTZ: "TIMESTAMP_NTZ",
    exp.DType.NULL: "VOID",
    exp.DType.VARIANT: "VARIANT",
}


def from_sqlglot(tree: exp.Expr) -> t.Type:
    """The type that a CAST in a query names.

    In a CAST, sqlglot has already dropped the length of VARCHAR(n) and CHAR(n), which is what Spark does there.

    Raises:
        UserError: there is no such type.
        NotSupported: Headwater does not have it. Neither has a place yet; the caller knows the cast's.
    """
    if not isinstance(tree, exp.DataType):
        raise UserError("HW163", f"there is no type {tree.sql(Headwater)}")
    kind, inner = tree.this, tree.expressions
    if isinstance(kind, exp.Interval):
        unit = kind.args["unit"]
        ends = (unit.this, unit.expression) if isinstance(unit, exp.IntervalSpan) else (unit, unit)
        return _interval(ends[0].name.upper(), ends[1].name.upper(), None)
    if kind == exp.DType.INTERVAL:
        return _interval("", "", None)
    if kind == exp.DType.DECIMAL:
        return _decimal(tuple(part.name if _is_plain_number(part) else "?" for part in inner), None)
    if tree.args.get("values") or (kind == exp.DType.ARRAY and len(inner) != 1):
        raise UserError("HW163", f"there is no type {tree.sql(Headwater)}", hint="write ARRAY<...>")
    if kind == exp.DType.ARRAY:
        return t.Array(from_sqlglot(inner[0]))
    if kind == exp.DType.MAP and len(inner) == 2:
        return _map(from_sqlglot(inner[0]), from_sqlglot(inner[1]), None)
    if kind == exp.DType.STRUCT and inner and all(_plain_field(part) for part in inner):
        return _struct([(part.name, from_sqlglot(part.args["kind"])) for part in inner], None)
    if kind in _FROM_SQLGLOT and not inner:
        return _simple(_FROM_SQLGLOT[kind], None)
    raise UserError("HW163", f"there is no type {tree.sql(Headwater)}")


def _plain_field(part: exp.Expr) -> bool:
    return isinstance(part, exp.ColumnDef) and part.args.get("kind") is not None and not part.args.get("constraints")


def _is_plain_number(part: exp.Expr) -> bool:
    return isinstance(part, exp.DataTypeParam) and isinstance(part.this, exp.Literal) and not part.expression
