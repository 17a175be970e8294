"""The prompt of `headwater sql` on a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
from prompt_toolkit import PromptSession
from prompt_toolkit.filters import completion_is_selected
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from headwater.cli.complete import Columns, SqlCompleter
from headwater.cli.render import Writer, table_lines
from headwater.cli.report import report
from headwater.cli.session import Session
from headwater.cli.split import is_complete
from headwater.errors import HeadwaterError, Source
from headwater.serve.wire import CLOSED, CONNECTION_LOST, UNREACHABLE, unexpected
from headwater.sql.names import fold

HELP = """\
Type SQL and end it with a semicolon; it may go over several lines.

  \\d           list relations
  \\d NAME      columns of a relation
  \\?           this help
  \\q           leave (also Ctrl-D)

Tab completes keywords, relations and columns. Ctrl-C drops the line or gives up a running statement.
EXPLAIN view; shows how a view is kept fresh. SHOW RELATIONS; SHOW EPOCHS; SHOW MAPS; look inside."""

_PROMPT = "headwater> "
_CONTINUATION = "..> "


class _Relation:
    """What the catalogue says of a relation."""

    def __init__(self, name: str, kind: str, columns: Iterable[tuple[str, str]], **_: object) -> None:
        self.name = name
        self.kind = kind
        self.columns = dict(columns)


class Shell:
    """Reads statements until the user leaves, and runs them."""

    def __init__(self, session: Session, writer: Writer, debug: bool = False) -> None:
        self._session = session
        self._debug = debug
        self._writer = writer
        self._columns: Columns | None = None

    def run(self) -> int:
        """Talk until the end; returns the exit code."""
        prompt: PromptSession[str] = PromptSession(
            history=_history(),
            completer=SqlCompleter(self._known_columns),
            complete_while_typing=False,
            key_bindings=_bindings(),
            multiline=True,
            prompt_continuation=_continuation,
        )
        print(f"Headwater on {self._session.target.path}{self._reached_through()}. \\? for help, \\q to leave.")
        try:
            while True:
                try:
                    text = prompt.prompt(_PROMPT)
                except KeyboardInterrupt:
                    continue
                except EOFError:
                    return 0
                if not self.handle(text):
                    return 0
        finally:
            self._session.close()

    def handle(self, text: str) -> bool:
        """Do what was typed; False when it was to leave."""
        words = text.strip().rstrip(";").split()
        if words in (["\\q"], ["exit"], ["quit"]):
            return False
        try:
            if words and words[0].startswith("\\"):
                self._command(words)
            else:
                self._statements(text)
        except HeadwaterError as error:
            report(error, self._debug)
            if error.code in (CLOSED, UNREACHABLE, CONNECTION_LOST):
                self._reopen()
        except KeyboardInterrupt:
            holder = self._session.holder
            where = "here" if holder is None else f"in process {holder}"
            print(f"given up; unless it is done, the statement goes on {where}", file=sys.stderr)
        except Exception as error:  # a bug of ours costs a statement, not the session
            report(unexpected(error), self._debug)
        return True

    def _statements(self, text: str) -> None:
        try:
            self._session.run(Source(text), self._writer)
        finally:
            self._columns = None  # a statement may have made or dropped a relation

    def _command(self, words: list[str]) -> None:
        match words:
            case ["\\?"]:
                print(HELP)
            case ["\\d"]:
                self._list()
            case ["\\d", name]:
                self._describe(name)
            case _:
                print(f"there is no command {' '.join(words)}: \\? lists them", file=sys.stderr)

    def _list(self) -> None:
        known = self._relations()
        if not known:
            print("no relations yet: CREATE TABLE, CREATE STREAM or CREATE VIEW makes one")
            return
        self._show({"name": [one.name for one in known], "kind": [one.kind for one in known]})

    def _describe(self, name: str) -> None:
        for one in self._relations():
            if fold(one.name) == fold(name.strip("`")):
                self._show({"column": list(one.columns), "type": list(one.columns.values())})
                return
        print(f"there is no relation {name}: \\d lists them", file=sys.stderr)

    def _relations(self) -> list[_Relation]:
        return [_Relation(**facts) for facts in self._session.database.relations()]

    def _show(self, columns: dict[str, list[str]]) -> None:
        for line in table_lines(pa.table(columns)):
            print(line)

    def _known_columns(self) -> Columns:
        if self._columns is None:
            try:
                self._columns = {one.name: list(one.columns) for one in self._relations()}
            except HeadwaterError:
                return {}  # completion has no place for errors: the next statement tells
        return self._columns

    def _reached_through(self) -> str:
        holder = self._session.holder
        return "" if holder is None else f" through process {holder}"

    def _reopen(self) -> None:
        """The process that had the warehouse open is gone: open it here, or reach it through the next one."""
        try:
            self._session.reopen()
        except HeadwaterError:
            return  # the next statement tries to connect again, and says why it cannot
        print(f"connected again{self._reached_through()}", file=sys.stderr)


def _continuation(width: int, line: int, wrapped: int) -> str:
    """What stands before the further lines of a statement; nothing before the rest of a line that is too long."""
    return " " * width if wrapped else _CONTINUATION.rjust(width)


def _bindings() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        text = buffer.text
        alone = text.strip() in ("exit", "quit") or text.lstrip().startswith("\\")
        if alone or is_complete(text):
            buffer.validate_and_handle()
        else:
            buffer.newline(copy_margin=True)

    @keys.add("enter", filter=completion_is_selected)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None  # take the completion, stay on the line

    @keys.add("c-d")
    def _(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.delete()
        else:
            event.app.exit(exception=EOFError)

    return keys


def _history() -> History:
    """Kept in the user's state folder; in memory where that cannot be written."""
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    file = Path(state).expanduser() / "headwater" / "history"
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(file))
