"""Completion at the prompt: keywords, functions, relations and their columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion

from headwater.algebra.functions import REGISTRY
from headwater.sql.names import fold

if TYPE_CHECKING:
    from prompt_toolkit.document import Document

_KEYWORDS = """
    ADVANCE ALL ALTER AND AS ASC BACKFILL BETWEEN BY CASE CAST CHANGES CLOCK COMPLETE COPY CREATE CROSS CSV DELETE
    DESC DESCRIBE DISTINCT DROP ELSE END EPOCH EPOCHS EVERY EXISTS EXPLAIN FALSE FORMAT FROM FULL GROUP HAVING IF IN
    INNER INSERT INITIALIZE INTERVAL INTO IS JOIN JSON KEY LATE LATENESS LEFT LENGTH LIKE LIMIT MANUAL MAPS MINUTES
    NOT NOW NULL OF ON OP OR ORDER OUTER OVER PARQUET PARTITION PARTITIONS PARTS PATTERN PRIMARY REFRESH REGISTER
    RELATIONS REPLAN RETAIN RIGHT SECONDS SELECT SEQUENCE SET SHOW SOURCE STATIC STRATEGY STREAM STREAMED STREAMS STRICT
    SUBSCRIBE TABLE TABLES TAGGED THEN TO TRUE UNION UPDATE USING VALUES VIEW VIEWS WAREHOUSE WHEN WHERE WINDOW WITH
    BIGINT BINARY BOOLEAN DATE DECIMAL DOUBLE FLOAT INT SMALLINT STRING TIMESTAMP TINYINT
    AVG COUNT MAX MIN SUM
"""
KEYWORDS = tuple(_KEYWORDS.split())
COMMANDS = {"\\q": "leave", "\\d": "list relations, or describe one", "\\?": "help"}

_TAIL = re.compile(r"(?:(\w+)\.)?(\w*)$")
_COMMAND = re.compile(r"\\\S*$")
_DESCRIBE = re.compile(r"\\d\s+(\w*)$")
_UNFINISHED_QUOTE = re.compile(r"""^(?:[^'"`]|'[^']*'|"[^"]*"|`[^`]*`)*['"`][^'"`]*$""", re.DOTALL)

Columns = Mapping[str, Sequence[str]]


class SqlCompleter(Completer):
    """Completes the word at the cursor."""

    def __init__(self, columns: Callable[[], Columns]) -> None:
        """Remember where names come from.

        Args:
            columns: the columns of every relation, asked for at each completion.
        """
        self._columns = columns

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        before = document.text_before_cursor
        if before.startswith("\\"):
            yield from self._complete_command(before)
        elif not _UNFINISHED_QUOTE.match(before):
            found = _TAIL.search(before)
            if found and (found[1] or found[2] or complete_event.completion_requested):
                yield from self._complete_word(found[1], found[2], document.text)

    def _complete_command(self, before: str) -> Iterator[Completion]:
        described = _DESCRIBE.match(before)
        if described:
            yield from _matching(described[1], self._columns(), "relation")
        elif _COMMAND.match(before):
            for command, meaning in COMMANDS.items():
                if command.startswith(before):
                    yield Completion(command, -len(before), display_meta=meaning)

    def _complete_word(self, qualifier: str | None, word: str, text: str) -> Iterator[Completion]:
        columns = self._columns()
        if qualifier is not None:
            relation = _resolve(qualifier, text, columns)
            yield from _matching(word, columns[relation] if relation else _unique(columns.values()), "column")
            return
        yield from _matching(word, columns, "relation")
        # Of relations named in the statement first: their columns are what it is about.
        mentioned = [columns[name] for name in columns if re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE)]
        yield from _matching(word, _unique(mentioned or columns.values()), "column")
        lower = word.islower()
        yield from _matching(word, (k.lower() if lower else k for k in KEYWORDS), "")
        taken = {fold(k) for k in KEYWORDS}
        functions = (name for name, f in sorted(REGISTRY.items()) if name.isidentifier() and not f.internal)
        yield from _matching(word, (name for name in functions if name not in taken), "function")


def _resolve(qualifier: str, text: str, columns: Columns) -> str | None:
    """The relation that a name before a dot means: its own, or its alias in the statement."""
    by_name = {fold(name): name for name in columns}
    if fold(qualifier) in by_name:
        return by_name[fold(qualifier)]
    for name in columns:
        pattern = rf"\b{re.escape(name)}\s+(?:as\s+)?{re.escape(qualifier)}\b"
        if re.search(pattern, text, re.IGNORECASE):
            return name
    return None


def _unique(groups: Iterable[Sequence[str]]) -> list[str]:
    return list(dict.fromkeys(name for group in groups for name in group))


def _matching(word: str, names: Iterable[str], meta: str) -> Iterator[Completion]:
    for name in names:
        if fold(name).startswith(fold(word)) and name != word:
            yield Completion(name, -len(word), display_meta=meta)
