import csv
import datetime as dt
import io
import json
from decimal import Decimal

import pyarrow as pa
import pytest

from headwater.cli.render import Screen, table_lines, width
from headwater.serve.lines import csv_lines, json_lines, jsonl_lines


def shown(table: pa.Table, screen: Screen | None = None) -> str:
    return "\n".join(table_lines(table, screen))


def test_columns_are_aligned_numbers_to_the_right_and_null_is_visible():
    table = pa.table({"name": ["anna", None], "total": [12, 3], "share": pa.array([Decimal("0.80"), None])})
    assert shown(table) == (
        "name | total | share\n"
        "-----+-------+------\n"
        "anna |    12 |  0.80\n"
        "NULL |     3 |  NULL"
    )  # fmt: skip


def test_wide_and_combining_characters_keep_the_alignment():
    table = pa.table({"city": ["東京", "Zu\u0308rich", "Rome"], "n": [1, 2, 3]})
    lines = shown(table).split("\n")
    assert lines[2:] == ["東京   | 1", "Zu\u0308rich | 2", "Rome   | 3"]
    assert len({width(line) for line in lines}) == 1


def test_a_cell_stays_on_its_line_and_cannot_command_the_terminal():
    assert shown(pa.table({"t": ["a\nb\x1b[2J"]})).endswith("a\\nb\\x1b[2J")


def test_long_cells_are_cut_on_a_terminal_only():
    table = pa.table({"t": ["x" * 100], "n": [1]})
    assert "x" * 100 in shown(table)
    cut = shown(table, Screen(width=30))
    assert all(width(line) <= 30 for line in cut.split("\n"))
    assert "x…" in cut
    assert cut.endswith("| 1")


def test_rows_beyond_what_a_terminal_shows_are_counted():
    table = pa.table({"n": list(range(1005))})
    assert shown(table, Screen(rows=3)).split("\n")[-2:] == ["2", "... 1,002 more rows"]
    assert "more row" not in shown(table)


def test_an_empty_result_still_has_its_header():
    assert shown(pa.table({"a": pa.array([], pa.int32())})) == "a\n-"


EXACT = pa.table(
    {
        "big": pa.array([2**63 - 1], pa.int64()),
        "dec": pa.array([Decimal("12345678901234567890.10")], pa.decimal128(38, 2)),
        "small": pa.array([Decimal("1E-10")], pa.decimal128(12, 12)),
        "dbl": pa.array([0.1 + 0.2]),
        "flt": pa.array([0.1], pa.float32()),
        "nan": pa.array([float("nan")]),
        "inf": pa.array([float("-inf")]),
        "yes": pa.array([True]),
        "day": pa.array([dt.date(2026, 1, 31)]),
        "at": pa.array([dt.datetime(2026, 1, 31, 10, 0, 0, 500)], pa.timestamp("us")),
        "took": pa.array([dt.timedelta(days=-1, seconds=1)], pa.duration("us")),
        "raw": pa.array([b"\x00\xff"]),
        "list": pa.array([[1, None]], pa.list_(pa.int32())),
        "map": pa.array([[("k", Decimal("1.50"))]], pa.map_(pa.string(), pa.decimal128(5, 2))),
        "ints": pa.array([[(1, "x")]], pa.map_(pa.int32(), pa.string())),
        "pair": pa.array([{"x": 1, "y": "é"}], pa.struct([("x", pa.int32()), ("y", pa.string())])),
        "none": pa.array([None], pa.int32()),
    }
)


def test_json_is_exact():
    assert json.loads("".join(json_lines(EXACT))) == [
        {
            "big": 2**63 - 1,
            "dec": "12345678901234567890.10",
            "small": "0.000000000100",
            "dbl": 0.30000000000000004,
            "flt": 0.1,
            "nan": "NaN",
            "inf": "-Infinity",
            "yes": True,
            "day": "2026-01-31",
            "at": "2026-01-31T10:00:00.000500Z",
            "took": "INTERVAL '-0 23:59:59' DAY TO SECOND",
            "raw": "AP8=",
            "list": [1, None],
            "map": {"k": "1.50"},
            "ints": [[1, "x"]],
            "pair": {"x": 1, "y": "é"},
            "none": None,
        }
    ]


def test_csv_is_exact():
    header, row = csv.reader(io.StringIO("\n".join(csv_lines(EXACT))))
    assert header == EXACT.column_names
    assert row == [
        "9223372036854775807",
        "12345678901234567890.10",
        "0.000000000100",
        "0.30000000000000004",
        "0.1",
        "NaN",
        "-Infinity",
        "true",
        "2026-01-31",
        "2026-01-31 10:00:00.000500",
        "INTERVAL '-0 23:59:59' DAY TO SECOND",
        "00ff",
        "[1, null]",
        '{"k": "1.50"}',
        '[[1, "x"]]',
        '{"x": 1, "y": "é"}',
        "",
    ]


@pytest.mark.parametrize(
    ("value", "field"),
    [(None, ""), ("", '""'), ("a,b", '"a,b"'), ('say "hi"', '"say ""hi"""'), ("a\nb", '"a\nb"'), (" a", '" a"')],
)
def test_csv_tells_null_from_the_empty_string_and_quotes_where_needed(value, field):
    assert list(csv_lines(pa.table({"t": pa.array([value], pa.string())}))) == ["t", field]


def test_json_of_no_rows_is_an_empty_array_and_lines_are_one_object_a_row():
    table = pa.table({"n": [1, 2]})
    assert list(jsonl_lines(table)) == ['{"n": 1}', '{"n": 2}']
    assert list(json_lines(table.slice(0, 0))) == ["[]"]


def test_columns_of_one_name_all_reach_the_json():
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], names=["a", "a", "a_2"])
    assert list(jsonl_lines(table)) == ['{"a": 1, "a_3": 2, "a_2": 3}']


def test_names_with_per_cent_signs_are_names():
    table = pa.table({"50%": [1, None], "%s": ["a%d", None], "%(x)s": [True, False]})
    assert [json.loads(line) for line in jsonl_lines(table)] == table.to_pylist()
