"""Segments on a storage that speaks the protocol of S3: whatever happens, nobody can tell by the rows."""

from __future__ import annotations

import itertools
import logging
import pickle
import shutil
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.engine import faults, merges, moving, spent_files
from headwater.engine.local_tasks import LocalRunner
from headwater.project import load_project
from headwater.store import remote_storage
from headwater.store.storage import Means, storage_of
from tests.faults.child import leftovers
from tests.s3 import BUCKET, Server, serving

pytestmark = pytest.mark.xdist_group("s3")

VIEWS = """
    CREATE TABLE t (a INT, b INT);
    CREATE VIEW v AS SELECT a, sum(b) AS s FROM t GROUP BY a;
    CREATE VIEW w AS SELECT s, count(*) AS n FROM v GROUP BY s
"""
_numbers = itertools.count()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as one:
        yield one


@pytest.fixture
def prefix() -> str:
    """A place that no other test has."""
    return f"s3://{BUCKET}/{next(_numbers)}"


def opened(
    folder: Path | str, storage: Mapping[str, object] | None, segments: str | None = None, **more: Any
) -> hw.Database:
    arguments = {"placement": "tasks", "partitions": 2, **more}
    return hw.Database(folder, runner=LocalRunner(2, 3), segments=segments, storage=storage, **arguments)


def fill(db: hw.Database, first: int, epochs: int) -> None:
    for number in range(first, first + epochs):
        db.insert("t", [(one, number) for one in range(6)])


def check(db: hw.Database, epochs: int) -> None:
    total = sum(range(epochs))
    assert sorted(db.query("SELECT * FROM v").to_pylist(), key=str) == [{"a": n, "s": total} for n in range(6)]
    assert db.query("SELECT * FROM w").to_pylist() == [{"s": total, "n": 6}]


def test_the_life_of_a_warehouse(
    tmp_path: Path, server: Server, prefix: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(merges, "MOST_SEGMENTS", 3)
    monkeypatch.setattr(merges, "STAGGERED", 1)
    monkeypatch.setattr(spent_files, "GRACE_SECONDS", -1.0)
    folder = tmp_path / "w"
    with opened(folder, server.options, prefix) as db:
        db.execute(VIEWS)
        fill(db, 0, 6)
        assert db.consolidator.wait(30)
        fill(db, 6, 1)
        check(db, 7)
        root = str(db.status()["segments"])
        assert root.startswith(f"{prefix}/headwater-")
        there = [one for one in server.listed(root) if one.endswith(".parquet")]
        assert len(there) < 7 * 3  # some were put together, and are gone
        assert not list((folder / "away" / "segments").rglob("*.parquet"))  # some may be on their way
    with opened(folder, server.options, placement=None, partitions=None) as db:  # where it is, is remembered
        assert db.status()["segments"] == root
        assert leftovers(db) == []
        fill(db, 7, 1)
        db.execute("ALTER WAREHOUSE SET PARTITIONS 3")
        fill(db, 8, 1)
        check(db, 9)
        assert all("/plans/" in one for one in leftovers(db))
    other = f"{prefix}-other"
    with opened(folder, server.options, other, partitions=None) as db:  # it moves
        check(db, 9)
        assert db.status()["partitions"] == 3 and server.listed(prefix) == []
        fill(db, 9, 1)
    with opened(folder, server.options, placement="inline", partitions=None) as db:
        check(db, 10)
        fill(db, 10, 1)
        assert server.listed(other) == []
    with opened(folder, None) as db:  # and is beside the warehouse, as at first
        check(db, 11)
        assert "segments" not in db.status() and list((folder / "away").rglob("*.parquet"))
    with opened(folder, server.options, prefix) as db:
        check(db, 11)
        assert not list((folder / "away" / "segments").rglob("*.parquet"))  # some may be on their way
    assert not [one for one in caplog.records if one.levelno >= logging.WARNING]


def test_large_segments_are_read_in_parts(
    tmp_path: Path, server: Server, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_storage, "WHOLE_BYTES", 100)
    monkeypatch.setattr(remote_storage, "_PIECE_BYTES", 1000)
    with opened(tmp_path / "w", server.options, prefix) as db:
        db.execute("CREATE TABLE t (a INT, b STRING); CREATE VIEW v AS SELECT a, max(b) AS b FROM t GROUP BY a")
        rows = [(one, f"{one:x}" * 9) for one in range(5000)]
        db.insert("t", rows)
        db.insert("t", [(one, "z") for one in range(0, 5000, 2)])
        found = {(one["a"], one["b"]) for one in db.query("SELECT * FROM v").to_pylist()}
        assert found == {(a, b if a % 2 else max(b, "z")) for a, b in rows}


def test_a_segment_that_is_gone_is_named_and_made_anew(tmp_path: Path, server: Server, prefix: str) -> None:
    folder = tmp_path / "w"
    with opened(folder, server.options, prefix) as db:
        db.execute(VIEWS)
        fill(db, 0, 2)
        [victim, *_] = [one for one in server.listed(prefix) if "/w-by" in one]
        server.files.rm_file(victim)
        with pytest.raises(hw.UserError) as told:
            db.execute("REFRESH VIEW x")
        assert told.value.code != "HW409"
    with opened(folder, server.options) as db:
        with pytest.raises(hw.UserError) as told:
            db.query("SELECT * FROM w")
        assert told.value.code == "HW409" and victim in told.value.message and "it is gone" in told.value.message
        with pytest.raises(hw.UserError, match="HW409"):
            fill(db, 2, 1)
        assert db.query("SELECT * FROM v").num_rows == 6
        db.execute("REFRESH VIEW w")
        check(db, 2)
        fill(db, 2, 1)
        check(db, 3)


def test_a_segment_that_is_put_back(tmp_path: Path, server: Server, prefix: str) -> None:
    """Nothing is remembered of what could not be read, at home and in tasks."""
    folder = tmp_path / "w"
    with opened(folder, server.options, prefix) as db:
        db.execute(VIEWS)
        fill(db, 0, 2)
        there = {one: server.files.cat_file(one) for one in server.listed(prefix) if one.endswith(".parquet")}
    for one, data in there.items():
        server.files.pipe_file(one, b"x" * len(data))
    with opened(folder, server.options) as db:
        with pytest.raises(hw.UserError, match="HW409"):
            db.query("SELECT * FROM w")
        with pytest.raises(hw.UserError, match="HW409"):
            fill(db, 2, 1)
        for one, data in there.items():
            server.files.pipe_file(one, data)
        fill(db, 2, 1)
        check(db, 3)


def test_nothing_is_listed_before_it_is_there(
    tmp_path: Path, server: Server, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = remote_storage.Remote._put

    def slowly(self: remote_storage.Remote, file: str, path: str) -> None:
        time.sleep(0.2 if path.endswith(".parquet") else 0.0)
        plain(self, file, path)

    monkeypatch.setattr(remote_storage.Remote, "_put", slowly)
    with opened(tmp_path / "w", server.options, prefix) as db:
        db.execute(VIEWS)
        fill(db, 0, 1)
        check(db, 1)
        db.execute("CREATE VIEW x AS SELECT b, count(*) AS n FROM t GROUP BY b")
        assert db.query("SELECT * FROM x").to_pylist() == [{"b": 0, "n": 6}]


def test_an_epoch_that_fails_leaves_nothing(tmp_path: Path, server: Server, prefix: str) -> None:
    with opened(tmp_path / "w", server.options, prefix) as db:
        db.execute(VIEWS)
        fill(db, 0, 1)
        assert leftovers(db)  # the plan
        before = server.listed(prefix)
        runner = db.engine.away.runner  # type: ignore[union-attr]
        plain = runner.run

        def failing(*arguments: Any) -> list[bytes]:
            plain(*arguments)
            assert len(server.listed(prefix)) > len(before)
            raise hw.UserError("HW479", "tasks were lost")

        runner.run = failing  # type: ignore[method-assign]
        with pytest.raises(hw.UserError, match="HW479"):
            fill(db, 1, 1)
        assert leftovers(db)
        assert server.listed(prefix) == before


def test_a_copy_of_the_folder_is_told_whose_the_segments_are(tmp_path: Path, server: Server, prefix: str) -> None:
    """Both would remove what the other has written."""
    with opened(tmp_path / "w", server.options, prefix) as db:
        db.execute(VIEWS)
        fill(db, 0, 1)
    shutil.copytree(tmp_path / "w", tmp_path / "copy")
    with opened(tmp_path / "w", server.options) as db:
        fill(db, 1, 1)
        root = str(db.status()["segments"])
    with pytest.raises(hw.UserError, match="HW434") as told:
        opened(tmp_path / "copy", server.options)
    assert f"{root}/owner" in str(told.value.hint)
    (tmp_path / "w").rename(tmp_path / "elsewhere")  # what is moved is no copy
    with opened(tmp_path / "elsewhere", server.options) as db:
        check(db, 2)


@pytest.mark.parametrize(
    ("segments", "options", "said"),
    [
        ("s3://nowhere/x", {}, "the storage s3://nowhere/x/headwater-.* cannot be used: .*[Bb]ucket"),
        ("s3://lake/x", {"endpoint_url": "http://127.0.0.1:9"}, "cannot be used: Could not connect"),
        ("s3://lake/x", {"no_such_option": "silly"}, "cannot be used: .*no_such_option"),
        ("nonsense://x/y", {}, "nonsense.* cannot be used: Protocol not known"),
        ("sftp://me:secret@host/x", {}, "'sftp://host/x' is no place for segments"),
        ("s3://lake/*", {}, "is no place for segments"),
        ("", {}, "is no place for segments"),
    ],
)
def test_places_that_are_none(
    tmp_path: Path, server: Server, segments: str, options: dict[str, object], said: str
) -> None:
    with pytest.raises(hw.UserError, match=f"(?s)HW433.*{said}") as told:
        opened(
            tmp_path / "w", {**server.options, "config_kwargs": {"retries": {"max_attempts": 1}}, **options}, segments
        )
    assert "something" not in str(told.value) and "secret" not in str(told.value)
    with opened(tmp_path / "w", None, placement=None, partitions=None) as db:  # nothing came of it
        assert db.status()["placement"] == "inline"


@pytest.mark.parametrize("package", ["s3fs", "fsspec"])
def test_a_package_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, "headwater.store.remote_storage")
    if package == "s3fs":
        monkeypatch.setattr(sys.modules["fsspec.registry"], "_registry", {})
        monkeypatch.setattr(sys.modules["fsspec.registry"], "registry", {})
    with pytest.raises(hw.UserError, match=f"(?s)HW433.*{package}.*headwater\\[s3\\]"):
        opened(tmp_path / "w", {}, "s3://lake/x")


def test_segments_go_with_tasks_only() -> None:
    with pytest.raises(hw.UserError, match="HW430"):
        hw.connect(placement="inline", segments="s3://lake/x")
    with pytest.raises(hw.UserError, match="HW430"):
        hw.connect(segments="s3://lake/x")


def test_a_folder_that_is_not_the_warehouses(tmp_path: Path) -> None:
    """Such as one that all executors have mounted."""
    with opened(tmp_path / "w", None, str(tmp_path / "shared")) as db:
        db.execute(VIEWS)
        fill(db, 0, 2)
    assert list((tmp_path / "shared").rglob("*.parquet")) and not list((tmp_path / "w").rglob("*.parquet"))
    with opened(tmp_path / "w", None) as db:
        check(db, 2)
        assert leftovers(db) == []
    with opened(tmp_path / "w", None, placement="inline", partitions=None) as db:
        check(db, 2)
    assert not list((tmp_path / "shared").rglob("*.parquet"))


def test_keys_are_written_nowhere(
    tmp_path: Path, server: Server, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "headwater"), opened(tmp_path / "w", server.options, prefix) as db:
        db.execute(VIEWS)
        fill(db, 0, 1)
        away = db.engine.away
        assert away is not None
        held = storage_of(away.folder)
        assert isinstance(held, remote_storage.Remote) and "something" not in repr(held.means)
        assert pickle.loads(pickle.dumps(held.means)) == Means(away.folder, server.options)
        assert "something" not in str(db.status())
        stored = db.warehouse.reader().execute("SELECT string_agg(value, ' ') FROM hw.meta").fetchone()
        assert stored is not None and "something" not in stored[0]
        held.finish()  # what the epoch has removed is gone
        assert not any(b"something" in server.files.cat_file(one) for one in server.listed(prefix))
    assert "something" not in caplog.text
    assert not any(b"something" in one.read_bytes() for one in (tmp_path / "w").rglob("*") if one.is_file())


def test_a_move_that_is_cut_short_leaves_nothing(tmp_path: Path, server: Server, prefix: str) -> None:
    with opened(tmp_path / "w", None) as db:
        db.execute(VIEWS)
        fill(db, 0, 1)

    def stop(point: str) -> None:
        if point == "moved":
            faults.hook = None
            raise KeyboardInterrupt

    faults.hook = stop
    with pytest.raises(KeyboardInterrupt):
        opened(tmp_path / "w", server.options, prefix)
    assert server.listed(prefix)
    with opened(tmp_path / "w", server.options) as db:
        assert server.listed(prefix) == [] and "segments" not in db.status()
        check(db, 1)
    with opened(tmp_path / "w", server.options, prefix) as db:  # now nothing comes in the way
        assert not list((tmp_path / "w" / "away" / "segments").rglob("*.parquet"))
        check(db, 1)


def test_a_project_says_where(tmp_path: Path) -> None:
    text = 'placement = "tasks"\nsegments = "s3://lake/x"\n[storage]\nkey = "somebody"\n'
    (tmp_path / "headwater.toml").write_text(text)
    project = load_project(tmp_path)
    assert (project.segments, project.storage) == ("s3://lake/x", {"key": "somebody"})
    assert "somebody" not in repr(project)
    (tmp_path / "headwater.toml").write_text('placement = "tasks"\nsegments = "there"\n')
    assert load_project(tmp_path).segments == str(tmp_path / "there")
    (tmp_path / "headwater.toml").write_text(text.replace("tasks", "inline"))
    assert load_project(tmp_path).segments is None
    (tmp_path / "headwater.toml").write_text('storage = "x"\n')
    with pytest.raises(hw.UserError, match="HW443"):
        load_project(tmp_path)


def test_what_is_divided_anew_in_tasks(
    tmp_path: Path, server: Server, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows go from partition to partition through files on the storage; nothing is brought home."""
    monkeypatch.setattr(moving, "FEW_BYTES", 0)
    monkeypatch.setattr(moving.Moving, "_source", None)
    with opened(tmp_path / "w", server.options, prefix) as db:
        db.execute(VIEWS)
        fill(db, 0, 2)
        for partitions in (3, 1, 5):
            db.execute(f"ALTER WAREHOUSE SET PARTITIONS {partitions}")
            check(db, 2)
        fill(db, 2, 1)
        check(db, 3)
    with opened(tmp_path / "w", server.options, partitions=None) as db:
        assert leftovers(db) == []
        check(db, 3)


def test_what_was_left_is_gone_before_anything_new_comes(
    tmp_path: Path, server: Server, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders are removed beside other work: those of the last opening must not take this one's files with them."""
    remove = remote_storage.Remote._remove_tree
    come, gone = threading.Event(), threading.Event()

    def late(self: remote_storage.Remote, folder: str) -> None:
        if folder.endswith("/epochs"):
            come.wait(1.0)
        remove(self, folder)
        if folder.endswith("/epochs"):
            gone.set()

    def reach(point: str) -> None:
        if point == "tasks begin":
            come.set()
            assert gone.wait(10)

    with opened(tmp_path / "w", server.options, prefix) as db:
        db.execute(VIEWS)
        fill(db, 0, 1)
    monkeypatch.setattr(remote_storage.Remote, "_remove_tree", late)
    with opened(tmp_path / "w", server.options) as db:
        monkeypatch.setattr(faults, "hook", reach)
        fill(db, 1, 1)
        check(db, 2)


@pytest.mark.parametrize("elsewhere", ["{folder}/other", "memory://moved/{name}"])
def test_everything_moves(tmp_path: Path, elsewhere: str) -> None:
    """Also what lies everywhere or in one place, and what a view held when it was suspended."""
    folder, place = tmp_path / "w", elsewhere.format(folder=tmp_path, name=tmp_path.name)
    views = ("by_a", "best", "pairs", "total", "halves")
    with opened(folder, None) as db:
        db.execute(
            """
            CREATE TABLE t (a INT, b INT);
            CREATE VIEW by_a AS SELECT a, sum(b) AS b FROM t GROUP BY a;
            CREATE VIEW best AS SELECT a, b FROM by_a ORDER BY b DESC LIMIT 2;
            CREATE VIEW pairs AS SELECT x.a, y.a AS other FROM by_a x JOIN by_a y ON x.b < y.b;
            CREATE VIEW total AS SELECT sum(b) AS b FROM t;
            CREATE VIEW halves AS SELECT a, sum(100 / (b - 13)) AS half FROM t GROUP BY a;
            INSERT INTO t VALUES (1, 1), (2, 2), (1, 3), (4, 4);
            INSERT INTO t VALUES (1, 13)
            """
        )
        held = {one: sorted(map(str, db.query(f"SELECT * FROM {one}").to_pylist())) for one in views}
    for where in (place, f"{place}2", str(tmp_path / "last")):
        with opened(folder, None, where) as db:
            now = {one: sorted(map(str, db.query(f"SELECT * FROM {one}").to_pylist())) for one in views}
            assert now == held
            assert db.engine.away is not None
            segments = db.engine.away.segments
            roots = {path for copy in segments.relations for path in segments.paths(copy)}
            assert roots and all(one.startswith(f"{where}/") for one in roots)
            db.execute("INSERT INTO t VALUES (5, 50); DELETE FROM t WHERE a = 5")
            assert all("/plans/" in one for one in leftovers(db))
    with opened(folder, None) as db:
        db.execute("DELETE FROM t WHERE b = 13; REFRESH halves")
        asked = "SELECT a, sum(100 / (b - 13)) AS half FROM t GROUP BY a"
        assert db.query("SELECT * FROM halves ORDER BY a") == db.query(f"{asked} ORDER BY a", views=False)


@pytest.mark.parametrize("place", ["{folder}/other", "memory://nested/{name}"])
def test_the_place_that_status_shows_is_the_place(tmp_path: Path, place: str) -> None:
    folder, place = tmp_path / "w", place.format(folder=tmp_path, name=tmp_path.name)
    with opened(folder, None, place) as db:
        db.execute(VIEWS)
        fill(db, 0, 2)
        shown = str(db.status()["segments"])
    with opened(folder, None, shown) as db:
        assert db.status()["segments"] == shown
        check(db, 2)
    with pytest.raises(hw.UserError, match="HW433"):
        opened(folder, None, f"{shown}/below")
    with opened(folder, None) as db:
        assert db.status()["segments"] == shown
        check(db, 2)


@pytest.mark.parametrize("below", ["away", "away/segments", "away/sending"])
def test_no_place_is_in_a_folder_that_goes(tmp_path: Path, below: str) -> None:
    folder = tmp_path / "w"
    with opened(folder, None) as db:
        db.execute(VIEWS)
        fill(db, 0, 2)
    with pytest.raises(hw.UserError, match="HW433"):
        opened(folder, None, str(folder / below))
    with opened(folder, None) as db:
        check(db, 2)


def test_a_folder_with_a_space_in_its_name_is_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "my project"
    here.mkdir()
    (tmp_path / "my").mkdir()
    (tmp_path / "my" / "thesis").write_text("dear")
    monkeypatch.chdir(here)
    (here / "segments").write_text("no folder")
    with pytest.raises(hw.UserError, match="HW433"):
        opened(tmp_path / "w", None, "segments")
    with opened(tmp_path / "w", None) as db:
        db.execute(VIEWS)
        fill(db, 0, 2)
    assert (tmp_path / "my" / "thesis").exists()
    (here / "segments").unlink()
    with opened(tmp_path / "w", None, "segments") as db:
        check(db, 2)
    with opened(tmp_path / "w", None) as db:
        check(db, 2)
    with opened(tmp_path / "w", None, placement="inline", partitions=None) as db:
        check(db, 2)
    assert list((here / "segments").iterdir()) == []


@pytest.mark.parametrize("place", ["s3://", "s3:///", "s3://lake//x", "memory://"])
def test_addresses_without_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(hw.UserError, match="HW433"):
        opened(tmp_path / "w", None, place).close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["{folder}/other", "memory://others/{name}"])
def test_another_warehouses_folder_is_no_place(tmp_path: Path, place: str) -> None:
    place = place.format(folder=tmp_path, name=tmp_path.name)
    with opened(tmp_path / "one", None, place) as db:
        db.execute(VIEWS)
        shown = str(db.status()["segments"])
    for other in (shown, f"{shown}/segments"):
        with pytest.raises(hw.UserError, match="HW433"):
            opened(tmp_path / "two", None, other)


@pytest.mark.parametrize("storage", ["key", ["key"], {1: "key"}])
def test_what_is_no_option_of_a_storage(tmp_path: Path, storage: object) -> None:
    for connect in (hw.connect, hw.Database):
        with pytest.raises(hw.UserError, match="HW433"):
            connect(tmp_path / "w", placement="tasks", storage=storage)  # type: ignore[arg-type]
    assert not (tmp_path / "w").exists()


def test_a_folder_may_be_a_path(tmp_path: Path) -> None:
    with hw.Database(tmp_path / "w", placement="tasks", runner=LocalRunner(1), segments=tmp_path / "there") as db:  # type: ignore[arg-type]
        db.execute(VIEWS)
        fill(db, 0, 1)
        check(db, 1)
    assert list((tmp_path / "there").rglob("*.parquet"))
