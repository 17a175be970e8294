"""Views that merge the rows of a group in the order of time, as patterns do: kept by changes, equal to their query."""

from __future__ import annotations

import datetime as dt
import random

import pytest

import headwater as hw

START = dt.datetime(2024, 1, 1)
MACHINE = """
    SELECT src, aggregate(
        array_sort(collect_list(struct(ts, loss))),
        named_struct('state', 0, 'total', 0, 'found', 0, 'first', CAST(NULL AS TIMESTAMP)),
        (s, e) -> CASE WHEN e.loss > 10
            THEN named_struct('state', s.state + 1, 'total', s.total + e.loss,
                              'found', if(s.state >= 3, s.found + 1, s.found), 'first', coalesce(s.first, e.ts))
            ELSE named_struct('state', 0, 'total', 0, 'found', s.found, 'first', CAST(NULL AS TIMESTAMP)) END,
        s -> struct(s.found, s.state, s.first)) AS found
    FROM m GROUP BY src
"""
ORDERED = "SELECT src, sort_array(collect_list(struct(ts, loss, src)), FALSE) AS rows FROM m GROUP BY src"
TOTALS = """
    SELECT sum(aggregate(losses, 0, (s, x) -> s + coalesce(x, k))) AS total, count(*) AS n
    FROM batch WHERE exists(losses, x -> x > k)
"""


def expected(rows: list[tuple[dt.datetime | None, str, int | None]]) -> dict[str, tuple[int, int, dt.datetime | None]]:
    """What the machine finds, in Python; NULL comes before every time and every loss."""
    out: dict[str, tuple[int, int, dt.datetime | None]] = {}
    for src in {one[1] for one in rows}:
        mine = [(ts, loss) for ts, name, loss in rows if name == src]
        mine.sort(key=lambda e: (e[0] is not None, e[0] or START, e[1] is not None, e[1] or 0))
        state, found, first = 0, 0, None
        for ts, loss in mine:
            if loss is None or loss <= 10:
                state, first = 0, None
                continue
            found, state, first = found + (state >= 3), state + 1, first or ts
        out[src] = (found, state, first)
    return out


@pytest.mark.parametrize("seed", range(3))
def test_a_machine_over_rows_in_order_follows_them(seed: int) -> None:
    rng = random.Random(seed)
    rows: list[tuple[dt.datetime | None, str, int | None]] = []
    with hw.connect() as db:
        db.execute("CREATE TABLE m (ts TIMESTAMP, src STRING, loss INT)")
        db.execute(f"CREATE VIEW machine AS {MACHINE}; CREATE VIEW ordered AS {ORDERED}")
        for _ in range(12):
            more = [
                (
                    START + dt.timedelta(seconds=rng.randrange(30)) if rng.random() > 0.1 else None,
                    rng.choice("ab"),
                    rng.choice([None, 5, 11, 12, 13, 14]),
                )
                for _ in range(rng.randrange(6))
            ]
            db.insert("m", more)
            rows += more
            if rows and rng.random() < 0.5:
                gone = rng.choice(rows)[2]
                db.execute("DELETE FROM m WHERE loss <=> " + ("NULL" if gone is None else str(gone)))
                rows = [one for one in rows if one[2] != gone]
            found = {r["src"]: tuple(r["found"].values()) for r in db.query("SELECT * FROM machine").to_pylist()}
            assert found == expected(rows)
            for name, query in (("machine", MACHINE), ("ordered", ORDERED)):
                stored = sorted(map(str, db.query(f"SELECT * FROM {name}").to_pylist()))
                assert stored == sorted(map(str, db.query(query).to_pylist()))


def test_what_is_collected_is_not_sorted_again() -> None:
    with hw.connect() as db:
        db.execute("CREATE TABLE m (ts TIMESTAMP, src STRING, loss INT)")
        db.execute(f"CREATE VIEW machine AS {MACHINE}")
        assert "array_sort" not in db.execute("EXPLAIN machine")[0].text


def test_lambdas_in_conditions_and_sums_read_columns_of_both_sides() -> None:
    with hw.connect() as db:
        db.execute("CREATE TABLE batch (k INT, losses ARRAY<INT>); CREATE TABLE limit_of (k INT, most INT)")
        db.execute(f"CREATE VIEW totals AS {TOTALS}")
        db.execute("""
            CREATE VIEW joined AS SELECT b.k, filter(b.losses, x -> x <= l.most) AS low, l.most
            FROM batch b JOIN limit_of l ON b.k = l.k AND exists(b.losses, x -> x = l.most)
        """)
        db.insert("batch", [(1, [1, 2, None]), (2, [0]), (3, []), (4, None), (0, [5, 7])])
        db.insert("limit_of", [(1, 2), (0, 5), (0, 9)])
        assert db.query("SELECT * FROM totals").to_pylist() == [{"total": 16, "n": 2}]
        low = "SELECT * FROM joined ORDER BY k, size(low) DESC"
        zero, one = {"k": 0, "low": [5], "most": 5}, {"k": 1, "low": [1, 2], "most": 2}
        assert db.query(low).to_pylist() == [zero, one]
        db.execute("DELETE FROM batch WHERE k = 0; INSERT INTO batch VALUES (1, array(2, 9))")
        assert db.query("SELECT * FROM totals").to_pylist() == [{"total": 15, "n": 2}]
        assert db.query(low).to_pylist() == [one, {"k": 1, "low": [2], "most": 2}]


def test_a_view_with_lambdas_is_there_again_after_a_restart(tmp_path: object) -> None:
    path = f"{tmp_path}/w"
    with hw.connect(path) as db:
        db.execute("CREATE TABLE batch (k INT, losses ARRAY<INT>)")
        db.execute(f"CREATE VIEW totals AS {TOTALS}")
        db.insert("batch", [(1, [2])])
    with hw.connect(path) as db:
        db.insert("batch", [(0, [5])])
        assert db.query("SELECT * FROM totals").to_pylist() == [{"total": 7, "n": 2}]
