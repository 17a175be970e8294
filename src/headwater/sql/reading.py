"""From text to the tokens of its statements, and from whatever goes wrong on the way to an error with a place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from headwater.errors import HeadwaterError, InternalError, Source, Span, UserError
from headwater.sql.dialect import Headwater
from headwater.sql.strict import ReadError

_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}


def split_statements(source: Source) -> list[list[Token]]:
    """The tokens of each statement; statements end at semicolons, and empty ones are left out."""
    text = source.text
    if text.startswith("\ufeff"):  # the mark some editors put first; a space keeps all offsets
        text = " " + text[1:]
    _check_unicode(source)
    with guard(source, Span(0, len(text))):
        tokens = Headwater().tokenize(text)
    statements: list[list[Token]] = [[]]
    for number, token in enumerate(tokens):
        if token.token_type == TokenType.SEMICOLON:
            statements.append([])
        else:
            _check(token, source)
            _check_number(tokens[max(0, number - 2) : number + 1], source)
            statements[-1].append(token)
    return [statement for statement in statements if statement]


def _check_unicode(source: Source) -> None:
    """Refuse half characters, as bytes that are no UTF-8 become on a command line."""
    try:
        source.text.encode()
    except UnicodeEncodeError as error:
        shown = source.text[: error.start] + "\ufffd" + source.text[error.start + 1 :].encode(errors="replace").decode()
        raise UserError(
            "HW001",
            "the text is not valid Unicode",
            span=Span(error.start, error.start + 1),
            source=Source(shown, source.name),
            hint="give it in UTF-8",
        ) from None


def _check_number(tokens: list[Token], source: Source) -> None:
    """Refuse `1.5.5` and `a.5`: after a point that belongs to something, or before another one, is no number."""
    *before, token = tokens
    if token.token_type != TokenType.NUMBER or not before or before[-1].token_type != TokenType.DOT:
        return
    point = before[-1]
    if point.end + 1 != token.start:
        return
    owned = len(before) > 1 and before[0].end + 1 == point.start
    if "." in token.text or (owned and before[0].token_type != TokenType.L_PAREN and not _is_mark(before[0], source)):
        raise UserError(
            "HW001",
            f"unexpected {source.text[point.start : token.end + 1][:40]!r}",
            span=Span(point.start, token.end + 1),
            source=source,
            hint="a name that begins with a digit is written in backticks",
        )


def _is_mark(token: Token, source: Source) -> bool:
    """Whether a token is an operator or a comma, behind which a number may begin with its point."""
    return not re.match(r"[\w`'\")\]]", source.text[token.end])


def _check(token: Token, source: Source) -> None:
    """Refuse what the tokenizer lets pass: signs that no SQL has become part of words there."""
    if token.token_type == TokenType.VAR:
        for offset in range(token.start, token.end + 1):
            if not re.match(r"\w", source.text[offset]):
                raise UserError(
                    "HW001",
                    f"unexpected character {_printable(source.text[offset])}",
                    span=Span(offset, offset + 1),
                    source=source,
                    hint="a name with other characters than letters, digits and _ is written in backticks",
                )
    elif token.token_type == TokenType.IDENTIFIER and not token.text:
        span = Span(token.start, token.end + 1)
        raise UserError("HW001", "a name cannot be empty", span=span, source=source, hint="write one in the backticks")
    elif token.token_type == TokenType.HEX_STRING and source.text[token.start] == "0":
        raise UserError(
            "HW001",
            f"unexpected {source.text[token.start : token.end + 1][:40]!r}",
            span=Span(token.start, token.end + 1),
            source=source,
            hint="numbers are written in decimal, bytes as X'1F'",
        )


def _printable(char: str) -> str:
    code = f"U+{ord(char):04X}"
    return f"'{char}' ({code})" if char.isprintable() else code


@contextmanager
def guard(source: Source, span: Span, tokens: list[Token] | None = None) -> Iterator[None]:
    """Let nothing but a `HeadwaterError` with a place out.

    Args:
        source: the text that is read.
        span: the part of it to point at if nothing better is known.
        tokens: the statement's tokens, to find where it is deepest.
    """
    try:
        yield
    except HeadwaterError as error:
        error.at(span, source)
        raise
    except ReadError as problem:
        raise UserError("HW001", problem.reason, span=problem.span, source=source, hint=problem.hint) from None
    except TokenError as error:
        raise _unreadable(error, source, span) from None
    except ParseError as error:
        reason = str(error).split("\n")[0][:200]
        raise UserError("HW001", reason, span=span, source=source) from None
    except RecursionError:
        raise UserError(
            "HW002",
            "the statement is nested too deeply",
            span=_deepest(tokens) if tokens else span,
            source=source,
            hint="name inner queries with WITH, or make inner queries views of their own",
        ) from None
    except Exception as error:
        raise InternalError(
            "HW901",
            f"reading this statement failed: {type(error).__name__}: {str(error)[:200]}",
            span=span,
            source=source,
            hint="please report it with the statement",
        ) from error


def _unreadable(error: TokenError, source: Source, span: Span) -> UserError:
    start = span.start if error.start is None else error.start
    opening = source.text[start : start + 2]
    quoted = re.match(r"[xXrR]?['\"]|`", opening)
    if opening == "/*":
        reason, width = "this comment is never closed", 2
    elif quoted and "Missing" in str(error.__cause__):
        reason = "this quoted name is never closed" if quoted[0] == "`" else "this string is never closed"
        width = len(quoted[0])
    elif quoted:
        reason, width = "X'...' holds pairs of hexadecimal digits", len(quoted[0])
    else:
        reason, width = "this cannot be read", 1
    return UserError("HW001", reason, span=Span(start, min(start + width, len(source.text))), source=source)


def _deepest(tokens: list[Token]) -> Span:
    """The opening sign inside most others."""
    depth = most = 0
    place = tokens[0]
    for token in tokens:
        if token.token_type in _OPENING:
            depth += 1
            if depth > most:
                most, place = depth, token
        elif token.token_type in _CLOSING:
            depth -= 1
    return Span(place.start, place.end + 1)
