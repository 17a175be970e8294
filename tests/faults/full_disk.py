"""A child whose files must not grow: what a full disk looks like to the process."""

from __future__ import annotations

import resource
import signal
from pathlib import Path

import headwater as hw
from tests.faults.process import Job, tell


def meet_a_full_disk(job: Job) -> None:
    """Fill a warehouse, forbid its files to grow, insert, read, allow it again, insert."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # the write then fails with EFBIG, as one fails with ENOSPC
    db = hw.connect(job.folder)
