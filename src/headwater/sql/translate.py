"""PATTERN and [WINDOW ...] queries as views of parts, written out.

(Yang, Golab and Ozsu, "ViewDF: Declarative Incremental View Maintenance for Streaming Data", section 5.)

The outcome is text that the engine reads like any other statement, and that EXPLAIN prints: there is no second way to
run a pattern or a window.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from headwater.errors import UserError
from headwater.sql import part_text as text
from headwater.sql.names import fold
from headwater.sql.part_text import Lines
from headwater.sql.parted import Parted
from headwater.sql.patterns import pattern_views
from headwater.sql.place import Place
from headwater.sql.read_pattern import read_pattern
from headwater.sql.sliding import sliding_views
from headwater.sql.statements import CreateView

__all__ = ["Parted", "source_of", "translate", "translates"]

#: Options that stand before VIEW.
_KINDS = ("STREAMED", "COMPLETE")


def translates(query: exp.Expr) -> bool:
    """Whether a query has a pattern or a window by parts somewhere, and so must be translated."""
    return any(_is_special(one) for one in query.find_all(exp.Table))


def source_of(query: exp.Expr, place: Place) -> exp.Table:
    """The one relation of a query with a pattern or a window; what else it has in FROM is refused."""
    found = next(one for one in query.find_all(exp.Table) if _is_special(one))
    word = "PATTERN" if found.args.get("pattern") else "[WINDOW]"
    if not isinstance(query, exp.Select):
        raise _elsewhere(word, found, place)
    source = query.args.get("from_")
    inner = [one for one in query.find_all(exp.Query) if one is not query]
    stands = source is not None and bool(source.this is found)
    if not stands or inner or query.args.get("with_"):
        raise _elsewhere(word, found, place)
    joins = [*(query.args.get("joins") or ()), *(found.args.get("joins") or ()), *(query.args.get("laterals") or ())]
    if joins or found.args.get("minus"):
        raise place.mistake(
            "HW190",
            f"{word} is about one relation alone",
            joins[0] if joins else found.args["minus"],
            "join in a view of parts, and read that; or join the outcome",
        )
    return found


def translate(statement: CreateView, parted: Parted, name: Callable[[str], str]) -> tuple[str, ...]:
    """The views of parts that a view is translated to, as text: helper views first, the view itself last.

    Args:
        statement: whose query has a pattern or a window.
        parted: the relation that the query reads.
        name: makes a name for a helper view, given what it is for: `name("helper")` is `v_helper`, say.
    """
    place = Place(statement.source)
    query = statement.query
    source = source_of(query, place)
    assert isinstance(query, exp.Select) and fold(source.name) == fold(parted.name)
    kind = next((f"{one.name} VIEW" for one in statement.options if one.name in _KINDS), "VIEW")
    spans = [one.span for one in statement.options if one.name not in _KINDS]
    options = " ".join(" ".join(statement.source.text[one.start : one.end].split()) for one in spans)

    def final(initialize: Lines, update: Lines) -> str:
        return text.part_view(statement.name.text, initialize, update, parted.length, kind, options)

    if source.args.get("pattern"):
        pattern, names = read_pattern(query, source, parted, statement.columns, place)
        return pattern_views(pattern, name("helper"), names, final)
    return sliding_views(query, source, parted, statement.columns, place, name, final)


def _is_special(table: exp.Table) -> bool:
    return bool(table.args.get("pattern") or table.args.get("window"))


def _elsewhere(word: str, found: exp.Table, place: Place) -> UserError:
    return place.mistake(
        "HW190",
        f"{word} belongs into FROM of a view's own query, which holds no other query",
        found,
        "make views of the other queries, and read these",
    )
