"""Which warehouse a command means, and the files it is given."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.errors import Source, UserError
from headwater.project import PROJECT_FILE, load_project
from headwater.store.warehouse import DATABASE, MEMORY

if TYPE_CHECKING:
    from headwater.database import Database
    from headwater.serve.remote import RemoteDatabase

DEFAULT_WAREHOUSE = "warehouse"


@dataclass(frozen=True)
class Target:
    """A warehouse, and where its maintenance runs; where it did the last time, if nobody says."""

    path: str | Path
    placement: str | None = None
    spark: Mapping[str, object] = field(default_factory=dict)
    memory: str | None = None
    segments: str | None = None
    storage: Mapping[str, object] = field(default_factory=dict, repr=False)

    @property
    def exists(self) -> bool:
        return str(self.path) == MEMORY or (Path(self.path) / DATABASE).exists()

    def open(self) -> Database | RemoteDatabase:
        """Open it, or reach it through the process that has it open."""
        from headwater import connect

        return connect(
            self.path,
            placement=self.placement,
            spark=self.spark,
            memory=self.memory,
            segments=self.segments,
            storage=self.storage,
        )

    def open_existing(self) -> Database | RemoteDatabase:
        """Open it if it is there: a question about a warehouse must not make one.

        Raises:
            UserError: HW460, there is none.
        """
        if not self.exists:
            raise UserError(
                "HW460",
                f"there is no warehouse at {self.path}",
                hint=f"name another folder, or make one: headwater sql {self.path}",
            )
        return self.open()


def find_target(given: str | None) -> Target:
    """The warehouse a command is about.

    What was given is a warehouse's folder, `:memory:`, or a project's folder. Without it: the project in the current
    folder, else `./warehouse`.
    """
    if given == MEMORY:
        return Target(MEMORY)
    folder = Path(given) if given is not None else Path()
    if (folder / PROJECT_FILE).exists():
        project = load_project(folder)
        settings = project.placement, project.spark, project.memory, project.segments, project.storage
        return Target(project.warehouse, *settings)
    return Target(folder if given is not None else Path(DEFAULT_WAREHOUSE))


def read_source(path: str | Path) -> Source:
    """The text of an SQL file; `-` is the standard input.

    Raises:
        UserError: HW461, it cannot be read.
    """
    name = "<stdin>" if path == "-" else str(path)
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise UserError("HW461", f"{name} cannot be read: {error.strerror or error}", hint="check the path") from error
    except UnicodeDecodeError as error:
        raise UserError(
            "HW461", f"{name} is not text in UTF-8: byte {error.start + 1} cannot be read", hint="convert it to UTF-8"
        ) from error
    # As files opened for text: one kind of line break, so that lines are counted and shown right.
    return Source(text.replace("\r\n", "\n"), name)
