"""What ViewDF writes behind a relation in FROM: `M[j]`, `M[a .. b]`, `S [WINDOW 10 MINUTES]`, `M PATTERN [a, b+]`.

(Yang, Golab and Ozsu, "ViewDF: Declarative Incremental View Maintenance for Streaming Data", sections 2 and 5.)

They become arguments of sqlglot's `Table`: `part` is a tuple of one subscript or two, `window` an interval, whose unit
may be PARTS, and `pattern` a tuple of identifiers, of which those with a plus have the argument `plus`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

if TYPE_CHECKING:
    from headwater.sql.strict import StrictParser

#: How two dots between subscripts are read: as what separates two expressions.
_DOTS = ".."


def with_ranges(tokens: list[Token]) -> list[Token]:
    """The tokens with the `..` of `M[a .. b]` as one, which ends the expression before it."""
    if not any(token.token_type == TokenType.L_BRACKET for token in tokens):
        return tokens
    out: list[Token] = []
    depth = 0
    for token in tokens:
        depth += {TokenType.L_BRACKET: 1, TokenType.R_BRACKET: -1}.get(token.token_type, 0)
        before = out[-1] if out else None
        if depth > 0 and before is not None and token.token_type == TokenType.DOT and token.start == before.end + 1:
            if before.token_type == TokenType.DOT:
                out[-1] = Token(TokenType.COMMA, _DOTS, before.line, before.col, before.start, token.end)
                continue
            if before.token_type == TokenType.NUMBER and before.text.endswith("."):  # 1..i
                number = before.text.removesuffix(".")
                out[-1] = Token(TokenType.NUMBER, number, before.line, before.col, before.start, before.end - 1)
                out.append(Token(TokenType.COMMA, _DOTS, before.line, before.col, before.end, token.end))
                continue
        out.append(token)
    return out


def begins_here(parser: StrictParser) -> bool:
    """Whether a relation's name comes next, and behind it something that only ViewDF writes."""
    if not parser.next_is_name():
        return False
    following = parser._next
    if following.token_type == TokenType.L_BRACKET:
        return True
    after = parser._index + 2
    bracket = after < parser._tokens_size and parser._tokens[after].token_type == TokenType.L_BRACKET
    return following.token_type == TokenType.VAR and following.text.upper() == "PATTERN" and bracket


def read_table(parser: StrictParser) -> exp.Table:
    """Read a relation with a part, a window or a pattern, up to its alias."""
    name = parser._parse_id_var()
    table = exp.Table(this=name)
    if parser._match_text_seq("PATTERN"):
        table.set("pattern", _read_pattern(parser))
        return table
    parser._advance()  # the bracket
    if parser._curr.token_type == TokenType.WINDOW:
        table.set("window", _read_window(parser))
    else:
        table.set("part", _read_subscripts(parser))
    return table


def _read_subscripts(parser: StrictParser) -> exp.Tuple:
    subscripts = [_read_subscript(parser)]
    if parser._curr.token_type == TokenType.COMMA and parser._curr.text == _DOTS:
        parser._advance()
        subscripts.append(_read_subscript(parser))
    _close(parser, "'..' or ']'")
    return exp.Tuple(expressions=subscripts)


def _read_subscript(parser: StrictParser) -> exp.Expr:
    found = parser._parse_bitwise()
    if found is None:
        raise parser.expected("a subscript, such as j - 1")
    return found


def _read_window(parser: StrictParser) -> exp.Interval:
    parser._advance()  # WINDOW
    if parser._curr.token_type != TokenType.NUMBER:
        raise parser.expected("how long the window is, such as 10 MINUTES")
    count = parser._parse_primary()
    following: Token = parser._curr  # it is another one by now
    unit = following.text.upper()
    if not unit.isalpha():
        raise parser.expected("a unit of time, such as MINUTES, or PARTS")
    parser._advance()
    _close(parser, "']'")
    return exp.Interval(this=count, unit=exp.Var(this=unit))


def _read_pattern(parser: StrictParser) -> exp.Tuple:
    parser._advance()  # the bracket
    variables = [_read_variable(parser)]
    while parser._match(TokenType.COMMA):
        variables.append(_read_variable(parser))
    _close(parser, "',' or ']'")
    return exp.Tuple(expressions=variables)


def _read_variable(parser: StrictParser) -> exp.Expr:
    variable = parser._parse_id_var(any_token=False)
    if variable is None:
        raise parser.expected("a variable, such as a or b+")
    if parser._match(TokenType.PLUS):
        variable.set("plus", True)
    return variable


def _close(parser: StrictParser, wanted: str) -> None:
    if not parser._match(TokenType.R_BRACKET):
        raise parser.expected(wanted)


_COMPARISONS = exp.EQ | exp.NEQ | exp.NullSafeEQ | exp.GT | exp.GTE | exp.LT | exp.LTE | exp.Between | exp.In


def compared_texts(column: exp.Column) -> Iterator[exp.Literal]:
    """The texts that a column is compared with, and nothing else is done to it."""
    if isinstance(column.parent, _COMPARISONS):
        for one in column.parent.iter_expressions():
            if isinstance(one, exp.Literal) and one.is_string:
                yield one


def with_slashes(query: exp.Expression) -> None:
    """Let dates that are compared with PART_TIMESTAMP have slashes, as the paper writes them: "2015/01/01 0:00"."""
    for column in query.find_all(exp.Column):
        if column.name.upper() == "PART_TIMESTAMP":
            for text in compared_texts(column):
                text.set("this", _with_dashes(text.name))


def _with_dashes(text: str) -> str:
    date, _, time = text.strip().partition(" ")
    if date.count("/") != 2:
        return text
    hours = [one.zfill(2) for one in time.split(":")] if time else ["00"]
    clock = ":".join([*hours, "00", "00"][: max(3, len(hours))])
    return f"{'-'.join(one.zfill(2) for one in date.split('/'))} {clock}"
