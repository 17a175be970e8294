"""Errors on stderr: for people with the place in the text, for programs as one JSON object."""

from __future__ import annotations

import argparse
import json
import os
import sys

from headwater.errors import HeadwaterError, InternalError


def report(error: HeadwaterError, debug: bool, *, as_json: bool = False) -> None:
    """Say what went wrong; the traceback of a bug only when debugging."""
    print(json.dumps(error.to_dict(), ensure_ascii=False) if as_json else error, file=sys.stderr)
    if debug and isinstance(error, InternalError):
        print("\n".join(getattr(error, "__notes__", [])), file=sys.stderr)


def debugging(args: argparse.Namespace) -> bool:
    """Whether tracebacks were asked for, by option or environment."""
    return getattr(args, "debug", False) or os.environ.get("HEADWATER_DEBUG", "") not in ("", "0")
