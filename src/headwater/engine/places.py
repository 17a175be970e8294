"""Where the segments of a warehouse lie: in its own folder, or where somebody says, which the warehouse remembers.

Elsewhere each warehouse has a folder with a name of its own, so that several can share a prefix. A copy of a
warehouse's folder lists the same segments as the original, and both would remove what the other has written: so there
is a token beside the segments, which is another one after every opening. Who comes with an old one is refused.

A folder that is left, or was never moved into because of a kill, is remembered until it is removed.
"""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.engine.failures import ELSEWHERE
from headwater.errors import UserError
from headwater.store.storage import Means, finish, is_remote, mount, storage_of, unmount

if TYPE_CHECKING:
    from headwater.engine.engine import Engine

log = logging.getLogger("headwater")

#: In the warehouse's file: where segments lie, if not in its folder; folders to be removed; tokens that are ours.
_ROOT, _LEFT, _TOKENS = "segments", "segments left", "segments owner"
_OWNER = "owner"
#: Between folders: they may have spaces in their names.
_LINE = "\n"


class Place:
    """Where segments lie, and where they are to lie."""

    def __init__(self, engine: Engine, beside: str, options: Mapping[str, object]) -> None:
        """Look at what is remembered.

        Args:
            engine: whose.
            beside: the folder for segments in the warehouse's own.
            options: how storages are reached.
        """
        self._engine, self._beside, self._options = engine, beside, options
        self._stored = stored(engine, _ROOT)
        #: Where they lie.
        self.root = self._stored or beside
        self._left = (stored(engine, _LEFT) or "").splitlines()
        self._mounted: set[str] = set()

    def move(self, wanted: str | None) -> None:
        """Decide where they are to lie, if somebody says; what is there already must be ours.

        Raises:
            UserError: HW433 there is no such place, or it cannot be used; HW434 another copy of this warehouse has
                it.
        """
        place = normal(wanted) if wanted is not None else None
        stays = place is None or (self._stored is not None and place in (self._stored, _above(self._stored)))
        if place is not None and not stays:
            if re.search(rf"/{re.escape(ELSEWHERE)}[0-9a-f]{{12}}(/|$)", place):
                raise _no_place(place, "it is the folder of another warehouse; what it is in can be shared")
            for one in (self._beside, *self._left, *([self._stored] if self._stored is not None else [])):
                if f"{place}/".startswith(f"{one}/"):  # it would go with what is in it
                    raise _no_place(place, f"choose one outside of {one}, which is removed when segments move")
        self._mount(self.root)
        if stays:
            if self._stored is not None:
                self._claim()
            return
        new = f"{place}/{ELSEWHERE}{uuid.uuid4().hex[:12]}"
        self._mount(new)
        if self._stored is not None:
            self._claim()
        self._left.append(new)  # until something in it counts
        self.root = new
        self._claim(new=True)

    def _claim(self, new: bool = False) -> None:
        """Make sure that nobody else has the place, and let nobody else have it."""
        owner, known = f"{self.root}/{_OWNER}", (stored(self._engine, _TOKENS) or "").split()
        storage = storage_of(self.root)
        there = None
        if not new:
            try:
                there = storage.read(owner).decode()
            except FileNotFoundError:
                pass
            except OSError as error:
                raise _unusable(self.root, error) from error
        if there is not None and there not in known:
            raise UserError(
                "HW434",
                f"the segments at {self.root} belong to another copy of this warehouse, which was opened later",
                hint=f"open that one; if it is no more, remove {owner}: what is gone of the segments is said to be so",
            )
        token = uuid.uuid4().hex
        with self._engine.transaction():  # first, so that a kill leaves us with a token that is there
            store(self._engine, _TOKENS, " ".join([*known[-2:], *([there] if there else []), token]))
            store(self._engine, _LEFT, _LINE.join(self._left) or None)
        try:
            storage.write(owner, token.encode())
        except OSError as error:
            raise _unusable(self.root, error) from error

    def _mount(self, root: str) -> None:
        if is_remote(root):
            self._mounted.add(root)
            mount(Means(root, dict(self._options)), self._beside)
            self._engine.warehouse.let_read(storage_of(root).lend)

    def close(self) -> None:
        """Forget storages."""
        for root in self._mounted:
            unmount(root)

    def give_up(self) -> None:
        """Remove segments: the warehouse is one in memory."""
        storage_of(self.root).remove_tree(self.root)

    @property
    def is_elsewhere(self) -> bool:
        """Whether segments lie outside of the warehouse's folder."""
        return self.root != self._beside

    @property
    def moves(self) -> bool:
        """Whether what lies away is to lie elsewhere."""
        return self.root != (self._stored or self._beside)

    def moved(self) -> None:
        """Everything lies where it is to, inside the transaction that says so."""
        if self.moves:
            left = [one for one in self._left if one != self.root]
            self._left = [*left, *([self._stored] if self._stored is not None else [])]
            store(self._engine, _ROOT, self.root)
            store(self._engine, _LEFT, _LINE.join(self._left) or None)

    def come_home(self) -> None:
        """Nothing lies away any more, inside the transaction that says so."""
        if self._stored is not None:
            self._left.append(self._stored)
            store(self._engine, _ROOT, None)
            store(self._engine, _TOKENS, None)
            store(self._engine, _LEFT, _LINE.join(self._left))

    def clear(self) -> None:
        """Remove folders that were left, as far as they can be reached."""
        there: list[str] = []
        for root in self._left:
            try:
                self._mount(root)
                storage_of(root).remove_tree(root)
                finish(root)
                there += [root] if any(storage_of(root).segments(root)) else []
            except UserError as error:
                there.append(root)
                log.warning("segments that count no longer are still at %s: %s", root, error.message)
        if there != self._left:
            self._left = there
            with self._engine.transaction():
                store(self._engine, _LEFT, _LINE.join(there) or None)


def normal(place: str) -> str:
    """A place for segments as it is remembered.

    Raises:
        UserError: HW433, it cannot be one.
    """
    place = str(place) if isinstance(place, Path) else place
    if not isinstance(place, str) or not place.strip() or re.search(r"\s", place):
        raise _no_place(place, "give a folder, or the address of one, such as s3://bucket/prefix, without spaces")
    place = place.removeprefix("file://")
    if not is_remote(place):
        found = str(Path(place).expanduser().resolve())
        if len(found.splitlines()) > 1:
            raise _no_place(found, "choose a folder with another name")
        return found
    if re.search(r"://[^/]*:[^/]*@", place):
        hidden = re.sub(r"://[^/]*@", "://", place)
        raise _no_place(hidden, "give the password with the storage options: the place itself is written down")
    if re.search(r"""['"*?\[\]]""", place):
        raise _no_place(place, "leave out quotes, and what stands for other characters")
    protocol, _, folder = place.partition("://")
    folder = folder.rstrip("/")
    if not folder or "//" in folder:
        raise _no_place(place, "give a bucket, and what comes before the names of all segments: s3://bucket/prefix")
    return f"{protocol}://{folder}"


def _above(root: str) -> str:
    """Where somebody said that segments are to lie."""
    return root.rpartition("/")[0]


def _no_place(place: object, hint: str) -> UserError:
    return UserError("HW433", f"{place!r} is no place for segments", hint=hint)


def _unusable(root: str, error: OSError) -> UserError:
    hint = "check that it is there and may be written"
    return UserError("HW433", f"{root} cannot be used for segments: {error}", hint=hint)


def stored(engine: Engine, key: str) -> str | None:
    """What the warehouse remembers under a name."""
    found = engine.connection.execute("SELECT value FROM hw.meta WHERE key = ?", [key]).fetchone()
    return found[0] if found else None


def store(engine: Engine, key: str, value: str | None) -> None:
    """Let the warehouse remember something under a name, or nothing any more, inside the caller's transaction."""
    engine.connection.execute("DELETE FROM hw.meta WHERE key = ?", [key])
    if value is not None:
        engine.connection.execute("INSERT INTO hw.meta VALUES (?, ?)", [key, value])
