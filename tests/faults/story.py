"""The story that the children carry out: what its n-th step is, and what must be in the warehouse after it.

The model is plain Python over dicts and counters and shares nothing with the engine but the reference evaluator, which
answers for the views. Whoever knows the seed and how many steps were taken knows the contents of every relation.
"""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from dataclasses import dataclass
from functools import cache

import headwater as hw
from headwater.algebra.during import at
from headwater.algebra.evaluate import Bag, Row, evaluate
from headwater.algebra.nodes import Node, Scan

#: Of the stream with parts: how many seconds they span, and how much later than the newest a row may come.
PART_SECONDS, LATE_SECONDS = 2, 2
#: Base relations, then views over them and over each other. `marks` gets the number of each epoch of several
#: operations, so that an epoch that is lost or comes twice shows there first.
BEGINNING = (
    "CREATE TABLE customers (id INT PRIMARY KEY, region STRING, credit INT)",
    "CREATE TABLE orders (customer INT, item STRING, amount INT)",
    "CREATE STREAM clicks (customer INT, page STRING) RETAIN ALL",
    "CREATE STREAM marks (epoch INT) RETAIN ALL",
    "CREATE STREAM pulse (page STRING, beats INT)",
    "CREATE VIEW spend RETAIN CHANGES 1 DAY AS SELECT c.region, sum(o.amount) AS total, count(*) AS n "
    "FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.region",
    "CREATE VIEW big AS SELECT customer, sum(amount) AS total, avg(amount) AS mean "
    "FROM orders GROUP BY customer HAVING sum(amount) > 30",
    "CREATE VIEW big_regions AS SELECT c.region, count(*) AS n, sum(b.total) AS total "
    "FROM big b JOIN customers c ON b.customer = c.id GROUP BY c.region",
    "CREATE VIEW rest RETAIN CHANGES ALL AS SELECT s.region, s.total - b.total AS rest "
    "FROM spend s JOIN big_regions b ON s.region = b.region",
    "CREATE VIEW plain RETAIN CHANGES 10 SECONDS AS "
    "SELECT item, amount * 2 AS twice FROM orders WHERE amount IS NOT NULL",
    "CREATE VIEW reach STRATEGY 'recompute' AS SELECT c.region, count(*) AS n "
    "FROM clicks k JOIN customers c ON k.customer = c.id GROUP BY c.region",
    "CREATE VIEW rhythm AS SELECT page, sum(beats) AS beats FROM pulse GROUP BY page",
    "CREATE STREAM rooms (id INT, degrees INT, version INT) KEY (id) SEQUENCE BY version",
    "CREATE VIEW warm AS SELECT degrees, count(*) AS n FROM rooms GROUP BY degrees",
    "CREATE STREAM pings (host STRING, at TIMESTAMP)",
    "CREATE VIEW awake RETAIN CHANGES ALL AS SELECT host, at FROM pings WHERE at > now() - INTERVAL 4 SECONDS",
    "CREATE VIEW seldom REFRESH EVERY 3 SECONDS AS SELECT region, count(*) AS n FROM customers GROUP BY region",
    f"CREATE STREAM beats (at TIMESTAMP, host STRING, n INT) TIMESTAMP BY at PARTITION LENGTH {PART_SECONDS} "
    f"LATENESS INTERVAL {LATE_SECONDS} SECONDS ROLL UP AFTER INTERVAL 2 SECONDS INTO 6",
    "CREATE VIEW pace AS SELECT host, sum(n) AS total, count(*) AS n FROM beats [WINDOW 6 SECONDS] GROUP BY host",
    "CREATE VIEW steps AS INITIALIZE steps[i] AS SELECT host, n FROM beats[i] UPDATE steps[j] AS "
    f"SELECT host, n FROM beats[j] PARTITION LENGTH {PART_SECONDS} BACKFILL ROLL UP AFTER 2 SECONDS INTO 8",
    # An immense credit suspends this view; see `Story._suspension`.
    "CREATE VIEW level RETAIN CHANGES ALL AS "
    "SELECT region, CAST(sum(credit) AS SMALLINT) AS level FROM customers GROUP BY region",
)
SIDE_BY_REGION = "CREATE VIEW side AS SELECT region, sum(credit) AS total FROM customers GROUP BY region"
SIDE_BY_ITEM = "CREATE VIEW side AS SELECT item AS region, sum(amount) AS total FROM orders GROUP BY item"
SCRATCH = "CREATE TABLE scratch (x INT)"
SCRATCH_SUM = "CREATE VIEW scratch_sum AS SELECT sum(x) AS total, count(*) AS n FROM scratch"
#: What happens at the n-th step of every turn of this length, besides epochs. Between the drop of `side` and its next
#: creation lies no epoch: only the text of its definition tells the one from the other.
TURN = {
    2: SIDE_BY_REGION,
    5: SCRATCH,
    6: SCRATCH_SUM,
    9: "DROP VIEW side",
    10: SIDE_BY_ITEM,
    13: "DROP TABLE scratch CASCADE",
    16: "DROP VIEW side",
}
TURN_STEPS = 18
POISON, CURE, RESUME = 3, 7, 8

REGIONS = ("north", "south", "east", None)
ITEMS = ("pen", "ink", "cup", "hat", None)
PAGES = ("home", "shop", "help")
CUSTOMERS = 12
POISONED = 99
IMMENSE = 1_000_000
MOST_ORDERS = 60
SELDOM = 3


@dataclass(frozen=True)
class Change:
    """One operation of an epoch: a method of `EpochBuilder`, its relation and its rows."""

    method: str
    relation: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Step:
    """A statement, or an epoch of several operations.

    Attributes:
        sql: the statement; empty for an epoch of `changes`.
        is_epoch: whether the warehouse counts an epoch for it.
    """

    sql: str = ""
    changes: tuple[Change, ...] = ()
    is_epoch: bool = True

    def carry_out(self, db: hw.Database) -> None:
        if self.sql:
            db.execute(self.sql)
            return
        with db.epoch() as builder:
            for change in self.changes:
                getattr(builder, change.method)(change.relation, list(change.rows))


class Story:
    """The state of the story after `position` steps; `next_step` takes one more."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.position = 0
        #: `changes` of each epoch, the first epoch's first; None where the statement may count equal rows as one.
        self.epochs: list[int | None] = []
        #: The statement that made each relation.
        self.catalog: dict[str, str] = {}
        self.bags: dict[str, Bag] = {}
        #: The customers at the last multiple of three seconds, which is what `seldom` reads.
        self._customers_then: Bag = Counter()
        #: The versions with which rooms went.
        self._gone: dict[object, int] = {}
        self._frozen_level: Bag | None = None
        #: The latest time among the beats, in seconds, and the first part of the views of parts over them.
        self._newest = self._first_part = 0

    @property
    def epoch(self) -> int:
        return len(self.epochs)

    def next_step(self) -> Step:
        """Take the next step, and say what it is."""
        step = self._choose(random.Random(f"{self.seed}:{self.position}"))
        self.position += 1
        if step.is_epoch and self.epoch % SELDOM == 0:
            self._customers_then = Counter(self.bags["customers"])
        return step

    def at_definition(self) -> bool:
        """Whether the next step creates or drops something, which no epoch number tells."""
        return self.position < len(BEGINNING) or self._place in TURN

    @property
    def _place(self) -> int:
        return (self.position - len(BEGINNING)) % TURN_STEPS

    # -- steps ---------------------------------------------------------------------------------------------------------

    def _choose(self, rng: random.Random) -> Step:
        if self.position < len(BEGINNING):
            return self._define(BEGINNING[self.position])
        place = self._place
        if place in TURN:
            return self._define(TURN[place])
        if place in (POISON, CURE, RESUME):
            return self._suspension(place)
        kinds = (self._mixed, self._update_customers, self._update_orders, self._delete_orders)
        return rng.choices(kinds, (6, 1, 1, 1))[0](rng)

    def _define(self, sql: str) -> Step:
        verb, _, name, *_ = sql.split()
        if verb == "CREATE":
            self.catalog[name] = sql
            if "VIEW" not in sql:
                self.bags[name] = Counter()
        else:
            gone = {name, "scratch_sum"} if name == "scratch" else {name}
            for one in gone:
                del self.catalog[one]
                self.bags.pop(one, None)
        return Step(sql, is_epoch=False)

    def _suspension(self, place: int) -> Step:
        """A row that `level` cannot take, later its removal, and then the statement that lets `level` follow again."""
        if place == POISON:
            self._frozen_level = _level(self.bags["customers"])
            return self._commit(Change("upsert", "customers", ((POISONED, "north", IMMENSE),)))
        if place == CURE:
            return self._commit(Change("delete_keys", "customers", ((POISONED,),)))
        self._frozen_level = None
        self.epochs.append(0)
        return Step("REFRESH level")

    def _mixed(self, rng: random.Random) -> Step:
        orders = self.bags["orders"]
        new = tuple(_order(rng) for _ in range(rng.randint(1, 5)))
        there = sorted(orders.elements(), key=repr)
        much = rng.randint(4, 12) if len(there) > MOST_ORDERS else rng.randint(0, 4)
        keys = sorted(int(str(row[0])) for row in self.bags["customers"] if row[0] != POISONED)
        changes = [
            Change("insert", "marks", ((self.epoch + 1,),)),
            Change("insert", "orders", new),
            Change("delete", "orders", tuple(rng.sample(there, min(much, len(there))))),
            Change("upsert", "customers", tuple(_customer(rng) for _ in range(rng.randint(0, 3)))),
            Change("insert", "clicks", tuple(_click(rng) for _ in range(rng.randint(0, 3)))),
            Change("insert", "pulse", tuple((rng.choice(PAGES), rng.randint(0, 9)) for _ in range(rng.randint(0, 3)))),
        ]
        version = self.epoch + rng.choice((0, 0, 1, -4))  # some come late
        changes += [
            Change("insert", "rooms", tuple((rng.randrange(6), rng.randrange(4), version) for _ in range(3))),
            Change("delete_keys", "rooms", ((rng.randrange(6),),) if rng.random() < 0.4 else ()),
            Change("insert", "pings", ((rng.choice(PAGES), moment(self.epoch + 1)),) if rng.random() < 0.6 else ()),
        ]
        beats = [(moment(self.epoch + 1 - rng.choice((0, 0, 1, 3, 6))), rng.choice(PAGES), rng.randint(0, 9))]
        changes.append(Change("insert", "beats", tuple(beats * rng.randint(1, 2))))
        if keys and rng.random() < 0.3:
            changes.insert(2, Change("delete_keys", "customers", ((rng.choice(keys),),)))
        if "scratch" in self.catalog:
            changes.append(Change("insert", "scratch", ((rng.randint(0, 9),),)))
        return self._commit(*(one for one in changes if one.rows))

    def _update_customers(self, rng: random.Random) -> Step:
        region = rng.choice(REGIONS[:3])
        touched = [row for row in self.bags["customers"] if row[1] == region and row[0] != POISONED]
        for row in touched:
            del self.bags["customers"][row]
        self.bags["customers"].update((row[0], row[1], int(str(row[2])) + 1) for row in touched)
        self.epochs.append(2 * len(touched))
        return Step(f"UPDATE customers SET credit = credit + 1 WHERE region = '{region}' AND id <> {POISONED}")

    def _update_orders(self, rng: random.Random) -> Step:
        item = rng.choice(ITEMS[:4])
        orders = self.bags["orders"]
        touched = {row: n for row, n in orders.items() if row[1] == item}
        for row in touched:
            del orders[row]
        for (customer, _, amount), n in touched.items():
            orders[(customer, item, None if amount is None else 9 - int(str(amount)))] += n
        self.epochs.append(None)
        return Step(f"UPDATE orders SET amount = 9 - amount WHERE item = '{item}'")

    def _delete_orders(self, rng: random.Random) -> Step:
        customer = rng.randrange(CUSTOMERS)
        touched = {row: n for row, n in self.bags["orders"].items() if row[0] == customer}
        for row in touched:
            del self.bags["orders"][row]
        self.epochs.append(None)
        return Step(f"DELETE FROM orders WHERE customer = {customer}")

    def _commit(self, *changes: Change) -> Step:
        """Apply an epoch to the bags, and count the rows that come and go."""
        count = 0
        for change in changes:
            bag = self.bags[change.relation]
            if change.relation in ("rooms", "beats"):
                count += self._report(change) if change.relation == "rooms" else self._beat(change)
                continue
            match change.method:
                case "insert":
                    bag.update(change.rows)
                    count += len(change.rows)
                case "delete":
                    bag.subtract(change.rows)
                    count += len(change.rows)
                case "upsert":
                    latest = {row[0]: row for row in change.rows}
                    count += _retire(bag, set(latest)) + len(latest)
                    bag.update(latest.values())
                case "delete_keys":
                    count += _retire(bag, {row[0] for row in change.rows})
            for row in [row for row, n in bag.items() if not n]:
                del bag[row]
        self.epochs.append(count)
        return Step(changes=changes)

    def _report(self, change: Change) -> int:
        """Let the last version of each room arrive, or a room go; returns how many rows come and go."""
        rooms, count = self.bags["rooms"], 0
        for row in {row[0]: row for row in change.rows}.values():
            there = next((one for one in rooms if one[0] == row[0]), None)
            if change.method == "delete_keys":
                if there is not None:
                    self._gone[row[0]] = int(str(there[2]))
                    del rooms[there]
                    count += 1
                continue
            newest = int(str(there[2])) if there is not None else self._gone.get(row[0])
            if newest is not None and int(str(row[2])) < newest:
                continue
            count += 1 + _retire(rooms, {row[0]})
            rooms[row] = 1
            self._gone.pop(row[0], None)
        return count

    def _beat(self, change: Change) -> int:
        """Let rows come to the stream with parts; returns for how many of them it was not too late."""
        over = self._newest - LATE_SECONDS
        taken = [row for row in change.rows if not self._newest or (_part(row) + 1) * PART_SECONDS > over]
        self.bags["beats"].update(taken)
        self._newest = max([self._newest, *(_seconds(row) for row in taken)])
        if not self._first_part:
            first = min(map(_part, self.bags["beats"]))
            self._first_part = first if first < self._newest // PART_SECONDS else 0
        return len(taken)

    # -- what must be there --------------------------------------------------------------------------------------------

    def contents(self) -> dict[str, Bag]:
        """Every relation that can be read."""
        out = {name: bag for name, bag in self.bags.items() if name not in ("pulse", "pings", "beats")}
        views: dict[str, Bag] = {}

        def read(scan: Scan) -> Bag:
            if scan.relation == f"customers@{SELDOM}s":
                return self._customers_then
            return views[scan.relation] if scan.relation in views else self.bags[scan.relation]

        for name, sql in self.catalog.items():
            if name == "level" and self._frozen_level is not None:
                views[name] = self._frozen_level
            elif name in ("pace", "steps"):
                views[name] = self._parts_of(name)
            elif name not in self.bags:
                views[name] = evaluate(at(_algebra(sql), moment(self.epoch)), read)
        return out | views

    def _parts_of(self, view: str) -> Bag:
        """All parts that are complete of a view of parts: the sums of three parts of the beats, or these themselves."""
        out: Bag = Counter()
        for part in range(self._first_part, self._newest // PART_SECONDS) if self._first_part else ():
            held = [row for row in self.bags["beats"].elements() if part - 3 < _part(row) <= part]
            if view == "steps":
                out.update(row[1:] for row in held if _part(row) == part)
            for host in {row[1] for row in held} if view == "pace" else ():
                numbers = [int(str(row[2])) for row in held if row[1] == host]
                out[host, sum(numbers), len(numbers)] += 1
        return out

    def suspended(self) -> list[str]:
        """Views that have stopped."""
        return [] if self._frozen_level is None else ["level"]

    def epoch_rows(self) -> list[tuple[int, dt.datetime, int | None]]:
        """The table of epochs: number, clock and changes, where these are known."""
        return [(number, moment(number), changes) for number, changes in enumerate(self.epochs, 1)]


def locate(seed: int, epoch: int, catalog: dict[str, str]) -> Story | None:
    """The story at the step after which a warehouse has this epoch and these relations; None if it never has."""
    story = Story(seed)
    while story.epoch < epoch:
        story.next_step()
    while story.catalog != catalog:
        if not story.at_definition():
            return None
        story.next_step()
    return story


def moment(epoch: int) -> dt.datetime:
    """The clock of an epoch: a second after the last one's, so that runs can be compared."""
    return dt.datetime(2024, 1, 1) + dt.timedelta(seconds=epoch)


@cache
def _algebra(sql: str) -> Node:
    """A view's query as a tree, for the reference evaluator."""
    with hw.connect() as db:
        assert isinstance(db, hw.Database)
        for one in dict.fromkeys((*BEGINNING, SCRATCH, sql)):
            db.execute(one)
        return db.algebra(sql.split()[2])


def _seconds(beat: Row) -> int:
    assert isinstance(beat[0], dt.datetime)
    return (beat[0] - dt.datetime(1970, 1, 1)) // dt.timedelta(seconds=1)


def _part(beat: Row) -> int:
    return _seconds(beat) // PART_SECONDS


def _retire(bag: Bag, keys: set[object]) -> int:
    gone = [row for row in bag if row[0] in keys]
    for row in gone:
        del bag[row]
    return len(gone)


def _order(rng: random.Random) -> Row:
    return (rng.randrange(CUSTOMERS), rng.choice(ITEMS), rng.choice((None, 1, 2, 5, 8, 13, -3)))


def _customer(rng: random.Random) -> Row:
    return (rng.randrange(CUSTOMERS), rng.choice(REGIONS), rng.randint(1, 50))


def _click(rng: random.Random) -> Row:
    return (rng.choice((None, *range(CUSTOMERS))), rng.choice(PAGES))


def _level(customers: Bag) -> Bag:
    """What `level` shows: it stops here when a row comes that it cannot take."""
    totals: Counter[object] = Counter()
    for row in customers.elements():
        totals[row[1]] += int(str(row[2]))
    return Counter(totals.items())
