"""Figures as a table for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def render(rows: Sequence[Mapping[str, object]]) -> str:
    """Aligned columns, numbers to the right."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = [[_cell(row.get(column)) for column in columns] for row in rows]
    widths = [max(len(column), *(len(line[i]) for line in cells)) for i, column in enumerate(columns)]
    numeric = [all(isinstance(row.get(column), int | float | None) for row in rows) for column in columns]

    def line(values: Sequence[str]) -> str:
        return "  ".join(v.rjust(w) if n else v.ljust(w) for v, w, n in zip(values, widths, numeric, strict=True))

    return "\n".join([line(columns), line(["-" * w for w in widths]), *(line(row) for row in cells)])


def _cell(value: object) -> str:
    match value:
        case None:
            return "–"
        case float():
            return f"{value:,.2f}" if abs(value) < 100 else f"{value:,.0f}"
        case int():
            return f"{value:,}"
    return str(value)
