"""Damaged files: what is read is right up to some epoch, or the error says that the file is damaged."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.full_disk import PARCELS, SETUP
from tests.faults.harness import Event, Nursery
from tests.faults.process import Job

DATABASE = "warehouse.duckdb"
LOG = "warehouse.duckdb.wal"
Damage = Callable[[Path], object]
#: Epochs in the file, and in file and log together.
IN_FILE, IN_ALL = 2, 4
WRITE = f"""
import os, signal, sys
import headwater as hw
folder, parcels = sys.argv[1], {PARCELS!r}
with hw.connect(folder) as db:
    db.execute({SETUP!r})
    for _ in range({IN_FILE}):
        db.insert("parcels", parcels)
db = hw.connect(folder)
for _ in range({IN_ALL - IN_FILE}):
    db.insert("parcels", parcels)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse whose last epochs are in the log only."""
    folder = tmp_path_factory.mktemp("d") / "sound"
    subprocess.run([sys.executable, "-c", WRITE, str(folder)], check=False)
    assert (folder / LOG).stat().st_size > 1000
    return folder


@pytest.fixture
def look(nursery: Nursery, sound: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Damage], Event]:
    """Damages a copy and tells what a process finds there: `read` or `refused`."""

    def look(damage: Damage) -> Event:
        folder = tmp_path_factory.mktemp("d") / "w"
        folder.mkdir()
        for name in (DATABASE, LOG):
            shutil.copy(sound / name, folder / name)
        damage(folder)
        events = {one["event"]: one for one in nursery.start(Job(str(folder), scenario="look"))}
        shutil.rmtree(folder)
        assert "failed" not in events, events["failed"]["error"]
        assert events["ended"]["code"] == 0, "the process came to a violent end"
        return events.get("refused") or events["read"]

    return look


def cut(file: str, size: int) -> Damage:
    return lambda folder: os.truncate(folder / file, size)


def flip(file: str, at: int) -> Damage:
    def damage(folder: Path) -> None:
        content = bytearray((folder / file).read_bytes())
        content[at] ^= 0x5A
        (folder / file).write_bytes(content)

    return damage


def check(event: Event) -> None:
    if event["event"] == "refused":
        assert event["code"] == "HW404", event["message"]
        assert "help: " in event["message"]
        return
    epoch = event["epoch"]
    assert IN_FILE <= epoch <= IN_ALL
    expected = sorted((n, town, note) for n, town, note in PARCELS * epoch)
    assert sorted(tuple(row.values()) for row in event["rows"]["parcels"]) == expected
    assert sorted(row["n"] for row in event["rows"]["towns"]) == [100 * epoch] * 3


def test_sound_files_are_read(look: Callable[[Damage], Event]) -> None:
    event = look(lambda folder: None)
    check(event)
    assert event["epoch"] == IN_ALL


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.6, 0.9, 0.999999])
def test_a_file_cut_short_is_refused(look: Callable[[Damage], Event], sound: Path, share: float) -> None:
    event = look(cut(DATABASE, int((sound / DATABASE).stat().st_size * share)))
    assert event["event"] == "refused"
    check(event)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.6, 0.9, 0.999999])
def test_a_log_cut_short_ends_with_a_whole_epoch(look: Callable[[Damage], Event], sound: Path, share: float) -> None:
    """A process that is killed while it writes leaves such a log: the rest was never acknowledged."""
    event = look(cut(LOG, int((sound / LOG).stat().st_size * share)))
    assert event["event"] == "read"
    check(event)


@pytest.mark.parametrize("share", [0.0, 0.003, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99])
def test_a_changed_byte_in_the_file(look: Callable[[Damage], Event], sound: Path, share: float) -> None:
    check(look(flip(DATABASE, int((sound / DATABASE).stat().st_size * share))))


@pytest.mark.parametrize("share", [0.0, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_a_changed_byte_in_the_log(look: Callable[[Damage], Event], sound: Path, share: float) -> None:
    check(look(flip(LOG, int((sound / LOG).stat().st_size * share))))


@pytest.mark.parametrize("file", [DATABASE, LOG])
def test_a_file_of_noise(look: Callable[[Damage], Event], file: str) -> None:
    check(look(lambda folder: (folder / file).write_bytes(random.Random(1).randbytes(50_000))))


def test_noise_after_the_end_of_the_log(look: Callable[[Damage], Event]) -> None:
    def damage(folder: Path) -> None:
        with (folder / LOG).open("ab") as log:
            log.write(b"noise" * 20)

    event = look(damage)
    check(event)
    assert event["event"] == "refused" or event["epoch"] == IN_ALL


@pytest.mark.parametrize("at", [*range(9), 36, 37, 39, 40])
def test_a_log_whose_beginning_is_damaged_is_not_left_aside(
    look: Callable[[Damage], Event], sound: Path, at: int
) -> None:
    head = (sound / LOG).read_bytes()[:64]
    at = at if at < 9 else head.index(b"\x67\x00", 9) + at - 36
    event = look(flip(LOG, at))
    assert event["event"] == "refused", (at, head.hex(" "))
    check(event)


def test_a_log_without_its_file(look: Callable[[Damage], Event]) -> None:
    event = look(lambda folder: (folder / DATABASE).unlink())
    assert event["event"] == "refused"
    check(event)
