"""COPY ... FROM: rows out of CSV, JSON and Parquet files, in pieces that fit into memory.

A path names a file, a folder (all its files of the format, by their endings, in the order of their names) or a pattern
with `*`, `?` or `[...]`. Files whose names end in .gz, .bz2, .lz4 or .zst are decompressed on the way.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headwater import types as t
from headwater.engine.file_streams import DAMAGED, NO_FILE, UNREADABLE, SomeRows, opening
from headwater.engine.files_csv import parse_options, read_csv
from headwater.engine.files_json import read_json
from headwater.engine.ingest import fit_table, match_names, row_number, wanted_columns
from headwater.errors import InternalError, UserError
from headwater.sql.names import fold

WRONG_OPTION = "HW414"

CHUNK_ROWS = 1_000_000
CHUNK_BYTES = 256 << 20

_ENDINGS: dict[str, tuple[str, ...]] = {
    "csv": (".csv", ".tsv", ".psv", ".txt"),
    "json": (".json", ".jsonl", ".ndjson"),
    "parquet": (".parquet", ".pq"),
}
_COMPRESSED = (".gz", ".bz2", ".lz4", ".zst")


def read_file(
    path: str,
    format: str,
    options: Mapping[str, object],
    fields: t.Schema,
    *,
    relation: str,
    columns: tuple[str, ...] | None = None,
) -> Iterator[pa.Table]:
    """The rows of a file, a folder or a pattern, in tables of about a million rows with exactly the relation's schema.

    Args:
        path: where the rows are.
        format: "csv", "json" or "parquet".
        options: for CSV `header`, `delimiter`, `quote`, `escape` and `null`; none for the others.
        fields: the columns of the relation.
        relation: its name, for messages.
        columns: the columns that the files have, if not all; the others become NULL.

    Returns:
        An iterator; the path, the options and the columns are checked before it is returned, rows as they are read.

    Raises:
        UserError: HW410 to HW415 about files, HW320 to HW330 about rows, with the file and the line or row.
    """
    wanted = wanted_columns(fields, relation=relation, columns=columns)
    rows_of = _Reader(fold(format), options, SomeRows(fields, wanted, relation))
    return _in_chunks(rows_of, find_files(path, fold(format)))


def find_files(path: str, format: str) -> list[str]:
    """The files that a path names, in the order of their names."""
    path = os.path.expanduser(path.removeprefix("file://"))
    if os.path.isdir(path):
        return _files_in(path, format)
    if os.path.lexists(path):
        return [path]
    if glob.has_magic(path):
        found = sorted(file for file in glob.glob(path, recursive=True) if os.path.isfile(file))
        if not found:
            raise UserError(NO_FILE, f"no file matches {path}")
        return found
    hint = "files on this machine only; copy it here first" if "://" in path else _nearby(path)
    raise UserError(NO_FILE, f"there is no file {path}", hint=hint)


def _files_in(folder: str, format: str) -> list[str]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise UserError(UNREADABLE, f"{folder} cannot be read: {error.strerror}") from None
    visible = [entry for entry in entries if not entry.name.startswith((".", "_"))]
    nested = [entry for entry in visible if entry.is_dir()]
    if nested:
        raise UserError(
            NO_FILE,
            f"{folder} has folders in it, such as {nested[0].name}, and only files are read",
            hint=f"name the files with a pattern: '{os.path.join(folder, '*', '*' + _ENDINGS[format][0])}'",
        )
    found = [entry.path for entry in visible if _bare(entry.name).endswith(_ENDINGS[format])]
    if not found:
        endings = ", ".join(_ENDINGS[format])
        other = f"; it has {visible[0].name}" if visible else "; it is empty"
        raise UserError(
            NO_FILE,
            f"{folder} has no {format} file ({endings}){other}",
            hint="name files of other endings by a pattern",
        )
    return found


def _bare(name: str) -> str:
    name = name.lower()
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    return name


def _nearby(path: str) -> str:
    """Where the path stops being right."""
    parent = Path(path).absolute().parent
    while not parent.exists():
        parent = parent.parent
    return (
        f"relative paths start at {os.getcwd()}"
        if not os.path.isabs(path)
        else f"{parent} is the last part that exists"
    )


class _Reader:
    """A format with its options: from a file to tables, of any size."""

    def __init__(self, format: str, options: Mapping[str, object], target: SomeRows) -> None:
        if format not in _ENDINGS:
            raise InternalError("HW930", f"COPY from {format} was parsed and cannot be read")
        self.format = format
        self.target = target
        self.csv = parse_options(options, target) if format == "csv" else None
        if options and self.csv is None:
            raise UserError(WRONG_OPTION, f"COPY FROM ... {format.upper()} has no option {next(iter(options))}")

    def __call__(self, path: str) -> Iterator[pa.Table]:
        if self.csv is not None:
            return read_csv(path, self.csv, self.target)
        return read_json(path, self.target) if self.format == "json" else _read_parquet(path, self.target)


def _in_chunks(rows_of: _Reader, paths: list[str]) -> Iterator[pa.Table]:
    """Many small tables as few large ones, across files: what is copied together is one change while it fits."""
    held: list[pa.Table] = []
    rows = size = 0
    for path in paths:
        for table in rows_of(path):
            if not table.num_rows:
                continue
            held.append(table)
            rows, size = rows + table.num_rows, size + table.nbytes
            if rows >= CHUNK_ROWS or size >= CHUNK_BYTES:
                yield pa.concat_tables(held)
                held, rows, size = [], 0, 0
    if held:
        yield pa.concat_tables(held)


def _read_parquet(path: str, target: SomeRows) -> Iterator[pa.Table]:
    with opening(path):
        if os.path.getsize(path) == 0:
            raise UserError(DAMAGED, f"{path} is empty, so it is not a Parquet file")
        # Spark's older INT96 timestamps would be read as nanoseconds, which end in the year 2262.
        file = pq.ParquetFile(path, page_checksum_verification=True, coerce_int96_timestamp_unit="us")
    with file:
        match_names(file.schema_arrow.names, target.wanted, relation=target.relation, where=f"{path}: ")
        before = 0
        batches = file.iter_batches(batch_size=_rows_per_batch(file.metadata))
        while True:
            with opening(path):
                batch = next(batches, None)
            if batch is None:
                return
            where = partial(_row_of, path, before)
            rows = pa.Table.from_batches([batch])
            yield fit_table(rows, target.fields, target.wanted, relation=target.relation, where=where)
            before += batch.num_rows


def _row_of(path: str, before: int, index: int) -> str:
    return f"{path}, {row_number(before + index)}"


def _rows_per_batch(metadata: pq.FileMetaData) -> int:
    size: int = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    per_row = max(1, size // max(1, int(metadata.num_rows)))
    return max(1, min(CHUNK_ROWS, CHUNK_BYTES // per_row))
