"""Errors as data: a code, a place, a reason and a remedy.

Three kinds are always told apart, because the reader does something different about each:

* `UserError`: the statement or the data is wrong; change it.
* `NotSupported`: the statement is good SQL that Headwater cannot do (yet); rewrite it.
* `InternalError`: our bug; report it.

Codes are grouped by hundreds: HW0xx text that does not parse, HW1xx names and types, HW2xx not supported,
HW3xx rows and constraints, HW4xx warehouse and files, HW5xx views at run time, HW9xx our bugs. `docs/errors.md` has a
paragraph for each code, and a test compares the two lists.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """A half-open range of characters `[start, end)` of a statement's text."""

    start: int
    end: int


@dataclass(frozen=True)
class Source:
    """The text an error points into, and the name a person knows it by (a file, or `<sql>`)."""

    text: str
    name: str = "<sql>"

    def locate(self, offset: int) -> tuple[int, int, str]:
        """Line and column (both from 1) of an offset, and the whole line."""
        offset = max(0, min(offset, len(self.text)))
        line = self.text.count("\n", 0, offset) + 1
        begin = self.text.rfind("\n", 0, offset) + 1
        end = self.text.find("\n", offset)
        return line, offset - begin + 1, self.text[begin : end if end >= 0 else len(self.text)]


class HeadwaterError(Exception):
    """Base of every error that Headwater raises on purpose.

    Attributes:
        code: stable identifier such as `HW101`.
        message: what is wrong, in one sentence, without the place.
        span: where in the statement, if it is about text.
        source: the text that `span` points into.
        hint: what to do about it.
    """

    kind = "error"

    def __init__(
        self,
        code: str,
        message: str,
        *,
        span: Span | None = None,
        source: Source | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.span = span
        self.source = source
        self.hint = hint

    def at(self, span: Span | None, source: Source | None = None) -> HeadwaterError:
        """The same error with a place, unless it already has one."""
        if self.span is None:
            self.span = span
        if self.source is None:
            self.source = source
        return self

    def to_dict(self) -> dict[str, object]:
        """The error for programs: what `--format json` prints."""
        out: dict[str, object] = {"kind": self.kind, "code": self.code, "message": self.message}
        if self.span and self.source:
            line, column, _ = self.source.locate(self.span.start)
            out |= {"source": self.source.name, "line": line, "column": column}
            out |= {"start": self.span.start, "end": self.span.end}
        if self.hint:
            out["hint"] = self.hint
        return out

    def __str__(self) -> str:
        parts = [f"error[{self.code}]: {self.message}"]
        if self.span and self.source:
            parts += _excerpt(self.source, self.span)
        if self.hint:
            parts.append(f"help: {self.hint}")
        return "\n".join(parts)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.code, self.message, self.span, self.source, self.hint)


class UserError(HeadwaterError):
    """The statement or the data is wrong."""

    kind = "your mistake"


class NotSupported(HeadwaterError):
    """Good SQL that Headwater does not do."""

    kind = "not supported"


class InternalError(HeadwaterError):
    """A defect of Headwater."""

    kind = "our bug"


def _rebuild(
    kind: type[HeadwaterError],
    code: str,
    message: str,
    span: Span | None,
    source: Source | None,
    hint: str | None,
) -> HeadwaterError:
    return kind(code, message, span=span, source=source, hint=hint)


_WIDEST_EXCERPT = 160


def _excerpt(source: Source, span: Span) -> list[str]:
    line, column, text = source.locate(span.start)
    width = max(1, min(span.end, span.start + len(text) - column + 1) - span.start)
    left = 0
    if len(text) > _WIDEST_EXCERPT:  # a statement on one endless line: show the part around the caret
        left = max(0, column - 1 - _WIDEST_EXCERPT // 4)
        text = text[left : left + _WIDEST_EXCERPT]
        width = min(width, len(text) - (column - 1 - left))
    lead = "".join("\t" if c == "\t" else " " for c in text[: column - 1 - left])
    number = str(line)
    pad = " " * len(number)
    return [
        f"{pad}--> {source.name}:{line}:{column}",
        f"{number} | {text}",
        f"{pad} | {lead}{'^' * max(1, width)}",
    ]
