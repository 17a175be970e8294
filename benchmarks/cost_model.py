"""What an epoch in tasks costs, as a sum of few terms, fitted to figures of the suite `tasks`.

`python -m benchmarks.cost_model FIGURES.json [...] --hold-out 0.3 10` fits the terms to all points but those of some
scales, says how far off it is on these, and what it expects of more nodes than there were.

Terms are in milliseconds of processors, which are told apart by process:

| part | where | terms |
|---|---|---|
| home | the process that owns the warehouse: resolving, feeding, listing, committing | 1, changes, partitions |
| scheduler | Spark's driver: a job is planned, tasks are handed out | 1, tasks |
| executors | Spark's executors, all together: tasks are begun, messages are moved | executors, tasks, MiB sent |
| workers | Python on executors, beside what tasks count themselves, all together | tasks, MiB sent |
| task | the longest task of each level, added up | levels, changes and MiB of state in a partition |

Of an epoch on idle nodes the parts happen one after the other, those of executors and workers side by side on all
nodes. So its time by the clock is expected to be their sum, with the share of one node of these two; the clock of
measured epochs says how far that holds.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.disk import EXECUTORS, HOME, SCHEDULER, WORKERS
from benchmarks.table import render
from benchmarks.tasks import TASKS

Row = dict[str, object]
NODES = (1, 2, 10, 100, 1_000)
TASK = "task"
#: What all nodes do side by side.
SHARED = (EXECUTORS, WORKERS)


@dataclass(frozen=True)
class Point:
    """An epoch: what it is made of, and what it took in milliseconds of processors, and by the clock."""

    query: str
    scale: float
    changes: float
    executors: float
    partitions: float
    levels: float
    state_mib: float
    sent_mib: float
    took_ms: Mapping[str, float]
    wall_ms: float = 0.0

    @staticmethod
    def of(row: Mapping[str, float | str], by_kind: Mapping[str, float]) -> Point:
        tasks = float(row["tasks processor ms"])
        took = {
            HOME: by_kind[HOME],
            SCHEDULER: by_kind[SCHEDULER],
            EXECUTORS: by_kind[EXECUTORS],
            WORKERS: max(0.0, by_kind[WORKERS] - tasks),
            TASK: float(row["longest processor ms"]),
        }
        return Point(
            str(row["query"]),
            float(row["scale"]),
            float(row["changes"]),
            float(row["executors"]),
            float(row["partitions"]),
            float(row["levels"]),
            float(row["away MiB"]),
            float(row["sent MiB"]),
            took,
            float(row["p50 ms"]),
        )

    @property
    def tasks(self) -> float:
        return self.partitions * self.levels

    def by_the_clock(self, parts: Mapping[str, float]) -> float:
        """What its parts come to if one follows the other, and nodes work side by side."""
        turns = math.ceil(self.partitions / self.executors)
        shares = dict.fromkeys(SHARED, 1 / self.executors) | {TASK: float(turns)}
        return sum(ms * shares.get(part, 1.0) for part, ms in parts.items())


#: The terms of each part: what a coefficient is multiplied with.
TERMS: Mapping[str, Mapping[str, Callable[[Point], float]]] = {
    HOME: {
        "ms": lambda one: 1.0,
        "ms / 1,000 changes": lambda one: one.changes / 1000,
        "ms / partition": lambda one: one.partitions,
    },
    SCHEDULER: {
        "ms": lambda one: 1.0,
        "ms / task": lambda one: one.tasks,
    },
    EXECUTORS: {
        "ms / executor": lambda one: one.executors,
        "ms / task": lambda one: one.tasks,
        "ms / MiB sent": lambda one: one.sent_mib,
    },
    WORKERS: {
        "ms / task": lambda one: one.tasks,
        "ms / MiB sent": lambda one: one.sent_mib,
    },
    TASK: {
        "ms / level": lambda one: one.levels,
        "ms / 1,000 changes in a partition": lambda one: one.changes / 1000 / one.partitions,
        "ms / MiB of state in a partition": lambda one: one.state_mib / one.partitions,
    },
}


@dataclass(frozen=True)
class Model:
    """The coefficients of a query's terms, by part."""

    query: str
    coefficients: Mapping[str, Mapping[str, float]]

    def expected(self, point: Point) -> dict[str, float]:
        """Milliseconds of each part."""
        return {
            part: sum(self.coefficients[part][name] * term(point) for name, term in terms.items())
            for part, terms in TERMS.items()
        }


def fit(query: str, points: Sequence[Point]) -> Model:
    """The coefficients, none below nothing, with the least squares of relative errors."""
    found: dict[str, dict[str, float]] = {}
    for part, terms in TERMS.items():
        took = np.array([max(one.took_ms[part], 1.0) for one in points])
        matrix = np.array([[term(one) for term in terms.values()] for one in points]) / took[:, None]
        found[part] = dict(zip(terms, _not_negative(matrix, np.ones(len(points))), strict=True))
    return Model(query, found)


def _not_negative(matrix: np.ndarray, wanted: np.ndarray) -> list[float]:
    """Least squares over all choices of terms of which none comes out negative: there are few terms."""
    columns = matrix.shape[1]
    best, least = [0.0] * columns, float(np.sum(wanted**2))
    for chosen in range(1, 2**columns):
        kept = [i for i in range(columns) if chosen >> i & 1]
        solved, *_ = np.linalg.lstsq(matrix[:, kept], wanted, rcond=None)
        error = float(np.sum((matrix[:, kept] @ solved - wanted) ** 2))
        if (solved >= 0).all() and error < least - 1e-12:
            best, least = [0.0] * columns, error
            for i, value in zip(kept, solved, strict=True):
                best[i] = float(value)
    return best


def errors(model: Model, points: Sequence[Point]) -> list[Row]:
    """What was expected of points beside what they took: by part, of all processors, and by the clock."""
    rows: list[Row] = []
    for one in points:
        expected = model.expected(one)
        clock = one.by_the_clock(expected)
        took, guess = one.by_the_clock(one.took_ms), clock
        rows.append(
            {
                "query": one.query,
                "scale": one.scale,
                "changes": int(one.changes),
                "executors": int(one.executors),
                "partitions": int(one.partitions),
                **{f"{part} ms": f"{one.took_ms[part]:.0f} / {expected[part]:.0f}" for part in TERMS},
                "in turn ms": f"{took:.0f} / {guess:.0f}",
                "off": f"{guess / took - 1:+.0%}",
                "clock ms": round(one.wall_ms),
                "clock off": f"{clock / one.wall_ms - 1:+.0%}" if one.wall_ms else "",
            }
        )
    return rows


def project(model: Model, like: Point, nodes: Sequence[int], grows: bool, each: int = 1) -> list[Row]:
    """What more nodes of one core would do.

    Args:
        model: of the query.
        like: a point whose state and bytes grow or stay.
        nodes: how many.
        grows: whether changes and state grow with the nodes.
        each: partitions on a node.
    """
    rows: list[Row] = []
    for number in nodes:
        times = number if grows else 1
        point = replace(
            like,
            scale=like.scale * times,
            changes=like.changes * times,
            executors=number,
            partitions=number * each,
            state_mib=like.state_mib * times,
            sent_mib=like.sent_mib * times,
        )
        expected = model.expected(point)
        rows.append(
            {
                "query": like.query,
                "nodes": number,
                "changes": int(point.changes),
                "state MiB": round(point.state_mib),
                **{f"{part} s": round(ms / 1000, 2) for part, ms in expected.items() if part not in SHARED},
                **{f"{part} s, each": round(expected[part] / number / 1000, 2) for part in SHARED},
                "epoch s": round(point.by_the_clock(expected) / 1000, 2),
            }
        )
    return rows


def load(files: Sequence[Path]) -> list[Point]:
    """The points of some files of figures: single views in tasks."""
    rows = [row for file in files for row in json.loads(file.read_text())["rows"]]
    return [Point.of(row, row["processors ms"]) for row in rows if row["system"] == TASKS and row["views"] == 1]


def main(arguments: list[str] | None = None) -> int:
    """Fit, check, and look ahead."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", nargs="+", type=Path, help="files that the suite `tasks` wrote")
    parser.add_argument("--hold-out", type=float, nargs="*", default=[], help="scales that are not fitted to")
    parser.add_argument("--nodes", type=int, nargs="*", default=list(NODES), help="numbers of nodes to look at")
    given = parser.parse_args(arguments)
    points = load(given.figures)
    for query in dict.fromkeys(one.query for one in points):
        mine = [one for one in points if one.query == query]
        fitted = [one for one in mine if one.scale not in given.hold_out]
        model = fit(query, fitted)
        print(f"\n{query}, fitted to {len(fitted)} points")
        print(
            render(
                [
                    {"part": p, "term": n, "value": round(v, 3)}
                    for p, c in model.coefficients.items()
                    for n, v in c.items()
                ]
            )
        )
        print("\nthose it was fitted to (took / expected)")
        print(render(errors(model, fitted)))
        held = [one for one in mine if one.scale in given.hold_out]
        if held:
            print("\nthose it was not fitted to (took / expected)")
            print(render(errors(model, held)))
        like = max(fitted, key=lambda one: (one.scale, one.changes, -one.partitions))
        print(f"\nmore nodes, the work of scale {like.scale:g}")
        print(render(project(model, like, given.nodes, grows=False)))
        print("\nmore nodes, changes and state growing with them")
        print(render(project(model, like, given.nodes, grows=True)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
