"""What travels over the local socket: a JSON header, and Arrow tables after it.

A message is a prefix of 16 bytes (the four letters `HWSK`, the header's length in 4 bytes, the body's in 8, both
big-endian), then the header as JSON in UTF-8, then the body: Arrow IPC streams one after the other, whose lengths the
header lists under `tables`.

Requests are `{"op": ..., ...}`, the first one `hello` with the protocol's number. Answers are `{"ok": ...}` or
`{"error": ...}`: an error is data, and `load_error` makes it the same exception again on the other side, with its
place in the text, so that a person sees one message wherever the statement ran.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import struct
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from headwater import types as t
from headwater.engine.engine import Epoch
from headwater.errors import HeadwaterError, InternalError, Source, Span, UserError
from headwater.results import Result
from headwater.sql.types import parse_type
from headwater.store.catalog import Relation

PROTOCOL = 4

#: Codes by which a client knows whether to send a request again. Of these, only CONNECTION_LOST leaves open whether the
#: request was carried out.
CLOSED = "HW408"
UNREACHABLE = "HW450"
TOO_LARGE = "HW452"
CONNECTION_LOST = "HW453"

MAX_REQUEST_BYTES = 256 * 1024 * 1024
MAX_HEADER_BYTES = 64 * 1024 * 1024
#: A hello is read before the other side is known to speak this protocol, so it gets little room.
MAX_HELLO_BYTES = 64 * 1024

_MAGIC = b"HWSK"
_PREFIX = struct.Struct(">4sIQ")
_CHUNK = 1024 * 1024

Read = Callable[[int], bytes]


class GarbledError(Exception):
    """Bytes that are no message of this protocol."""


class ClosedError(Exception):
    """The other side closed the connection between two messages."""


@dataclass(frozen=True)
class Message:
    """A header and the tables that came with it."""

    header: dict[str, Any]
    tables: tuple[pa.Table, ...] = field(default=())


def pack(message: Message) -> list[bytes | memoryview]:
    """The bytes of a message, in pieces to be sent in order."""
    bodies = [_table_bytes(table) for table in message.tables]
    header = dict(message.header)
    if bodies:
        header["tables"] = [len(body) for body in bodies]
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return [_PREFIX.pack(_MAGIC, len(text), sum(map(len, bodies))), text, *bodies]


def unpack(read: Read, limit: int | None = None) -> Message:
    """Read one message.

    Args:
        read: returns up to the number of bytes asked for, none at the end, as `socket.recv` does.
        limit: the most bytes accepted.

    Raises:
        ClosedError: the connection ended before a message began.
        GarbledError: what came is no message, or ends in its middle.
        UserError: HW452, the message is larger than the limit; nothing after its prefix has been read.
    """
    prefix = _exactly(read, _PREFIX.size, at_boundary=True)
    magic, header_bytes, body_bytes = _PREFIX.unpack(prefix)
    if magic != _MAGIC:
        raise GarbledError("the other side does not speak Headwater's protocol")
    if limit is not None and (header_bytes + body_bytes > limit or header_bytes > MAX_HEADER_BYTES):
        raise too_large(header_bytes + body_bytes, limit)
    try:
        header = json.loads(_exactly(read, header_bytes).decode("utf-8", "surrogatepass"))
        sizes = header.pop("tables", [])
        if sum(sizes) != body_bytes:
            raise GarbledError("the tables of a message do not add up to its length")
        return Message(header, tuple(_read_table(_exactly(read, size)) for size in sizes))
    except (ValueError, TypeError, AttributeError, pa.ArrowException) as error:
        raise GarbledError(f"a message cannot be read: {error}") from error


def too_large(size: int, limit: int) -> UserError:
    """The error about a request over the limit, raised by the client and, for clients that do not look, the server."""
    return UserError(
        TOO_LARGE,
        f"the request has {_mebibytes(size)}, and {_mebibytes(limit)} go through the warehouse's socket at once",
        hint="insert in several smaller batches, or use COPY so that the process that holds the warehouse reads the "
        "file itself",
    )


def _mebibytes(size: int) -> str:
    return f"{size / (1 << 20):,.1f} MiB" if size >= 1 << 20 else f"{size:,} bytes"


def closed() -> UserError:
    """The answer to a request that came when the warehouse was being closed."""
    return UserError(CLOSED, "the warehouse is closed", hint="connect again: the last request was not carried out")


def dump_results(results: Sequence[Result]) -> Message:
    """The results of statements as an answer."""
    tables, rows = [], []
    for result in results:
        row = {f.name: getattr(result, f.name) for f in dataclasses.fields(result)}
        if result.table is not None:
            tables.append(result.table)
            row["table"] = len(tables) - 1
        rows.append(row)
    return Message({"ok": rows}, tuple(tables))


def load_results(answer: Message) -> list[Result]:
    """The results that `dump_results` wrote down."""
    rows: list[dict[str, Any]] = answer.header["ok"]
    return [_result(row, answer) for row in rows]


def _result(row: dict[str, Any], answer: Message) -> Result:
    table = None if (i := row["table"]) is None else answer.tables[i]
    return Result(**row | {"table": table, "notices": tuple(row["notices"])})


def dump_epoch(epoch: Epoch) -> dict[str, Any]:
    """An epoch as data."""
    return dataclasses.asdict(epoch) | {"clock": epoch.clock.isoformat()}


def load_epoch(data: dict[str, Any]) -> Epoch:
    """The epoch that `dump_epoch` wrote down."""
    return Epoch(**data | {"clock": dt.datetime.fromisoformat(data["clock"])})


@dataclass(frozen=True)
class Target:
    """What a client must know of a relation to convert rows for it."""

    name: str
    fields: t.Schema
    arriving: t.Schema
    key: t.Schema


def dump_target(relation: Relation) -> dict[str, Any]:
    """A relation's columns, those that rows arrive with, and its key as data."""
    fields, arriving = ([[f.name, str(f.type), f.nullable] for f in of] for of in (relation.fields, relation.arriving))
    return {"name": relation.name, "fields": fields, "arriving": arriving, "key": list(relation.key)}


def load_target(data: dict[str, Any]) -> Target:
    """The target that `dump_target` wrote down."""
    fields, arriving = (
        {name: t.Field(name, parse_type(kind), nullable) for name, kind, nullable in data[of]}
        for of in ("fields", "arriving")
    )
    key = tuple(fields[name] for name in data["key"])
    return Target(data["name"], tuple(fields.values()), tuple(arriving.values()), key)


def pack_error(error: BaseException) -> list[bytes | memoryview]:
    """The bytes of an answer that is an error."""
    return pack(Message({"error": dump_error(error)}))


def dump_error(error: BaseException) -> dict[str, Any]:
    """An exception as data; one that is no HeadwaterError becomes a bug of ours, which is what it is."""
    if not isinstance(error, HeadwaterError):
        error = unexpected(error)
    out: dict[str, Any] = {
        # The most special class first: the other side takes the first one it knows.
        "class": [c.__name__ for c in type(error).__mro__ if issubclass(c, HeadwaterError)],
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "notes": list(getattr(error, "__notes__", [])),
    }
    if error.span:
        out["span"] = [error.span.start, error.span.end]
    if error.source:
        out["source"] = {"text": error.source.text, "name": error.source.name}
    return out


def load_error(data: dict[str, Any]) -> HeadwaterError:
    """The exception that `dump_error` wrote down."""
    known = {name: c for name, c in _error_classes(HeadwaterError).items() if c.__init__ is HeadwaterError.__init__}
    kind = next((known[name] for name in data["class"] if name in known), HeadwaterError)
    error = kind(
        data["code"],
        data["message"],
        span=Span(*data["span"]) if "span" in data else None,
        source=Source(**data["source"]) if "source" in data else None,
        hint=data["hint"],
    )
    for note in data["notes"]:
        error.add_note(note)
    return error


def unexpected(error: BaseException) -> InternalError:
    """The report of an exception nobody planned; its traceback becomes a note, shown only when debugging."""
    text = " ".join(str(error).split()) or "no message"
    out = InternalError(
        "HW990",
        f"{type(error).__name__}: {text}",
        hint="this is a defect of Headwater: please report it, with the statement and the traceback that "
        "HEADWATER_DEBUG=1 shows",
    )
    out.__cause__ = error
    out.add_note("".join(traceback.format_exception(error)).rstrip())
    return out


def _error_classes(base: type[HeadwaterError]) -> dict[str, type[HeadwaterError]]:
    out = {base.__name__: base}
    for sub in base.__subclasses__():
        out |= _error_classes(sub)
    return out


def _table_bytes(table: pa.Table) -> memoryview:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return memoryview(sink.getvalue())


def _read_table(data: bytearray) -> pa.Table:
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        return reader.read_all()


def _exactly(read: Read, size: int, *, at_boundary: bool = False) -> bytearray:
    out = bytearray()
    while len(out) < size:
        piece = read(min(size - len(out), _CHUNK))
        if not piece:
            if at_boundary and not out:
                raise ClosedError
            raise GarbledError("the connection ended in the middle of a message")
        out += piece
    return out


def dump_point(as_of: int | dt.datetime | None) -> int | str | None:
    """A point in the past for a header; what is none is refused on the other side."""
    return as_of.isoformat() if isinstance(as_of, dt.datetime) else as_of


def load_point(told: int | str | None) -> int | dt.datetime | None:
    return dt.datetime.fromisoformat(told) if isinstance(told, str) else told


def dump_keys(keys: object) -> tuple[dict[str, Any], pa.Table]:
    """Keys for a message: what the header says of them, and their values, which have types that JSON has not.

    Raises:
        UserError: HW344, they are nothing that has a type.
    """
    if isinstance(keys, pa.Table):
        return {"named": True, "keys": keys.num_rows}, keys
    listed = list(keys) if isinstance(keys, list | tuple) else [keys]
    named = bool(listed) and isinstance(listed[0], dict)
    rows = [one if isinstance(one, dict) else _numbered(one) for one in listed]
    try:
        table = pa.Table.from_pylist(rows)
    except (pa.ArrowException, ValueError, TypeError, AttributeError, OverflowError) as error:
        raise UserError("HW344", f"this is no key: {error}", hint="give values of the key's columns") from error
    return {"named": named, "keys": len(rows)}, table


def _numbered(key: object) -> dict[str, object]:
    values = key if isinstance(key, tuple | list) else (key,)
    return {str(i): value for i, value in enumerate(values)}


def load_keys(header: dict[str, Any], tables: tuple[pa.Table, ...]) -> list[Any]:
    """Keys that came with a message, as dicts or tuples."""
    rows = tables[0].to_pylist() if tables[0].num_columns else [{}] * int(header["keys"])
    return rows if header["named"] else [tuple(row.values()) for row in rows]
