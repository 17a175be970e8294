"""Cut text into statements at its semicolons.

The prompt must know whether what was typed so far is a whole statement, and `check` and `sql` go on with, or stop at,
one statement of a file: both before anything is parsed. So this only knows where quotes and comments end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from headwater.errors import HeadwaterError, Source, Span

_STOP = re.compile(r"""[;'"`]|--|/\*""")
_COMMENT_EDGE = re.compile(r"/\*|\*/")


@dataclass(frozen=True)
class Piece:
    """One statement of a text, without its semicolon.

    Attributes:
        source: the whole text.
        span: the statement's part of it, without the blanks and comments around it.
        complete: a semicolon ended it.
    """

    source: Source
    span: Span
    complete: bool

    @property
    def text(self) -> str:
        return self.source.text[self.span.start : self.span.end]

    @property
    def line(self) -> int:
        return self.source.locate(self.span.start)[0]

    def place(self, error: HeadwaterError) -> HeadwaterError:
        """An error about this statement's own text, told in lines of the whole text."""
        if error.source and error.source.text == self.text:
            error.source = self.source
            if error.span:
                error.span = Span(error.span.start + self.span.start, error.span.end + self.span.start)
        return error


def split(source: Source) -> list[Piece]:
    """The statements of a text; what holds only blanks and comments is none."""
    text, pieces = source.text, []
    begin: int | None = None  # where the statement at hand begins, once anything but blanks and comments was seen
    seen = 0  # just past the last thing that belongs to it
    at = 0
    while at < len(text):
        found = _STOP.search(text, at)
        stop = found.start() if found else len(text)
        solid = text[at:stop]
        if solid.strip():
            if begin is None:
                begin = at + len(solid) - len(solid.lstrip())
            seen = at + len(solid.rstrip())
        if found is None:
            break
        mark = found.group()
        if mark == ";":
            if begin is not None:
                pieces.append(Piece(source, Span(begin, seen), True))
            begin, at = None, stop + 1
        elif mark == "--":
            at = _line_end(text, stop)
        elif mark == "/*":
            at = _comment_end(text, stop)
            if at > len(text):  # never closed: part of the statement, so that the parser complains about it
                begin, seen = (stop if begin is None else begin), len(text)
        else:
            begin = stop if begin is None else begin
            at = seen = min(_quote_end(text, stop), len(text))
    if begin is not None:
        pieces.append(Piece(source, Span(begin, seen), False))
    return pieces


def is_complete(text: str) -> bool:
    """Whether a semicolon ended the last statement, so that the text can run as it stands."""
    pieces = split(Source(text))
    return all(piece.complete for piece in pieces)


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _comment_end(text: str, at: int) -> int:
    """Just past the comment that begins at `at`; beyond the text if it is never closed. Comments nest, as in Spark."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, at):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    return len(text) + 1


def _quote_end(text: str, at: int) -> int:
    """Just past the quoted text that begins at `at`. A doubled quote is seen as two quoted texts, which ends alike."""
    quote = text[at]
    raw = quote == "`" or re.search(r"(?<![\w$])[rR]$", text[max(0, at - 2) : at]) is not None
    escape = "" if raw else r"\\.|"
    closing = re.compile(rf"{escape}{quote}", re.DOTALL)
    for found in closing.finditer(text, at + 1):
        if found.group() == quote:
            return found.end()
    return len(text) + 1
