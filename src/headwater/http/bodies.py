"""What a client sends: a body of bounded size, in bounded time, and rows or statements in it."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile

import pyarrow as pa
from starlette.requests import Request

from headwater import types as t
from headwater.engine.files import read_file
from headwater.engine.ingest import rows_to_arrow
from headwater.errors import HeadwaterError, UserError
from headwater.http.limits import Limits
from headwater.sql.names import fold

#: Forms of rows by their names, which `?format=` takes, and by their content types.
ROW_FORMS = ("json", "jsonl", "csv", "arrow")
ROW_TYPES = {
    "application/json": "json",
    "application/x-ndjson": "jsonl",
    "application/jsonl": "jsonl",
    "text/csv": "csv",
    "application/vnd.apache.arrow.stream": "arrow",
}
#: curl names the last of these where nobody says what a body is.
TEXT_TYPES = ("", "text/plain", "application/sql", "application/x-www-form-urlencoded")
#: A longer text takes seconds to parse, which nothing interrupts.
LONGEST_SQL_BYTES = 1 << 20
_THE_BODY = "the body"
#: Noted of a request whose body was read to its end.
_READ = "headwater.read"


class LeftError(Exception):
    """The client left before its request was there."""


async def read_body(request: Request, limits: Limits) -> bytes:
    """The whole body of a request.

    Raises:
        LeftError: the client has left.
        UserError: HW484, it is too long; HW494, it took too long; HW492, it is compressed.
    """
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise UserError("HW492", f"a body in the encoding {encoding[:50]!r} is not read", hint="send it as it is")
    length = request.headers.get("content-length")
    if length is not None and length.isdigit() and int(length) > limits.body_bytes:
        raise _too_long(limits)
    try:
        return await asyncio.wait_for(_collected(request, limits), limits.body_seconds)
    except TimeoutError:
        raise UserError(
            "HW494", f"the body was not there after {limits.body_seconds:g} seconds", hint="send smaller batches"
        ) from None


async def _collected(request: Request, limits: Limits) -> bytes:
    out = bytearray()
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise LeftError
        out += message.get("body", b"")
        if len(out) > limits.body_bytes:
            raise _too_long(limits)
        if not message.get("more_body", False):
            request.scope[_READ] = True
            return bytes(out)


def is_unread(request: Request) -> bool:
    """Whether there may be a body that was not read; what comes after it on the connection could not be found."""
    length = request.headers.get("content-length", "0")
    return _READ not in request.scope and (length != "0" or "transfer-encoding" in request.headers)


def content_type(request: Request) -> str:
    """The type of a body, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def statement_text(body: bytes, kind: str) -> str:
    """The SQL in a body: the body itself, or `{"sql": ...}`.

    Raises:
        UserError: HW484, it is too long; HW485, there is none; HW492, it is something else.
    """
    if len(body) > LONGEST_SQL_BYTES:
        raise UserError(
            "HW484",
            f"the statement has more than {LONGEST_SQL_BYTES:,} bytes",
            hint="send rows to /v1/relations/NAME/rows, and statements one by one",
        )
    if kind in TEXT_TYPES:
        return _decoded(body)
    if kind != "application/json":
        raise UserError(
            "HW492", f"SQL does not come as {kind[:100]}", hint='send text/plain, or application/json: {"sql": "..."}'
        )
    found = parsed(body)
    if not isinstance(found, dict) or not isinstance(found.get("sql"), str):
        raise UserError("HW485", "the body is no object with a text `sql`", hint='{"sql": "SELECT ..."}')
    if len(found) > 1:
        other = next(name for name in found if name != "sql")
        raise UserError("HW485", f"the body has a key {other[:50]!r} that nothing is known of", hint="leave it out")
    return str(found["sql"])


def parsed(body: bytes) -> object:
    """JSON in a body.

    Raises:
        UserError: HW485, it is none.
    """
    try:
        return json.loads(_decoded(body))
    except (ValueError, RecursionError) as error:
        reason = f"{error.msg}, line {error.lineno}" if isinstance(error, json.JSONDecodeError) else "nested too deeply"
        raise UserError("HW485", f"the body is not JSON: {reason}", hint="check its quotes and brackets") from None


def form_of_rows(kind: str, asked: str | None) -> str:
    """The form of the rows in a body, by `?format=` or its content type.

    Raises:
        UserError: HW492, that is none.
    """
    form = asked if asked is not None else ROW_TYPES.get(kind)
    if form not in ROW_FORMS:
        said = f"format={asked[:50]}" if asked is not None else kind[:100] or "a body without a Content-Type"
        raise UserError(
            "HW492",
            f"rows do not come as {said}",
            hint="name one of " + ", ".join(ROW_TYPES) + ", or ?format= " + ", ".join(ROW_FORMS),
        )
    return form


def rows_of(body: bytes, form: str, fields: t.Schema, relation: str, limits: Limits) -> pa.Table:
    """The rows in a body, with exactly the columns of a relation.

    Raises:
        UserError: HW320 to HW330 and HW412 to HW415 about rows, as for files; HW484, they are too large unpacked;
            HW485, the body cannot be read.
    """
    if form == "arrow":
        return rows_to_arrow(_arrow(body, limits), fields, relation=relation)
    if not body.strip():
        raise UserError("HW485", "the body is empty", hint="send rows in it")
    if form == "json" and not body.lstrip().startswith(b"["):
        body = b"[" + body + b"]"  # one row is as good as a list of it
    with tempfile.TemporaryDirectory(prefix="headwater-") as folder:
        path = os.path.join(folder, "body")
        with open(path, "wb") as file:
            file.write(body)
        try:
            kind = "csv" if form == "csv" else "json"
            tables = list(read_file(path, kind, {}, fields, relation=relation))
        except HeadwaterError as error:
            error.message = error.message.replace(path, _THE_BODY)
            raise
    return pa.concat_tables(tables) if tables else rows_to_arrow([], fields, relation=relation)


def row_of(body: bytes, key: pa.Table, fields: t.Schema, relation: str, limits: Limits) -> pa.Table:
    """The one row that a body puts at a key; the key may be left out of it.

    Args:
        body: the object of the row.
        key: the key as a table of one row.
        fields: the columns of the relation, as rows arrive with them.
        relation: its name.
        limits: of the server.

    Raises:
        UserError: HW485, it is no row, or one with another key.
    """
    found = parsed(body)
    if not isinstance(found, dict):
        raise UserError("HW485", "the body is not the object of a row", hint='{"column": value, ...}')
    given = {fold(name) for name in found}
    absent = [name for name in key.column_names if fold(name) not in given]
    if not given and len(absent) == len(fields):
        return key  # the key is all there is
    table = rows_of(body, "json", tuple(field for field in fields if field.name not in absent), relation, limits)
    for name in key.column_names:
        if name not in absent and table[name].to_pylist() != key[name].to_pylist():
            raise UserError(
                "HW485", f"the row in the body has another {name} than the address", hint="leave it out of the body"
            )
    for name in absent:
        table = table.append_column(key.schema.field(name), key[name])
    return table.select([field.name for field in fields])


def _arrow(body: bytes, limits: Limits) -> pa.Table:
    """An Arrow IPC stream; what it has compressed counts as it is unpacked."""
    try:
        with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
            batches, size = [], 0
            for batch in reader:
                size += batch.nbytes
                if size > limits.body_bytes:
                    raise _too_long(limits)
                batches.append(batch)
            return pa.Table.from_batches(batches, schema=reader.schema)
    except (pa.ArrowException, OSError, ValueError) as error:
        text = (str(error).splitlines() or ["empty"])[0][:200]
        raise UserError(
            "HW485", f"the body is not an Arrow IPC stream: {text}", hint="the stream format, not the file format"
        ) from None


def _decoded(body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(
            "HW485", f"the body is not text in UTF-8: byte {error.start + 1} cannot be read", hint="send it in UTF-8"
        ) from None


def _too_long(limits: Limits) -> UserError:
    return UserError(
        "HW484", f"the body has more than {limits.body_bytes:,} bytes", hint="send it in several smaller batches"
    )
