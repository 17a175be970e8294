"""COPY FROM: CSV, JSON and Parquet files into exactly typed rows, and what is said when a file is wrong."""

from __future__ import annotations

import base64
import datetime as dt
import gzip
import json
import os
import random
import time
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headwater import types as t
from headwater.engine import files, files_csv, files_json
from headwater.engine.arrow_types import arrow_schema
from headwater.engine.files import read_file
from headwater.errors import HeadwaterError, NotSupported

SALES = (
    t.Field("id", t.INT, nullable=False),
    t.Field("item", t.STRING),
    t.Field("price", t.Decimal(8, 2)),
    t.Field("at", t.TIMESTAMP),
)
EVERY_TYPE = (
    t.Field("a", t.BOOLEAN),
    t.Field("b", t.BIGINT),
    t.Field("c", t.Decimal(20, 4)),
    t.Field("d", t.DOUBLE),
    t.Field("e", t.FLOAT),
    t.Field("f", t.STRING),
    t.Field("g", t.DATE),
    t.Field("h", t.TIMESTAMP),
    t.Field("i", t.DAY_TIME_INTERVAL),
    t.Field("j", t.YEAR_MONTH_INTERVAL),
    t.Field("k", t.BINARY),
)


def load(
    path: Path | str,
    format: str,
    fields: t.Schema = SALES,
    columns: tuple[str, ...] | None = None,
    **options: object,
) -> list[dict[str, object]]:
    tables = list(read_file(str(path), format, options, fields, relation="sales", columns=columns))
    assert all(table.schema == arrow_schema(fields) for table in tables)
    return [row for table in tables for row in table.to_pylist()]


def refused(path: Path | str, format: str, fields: t.Schema = SALES, **options: object) -> HeadwaterError:
    with pytest.raises(HeadwaterError) as caught:
        load(path, format, fields, **options)
    return caught.value


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "sales.csv"


def csv(file: Path, text: str | bytes) -> Path:
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


# -- CSV ------------------------------------------------------------


def test_columns_are_found_by_the_header_without_case(file: Path) -> None:
    csv(file, "AT,Item,id,price\n2024-05-01 12:00:00,tea,1,2.5\n,,2,\n")
    assert load(file, "csv") == [
        {"id": 1, "item": "tea", "price": Decimal("2.50"), "at": dt.datetime(2024, 5, 1, 12)},
        {"id": 2, "item": None, "price": None, "at": None},
    ]


def test_without_a_header_columns_are_found_by_position(file: Path) -> None:
    csv(file, "1,tea,2.50,2024-05-01\n")
    assert load(file, "csv", header=False)[0]["at"] == dt.datetime(2024, 5, 1)
    csv(file, "tea,1\n")
    rows = load(file, "csv", columns=("item", "id"), header=False)
    assert rows == [{"id": 1, "item": "tea", "price": None, "at": None}]


def test_an_empty_field_is_null_and_a_quoted_one_is_an_empty_string(file: Path) -> None:
    csv(file, 'id,item\n1,\n2,""\n3,NULL\n4,"NULL"\n')
    fields = SALES[:2]
    assert [row["item"] for row in load(file, "csv", fields)] == [None, "", "NULL", "NULL"]
    assert [row["item"] for row in load(file, "csv", fields, null="NULL")] == ["", "", None, "NULL"]


def test_quotes_delimiters_escapes_and_line_breaks(file: Path) -> None:
    fields = SALES[:2]
    csv(file, '\ufeffid,item\r\n1,"say ""hi"", ok"\r\n\r\n2,"two\r\nlines"\r\n3,5" pipe\r\n')
    assert [row["item"] for row in load(file, "csv", fields)] == ['say "hi", ok', "two\r\nlines", '5" pipe']
    csv(file, "id;item\n1;'a;b'\n")
    assert load(file, "csv", fields, delimiter=";", quote="'")[0]["item"] == "a;b"
    csv(file, 'id\titem\n1\t"a \\" b"\n')
    assert load(file, "csv", fields, delimiter="\\t", escape="\\")[0]["item"] == 'a " b'
    csv(file, 'id,item\n1,"x"\n')
    assert load(file, "csv", fields, quote="")[0]["item"] == '"x"'


def test_every_type_in_text(file: Path) -> None:
    csv(
        file,
        "a,b,c,d,e,f,g,h,i,j,k\n"
        "true,-9223372036854775808,1234567890123456.7891,1e-3,0.1,x,0001-01-01,9999-12-31 23:59:59.999999,"
        "1 02:03:04.5,1-6,bytes\n"
        "FALSE, +7 ,1e3,NaN,Infinity, x ,2024-02-29,2024-01-01T00:00:00+02:00,"
        "INTERVAL '-0 00:00:01' DAY TO SECOND,INTERVAL '-0-1' YEAR TO MONTH,\n",
    )
    first, second = load(file, "csv", EVERY_TYPE)
    assert list(first.values()) == [
        True,
        -(2**63),
        Decimal("1234567890123456.7891"),
        0.001,
        0.10000000149011612,
        "x",
        dt.date(1, 1, 1),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
        dt.timedelta(days=1, hours=2, minutes=3, seconds=4.5),
        18,
        b"bytes",
    ]
    nan = second.pop("d")
    assert nan != nan
    assert list(second.values()) == [
        False,
        7,
        Decimal("1000.0000"),
        float("inf"),
        " x ",
        dt.date(2024, 2, 29),
        dt.datetime(2023, 12, 31, 22),
        -dt.timedelta(seconds=1),
        -1,
        None,
    ]


@pytest.mark.parametrize(
    ("type_", "text", "code"),
    [
        (t.BOOLEAN, "yes", "HW324"),
        (t.INT, "abc", "HW324"),
        (t.INT, "1.0", "HW324"),
        (t.INT, "0x10", "HW324"),
        (t.INT, "1_000", "HW324"),
        (t.INT, "2147483648", "HW325"),
        (t.BIGINT, "9" * 5000, "HW325"),
        (t.Decimal(5, 2), "1.555", "HW326"),
        (t.Decimal(5, 2), "1000", "HW325"),
        (t.Decimal(5, 2), "NaN", "HW324"),
        (t.Decimal(5, 2), "1e99999999999999999999", "HW325"),
        (t.DOUBLE, "1;5", "HW324"),
        (t.DOUBLE, "1e400", "HW325"),
        (t.FLOAT, "1e39", "HW325"),
        (t.DATE, "2024-02-30", "HW324"),
        (t.DATE, "01.02.2024", "HW324"),
        (t.DATE, "0000-01-01", "HW324"),
        (t.TIMESTAMP, "2024-01-01 25:00:00", "HW324"),
        (t.TIMESTAMP, "2024-01-01 00:00:00.1234567", "HW326"),
        (t.TIMESTAMP, "0001-01-01 00:00:00+01:00", "HW325"),
        (t.DAY_TIME_INTERVAL, "1 day", "HW324"),
        (t.DAY_TIME_INTERVAL, "999999999999 00:00:00", "HW325"),
        (t.YEAR_MONTH_INTERVAL, "1-12", "HW324"),
    ],
    ids=str,
)
def test_a_field_that_is_no_value_of_its_type(file: Path, type_: t.Type, text: str, code: str) -> None:
    csv(file, f'n,v\n"a\nb",\n2,"{text}"\n')
    error = refused(file, "csv", (t.Field("n", t.STRING), t.Field("v", type_)))
    assert error.code == code
    assert error.message.startswith(f"sales.v {type_}, {file}, line 4: ")
    assert text[:40] in error.message


def test_invalid_utf8_in_a_csv_file(file: Path) -> None:
    csv(file, b"id,item\n1,ok\n2,gr\xfcn\n")
    error = refused(file, "csv", SALES[:2])
    assert error.code == "HW328"
    assert error.message == f"sales.item STRING, {file}, line 3: b'gr\\xfcn' is not valid UTF-8"
    assert refused(csv(file, b"id,\xfc\n1,2\n"), "csv", SALES[:2]).code == "HW328"


def test_null_in_a_not_null_column_of_a_file(file: Path) -> None:
    error = refused(csv(file, "id,item\n1,a\n\n,b\n"), "csv", SALES[:2])
    assert error.code == "HW327"
    assert f"{file}, line 4" in error.message


def test_rows_of_the_wrong_width(file: Path) -> None:
    error = refused(csv(file, 'id,item\n1,"a\nb"\n2,b,c\n'), "csv", SALES[:2])
    assert (error.code, error.message) == ("HW323", f"{file}, line 4 has 3 fields and the first line has 2: '2,b,c'")
    error = refused(csv(file, "1,b,c\n"), "csv", SALES[:2], header=False)
    assert (error.code, error.message) == ("HW323", f"{file}, line 1 has 3 fields and sales needs 2: '1,b,c'")
    assert refused(csv(file, "1\n"), "csv", SALES[:2], header=False).code == "HW323"


def test_a_wrong_header(file: Path) -> None:
    error = refused(csv(file, "id,itm\n1,a\n"), "csv", SALES[:2])
    assert error.code == "HW321"
    assert f"{file}, header: the column item of sales is missing; the columns given are id, itm" in error.message
    assert refused(csv(file, "id,item,colour\n1,a,red\n"), "csv", SALES[:2]).code == "HW322"
    assert refused(csv(file, "id,item,ID\n1,a,1\n"), "csv", SALES[:2]).code == "HW329"
    error = refused(csv(file, "1,a\n2,b\n"), "csv", SALES[:2])
    assert error.hint == "if the first line is not a header, use header = false"


@pytest.mark.parametrize("text", ['id,item\n1,a\n2,"b\n3,c\n', 'id,item\n1,a\n2,"b', 'id,item\n1,5" a\n2,"b\n3,c\n'])
def test_a_quote_that_is_never_closed(file: Path, text: str) -> None:
    error = refused(csv(file, text), "csv", SALES[:2])
    assert error.code == "HW412"
    assert "the row of line 3 is opened and never closed" in error.message


def test_empty_csv_files(file: Path) -> None:
    assert refused(csv(file, ""), "csv").code == "HW413"
    assert load(csv(file, ""), "csv", header=False) == []
    assert load(csv(file, "id,item,price,at"), "csv") == []
    assert load(csv(file, "id,item,price,at\n"), "csv") == []


def test_csv_has_no_form_for_nested_types(file: Path) -> None:
    fields = (t.Field("id", t.INT), t.Field("tags", t.Array(t.STRING)))
    csv(file, "id\n1\n")
    error = refused(file, "csv", fields)
    assert isinstance(error, NotSupported)
    assert error.code == "HW280"
    assert load(file, "csv", fields, columns=("id",)) == [{"id": 1, "tags": None}]


@pytest.mark.parametrize(
    "options",
    [
        {"separator": ";"},
        {"header": "yes"},
        {"delimiter": ""},
        {"delimiter": "||"},
        {"delimiter": "\n"},
        {"delimiter": '"'},
        {"quote": "ß"},
        {"null": None},
    ],
    ids=str,
)
def test_wrong_options(file: Path, options: dict[str, object]) -> None:
    assert refused(csv(file, "id,item\n"), "csv", SALES[:2], **options).code == "HW414"


def test_other_formats_have_no_options(tmp_path: Path) -> None:
    assert refused(csv(tmp_path / "x.json", "{}"), "json", header=True).code == "HW414"


def test_a_row_longer_than_a_block(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_csv, "_BLOCK", 1000)
    lines = [f'{i},"{"x" * (30_000 if i % 50 == 49 else 3)}\n"\n' for i in range(200)]
    csv(file, "id,item\n" + "".join(lines))
    rows = load(file, "csv", SALES[:2])
    assert [row["id"] for row in rows] == list(range(200))
    assert [len(str(row["item"])) for row in rows] == [30_001 if i % 50 == 49 else 4 for i in range(200)]
    csv(file, "id,item\n" + "".join(lines) + "oops,x\n")
    assert "line 402: 'oops'" in refused(file, "csv", SALES[:2]).message


def test_a_string_of_fifty_megabytes_in_each_format(tmp_path: Path) -> None:
    long = "x" * 50_000_000
    (tmp_path / "x.csv").write_text(f"id,item\n1,{long}\n2,b\n")
    (tmp_path / "x.json").write_text(f'{{"id": 1, "item": "{long}"}}\n{{"id": 2, "item": "b"}}\n')
    pq.write_table(pa.table({"id": [1, 2], "item": [long, "b"]}), tmp_path / "x.parquet")
    for format in ("csv", "json", "parquet"):
        rows = load(tmp_path / f"x.{format}", format, SALES[:2])
        assert [(row["id"], len(str(row["item"]))) for row in rows] == [(1, 50_000_000), (2, 1)]


@pytest.mark.parametrize("seed", range(100))
def test_random_csv_files(file: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Quoted and bare fields, any line end, blocks that end anywhere; and the scanner for line numbers agrees."""
    rng = random.Random(seed)
    monkeypatch.setattr(files_csv, "_BLOCK", rng.choice([40, 100, 1000, 1 << 20]))
    fields = (t.Field("a", t.STRING), t.Field("b", t.STRING))
    end = rng.choice(["\n", "\r\n", "\r"])
    rows, lines = [], ["a,b"]
    for _ in range(rng.randint(1, 60)):
        row, written = [], []
        for _ in fields:
            kind = rng.random()
            if kind < 0.2:
                value, raw = None, ""
            elif kind < 0.5:
                value = raw = rng.choice("ab ") + "".join(rng.choice('ab" é') for _ in range(rng.randint(0, 5)))
            else:
                value = "".join(rng.choice('ab",\n\r é') for _ in range(rng.randint(0, 8)))
                raw = '"' + value.replace('"', '""') + '"'
            row.append(value)
            written.append(raw)
        rows.append(dict(zip("ab", row, strict=True)))
        lines.append(",".join(written))
    csv(file, end.join(lines) + rng.choice(["", end, end * 2]))
    assert load(file, "csv", fields) == rows
    assert sum(1 for _ in files_csv.records(str(file), files_csv.CsvOptions())) == len(rows) + 1


def test_two_hundred_thousand_rows_of_csv_are_read_quickly(file: Path) -> None:
    line = "{0},item {0},{0}.25,2024-01-01 00:00:00\n"
    csv(file, "id,item,price,at\n" + "".join(line.format(i) for i in range(200_000)))
    start = time.perf_counter()
    assert sum(table.num_rows for table in read_file(str(file), "csv", {}, SALES, relation="sales")) == 200_000
    assert time.perf_counter() - start < 2


# -- JSON ------------------------------------------------------------


def test_json_lines_and_a_json_array_give_the_same_rows(tmp_path: Path) -> None:
    objects = [
        {"id": 1, "item": "tea", "price": 2.5, "at": "2024-05-01T12:00:00Z"},
        {"ID": 2, "Item": None},
        {"id": 3, "item": 'a "b"\n', "price": "7.25", "at": "2024-05-01"},
    ]
    expected = [
        {"id": 1, "item": "tea", "price": Decimal("2.50"), "at": dt.datetime(2024, 5, 1, 12)},
        {"id": 2, "item": None, "price": None, "at": None},
        {"id": 3, "item": 'a "b"\n', "price": Decimal("7.25"), "at": dt.datetime(2024, 5, 1)},
    ]
    lines = csv(tmp_path / "lines.json", "\n".join(json.dumps(o) for o in objects) + "\n\n")
    array = csv(tmp_path / "array.json", "\ufeff" + json.dumps(objects, indent=2))
    assert load(lines, "json") == expected
    assert load(array, "json") == expected
    assert load(csv(lines, ""), "json") == []
    assert load(csv(lines, "\n\n"), "json") == []
    assert load(csv(array, " [ ] "), "json") == []


def test_every_type_in_json(tmp_path: Path) -> None:
    fields = (
        *EVERY_TYPE,
        t.Field("l", t.Array(t.DATE)),
        t.Field("m", t.Map(t.INT, t.DOUBLE)),
        t.Field("n", t.Struct((("x", t.Decimal(30, 20)), ("y", t.STRING)))),
    )
    row = {
        "a": True,
        "b": 2**63 - 1,
        "c": 1e3,
        "d": 1,
        "e": 0.1,
        "f": "é",
        "g": "2024-01-01",
        "h": "2024-01-01 00:00:00 UTC",
        "i": "0 00:00:01",
        "j": "2-0",
        "k": base64.b64encode(b"\xff").decode(),
        "l": ["2024-01-01", None],
        "m": {"1": 0.5, "2": None},
        "n": {"x": "XX", "Y": "why"},
    }
    text = json.dumps(row).replace('"XX"', "0.12345678901234567890")
    (found,) = load(csv(tmp_path / "x.json", text), "json", fields)
    assert list(found.values()) == [
        True,
        2**63 - 1,
        Decimal("1000.0000"),
        1.0,
        0.10000000149011612,
        "é",
        dt.date(2024, 1, 1),
        dt.datetime(2024, 1, 1),
        dt.timedelta(seconds=1),
        24,
        b"\xff",
        [dt.date(2024, 1, 1), None],
        [(1, 0.5), (2, None)],
        {"x": Decimal("0.12345678901234567890"), "y": "why"},
    ]


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ('{"id": "2"}', "HW324", "sales.id INT, {}, line 3: '2' is a str"),
        ('{"id": 2.0}', "HW324", "line 3"),
        ('{"id": true}', "HW324", "line 3"),
        ('{"id": 3000000000}', "HW325", "line 3: 3000000000 is out of range"),
        ('{"id": 2, "item": 5}', "HW324", "sales.item STRING, {}, line 3: 5 is a int"),
        ('{"id": 2, "price": 1.555}', "HW326", "line 3: 1.555 has more than 2 digits"),
        ('{"id": 2, "price": 1234567}', "HW325", "line 3"),
        ('{"id": 2, "price": [1]}', "HW324", "line 3"),
        ('{"id": 2, "at": "yesterday"}', "HW324", "line 3: 'yesterday' is not a value of TIMESTAMP"),
        ('{"id": 2, "at": 5}', "HW324", "line 3: '5' is not a value of TIMESTAMP"),
        ('{"item": "x"}', "HW327", "sales.id INT, {}, line 3: NULL"),
        ('{"id": 2, "colour": 1}', "HW322", "{}, line 3: there is no column 'colour'"),
        ('{"id": 2, "id": 3}', "HW329", "{}, line 3: the key 'id' is there twice"),
        ('{"id": 2, "ID": 3}', "HW329", "{}, line 3"),
        ('{"id": 2', "HW415", "{}, line 3: not JSON"),
        ("[1]", "HW320", "{}, line 3: [1] is not an object"),
        ("5", "HW320", "{}, line 3: 5 is not an object"),
        ('{"id": ' + "9" * 5000 + "}", "HW415", "line 3"),
        ('{"id": 2, "item": "\\ud800"}', "HW328", "line 3"),
        ('{"id": 2, "item": ' + "[" * 100_000 + "}", "HW415", "line 3"),
    ],
    ids=lambda parameter: parameter[:30],
)
def test_a_wrong_line_of_json(tmp_path: Path, line: str, code: str, said: str) -> None:
    path = csv(tmp_path / "x.json", f'{{"id": 1}}\n\n{line}\n{{"id": 4}}\n')
    error = refused(path, "json")
    assert error.code == code
    assert said.format(path) in error.message
    assert len(error.message) < 400


def test_two_objects_on_a_line_or_one_on_two(tmp_path: Path) -> None:
    path = csv(tmp_path / "x.json", '{"id": 1}\n{"id": 2} {"id": 3}\n')
    assert f"{path}, line 2: not JSON: Extra data" in refused(path, "json").message
    path = csv(tmp_path / "x.json", '{"id": 1}\n{"id": \n2}\n')
    assert f"{path}, line 2: not JSON" in refused(path, "json").message


def test_invalid_utf8_in_json(tmp_path: Path) -> None:
    path = csv(tmp_path / "x.json", b'{"id": 1, "item": "ok"}\n{"id": 2, "item": "\xff"}\n')
    error = refused(path, "json")
    assert error.code == "HW328"
    assert f"{path}, line 2" in error.message


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ('[\n{"id": 1},\n{"id": "x"}\n]', "HW324", 3),
        ('[\n{"id": 1},\n5\n]', "HW320", 3),
        ('[\n{"id": 1}\n{"id": 2}\n]', "HW415", 3),
        ('[\n{"id": 1},\n{"id": 2}\n', "HW415", 4),
        ('[\n{"id": 1},\n{"id": \n', "HW415", 4),
        ('[{"id": 1}]\n{"id": 2}', "HW415", 2),
        ('[{"id": 1},\n{"id": 2, "item": "never closed]', "HW415", 2),
    ],
)
def test_a_wrong_array_of_json(tmp_path: Path, text: str, code: str, line: int) -> None:
    path = csv(tmp_path / "x.json", text)
    error = refused(path, "json")
    assert error.code == code
    assert f"{path}, line {line}" in error.message


def test_json_in_small_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_json, "_BLOCK", 37)
    monkeypatch.setattr(files_json, "_ARRAY_ROWS", 7)
    objects = [{"id": i, "item": "é" * (i % 60)} for i in range(300)]
    lines = csv(tmp_path / "lines.json", "\n".join(json.dumps(o, ensure_ascii=False) for o in objects))
    array = csv(tmp_path / "array.json", json.dumps(objects, ensure_ascii=False, indent=1))
    assert load(lines, "json", SALES[:2]) == objects
    assert load(array, "json", SALES[:2]) == objects
    lines.write_text(lines.read_text() + '\n{"id": "x"}')
    assert "line 301:" in refused(lines, "json", SALES[:2]).message


def test_arrow_reads_plain_json_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("read line by line")

    monkeypatch.setattr(files_json, "_objects", never)
    text = '{"ID": 1, "price": 2.5, "at": "2024-05-01 12:00:00", "item": "x"}\n' * 3
    assert len(load(csv(tmp_path / "x.json", text), "json")) == 3


# -- Parquet ------------------------------------------------------------


def test_parquet_by_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table(
        {
            "ITEM": ["a", None, "c"],
            "id": pa.array([1, 2, 3], pa.int64()),
            "at": pa.array([0, 1, 2], pa.timestamp("ms", "UTC")),
            "price": pa.array([Decimal("1.5")] * 3),
        }
    )
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=2)
    expected = [
        {"id": i + 1, "item": item, "price": Decimal("1.50"), "at": dt.datetime(1970, 1, 1, 0, 0, 0, i * 1000)}
        for i, item in enumerate(["a", None, "c"])
    ]
    assert load(tmp_path / "x.parquet", "parquet") == expected
    monkeypatch.setattr(files, "CHUNK_ROWS", 1)
    chunks = list(read_file(str(tmp_path / "x.parquet"), "parquet", {}, SALES, relation="sales"))
    assert [chunk.num_rows for chunk in chunks] == [1, 1, 1]


def test_parquet_values_that_do_not_fit_name_the_row(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"id": [*range(10), 2**40], "item": ["x"] * 11}), path, row_group_size=3)
    error = refused(path, "parquet", SALES[:2])
    assert error.code == "HW325"
    assert f"{path}, row 10 (counting from 0): 1099511627776" in error.message
    pq.write_table(pa.table({"id": ["1"], "item": ["x"]}), path)
    assert refused(path, "parquet", SALES[:2]).code == "HW324"
    pq.write_table(pa.table({"id": [1]}), path)
    error = refused(path, "parquet", SALES[:2])
    assert error.code == "HW321"
    assert str(path) in error.message
    pq.write_table(pa.table({"id": [1], "item": ["x"], "more": [1]}), path)
    assert refused(path, "parquet", SALES[:2]).code == "HW322"


def test_spark_int96_timestamps_are_not_cut_to_nanoseconds(tmp_path: Path) -> None:
    moments = [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)]
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"v": moments}), path, use_deprecated_int96_timestamps=True)
    found = load(path, "parquet", (t.Field("v", t.TIMESTAMP),))
    assert [row["v"] for row in found] == moments


def test_damaged_parquet_files(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(
        pa.table({"id": list(range(10_000)), "item": [f"i{i}" for i in range(10_000)]}), path, write_page_checksum=True
    )
    whole = path.read_bytes()
    for damaged in (b"", b"PAR1", b"id,item\n1,2\n", whole[: len(whole) // 2], whole[:-10]):
        path.write_bytes(damaged)
        error = refused(path, "parquet", SALES[:2])
        assert error.code == "HW412"
        assert str(path) in error.message
    middle = bytearray(whole)
    middle[1000:1010] = bytes(10)
    path.write_bytes(bytes(middle))
    assert refused(path, "parquet", SALES[:2]).code == "HW412"


# -- paths ------------------------------------------------------------


def test_missing_files(tmp_path: Path) -> None:
    error = refused(tmp_path / "no" / "file.csv", "csv")
    assert error.code == "HW410"
    assert str(tmp_path) in str(error.hint)
    assert refused(tmp_path / "*.csv", "csv").code == "HW410"
    assert refused("s3://bucket/x.csv", "csv").hint == "files on this machine only; copy it here first"
    (tmp_path / "dangling.csv").symlink_to(tmp_path / "nothing")
    assert refused(tmp_path / "dangling.csv", "csv").code == "HW410"


def test_a_path_is_checked_before_the_first_row_is_asked_for() -> None:
    with pytest.raises(HeadwaterError):
        read_file("/no/such/file", "csv", {}, SALES, relation="sales")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_files(file: Path) -> None:
    csv(file, "id\n1\n").chmod(0)
    for format in ("csv", "json", "parquet"):
        assert refused(file, format).code == "HW411"


def test_folders_and_patterns_in_the_order_of_names(tmp_path: Path) -> None:
    fields = SALES[:1]
    folder = tmp_path / "in"
    folder.mkdir()
    assert refused(folder, "csv").code == "HW410"
    for name, number in (("b.csv", 2), ("a.csv", 1), ("c.csv", 3)):
        csv(folder / name, f"id\n{number}\n")
    csv(folder / "_SUCCESS", "")
    csv(folder / ".a.csv.crc", "x")
    csv(folder / "notes.md", "x")
    (folder / "d.csv.gz").write_bytes(gzip.compress(b"id\n4\n"))
    assert [row["id"] for row in load(folder, "csv", fields)] == [1, 2, 3, 4]
    assert [row["id"] for row in load(folder / "[bc].csv", "csv", fields)] == [2, 3]
    assert len(list(read_file(str(folder), "csv", {}, fields, relation="sales"))) == 1
    csv(folder / "b.csv", "id\nx\n")
    assert f"{folder / 'b.csv'}, line 2" in refused(folder, "csv", fields).message
    assert "no json file" in refused(folder, "json", fields).message
    (folder / "sub").mkdir()
    error = refused(folder, "csv", fields)
    assert error.code == "HW410"
    assert "sub" in error.message


def test_compressed_files_and_broken_ones(tmp_path: Path) -> None:
    text = "".join(f'{{"id": {i}}}\n' for i in range(1000)).encode()
    path = tmp_path / "x.json.gz"
    path.write_bytes(gzip.compress(text))
    assert len(load(path, "json", SALES[:1])) == 1000
    path.write_bytes(b"this is not gzip")
    assert refused(path, "json", SALES[:1]).code == "HW412"
    broken = tmp_path / "x.csv.gz"
    broken.write_bytes(b"nor is this")
    assert refused(broken, "csv", SALES[:1]).code == "HW412"


def test_large_files_come_in_chunks(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_csv, "_BLOCK", 1000)
    monkeypatch.setattr(files, "CHUNK_ROWS", 500)
    csv(file, "id\n" + "".join(f"{i}\n" for i in range(5000)))
    chunks = list(read_file(str(file), "csv", {}, SALES[:1], relation="sales"))
    assert all(500 <= chunk.num_rows < 1000 for chunk in chunks[:-1])
    assert [v.as_py() for chunk in chunks for v in chunk.column("id")] == list(range(5000))
