"""Runs cases again from their scripts: `python -m tests.equivalence.replay FILE...`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from .case import parse_script
from .check import check


def main(arguments: Sequence[str] | None = None) -> int:
    paths = sys.argv[1:] if arguments is None else arguments
    if not paths:
        print(__doc__, file=sys.stderr)
        return 2
    failed = False
    for path in paths:
        outcome = check(parse_script(Path(path).read_text(encoding="utf-8")))
        failed = failed or outcome.failure is not None
        verdict = str(outcome.failure) if outcome.failure else f"passes, {outcome.epochs} epochs"
        print(f"{path}: {verdict}" + (f" (not supported: {outcome.unsupported})" if outcome.unsupported else ""))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
