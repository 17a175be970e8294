"""Rows into Arrow: what each type takes, what is refused and how it is said."""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import random
import struct
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from headwater import types as t
from headwater.engine.arrow_types import (
    arrow_schema,
    arrow_type,
    from_storage,
    storage_arrow_schema,
    to_storage,
)
from headwater.engine.files import read_file
from headwater.engine.ingest import rows_to_arrow
from headwater.errors import UserError

ORDERS = (
    t.Field("id", t.BIGINT, nullable=False),
    t.Field("customer", t.STRING),
    t.Field("price", t.Decimal(10, 2)),
    t.Field("at", t.TIMESTAMP),
)
NOON = dt.datetime(2024, 5, 1, 12, 0, 0, 250000)
POINT = t.Struct((("x", t.INT), ("y", t.DOUBLE)))


def orders(rows: object, columns: tuple[str, ...] | None = None) -> pa.Table:
    return rows_to_arrow(rows, ORDERS, relation="orders", columns=columns)


def one(value: object, type_: t.Type) -> object:
    """The value of a column `v` that was given as a list of one dict."""
    return rows_to_arrow([{"v": value}], (t.Field("v", type_),), relation="r").column("v")[0].as_py()


def of_arrow(array: pa.Array, type_: t.Type) -> pa.ChunkedArray:
    return rows_to_arrow(pa.table({"v": array}), (t.Field("v", type_),), relation="r").column("v")


def refused(rows: object, fields: t.Schema = ORDERS, columns: tuple[str, ...] | None = None) -> UserError:
    with pytest.raises(UserError) as caught:
        rows_to_arrow(rows, fields, relation="orders", columns=columns)
    return caught.value


def refused_value(value: object, type_: t.Type) -> UserError:
    return refused([{"v": None}, {"v": value}], (t.Field("v", type_),))


def refused_arrow(array: pa.Array, type_: t.Type) -> UserError:
    return refused(pa.table({"v": array}), (t.Field("v", type_),))


def _name(parameter: object) -> str:
    """A short name for a parameter in a test's name."""
    if isinstance(parameter, pa.Array):
        return str(parameter.type)
    return str(parameter) if isinstance(parameter, t.Type | str) else type(parameter).__name__


# -- the forms rows come in ------------------------------------------------------------

ROWS = [(1, "ann", Decimal("9.50"), NOON), (2, None, None, None)]
DICTS = [dict(zip(("id", "customer", "price", "at"), row, strict=True)) for row in ROWS]
EXPECTED = pa.Table.from_pylist(DICTS, arrow_schema(ORDERS))
Order = collections.namedtuple("Order", ["at", "price", "customer", "id"])


@pytest.mark.parametrize(
    "rows",
    [
        DICTS,
        ROWS,
        [list(row) for row in ROWS],
        (row for row in ROWS),
        iter(DICTS),
        [ROWS[0], DICTS[1]],
        [Order(*reversed(row)) for row in ROWS],
        [{key.upper(): value for key, value in row.items()} for row in DICTS],
        [DICTS[0], {key.title(): value for key, value in DICTS[1].items()}],
        EXPECTED,
        EXPECTED.to_batches()[0],
        EXPECTED.to_reader(),
        EXPECTED.select(["at", "price", "customer", "id"]),
        EXPECTED.rename_columns(["ID", "Customer", "PRICE", "At"]),
        [EXPECTED.slice(0, 1), EXPECTED.slice(1)],
        (batch for batch in EXPECTED.to_batches(max_chunksize=1)),
    ],
    ids=_name,
)
def test_every_form_of_rows_gives_the_same_table(rows: object) -> None:
    table = orders(rows)
    assert table.schema.equals(arrow_schema(ORDERS), check_metadata=True)
    assert table.to_pylist() == EXPECTED.to_pylist()


def test_one_dict_and_one_named_tuple_are_one_row() -> None:
    assert orders(DICTS[0]).to_pylist() == DICTS[:1]
    assert orders(Order(*reversed(ROWS[0]))).to_pylist() == DICTS[:1]


def test_no_rows_is_an_empty_table_of_the_schema() -> None:
    for nothing in ([], (), iter([]), EXPECTED.slice(0, 0)):
        table = orders(nothing)
        assert table.num_rows == 0
        assert table.schema == arrow_schema(ORDERS)


def test_an_arrow_table_of_the_right_schema_is_not_copied() -> None:
    table = pa.table({"id": pa.array(range(1000), pa.int64())})
    out = rows_to_arrow(table, (t.Field("id", t.BIGINT, nullable=False),), relation="r")
    assert out.column(0).chunk(0).buffers()[1].address == table.column(0).chunk(0).buffers()[1].address


def test_columns_not_listed_are_null() -> None:
    assert orders([("x", 7)], columns=("CUSTOMER", "id")).to_pylist() == [
        {"id": 7, "customer": "x", "price": None, "at": None}
    ]
    assert orders(pa.table({"id": [7]}), columns=("id",)).column("at").null_count == 1


def test_pandas_frames() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(DICTS)
    assert orders(frame).to_pylist() == EXPECTED.to_pylist()
    zoned = pd.DataFrame({"v": pd.to_datetime(["2024-05-01 12:00"]).tz_localize("Europe/Berlin")})
    fields = (t.Field("v", t.TIMESTAMP),)
    assert rows_to_arrow(zoned, fields, relation="r").to_pylist() == [{"v": dt.datetime(2024, 5, 1, 10)}]
    gaps = pd.DataFrame({"v": [1, None]})
    error = refused(gaps, (t.Field("v", t.INT),))
    assert error.code == "HW324"
    assert "Int64" in str(error.hint)
    assert rows_to_arrow(gaps.astype("Int64"), (t.Field("v", t.INT),), relation="r").to_pylist() == [
        {"v": 1},
        {"v": None},
    ]
    assert rows_to_arrow(gaps, (t.Field("v", t.DOUBLE),), relation="r").to_pylist() == [{"v": 1.0}, {"v": None}]
    mixed = pd.DataFrame({"v": pd.Series([1, "x"], dtype=object)})
    assert "row 1" in refused(mixed, (t.Field("v", t.INT),)).message
    assert refused(frame["id"]).code == "HW320"
    assert rows_to_arrow(frame.iloc[:0], ORDERS, relation="r").num_rows == 0
    categories = pd.DataFrame({"v": pd.Series(["a", None, "a"], dtype="category")})
    strings = (t.Field("v", t.STRING),)
    assert rows_to_arrow(categories, strings, relation="r").column(0).to_pylist() == ["a", None, "a"]


def test_values_taken_out_of_pandas_and_numpy() -> None:
    pd, np = pytest.importorskip("pandas"), pytest.importorskip("numpy")
    assert one(np.int16(5), t.BIGINT) == 5
    assert one(np.float32(0.5), t.DOUBLE) == 0.5
    assert one(np.bool_(True), t.BOOLEAN) is True
    assert one(pd.NA, t.INT) is None
    assert one(pd.NaT, t.TIMESTAMP) is None
    assert one(np.datetime64("NaT"), t.TIMESTAMP) is None
    assert one(pd.Timestamp("2024-01-01 05:00", tz="Asia/Tokyo"), t.TIMESTAMP) == dt.datetime(2023, 12, 31, 20)
    assert one(np.datetime64("2024-01-01T00:00:00.000001"), t.TIMESTAMP) == dt.datetime(2024, 1, 1, 0, 0, 0, 1)
    assert one(np.datetime64("2024-01-01", "D"), t.DATE) == dt.date(2024, 1, 1)
    assert one(np.array([1, 2]), t.Array(t.INT)) == [1, 2]
    assert refused_value(np.bool_(True), t.INT).code == "HW324"
    assert refused_value(pd.Timestamp("2024-01-01 00:00:00.000000001"), t.TIMESTAMP).code == "HW326"
    assert refused_value(np.datetime64("2024-01-01T00:00:00.000000001"), t.TIMESTAMP).code == "HW326"


def test_polars_frames() -> None:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(
        {"id": [1, 2], "customer": ["ann", None], "price": [Decimal("9.50"), None], "at": [NOON, None]}
    )
    assert orders(frame).to_pylist() == EXPECTED.to_pylist()
    assert orders(frame.lazy()).to_pylist() == EXPECTED.to_pylist()
    nested = pl.DataFrame({"v": [["a", None], [], None], "w": [{"x": 1, "y": 0.5}, None, {"x": None, "y": 2.0}]})
    fields = (t.Field("v", t.Array(t.STRING)), t.Field("w", POINT))
    out = rows_to_arrow(nested, fields, relation="r")
    assert out.schema == arrow_schema(fields)
    assert out.column("v").to_pylist() == [["a", None], [], None]
    assert out.column("w").to_pylist()[0] == {"x": 1, "y": 0.5}
    assert refused(frame["id"]).code == "HW320"


# -- the wrong rows ------------------------------------------------------------


def test_a_missing_column() -> None:
    error = refused([DICTS[0], {"id": 3, "customer": "x", "price": None}])
    assert error.code == "HW321"
    assert "column at of orders is missing" in error.message
    assert "row 1 (counting from 0)" in error.message
    assert refused(EXPECTED.drop_columns(["at"])).code == "HW321"


def test_an_extra_column() -> None:
    error = refused([DICTS[0], DICTS[1] | {"colour": "red"}])
    assert error.code == "HW322"
    assert "'colour'" in error.message
    assert "row 1" in error.message
    assert refused(EXPECTED.append_column("colour", [["red", "blue"]])).code == "HW322"
    assert refused([(1,)], columns=("idd",)).code == "HW322"
    assert refused([{"id": 1, "customer": None}], columns=("id",)).code == "HW322"


def test_a_row_of_the_wrong_length() -> None:
    error = refused([ROWS[0], (3, "x")])
    assert error.code == "HW323"
    assert "row 1 (counting from 0) for orders has 2 values, and 4 are needed: id, customer, price, at" in error.message


@pytest.mark.parametrize(
    "rows", ["ab", b"ab", 5, None, 5.5, [1, 2], ["ab"], [None], (1, "ann"), [{1: 2}], [{1, 2}], [dt.date(2024, 1, 1)]]
)
def test_what_is_not_rows(rows: object) -> None:
    error = refused(rows)
    assert error.code == "HW320"
    assert "orders" in error.message


def test_a_dict_of_columns_is_not_rows() -> None:
    error = refused({"id": [1, 2], "customer": ["a", "b"], "price": [None, None], "at": [None, None]})
    assert error.code == "HW320"
    assert "dict of columns" in error.message
    assert "pyarrow.table" in str(error.hint)
    arrays = (t.Field("v", t.Array(t.INT)),)
    assert rows_to_arrow({"v": [1, 2]}, arrays, relation="r").to_pylist() == [{"v": [1, 2]}]


def test_a_column_given_twice() -> None:
    assert refused([DICTS[0] | {"ID": 5}]).code == "HW329"
    assert refused(pa.Table.from_arrays([EXPECTED.column(0)] * 2, names=["id", "Id"])).code == "HW329"
    assert refused([], columns=("id", "ID")).code == "HW329"


def test_null_in_a_not_null_column() -> None:
    error = refused([ROWS[0], (None, "x", None, None)])
    assert (error.code, error.message) == (
        "HW327",
        "orders.id BIGINT, row 1 (counting from 0): NULL in a column that is NOT NULL",
    )
    chunked = pa.chunked_array([[1, 2], [3, None]])
    assert "row 3 " in refused(pa.table({"v": chunked}), (t.Field("v", t.BIGINT, nullable=False),)).message
    assert refused([("x",)], columns=("customer",)).code == "HW327"


def test_an_error_names_relation_column_row_and_a_cut_value() -> None:
    rows = [(i, "x", None, None) for i in range(5000)]
    rows[4321] = (4321, b"y" * 10_000, None, None)  # type: ignore[assignment]
    error = refused(rows)
    assert error.message.startswith("orders.customer STRING, row 4321 (counting from 0): b'yyyy")
    assert len(error.message) < 200
    assert error.hint == "use value.decode()"


# -- the types: what each takes ------------------------------------------------------------

TOKYO = dt.timezone(dt.timedelta(hours=9))


@pytest.mark.parametrize(
    ("type_", "given", "expected"),
    [
        (t.BOOLEAN, True, True),
        (t.TINYINT, -128, -128),
        (t.BIGINT, 2**63 - 1, 2**63 - 1),
        (t.Decimal(5, 2), Decimal("1.5"), Decimal("1.50")),
        (t.Decimal(5, 2), Decimal("1.500000"), Decimal("1.50")),
        (t.Decimal(5, 2), Decimal("1E+2"), Decimal("100.00")),
        (t.Decimal(5, 2), 999, Decimal("999.00")),
        (t.Decimal(38, 0), 10**38 - 1, Decimal(10**38 - 1)),
        (t.Decimal(38, 38), Decimal("-0." + "9" * 38), Decimal("-0." + "9" * 38)),
        (t.DOUBLE, 0.1, 0.1),
        (t.DOUBLE, 2**53, float(2**53)),
        (t.DOUBLE, float("inf"), float("inf")),
        (t.FLOAT, 0.1, struct.unpack("f", struct.pack("f", 0.1))[0]),
        (t.FLOAT, float("-inf"), float("-inf")),
        (t.FLOAT, 2**24, float(2**24)),
        (t.STRING, "", ""),
        (t.STRING, "grün 😀 \0", "grün 😀 \0"),
        (t.BINARY, b"\xff\0", b"\xff\0"),
        (t.BINARY, bytearray(b"ab"), b"ab"),
        (t.DATE, dt.date.min, dt.date.min),
        (t.DATE, dt.date.max, dt.date.max),
        (t.TIMESTAMP, dt.datetime.max, dt.datetime.max),
        (t.TIMESTAMP, dt.datetime.min, dt.datetime.min),
        (t.TIMESTAMP, dt.datetime(2024, 1, 1, 3, tzinfo=TOKYO), dt.datetime(2023, 12, 31, 18)),
        (t.TIMESTAMP, dt.date(2024, 1, 1), dt.datetime(2024, 1, 1)),
        (t.DAY_TIME_INTERVAL, dt.timedelta(days=-1, microseconds=1), dt.timedelta(days=-1, microseconds=1)),
        (t.DAY_TIME_INTERVAL, 1_500_000, dt.timedelta(seconds=1.5)),
        (t.YEAR_MONTH_INTERVAL, -13, -13),
        (t.Array(t.Decimal(3, 1)), (1, Decimal("2.5"), None), [Decimal("1.0"), Decimal("2.5"), None]),
        (t.Map(t.STRING, t.INT), {"a": 1, "b": None}, [("a", 1), ("b", None)]),
        (t.Map(t.STRING, t.INT), (("a", 1),), [("a", 1)]),
        (POINT, {"Y": 1, "x": None}, {"x": None, "y": 1.0}),
        (POINT, (3, 0.5), {"x": 3, "y": 0.5}),
        (t.Array(t.Array(t.INT)), [[1], [], None], [[1], [], None]),
        (t.NULL, None, None),
    ],
    ids=_name,
)
def test_values_that_are_taken(type_: t.Type, given: object, expected: object) -> None:
    assert one(given, type_) == expected
    assert one(None, type_) is None


@pytest.mark.parametrize(
    ("type_", "given", "code"),
    [
        (t.BOOLEAN, 1, "HW324"),
        (t.BOOLEAN, "true", "HW324"),
        (t.INT, "5", "HW324"),
        (t.INT, True, "HW324"),
        (t.INT, 5.0, "HW324"),
        (t.INT, Decimal(5), "HW324"),
        (t.INT, 2**31, "HW325"),
        (t.INT, -(2**31) - 1, "HW325"),
        (t.BIGINT, 2**63, "HW325"),
        (t.BIGINT, 10**6000, "HW325"),
        (t.TINYINT, 128, "HW325"),
        (t.Decimal(5, 2), 1.5, "HW324"),
        (t.Decimal(5, 2), float("nan"), "HW324"),
        (t.Decimal(5, 2), Decimal("NaN"), "HW324"),
        (t.Decimal(5, 2), Decimal("sNaN"), "HW324"),
        (t.Decimal(5, 2), Decimal("-Infinity"), "HW324"),
        (t.Decimal(5, 2), "1.5", "HW324"),
        (t.Decimal(5, 2), True, "HW324"),
        (t.Decimal(5, 2), Decimal("1.555"), "HW326"),
        (t.Decimal(5, 2), Decimal("1E-9999"), "HW326"),
        (t.Decimal(5, 2), Decimal("1000"), "HW325"),
        (t.Decimal(5, 2), Decimal("1E+999999"), "HW325"),
        (t.Decimal(5, 2), 10**6000, "HW325"),
        (t.DOUBLE, 2**53 + 1, "HW326"),
        (t.DOUBLE, -(2**60), "HW326"),
        (t.DOUBLE, 10**400, "HW326"),
        (t.DOUBLE, Decimal("0.5"), "HW324"),
        (t.DOUBLE, "0.5", "HW324"),
        (t.DOUBLE, True, "HW324"),
        (t.FLOAT, 1e300, "HW325"),
        (t.FLOAT, 2**24 + 1, "HW326"),
        (t.STRING, 5, "HW324"),
        (t.STRING, b"x", "HW324"),
        (t.STRING, "half \ud800", "HW328"),
        (t.BINARY, "x", "HW324"),
        (t.BINARY, [1, 2], "HW324"),
        (t.DATE, "2024-01-01", "HW324"),
        (t.DATE, NOON, "HW324"),
        (t.DATE, 5, "HW324"),
        (t.TIMESTAMP, 5, "HW324"),
        (t.TIMESTAMP, "2024-01-01", "HW324"),
        (t.TIMESTAMP, dt.datetime(1, 1, 1, tzinfo=TOKYO), "HW325"),
        (t.DAY_TIME_INTERVAL, dt.timedelta.max, "HW325"),
        (t.DAY_TIME_INTERVAL, 2**63, "HW325"),
        (t.DAY_TIME_INTERVAL, 1.5, "HW324"),
        (t.YEAR_MONTH_INTERVAL, 2**31, "HW325"),
        (t.YEAR_MONTH_INTERVAL, dt.timedelta(1), "HW324"),
        (t.Array(t.INT), 5, "HW330"),
        (t.Array(t.INT), "ab", "HW330"),
        (t.Array(t.INT), {1, 2}, "HW330"),
        (t.Array(t.INT), [1, "x"], "HW324"),
        (t.Map(t.STRING, t.INT), [1], "HW330"),
        (t.Map(t.STRING, t.INT), {None: 1}, "HW330"),
        (t.Map(t.STRING, t.INT), [("a", 1), ("a", 2)], "HW330"),
        (t.Map(t.STRING, t.INT), {"a": "x"}, "HW324"),
        (POINT, {"x": 1}, "HW330"),
        (POINT, {"x": 1, "y": 1.0, "z": 2}, "HW330"),
        (POINT, (1,), "HW330"),
        (POINT, 5, "HW330"),
        (POINT, {"x": 2**40, "y": 1.0}, "HW325"),
        (t.NULL, 1, "HW324"),
    ],
    ids=_name,
)
def test_values_that_are_refused(type_: t.Type, given: object, code: str) -> None:
    error = refused_value(given, type_)
    assert error.code == code
    assert error.message.startswith(f"orders.v {type_}, row 1 (counting from 0): ")
    assert len(error.message) < 330


def test_a_fault_inside_a_nested_value_says_where() -> None:
    error = refused_value([{"x": 1, "y": 2.0}, {"x": "?", "y": 2.0}], t.Array(POINT))
    assert "element 1: field x: '?' is a str; INT takes int" in error.message


# -- Arrow columns of other types ------------------------------------------------------------


@pytest.mark.parametrize(
    ("array", "type_", "expected"),
    [
        (pa.array([1, None], pa.uint8()), t.BIGINT, [1, None]),
        (pa.array([1, 2], pa.int64()), t.TINYINT, [1, 2]),
        (pa.array([7], pa.uint64()), t.INT, [7]),
        (pa.array([5], pa.int64()), t.Decimal(3, 2), [Decimal("5.00")]),
        (pa.array([2**64 - 1], pa.uint64()), t.Decimal(20, 0), [Decimal(2**64 - 1)]),
        (pa.array([Decimal("1.50")], pa.decimal256(60, 2)), t.Decimal(2, 1), [Decimal("1.5")]),
        (pa.array([1.5], pa.float32()), t.DOUBLE, [1.5]),
        (pa.array([0.5], pa.float64()), t.FLOAT, [0.5]),
        (pa.array([float("inf")]), t.FLOAT, [float("inf")]),
        (pa.array([3], pa.int32()), t.DOUBLE, [3.0]),
        (pa.array(["a", None], pa.large_string()), t.STRING, ["a", None]),
        (pa.array(["a", None], pa.string_view()), t.STRING, ["a", None]),
        (pa.array(["a", None, "a"]).dictionary_encode(), t.STRING, ["a", None, "a"]),
        (pa.array([b"ab"], pa.binary(2)), t.BINARY, [b"ab"]),
        (pa.array([b"ab"], pa.large_binary()), t.BINARY, [b"ab"]),
        (pa.array([dt.date(2024, 1, 1)], pa.date64()), t.DATE, [dt.date(2024, 1, 1)]),
        (pa.array([dt.date(2024, 1, 1)]), t.TIMESTAMP, [dt.datetime(2024, 1, 1)]),
        (pa.array([1000], pa.timestamp("ns")), t.TIMESTAMP, [dt.datetime(1970, 1, 1, 0, 0, 0, 1)]),
        (pa.array([1], pa.timestamp("s", "Asia/Tokyo")), t.TIMESTAMP, [dt.datetime(1970, 1, 1, 0, 0, 1)]),
        (pa.array([1], pa.duration("s")), t.DAY_TIME_INTERVAL, [dt.timedelta(seconds=1)]),
        (pa.array([1], pa.int64()), t.DAY_TIME_INTERVAL, [dt.timedelta(microseconds=1)]),
        (pa.array([(0, 1, 5000)], pa.month_day_nano_interval()), t.DAY_TIME_INTERVAL, [dt.timedelta(1, 0, 5)]),
        (pa.array([(14, 0, 0)], pa.month_day_nano_interval()), t.YEAR_MONTH_INTERVAL, [14]),
        (pa.array([14], pa.int64()), t.YEAR_MONTH_INTERVAL, [14]),
        (pa.nulls(2), t.Map(t.STRING, t.INT), [None, None]),
        (pa.array([None, None], pa.float64()), t.STRING, [None, None]),
        (pa.array([[1, None], None], pa.large_list(pa.int64())), t.Array(t.INT), [[1, None], None]),
        (pa.array([[1, 2], None], pa.list_view(pa.int64())), t.Array(t.BIGINT), [[1, 2], None]),
        (pa.array([[1, 2]], pa.list_(pa.int64(), 2)), t.Array(t.BIGINT), [[1, 2]]),
        (pa.array([{"Y": 1.0, "X": 2}]), POINT, [{"x": 2, "y": 1.0}]),
        (pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())), t.Map(t.STRING, t.INT), [[("a", 1)], []]),
    ],
    ids=_name,
)
def test_arrow_types_that_are_taken(array: pa.Array, type_: t.Type, expected: list[object]) -> None:
    column = of_arrow(array, type_)
    assert column.type == arrow_type(type_)
    assert column.to_pylist() == expected


@pytest.mark.parametrize(
    ("array", "type_", "code", "said"),
    [
        (pa.array(["5"]), t.INT, "HW324", "Arrow type string"),
        (pa.array([True]), t.INT, "HW324", "Arrow type bool"),
        (pa.array([1.0]), t.INT, "HW324", "Arrow type double"),
        (pa.array([1.5]), t.Decimal(5, 2), "HW324", "Arrow type double"),
        (pa.array([5]), t.STRING, "HW324", "Arrow type int64"),
        (pa.array([Decimal("1.5")]), t.DOUBLE, "HW324", "decimal128(2, 1)"),
        (pa.array([NOON]), t.DATE, "HW324", "timestamp[us]"),
        (pa.array([1] * 500 + [2**40]), t.INT, "HW325", "row 500 (counting from 0): 1099511627776"),
        (pa.array([1, 2**63], pa.uint64()), t.BIGINT, "HW325", "row 1 "),
        (pa.array([5, 1000]), t.Decimal(5, 2), "HW325", "row 1 (counting from 0): 1000"),
        (pa.array([Decimal("1.555")]), t.Decimal(5, 2), "HW326", "1.555"),
        (pa.array([Decimal("1555")]), t.Decimal(5, 2), "HW325", "1555"),
        (pa.array([0, 2**53 + 1]), t.DOUBLE, "HW326", "row 1 (counting from 0): 9007199254740993"),
        (pa.array([0.0, 1e300]), t.FLOAT, "HW325", "row 1 (counting from 0): 1e+300"),
        (
            pa.array([0, 1001], pa.timestamp("ns")),
            t.TIMESTAMP,
            "HW326",
            "row 1 (counting from 0): 1970-01-01 00:00:00.0",
        ),
        (pa.array([0, 2**60], pa.timestamp("s")), t.TIMESTAMP, "HW325", "row 1 "),
        (pa.array([0, 2**62], pa.timestamp("us")), t.TIMESTAMP, "HW325", "row 1 "),
        (pa.array([0, 2**31 - 1], pa.int32()).cast(pa.date32()), t.DATE, "HW325", "row 1 "),
        (pa.array([0, 2**31 - 1], pa.int32()).cast(pa.date32()), t.TIMESTAMP, "HW325", "row 1 "),
        (pa.array([0, 5], pa.date64()), t.DATE, "HW326", "row 1 "),
        (pa.array([1001], pa.duration("ns")), t.DAY_TIME_INTERVAL, "HW326", "row 0 "),
        (pa.array([2**60], pa.duration("s")), t.DAY_TIME_INTERVAL, "HW325", "row 0 "),
        (pa.array([(1, 1, 0)], pa.month_day_nano_interval()), t.DAY_TIME_INTERVAL, "HW324", "months"),
        (pa.array([(1, 1, 0)], pa.month_day_nano_interval()), t.YEAR_MONTH_INTERVAL, "HW324", "days"),
        (pa.array([5]), t.Array(t.INT), "HW330", "row 0 "),
        (pa.array([[1], [2**40]]), t.Array(t.INT), "HW325", "row 1 (counting from 0): element 0"),
        (pa.array([["x"]]), t.Array(t.INT), "HW324", "element 0: 'x' is a str"),
        (pa.array([{"x": 1}]), POINT, "HW330", "no field 'y'"),
        (
            pa.array([[], [2**31 - 1]], pa.list_(pa.int32())).cast(pa.list_(pa.date32())),
            t.Array(t.DATE),
            "HW325",
            "row 1",
        ),
        (
            pa.array([[("a", 1)], [("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int32())),
            t.Map(t.STRING, t.INT),
            "HW330",
            "row 1 (counting from 0): [('a', 1), ('a', 2)] has the key 'a' twice",
        ),
    ],
    ids=_name,
)
def test_arrow_columns_that_are_refused(array: pa.Array, type_: t.Type, code: str, said: str) -> None:
    error = refused_arrow(array, type_)
    assert error.code == code
    assert said in error.message


@pytest.mark.parametrize("seed", range(8))
def test_decimals_are_exact_or_refused_on_every_road(seed: int, tmp_path: Path) -> None:
    """Arrow's own decimal casts wrap around in places: 999999999999999999999999999999 as DECIMAL(38,22) is one."""
    rng = random.Random(seed)
    wide = decimal.Context(prec=400)
    for _ in range(60):
        precision, scale = rng.randint(1, 38), rng.randint(0, 38)
        type_ = t.Decimal(max(precision, scale, 1), scale)
        digits = rng.choice([0, 1, -7, 10 ** rng.randint(1, 38) - 1, rng.randint(-(10**38), 10**38)])
        number = Decimal(digits).scaleb(rng.choice([0, -rng.randint(0, 38), rng.randint(-200, 200)]), wide)
        fits = number == 0 or (
            number.adjusted() < type_.precision - type_.scale
            and number.quantize(Decimal(1).scaleb(-scale, wide), context=wide) == number
        )
        fields = (t.Field("v", type_),)
        text = format(number, "f") if rng.random() < 0.5 else str(number)
        roads: list[Callable[[], pa.Table]] = [lambda n=number, f=fields: rows_to_arrow([(n,)], f, relation="r")]
        for form, content in (
            ("csv", f"v\n{text}\n"),
            ("json", f'{{"v": {text}}}\n'),
            ("json", f'{{"v": "{text}"}}\n'),
        ):
            file = tmp_path / f"{len(roads)}.{form}"
            file.write_text(content)
            roads.append(lambda p=str(file), form=form, f=fields: next(read_file(p, form, {}, f, relation="r")))
        exponent = number.as_tuple().exponent
        assert isinstance(exponent, int)
        if -38 <= exponent <= 0 and abs(digits) < 10**38:
            array = pa.array([number], pa.decimal128(38, -exponent))
            roads.append(lambda a=array, f=fields: rows_to_arrow(pa.table({"v": a}), f, relation="r"))
        if exponent == 0 and abs(digits) < 2**63:
            roads.append(lambda d=digits, f=fields: rows_to_arrow(pa.table({"v": [d]}), f, relation="r"))
        for road in roads:
            if fits:
                assert road().column("v")[0].as_py() == number
            else:
                with pytest.raises(UserError) as caught:
                    road()
                assert caught.value.code in ("HW325", "HW326")


def test_invalid_utf8_and_too_long_decimals_hidden_in_arrow_data() -> None:
    good = pa.array([b"ok", b"\xff"]).buffers()
    array = pa.Array.from_buffers(pa.string(), 2, good)
    error = refused_arrow(array, t.STRING)
    assert error.code == "HW328"
    assert "row 1 (counting from 0): b'\\xff'" in error.message
    wide = pa.Array.from_buffers(pa.decimal128(3, 0), 1, pa.array([Decimal(10**20)], pa.decimal128(38, 0)).buffers())
    assert refused_arrow(wide, t.Decimal(3, 0)).code == "HW325"


def test_chunks_and_slices_are_numbered_through() -> None:
    chunks = pa.chunked_array([[1, 2], [], [3, 2**40, 5]]).slice(1)
    assert "row 2 " in refused(pa.table({"v": chunks}), (t.Field("v", t.INT),)).message
    batches = [pa.record_batch({"v": [1, 2]}), pa.record_batch({"v": [3, 2**40]})]
    assert "row 3 " in refused(batches, (t.Field("v", t.INT),)).message


# -- sizes and speed ------------------------------------------------------------


def test_a_string_of_fifty_megabytes() -> None:
    long = "x" * 50_000_000
    table = rows_to_arrow([{"v": long}], (t.Field("v", t.STRING),), relation="r")
    assert len(table.column(0)[0].as_py()) == 50_000_000
    error = refused([{"v": 1, "w": long}], (t.Field("v", t.STRING), t.Field("w", t.INT)))
    assert len(str(error)) < 300


def _many(n: int) -> list[dict[str, object]]:
    base = dt.datetime(2024, 1, 1)
    return [
        {
            "id": i,
            "customer": f"customer {i % 1000}",
            "price": Decimal(i) / 100,
            "at": base + dt.timedelta(seconds=i),
        }
        for i in range(n)
    ]


def test_a_hundred_thousand_dicts_take_well_under_half_a_second() -> None:
    rows = _many(100_000)
    best = min(_seconds(rows) for _ in range(3))
    assert best < 0.5


def test_an_arrow_table_is_nearly_free() -> None:
    table = pa.concat_tables([orders(_many(100_000))] * 10).combine_chunks()
    best = min(_seconds(table) for _ in range(3))
    assert best < 0.1


def _seconds(rows: object) -> float:
    start = time.perf_counter()
    orders(rows)
    return time.perf_counter() - start


# -- any value of any type comes back the same ------------------------------------------------------------


def _random_type(rng: random.Random, depth: int = 0) -> t.Type:
    leaves: list[t.Type] = [
        t.BOOLEAN,
        t.Integer(rng.choice([8, 16, 32, 64])),
        t.FLOAT,
        t.DOUBLE,
        t.STRING,
        t.BINARY,
        t.DATE,
        t.TIMESTAMP,
        t.DAY_TIME_INTERVAL,
        t.YEAR_MONTH_INTERVAL,
    ]
    precision = rng.randint(1, 38)
    leaves.append(t.Decimal(precision, rng.randint(0, precision)))
    if depth >= 2 or rng.random() < 0.7:
        return rng.choice(leaves)
    inner = [_random_type(rng, depth + 1) for _ in range(3)]
    return rng.choice(
        [t.Array(inner[0]), t.Map(rng.choice(leaves), inner[1]), t.Struct((("a", inner[0]), ("B c", inner[2])))]
    )


def _random_value(rng: random.Random, type_: t.Type, *, null: bool = True) -> object:
    if null and rng.random() < 0.15:
        return None
    match type_:
        case t.Boolean():
            return rng.random() < 0.5
        case t.Integer():
            return rng.choice([0, type_.low, type_.high, rng.randint(type_.low, type_.high)])
        case t.Decimal(precision, scale):
            unscaled = rng.choice([0, 10**precision - 1, rng.randint(-(10**precision) + 1, 10**precision - 1)])
            return Decimal(unscaled).scaleb(-scale, decimal.Context(prec=38))
        case t.Double():
            return rng.choice([0.0, float("inf"), rng.gauss(0, 1e9), 5e-324])
        case t.Float():
            return float(struct.unpack("f", struct.pack("f", rng.gauss(0, 1e9)))[0])
        case t.String():
            return "".join(rng.choice("aZ0 '\"\n\0éß€😀") for _ in range(rng.randint(0, 6)))
        case t.Binary():
            return rng.randbytes(rng.randint(0, 5))
        case t.Date():
            return dt.date.fromordinal(rng.randint(1, dt.date.max.toordinal()))
        case t.Timestamp():
            return dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=rng.randint(-(2**55), 2**57))
        case t.DayTimeInterval():
            return dt.timedelta(microseconds=rng.randint(-(2**62), 2**62))
        case t.YearMonthInterval():
            return rng.randint(-(2**31), 2**31 - 1)
        case t.Array(element):
            return [_random_value(rng, element) for _ in range(rng.randint(0, 3))]
        case t.Map(key, value):
            keys = {_random_value(rng, key, null=False) for _ in range(rng.randint(0, 3))}
            return [(k, _random_value(rng, value)) for k in keys]
        case t.Struct(fields):
            return {name: _random_value(rng, inner) for name, inner in fields}
    raise AssertionError(type_)


@pytest.mark.parametrize("seed", range(60))
def test_random_rows_come_back_and_so_do_arrow_and_storage(seed: int) -> None:
    rng = random.Random(seed)
    fields = tuple(t.Field(f"c{i}", _random_type(rng)) for i in range(rng.randint(1, 6)))
    rows = [{f.name: _random_value(rng, f.type) for f in fields} for _ in range(rng.choice([0, 1, 2, 30]))]
    table = rows_to_arrow(rows, fields, relation="r")
    assert table.schema == arrow_schema(fields)
    assert table.to_pylist() == rows
    assert rows_to_arrow([tuple(row.values()) for row in rows], fields, relation="r").equals(table)
    assert rows_to_arrow(table, fields, relation="r").equals(table)
    assert rows_to_arrow(table.slice(1), fields, relation="r").equals(table.slice(1))
    stored = to_storage(table, fields)
    assert stored.schema == storage_arrow_schema(fields)
    assert from_storage(stored, fields).equals(table)


def test_intervals_are_stored_as_numbers_and_the_rest_is_not_copied() -> None:
    fields = (t.Field("a", t.BIGINT), t.Field("d", t.DAY_TIME_INTERVAL), t.Field("m", t.YEAR_MONTH_INTERVAL))
    table = rows_to_arrow([(1, dt.timedelta(seconds=1), 14)], fields, relation="r")
    stored = to_storage(table, fields)
    assert stored.to_pylist() == [{"a": 1, "d": 1_000_000, "m": 14}]
    for column in range(3):
        before, after = table.column(column).chunk(0).buffers()[1], stored.column(column).chunk(0).buffers()[1]
        assert before.address == after.address


def test_stored_rows_go_through_duckdb_unchanged() -> None:
    duckdb = pytest.importorskip("duckdb")
    fields = (
        t.Field("a", t.Decimal(38, 10)),
        t.Field("b", t.TIMESTAMP),
        t.Field("c", t.DAY_TIME_INTERVAL),
        t.Field("d", t.Array(t.Struct((("x", t.DATE), ("y", t.STRING))))),
        t.Field("e", t.Map(t.STRING, t.BINARY)),
    )
    rng = random.Random(7)
    rows = [{f.name: _random_value(rng, f.type) for f in fields} for _ in range(50)]
    table = rows_to_arrow(rows, fields, relation="r")
    stored = to_storage(table, fields)  # noqa: F841 (DuckDB finds it by name)
    back = duckdb.sql("SELECT * FROM stored").to_arrow_table()
    assert from_storage(back, fields).to_pylist() == rows
