"""Nodes and scalars as text: the language of fixtures, logs, EXPLAIN and the catalogue.

`headwater.algebra.read` parses it back. A tree prints like this:

    present[o.custkey := g1, revenue := total](
      sum[g1 := o.custkey; total := l.price](
        join[l.orderkey = o.orderkey](
          delta orders as o,
          lineitem as l)))
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
import re
from collections.abc import Mapping

from headwater import types as t
from headwater.algebra.folds import Pick, WindowCall
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
from headwater.algebra.scalars import TRUE, Call, Cast, Column, Given, Lambda, Literal, Parameter, Scalar

#: Binding power of what is written between its operands; higher binds tighter.
INFIX = {"or": 1, "and": 2}
INFIX |= dict.fromkeys(("=", "<>", "<", "<=", ">", ">=", "<=>"), 4)
INFIX |= {"+": 5, "-": 5, "*": 6, "/": 6, "%": 6}
NOT_POWER = 3
POSTFIX = {"is null": 4, "is not null": 4}

#: Words that cannot be a bare name.
WORDS = frozenset(
    {"and", "or", "not", "is", "null", "true", "false", "as", "cast", "try_cast", "since", "delta", "new", "grows"}
)
_NAME = re.compile(r"[A-Za-z_#][A-Za-z0-9_#$]*(\.[A-Za-z_#][A-Za-z0-9_#$]*)*")


def name_text(name: str) -> str:
    """A name, in backticks unless it is plain."""
    if _NAME.fullmatch(name) and not WORDS & set(name.lower().split(".")):
        return name
    return "`" + name.replace("`", "``") + "`"


def literal_text(value: object, of: t.Type) -> str:
    """A constant: bare where the bare form has this type, else `{TYPE 'text'}`."""
    if value is None:
        return f"{{{of} null}}"
    match of:
        case t.Boolean():
            return "true" if value else "false"
        case t.Integer(32) if isinstance(value, int) and value >= 0:
            return str(value)
        case t.Integer(64) if isinstance(value, int) and value >= 0:
            return f"{value}L"
        case t.String() if isinstance(value, str):
            return quote(value)
    plain = to_json(value)
    return f"{{{of} {quote(json.dumps(plain, ensure_ascii=False) if t.is_nested(of) else str(plain))}}}"


def quote(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"


def to_json(value: object) -> object:
    """A value as JSON that `read.from_json` turns back, given its type."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return repr(value)
        case decimal.Decimal():
            return str(value)
        case bytes():
            return value.hex()
        case dt.datetime() | dt.date():
            return value.isoformat()
        case tuple() | list():
            return [to_json(item) for item in value]
    raise TypeError(f"no literal for {type(value).__name__}")


def scalar_text(scalar: Scalar, power: int = 0) -> str:
    """A scalar; in parentheses when the surroundings bind tighter than it does."""
    match scalar:
        case Column(name=name):
            return name_text(name)
        case Literal(value=value, type=of):
            return literal_text(value, of)
        case Cast(arg=arg, type=to, safe=safe):
            return f"{'try_cast' if safe else 'cast'}({scalar_text(arg)} as {to})"
        case Parameter(number=number):
            return f"${number}"
        case Given(number=number, type=of):
            return f"given[{number} {of}]"
        case Lambda(parameters=parameters, body=body):
            return f"lambda[{', '.join(f'${one.number} {one.type}' for one in parameters)}]({scalar_text(body)})"
        case Call(function=function, args=(left, right)) if function in INFIX:
            mine = INFIX[function]
            # Comparisons do not chain, so both their sides are parenthesised when they are comparisons themselves.
            left_power = mine + 1 if mine == INFIX["="] else mine
            text = f"{scalar_text(left, left_power)} {function} {scalar_text(right, mine + 1)}"
            return f"({text})" if mine < power else text
        case Call(function=function, args=(arg,)) if function in POSTFIX:
            text = f"{scalar_text(arg, POSTFIX[function] + 1)} {function}"
            return f"({text})" if POSTFIX[function] < power else text
        case Call(function="not", args=(arg,)):
            text = f"not {scalar_text(arg, NOT_POWER)}"
            return f"({text})" if power > NOT_POWER else text
        case Call(function=function, args=args):
            return f"{name_text(function)}({', '.join(scalar_text(arg) for arg in args)})"
    raise TypeError(f"no text for {type(scalar).__name__}")


_WIDTH = 110


def _named(items: tuple[Named, ...]) -> list[str]:
    return [f"{name_text(name)} := {scalar_text(scalar)}" for name, scalar in items]


def _called(items: tuple[tuple[str, Pick], ...] | tuple[tuple[str, WindowCall], ...]) -> list[str]:
    return [f"{name_text(name)} := {call}" for name, call in items]


def _brackets(parts: list[list[str]], lead: str) -> str:
    """Items in brackets, parts set apart by `;`; one item a line where they do not fit on one."""
    flat = "; ".join(", ".join(items) for items in parts)
    if len(lead) + len(flat) <= _WIDTH:
        return f"[{flat}]"
    inner = lead + "    "
    return "[\n" + f";\n{inner}".join(f",\n{inner}".join(items) for items in parts).join((inner, "]"))


def _head(node: Node, lead: str) -> str:
    match node:
        case Filter(predicate=predicate):
            return f"filter[{predicate}]"
        case Project(columns=columns):
            return "project" + _brackets([_named(columns)], lead)
        case Join(condition=condition):
            return "join" if condition == TRUE else f"join[{condition}]"
        case Outer(condition=condition, keeps_left=left, keeps_right=right):
            word = "full" if left and right else "left" if left else "right"
            return f"{word}[{condition}]"
        case Union():
            return "union"
        case Negate():
            return "negate"
        case Repeat(times=times):
            return f"repeat[{name_text(times)}]"
        case Keep():
            return "keep"
        case During(starts=starts, ends=ends):
            return "during" + _brackets([[scalar_text(starts)], [scalar_text(ends)]], lead)
        case Explode(source=source, names=names, outer=outer, numbered=numbered):
            words = "".join(word for word, there in (("outer ", outer), ("numbered ", numbered)) if there)
            return f"explode[{words}{', '.join(map(name_text, names))} := {scalar_text(source)}]"
        case Sum(keys=keys, terms=terms, picks=picks, count=count):
            counted = [] if count == ONE else [[scalar_text(count)]]
            picked = [_called(picks)] if picks or counted else []
            return "sum" + _brackets([_named(keys), _named(terms), *picked, *counted], lead)
        case Over(keys=keys, calls=calls, outputs=outputs, having=having):
            kept = [] if having == TRUE else [[scalar_text(having)]]
            return "over" + _brackets([_named(keys), _called(calls), _named(outputs), *kept], lead)
        case Present(outputs=outputs, having=having):
            shown = [] if having == TRUE else [[scalar_text(having)]]
            return "present" + _brackets([_named(outputs), *shown], lead)
    raise TypeError(f"no text for {type(node).__name__}")


def node_text(node: Node) -> str:
    """A tree, one node a line; what stands in several places is written once, in front: `let 1 := ...`, `see(1)`."""
    shared = _shared(node)
    numbers: dict[Node, int] = {}
    lines: list[str] = []
    for one in shared:
        lines.append(f"let {len(numbers) + 1} :=\n{_node_lines(one, numbers, 1)}")
        numbers[one] = len(numbers) + 1
    return "\n".join([*lines, _node_lines(node, numbers, 0)])


def _shared(node: Node) -> list[Node]:
    """Nodes with inputs of their own that stand in several places, those below others first."""
    places: dict[Node, int] = {}
    order: list[Node] = []

    def visit(one: Node) -> None:
        places[one] = places.get(one, 0) + 1
        if places[one] == 1:
            for child in one.children:
                visit(child)
            order.append(one)

    visit(node)
    return [one for one in order if places[one] > 1 and one.children]


def _node_lines(node: Node, numbers: Mapping[Node, int], indent: int) -> str:
    lead = "  " * indent
    if node in numbers:
        return f"{lead}see({numbers[node]})"
    match node:
        case Scan(relation=relation, alias=alias, version=version, since=since):
            which = "" if version is Version.STORED else f"{version.value} "
            after = f" since {since}" if since else ""
            way = " grows" if node.grows else ""
            return f"{lead}{which}{name_text(relation)} as {name_text(alias)}{way}{after}"
        case Values(fields=fields, rows=rows):
            columns = ", ".join(f"{name_text(f.name)} {f.type}" for f in fields)
            body = ", ".join(
                "(" + ", ".join(literal_text(v, f.type) for v, f in zip(row, fields, strict=True)) + ")" for row in rows
            )
            return f"{lead}values[{columns}]({body})"
    inner = ",\n".join(_node_lines(child, numbers, indent + 1) for child in node.children)
    return f"{lead}{_head(node, lead)}(\n{inner})"
