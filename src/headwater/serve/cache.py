"""Results of queries that are kept: a repeated query over unchanged relations is answered from memory.

A result is kept with the stamps of the stores that it was read from (`headwater.engine.stamps`), which were taken
before the snapshot was. It holds for as long as they are the same, and is shown only while nobody changes these stores:
so a reader who has seen an epoch is never shown an older one.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import NamedTuple

import pyarrow as pa

from headwater.engine.stamps import Stamps

#: How many bytes of results are kept, unless somebody says otherwise.
CACHE_BYTES = 64 * 1024 * 1024
#: A result may take this share of them.
_LARGEST_SHARE = 0.25
#: What an entry takes beside its rows, about.
_ENTRY_BYTES = 1_000


class Kept(NamedTuple):
    """A result, and until when it holds."""

    table: pa.Table
    stores: tuple[str, ...]
    stamps: tuple[int, ...]
    size: int
    holds: Callable[[], bool] | None = None
    views: tuple[str, ...] = ()


class ResultCache:
    """The results that were used last, up to a number of bytes. Safe to use from many threads."""

    def __init__(
        self, stamps: Stamps, limit: int = CACHE_BYTES, count: Callable[[tuple[str, ...]], None] = lambda views: None
    ) -> None:
        """Keep nothing yet; `count` is told of views whose reads are counted, when a result is shown again."""
        self._stamps = stamps
        self._count = count
        self.limit = limit
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, Kept] = OrderedDict()
        self._bytes = 0
        self.hits = 0
        self.misses = 0

    def get(self, key: Hashable) -> pa.Table | None:
        """The result of a query, if it is kept and holds."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                if found.stamps == self._stamps.take(found.stores) and (found.holds is None or found.holds()):
                    if self._stamps.steady(found.stores):
                        self._kept.move_to_end(key)
                        self.hits += 1
                        if found.views:
                            self._count(found.views)
                        return found.table
                else:
                    self._drop(key)
            self.misses += 1
            return None

    def put(
        self,
        key: Hashable,
        table: pa.Table,
        stores: tuple[str, ...],
        stamps: tuple[int, ...],
        holds: Callable[[], bool] | None = None,
        views: tuple[str, ...] = (),
    ) -> None:
        """Keep a result that was read of some stores.

        Args:
            key: of the query.
            table: the result.
            stores: what it was read of.
            stamps: of these, taken before.
            holds: says whether it still does, if the clock has a say.
            views: whose reads are counted.
        """
        size = table.get_total_buffer_size() + _ENTRY_BYTES
        if size > self.limit * _LARGEST_SHARE:
            return
        with self._lock:
            if key in self._kept:
                self._drop(key)
            self._kept[key] = Kept(table, stores, stamps, size, holds, views)
            self._bytes += size
            while self._bytes > self.limit:
                self._drop(next(iter(self._kept)))

    def _drop(self, key: Hashable) -> None:
        self._bytes -= self._kept.pop(key).size

    def facts(self) -> dict[str, int]:
        """How it has done, for `status`."""
        with self._lock:
            return {
                "results": len(self._kept),
                "bytes": self._bytes,
                "limit": self.limit,
                "hits": self.hits,
                "misses": self.misses,
            }
