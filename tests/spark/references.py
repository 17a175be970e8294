"""Spark SQL itself as a second opinion on views."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException

from headwater.spark.types import spark_schema
from tests.equivalence.bags import Bag, Bags, added
from tests.equivalence.case import Case, Relation, View
from tests.equivalence.values import canonical, plain


class OnSpark:
    """Spark evaluates the text of views that were there from the beginning, once, after the last epoch."""

    name = "spark"
    exact = False

    def __init__(self, session: Any, case: Case, suspended: Callable[[], set[str]]) -> None:
        """Know a case.

        Args:
            session: Spark's, in ANSI mode and UTC.
            case: what will be run.
            suspended: views that do not follow their inputs at the moment.
        """
        self._session = session
        self._left = len(case.epochs)
        self._bags = Bags.of(case)
        self._stopped = suspended
        self._unknown = {view.name for view in case.views}
        self._answers: dict[str, Bag] = {}

    def advance(self, clock: datetime) -> None:
        self._clock = clock

    def create_view(self, view: View) -> None:
        reads_unknown = any(re.search(rf"\b{name}\b", view.query) for name in self._unknown)
        if view.created == 0 and not reads_unknown:
            self._unknown.remove(view.name)

    def apply(self, changes: dict[str, Bag], number: int) -> dict[str, Bag] | None:
        for name, change in changes.items():
            self._bags.contents[name] = added(self._bags.contents[name], change)
        self._left -= 1
        if not self._left:
            for relation in self._bags.relations.values():
                make_table(self._session, relation, self._bags.contents[relation.name])
        return None

    def drop_view(self, view: View) -> None:
        pass

    def ask(self, view: str) -> None:
        pass

    def refresh(self, view: View, number: int) -> dict[str, Bag] | None:
        return None

    @property
    def suspended(self) -> set[str] | None:
        return None

    def contents(self, view: View) -> Bag | None:
        if self._left or view.name in self._unknown:
            return None
        stopped = self._stopped()
        if view.name in stopped or any(re.search(rf"\b{name}\b", view.query) for name in self._unknown | stopped):
            self._unknown.add(view.name)
            return None
        if view.name not in self._answers:
            answer = ask(self._session, view, self._clock)
            if answer is None:
                self._unknown.add(view.name)
                return None
            self._answers[view.name] = answer
        return self._answers[view.name]

    def close(self) -> None:
        pass


def make_table(session: Any, relation: Relation, bag: Bag) -> None:
    """Let Spark know a relation with these rows."""
    rows = [tuple(plain(value, of) for value, of in zip(row, relation.types, strict=True)) for row in bag.elements()]
    session.createDataFrame(rows, spark_schema(relation.columns)).createOrReplaceTempView(relation.name)


#: Where Spark leaves the answer to chance, does not know the syntax or what was there before, or takes an IN that is
#: unknown for FALSE. What is collected and then sorted is certain.
_UNCERTAIN = re.compile(
    r"(?<!array_sort\()(?<!sort_array\()collect_(list|set)|m(in|ax)_by\(|WITHIN GROUP| (ALL|ANY) \("
    r"| OVER .* OVER |(?<!WHERE )\(\S+ (NOT )?IN \(SELECT"
    r"|\bR\(\w+, \w+\)"
    r"|(\(SELECT|WITH) .*session_window\("  # without an aggregate above, DISTINCT makes Spark forget to merge sessions
)


def _at(query: str, clock: datetime) -> str:
    """A query with constants in place of the clock."""
    query = re.sub(r"(?i)\bnow\(\)|\bcurrent_timestamp\b(\(\))?", f"TIMESTAMP '{clock}'", query)
    query = re.sub(r"\bcurrent_date\b(\(\))?", f"DATE '{clock.date()}'", query)
    return re.sub(r"\bNow\b", f"{int((clock - datetime(1970, 1, 1)).total_seconds() // 1)}L", query)


def ask(session: Any, view: View, clock: datetime) -> Bag | None:
    """Spark's answer to a view's query, which it then knows under the view's name; None if it has none that counts."""
    view = replace(view, query=_at(view.query, clock))
    if view.refresh or _UNCERTAIN.search(view.query):
        return None
    try:
        frame = session.sql(view.query)
    except AnalysisException as error:
        if "SUBQUERY" in str(error) or "CORRELATED" in str(error):  # it does less than we do
            return None
        if isinstance(error, ParseException) and re.search(r"\b(first|last)(_value)?\(.* ORDER BY", view.query):
            return None
        raise
    except Py4JJavaError as error:
        # BETWEEN over aggregates in HAVING may fail an assertion of Spark's own.
        if "INTERNAL_ERROR" in str(error) and re.search(r"HAVING .*BETWEEN", view.query):
            return None
        raise
    try:
        rows = frame.collect()
    except Py4JJavaError as error:
        # Spark's own check finds its rewrite of EXCEPT ALL or INTERSECT ALL over columns of one origin unresolved.
        if re.search(r"PLAN_VALIDATION_FAILED.*Rewrite(Except|Intersect)All", str(error)):
            return None
        raise
    if "session_window(" in view.query:  # as above, for whoever reads the view
        frame = session.createDataFrame(rows, frame.schema)
    frame.createOrReplaceTempView(view.name)
    return Counter(tuple(canonical(_plain(value)) for value in row) for row in rows)


def _plain(value: Any) -> Any:
    """A value of Spark's rows: structs are rows themselves, bytes are mutable."""
    if isinstance(value, bytearray):
        return bytes(value)
    return tuple(value) if hasattr(value, "asDict") else value
