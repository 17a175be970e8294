"""Part references in a query's text, read a second time: by a regular expression, and Python's arithmetic."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from types import CodeType

from .case import View

_REFERENCE = re.compile(r"\b(\w+)\[([^\[\]]*)\]")
_WINDOW = re.compile(r"\b(\w+) \[WINDOW (\d+) (\w+)\]")
_SECONDS = {"SECONDS": 1, "MINUTES": 60}


@dataclass(frozen=True)
class Reference:
    """`relation[first .. last]`."""

    relation: str
    first: str
    last: str

    def parts(self, subscript: int) -> range:
        """The parts that it names, for a part of the view."""
        return range(_value(self.first, subscript), _value(self.last, subscript) + 1)


def _value(text: str, subscript: int) -> int:
    return int(eval(_code(text), {"__builtins__": {}}, {"i": subscript, "j": subscript}))


@lru_cache(maxsize=1000)
def _code(text: str) -> CodeType:
    return compile(text.replace("/", "//"), "<subscript>", "eval")


@lru_cache(maxsize=1000)
def references(query: str) -> list[Reference]:
    """Those of a query, in order."""
    found = []
    for relation, inside in _REFERENCE.findall(query):
        first, _, last = inside.partition("..")
        found.append(Reference(relation, first.strip(), (last or first).strip()))
    return found


def with_names(query: str) -> str:
    """A query that reads `part_0`, `part_1` and so on in place of its references."""
    count = iter(range(1000))
    return _REFERENCE.sub(lambda _: f"part_{next(count)}", query)


def spelt_out(view: View, lengths: dict[str, int]) -> View:
    """A sliding window as a view of parts that reads all of the window's parts."""
    found = _WINDOW.search(view.query)
    assert found is not None
    relation, count, unit = found.groups()
    length = lengths[relation]
    parts = int(count) if unit == "PARTS" else int(count) * _SECONDS[unit] // length
    query = _WINDOW.sub(f"{relation}[j - {parts - 1} .. j]", view.query)
    return replace(view, query="", initialize=query, update=query, length=length, backfill=True)
