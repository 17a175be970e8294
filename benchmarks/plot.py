"""Figures as plots, SVG files beside the JSON: what is in the table, to be seen at a glance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from benchmarks.systems import CHOSEN, DUCKDB, HARD_CODED, SPARK, STRATEGIES

Row = Mapping[str, object]
Drawn = tuple[str, Figure]

#: A colour for each system, the same in all plots.
COLOURS = dict(
    zip(
        (*STRATEGIES, CHOSEN, HARD_CODED, DUCKDB, SPARK),
        ("#1b7837", "#2166ac", "#92c5de", "#b2abd2", "#80cdc1", "#8c510a", "#000000", "#d6604d", "#bababa", "#f4a582"),
        strict=True,
    )
)
TIME = "milliseconds for an epoch, median"


def draw(suite: str, rows: Sequence[Row], file: Path) -> list[Path]:
    """Write a suite's plots, if it has any, next to its file of figures; returns their paths."""
    out: list[Path] = []
    for name, figure in PLOTS.get(suite, lambda _: iter(()))(rows):
        path = file.with_name(f"{file.stem}-{name}.svg")
        figure.savefig(path, format="svg", bbox_inches="tight", metadata={"Date": None})
        out.append(path)
    return out


def strategies(rows: Sequence[Row]) -> Iterator[Drawn]:
    """Bars by query and system, one plot for each scale and size; faint where a system did not get to the end."""
    for (scale, changes), some in _grouped(rows, "scale", "changes"):
        timed = [row for row in some if row.get("p50 ms") is not None]
        queries = list(dict.fromkeys(str(row["query"]) for row in some))
        systems = [one for one in COLOURS if any(row["system"] == one for row in timed)]
        if not systems:
            continue
        figure, axes = _axes(width=max(5.0, 1.3 * len(queries) + 2))
        width = 0.8 / max(1, len(systems))
        for number, system in enumerate(systems):
            for row in (row for row in timed if row["system"] == system):
                place = queries.index(str(row["query"])) + (number - (len(systems) - 1) / 2) * width
                shade = 0.35 if row.get("note") else 1.0
                axes.bar(place, row["p50 ms"], width * 0.95, color=COLOURS[system], alpha=shade)
            axes.bar(0, 0, color=COLOURS[system], label=system)
        axes.set_xticks(range(len(queries)), queries)
        axes.set_ylabel(TIME)
        at = f", scale {scale}" if scale is not None else ""
        axes.set_title(f"Epochs of {changes:,} changes{at}")
        _finish(axes)
        yield f"{changes}" if scale is None else f"{scale}-{changes}", figure


def growth(rows: Sequence[Row]) -> Iterator[Drawn]:
    """A line for each query over the scales, one plot for each system and size."""
    for (system, changes), some in _grouped(rows, "system", "changes"):
        figure, axes = _axes()
        _lines(axes, some, "scale", lambda row: str(row["query"]))
        axes.set_xlabel("TPC-H scale factor")
        axes.set_title(f"{system}, epochs of {changes:,} changes")
        _finish(axes)
        yield f"{str(system).replace(' ', '-')}-{changes}", figure


def proportion(rows: Sequence[Row]) -> Iterator[Drawn]:
    """Lines over the rows that are stored, for each size; DuckDB's recomputation dashed. One plot for each view."""
    for (view,), some in _grouped(rows, "view"):
        figure, axes = _axes()
        _lines(axes, some, "rows", lambda row: f"epochs of {row['changes']:,} changes")
        most = max(int(str(row["changes"])) for row in some)
        whole = [row for row in some if row["changes"] == most]
        axes.plot(
            [row["rows"] for row in whole], [row["recompute ms"] for row in whole], "--", color="grey", label=DUCKDB
        )
        axes.set_xlabel("rows of the map or tables")
        axes.set_title(f"View {view}")
        _finish(axes)
        yield str(view), figure


def sync(rows: Sequence[Row]) -> Iterator[Drawn]:
    """The shapes of the paper's figures 6 to 11: one plot for each."""
    parts = {part: [row for row in rows if row["part"] == part] for part in dict.fromkeys(row["part"] for row in rows)}
    wanted = {
        "figure-6": ("tagger", "rooms", "tuples/s", lambda row: f"{row['pipeline']}, epochs of {row['rows']:,}"),
        "figure-7": ("select", "tuples", "seconds", lambda row: str(row["pipeline"])),
        "figure-8-time": ("selectivity", "selectivity", "seconds", _of_key),
        "figure-8-state": ("selectivity", "selectivity", "state rows", _of_key),
        "figure-9-time": ("selectivity", "selectivity", "seconds", _merged),
        "figure-9-state": ("selectivity", "selectivity", "state rows", _merged),
        "figure-9-output": ("selectivity", "selectivity", "output tuples", _merged),
        "figure-10": ("synchroniser", "step s", "output tuples", lambda row: f"{row['rooms']} rooms"),
        "figure-11-tuples": ("presynchronisation", "step s", "aggregated tuples", lambda row: str(row["pipeline"])),
        "figure-11-time": ("presynchronisation", "step s", "seconds", lambda row: str(row["pipeline"])),
    }
    for name, (part, x, y, label) in wanted.items():
        figure, axes = _axes()
        for text in dict.fromkeys(label(row) for row in parts.get(part, ()) if label(row)):
            line = [row for row in parts[part] if label(row) == text and row.get(y) is not None]
            axes.plot([row[x] for row in line], [row[y] for row in line], marker="o", label=text)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        axes.set_ylim(bottom=0)
        axes.set_title(name.replace("-", " "))
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
        if part in parts:
            yield name, figure


#: The axes of the figures of the suite `viewdf`, and their titles.
_PARTS = {
    6: ("rows", "pairs in a part", "pattern"),
    7: ("back", "parts that a recomputation looks back to", "pattern"),
    8: ("high", "percent of rows with a high loss", "pattern"),
    9: ("rows", "rows in a part", "MAX over a window"),
    10: ("back", "parts in the window", "MAX over a window"),
    11: ("rows", "rows in a part", "SUM over a window"),
    12: ("back", "parts in the window", "SUM over a window"),
}


def viewdf(rows: Sequence[Row]) -> Iterator[Drawn]:
    """The shapes of the paper's figures 6 to 12: one plot for each; by rows in a part, where they differ."""
    for figure, (x, axis, title) in _PARTS.items():
        some = [row for row in rows if row["figure"] == figure]
        if not some:
            continue
        by_rows = figure in (10, 12) and len({row["rows"] for row in some}) > 1
        plain = min(len(_view(row)) for row in some)

        def label(row: Row, by_rows: bool = by_rows, plain: int = plain) -> str:
            """The system; what differs from the simplest view's name, and the size, if there are several."""
            return str(row["system"]) + _view(row)[plain:] + (f", {row['rows']:,} rows" if by_rows else "")

        drawing, axes = _axes()
        _lines(axes, sorted(some, key=lambda row, x=x: int(str(row[x]))), x, label)
        axes.set_ylabel("milliseconds for a part, median")
        axes.set_xlabel(axis)
        axes.set_title(f"Figure {figure}: {title}")
        _finish(axes)
        yield f"figure-{figure}", drawing


def aim(rows: Sequence[Row]) -> Iterator[Drawn]:
    """Inserts over the number of customers; reads of each view, at rest and while calls come."""
    inserts = [row for row in rows if row["measure"] == "insert" and row.get("events/s") is not None]
    if inserts:
        figure, axes = _axes()
        _lines(axes, inserts, "entities", lambda row: str(row["system"]), "events/s")
        axes.set_xlabel("customers")
        axes.set_ylabel("events a second")
        axes.set_title("Inserts with six views (figure 9)")
        _finish(axes)
        yield "insert", figure
    for measure, title in (
        ("read", "Reads of unchanged views (table 3)"),
        ("concurrent", "Reads beside inserts (figure 8)"),
    ):
        for (entities,), some in _grouped([row for row in rows if row["measure"] == measure], "entities"):
            yield (
                f"{measure}-{entities}",
                _bars(some, lambda row: str(row["case"]).rpartition(", ")[0], "reads/s", title),
            )


def split(rows: Sequence[Row]) -> Iterator[Drawn]:
    """Figure 10 as bars, figure 11 with a point for each query and system."""
    timed = [row for row in rows if row.get("lines/s") is not None]
    for (scale,), some in _grouped([row for row in timed if row["figure"] == "10"], "scale"):
        yield f"figure-10-{scale}", _bars(some, lambda row: str(row["query"]), "lines/s", f"Inserts, scale {scale}")
    for (scale, chunk), some in _grouped([row for row in timed if row["figure"] == "11"], "scale", "chunk"):
        figure, axes = _axes()
        for system in dict.fromkeys(row["system"] for row in some):
            ours = [row for row in some if row["system"] == system]
            axes.scatter([row["lines/s"] for row in ours], [row["queries/s"] for row in ours], label=system)
            for row in ours:
                axes.annotate(str(row["query"]), (row["lines/s"], row["queries/s"]), fontsize=7)
        axes.set_xscale("log")
        axes.set_xlabel("lines a second")
        axes.set_ylabel("queries a second")
        axes.set_title(f"Inserts and queries, chunks of {chunk:,}, scale {scale}")
        _finish(axes)
        yield f"figure-11-{scale}-{chunk}", figure


def _bars(rows: Sequence[Row], group: Callable[[Row], str], y: str, title: str) -> Figure:
    """Bars of all systems, in groups."""
    groups = list(dict.fromkeys(map(group, rows)))
    systems = list(dict.fromkeys(str(row["system"]) for row in rows))
    figure, axes = _axes(width=max(5.0, 1.3 * len(groups) + 2))
    width = 0.8 / len(systems)
    for number, system in enumerate(systems):
        ours = [row for row in rows if row["system"] == system]
        places = [groups.index(group(row)) + (number - (len(systems) - 1) / 2) * width for row in ours]
        axes.bar(places, [row[y] for row in ours], width * 0.95, label=system)
    axes.set_xticks(range(len(groups)), groups)
    axes.set_ylabel(y)
    axes.set_title(title)
    _finish(axes)
    return figure


def _view(row: Row) -> str:
    return str(row["case"]).partition(",")[0]


def _of_key(row: Row) -> str:
    return str(row["pipeline"]) if row["by"] == "key" else ""


def _merged(row: Row) -> str:
    return str(row["by"]) if row["pipeline"] == "merged Select-Tagger" else ""


def _lines(axes: Any, rows: Sequence[Row], x: str, label: Callable[[Row], str], y: str = "p50 ms") -> None:
    for name in dict.fromkeys(map(label, rows)):
        line = [row for row in rows if label(row) == name and row.get(y) is not None]
        axes.plot([row[x] for row in line], [row[y] for row in line], marker="o", label=name)
    axes.set_xscale("log")
    places = sorted({row[x] for row in rows}, key=lambda one: float(str(one)))
    axes.set_xticks(places, [f"{one:,}" for one in places])
    axes.minorticks_off()
    axes.set_ylabel(TIME)


def _grouped(rows: Sequence[Row], *columns: str) -> Iterator[tuple[tuple[object, ...], list[Row]]]:
    def of(row: Row) -> tuple[object, ...]:
        return tuple(row.get(column) for column in columns)

    for values, some in groupby(sorted(rows, key=lambda row: tuple(map(str, of(row)))), of):
        yield values, list(some)


def _axes(width: float = 6.5) -> tuple[Figure, Any]:
    figure = Figure(figsize=(width, 4))
    return figure, figure.subplots()


def _finish(axes: Any) -> None:
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(axis="y", which="major", alpha=0.4)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)


PLOTS: Mapping[str, Callable[[Sequence[Row]], Iterator[Drawn]]] = {
    "aim": aim,
    "finance": strategies,
    "growth": growth,
    "proportion": proportion,
    "split": split,
    "sync": sync,
    "tpch": strategies,
    "viewdf": viewdf,
}
