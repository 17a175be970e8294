"""Where a node of a query tree stands in the text, errors that point there, and the moment at which it is asked."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from sqlglot import exp

from headwater import types as t
from headwater.algebra.clock import now
from headwater.algebra.scalars import Literal, Scalar
from headwater.errors import NotSupported, Source, Span, UserError
from headwater.sql.lifting import Lifting
from headwater.sql.names import fold


@dataclass(frozen=True)
class Place:
    """The text a tree was parsed from.

    Attributes:
        source: the whole text.
        offset: where in it the parsed part begins.
        moment: what `now()` means, if the text is about one moment; None for a view, which goes on.
        clocks: every clock that was bound, with what it was written as, so that an error can point.
        lifting: which constants are left open.
    """

    source: Source
    offset: int = 0
    moment: dt.datetime | None = None
    clocks: list[tuple[Scalar, exp.Expr]] = field(default_factory=list, compare=False)
    lifting: Lifting = field(default_factory=Lifting, compare=False)

    def span(self, node: exp.Expr | None) -> Span | None:
        """The characters a node covers: the hull of all places noted in it, or in the nearest node above with any."""
        while node is not None:
            starts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
            ends = [part.meta["end"] for part in node.walk() if "end" in part.meta]
            if starts and ends:
                return self._closed(min(starts) + self.offset, max(ends) + 1 + self.offset)
            node = node.parent
        return None

    def _closed(self, start: int, end: int) -> Span:
        """The span, with the parentheses closed that it opens: no node has the place of a closing one."""
        text = self.source.text
        while text.count("(", start, end) > text.count(")", start, end):
            closing = end + len(text[end:]) - len(text[end:].lstrip())
            if not text.startswith(")", closing):
                break
            end = closing + 1
        return Span(start, end)

    def text(self, node: exp.Expr) -> str:
        """What the user wrote for a node, on one line."""
        span = self.span(node)
        return " ".join(self.source.text[span.start : span.end].split()) if span else ""

    def mistake(self, code: str, message: str, node: exp.Expr | Span | None, hint: str | None = None) -> UserError:
        """An error in what the user wrote."""
        span = node if isinstance(node, Span) else self.span(node)
        return UserError(code, message, span=span, source=self.source, hint=hint)

    def unsupported(self, code: str, message: str, node: exp.Expr | None, hint: str | None = None) -> NotSupported:
        """Good SQL that Headwater does not do."""
        return NotSupported(code, message, span=self.span(node), source=self.source, hint=hint)

    def clock(self, node: exp.Expr) -> Scalar:
        """What `now()` means here."""
        found = Literal(self.moment, t.TIMESTAMP) if self.moment is not None else now()
        self.clocks.append((found, node))
        return found

    def no_window(self, part: Scalar, by_months: bool = False) -> NotSupported:
        """The error for a clock where a view cannot follow it."""
        node = next((node for clock, node in self.clocks if clock is part), None)
        node = node or next((node for clock, node in self.clocks), None)
        shown = self.text(node) if node is not None else "now()"
        hint = "a condition of WHERE may compare columns with the clock and a constant: ts > now() - INTERVAL 5 MINUTES"
        if by_months:
            hint = "months are added to whole days: current_date() - INTERVAL 1 MONTH, or to date_trunc('DAY', now())"
        return self.unsupported("HW217", f"a view cannot follow {shown} here", node, f"{hint}; see docs/sql/queries.md")

    def only(self, node: exp.Expr, allowed: Iterable[str], code: str = "HW201") -> None:
        """Refuse a node with a part that nobody here reads: nothing a user wrote is ignored."""
        for key, value in node.args.items():
            if key not in allowed and value not in (None, False, []):
                part = value[0] if isinstance(value, list) else value
                what = _WORDS.get(key, key.strip("_").replace("_", " ").upper())
                at = part if isinstance(part, exp.Expr) else node
                if key == "hint":  # positions inside a hint count from the hint's own beginning
                    at = node.expressions[0]
                raise self.unsupported(code, f"{what} is not supported yet", at, _HINTS.get(key))


_WORDS = {
    "cluster": "CLUSTER BY",
    "connect": "CONNECT BY",
    "direction": "FETCH",
    "distribute": "DISTRIBUTE BY",
    "exclude": "EXCEPT in a select list",
    "except_": "EXCEPT in a select list",
    "hint": "a hint",
    "kind": "SELECT AS",
    "laterals": "LATERAL VIEW",
    "limit": "LIMIT",
    "locks": "FOR UPDATE",
    "match": "MATCH_RECOGNIZE",
    "operation_modifiers": "a modifier of SELECT",
    "order": "ORDER BY",
    "pivots": "PIVOT",
    "qualify": "QUALIFY",
    "sample": "TABLESAMPLE",
    "sort": "SORT BY",
    "version": "a version of a table",
    "windows": "WINDOW",
}
_HINTS = {
    "order": "leave it out: a view is a bag of rows; order the query that reads it",
    "limit": "leave it out here and put LIMIT on the query that reads the view",
    "offset": "leave it out here and put OFFSET on the query that reads the view",
    "distinct": "GROUP BY all columns and leave out the count: SELECT a, b FROM t GROUP BY a, b",
    "except_": "name the columns you want",
    "exclude": "name the columns you want",
    "hint": "leave it out",
    "qualify": "windows are not supported yet",
}


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A hint with the nearest known name, if one is near."""
    spelt = {fold(one): one for one in known}
    near = get_close_matches(fold(name), list(spelt), n=1)
    return f"did you mean {spelt[near[0]]}?" if near else None


def check_width(width: int, columns: Sequence[exp.Identifier], node: exp.Expr, place: Place) -> None:
    """Refuse a list of column names that does not fit its query."""
    if columns and len(columns) != width:
        raise place.mistake("HW128", f"{len(columns)} names for {width} columns", node)
