"""The part of the demo that is about time: a pattern and a sliding window over measurements, minute by minute."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import Any

from headwater.cli.render import counted, say
from headwater.database import Database

#: Two runs of high packet loss in a row between the same stations, and the worst loss of the last ten minutes.
VIEWS = {
    "runs": "SELECT src, dest, COUNT(*) AS ct, SUM(loss) AS sum_loss FROM measurement PATTERN [a, b, c+] "
    "WHERE a.loss > 10 AND b.loss > 10 AND c.loss > 10 GROUP BY src, dest",
    "worst": "SELECT src, MAX(loss) AS loss, COUNT(*) AS n FROM measurement [WINDOW 10 MINUTES] GROUP BY src",
}
LENGTH, WINDOW = 60, 10
_UNIX = dt.datetime(1970, 1, 1)

Measurement = tuple[dt.datetime, int, int, int | None]


def live(db: Database) -> str:
    """What the newest minute shows."""
    newest = db.engine.book.frontier("runs").next
    if newest is None:
        return ""
    minute = (_UNIX + dt.timedelta(seconds=(newest - 1) * LENGTH)).time()
    runs = db.query(f"SELECT src, dest, ct FROM runs[{newest - 1}] ORDER BY ct DESC, src, dest LIMIT 3").to_pylist()
    worst = db.query(f"SELECT MAX(loss) AS loss FROM worst[{newest - 1}]").to_pylist()[0]["loss"]
    shown = ", ".join(f"{run['src']}-{run['dest']} ({run['ct']} in a row)" for run in runs) or "none"
    return f"at {minute:%H:%M} high loss: {shown}; worst of ten minutes: {worst}"


def compare(db: Database, session: Any) -> bool:
    """Hold both views against all measurements as Spark reads them."""
    rows = [tuple(row) for row in session.sql("SELECT at, src, dest, loss FROM measurement").collect()]
    last = max(row[0] for row in rows)
    db.advance_stream("measurement", last.replace(second=0) + dt.timedelta(minutes=1))
    session.sql(
        f"SELECT CAST(unix_timestamp(at) / {LENGTH} AS BIGINT) AS PART, * FROM measurement"
    ).createOrReplaceTempView("measured")
    query = (
        "SELECT m.src, MAX(m.loss) AS loss, COUNT(*) AS n, p.PART FROM (SELECT explode(sequence("
        f"min(PART), max(PART))) AS PART FROM measured) p JOIN measured m ON m.PART BETWEEN p.PART - {WINDOW - 1} "
        "AND p.PART GROUP BY m.src, p.PART"
    )
    expected = {"worst": Counter(tuple(row) for row in session.sql(query).collect()), "runs": _runs(rows)}
    same = [_same(db, view, expected[view]) for view in VIEWS]
    return all(same)


def _same(db: Database, view: str, theirs: Counter[tuple[object, ...]]) -> bool:
    kept = [tuple(row.values()) for row in db.query(f"SELECT *, PART FROM {view} ORDER BY PART DESC").to_pylist()]
    parts = len({row[-1] for row in kept})
    same = theirs == Counter(kept)
    say(f"  {view}: {counted(len(kept), 'row')} in {counted(parts, 'part')}, {'equal' if same else 'DIFFERENT'}")
    for row in kept[:3]:
        moment = _UNIX + dt.timedelta(seconds=row[-1] * LENGTH)
        say(f"    {', '.join('NULL' if value is None else str(value) for value in row[:-1])}   at {moment:%H:%M}")
    return same


def _runs(rows: list[Any]) -> Counter[tuple[object, ...]]:
    """The pattern by hand: measurement by measurement, each pair by itself.

    A run is shown in the minute in which it stands, and in one in which it was broken by a later measurement.
    """
    out: Counter[tuple[object, ...]] = Counter()
    parts = {row: _part(row[0]) for row in rows}
    first, last = min(parts.values()), max(parts.values())
    pairs: dict[tuple[int, int], list[Any]] = {}
    for row in sorted(rows, key=lambda row: (row[0], row[3] is not None, row[3] or 0)):
        pairs.setdefault((row[1], row[2]), []).append(row)
    for pair, sequence in pairs.items():
        by_part: dict[int, list[Any]] = {}
        for row in sequence:
            by_part.setdefault(_part(row[0]), []).append(row)
        run: list[int] = []
        for part in range(first, last + 1):
            here = False
            for row in by_part.get(part, ()):
                if row[3] is not None and row[3] > 10:
                    run.append(row[3])
                    here = True
                    continue
                if here and len(run) >= 3:
                    out[(*pair, len(run), sum(run), part)] += 1
                run, here = [], False
            if len(run) >= 3:
                out[(*pair, len(run), sum(run), part)] += 1
    return out


def _part(moment: dt.datetime) -> int:
    return int((moment - _UNIX).total_seconds()) // LENGTH
