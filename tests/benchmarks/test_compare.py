"""`benchmarks.run compare`: rows are matched, times have ratios, and what is no file of figures is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.compare import IDENTITY, CannotCompare, compare
from benchmarks.run import SUITES, main

MACHINE = {"commit": "abc1234", "date": "2026-01-01", "duckdb": "2.0.0"}


def figures(file: Path, rows: list[dict[str, object]], suite: str = "pipeline", **machine: str) -> Path:
    file.write_text(json.dumps({"suite": suite, "machine": {**MACHINE, **machine}, "rows": rows}))
    return file


def row(system: str, p50: float | None, state: float | None = None) -> dict[str, object]:
    return {"view": "q3", "changes": 100, "system": system, "p50 ms": p50, "state MiB": state}


def cells(table: str) -> list[list[str]]:
    return [line.split() for line in table.splitlines() if line.startswith("q3")]


def test_every_suite_says_which_columns_identify_a_row() -> None:
    assert set(IDENTITY) == set(SUITES)


def test_rows_are_matched_whatever_their_order(tmp_path: Path) -> None:
    a = figures(tmp_path / "a.json", [row("inline", 10.0), row("driver", 40.0, 5.0)])
    b = figures(tmp_path / "b.json", [row("driver", 20.0, 6.0), row("inline", 15.0)], commit="def5678")
    said = compare(a, b)
    assert "commit abc1234" in said and "commit def5678" in said and "not measured on the same" not in said
    assert cells(said) == [
        ["q3", "100", "inline", "p50", "ms", "10.00", "15.00", "1.50"],
        ["q3", "100", "driver", "p50", "ms", "40.00", "20.00", "0.50"],
        ["q3", "100", "driver", "state", "MiB", "5.00", "6.00", "–"],
    ]


def test_a_row_of_one_file_only_is_shown_without_a_ratio(tmp_path: Path) -> None:
    a = figures(tmp_path / "a.json", [row("inline", 10.0)])
    b = figures(tmp_path / "b.json", [row("driver", 0.0)], duckdb="2.1.0")
    said = compare(a, b)
    assert "not measured on the same: duckdb (2.0.0, 2.1.0)" in said
    assert cells(said) == [
        ["q3", "100", "inline", "p50", "ms", "10.00", "–", "–"],
        ["q3", "100", "driver", "p50", "ms", "–", "0.00", "–"],
    ]


def test_suites_that_differ_are_refused(tmp_path: Path) -> None:
    a = figures(tmp_path / "a.json", [row("inline", 10.0)])
    b = figures(tmp_path / "b.json", [{"changes": 10}], suite="spine")
    with pytest.raises(CannotCompare, match=r"is of suite pipeline, .*of suite spine"):
        compare(a, b)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "is no JSON"),
        ("[]", "is no file of figures"),
        ('{"suite": "pipeline", "rows": []}', "is no file of figures"),
        ('{"suite": "other", "machine": {}, "rows": []}', "suite 'other', which is not one of"),
        ('{"suite": "spine", "machine": {}, "rows": [{"p50 ms": 1}]}', "does not say its changes"),
        ('{"suite": "spine", "machine": {}, "rows": [{"changes": 1}, {"changes": 1}]}', "two rows of 1"),
        ('{"suite": "spine", "machine": {}, "rows": []}', "have no figures"),
    ],
)
def test_an_odd_file_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "odd.json"
    file.write_text(text)
    with pytest.raises(CannotCompare, match=reason):
        compare(file, file)


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = figures(tmp_path / "a.json", [row("inline", 10.0)])
    assert main(["compare", str(a), str(a)]) == 0
    assert "1.00" in capsys.readouterr().out
    assert main(["compare", str(a), str(tmp_path / "none.json")]) == 2
    assert "none.json cannot be read: No such file or directory" in capsys.readouterr().err
