"""Folders that cannot be used as a warehouse, each with its own reason."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import headwater as hw


def refusal(folder: Path) -> hw.HeadwaterError:
    with pytest.raises(hw.HeadwaterError) as caught:
        hw.connect(folder)
    assert caught.value.hint
    assert str(folder) in str(caught.value)
    return caught.value


def make(folder: Path) -> None:
    with hw.connect(folder) as db:
        db.execute("CREATE TABLE t (x INT); INSERT INTO t VALUES (1)")


def test_a_folder_with_other_things_in_it(folder: Path) -> None:
    folder.mkdir()
    (folder / "letters.txt").write_text("Dear Anna")
    assert refusal(folder).code == "HW401"
    assert [one.name for one in folder.iterdir()] == ["letters.txt"], "nothing was written there"


def test_a_file_where_the_folder_should_be(folder: Path) -> None:
    folder.write_text("no folder")
    assert refusal(folder).code == "HW401"


def test_a_database_of_somebody_else(folder: Path) -> None:
    folder.mkdir()
    with duckdb.connect(str(folder / "warehouse.duckdb")) as file:
        file.execute("CREATE TABLE theirs (x INT)")
    assert refusal(folder).code == "HW401"
    with duckdb.connect(str(folder / "warehouse.duckdb")) as file:
        assert file.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("theirs",)]


def test_a_newer_format(folder: Path) -> None:
    make(folder)
    with duckdb.connect(str(folder / "warehouse.duckdb")) as file:
        file.execute("UPDATE hw.meta SET value = '99' WHERE key = 'format'")
    error = refusal(folder)
    assert error.code == "HW403"
    assert "99" in error.message


def test_other_files_beside_a_warehouse_do_not_matter(folder: Path) -> None:
    make(folder)
    (folder / "notes.txt").write_text("mine")
    with hw.connect(folder) as db:
        assert db.query("SELECT * FROM t").num_rows == 1


#: A process that is not root, to which permissions do not apply; it imports what it needs while it still may.
CONNECT_AS_NOBODY = """
import os, sys
import headwater as hw
with hw.connect() as db:
    db.execute("CREATE TABLE t (x INT); INSERT INTO t VALUES (1); SELECT * FROM t")
os.chdir(sys.argv[1])  # from here the way does not lead through folders that only root may pass
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
try:
    db = hw.connect("w")
    db.execute("INSERT INTO t VALUES (2)")
except hw.HeadwaterError as error:
    print(error)
else:
    print("written")
"""


@pytest.mark.parametrize("made", [True, False], ids=["warehouse", "empty"])
def test_a_folder_that_cannot_be_written(folder: Path, made: bool) -> None:
    if made:
        make(folder)
    else:
        folder.mkdir()
    folder.chmod(0o555)
    assert "error[HW405]" in connect_as_nobody(folder)


def test_a_file_that_cannot_be_written(folder: Path) -> None:
    make(folder)
    folder.chmod(0o777)
    (folder / "lock").chmod(0o666)
    (folder / "warehouse.duckdb").chmod(0o444)
    told = connect_as_nobody(folder)
    assert "error[HW405]" in told, told
    assert "damaged" not in told


def test_a_folder_that_cannot_be_reached(folder: Path) -> None:
    make(folder)
    assert "error[HW405]" in connect_as_nobody(folder, mode=0o600)


def connect_as_nobody(folder: Path, mode: int = 0o755) -> str:
    """What connecting says, where the folder above the warehouse has this mode."""
    folder.parent.chmod(mode)
    command = [sys.executable, "-c", CONNECT_AS_NOBODY, str(folder.parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    folder.parent.chmod(0o755)
    assert done.returncode == 0, done.stderr
    return done.stdout


HOLD = """
import sys
import headwater as hw
with hw.connect(sys.argv[1]) as db:
    db.execute("CREATE TABLE t (x INT)")
    print("open", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the warehouse open."""
    command = [sys.executable, "-c", HOLD, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == "open\n"
        yield process
        process.stdin.close()


def test_a_warehouse_that_another_process_has_open_is_reached_through_it(
    folder: Path, holder: subprocess.Popen[str]
) -> None:
    with hw.connect(folder) as db:
        assert isinstance(db, hw.RemoteDatabase)
        db.insert("t", [(1,), (2,)])
        assert db.query("SELECT sum(x) AS s FROM t").to_pylist() == [{"s": 3}]


def test_the_lock_of_a_killed_process_is_free(folder: Path, holder: subprocess.Popen[str]) -> None:
    with hw.connect(folder) as db:
        db.insert("t", [(1,)])
    holder.kill()
    holder.wait()
    assert (folder / "headwater.sock").exists(), "a killed process leaves its socket"
    with hw.connect(folder) as db:
        assert isinstance(db, hw.Database)
        assert db.query("SELECT * FROM t").num_rows == 1


def test_a_lock_held_by_a_process_that_does_not_answer(folder: Path) -> None:
    make(folder)
    with (folder / "lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(f"{os.getpid():<10}")
        lock.flush()
        error = refusal(folder)
    assert error.code in ("HW402", "HW450")
    assert str(os.getpid()) in error.message
    with hw.connect(folder) as db:
        assert isinstance(db, hw.Database), "the lock is free again"


FORK = """
import os, signal, sys
import headwater as hw
db = hw.connect(sys.argv[1])
db.execute("CREATE TABLE t (x INT); INSERT INTO t VALUES (1)")
child = os.fork()
if child == 0:
    try:
        db.query("SELECT * FROM t")
    except hw.HeadwaterError as error:
        assert error.code == "HW408", error
    with hw.connect(sys.argv[1]) as mine:
        assert isinstance(mine, hw.RemoteDatabase)
        mine.insert("t", [(2,)])
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
db.insert("t", [(3,)])
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_that_is_forked_off_does_not_close_the_warehouse(folder: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FORK, str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
    with hw.connect(folder) as db:
        assert db.query("SELECT x FROM t ORDER BY x").column("x").to_pylist() == [1, 2, 3]


def test_a_file_that_duckdb_has_open_elsewhere_is_not_called_damaged(folder: Path) -> None:
    make(folder)
    hold = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", hold, str(folder / "warehouse.duckdb")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == "open\n"
        error = refusal(folder)
        process.stdin.close()
    assert error.code == "HW402"
    assert "damaged" not in str(error)
