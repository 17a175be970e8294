"""The process that is killed: it opens a warehouse, says what it finds there, and goes on with the story.

`python -m tests.faults.child` reads jobs, one JSON object a line, and forks a process for each: the imports, which take
longer than most jobs, are done once. What happens is told in JSON lines on standard output, each one flushed before
anything else is done, so that whatever was told had happened.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections import Counter
from pathlib import Path

from fsspec.core import url_to_fs  # type: ignore[import-untyped]

import headwater as hw
from headwater.algebra.evaluate import Bag
from headwater.emit.layout import changes_of
from headwater.emit.synchronise import waiting_of
from headwater.engine.away import FOLDER
from headwater.store.catalog import Relation
from headwater.store.storage import finish, is_remote, means_of
from tests.equivalence.followers import Follower, Untrue
from tests.equivalence.followers import changes_of as told
from tests.faults.full_disk import meet_a_full_disk
from tests.faults.look import look_at_damage
from tests.faults.process import CHECKPOINT_BYTES, Job, Trap, open_warehouse, show, tell
from tests.faults.story import Story, locate
from tests.faults.writers import write_from_threads


def findings(db: hw.Database) -> dict[str, object]:
    """All that a warehouse holds, as far as it shows."""
    catalog = db.engine.catalog
    reader = db.warehouse.reader()
    tables = reader.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = 'data'").fetchall()
    stores = [
        store
        for one in catalog
        if catalog.keeps(one)
        for store in ([m.name for m in one.program.maps] if one.program else [one.name])
    ]
    stores += [changes_of(one.name) for one in catalog if one.changes is not None]
    stores += [waiting_of(one.name) for one in catalog if one.policy is not None]
    stores += [one.buried for one in catalog if one.sequence is not None]
    stores += [one.late for one in catalog if one.keeps_late]
    shown = [one for one in catalog if one.policy is None and one.helper is None]
    readable = [one.name for one in shown if not one.flows or one.retain is not None]
    epochs = reader.execute("SELECT number, clock, changes FROM hw.epochs ORDER BY number").fetchall()
    reader.close()
    return {
        "epoch": db.status()["epoch"],
        "catalog": definitions(db),
        "stray": sorted({text for (text,) in tables} ^ set(stores)) + leftovers(db),
        "epochs": [[number, str(clock), changes] for number, clock, changes in epochs],
        "contents": {name: show(bag(db, name)) for name in readable},
        "followed": {one.name: show(followed(db, one)) for one in catalog if one.changes is not None},
        "suspended": [one.name for one in catalog if one.suspended],
    }


def leftovers(db: hw.Database) -> list[str]:
    """Files beside a warehouse whose programs run in tasks that do not count, and such as count and are not there.

    What counted until a moment ago stays for a while, for whoever reads it. What is being put together is waited for.
    """
    away, folder = db.engine.away, db.warehouse.folder
    if away is None or folder is None:
        return []
    assert db.consolidator.wait(30)
    listed = {path for copy in away.segments.relations for path in away.segments.paths(copy)}
    there = {str(path) for path in (folder.resolve() / FOLDER).rglob("*") if path.is_file()}
    there |= {str(path) for path in Path(away.folder).rglob("*") if path.is_file()} - {f"{away.folder}/owner"}
    if is_remote(away.folder):
        finish(away.folder)
        found, inner = url_to_fs(away.folder, **means_of(away.folder).options)  # type: ignore[union-attr]
        found.invalidate_cache()
        there |= {f"{away.folder}{path[len(inner) :]}" for path in found.find(inner)} - {f"{away.folder}/owner"}
    return sorted(there - {path for _, path in away.files.spent} ^ listed)


def definitions(db: hw.Database) -> dict[str, str]:
    """The statements that made the relations which a statement made."""
    return {one.name: one.sql for one in db.engine.catalog if one.policy is None and one.helper is None}


def followed(db: hw.Database, view: Relation) -> Bag:
    """What a subscriber has who has been told of everything, as far as that is kept; what it has not, it looks up."""
    names = [f.name for f in view.fields]
    follower = Follower(None if view.identity is None else tuple(names.index(one) for one in view.identity))
    whole = view.begins < view.created
    with db.subscribe(view.name, 0 if whole else None) as subscription:
        try:
            follower.follow(told(subscription.so_far()), db.engine.epoch)
        except Untrue as untrue:
            return Counter([(str(untrue),)])
    return follower.held


def bag(db: hw.Database, relation: str) -> Bag:
    table = db.query(f"SELECT * FROM {relation}")
    return Counter(tuple(row.values()) for row in table.to_pylist())


def carry_on(job: Job) -> None:
    """Open, report, and take step after step."""
    trap = Trap(job)
    trap.set()
    tell("opening", pid=os.getpid())
    db = open_warehouse(job.folder, job.away, job.segments, job.storage)
    trap.doing = "REPORT"
    tell("recovered", **findings(db))
    story = locate(job.seed, db.engine.epoch, definitions(db))
    if story is None:  # whoever reads the findings sees it too
        return
    db.warehouse.reader().execute(f"SET GLOBAL checkpoint_threshold = '{CHECKPOINT_BYTES}B'")
    taken = 0
    while job.steps is None or taken < job.steps:
        take_step(db, story, trap)
        taken += 1
    trap.doing = "CLOSE"
    db.close()
    tell("closed")


def take_step(db: hw.Database, story: Story, trap: Trap) -> None:
    step = story.next_step()
    trap.doing = step.sql or "EPOCH"
    step.carry_out(db)
    trap.doing = "TELL"
    tell("done", position=story.position, epoch=story.epoch)


SCENARIOS = {"story": carry_on, "writers": write_from_threads, "full disk": meet_a_full_disk, "look": look_at_damage}


def run(job: Job) -> None:
    """A whole child: never returns."""
    status = 1
    try:
        SCENARIOS[job.scenario](job)
        status = 0
    except BaseException:
        tell("failed", error=traceback.format_exc())
    finally:
        os._exit(status)


def serve() -> None:
    """Fork a child for each job that comes in, and tell how it ended."""
    for line in sys.stdin:
        job = Job(**json.loads(line))
        child = os.fork()
        if not child:
            run(job)
        _, status = os.waitpid(child, 0)
        os.write(sys.stdout.fileno(), b"\n")  # the killed child may have left half a line
        tell("ended", code=os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    serve()
