"""Spark's parser, strict: what sqlglot would let pass is refused, with the place and a reason in one line.

sqlglot reads the SQL of many systems and forgives much: it drops empty items of a list, does without the AND of
BETWEEN, and takes a JOIN whose condition was forgotten for one without. Headwater must not guess what was meant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any, ClassVar, TypeVar

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token, TokenType

from headwater.errors import NotSupported, Span
from headwater.sql.functions_parser import SparkExpressions
from headwater.sql.parts_parser import begins_here, read_table

T = TypeVar("T")

# Words that open a query. VALUES and a parenthesis are queries of their own in Spark.
_QUERY_STARTS = {TokenType.SELECT, TokenType.WITH, TokenType.VALUES, TokenType.L_PAREN}


#: The hint of a query that is not to be answered from views.
NO_VIEWS = "NO_VIEWS"


class ReadError(ParseError):
    """Text that does not parse, with the place and a reason for people."""

    def __init__(self, reason: str, span: Span, hint: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.span = span
        self.hint = hint


def _closed(parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function's own parser, after which sqlglot would not insist on the closing parenthesis."""

    def parse_closed(parser: StrictParser) -> Any:
        found = parse(parser)
        if parser._curr.token_type != TokenType.R_PAREN:
            raise parser.expected("')'")
        return found

    return parse_closed


class StrictParser(SparkExpressions):
    """Reads queries and expressions, and nothing that Spark would not.

    Attributes:
        engine: what the hint ENGINE names, if the statement has it.
        hinted: where a hint stands.
    """

    engine: str | None = None
    hinted: Span | None = None

    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: _closed(parse) for name, parse in SparkExpressions.FUNCTION_PARSERS.items()
    }

    @property
    def here(self) -> Span:
        """The next token, or the empty place after the last one."""
        if self._curr:
            return _token_span(self._curr)
        end = self._tokens[-1].end + 1 if self._tokens else len(self.sql)
        return Span(end, end)

    def since(self, start: Span) -> Span:
        """From a place to the end of what was read last."""
        return Span(start.start, max(start.end, self._prev.end + 1 if self._prev else start.end))

    def next_is_query(self) -> bool:
        """Whether a query can start here."""
        return self._curr.token_type in _QUERY_STARTS

    def next_is_name(self, ahead: int = 0) -> bool:
        """Whether the next token, or the one after it, can be a name."""
        token = self._next if ahead else self._curr
        return token.token_type == TokenType.IDENTIFIER or token.token_type in self.ID_VAR_TOKENS

    def next_is_string(self) -> bool:
        """Whether a string literal comes next."""
        return self._curr.token_type in (TokenType.STRING, TokenType.RAW_STRING)

    def expected(self, wanted: str, hint: str | None = None) -> ReadError:
        """The error that the next token stands where something else had to."""
        return ReadError(f"expected {wanted}, {self._found()}", self.here, hint)

    def raise_error(self, message: str, token: Token | None = None) -> None:
        """Raise what sqlglot complains about, with the place and a reason in one line."""
        span = _token_span(token) if token else self.here
        raise ReadError(self._reason(message, token), span)

    def _reason(self, message: str, token: Token | None) -> str:
        if message.startswith("Invalid expression"):
            return f"unexpected {self._shown(token)}"
        if message.startswith("Required keyword"):
            place = f"before {self._shown(token)}" if token or self._curr else "at the end of the statement"
            return f"something is missing {place}"
        if wanted := re.match(r"(?:Expecting|Expected)(?: a| an)? (.+?)(?: but got .*)?$", message, re.DOTALL):
            return f"expected {wanted[1]}, {self._found(token)}"
        first = message.strip().split("\n")[0][:200]
        return first[:1].lower() + first[1:]

    def _found(self, token: Token | None = None) -> str:
        return f"found {self._shown(token)}" if token or self._curr else "but the statement ends here"

    def _shown(self, token: Token | None = None) -> str:
        token = token or self._curr
        if not token:
            return "end of the statement"
        text = self.sql[token.start : token.end + 1].split("\n")[0]
        text = text if len(text) <= 40 else f"{text[:37]}..."
        return text if text.startswith(("'", '"', "`")) else f"'{text}'"

    def _parse_statement(self) -> exp.Expr | None:
        # sqlglot comes here for the bodies of WITH and for what follows it; statements of its own stay unread.
        if not self.next_is_query():
            raise self.expected("a query")
        return super()._parse_statement()

    def _parse_csv(self, parse_method: Callable[[], T | None], sep: TokenType = TokenType.COMMA) -> list[T]:
        # sqlglot drops empty items: SELECT a,, b would be SELECT a, b.
        def item() -> T | None:
            after_comma = self._prev.token_type == sep
            found = parse_method()
            if found is None and (after_comma or self._curr.token_type == sep):
                raise self.expected("an expression")
            return found

        return super()._parse_csv(item, sep)

    def _parse_join(
        self,
        skip_join_token: bool = False,
        parse_bracket: bool = False,
        alias_tokens: Collection[TokenType] | None = None,
    ) -> exp.Join | None:
        # sqlglot reads JOIN u ON without a condition as ON TRUE, and skips a comma with no table behind it.
        start = self._index
        join = super()._parse_join(skip_join_token, parse_bracket, alias_tokens)
        if self._index > start and self._prev.token_type in (TokenType.ON, TokenType.COMMA):
            raise self.expected("a condition" if self._prev.token_type == TokenType.ON else "a relation")
        if join and isinstance(join.args.get("on"), exp.Boolean) and self._prev.token_type != TokenType.TRUE:
            join.set("unsaid", True)  # sqlglot has put ON TRUE where nothing was written
        return join

    def _parse_group(self, skip_group_by_token: bool = False) -> exp.Group | None:
        group = super()._parse_group(skip_group_by_token)
        if group and self._prev.token_type == TokenType.GROUP_BY:
            raise self.expected("an expression")
        if group and "all" in group.args and group.expressions:
            raise ReadError("GROUP BY ALL takes no expressions", self.since(_token_span(self._prev)))
        return group

    def _parse_projections(self) -> tuple[list[exp.Expr], list[exp.Expr] | None]:
        projections, exclude = super()._parse_projections()
        if not projections:
            raise self.expected("an expression")
        return projections, exclude

    def _parse_star_op(self, *keywords: str) -> list[exp.Expr] | None:
        columns: list[exp.Expr] | None = super()._parse_star_op(*keywords)
        if columns == []:
            raise ReadError(f"{keywords[0]} names no column", self.since(_token_span(self._prev)))
        return columns

    def _parse_select_query(
        self,
        nested: bool = False,
        table: bool = False,
        parse_subquery_alias: bool = True,
        parse_set_operation: bool = True,
    ) -> exp.Expr | None:
        if self._curr.token_type == TokenType.FROM:  # FROM t alone is another system's SELECT * FROM t
            return None
        return super()._parse_select_query(nested, table, parse_subquery_alias, parse_set_operation)

    def _parse_between(self, this: exp.Expr | None) -> exp.Between:
        # sqlglot does without the AND, and then x BETWEEN 1 2 has two bounds.
        low = self._parse_bitwise()
        if not self._match(TokenType.AND):
            raise self.expected("AND")
        return self.expression(exp.Between(this=this, low=low, high=self._parse_bitwise()))

    def _parse_in(self, this: exp.Expr | None, alias: bool = False) -> exp.In:
        if self._curr.token_type != TokenType.L_PAREN:
            raise self.expected("'('")
        return super()._parse_in(this, alias)

    def _parse_table(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        # SyncSQL writes the difference of two relations as R(a) x - R(b) y. Elsewhere no minus can follow a table.
        table = self._parse_parts(*args, **kwargs) if begins_here(self) else super()._parse_table(*args, **kwargs)
        if isinstance(table, exp.Table) and self._match(TokenType.DASH):
            other = super()._parse_table(*args, **kwargs)
            if not isinstance(other, exp.Table):
                raise self.expected("a relation")
            table.set("minus", other)
        return table

    def _parse_parts(
        self, joins: bool = False, alias_tokens: Collection[TokenType] | None = None, **_: Any
    ) -> exp.Table:
        """A relation with a part, a window or a pattern."""
        table = read_table(self)
        if alias := self._parse_table_alias(alias_tokens or self.TABLE_ALIAS_TOKENS):
            table.set("alias", alias)
        for join in self._parse_joins(alias_tokens=alias_tokens) if joins else ():
            table.append("joins", join)
        return table

    def _parse_table_part(self, schema: bool = False) -> exp.Expr | None:
        if self.next_is_string() or self._curr.token_type == TokenType.DOT:
            raise self.expected("a relation")
        return super()._parse_table_part(schema)

    def _parse_table_alias(self, alias_tokens: Collection[TokenType] | None = None) -> exp.TableAlias | None:
        # Columns without a name are no alias: VALUES (1) (2) is two rows with the comma forgotten.
        start = self.here
        alias = super()._parse_table_alias(alias_tokens)
        if alias and not isinstance(alias.this, exp.Identifier):
            raise ReadError("expected an alias", self.since(start))
        return alias

    def _parse_hint(self) -> exp.Hint | None:
        if not self._match(TokenType.HINT):
            return None
        span = _token_span(self._prev)
        text = self._prev.text[3:-2] if len(self._prev.text) > 5 else "".join(self._prev_comments or ())
        found: exp.Hint | None = None
        for one in re.split(r"[\s,]+(?![^(]*\))", text.strip()):
            engine = re.fullmatch(r"ENGINE\s*\(\s*(\w+)\s*\)", one, re.IGNORECASE)
            if engine is not None:
                self.engine, self.hinted = engine[1].lower(), span
            elif one.upper() == NO_VIEWS:
                found = exp.Hint(expressions=[exp.Var(this=NO_VIEWS)])
            else:
                raise NotSupported(
                    "HW201",
                    "this hint is not supported",
                    span=span,
                    hint=f"leave it out; {NO_VIEWS} reads what the query names and no view in its place, "
                    "ENGINE(duckdb) and ENGINE(spark) say where it runs",
                )
        return found

    def _parse_into(self) -> exp.Into | None:
        return None  # SELECT ... INTO is not Spark's: the word is left over, and refused as such

    def _parse_pipe_syntax_query(self, query: exp.Query) -> exp.Query | None:
        raise NotSupported(
            "HW261", "the pipe syntax |> is not supported", span=self.here, hint="write it as SELECT ... FROM ..."
        )

    def _parse_query_parameter(self) -> exp.Expr | None:
        self._retreat(self._index - 1)
        raise ReadError(f"unexpected {self._shown()}", self.here)

    def _warn_unsupported(self) -> None:
        self.raise_error("Invalid expression / Unexpected token")


def _token_span(token: Token) -> Span:
    return Span(token.start, token.end + 1)
