"""Headwater's dialect of Spark SQL, for sqlglot.

Queries and expressions are read by sqlglot's Spark parser, made strict (`headwater.sql.strict`). Statements are
Headwater's own and are read by `headwater.sql.parse` through the cursor that `Parser` offers: words, names, values, and
the query or expression that starts here, each with its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ClassVar, TypeVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from headwater.errors import NotSupported, Source, Span
from headwater.sql.parts_parser import with_ranges, with_slashes
from headwater.sql.statements import Name
from headwater.sql.strict import ReadError, StrictParser

T = TypeVar("T")

# sqlglot's tokenizer knows the type names of all systems. INT8 would be TINYINT and TIME '10:00' a timestamp: here they
# are plain words, as for Spark. NULL, RANGE, UNION and UNKNOWN count as types there, but are keywords of queries.
_SPARK_TYPES = re.compile(
    r"ARRAY|BINARY|BOOLEAN|BYTE|CHAR|CHARACTER|DATE|DEC|DECIMAL|DOUBLE|FLOAT|(TINY|SMALL|BIG)?INT|INTEGER|INTERVAL|LONG"
    r"|MAP|NULL|NUMERIC|RANGE|REAL|SHORT|STRING|STRUCT|TIMESTAMP|TIMESTAMP_LTZ|TIMESTAMP_NTZ|UNION|UNKNOWN|VARCHAR|VARIANT"
)

# One token of two words would have to be matched as such, and breaks when a comment stands between the two.
_NOT_ONE_WORD = re.compile(r"(ADD|MSCK) .*|(PRIMARY|FOREIGN) KEY|SQL SECURITY")


# What may begin the list of a SELECT, besides * and keywords.
_STARTING = {
    TokenType.VAR,
    TokenType.IDENTIFIER,
    TokenType.NUMBER,
    TokenType.STRING,
    TokenType.L_PAREN,
    TokenType.DISTINCT,
}

# What an expression or a relation may end with, besides a name.
_ENDING = {
    TokenType.R_PAREN,
    TokenType.R_BRACKET,
    TokenType.NUMBER,
    TokenType.STRING,
    TokenType.IDENTIFIER,
    TokenType.NULL,
    TokenType.TRUE,
    TokenType.FALSE,
    TokenType.END,
}


class Headwater(Spark):
    """Spark SQL as Headwater reads it."""

    SUPPORTS_VALUES_DEFAULT = False  # DEFAULT is then a name, which nothing has, and not a value to be guessed
    STRICT_JSON_PATH_SYNTAX = False  # strict would log a warning; the binder decides about functions

    class Tokenizer(Spark.Tokenizer):
        """Spark's tokens; no statement is swallowed as one opaque string."""

        COMMANDS: ClassVar[set[TokenType]] = set()
        STRING_ESCAPES = ["\\", "'", '"']  # noqa: RUF012 - sqlglot's form. 'it''s' is it's, as in Spark 4
        KEYWORDS = {  # noqa: RUF012
            word: kind
            for word, kind in Spark.Tokenizer.KEYWORDS.items()
            if (kind not in StrictParser.TYPE_TOKENS or _SPARK_TYPES.fullmatch(word))
            and not _NOT_ONE_WORD.fullmatch(word)
        }

        def tokenize(self, sql: str) -> list[Token]:
            """The tokens; a `TokenError` carries the offset where the bad token starts."""
            try:
                return super().tokenize(sql)
            except TokenError as error:
                error.start, error.end = self._core._start, self._core.size
                raise

    class Parser(StrictParser):
        """The strict parser with a cursor for the statements of Headwater.

        Attributes:
            source: the text that is read.
            span: the statement's part of it.
        """

        source: Source
        span: Span

        # -- cursor --------------------------------------------------------------------------------------------------

        def begin(self, source: Source, tokens: list[Token]) -> None:
            """Stand before the first token of a statement."""
            self.reset()
            self.source = source
            self.sql = source.text
            self.span = Span(tokens[0].start, tokens[-1].end + 1)
            self.engine, self.hinted = None, None
            self._chunks = [_with_as_of(_with_window(with_ranges(_with_mod(tokens))))]
            self._advance_chunk()

        @property
        def done(self) -> bool:
            """Whether the statement is read to its end."""
            return not self._curr

        def at(self, words: str) -> bool:
            """Whether these words or signs come next; quoted identifiers and strings are never words."""
            return self._count(words) > 0

        def take(self, words: str) -> bool:
            """Read these words if they come next."""
            count = self._count(words)
            if count:
                self._advance(count)
            return count > 0

        def _count(self, words: str) -> int:
            """How many tokens spell these words, 0 if the next ones do not; ORDER BY is one token."""
            left = words.split()
            index = self._index
            while left:
                token = self._tokens[index] if index < self._tokens_size else None
                if token is None or token.token_type in self.TEXT_MATCH_EXCLUDED_TOKENS:
                    return 0
                spelt = token.text.upper().split()
                if not spelt or left[: len(spelt)] != spelt:
                    return 0
                left = left[len(spelt) :]
                index += 1
            return index - self._index

        def take_last(self, word: str) -> tuple[str, Span] | None:
            """Take a word and the word or string behind it off the end of a statement that nothing was read of yet.

            They are there only if something complete stands before them: `FROM t FORMAT x` ends with them, and
            `FROM format x` does not. Behind ALL only STRATEGIES counts.

            Returns:
                What stands behind the word, and where.
            """
            tokens = self._tokens
            if len(tokens) < 4:
                return None
            before, key, value = tokens[-3:]
            if word == "ALL" and value.text.upper() != "STRATEGIES":
                return None
            complete = before.token_type in _ENDING or before.token_type in self.ID_VAR_TOKENS
            quoted = key.token_type in self.TEXT_MATCH_EXCLUDED_TOKENS
            worded = value.token_type == TokenType.STRING or re.fullmatch(r"[^\W\d]\w*", value.text)
            if not complete or quoted or key.text.upper() != word or not worded:
                return None
            span = self.span
            self.begin(self.source, tokens[:-2])
            self.span = span
            return value.text, Span(value.start, value.end + 1)

        def skip_second(self, first: str, second: str) -> bool:
            """Leave out the second word of a statement that nothing was read of yet, if it is this word.

            It is if an expression follows: `SELECT streamed, a` has a column of that name.
            """
            tokens = self._tokens
            words = [one.text.upper() for one in tokens[:2]]
            if len(tokens) < 4 or words != [first, second] or tokens[1].token_type == TokenType.IDENTIFIER:
                return False
            third, fourth = tokens[2:4]
            whole = third.token_type == TokenType.STAR and fourth.token_type in (TokenType.FROM, TokenType.COMMA)
            if not whole and third.token_type not in _STARTING:
                return False
            span = self.span
            self.begin(self.source, [tokens[0], *tokens[2:]])
            self.span = span
            return True

        def expect(self, words: str) -> None:
            """Read these words, or fail."""
            if not self.take(words):
                raise self.expected(words if words.isalpha() else f"'{words}'")

        def end(self) -> None:
            """Nothing may follow."""
            if not self.done:
                raise ReadError(f"unexpected {self._shown()}", self.here)

        def word(self) -> str:
            """The next word in capitals, or nothing if a sign, a string or a quoted name comes next."""
            token = self._curr
            is_word = bool(token) and token.token_type not in self.TEXT_MATCH_EXCLUDED_TOKENS
            return token.text.upper() if is_word and re.fullmatch(r"[^\W\d][\w ]*", token.text) else ""

        @property
        def followed(self) -> bool:
            """Whether the next token is not the last one."""
            return bool(self._next)

        def skip_qualifier(self, qualifier: str) -> None:
            """Read `qualifier.` if it comes next."""
            if self.next_is_name() and self._next.token_type == TokenType.DOT and self._curr.text.lower() == qualifier:
                self._advance(2)

        def name(self, what: str) -> Name:
            """Read an identifier of one part."""
            token, span = self._curr, self.here
            if not self.next_is_name():
                if self.word():
                    raise self.expected(
                        what, hint=f"{token.text} is a keyword; as a name it is written `{token.text.lower()}`"
                    )
                raise self.expected(what)
            quoted = token.token_type == TokenType.IDENTIFIER
            text = token.text if quoted else self.sql[span.start : span.end]
            if not text:
                raise ReadError("a name cannot be empty", span)
            self._advance()
            if self.at("."):
                while self.take(".") and (self.next_is_name() or self.word()):
                    self._advance()
                raise NotSupported(
                    "HW262",
                    f"names of several parts are not supported: {self.sql[span.start : self.since(span).end]}",
                    span=self.since(span),
                    hint="a warehouse has one name space; write the name alone, or in backticks if it contains a dot",
                )
            return Name(text, span)

        def names(self, what: str) -> tuple[Name, ...]:
            """Read identifiers in parentheses."""
            return self.listed(lambda: self.name(what))

        def listed(self, item: Callable[[], T]) -> tuple[T, ...]:
            """Read items in parentheses, at least one."""
            self.expect("(")
            items = [item()]
            while self.take(","):
                items.append(item())
            if not self.take(")"):
                raise self.expected("',' or ')'")
            return tuple(items)

        def string(self, what: str) -> str:
            """Read a string literal."""
            if not self.next_is_string():
                raise self.expected(what)
            self._advance()
            return self._prev.text

        def number(self, what: str) -> str:
            """Read an unsigned number, as written."""
            if not self.next_is_number():
                raise self.expected(what)
            self._advance()
            return self._prev.text

        def next_is_number(self) -> bool:
            """Whether an unsigned number comes next."""
            return self._curr.token_type == TokenType.NUMBER

        # -- queries and expressions ---------------------------------------------------------------------------------

        def query(self) -> exp.Expression:
            """Read a query: SELECT, WITH, VALUES or one in parentheses."""
            start = self.here
            tree = self._parse_statement()
            query = tree if isinstance(tree, exp.Expression) else None
            if query is None or not isinstance(tree, exp.Query | exp.Values):
                raise ReadError("expected a query", self.since(start))
            for select in query.find_all(exp.Select):
                if select.args.get("joins") and not select.args.get("from_"):
                    raise ReadError("JOIN has nothing to join to: FROM is missing", self.since(start))
            with_slashes(query)
            return query

        def as_of(self) -> exp.Version | None:
            """Read what stands at the end of a query for all of its relations: VERSION AS OF, or TIMESTAMP AS OF."""
            start = self._index
            self.take("FOR")
            if not self.at("VERSION AS OF") and not self.at("TIMESTAMP AS OF"):
                self._retreat(start)
                return None
            version = self._parse_version()
            if not isinstance(version, exp.Version) or version.args.get("expression") is None:
                raise self.expected("an epoch or a moment")
            return version

        def scalar(self, what: str) -> exp.Expression:
            """Read an expression: a condition, or a value."""
            tree = self._parse_disjunction()
            if not isinstance(tree, exp.Expression):
                raise self.expected(what)
            return tree


def _with_mod(tokens: list[Token]) -> list[Token]:
    """The tokens with SyncSQL's `a mod b` as `a % b`."""
    out = list(tokens)
    for i in range(1, len(out) - 1):
        before, word, after = out[i - 1 : i + 2]
        ends = before.token_type in (TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.R_PAREN)
        starts = after.token_type in (TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.L_PAREN)
        if word.token_type == TokenType.VAR and word.text.upper() == "MOD" and ends and starts:
            out[i] = Token(TokenType.MOD, "%", word.line, word.col, word.start, word.end)
    return out


def _with_window(tokens: list[Token]) -> list[Token]:
    """The tokens with WINDOW as a plain word, but in `WINDOW w AS (...)` and `[WINDOW 10 MINUTES]`."""
    out = list(tokens)
    for i, word in enumerate(out):
        if word.token_type != TokenType.WINDOW or (i and out[i - 1].token_type == TokenType.L_BRACKET):
            continue
        name, then = (one.token_type for one in (out[i + 1 : i + 3] if i + 2 < len(out) else [word, word]))
        if name == TokenType.R_PAREN or then != TokenType.ALIAS:
            out[i] = Token(TokenType.VAR, word.text, word.line, word.col, word.start, word.end)
    return out


def _with_as_of(tokens: list[Token]) -> list[Token]:
    """The tokens with AS OF EPOCH and AS OF TIMESTAMP as Spark writes them."""
    out = list(tokens)
    for i in range(len(out) - 3):
        first, second, third, value = out[i : i + 4]
        if first.token_type != TokenType.ALIAS or second.text.upper() != "OF":
            continue
        epoch = third.text.upper() == "EPOCH" and value.token_type == TokenType.NUMBER
        moment = third.text.upper() == "TIMESTAMP" and value.token_type in (TokenType.STRING, TokenType.NUMBER)
        if TokenType.IDENTIFIER in (second.token_type, third.token_type) or not (epoch or moment):
            continue
        if (
            moment and i and out[i - 1].text.upper() == "TIMESTAMP"
        ):  # TIMESTAMP AS OF TIMESTAMP '...' is Spark's already
            continue
        word = "VERSION" if epoch else third.text
        kind = TokenType.VAR if epoch else third.token_type
        out[i : i + 3] = [Token(kind, word, third.line, third.col, third.start, third.end), first, second]
    return out


def new_parser() -> Headwater.Parser:
    """A parser that stops at the first problem."""
    return Headwater.Parser(error_level=ErrorLevel.IMMEDIATE, dialect=Headwater())
