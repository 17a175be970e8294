"""Which refresh policies tick in an epoch."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Set

from headwater.sql.names import fold
from headwater.store.policies import Policy, When

_UNIX = dt.datetime(1970, 1, 1)
#: In microseconds.
SECOND = 1_000_000
_MICROSECOND = dt.timedelta(microseconds=1)


def microseconds(moment: dt.datetime) -> int:
    """Since 1970."""
    return (moment - _UNIX) // _MICROSECOND


def whole_seconds(moment: dt.datetime) -> int:
    """Since 1970."""
    return microseconds(moment) // 1_000_000


def passes(period: int, before: dt.datetime | None, now: dt.datetime) -> bool:
    """Whether a multiple of a period, counted from 1970, lies after one moment and not after another."""
    last = microseconds(now) - 1 if before is None else microseconds(before)
    return microseconds(now) // period > last // period


def seconds_between(before: dt.datetime | None, now: dt.datetime, most: int) -> range:
    """The whole seconds, counted from 1970, that lie after one moment and not after another; the last ones, if many."""
    last = whole_seconds(now)
    first = last if before is None else whole_seconds(before) + 1
    return range(max(first, last - most + 1), last + 1)


def next_multiple(periods: Iterable[int], now: dt.datetime) -> dt.datetime | None:
    """The next moment that is a multiple of one of some periods."""
    at = microseconds(now)
    moments = [(at // period + 1) * period for period in periods]
    return _UNIX + dt.timedelta(microseconds=min(moments)) if moments else None


class Ticks:
    """Says of each policy whether it ticks in an epoch; asked when all that it may depend on has changed."""

    def __init__(
        self,
        asked: Set[str],
        before: dt.datetime | None,
        now: dt.datetime,
        came: Callable[[str], bool],
    ) -> None:
        """Know an epoch.

        Args:
            asked: policies that somebody wants to tick, by their text.
            before: the clock of the epoch before.
            now: the clock of this one.
            came: whether any row came to a relation.
        """
        self._asked = asked
        self._before = before
        self._now = now
        self._came = came
        self._known: dict[str, bool] = {}

    def __call__(self, policy: Policy) -> bool:
        text = str(policy)
        if text not in self._known:
            self._known[text] = text in self._asked or self._ticks(policy)
        return self._known[text]

    def may(self, policy: Policy, changing: Set[str]) -> bool:
        """Whether a policy may tick, if nothing changes but some relations; asked at any time."""
        names = {fold(one) for one in changing}
        if policy.when is When.ON and str(policy) not in self._asked:
            return fold(policy.name) in names
        return str(policy) in self._asked or self._ticks(policy)

    def _ticks(self, policy: Policy) -> bool:
        match policy.when:
            case When.EVERY:
                return passes(policy.period, self._before, self._now)
            case When.ON:
                return self._came(policy.name)
        return False

    @property
    def ticked(self) -> list[str]:
        """The policies that ticked, so far."""
        return sorted(text for text, found in self._known.items() if found)
