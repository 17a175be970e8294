"""The views of the suite `viewdf`, three times each: for Headwater, for a recomputation, and as a program by hand.

After Yang, Golab and Ozsu, "ViewDF", sections 2 and 5. In a recomputation and in a program by hand parts count from 0;
`{first}` and `{last}` are the oldest part that counts and the newest one, `{before}` the one before the newest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.workloads.measurements import LIMIT, SECONDS


@dataclass(frozen=True)
class HandWritten:
    """A program for one view. Its statements find the part that has come in the table `M_{last}`.

    Attributes:
        tables: the columns of its tables `helper` and `answer`, in which each row has the number of its part, too.
        helper: what is kept of a part.
        answer: the result, when that is done.
        first_answer: the first result, if it has to be made otherwise: when the parts of the past have been kept.
    """

    tables: tuple[str, str]
    helper: str
    answer: str
    first_answer: str = ""


@dataclass(frozen=True)
class PartView:
    """One view.

    Attributes:
        name: what it is called in figures.
        back: how many parts count.
        views: the statements for Headwater, by the names of the views; the last one is `answer`.
        columns: of the result.
        recomputed: queries over the table `M`, by the name of the system.
        program: by hand.
        compared: the columns of the result, as far as a recomputation over so many parts can know them.
    """

    name: str
    back: int
    views: Mapping[str, str]
    columns: tuple[str, ...]
    recomputed: Mapping[str, str]
    program: HandWritten
    compared: tuple[str, ...]


def _part_view(name: str, initialize: str, update: str, backfill: bool = False) -> str:
    """A view of parts. Without BACKFILL it begins with the newest part, so that a long history need not be built."""
    text = f"CREATE VIEW {name} AS INITIALIZE {name}[i] AS {initialize} UPDATE {name}[j] AS {update}"
    return f"{text} PARTITION LENGTH {SECONDS}{' BACKFILL' if backfill else ''}"


def _same(name: str, query: Callable[[str], str], backfill: bool = False) -> str:
    return _part_view(name, query("i"), query("j"), backfill)


# -- the pattern -----------------------------------------------------------------------------------------------------

#: So many measurements in a row must be high.
LONG = 4

#: Both find the last low measurement of a pair; what came after it is the match. Neither needs to know that a pair has
#: exactly one row in a part. The running sum of low rows, as textbooks number islands, takes four times as long.
_BY_WINDOW = f"""
SELECT src, dest, count(*) AS ct, sum(loss)::BIGINT AS sum_loss
FROM (SELECT src, dest, loss, ts, max(ts) FILTER (loss <= {LIMIT}) OVER (PARTITION BY src, dest) AS low
      FROM M WHERE part BETWEEN {{first}} AND {{last}})
WHERE low IS NULL OR ts > low
GROUP BY src, dest HAVING count(*) >= {LONG}
"""
_BY_JOIN = f"""
SELECT src, dest, count(*) AS ct, sum(loss)::BIGINT AS sum_loss
FROM M JOIN (SELECT src, dest, max(ts) FILTER (loss <= {LIMIT}) AS low FROM M WHERE part BETWEEN {{first}} AND {{last}}
             GROUP BY src, dest HAVING max_by(loss, ts) > {LIMIT}) USING (src, dest)
WHERE part BETWEEN {{first}} AND {{last}} AND (low IS NULL OR ts > low)
GROUP BY src, dest HAVING count(*) >= {LONG}
"""

#: There is one row of each pair in a part: a pair without a high loss in this one is in no match. (Section 2.)
_PATTERN_BY_HAND = HandWritten(
    ("src VARCHAR, dest VARCHAR, ct BIGINT, sum_loss BIGINT",) * 2,
    helper=f"""
    SELECT {{last}}, New.src, New.dest, coalesce(ct, 0) + 1, coalesce(sum_loss, 0) + New.loss
    FROM (SELECT * FROM M_{{last}} WHERE loss > {LIMIT}) AS New
    LEFT JOIN (SELECT * FROM helper WHERE part = {{before}}) AS Prev USING (src, dest)
    """,
    answer=f"SELECT * FROM helper WHERE part = {{last}} AND ct >= {LONG}",
)


def _pattern(name: str, scope: int, views: Mapping[str, str], recomputed: Mapping[str, str]) -> PartView:
    return PartView(
        name=name,
        back=scope,
        views=views,
        columns=("src", "dest", "ct", "sum_loss"),
        recomputed=recomputed,
        program=_PATTERN_BY_HAND,
        compared=("src", "dest", f"least(ct, {scope}) AS ct", f"CASE WHEN ct < {scope} THEN sum_loss END AS sum_loss"),
    )


def pattern(scope: int) -> PartView:
    """View1 as a user writes it; Headwater translates it (section 5.1)."""
    high = " AND ".join(f"{variable}.loss > {LIMIT}" for variable in "abcd")
    view = f"""
    CREATE VIEW answer AS SELECT src, dest, count(*) AS ct, sum(loss) AS sum_loss
    FROM M PATTERN [a, b, c, d+] WHERE {high} GROUP BY src, dest
    """
    return _pattern("pattern", scope, {"answer": view}, {"naive": _BY_WINDOW, "naive by join": _BY_JOIN})


def pattern_by_hand(scope: int) -> PartView:
    """Helper and View2 as a user writes them (section 2), who knows that every pair has one row in every part."""
    helper = _part_view(
        "Helper",
        f"SELECT src, dest, CAST(1 AS BIGINT) AS ct, CAST(loss AS BIGINT) AS sum_loss FROM M[i] WHERE loss > {LIMIT}",
        f"""
        SELECT New.src, New.dest, coalesce(Prev.ct, 0) + 1, coalesce(Prev.sum_loss, 0) + New.loss
        FROM M[j] AS New LEFT OUTER JOIN Helper[j-1] AS Prev ON New.src = Prev.src AND New.dest = Prev.dest
        WHERE New.loss > {LIMIT}
        """,
        backfill=True,
    )
    view = _same("answer", lambda at: f"SELECT src, dest, ct, sum_loss FROM Helper[{at}] WHERE ct >= {LONG}")
    return _pattern("pattern by hand", scope, {"Helper": helper, "answer": view}, {})


# -- windows ---------------------------------------------------------------------------------------------------------
#
# These are the views that a query with [WINDOW n PARTS] is translated to. They are written out because a translated
# view is built for all the past, and here the newest part will do.

_IN_WINDOW = "WHERE part BETWEEN {first} AND {last} GROUP BY src, dest"


def _distributive(name: str, window: int, function: str, type_: str, recomputed: bool = True) -> PartView:
    """An aggregate of each part, and the same aggregate of these (section 5.2.1)."""
    query = f"SELECT src, dest, {function}(loss) AS {function}_loss"
    merge = f"SELECT src, dest, {function}({function}_loss) AS {function}_loss"
    cast = f"::{type_} AS {function}_loss"
    return PartView(
        name=name,
        back=window,
        views={
            "Helper": _same("Helper", lambda at: f"{query} FROM M[{at}] GROUP BY src, dest", backfill=True),
            "answer": _same("answer", lambda at: f"{merge} FROM Helper[{at}-{window - 1} .. {at}] GROUP BY src, dest"),
        },
        columns=("src", "dest", f"{function}_loss"),
        recomputed={"naive": f"SELECT src, dest, {function}(loss){cast} FROM M {_IN_WINDOW}"} if recomputed else {},
        program=HandWritten(
            (f"src VARCHAR, dest VARCHAR, {function}_loss {type_}",) * 2,
            helper=f"SELECT {{last}}, src, dest, {function}(loss){cast} FROM M_{{last}} GROUP BY src, dest",
            answer=f"SELECT {{last}}, src, dest, {function}({function}_loss){cast} FROM helper {_IN_WINDOW}",
        ),
        compared=("src", "dest", f"{function}_loss"),
    )


def maximum(window: int) -> PartView:
    """MAX over a window, by the maxima of parts."""
    return _distributive("max", window, "max", "INTEGER")


def total_distributive(window: int) -> PartView:
    """SUM over a window the way of MAX."""
    return _distributive("sum distributive", window, "sum", "BIGINT", recomputed=False)


def total(window: int) -> PartView:
    """SUM (section 5.2.2): the sums of the window before, with the part that comes and without the one that goes.

    Where the paper subtracts sums since the beginning of time, sums are of the window only, with the number of rows.
    """
    query = "SELECT src, dest, count(*) AS n, sum(loss) AS sum_loss"
    whole = "SELECT src, dest, sum(n) AS n, sum(sum_loss) AS sum_loss"
    sums = _part_view(
        "Sums",
        f"{whole} FROM Helper[i-{window - 1} .. i] GROUP BY src, dest",
        f"""
        {whole} FROM (
          SELECT src, dest, n, sum_loss FROM Sums[j-1]
          UNION ALL SELECT src, dest, n, sum_loss FROM Helper[j]
          UNION ALL SELECT src, dest, -n AS n, -sum_loss AS sum_loss FROM Helper[j-{window}]
        ) AS Temp GROUP BY src, dest HAVING sum(n) > 0
        """,
    )
    added = "sum(n)::BIGINT, sum(sum_loss)::BIGINT"
    return PartView(
        name="sum",
        back=window,
        views={
            "Helper": _same("Helper", lambda at: f"{query} FROM M[{at}] GROUP BY src, dest", backfill=True),
            "Sums": sums,
            "answer": _same("answer", lambda at: f"SELECT src, dest, sum_loss FROM Sums[{at}]"),
        },
        columns=("src", "dest", "sum_loss"),
        recomputed={"naive": f"SELECT src, dest, sum(loss)::BIGINT AS sum_loss FROM M {_IN_WINDOW}"},
        program=HandWritten(
            ("src VARCHAR, dest VARCHAR, n BIGINT, sum_loss BIGINT",) * 2,
            helper="SELECT {last}, src, dest, count(*), sum(loss)::BIGINT FROM M_{last} GROUP BY src, dest",
            answer=f"""
            SELECT {{last}}, src, dest, {added} FROM (
              SELECT src, dest, n, sum_loss FROM answer WHERE part = {{before}}
              UNION ALL SELECT src, dest, n, sum_loss FROM helper WHERE part = {{last}}
              UNION ALL SELECT src, dest, -n, -sum_loss FROM helper WHERE part = {{first}} - 1
            ) GROUP BY src, dest HAVING sum(n) > 0
            """,
            first_answer=f"SELECT {{last}}, src, dest, {added} FROM helper {_IN_WINDOW}",
        ),
        compared=("src", "dest", "sum_loss"),
    )
