"""Imports go one way: a layer knows the ones before it and nothing of the ones after."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "headwater"

#: Each layer with the layers it may import from, besides itself.
LAYERS: dict[str, set[str]] = {
    "errors": set(),
    "version": set(),
    "results": set(),
    "types": set(),
    "algebra": {"errors", "types"},
    "sql": {"errors", "types", "algebra"},
    "delta": {"errors", "types", "algebra"},
    "plan": {"errors", "types", "algebra", "sql", "delta"},
    "emit": {"errors", "types", "algebra", "sql", "delta", "plan"},
    "store": {"errors", "types", "algebra", "sql", "delta", "plan", "emit"},
    "engine": {"errors", "types", "algebra", "sql", "delta", "plan", "emit", "store"},
    "serve": {"errors", "version", "results", "types", "algebra", "sql", "delta", "plan", "emit", "store", "engine"},
}
LAYERS["spark"] = set(LAYERS)
#: The public face: above everything but the command line.
FACE = {"database", "builder", "relations", "creating", "creating_parts", "statements", "reports", "part_reports"}
FACE |= {"answering", "borrowing", "explaining", "planning", "planning_groups", "planning_reads", "project", "__init__"}
FACE |= {"reading", "bound", "shapes", "indexing", "points", "trying", "placement", "task_reports"}
LAYERS |= {name: set(LAYERS) | FACE for name in FACE}
LAYERS["http"] = set(LAYERS)
LAYERS["cli"] = set(LAYERS) | {"cli", ""}

ENGINE_LIBRARY = {"duckdb": {"emit", "store", "engine", "serve"}, "pyspark": {"spark"}}
ENGINE_LIBRARY |= {"starlette": {"http"}, "uvicorn": {"http"}, "h11": {"http"}}


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def layer_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).parts
    return parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Every module that a file imports, also inside functions; what only type checkers see does not count."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            names |= {f"{module}.{alias.name}" if module == "headwater" else module for alias in node.names}
    return names


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_layer_imports_only_from_below(path: Path) -> None:
    layer = layer_of(path)
    assert layer in LAYERS, f"{layer} has no place in the order of layers"
    for module in imported(path):
        head, _, rest = module.partition(".")
        if head == "headwater":
            target = rest.split(".")[0] or "__init__"
            if target not in LAYERS:  # a public name of the package itself
                target = "__init__"
            assert target == layer or target in LAYERS[layer], f"{path.name} ({layer}) imports {module}"
        elif head in ENGINE_LIBRARY:
            assert layer in ENGINE_LIBRARY[head], f"{path.name} ({layer}) imports {head}"


def test_the_order_of_layers_has_no_cycle() -> None:
    done: set[str] = set()
    waiting = {name: below - FACE for name, below in LAYERS.items() if name not in FACE and name not in ("http", "cli")}
    while waiting:
        ready = {name for name, below in waiting.items() if below <= done}
        assert ready, f"layers that import each other: {sorted(waiting)}"
        done |= ready
        waiting = {name: below for name, below in waiting.items() if name not in ready}
