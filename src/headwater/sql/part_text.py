"""Views of parts as text, laid out for people: what a translation writes, EXPLAIN prints and the engine reads back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from sqlglot import exp
from sqlglot.generators.spark import SparkGenerator
from sqlglot.tokenizer_core import TokenType

from headwater.sql.dialect import Headwater

Lines = list[str]

#: Where a list is broken over several lines.
_WIDTH = 100


class _Generator(SparkGenerator):
    """Spark SQL with part references."""

    def table_parts(self, expression: exp.Table) -> str:
        part = expression.args.get("part")
        subscripts = f"[{' .. '.join(self.sql(one) for one in part.expressions)}]" if part else ""
        return f"{super().table_parts(expression)}{subscripts}"


def shown(node: exp.Expr, pretty: bool = False) -> str:
    """A tree as text that reads back as the same tree."""

    def one(part: exp.Expr) -> exp.Expr:
        match part:
            case exp.Identifier(this=str(name)):
                part.set("quoted", _is_special(name))
            case exp.Anonymous(this="extract", expressions=[exp.Literal() as unit, of]):
                return exp.Extract(this=exp.Var(this=unit.name), expression=of)
        return part

    tree = node.copy().transform(one, copy=False)
    writer = _Generator(dialect=Headwater(), pretty=pretty, normalize_functions=False, comments=False)
    return writer.generate(tree, copy=False)


def quoted(name: str) -> str:
    """A name, in backticks unless it is a plain word that means nothing else."""
    return f"`{name.replace('`', '``')}`" if _is_special(name) else name


@cache
def _is_special(name: str) -> bool:
    if not (name.isascii() and name.isidentifier()):
        return True
    tokens = Headwater().tokenize(name)
    return len(tokens) != 1 or tokens[0].token_type != TokenType.VAR


def text(value: str) -> str:
    """A string literal."""
    return shown(exp.Literal.string(value))


def named(expression: str, name: str) -> str:
    """A select item."""
    return expression if expression == quoted(name) else f"{expression} AS {quoted(name)}"


def indented(lines: Iterable[str]) -> Lines:
    return [f"  {line}" for line in lines]


def listed(word: str, items: Sequence[str]) -> Lines:
    """A clause that is a list: on one line if it is short."""
    whole = f"{word} {', '.join(items)}"
    if len(whole) <= _WIDTH and not any("\n" in item for item in items):
        return [whole]
    last = len(items) - 1
    pieces = [item + ("" if place == last else ",") for place, item in enumerate(items)]
    return [word, *indented(line for piece in pieces for line in piece.split("\n"))]


def select(
    items: Sequence[str],
    source: Lines,
    where: Sequence[str] = (),
    group: Sequence[str] = (),
    having: Sequence[str] = (),
) -> Lines:
    """A SELECT; `source` is what stands behind FROM, and conditions are connected by AND."""
    lines = [*listed("SELECT", items), f"FROM {source[0]}", *source[1:]]
    if where:
        lines.append(f"WHERE {' AND '.join(where)}")
    if group:
        lines += listed("GROUP BY", group)
    if having:
        lines.append(f"HAVING {' AND '.join(having)}")
    return lines


def derived(query: Lines, alias: str) -> Lines:
    """A query in FROM."""
    return ["(", *indented(query), f") AS {alias}"]


def case(branches: Sequence[tuple[str, str]], otherwise: str | None) -> str:
    """CASE, a line for each branch where it is long."""
    parts = [f"WHEN {condition} THEN {value}" for condition, value in branches]
    if otherwise is not None:
        parts.append(f"ELSE {otherwise}")
    whole = f"CASE {' '.join(parts)} END"
    return whole if len(whole) <= _WIDTH - 20 else "\n".join(["CASE", *indented(parts), "END"])


def reference(name: str, subscript: str, back: int = 0, until: int | None = None) -> str:
    """`name[j - back]`, or `name[j - back .. j - until]`."""
    bounds = (back,) if until is None or until == back else (back, until)
    return f"{quoted(name)}[{' .. '.join(subscript if not one else f'{subscript} - {one}' for one in bounds)}]"


def part_view(name: str, initialize: Lines, update: Lines, length: int, kind: str = "VIEW", options: str = "") -> str:
    """CREATE VIEW of parts; subscripts are i in the one query and j in the other."""
    shown_name = quoted(name)
    head = f"CREATE {kind} {shown_name}{' ' if options else ''}{options} AS"
    lines = [
        head,
        f"INITIALIZE {shown_name}[i] AS",
        *indented(initialize),
        f"UPDATE {shown_name}[j] AS",
        *indented(update),
        f"PARTITION LENGTH {length} BACKFILL",
    ]
    return "\n".join(lines)
