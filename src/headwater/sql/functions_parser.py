"""How expressions are parsed: every function call stays a plain call, and every node knows its place.

sqlglot turns calls into nodes of its own (`date_add(d, 3)` becomes `TsOrDsAdd`) to translate between dialects, and
loses names and arguments on the way. Headwater never translates: `SparkExpressions` keeps `name(arguments)` as
`exp.Anonymous` and turns the forms with words in them (`TRIM(BOTH 'x' FROM s)`, `SUBSTRING(s FROM 2)`) into the same
plain calls. Only CAST, TRY_CAST and CASE keep nodes of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

_TRIM = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}


def _call(name: str, *args: exp.Expr | None) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=[arg for arg in args if arg is not None])


def _without_parentheses(name: str) -> Callable[[], exp.Anonymous]:
    return lambda: _call(name)


def _placed(parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A clause's parser that also notes where the clause stands."""

    def parse_and_place(self: SparkExpressions) -> tuple[str, exp.Expr | None]:
        start = self._curr
        key, clause = parse(self)
        return key, self._place(clause, start)

    return parse_and_place


class SparkExpressions(SparkParser):
    """Spark's parser with plain calls and places; the base of the dialect's own parser."""

    FUNCTIONS: ClassVar[dict[str, Any]] = {}

    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        "CAST": SparkParser.FUNCTION_PARSERS["CAST"],
        "TRY_CAST": SparkParser.FUNCTION_PARSERS["TRY_CAST"],
        "EXTRACT": lambda self: self._parse_extract_call(),
        "OVERLAY": lambda self: self._parse_words("overlay", "PLACING", "FROM", "FOR"),
        "POSITION": lambda self: self._parse_position_call(),
        "SUBSTR": lambda self: self._parse_words("substr", "FROM", "FOR"),
        "SUBSTRING": lambda self: self._parse_words("substring", "FROM", "FOR"),
        "TRIM": lambda self: self._parse_trim_call(),
    }

    # ANY stays a node so that LIKE ANY is seen for what it is.
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: SparkParser.NO_PAREN_FUNCTION_PARSERS[name] for name in ("ANY", "CASE")
    }

    NO_PAREN_FUNCTIONS: ClassVar[dict[TokenType, Any]] = {
        token: _without_parentheses(token.name.lower()) for token in SparkParser.NO_PAREN_FUNCTIONS
    }

    # ARRAY[1] is other systems' way to write array(1); with it, array(1)[0] would lose its elements.
    ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}

    # sqlglot drops a unary plus, but +'5' is a number.
    UNARY_PARSERS: ClassVar[dict[TokenType, Any]] = {
        **SparkParser.UNARY_PARSERS,
        TokenType.PLUS: lambda self: _call("positive", self._required(self._parse_unary())),
    }

    QUERY_MODIFIER_PARSERS: ClassVar[dict[TokenType, Any]] = {
        token: _placed(parse) for token, parse in SparkParser.QUERY_MODIFIER_PARSERS.items()
    }

    def _place(self, node: Any, start: Token) -> Any:
        """Note that a node reaches from a token to the last one read."""
        if isinstance(node, exp.Expr) and start and self._prev and self._prev.end >= start.start:
            node.update_positions(line=start.line, col=start.col, start=start.start, end=self._prev.end)
        return node

    def _parse_function_call(
        self,
        functions: dict[str, Any] | None = None,
        anonymous: bool = False,
        optional_parens: bool = True,
        any_token: bool = False,
    ) -> exp.Expr | None:
        start = self._curr
        call = super()._parse_function_call(functions, anonymous, optional_parens, any_token)
        return self._place(call, start)  # type: ignore[no-any-return]

    def _parse_lambda(self, alias: bool = False) -> exp.Expr | None:
        start = self._curr
        found = super()._parse_lambda(alias)
        return self._place(found, start) if isinstance(found, exp.Lambda) else found

    def _replace_lambda(self, node: exp.Expr | None, expressions: list[exp.Expr]) -> exp.Expr | None:
        # sqlglot takes the parameters' columns apart; here they stay columns, with their places, for the binder.
        return node

    def _parse_select(
        self,
        nested: bool = False,
        table: bool = False,
        parse_subquery_alias: bool = True,
        parse_set_operation: bool = True,
        consume_pipe: bool = True,
    ) -> exp.Expr | None:
        start = self._curr
        query = super()._parse_select(nested, table, parse_subquery_alias, parse_set_operation, consume_pipe)
        return self._place(query, start)  # type: ignore[no-any-return]

    def _parse_type(self, parse_interval: bool = True, fallback_to_identifier: bool = False) -> exp.Expr | None:
        # The one door through which every operand is read: literals, columns, calls, casts, parentheses.
        start = self._curr
        operand = super()._parse_type(parse_interval, fallback_to_identifier)
        return self._place(operand, start)  # type: ignore[no-any-return]

    def _parse_interval(
        self, require_interval: bool = True, parse_function_unit: bool = True
    ) -> exp.Add | exp.Interval | None:
        # A unit is a word: read as a call, DAY (x) in `INTERVAL 1 DAY (x)` would swallow what follows.
        return super()._parse_interval(require_interval, False)

    def _parse_types(
        self,
        check_func: bool = False,
        schema: bool = False,
        allow_identifiers: bool = True,
        with_collation: bool = False,
    ) -> exp.Expr | None:
        start = self._curr
        return self._place(  # type: ignore[no-any-return]
            super()._parse_types(check_func, schema, allow_identifiers, with_collation), start
        )

    def _parse_join(
        self,
        skip_join_token: bool = False,
        parse_bracket: bool = False,
        alias_tokens: Collection[TokenType] | None = None,
    ) -> exp.Join | None:
        start = self._curr
        return self._place(  # type: ignore[no-any-return]
            super()._parse_join(skip_join_token, parse_bracket, alias_tokens), start
        )

    def _required(self, operand: exp.Expr | None) -> exp.Expr | None:
        """What was read where an expression must stand."""
        if operand is None:
            self.raise_error("Expected an expression")
        return operand

    def _parse_words(self, name: str, *words: str) -> exp.Expr:
        """`name(a WORD b WORD c)`, or plain `name(a, b, c)`."""
        args = [self._parse_disjunction()]
        if self._match(TokenType.COMMA):
            return self.expression(_call(name, *args, *self._parse_function_args()))
        for word in words:
            if self._match_text_seq(word):
                args.append(self._required(self._parse_disjunction()))
        return self.expression(_call(name, *args))

    def _parse_extract_call(self) -> exp.Expr:
        field = self._parse_var_or_string(upper=True)
        if field is None or not self._match(TokenType.FROM):
            self.raise_error("Expected EXTRACT(field FROM expression)")
        name = exp.Literal.string(field.name if field else "")
        if field is not None:
            name.update_positions(field)
        return self.expression(_call("extract", name, self._required(self._parse_disjunction())))

    def _parse_position_call(self) -> exp.Expr:
        # IN is an operator too, so the needle is read only up to it.
        needle = self._parse_bitwise()
        if self._match(TokenType.IN):
            return self.expression(_call("position", self._required(needle), self._required(self._parse_bitwise())))
        rest = self._parse_function_args() if self._match(TokenType.COMMA) else []
        return self.expression(_call("position", needle, *rest))

    def _parse_trim_call(self) -> exp.Expr:
        side = self._prev.text.upper() if self._match_texts(_TRIM) else None
        first = None if self._match(TokenType.FROM, advance=False) else self._parse_bitwise()
        if self._match(TokenType.FROM):
            # As in Spark, the function takes what to trim first: trim('x', s).
            return self.expression(_call(_TRIM[side or "BOTH"], first, self._required(self._parse_bitwise())))
        if side:
            self.raise_error("Expected FROM in TRIM")
        rest = self._parse_function_args() if self._match(TokenType.COMMA) else []
        return self.expression(_call("trim", first, *rest))
