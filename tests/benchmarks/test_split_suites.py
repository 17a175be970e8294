"""The suites about split maintenance run, tiny: systems agree, reads beside inserts are checked, claims are judged."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from benchmarks.aim_systems import HardCoded, Reference
from benchmarks.compare import IDENTITY
from benchmarks.pacing import Read, Seen, insert_and_read
from benchmarks.refreshing import AUTO, EVERY_EPOCH, MANUAL, ON_QUERY
from benchmarks.run import main
from benchmarks.split_systems import HardCoded as SplitHardCoded
from benchmarks.systems import DUCKDB, HARD_CODED, bag
from benchmarks.workloads.aim import NAMES, WEEK, Calls
from benchmarks.workloads.tpch import Data

from benchmarks import aim, plot, split

Rows = list[dict[str, object]]
AIM = aim.Options(entities=(50, 200), events=900, batch=300, rates=(0,), seconds=0.2, checked=1)
SPLIT = split.Options(
    scale=(0.002,),
    queries=("q06", "q15"),
    chunk=3_000,
    chunks=(100, 300),
    often=4,
    every=2,
    mixed=100,
    warm_up=2,
    rarely=2,
    reads=2,
)


def silent(_: str) -> None:
    pass


def figures(suite: str, rows: Rows) -> dict[tuple[object, ...], dict[str, object]]:
    out = {tuple(row[name] for name in IDENTITY[suite]): row for row in rows}
    assert len(out) == len(rows), "a row says what it measures"
    return out


# -- aim -------------------------------------------------------------------------------------------------------------


def test_all_measures_of_aim_are_taken() -> None:
    rows = list(figures("aim", list(aim.run(silent, AIM))).values())
    measured = [row for row in rows if row["measure"] != "claim" and not str(row.get("note")).startswith("absent")]
    there = {row["system"] for row in measured if row["measure"] == "insert"}
    assert there >= {EVERY_EPOCH, MANUAL, HARD_CODED, DUCKDB}
    often = Counter(row["measure"] for row in measured)
    ours = there - {HARD_CODED, DUCKDB}
    assert often == {
        "insert": 2 * len(there),
        "read": 2 * len(NAMES) * len(there),
        "ad hoc": 2 * len(aim.AD_HOC) * (1 + len(ours)),
        "concurrent": 2 * len(there),
    }
    assert all(row["checked"] for row in measured if row["measure"] == "concurrent")
    assert all(row["events/s"] for row in measured if row["measure"] in ("insert", "concurrent"))
    assert all(row["reads/s"] for row in measured if row["measure"] != "insert")
    assert [name for name, _ in plot.aim(rows)] == [
        "insert",
        "read-200",
        "read-50",
        "concurrent-200",
        "concurrent-50",
    ]


def test_a_program_that_forgets_a_batch_ends_aim(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = HardCoded.insert

    def forgetful(self: HardCoded, batch: pa.Table) -> None:
        whole(self, batch.slice(1))

    monkeypatch.setattr(HardCoded, "insert", forgetful)
    with pytest.raises(AssertionError, match="hard-coded is wrong in q"):
        list(aim.run(silent, AIM))


def test_partial_sums_are_added_up_and_stay_right(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(HardCoded, "LEAST", 40)
    calls = Calls(20, 100)
    system, reference = HardCoded(tmp_path, calls.customers()), Reference(calls)
    lane = aim.Lane(system)
    for number in range(12):
        lane.insert(calls.batch(number))
        aim.check(lane, reference)
    assert system._rows < 12 * 20
    system.close()
    reference.close()


def test_a_read_between_two_batches_is_found_out() -> None:
    calls = Calls(50, 300)
    reference = Reference(calls)

    def read(view: str, batches: int, committed: int, begun: int) -> Seen:
        return Seen(kept=[Read(view, reference.answer(view, batches), committed, begun)])

    assert aim.witnessed("it", read("q5", 5, 1, 2), 4, reference) == 1
    assert aim.witnessed("it", read("q5", 6, 1, 2), 4, reference) == 1
    for batches in (4, 7):  # stale, and from the future
        with pytest.raises(AssertionError, match="it read q5 as it is after no whole number of batches from 5 to 6"):
            aim.witnessed("it", read("q5", batches, 1, 2), 4, reference)
    half = Calls(50, 150)
    torn = Reference(half)
    with pytest.raises(AssertionError, match="no whole number"):
        aim.witnessed("it", Seen(kept=[Read("q5", torn.answer("q5", 3), 1, 2)]), 0, reference)
    torn.close()
    reference.close()


def test_answers_that_are_kept_too_long_end_aim(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that forgets to say that a batch has come answers what it knew."""

    class Unmoved(int):
        def __add__(self, other: int) -> Unmoved:
            return self

    made = HardCoded.__init__

    def stubborn(self: HardCoded, folder: Path, customers: pa.Table) -> None:
        made(self, folder, customers)
        self._batches = Unmoved(0)

    monkeypatch.setattr(HardCoded, "__init__", stubborn)
    chosen = aim.Options(("concurrent",), (HARD_CODED,), (50,), 300, 300, (0,), seconds=0.3)
    with pytest.raises(AssertionError, match=r"hard-coded (read|is wrong in) q"):
        list(aim.run(silent, chosen))


def test_calls_are_the_same_for_the_same_seed() -> None:
    calls = Calls(1_000, 5_000)
    batch = calls.batch(3)
    assert batch == Calls(1_000, 5_000).batch(3) != calls.batch(4)
    assert batch != Calls(1_000, 5_000, seed=2).batch(3)
    assert calls.customers()["id"].to_pylist() == list(range(1_000))
    weeks = Counter(batch["week"].to_pylist())
    assert set(weeks) == {WEEK - 1, WEEK} and weeks[WEEK - 1] < 0.05 * 5_000
    busy = (batch["entity_id"].to_numpy() < 100).mean()
    assert 0.5 < busy < 0.6
    far = batch["long_distance"].to_numpy(zero_copy_only=False)
    assert (batch["local_calls"].is_null().to_numpy(zero_copy_only=False) == far).all() and 0.2 < far.mean() < 0.4
    both = batch["long_distance_cost"].to_numpy() + batch["local_cost"].to_numpy()
    assert np.array_equal(both, batch["cost"].to_numpy())


def test_claims_of_aim_are_judged_by_what_was_measured() -> None:
    def rows(eager: int, by_hand: int, reads: float) -> Rows:
        inserts = {ON_QUERY: 100, EVERY_EPOCH: eager, HARD_CODED: by_hand}
        out = [aim._row("insert", "c", name, entities=10, **{"processor ms": ms}) for name, ms in inserts.items()]
        for entities, ms in ((10, 1.0), (100, reads)):
            out.append(aim._row("read", f"q1, {entities}", ON_QUERY, entities=entities, **{"processor ms": ms}))
        return out

    def told(rows: Rows) -> list[str]:
        return [str(row["note"]).partition(":")[0] for row in aim.claims(rows)]

    assert told(rows(100, 80, 1.9)) == ["holds"] * 3
    assert told(rows(99, 79, 2.1)) == ["DOES NOT HOLD"] * 3
    assert told([aim._row("insert", "c", ON_QUERY, note="absent: HW264")]) == []


# -- one thread inserts, another one reads ---------------------------------------------------------------------------


def test_inserts_keep_their_pace_and_some_reads_are_kept() -> None:
    done: list[int] = []
    rows = pa.table({"n": [1]})

    def read(_: str) -> pa.Table:
        time.sleep(0.001)
        return rows

    seen = insert_and_read(done.append, read, ("a", "b"), pause=0.1, seconds=1.0, keep=3)
    assert done == list(range(seen.inserted))
    assert 3 <= seen.inserted <= 10  # ten, but on a machine that has much else to do
    assert {one.view for one in seen.kept} == {"a", "b"} and len(seen.kept) == 6 <= len(seen.times)
    assert all(0 <= one.committed <= one.begun <= seen.inserted for one in seen.kept)
    assert any(one.committed > 0 for one in seen.kept)


def test_what_an_insert_raises_is_not_lost() -> None:
    def insert(_: int) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        insert_and_read(insert, lambda _: pa.table({}), ("a",), pause=0.0, seconds=0.1, keep=1)


# -- split -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Data:
    return Data(tmp_path_factory.mktemp("tpch"), 0.002)


@pytest.fixture(scope="module")
def more(tmp_path_factory: pytest.TempPathFactory) -> Data:
    """As little as Q20 has rows for."""
    return Data(tmp_path_factory.mktemp("tpch"), 0.02)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, data: Data) -> None:
    monkeypatch.setattr(split, "Data", lambda *_: data)


@pytest.mark.usefixtures("made")
def test_all_figures_of_split_are_taken() -> None:
    rows = list(figures("split", list(split.run(silent, SPLIT))).values())
    measured = [row for row in rows if row["figure"] != "claim" and not str(row.get("note")).startswith("absent")]
    there = {row["system"] for row in measured if row["figure"] == "10"}
    assert there >= {EVERY_EPOCH, MANUAL, HARD_CODED, DUCKDB}
    for query in SPLIT.queries:
        of = [row for row in measured if row["query"] == query]
        assert {(row["figure"], row["chunk"], row["system"]) for row in of} == {
            *(("10", 3_000, system) for system in there),
            *(("11", chunk, system) for chunk in (100, 300) for system in there),
            *(
                (mix, 100, one)
                for mix in ("write-heavy", "read-heavy")
                for one in there & {ON_QUERY, EVERY_EPOCH, AUTO}
            ),
        }
    assert all(row["lines/s"] and row["insert p50 ms"] and row["read p50 ms"] for row in measured)
    assert all(row["queries/s"] and row["mix ms"] for row in measured if row["figure"] != "10")
    names = [name for name, _ in plot.split(rows)]
    assert names == ["figure-10-0.002", "figure-11-0.002-100", "figure-11-0.002-300"]


@pytest.mark.usefixtures("made")
def test_a_program_that_forgets_lines_ends_split(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = SplitHardCoded.insert

    def forgetful(self: SplitHardCoded, lines: pa.Table) -> None:
        whole(self, lines.slice(5))

    monkeypatch.setattr(SplitHardCoded, "insert", forgetful)
    chosen = split.Options(("10",), (0.002,), ("q01",), (HARD_CODED,), chunk=3_000)
    with pytest.raises(AssertionError, match="q01: hard-coded is wrong after"):
        list(split.run(silent, chosen))


@pytest.mark.parametrize("name", split.QUERIES)
def test_programs_by_hand_add_up_and_stay_right(
    name: str, more: Data, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(SplitHardCoded, "LEAST", 3)
    query = split.streamed(name, more)
    lane = split.Lane(SplitHardCoded(tmp_path, query))
    answered = 0
    for _ in range(6):
        lane.insert(query, 20_000)
        split.check(query, [lane])
        answered += len(bag(lane.system.read()))
    assert answered, "there is something to compare"
    lane.system.close()


@pytest.mark.usefixtures("made")
def test_a_system_that_takes_too_long_is_stopped_and_says_so(data: Data) -> None:
    chosen = split.Options(("10",), (0.002,), ("q06",), (EVERY_EPOCH, HARD_CODED), chunk=1_000, limit=0.0)
    rows = list(split.run(silent, chosen))
    lines = data.table("lineitem", ["l_orderkey"]).num_rows
    assert [row["note"] for row in rows] == [f"stopped after 1,000 of {lines:,} lines"] * 2


def test_stages_have_fewer_chunks_where_lines_are_few() -> None:
    stages = [split.Stage("11", 100, 1, 40, 10, 1), split.Stage("write-heavy", 100, 20, 40, 20, 1)]
    assert split.fitting(stages, 100_000) == stages
    [first, second] = split.fitting(stages, 5_050)
    assert (first.warm_up, first.chunks) == (0, 18) and (second.warm_up, second.chunks) == (9, 20)


def test_claims_of_split_are_judged_by_what_was_measured() -> None:
    def rows(lazy: float, auto: float) -> Rows:
        out: Rows = []
        for case in ("q01", "q15"):
            slower = lazy if case == "q15" else 1.0
            out += [
                {
                    "figure": "10",
                    "case": case,
                    "system": ON_QUERY,
                    "lines/s": 1,
                    "insert p50 ms": 7,
                    "insert processor ms": 100 / slower,
                },
                {
                    "figure": "10",
                    "case": case,
                    "system": EVERY_EPOCH,
                    "lines/s": 1,
                    "insert p50 ms": 7,
                    "insert processor ms": 100,
                },
            ]
            for mix, ms in (("write-heavy", (5.0, 10.0)), ("read-heavy", (10.0, 5.0))):
                for system, one in zip((ON_QUERY, EVERY_EPOCH, AUTO), (*ms, 5.0 * auto), strict=True):
                    out.append(
                        {
                            "figure": mix,
                            "case": case,
                            "system": system,
                            "lines/s": 1,
                            "mix ms": 7,
                            "mix processor ms": one,
                        }
                    )
        return out

    def told(rows: Rows) -> list[str]:
        return [str(row["note"]).partition(":")[0] for row in split.claims(rows)]

    assert told(rows(0.96, 1.19)) == ["holds"] * 3
    assert told(rows(0.94, 1.21)) == ["DOES NOT HOLD"] * 3
    assert told([{"figure": "10", "case": "q01", "system": ON_QUERY, "note": "absent"}]) == []


def test_both_suites_run_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["aim", "--entities", "50", "--events", "300", "--batch", "300", "--measures", "insert"]
    assert main([*arguments, "--systems", f"{EVERY_EPOCH},{HARD_CODED}", "--output", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert "50 customers, batches of 300" in said.out
    assert len(list(tmp_path.glob("aim-*.json"))) == 1 and len(list(tmp_path.glob("aim-*-insert.svg"))) == 1
