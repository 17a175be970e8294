"""LIKE and regular expressions.

Spark's regular expressions are Java's, DuckDB's are RE2's and the evaluator's are Python's. Headwater takes literal
patterns in the part of the language that all three share, and rewrites in it what they read differently: the dot, `\\s`
and `$`.
"""

from __future__ import annotations

import re

from headwater import types as t
from headwater.algebra.functions.registry import Signature, define
from headwater.algebra.functions.signatures import accepts, count_args, describe, literal_value
from headwater.algebra.scalars import Call, Scalar


def literal_text(arg: Scalar, what: str) -> str:
    """The value of an argument that must be a text literal."""
    try:
        value = literal_value(arg)
    except ValueError:
        value = None
    if not isinstance(value, str):
        raise ValueError(f"the {what} must be a text literal")
    return value


def _signature(args: tuple[Scalar, ...], result: t.Type) -> Signature:
    if not accepts(args[0], t.STRING):
        raise ValueError(f"takes text, not ({describe(args)})")
    return Signature((t.STRING, *(arg.type for arg in args[1:])), result)


# --- LIKE -----------------------------------------------------------------------------------------------------------


def like_escape(args: tuple[Scalar, ...]) -> str:
    """The escape character of a LIKE, backslash if left out."""
    escape = literal_text(args[2], "escape character") if len(args) == 3 else "\\"
    if len(escape) != 1:
        raise ValueError("the escape character must be one character")
    return escape


def _like_regex(pattern: str, escape: str) -> str:
    """A LIKE pattern as a regular expression.

    Raises:
        ValueError: the escape character stands where it must not.
    """
    out = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            escaped = next(characters, None)
            if escaped is None:
                raise ValueError("the pattern ends with its escape character")
            if escaped not in ("%", "_", escape):
                raise ValueError(f"the escape character must not stand before {escaped!r}")
            out.append(re.escape(escaped))
        else:
            out.append({"%": ".*", "_": "."}.get(character) or re.escape(character))
    return "".join(out)


def _like_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 2, 3)
    _like_regex(literal_text(args[1], "pattern"), like_escape(args))
    return _signature(args, t.BOOLEAN)


@define("like", _like_signature)
def like(call: Call, text: str, pattern: str, _escape: str = "") -> object:
    """Whether a text matches a literal pattern of `%` and `_`; the escape character is a backslash unless given."""
    return re.fullmatch(_like_regex(pattern, like_escape(call.args)), text, re.DOTALL) is not None


@define("ilike", _like_signature)
def ilike(call: Call, text: str, pattern: str, _escape: str = "") -> object:
    """LIKE between the lower-case forms."""
    lowered = _like_regex(pattern.lower(), like_escape(call.args).lower())
    return re.fullmatch(lowered, text.lower(), re.DOTALL) is not None


# --- regular expressions --------------------------------------------------------------------------------------------

_LINE_ENDS = "\n\r\x85\u2028\u2029"
_ANY = f"[^{_LINE_ENDS}]"
_BLANKS = r" \t\n\x0b\f\r"
#: Java's `$` also matches before a line end that ends the text; harmless to consume when only the match counts.
_END = f"(?:\r\n|[{_LINE_ENDS}])?"
_PLAIN_ESCAPES = frozenset("\\.[]{}()*+?^$|/-&~# ,:;<>=!@%_\"'`")
_CLASS_ESCAPES = {"d": "0-9", "w": "a-zA-Z_0-9", "s": _BLANKS, "t": r"\t", "n": r"\n", "r": r"\r", "f": r"\f"}
_QUANTIFIER = re.compile(r"[*+?]|\{[0-9]{1,3}(?:,[0-9]{0,3})?\}")


class _Translator:
    """Reads a Java pattern once and writes what RE2 and Python understand alike."""

    def __init__(self, pattern: str, end_allowed: bool) -> None:
        self.pattern = pattern
        self.position = 0
        self.end_allowed = end_allowed
        self.out: list[str] = []
        self.depth = 0

    def refuse(self, what: str) -> ValueError:
        return ValueError(f"the pattern {self.pattern!r} has {what}, which not every engine reads as Java does")

    def translate(self) -> str:
        quantifiable = False
        while self.position < len(self.pattern):
            found = _QUANTIFIER.match(self.pattern, self.position)
            if found:
                if not quantifiable:
                    raise self.refuse("a quantifier with nothing before it")
                self._quantifier(found.group())
                quantifiable = False
                continue
            quantifiable = self._atom()
        if self.depth:
            raise self.refuse("a parenthesis that is not closed")
        return "".join(self.out)

    def _quantifier(self, text: str) -> None:
        self.out.append(text)
        self.position += len(text)
        following = self.pattern[self.position : self.position + 1]
        if following == "+":
            raise self.refuse("a possessive quantifier")
        if following == "?":
            self.out.append("?")
            self.position += 1

    def _atom(self) -> bool:
        """Read one atom; whether a quantifier may follow it."""
        character = self.pattern[self.position]
        self.position += 1
        match character:
            case ".":
                self.out.append(_ANY)
            case "\\":
                self.out.append(self._escape())
            case "[":
                self.out.append(self._class())
            case "(":
                self._open()
                return False
            case ")":
                self.depth -= 1
                if self.depth < 0:
                    raise self.refuse("a parenthesis that is not open")
                self.out.append(")")
            case "^" if self.position == 1:
                self.out.append("^")
                return False
            case "$" if self.position == len(self.pattern) and self.end_allowed:
                self.out.append(_END + r"\z")
                return False
            case "^" | "$":
                hint = "; write \\z for the end of the text" if character == "$" else ""
                raise self.refuse(f"{character!r} where it cannot stand{hint}")
            case "|":
                self.out.append("|")
                return False
            case "{" | "}" | "]":
                raise self.refuse(f"a bare {character!r}")
            case _:
                self.out.append(re.escape(character) if character in "#&~- " else character)
        return True

    def _open(self) -> None:
        self.depth += 1
        if self.pattern.startswith("?:", self.position):
            self.position += 2
            self.out.append("(?:")
        elif self.pattern.startswith("?", self.position):
            raise self.refuse("a group with a flag, a name or a look-around")
        else:
            self.out.append("(")

    def _escape(self) -> str:
        character = self.pattern[self.position : self.position + 1]
        self.position += 1
        if character == "z" and self.position == len(self.pattern):
            return r"\z"
        if character in ("d", "w", "s", "t", "n", "r", "f"):
            inside = _CLASS_ESCAPES[character]
            return f"[{inside}]" if len(inside) > 2 else inside
        if character in ("D", "W", "S"):
            return f"[^{_CLASS_ESCAPES[character.lower()]}]"
        if character and character in _PLAIN_ESCAPES:
            return re.escape(character)
        raise self.refuse(f"the escape \\{character}")

    def _class(self) -> str:
        """A character class of single characters, ranges and the escapes for digits, words and blanks."""
        end = self.position
        out = ["["]
        if self.pattern.startswith("^", end):
            out.append("^")
            end += 1
        start = end
        while end < len(self.pattern) and self.pattern[end] != "]":
            character = self.pattern[end]
            if character == "\\":
                end += 1
                escaped = self.pattern[end : end + 1]
                if escaped in _CLASS_ESCAPES:
                    out.append(_CLASS_ESCAPES[escaped])
                elif escaped and escaped in _PLAIN_ESCAPES:
                    out.append("\\" + escaped if escaped in "\\[]^-&~|" else escaped)
                else:
                    raise self.refuse(f"the escape \\{escaped} in brackets")
            elif character in "[&~" or (character == "^" and end > start):
                raise self.refuse(f"a bare {character!r} in brackets")
            elif character == "-" and not self._is_range(start, end):
                out.append(r"\-")
            else:
                out.append(character)
            end += 1
        if end >= len(self.pattern) or end == start:
            raise self.refuse("brackets that are empty or not closed")
        self.position = end + 1
        return "".join(out) + "]"

    def _is_range(self, start: int, at: int) -> bool:
        return at > start and self.pattern[at + 1 : at + 2] not in ("]", "")


def shared_pattern(pattern: str, end_allowed: bool) -> str:
    """A Java pattern as RE2 reads it.

    Raises:
        ValueError: it uses something the engines do not share.
    """
    translated = _Translator(pattern, end_allowed).translate()
    try:
        _compiled(translated)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None
    return translated


def _compiled(translated: str) -> re.Pattern[str]:
    # Python spells the end of the text \\Z; an escaped backslash before a z is something else.
    return re.compile(re.sub(r"(?<!\\)((?:\\\\)*)\\z", r"\1\\Z", translated), re.ASCII)


def _rlike_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 2)
    shared_pattern(literal_text(args[1], "pattern"), end_allowed=True)
    return _signature(args, t.BOOLEAN)


@define(("rlike", "regexp", "regexp_like"), _rlike_signature)
def rlike(call: Call, text: str, pattern: str) -> object:
    """Whether a literal regular expression matches somewhere in a text."""
    return _compiled(shared_pattern(pattern, end_allowed=True)).search(text) is not None


def extract_group(args: tuple[Scalar, ...]) -> int:
    """The literal group number of REGEXP_EXTRACT, 1 if left out."""
    group = literal_value(args[2]) if len(args) == 3 else 1
    if not isinstance(group, int):
        raise ValueError("the group must be an integer literal")
    return group


def _extract_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 2, 3)
    translated = shared_pattern(literal_text(args[1], "pattern"), end_allowed=False)
    groups = _compiled(translated).groups
    if not 0 <= extract_group(args) <= groups:
        raise ValueError(f"the pattern has groups 0 to {groups}, not {extract_group(args)}")
    return _signature(args, t.STRING)


@define("regexp_extract", _extract_signature)
def regexp_extract(call: Call, text: str, pattern: str, _group: int = 1) -> object:
    """What a group of a literal regular expression matched first, group 1 if left out; empty if nothing."""
    found = _compiled(shared_pattern(pattern, end_allowed=False)).search(text)
    return (found.group(extract_group(call.args)) or "") if found else ""


def replacement(args: tuple[Scalar, ...]) -> str:
    """Java's replacement `a$1b` as RE2 writes it: `a\\1b`."""
    text = literal_text(args[2], "replacement")
    if "\\" in text or re.search(r"\$(?![0-9])|\$[0-9]{2}", text):
        raise ValueError("the replacement takes $1 to $9, and neither a backslash nor another $")
    return re.sub(r"\$([0-9])", r"\\\1", text)


def _replace_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 3)
    compiled = _compiled(shared_pattern(literal_text(args[1], "pattern"), end_allowed=False))
    if compiled.fullmatch(""):
        raise ValueError("the pattern matches nothing at all, and the engines disagree on how often")
    if any(int(n) > compiled.groups for n in re.findall(r"\\([0-9])", replacement(args))):
        raise ValueError(f"the pattern has groups 0 to {compiled.groups} only")
    return _signature(args, t.STRING)


@define("regexp_replace", _replace_signature)
def regexp_replace(call: Call, text: str, pattern: str, _new: str) -> object:
    """Every match of a literal regular expression replaced by a literal, in which $1 is the first group."""
    compiled = _compiled(shared_pattern(pattern, end_allowed=False))
    new = replacement(call.args)

    def expand(found: re.Match[str]) -> str:
        return re.sub(r"\\([0-9])", lambda group: found.group(int(group[1])) or "", new)

    return compiled.sub(expand, text)


# --- all matches ----------------------------------------------------------------------------------------------------


def searched(args: tuple[Scalar, ...]) -> str:
    """The translated pattern of a function that looks for matches, none of which may be empty."""
    pattern = shared_pattern(literal_text(args[1], "pattern"), end_allowed=False)
    if _compiled(pattern).fullmatch(""):
        raise ValueError("the pattern matches nothing at all, and the engines disagree on how often")
    return pattern


def _search_signature(args: tuple[Scalar, ...], result: t.Type) -> Signature:
    count_args(args, 2)
    searched(args)
    return _signature(args, result)


@define("regexp_count", lambda args: _search_signature(args, t.INT))
def regexp_count(call: Call, text: str, _pattern: str) -> object:
    """How often a literal regular expression matches."""
    return sum(1 for _ in _compiled(searched(call.args)).finditer(text))


@define("regexp_substr", lambda args: _search_signature(args, t.STRING))
def regexp_substr(call: Call, text: str, _pattern: str) -> object:
    """What a literal regular expression matches first; NULL if nothing."""
    found = _compiled(searched(call.args)).search(text)
    return found.group() if found else None


@define("regexp_instr", lambda args: _search_signature(args, t.INT))
def regexp_instr(call: Call, text: str, _pattern: str) -> object:
    """Where the first match of a literal regular expression begins, from 1; 0 if there is none."""
    found = _compiled(searched(call.args)).search(text)
    return found.start() + 1 if found else 0


def _extract_all_signature(args: tuple[Scalar, ...]) -> Signature:
    searched(args[:2])
    return Signature(_extract_signature(args).params, t.Array(t.STRING))


@define("regexp_extract_all", _extract_all_signature)
def regexp_extract_all(call: Call, text: str, _pattern: str, _group: int = 1) -> object:
    """What a group of a literal regular expression matched each time, group 1 if left out."""
    group = extract_group(call.args)
    return tuple(found.group(group) or "" for found in _compiled(searched(call.args)).finditer(text))


def _split_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 2, 3)
    searched(args)
    limit = literal_value(args[2]) if len(args) == 3 else -1
    if not isinstance(limit, int) or limit > 0:
        raise ValueError("splits at every match: a limit must be a literal of 0 or below")
    return _signature(args, t.Array(t.STRING))


@define("split", _split_signature)
def split(call: Call, text: str, _pattern: str, _limit: int = -1) -> object:
    """The array of what stands between the matches of a literal regular expression."""
    parts, start = [], 0
    for found in _compiled(searched(call.args)).finditer(text):
        parts.append(text[start : found.start()])
        start = found.end()
    return (*parts, text[start:])
