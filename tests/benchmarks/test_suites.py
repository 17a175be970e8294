"""Every suite of workloads runs, tiny: its systems agree, and its figures, files and plots are there."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from benchmarks.changes import Changes, Plan, Round, fitting
from benchmarks.compare import IDENTITY, load
from benchmarks.contest import contest
from benchmarks.part_systems import HardCoded as PartProgram
from benchmarks.part_systems import differences
from benchmarks.part_views import pattern
from benchmarks.run import main
from benchmarks.systems import CHOSEN, DUCKDB, HARD_CODED, DuckRecompute, Headwater, Query, System
from benchmarks.workloads import tpch as tpch_rows
from benchmarks.workloads.measurements import FIRST, LIMIT, SECONDS, Measurements
from benchmarks.workloads.order_book import Book
from benchmarks.workloads.tpch import BARE, Data, Stream

from benchmarks import (
    finance,
    groups,
    growth,
    options,
    plot,
    proportion,
    rolling,
    sharing,
    subscriptions,
    sync,
    tpch,
    viewdf,
    windows,
)

SCALE = 0.002
ORDERS = 1_000
Rows = list[dict[str, object]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[float], Data]:
    return functools.cache(lambda scale: Data(tmp_path_factory.mktemp("tpch"), scale))


@pytest.fixture(autouse=True)
def few_epochs(monkeypatch: pytest.MonkeyPatch, made: Callable[[float], Data]) -> None:
    for suite in (tpch, sharing):
        monkeypatch.setattr(suite, "Data", lambda _, scale: made(scale))
    for suite in (tpch, finance):
        monkeypatch.setattr(suite, "EPOCHS", {100: (1, 1), 1_000: (0, 1)})
    monkeypatch.setattr(proportion, "EPOCHS", 1)
    monkeypatch.setattr(proportion, "WARM_UP", 0)


def figures(suite: str, rows: Rows) -> dict[tuple[object, ...], dict[str, object]]:
    out = {tuple(row[name] for name in IDENTITY[suite]): row for row in rows}
    assert len(out) == len(rows), "a row says what it measures"
    return out


def silent(_: str) -> None:
    pass


def test_subscriptions_can_be_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"ROWS": 200, "CHANGED": 20, "GROUPS": 50, "EPOCHS": 2, "WARM_UP": 1}.items():
        monkeypatch.setattr(subscriptions, name, value)
    rows = figures("subscriptions", list(subscriptions.run(silent)))
    assert set(rows) == {(view, way) for view in subscriptions.VIEWS for way in subscriptions.WAYS}
    assert rows["rows by key", "kept"]["changes"] == 3 * 20
    assert all(row["epoch p50 ms"] for row in rows.values())


def test_all_queries_of_tpch_can_be_measured() -> None:
    chosen = tpch.Options(scale=(0.001,), changes=(100,), systems=(CHOSEN,), orders=500)
    rows = figures("tpch", list(tpch.run(silent, chosen)))
    assert set(rows) == {(query, 0.001, 100, system) for query in tpch.QUERIES for system in (CHOSEN, DUCKDB)}
    assert all(row["p50 ms"] and not row["note"] for row in rows.values())


def test_hard_coded_programs_and_strategies_agree() -> None:
    systems, queries = ("tree", "first order", "recompute", HARD_CODED), ("q01", "q03", "q18")
    chosen = tpch.Options((SCALE,), queries, (100, 1_000), systems, orders=ORDERS)
    rows = figures("tpch", list(tpch.run(silent, chosen)))
    assert len(rows) == 3 * 2 * 5
    for query in queries:
        for changes in (100, 1_000):
            row = rows[query, SCALE, changes, HARD_CODED]
            assert row["p50 ms"] and row["to hard-coded"] == 1 and row["state MiB"], row
    assert rows["q03", SCALE, 100, "first order"]["statements"] == 3


def test_all_queries_of_finance_can_be_measured() -> None:
    chosen = finance.Options(changes=(100,), systems=(CHOSEN, HARD_CODED), book=30, events=4_000)
    rows = figures("finance", list(finance.run(silent, chosen)))
    assert {query for query, *_ in rows} == set(finance.QUERIES)
    assert rows["vwap", 100, HARD_CODED]["p50 ms"]
    assert not any(row["note"] for row in rows.values())


def test_all_parts_of_sync_can_be_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "STEPS", (0.1, 0.2))
    chosen = sync.Options(tuples=24_000, rows=2_000, fine_rows=1_000, rounds=1)
    rows = figures("sync", list(sync.run(silent, chosen)))
    assert {part for part, *_ in rows} == set(sync.PARTS)
    merged = [row for row in rows.values() if row["pipeline"] == "merged Select-Tagger"]
    assert merged and all(row["tuples/s"] for row in merged)
    steps = [row for row in rows.values() if row["part"] == "synchroniser" and row["rooms"] == 200]
    assert steps[0]["output tuples"] > steps[1]["output tuples"]  # type: ignore[operator]
    assert len(list(plot.sync(list(rows.values())))) == 10


def test_windows_has_a_line_for_each_size() -> None:
    rows = list(windows.run(silent, windows.Options(rows=(300, 3_000), leaving=(1, 7), epochs=3)))
    assert [(row["rows"], row["leaving"]) for row in rows] == [(300, 1), (300, 7), (3_000, 1), (3_000, 7)]
    assert [row["left"] for row in rows] == [292, 236, 2_992, 2_936]


SMALL = viewdf.Options(
    scale=0.001,
    pairs=(100_000, 200_000),
    scopes=(5, 20),
    shares=(10, 100),
    rows=(1_000_000, 2_000_000),
    windows=(3, 10),
    large_windows=(12,),
    parts=1,
    recomputed=1,
)


def test_all_figures_of_viewdf_can_be_measured() -> None:
    rows = figures("viewdf", list(viewdf.run(silent, SMALL)))
    measured = [row for row in rows.values() if row["figure"] != "claim"]
    assert {row["figure"] for row in measured} == set(range(6, 13))
    assert all(row["p50 ms"] and row["rate to hard-coded"] for row in measured)
    of_pattern = {row["system"] for row in measured if str(row["case"]).startswith("pattern, ")}
    assert of_pattern == {"ViewDF", "hard-coded", "naive", "naive by join"}
    by_window = {(row["rows"], row["back"]) for row in measured if row["figure"] == 12}
    assert by_window == {(1_000, 3), (1_000, 10), (2_000, 10), (2_000, 12)}
    said = [row["note"] for row in rows.values() if row["figure"] == "claim"]
    assert len(said) == 3
    assert [name for name, _ in plot.viewdf(measured)] == [f"figure-{number}" for number in range(6, 13)]


def test_a_wrong_program_ends_the_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = PartProgram._run

    def forgetful(self: PartProgram, table: str, query: str, part: int) -> None:
        whole(self, table, query.replace("coalesce(ct, 0) + 1", "1"), part)

    monkeypatch.setattr(PartProgram, "_run", forgetful)
    chosen = dataclasses.replace(SMALL, figures=(8,), shares=(60,))
    with pytest.raises(AssertionError, match="pattern: hard-coded disagrees with ViewDF in"):
        list(viewdf.run(silent, chosen))


def test_a_recomputation_is_right_as_far_as_it_looks_back() -> None:
    columns = ("src", "dest", "ct", "sum_loss")
    known, longer, other = (
        pa.table(dict(zip(columns, ([s], ["b"], [ct], [100]), strict=True))) for s, ct in (("a", 4), ("a", 9), ("c", 4))
    )
    assert differences(pattern(4), longer, known, whole=False) == 0
    assert differences(pattern(5), longer, known, whole=False) == 2
    assert differences(pattern(4), longer, known, whole=True) == 2
    assert differences(pattern(4), longer, other, whole=False) == 2


def test_claims_are_judged_by_what_was_measured() -> None:
    def row(figure: int, ms: float, **more: object) -> dict[str, object]:
        told = {"figure": figure, "case": "c", "system": "ViewDF", "rows": 10, "back": 5, "p50 ms": ms}
        return told | {"rate to hard-coded": 0.9, "times naive": 12.0} | more

    good = [row(6, 1.0), row(12, 1.0), row(12, 1.4, back=100)]
    assert [str(one["note"]).partition(":")[0] for one in viewdf.claims(good)] == ["holds"] * 3
    bad = [row(6, 1.0, **{"times naive": 9.9}), row(12, 1.0), row(12, 1.6, **{"rate to hard-coded": 0.79})]
    assert [str(one["note"]).partition(":")[0] for one in viewdf.claims(bad)] == ["DOES NOT HOLD"] * 3


def test_rolling_has_a_line_for_each_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rolling, "HOURS", 3)
    rows = figures("rolling", list(rolling.run(silent, rolling.Options(rows=(5,), sources=10))))
    assert set(rows) == {(900, relation, query) for relation, query in rolling.QUERIES}
    assert {row["parts"] for row in rows.values()} == {3}


def test_growth_has_a_line_for_each_scale() -> None:
    chosen = growth.Options(scale=(0.001, SCALE), queries=("q03", "q11"), changes=(100,), orders=500)
    rows = list(growth.run(silent, chosen))
    assert [(row["query"], row["scale"]) for row in rows if row["system"] == CHOSEN] == [
        ("q03", 0.001),
        ("q03", SCALE),
        ("q11", 0.001),
        ("q11", SCALE),
    ]


def test_proportion_has_both_views() -> None:
    rows = figures("proportion", list(proportion.run(silent, proportion.Options(rows=(500, 1_000), changes=(10, 100)))))
    assert set(rows) == {(view, n, c) for view in ("sums", "join") for n in (500, 1_000) for c in (10, 100)}


def test_sharing_has_the_same_views_in_one_warehouse_and_in_ten() -> None:
    rows = figures("sharing", list(sharing.run(silent, sharing.Options(scale=SCALE, changes=(100,), orders=ORDERS))))
    assert set(rows) == {(100, "one warehouse"), (100, "ten warehouses")}
    assert all(row["views"] == 10 for row in rows.values())


def test_groups_are_measured_apart_shared_and_as_chosen() -> None:
    rows = figures("groups", list(groups.run(silent, groups.Options(rows=2_000, epochs=2))))
    assert set(rows) == {(case.name, pipeline) for case in groups.CASES for pipeline in groups.PIPELINES}
    shares = {(case, pipeline): row["shares"] for (case, pipeline), row in rows.items() if pipeline != "chosen"}
    assert all(shared == (pipeline == "shared") for (_, pipeline), shared in shares.items())


def test_the_command_line_keeps_figures_and_plots(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["tpch", "--scale", "0.001", "--queries", "q01,q06", "--changes", "100", "--systems", "tree,viewlet"]
    assert main([*arguments, "--output", str(tmp_path)]) == 0
    said = capsys.readouterr()
    [file] = tmp_path.glob("tpch-*.json")
    [drawn] = tmp_path.glob("tpch-*.svg")
    assert drawn.stem == f"{file.stem}-0.001-100" and "<svg" in drawn.read_text()
    assert "q06" in said.out and str(drawn) in said.out
    assert ("q01", 0.001, 100, "tree") in load(file).rows
    assert {row["system"] for row in json.loads(file.read_text())["rows"]} == {"tree", "viewlet", DUCKDB}


@pytest.mark.parametrize(
    ("suite", "rows", "names"),
    [
        (
            "growth",
            [{"query": "q03", "scale": s, "changes": 10, "system": CHOSEN, "p50 ms": s} for s in (0.1, 1.0)],
            ["chosen-10"],
        ),
        (
            "proportion",
            [{"view": "sums", "rows": n, "changes": 10, "p50 ms": 1.0, "recompute ms": 2.0} for n in (10, 100)],
            ["sums"],
        ),
        (
            "finance",
            [{"query": "mst", "changes": n, "system": "tree", "p50 ms": 2.0, "note": "stopped"} for n in (10, 100)]
            + [{"query": "mst", "changes": 1000, "system": "viewlet", "note": "absent"}],
            ["10", "100"],
        ),
        ("spine", [], []),
    ],
)
def test_plots(suite: str, rows: Rows, names: list[str], tmp_path: Path) -> None:
    drawn = plot.draw(suite, rows, tmp_path / "figures.json")
    assert [path.name for path in drawn] == [f"figures-{name}.svg" for name in names]
    assert all("<svg" in path.read_text() for path in drawn)


# -- the workloads ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data(made: Callable[[float], Data]) -> Data:
    return made(SCALE)


def test_orders_stay_at_their_number_and_the_rest_comes_whole(data: Data) -> None:
    stream = Stream(data, ["customer", "orders", "lineitem"], BARE, active=ORDERS)
    first, rounds = stream.rounds([Plan(100, 1, 3), Plan(1_000, 1, 2)])
    orders = set(first.insert["orders"]["orderkey"].to_pylist())
    lines = first.insert["lineitem"].num_rows
    assert len(orders) == ORDERS == first.insert["orders"].num_rows
    for round_ in rounds:
        for epoch in round_.epochs:
            assert abs(epoch.size - round_.changes) <= 1, "an order that goes belongs to the one that comes"
            orders |= set(epoch.insert["orders"]["orderkey"].to_pylist())
            gone = epoch.delete["orders"]["orderkey"].to_pylist()
            assert len(set(gone)) == len(gone) and orders.issuperset(gone)
            orders -= set(gone)
            lines += epoch.insert["lineitem"].num_rows
            assert len(orders) == ORDERS
    assert lines == data.table("lineitem", ["orderkey"]).num_rows


def test_the_same_seed_makes_the_same_epochs(data: Data) -> None:
    plans = [Plan(100, 0, 2)]
    streams = [Stream(data, ["customer", "orders"], BARE, seed, ORDERS).rounds(plans) for seed in (1, 1, 2)]
    assert streams[0] == streams[1] != streams[2]
    books = [Book(50, 4_000, seed).rounds(plans) for seed in (1, 1, 2)]
    assert books[0] == books[1] != books[2]


def test_too_few_rows_make_fewer_epochs() -> None:
    assert fitting([Plan(100, 2, 10), Plan(1_000, 1, 3)], 2_500) == [Plan(100, 2, 10), Plan(1_000, 0, 1)]
    assert fitting([Plan(100, 2, 10)], 99) == []


def test_the_book_is_as_large_as_told_and_nothing_goes_that_is_not_there() -> None:
    first, [round_] = Book(1_000, 200_000).rounds([Plan(1_000, 0, 20)])
    for side in ("Bids", "Asks"):
        there = set(first.insert[side]["id"].to_pylist())
        assert 500 < len(there) < 1_500
        for epoch in round_.epochs:
            there |= set(epoch.insert[side]["id"].to_pylist())
            gone = set(epoch.delete[side]["id"].to_pylist())
            assert there >= gone
            there -= gone
        prices = np.array(first.insert[side]["price"].to_pylist())
        assert (prices > 0).all() and (prices % 1 == 0).all()


def test_measurements_are_the_same_for_the_same_seed_and_lie_in_their_part() -> None:
    stream = Measurements(pairs=1_000, records=10, share=0.25)
    part = stream.part(3)
    assert part == Measurements(1_000, 10, 0.25).part(3) != Measurements(1_000, 10, 0.25, seed=2).part(3)
    assert part["loss"] != stream.part(4)["loss"]
    seconds = part["ts"].cast(pa.int64()).to_numpy() // 1_000_000
    assert set(seconds // SECONDS) == {FIRST + 3}
    assert 0.2 < (part["loss"].to_numpy() > LIMIT).mean() < 0.3
    pairs = list(zip(part["src"].to_pylist(), part["dest"].to_pylist(), strict=True))
    assert len(set(pairs)) == 1_000 and len(pairs) == 10_000
    assert set(pairs[:1_000]) == set(pairs[1_000:2_000])


def test_orders_of_a_book_lie_on_their_side_of_the_price() -> None:
    first, _ = Book(1_000, 100_000).rounds([Plan(10, 0, 1)])
    bids, asks = (np.median(first.insert[side]["price"].to_numpy()) for side in ("Bids", "Asks"))
    assert bids < asks


# -- the contest -----------------------------------------------------------------------------------------------------

SCHEMA = "CREATE TABLE t (k BIGINT NOT NULL)"
QUERY = Query("counted", "SELECT count(*) AS n FROM t", SCHEMA, {"t": "k"})


def keys(*values: int) -> Changes:
    return Changes({"t": pa.table({"k": pa.array(values, pa.int64())})})


def rounds_of(epochs: int) -> list[Round]:
    return [Round(1, 0, [keys(number) for number in range(epochs)]), Round(2, 0, [keys(-1, -2)])]


class Slow(DuckRecompute):
    """Would take an hour for every epoch, were it not stopped."""

    name = "slow"
    recomputes = False

    def apply(self, epoch: Changes) -> None:
        self._con.execute("SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range + b.range = 3.5")


class Wrong(DuckRecompute):
    """Forgets what comes."""

    name = "wrong"

    def follow(self, epoch: Changes) -> None:
        pass


def held(makers: dict[str, Callable[[], System]], limit: float = 60.0) -> Iterator[dict[str, object]]:
    return contest({DUCKDB: lambda: DuckRecompute(QUERY), **makers}, keys(100), rounds_of(8), limit, silent)


def test_a_system_that_takes_too_long_is_stopped_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.contest.LOAD_FACTOR", 1)
    rows = figures("sharing", list(held({"slow": lambda: Slow(QUERY)}, limit=1.0)))
    assert set(rows) == {(1, DUCKDB), (1, "slow"), (2, DUCKDB), (2, "slow")}
    assert rows[1, "slow"]["note"] == rows[2, "slow"]["note"] == "stopped after 1 s, in the load"
    assert rows[2, DUCKDB]["p50 ms"]


def test_a_system_that_is_stopped_later_says_how_far_it_came() -> None:
    class Tiring(Slow):
        often = 0

        def apply(self, epoch: Changes) -> None:
            self.often += 1
            if self.often > 4:
                super().apply(epoch)

    rows = figures("sharing", list(held({"slow": lambda: Tiring(QUERY)}, limit=1.0)))
    assert rows[1, "slow"]["epochs"] == "3 of 8" and rows[1, "slow"]["p50 ms"]
    assert rows[1, "slow"]["note"] == rows[2, "slow"]["note"] == "stopped after 1 s, in epoch 4 of 8 with 1 changes"
    assert rows[1, DUCKDB]["epochs"] == "5 of 5"


def test_a_strategy_that_is_refused_is_absent(tmp_path: Path) -> None:
    rows = list(held({"no such": lambda: Headwater(tmp_path, QUERY, "no such")}))
    assert [row["note"] for row in rows if row["system"] == "no such"] == ["absent: HW004"] * 2


def test_systems_that_disagree_end_the_suite() -> None:
    with pytest.raises(AssertionError, match="wrong disagrees with DuckDB recompute"):
        list(held({"wrong": lambda: Wrong(QUERY)}))


def test_an_error_of_a_system_is_not_taken_for_slowness() -> None:
    class Broken(DuckRecompute):
        recomputes = False

        def apply(self, epoch: Changes) -> None:
            self._con.execute("SELECT no_such_column FROM t")

    with pytest.raises(duckdb.BinderException):
        list(held({"broken": lambda: Broken(QUERY)}))


# -- options ---------------------------------------------------------------------------------------------------------


def test_options_are_the_fields_of_a_dataclass() -> None:
    parser = argparse.ArgumentParser()
    options.add(parser, tpch.Options)
    said = parser.parse_args(["--scale", "0.1,2", "--changes", "1_000", "--systems", "first order, tree"])
    chosen = options.given(tpch.Options, said)
    assert chosen == tpch.Options(scale=(0.1, 2.0), changes=(1_000,), systems=("first order", "tree"))
    assert chosen.orders == tpch_rows.ACTIVE_ORDERS
