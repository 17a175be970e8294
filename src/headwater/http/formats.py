"""Answers as JSON, JSON lines, CSV or Arrow: which one a client wants, and the bytes of it."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from starlette.requests import Request

from headwater.errors import UserError
from headwater.http.limits import Limits
from headwater.serve.lines import csv_lines, json_lines, jsonl_lines
from headwater.store.budget import too_large

#: The forms of an answer with their content types; the first is the one of who does not care.
TYPES = {
    "json": "application/json",
    "jsonl": "application/x-ndjson",
    "csv": "text/csv; charset=utf-8",
    "arrow": "application/vnd.apache.arrow.stream",
}
_WRITTEN = {"json": json_lines, "jsonl": jsonl_lines, "csv": csv_lines}


def form_of_answer(request: Request) -> str:
    """The form that a client asks for, by `?format=` or Accept.

    Raises:
        UserError: HW493, there is no such form.
    """
    asked = request.query_params.get("format")
    if asked is not None:
        if asked in TYPES:
            return asked
        raise _no_form(f"format={asked[:50]}")
    accept = ",".join(request.headers.getlist("accept")) or "*/*"
    wanted = sorted(_accepted(accept), key=lambda one: -one[1])
    for kind, weight in wanted:
        for form, its in TYPES.items():
            own = its.partition(";")[0]
            if weight > 0 and (kind in ("*/*", own) or (kind.endswith("/*") and own.startswith(kind[:-1]))):
                return form
    raise _no_form(accept[:100])


def _accepted(accept: str) -> Iterable[tuple[str, float]]:
    """The types of an Accept header, each with its weight."""
    for one in accept.split(","):
        kind, *parameters = (part.strip().lower() for part in one.split(";"))
        weight = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                try:
                    weight = float(parameter[2:])
                except ValueError:
                    weight = 0.0
        yield kind, weight


def written(table: pa.Table, form: str, limits: Limits) -> bytes:
    """The bytes of a table.

    Raises:
        UserError: HW486, there are more rows or bytes than may be sent.
    """
    if table.num_rows > limits.result_rows:
        raise too_large(f"more than {limits.result_rows:,} rows")
    if form == "arrow":
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        data: bytes = sink.getvalue().to_pybytes()
        if len(data) > limits.result_bytes:
            raise too_large(f"more than {limits.result_bytes:,} bytes")
        return data
    return _joined(_WRITTEN[form](table), limits)


def _joined(lines: Iterable[str], limits: Limits) -> bytes:
    out = bytearray()
    for line in lines:
        out += line.encode("utf-8", "replace")
        out += b"\n"
        if len(out) > limits.result_bytes:
            raise too_large(f"more than {limits.result_bytes:,} bytes")
    return bytes(out)


def _no_form(what: str) -> UserError:
    return UserError(
        "HW493",
        f"there is no answer as {what}",
        hint="name one of " + ", ".join(kind.partition(";")[0] for kind in TYPES.values()) + ", or ?format= json, "
        "jsonl, csv, arrow",
    )
