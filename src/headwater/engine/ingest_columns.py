"""One column into its exact Arrow type: Arrow does the work, and only a failure is looked at value by value.

Both functions return a column of `arrow_type(type)` or raise RefusedError with the index of the first value at fault.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from headwater import types as t
from headwater.engine.arrow_types import arrow_type
from headwater.engine.ingest_values import (
    LOSES_DIGITS,
    NOT_UTF8,
    OUT_OF_RANGE,
    WRONG_TYPE,
    Convert,
    RefusedError,
    beyond,
    from_python,
    nullable,
    show,
)

# Python types, by identity, whose values `pyarrow.array` either converts exactly or refuses. Anything else (bool for
# an integer, str subclasses, NumPy scalars, dates for timestamps) goes value by value.
_NONE = type(None)
_PLAIN_KINDS: dict[type[t.Type], frozenset[type]] = {
    t.Null: frozenset({_NONE}),
    t.Boolean: frozenset({_NONE, bool}),
    t.Integer: frozenset({_NONE, int}),
    t.Decimal: frozenset({_NONE, decimal.Decimal, int}),
    t.Float: frozenset({_NONE, float, int}),
    t.Double: frozenset({_NONE, float, int}),
    t.String: frozenset({_NONE, str}),
    t.Binary: frozenset({_NONE, bytes}),
    t.Date: frozenset({_NONE, dt.date}),
    t.Timestamp: frozenset({_NONE, dt.datetime}),
    t.DayTimeInterval: frozenset({_NONE, dt.timedelta, int}),
    t.YearMonthInterval: frozenset({_NONE, int}),
}

_EPOCH = dt.date(1970, 1, 1)
_FIRST_DAY = (dt.date.min - _EPOCH).days
_LAST_DAY = (dt.date.max - _EPOCH).days
_DAY = 86_400_000_000
_FIRST_MOMENT = _FIRST_DAY * _DAY
_LAST_MOMENT = (_LAST_DAY + 1) * _DAY - 1

_WORD = (1 << 31) - 1
_WIDE = 76  # digits of Arrow's decimal256: enough to give any DECIMAL any scale


def column_of_values(values: Sequence[object], type_: t.Type) -> pa.ChunkedArray:
    """A column from Python values."""
    kinds = _PLAIN_KINDS.get(type(type_))
    if kinds is not None and kinds.issuperset(set(map(type, values))):
        try:
            if isinstance(type_, t.Decimal) and not _short_decimals(values):
                raise OverflowError
            column = _chunked(pa.array(values, arrow_type(type_)))
        except (pa.ArrowException, OverflowError, ValueError):
            pass
        else:
            if not _any_infinite(column, type_) and in_calendar(column, type_):
                return column
    return converted(values, type_, from_python(type_))


def converted(values: Sequence[object], type_: t.Type, convert: Convert) -> pa.ChunkedArray:
    """A column from Python values, each through a conversion of its own."""
    through = nullable(convert)
    out: list[object] = []
    for value in values:
        try:
            out.append(through(value))
        except RefusedError as refused:
            refused.index = len(out)
            raise
    return _chunked(pa.array(out, arrow_type(type_)))


def column_of_arrow(column: pa.ChunkedArray, type_: t.Type) -> pa.ChunkedArray:
    """A column from an Arrow column; without a copy if it has the right type."""
    column = _plain(column)
    _check_sound(column, type_)
    target = arrow_type(type_)
    if column.null_count == len(column):
        # A column of NULLs only has no type of its own: pandas calls it float, Polars null.
        return column if column.type == target else pa.chunked_array([pa.nulls(len(column), target)])
    if t.is_nested(type_):
        return _nested(column, type_)
    if column.type == target:
        return _check_calendar(column, type_)
    if pa.types.is_interval(column.type) and isinstance(type_, t.DayTimeInterval | t.YearMonthInterval):
        return column_of_values(column.to_pylist(), type_)
    if pa.types.is_decimal256(column.type) and isinstance(type_, t.Decimal):
        return column_of_values(column.to_pylist(), type_)
    if not _accepts(column.type, type_):
        raise RefusedError(WRONG_TYPE, f"the Arrow type {column.type} is not one that {type_} takes", _cast_hint(type_))
    return _cast(column, type_)


def first_failing(length: int, fails: Callable[[int, int], bool]) -> int:
    """The first row at fault, given a test of a slice `(offset, length)`; reads about twice the rows.

    >>> first_failing(1000, lambda offset, length: offset <= 700 < offset + length)
    700
    """
    offset = 0
    while length > 1:
        half = length // 2
        if fails(offset, half):
            length = half
        else:
            offset, length = offset + half, length - half
    return offset


def in_calendar(column: pa.ChunkedArray, type_: t.Type) -> bool:
    """Whether every date and timestamp, also inside nested values, lies between the years 1 and 9999."""
    if isinstance(type_, t.Date | t.Timestamp):
        is_date = isinstance(type_, t.Date)
        numbers = column.cast(pa.int32() if is_date else pa.int64())
        ends = pc.min_max(numbers)
        low, high = ends["min"].as_py(), ends["max"].as_py()
        first, last = (_FIRST_DAY, _LAST_DAY) if is_date else (_FIRST_MOMENT, _LAST_MOMENT)
        return low is None or (low >= first and high <= last)
    return all(in_calendar(child, inner) for child, inner in _children(column, type_))


def _short_decimals(values: Sequence[object]) -> bool:
    """Whether no number has more than 38 digits after its point: Arrow reads beyond a table of powers if one has.

    A zero, the point and 38 digits are 40 characters; longer numbers, and those that Python writes with an
    exponent, go value by value.
    """
    texts = list(map(str, values))
    return max(map(len, texts), default=0) <= 40 and "E" not in "".join(texts)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Without the encodings that say how values are kept, not what they are."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.cast(column.type.storage_type)
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    if pa.types.is_run_end_encoded(column.type):
        return pc.run_end_decode(column)
    return column


def _check_sound(column: pa.ChunkedArray, type_: t.Type) -> None:
    """Arrow data made elsewhere may be anything: bytes that are not UTF-8, decimals of too many digits."""
    try:
        column.validate(full=True)
        return
    except pa.ArrowInvalid as error:
        message = str(error)

    def fails(offset: int, length: int) -> bool:
        try:
            column.slice(offset, length).validate(full=True)
        except pa.ArrowInvalid:
            return True
        return False

    index = first_failing(len(column), fails)
    if "UTF8" in message:
        raise RefusedError(
            NOT_UTF8, f"{_raw(column, index)} is not valid UTF-8", "decode it with its true encoding", index
        )
    if pa.types.is_decimal(column.type):
        raise RefusedError(OUT_OF_RANGE, f"the value does not fit its own Arrow type {column.type}", index=index)
    if pa.types.is_date64(column.type):
        raise RefusedError(LOSES_DIGITS, "the date64 value has a time of day, which a date would lose", index=index)
    raise RefusedError(WRONG_TYPE, f"the Arrow data is damaged: {message}", index=index)


def _raw(column: pa.ChunkedArray, index: int) -> str:
    """A string that is not one, as bytes."""
    try:
        return show(column[index].as_buffer().to_pybytes())
    except AttributeError:  # inside a nested value
        return "text in it"


def _accepts(source: pa.DataType, type_: t.Type) -> bool:
    """Whether values of an Arrow type are values of a column's type, or could be if they fit."""
    p = pa.types
    match type_:
        case t.Integer() | t.YearMonthInterval():
            return bool(p.is_integer(source))
        case t.Decimal():
            return bool(p.is_decimal(source) or p.is_integer(source))
        case t.Float() | t.Double():
            return bool(p.is_floating(source) or p.is_integer(source))
        case t.String():
            return bool(p.is_string(source) or p.is_large_string(source) or p.is_string_view(source))
        case t.Binary():
            plain = p.is_binary(source) or p.is_large_binary(source) or p.is_binary_view(source)
            return bool(plain or p.is_fixed_size_binary(source))
        case t.Date():
            return bool(p.is_date(source))
        case t.Timestamp():
            return bool(p.is_timestamp(source) or p.is_date(source))
        case t.DayTimeInterval():
            return bool(p.is_duration(source) or p.is_integer(source))
    return bool(source == arrow_type(type_))


def _cast_hint(type_: t.Type) -> str:
    if isinstance(type_, t.Integer):
        return "cast the column first (pandas turns integers with gaps into floats: use astype('Int64'))"
    if isinstance(type_, t.Date):
        return "cast the column first (a pandas datetime column with .dt.date)"
    return f"cast the column to {arrow_type(type_)} first"


def _cast(column: pa.ChunkedArray, type_: t.Type) -> pa.ChunkedArray:
    try:
        return _exact_cast(column, type_)
    except (pa.ArrowInvalid, RefusedError):
        pass

    def fails(offset: int, length: int) -> bool:
        try:
            _exact_cast(column.slice(offset, length), type_)
        except (pa.ArrowInvalid, RefusedError):
            return True
        return False

    index = first_failing(len(column), fails)
    if not fails(index, 1):  # no value is at fault: there are more bytes than one Arrow array can address
        return _cast_in_parts(column, type_)
    refused = _why(column, index, type_)
    refused.index = index
    raise refused


def _exact_cast(column: pa.ChunkedArray, type_: t.Type) -> pa.ChunkedArray:
    """Arrow's checked cast, mended where it rounds or wraps in silence. Raises ArrowInvalid or RefusedError."""
    target = arrow_type(type_)
    if isinstance(type_, t.Decimal):
        # To the right scale in 256 bits first: in 128 Arrow wraps around when it adds digits after the point.
        return column.cast(pa.decimal256(_WIDE, type_.scale)).cast(target)
    if isinstance(type_, t.DayTimeInterval) and pa.types.is_integer(column.type):
        return column.cast(pa.int64()).cast(target)
    if pa.types.is_date(column.type):
        column = _check_calendar(column.cast(pa.date32()), t.DATE)
    out = column.cast(target)
    if isinstance(type_, t.Float) and _any_infinite(out, type_):
        was_finite = pc.invert(pc.is_inf(column.cast(pa.float64())))
        if pc.any(pc.and_(pc.is_inf(out), was_finite)).as_py():
            raise RefusedError(OUT_OF_RANGE, "")
    return _check_calendar(out, type_)


def _cast_in_parts(column: pa.ChunkedArray, type_: t.Type) -> pa.ChunkedArray:
    chunks: list[pa.Array] = []
    pending = list(reversed(column.chunks))
    while pending:
        chunk = pending.pop()
        if chunk.nbytes > _WORD // 2 and len(chunk) > 1:
            half = len(chunk) // 2
            pending += [chunk.slice(half), chunk.slice(0, half)]
        else:
            chunks += _exact_cast(_chunked(chunk), type_).chunks
    return pa.chunked_array(chunks, arrow_type(type_))


def _why(column: pa.ChunkedArray, index: int, type_: t.Type) -> RefusedError:
    """The reason why the value at an index cannot be cast."""
    if isinstance(type_, t.Date | t.Timestamp | t.DayTimeInterval):
        shown = _shown(column, index)
        if getattr(column.type, "unit", "") == "ns" and column[index].value % 1000:
            return RefusedError(LOSES_DIGITS, f"{shown} would lose digits as {type_}", "round the column first")
        return beyond(shown, type_)
    try:
        from_python(type_)(column[index].as_py())
    except RefusedError as refused:
        return refused
    return RefusedError(WRONG_TYPE, f"{_shown(column, index)} cannot become {type_}")


def _shown(column: pa.ChunkedArray, index: int) -> str:
    try:
        return str(column.slice(index, 1).cast(pa.string())[0].as_py())
    except pa.ArrowException:
        return str(column[index])


def _check_calendar(column: pa.ChunkedArray, type_: t.Type) -> pa.ChunkedArray:
    if in_calendar(column, type_):
        return column
    index = first_failing(len(column), lambda o, n: not in_calendar(column.slice(o, n), type_))
    if t.is_nested(type_):
        raise RefusedError(OUT_OF_RANGE, "a date in it is out of range: years 1 to 9999 are held", index=index)
    refused = beyond(_shown(column, index), type_)
    refused.index = index
    raise refused


def _nested(column: pa.ChunkedArray, type_: t.Type) -> pa.ChunkedArray:
    if _same_shape(column.type, type_):
        try:
            out = column.cast(arrow_type(type_))
        except pa.ArrowException:  # a narrower number that does not fit; or data hidden under a NULL that does not
            return column_of_values(_pylist(column), type_)
        return _check_calendar(out, type_)
    return column_of_values(_pylist(column), type_)


def _pylist(column: pa.ChunkedArray) -> list[object]:
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError) as error:
        raise RefusedError(OUT_OF_RANGE, f"a value in it is out of range: {error}") from None


def _same_shape(source: pa.DataType, type_: t.Type) -> bool:
    """Whether Arrow's own cast of a nested type is right; it is for lists and for structs with the same fields.

    (It is wrong for list views, which lose their elements in Arrow 26, and knows fields only by their exact names.
    Maps are looked at value by value because nothing in Arrow tells whether a key is there twice.)
    """
    p = pa.types
    match type_:
        case t.Array(element):
            return bool(p.is_list(source) or p.is_large_list(source)) and _same_shape(source.value_type, element)
        case t.Map():
            return False
        case t.Struct(fields):
            if not p.is_struct(source) or [f.name for f in source] != [name for name, _ in fields]:
                return False
            return all(_same_shape(f.type, inner) for f, (_, inner) in zip(source, fields, strict=True))
        # Casts to these round or wrap in silence, or take two steps: see `_exact_cast`.
        case t.Float() | t.Decimal() | t.Timestamp() | t.Date() | t.DayTimeInterval():
            return bool(source == arrow_type(type_))
    return _accepts(source, type_)


def _children(column: pa.ChunkedArray, type_: t.Type) -> Iterator[tuple[pa.ChunkedArray, t.Type]]:
    """The columns inside a nested column of its exact type, without what lies hidden under NULLs."""
    match type_:
        case t.Array(element):
            yield _flattened(column, arrow_type(element)), element
        case t.Struct(fields) if fields:
            yield from zip(column.flatten(), (inner for _, inner in fields), strict=True)


def _flattened(column: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array([chunk.flatten().cast(type_) for chunk in column.chunks], type_)


def _any_infinite(column: pa.ChunkedArray, type_: t.Type) -> bool:
    return isinstance(type_, t.Float) and bool(pc.any(pc.is_inf(column)).as_py())


def _chunked(array: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
