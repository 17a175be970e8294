"""Sum and count by key for Spark's transformWithState. Python workers import this module, so it imports little."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

STATE = "v BIGINT, n BIGINT"
OUTPUT = "k BIGINT, v BIGINT, n BIGINT"


class _Sums(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        self._sums = handle.getValueState("sums", STATE)

    def _add(self, value: int, count: int) -> tuple[int, int]:
        before = self._sums.get()
        if before is not None:
            value, count = before[0] + value, before[1] + count
        self._sums.update((value, count))
        return value, count

    def close(self) -> None:
        """Nothing to give back."""


class RowSums(_Sums):
    """Rows one by one."""

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        value = count = 0
        for row in rows:
            value += row.v
            count += 1
        value, count = self._add(value, count)
        yield Row(k=key[0], v=value, n=count)


class PandasSums(_Sums):
    """Rows as pandas DataFrames."""

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        value = count = 0
        for frame in rows:
            value += int(frame["v"].sum())
            count += len(frame)
        value, count = self._add(value, count)
        yield pd.DataFrame({"k": [key[0]], "v": [value], "n": [count]})
