"""A project: a folder with `headwater.toml` and the `.sql` files that define its relations.

```toml
warehouse = "warehouse"    # a folder, relative to this file
placement = "inline"       # or "driver", "tasks"
memory = "8GB"             # that DuckDB may take in this process
segments = "s3://bucket/x" # where what tasks maintain lies; by default beside the warehouse

[storage]                  # how that is reached, besides what the environment says
endpoint_url = "https://storage.example"

[spark]                    # settings for Spark, kept as they are
"spark.sql.shuffle.partitions" = 4
```
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from headwater.errors import Source, Span, UserError
from headwater.store.warehouse import is_amount

PROJECT_FILE = "headwater.toml"
PLACEMENTS = ("inline", "driver", "tasks")
_KEYS = ("warehouse", "placement", "memory", "segments", "storage", "spark")


@dataclass(frozen=True)
class Project:
    """A project's settings and files.

    Attributes:
        folder: where `headwater.toml` is.
        warehouse: the warehouse's folder; not there before the first run.
        placement: where maintenance runs.
        memory: how much DuckDB may take in the process that has the warehouse open.
        files: the `.sql` files of the folder, in order of name, which is the order they run in.
        spark: the `[spark]` table as written.
        segments: where what tasks maintain lies, if that is said and programs run in tasks.
        storage: the `[storage]` table as written.
    """

    folder: Path
    warehouse: Path
    placement: str
    memory: str | None
    files: tuple[Path, ...]
    spark: Mapping[str, object] = field(default_factory=dict)
    segments: str | None = None
    storage: Mapping[str, object] = field(default_factory=dict, repr=False)


def load_project(folder: str | Path) -> Project:
    """Read a project's folder.

    Raises:
        UserError: HW440 there is no project; HW441 its file is no TOML; HW442 a key nobody knows; HW443 a value that
            does not fit.
    """
    folder = Path(folder)
    file = folder / PROJECT_FILE
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(
            "HW440",
            f"{folder} is no project: it has no {PROJECT_FILE}",
            hint=f'make {file} with the line: warehouse = "warehouse"',
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError("HW440", f"{file} cannot be read: {error}", hint="it must be a text file in UTF-8") from error
    source = Source(text, str(file))
    settings = _parse(source)
    for key in settings:
        if key not in _KEYS:
            raise _unknown(key, source)
    spark = settings.get("spark", {})
    if not isinstance(spark, dict):
        raise _misfit("spark", "a table of Spark's settings", source)
    storage = settings.get("storage", {})
    if not isinstance(storage, dict):
        raise _misfit("storage", "a table of what a storage needs", source)
    placement = _text(settings, "placement", "inline", source)
    if placement not in PLACEMENTS:
        raise _misfit("placement", "one of " + ", ".join(f'"{p}"' for p in PLACEMENTS), source)
    warehouse = _text(settings, "warehouse", "warehouse", source)
    memory = _text(settings, "memory", "", source) if "memory" in settings else None
    if memory is not None and not is_amount(memory):
        raise _misfit("memory", 'an amount such as "8GB"', source)
    segments = _text(settings, "segments", "", source) if "segments" in settings else None
    if segments is not None and "://" not in segments:
        segments = str(folder / Path(segments).expanduser())
    return Project(
        folder=folder,
        warehouse=folder / Path(warehouse).expanduser(),
        placement=placement,
        memory=memory,
        files=tuple(sorted((p for p in folder.glob("*.sql") if p.is_file()), key=lambda p: p.name)),
        spark=spark,
        segments=segments if placement == "tasks" else None,
        storage=storage,
    )


def _parse(source: Source) -> dict[str, object]:
    try:
        return tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as error:
        reason = re.sub(r" \(at .*\)$", "", str(error))
        raise UserError(
            "HW441", f"{PROJECT_FILE} is no TOML: {reason}", span=_place(error, source), source=source
        ) from error


def _place(error: tomllib.TOMLDecodeError, source: Source) -> Span:
    found = re.search(r"\(at line (\d+), column (\d+)\)$", str(error))
    if found is None:  # "at end of document"
        return Span(len(source.text), len(source.text))
    line, column = int(found[1]), int(found[2])
    start = sum(len(before) + 1 for before in source.text.split("\n")[: line - 1]) + column - 1
    return Span(start, start + 1)


def _text(settings: Mapping[str, object], key: str, default: str, source: Source) -> str:
    value = settings.get(key, default)
    if not isinstance(value, str) or not value:
        raise _misfit(key, "a text in quotes", source)
    return value


def _unknown(key: str, source: Source) -> UserError:
    near = get_close_matches(key, _KEYS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"the keys are {', '.join(_KEYS)}"
    return UserError(
        "HW442",
        f"{PROJECT_FILE} has a key that Headwater does not know: {key}",
        span=_find(key, source),
        source=source,
        hint=hint,
    )


def _misfit(key: str, expected: str, source: Source) -> UserError:
    return UserError("HW443", f"{key} in {PROJECT_FILE} must be {expected}", span=_find(key, source), source=source)


def _find(key: str, source: Source) -> Span | None:
    """Where a key of the top level stands, as a bare or quoted key or as a table's name (tomllib does not tell)."""
    name = re.escape(key)
    found = re.search(rf"""^[ \t]*\[{{0,2}}[ \t]*(["']?)({name})\1[ \t]*[\].=]""", source.text, re.MULTILINE)
    return Span(*found.span(2)) if found else None
