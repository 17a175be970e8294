"""Text back into nodes: the inverse of `headwater.algebra.text`."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import re
from collections.abc import Callable, Mapping

from headwater import types as t
from headwater.algebra.folds import Frame, Pick, Sorting, WindowCall
from headwater.algebra.nodes import (
    ONE,
    During,
    Explode,
    Filter,
    Join,
    Keep,
    Named,
    Negate,
    Node,
    Outer,
    Over,
    Present,
    Project,
    Repeat,
    Scan,
    Sum,
    Union,
    Values,
    Version,
)
from headwater.algebra.scalars import TRUE, Call, Cast, Column, Lambda, Literal, Parameter, Scalar
from headwater.algebra.text import INFIX, NOT_POWER, POSTFIX

_TOKEN = re.compile(
    r"\s*(?:(?P<quoted>`(?:[^`]|``)*`)|(?P<string>'(?:[^'\\]|\\.)*')|(?P<number>\d+L?)"
    r"|(?P<parameter>\$\d+)|(?P<name>[A-Za-z_#][A-Za-z0-9_#$]*(?:\.[A-Za-z_#][A-Za-z0-9_#$]*)*)"
    r"|(?P<mark>:=|<=>|<>|<=|>=|[][(){},;:=<>+\-*/%]))"
)
_ESCAPES = {"n": "\n"}


class TextError(ValueError):
    """Text that is not algebra."""


def read_node(text: str, schemas: Mapping[str, t.Schema]) -> Node:
    """Parse a tree; `schemas` gives the columns of every relation it scans."""
    reader = _Reader(text, schemas)
    node = reader.tree()
    reader.end()
    return node


def read_scalar(text: str, columns: Mapping[str, t.Type]) -> Scalar:
    """Parse a scalar over the given columns."""
    reader = _Reader(text, {})
    scalar = reader.scalar(columns)
    reader.end()
    return scalar


def read_type(text: str) -> t.Type:
    """Parse a type's name as `str` prints it."""
    reader = _Reader(text, {})
    of = reader.type()
    reader.end()
    return of


def from_json(value: object, of: t.Type) -> object:
    """A value from its JSON form (see `text.to_json`)."""
    if value is None:
        return None
    match of:
        case t.Boolean() | t.String():
            return value
        case t.Integer() | t.DayTimeInterval() | t.YearMonthInterval():
            return int(str(value))
        case t.Float() | t.Double():
            return float(str(value))
        case t.Decimal():
            return decimal.Decimal(str(value))
        case t.Binary():
            return bytes.fromhex(str(value))
        case t.Date():
            return dt.date.fromisoformat(str(value))
        case t.Timestamp():
            return dt.datetime.fromisoformat(str(value))
        case t.Array(element):
            assert isinstance(value, list)
            return tuple(from_json(item, element) for item in value)
        case t.Map(key, item_type):
            assert isinstance(value, list)
            return tuple((from_json(k, key), from_json(v, item_type)) for k, v in value)
        case t.Struct(fields):
            assert isinstance(value, list)
            return tuple(from_json(item, f) for item, (_, f) in zip(value, fields, strict=True))
    raise TextError(f"no literal of type {of}")


class _Reader:
    """A recursive-descent parser over tokens `(kind, text)`."""

    def __init__(self, text: str, schemas: Mapping[str, t.Schema]) -> None:
        self._schemas = schemas
        self._seen: dict[int, Node] = {}
        self._bound: dict[str, Parameter] = {}
        self._tokens: list[tuple[str, str]] = []
        self._at = 0
        position = 0
        end = len(text.rstrip())
        while position < end:
            found = _TOKEN.match(text, position)
            if not found:
                raise TextError(f"cannot read {text[position : position + 30]!r}")
            kind = found.lastgroup or ""
            self._tokens.append((kind, found.group(kind)))
            position = found.end()

    # -- tokens ------------------------------------------------------------------------------------------------------

    def _peek(self, offset: int = 0) -> tuple[str, str]:
        index = self._at + offset
        return self._tokens[index] if index < len(self._tokens) else ("end", "")

    def _next(self) -> tuple[str, str]:
        token = self._peek()
        self._at += 1
        return token

    def _accept(self, text: str) -> bool:
        kind, found = self._peek()
        if kind in ("mark", "name") and found == text:
            self._at += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise TextError(f"expected {text!r}, found {self._peek()[1]!r}")

    def end(self) -> None:
        if self._peek()[0] != "end":
            raise TextError(f"unexpected {self._peek()[1]!r}")

    def _name(self) -> str:
        kind, text = self._next()
        if kind == "quoted":
            return text[1:-1].replace("``", "`")
        if kind == "name":
            return text
        raise TextError(f"expected a name, found {text!r}")

    def _number(self) -> int:
        kind, text = self._next()
        if kind != "number":
            raise TextError(f"expected a number, found {text!r}")
        return int(text)

    def _list(self, item: Callable[[], object], until: str) -> list[object]:
        out: list[object] = []
        if self._accept(until):
            return out
        while True:
            out.append(item())
            if self._accept(until):
                return out
            self._expect(",")

    # -- nodes -------------------------------------------------------------------------------------------------------

    def tree(self) -> Node:
        """A node, with what it shares in front of it."""
        while self._peek() == ("name", "let") and self._peek(1)[0] == "number":
            self._next()
            number = self._number()
            self._expect(":=")
            self._seen[number] = self.node()
        return self.node()

    def node(self) -> Node:
        kind, word = self._peek()
        following = self._peek(1)[1]
        if kind == "name" and following in ("(", "["):
            return self._operator(word)
        version = Version.STORED
        if kind == "name" and word in ("delta", "new") and following != "as":
            self._next()
            version = Version(word)
        relation = self._name()
        self._expect("as")
        alias = self._name()
        grows = self._accept("grows")
        since = self._number() if self._accept("since") else 0
        if relation not in self._schemas:
            raise TextError(f"no schema for relation {relation!r}")
        return Scan(relation, alias, self._schemas[relation], version, since, grows)

    def _operator(self, word: str) -> Node:
        self._next()
        if word == "values":
            return self._values()
        if word == "see":
            self._expect("(")
            number = self._number()
            self._expect(")")
            if number not in self._seen:
                raise TextError(f"see({number}) comes before it is said what that is")
            return self._seen[number]
        # What stands in brackets names columns of the inputs, which come after it: skip, read them, come back.
        start = self._at
        if self._peek()[1] == "[":
            self._skip_brackets()
        self._expect("(")
        inputs = tuple(item for item in self._list(self.node, ")") if isinstance(item, Node))
        after, self._at = self._at, start
        columns = {f.name: f.type for node in inputs for f in node.schema}
        bracketed = self._accept("[")
        node = self._build(word, inputs, columns, bracketed)
        if bracketed:
            self._expect("]")
        self._at = after
        return node

    def _build(self, word: str, inputs: tuple[Node, ...], columns: Mapping[str, t.Type], bracketed: bool) -> Node:
        match word, inputs:
            case "filter", (only,):
                return Filter(only, self.scalar(columns))
            case "project", (only,):
                return Project(only, self._named(columns))
            case "join", (left, right):
                return Join(left, right, self.scalar(columns) if bracketed else TRUE)
            case (("full" | "left" | "right"), (left, right)):
                return Outer(left, right, self.scalar(columns), word != "right", word != "left")
            case "union", _:
                return Union(inputs)
            case "negate", (only,):
                return Negate(only)
            case "sum", (only,):
                keys = self._named(columns)
                self._expect(";")
                terms = self._named(columns)
                picks = self._picks(columns) if self._accept(";") else ()
                return Sum(only, keys, terms, picks, self.scalar(columns) if self._accept(";") else ONE)
            case "repeat", (only,):
                return Repeat(only, self._name())
            case "keep", (only,):
                return Keep(only)
            case "during", (only,):
                starts = self.scalar(columns)
                self._expect(";")
                return During(only, starts, self.scalar(columns))
            case "explode", (only,):
                outer, numbered = self._accept("outer"), self._accept("numbered")
                names = [self._name()]
                while self._accept(","):
                    names.append(self._name())
                self._expect(":=")
                return Explode(only, self.scalar(columns), tuple(names), outer, numbered)
            case "over", (only,):
                keys = self._named(columns)
                self._expect(";")
                calls = self._calls(columns)
                self._expect(";")
                known = {**columns, **{name: call.type for name, call in calls}}
                outputs = self._named(known)
                return Over(only, keys, calls, outputs, self.scalar(known) if self._accept(";") else TRUE)
            case "present", (only,):
                outputs = self._named(columns)
                return Present(only, outputs, self.scalar(columns) if self._accept(";") else TRUE)
        raise TextError(f"no node {word!r} with {len(inputs)} inputs")

    def _skip_brackets(self) -> None:
        depth = 0
        while True:
            kind, text = self._next()
            if kind == "end":
                raise TextError("'[' is never closed")
            if kind == "mark":
                depth += (text == "[") - (text == "]")
            if depth == 0:
                return

    def _named(self, columns: Mapping[str, t.Type]) -> tuple[Named, ...]:
        out: list[Named] = []
        while self._peek()[1] not in ("]", ";"):
            if out:
                self._expect(",")
            name = self._name()
            self._expect(":=")
            out.append((name, self.scalar(columns)))
        return tuple(out)

    def _picks(self, columns: Mapping[str, t.Type]) -> tuple[tuple[str, Pick], ...]:
        out: list[tuple[str, Pick]] = []
        while self._peek()[1] not in ("]", ";"):
            if out:
                self._expect(",")
            name = self._name()
            self._expect(":=")
            function = self._name()
            out.append((name, Pick(function, self._arguments(columns), self._order(columns))))
        return tuple(out)

    def _calls(self, columns: Mapping[str, t.Type]) -> tuple[tuple[str, WindowCall], ...]:
        out: list[tuple[str, WindowCall]] = []
        while self._peek()[1] not in ("]", ";"):
            if out:
                self._expect(",")
            name = self._name()
            self._expect(":=")
            function = self._name()
            args, order = self._arguments(columns), self._order(columns)
            out.append((name, WindowCall(function, args, order, self._frame())))
        return tuple(out)

    def _order(self, columns: Mapping[str, t.Type]) -> tuple[Sorting, ...]:
        if not self._accept("order"):
            return ()
        self._expect("(")
        return tuple(one for one in self._list(lambda: self._sorting(columns), ")") if isinstance(one, Sorting))

    def _arguments(self, columns: Mapping[str, t.Type]) -> tuple[Scalar, ...]:
        self._expect("(")
        args = self._list(lambda: self.scalar(columns), ")")
        return tuple(arg for arg in args if isinstance(arg, Scalar))

    def _sorting(self, columns: Mapping[str, t.Type]) -> Sorting:
        scalar = self.scalar(columns)
        descending = self._accept("desc")
        if not descending:
            self._expect("asc")
        nulls_first = self._accept("nulls_first")
        if not nulls_first:
            self._expect("nulls_last")
        return Sorting(scalar, descending, nulls_first)

    def _frame(self) -> Frame:
        unit = self._name()
        self._expect("(")
        low = self._end()
        self._expect(",")
        high = self._end()
        self._expect(")")
        return Frame(unit, low, high)

    def _end(self) -> int | None:
        if self._accept("unbounded"):
            return None
        return -self._number() if self._accept("-") else self._number()

    def _values(self) -> Node:
        self._expect("[")
        fields = [f for f in self._list(lambda: t.Field(self._name(), self.type()), "]") if isinstance(f, t.Field)]
        self._expect("(")
        rows: list[tuple[object, ...]] = []
        while not self._accept(")"):
            if rows:
                self._expect(",")
            self._expect("(")
            literals = self._list(lambda: self.scalar({}), ")")
            rows.append(tuple(item.value for item in literals if isinstance(item, Literal)))
        return Values(tuple(fields), tuple(rows))

    # -- types -------------------------------------------------------------------------------------------------------

    def type(self) -> t.Type:
        word = self._name().upper()
        simple: dict[str, t.Type] = {
            "VOID": t.NULL, "BOOLEAN": t.BOOLEAN, "TINYINT": t.TINYINT, "SMALLINT": t.SMALLINT, "INT": t.INT,
            "BIGINT": t.BIGINT, "FLOAT": t.FLOAT, "DOUBLE": t.DOUBLE, "STRING": t.STRING, "BINARY": t.BINARY,
            "DATE": t.DATE, "TIMESTAMP": t.TIMESTAMP,
        }  # fmt: skip
        if word in simple:
            return simple[word]
        if word == "DECIMAL":
            self._expect("(")
            precision = self._number()
            self._expect(",")
            scale = self._number()
            self._expect(")")
            return t.Decimal(precision, scale)
        if word == "INTERVAL":
            first = self._name()
            self._name()
            self._name()
            return t.DAY_TIME_INTERVAL if first == "DAY" else t.YEAR_MONTH_INTERVAL
        self._expect("<")
        if word == "ARRAY":
            element = self.type()
            self._expect(">")
            return t.Array(element)
        if word == "MAP":
            key = self.type()
            self._expect(",")
            value = self.type()
            self._expect(">")
            return t.Map(key, value)
        fields: list[tuple[str, t.Type]] = []
        while not self._accept(">"):
            if fields:
                self._expect(",")
            name = self._name()
            self._expect(":")
            fields.append((name, self.type()))
        return t.Struct(tuple(fields))

    # -- scalars -----------------------------------------------------------------------------------------------------

    def scalar(self, columns: Mapping[str, t.Type], power: int = 0) -> Scalar:
        left = self._prefix(columns)
        while True:
            kind, word = self._peek()
            if kind not in ("name", "mark"):
                return left
            if word == "is":
                if POSTFIX["is null"] < power:
                    return left
                self._next()
                negated = self._accept("not")
                self._expect("null")
                left = Call("is not null" if negated else "is null", (left,))
                continue
            mine = INFIX.get(word)
            if mine is None or mine < power:
                return left
            self._next()
            left = Call(word, (left, self.scalar(columns, mine + 1)))

    def _prefix(self, columns: Mapping[str, t.Type]) -> Scalar:
        kind, word = self._peek()
        if kind == "mark":
            self._next()
            if word == "(":
                inner = self.scalar(columns)
                self._expect(")")
                return inner
            if word == "{":
                return self._typed_literal()
            raise TextError(f"unexpected {word!r}")
        if kind == "number":
            self._next()
            return Literal(int(word[:-1]), t.BIGINT) if word.endswith("L") else Literal(int(word), t.INT)
        if kind == "string":
            self._next()
            return Literal(_unquote(word), t.STRING)
        if kind == "name" and word in ("true", "false"):
            self._next()
            return Literal(word == "true", t.BOOLEAN)
        if kind == "name" and word == "not":
            self._next()
            return Call("not", (self.scalar(columns, NOT_POWER),))
        if kind == "parameter":
            self._next()
            if word not in self._bound:
                raise TextError(f"no lambda around has the parameter {word}")
            return self._bound[word]
        name = self._name()
        if kind == "name" and name == "lambda" and self._accept("["):
            return self._lambda(columns)
        if not self._accept("("):
            if name not in columns:
                raise TextError(f"no column {name!r}")
            return Column(name, columns[name])
        if kind == "name" and name in ("cast", "try_cast"):
            arg = self.scalar(columns)
            self._expect("as")
            to = self.type()
            self._expect(")")
            return Cast(arg, to, name == "try_cast")
        args = self._list(lambda: self.scalar(columns), ")")
        return Call(name, tuple(arg for arg in args if isinstance(arg, Scalar)))

    def _lambda(self, columns: Mapping[str, t.Type]) -> Lambda:
        around = self._bound
        own = tuple(one for one in self._list(self._declared, "]") if isinstance(one, Parameter))
        self._bound = {**around, **{f"${one.number}": one for one in own}}
        [body] = self._arguments(columns)
        self._bound = around
        return Lambda(own, body)

    def _declared(self) -> Parameter:
        return Parameter(int(self._next()[1].removeprefix("$")), self.type())

    def _typed_literal(self) -> Literal:
        of = self.type()
        if self._accept("null"):
            value: object = None
        else:
            kind, text = self._next()
            if kind != "string":
                raise TextError(f"expected a quoted literal, found {text!r}")
            plain = _unquote(text)
            value = from_json(json.loads(plain) if t.is_nested(of) else plain, of)
        self._expect("}")
        return Literal(value, of)


def _unquote(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), text[1:-1], flags=re.DOTALL)
