"""Runs cases again from their scripts: `python -m tests.equivalence.replay FILE...`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from .case import parse_script
from .check import check
from .parted.case import parse_script as parse_story
from .parted.check import check as check_story


def main(arguments: Sequence[str] | None = None) -> int:
    paths = sys.argv[1:] if arguments is None else arguments
    if not paths:
        print(__doc__, file=sys.stderr)
        return 2
    failed = False
    for path in paths:
        text = Path(path).read_text(encoding="utf-8")
        outcome = check_story(parse_story(text)) if "PARTITION LENGTH" in text else check(parse_script(text))
        failed = failed or outcome.failure is not None
        verdict = str(outcome.failure) if outcome.failure else f"passes, {outcome.epochs} epochs"
        print(f"{path}: {verdict}" + (f" (not supported: {outcome.unsupported})" if outcome.unsupported else ""))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
