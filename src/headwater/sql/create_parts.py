"""The body of a view of parts: INITIALIZE v[i] AS query UPDATE v[j] AS query PARTITION LENGTH n.

(Yang, Golab and Ozsu, "ViewDF: Declarative Incremental View Maintenance for Streaming Data", sections 2 and 4.1.)

A query may end with a relation, and what follows it could be its alias: so the words that divide the body are looked
for first, outside of parentheses, and each query is read as far as the next of them.
"""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

from headwater.errors import UserError
from headwater.sql.dialect import Headwater
from headwater.sql.names import fold
from headwater.sql.options import read_part_options
from headwater.sql.statements import Name, Option, PartQuery

_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET)


def read_part_queries(parser: Headwater.Parser, name: Name) -> tuple[PartQuery, PartQuery, tuple[Option, ...]]:
    """Read the body of a view of parts, from INITIALIZE to the end of the statement."""
    update = _find(parser, "UPDATE", parser._index)
    if update is None:
        raise UserError(
            "HW001",
            "INITIALIZE has no UPDATE: it says what every part after the first one holds",
            span=parser.here,
            hint=f"add UPDATE {name.text}[j] AS query; it may be the same query",
        )
    length = _find(parser, "PARTITION", update)
    if length is None:
        raise UserError(
            "HW001",
            f"PARTITION LENGTH is missing: how many seconds a part of {name.text} spans",
            span=parser.here,
            hint="add PARTITION LENGTH 60 at the end, say",
        )
    whole = parser.span
    tokens = list(parser._tokens)
    begin = parser._index
    first = _read_query(parser, tokens[begin:update], "INITIALIZE", name)
    then = _read_query(parser, tokens[update:length], "UPDATE", name)
    parser.begin(parser.source, tokens[length:])
    options = read_part_options(parser)
    if not parser.done:
        raise parser.expected("BACKFILL, RETAIN, ROLL UP or the end")
    parser.span = whole
    return first, then, options


def _read_query(parser: Headwater.Parser, tokens: list[Token], word: str, view: Name) -> PartQuery:
    """Read `INITIALIZE v[i] AS query`, which is all of some tokens."""
    parser.begin(parser.source, tokens)
    parser.expect(word)
    if parser.at("VIEW") and parser.next_is_name(ahead=1):  # the paper writes UPDATE VIEW once
        parser.take("VIEW")
    named = parser.name("the view's name")
    if fold(named.text) != fold(view.text):
        raise UserError(
            "HW001", f"{word} is about {named.text}, and the view is {view.text}", span=named.span, hint="name the view"
        )
    parser.expect("[")
    variable = parser.name("the name of the subscript, such as j")
    parser.expect("]")
    parser.expect("AS")
    start = parser.here
    query = parser.query()
    parser.end()
    return PartQuery(variable.text, query, parser.since(start))


def _find(parser: Headwater.Parser, word: str, begin: int) -> int | None:
    """Where a word stands outside of parentheses, and not as the name of a column."""
    depth = 0
    tokens = parser._tokens
    for place in range(begin, len(tokens) - 1):
        token, following = tokens[place], tokens[place + 1]
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if depth or place == begin or token.text.upper() != word or token.token_type == TokenType.IDENTIFIER:
            continue
        if word == "PARTITION" and following.text.upper() != "LENGTH":
            continue
        if word == "UPDATE" and following.token_type in (TokenType.COMMA, TokenType.DOT, *_CLOSING):
            continue
        return place
    return None
