"""A suite's options on the command line, as the fields of a dataclass say them."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from typing import Any


def option(default: Any, told: str) -> Any:
    """A field whose value can be given on the command line; a tuple is given as words with commas between."""
    return dataclasses.field(default=default, metadata={"help": told})


def add(parser: argparse.ArgumentParser, options: type[Any]) -> None:
    """Let a parser take all fields of a dataclass."""
    for field in dataclasses.fields(options):
        shown = ",".join(map(str, field.default)) if isinstance(field.default, tuple) else field.default
        parser.add_argument(
            f"--{field.name.replace('_', '-')}",
            type=_reader(field.default),
            default=field.default,
            help=f"{field.metadata['help']} (default: {shown})",
        )


def given(options: type[Any], namespace: argparse.Namespace) -> Any:
    """What was said."""
    return options(**{field.name: getattr(namespace, field.name) for field in dataclasses.fields(options)})


def _reader(default: object) -> Callable[[str], object]:
    if not isinstance(default, tuple):
        return type(default)
    one = type(default[0])
    return lambda text: tuple(
        one(part.strip().replace("_", "")) if one is not str else part.strip() for part in text.split(",")
    )
