"""Examples of the documentation that start a Spark of their own: blocks of kind `python on-spark` run as printed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headwater.spark.java import why_no_spark
from tests.docs.test_readme import PAGES, Block, blocks, name_of

#: By page and line.
BLOCKS = {
    f"{name_of(page)}:{block.line}": block
    for page in PAGES
    for block in blocks(page.read_text("utf-8"))
    if block.kind == "python on-spark"
}


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS.keys())
def test_examples_run_as_printed(block: Block, tmp_path: Path) -> None:
    if (reason := why_no_spark()) is not None:
        pytest.skip(reason)
    done = subprocess.run(
        [sys.executable, "-c", block.text], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == block.output


def test_there_are_some() -> None:
    assert BLOCKS
