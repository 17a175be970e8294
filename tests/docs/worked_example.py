"""Runs the worked example and writes it down: `python -m tests.docs.worked_example` rewrites the page.

Every number on the page is read from a running engine: the stores before and after, and the temporary tables that the
epoch filled, which stay until the next epoch.
"""

from __future__ import annotations

from pathlib import Path

import headwater as hw
from headwater.engine.workspace import delta_of, pending_of

PAGE = Path(__file__).parents[2] / "docs" / "design" / "worked-example.md"

SCHEMA = """
CREATE TABLE sale (shop STRING, item STRING, qty INT);
CREATE TABLE price (item STRING PRIMARY KEY, euros INT NOT NULL)
"""
VIEWS = {
    "rich": "SELECT s.shop, SUM(s.qty * p.euros) AS worth\n"
    "FROM sale s JOIN price p ON s.item = p.item\n"
    "GROUP BY s.shop HAVING SUM(s.qty * p.euros) > 15",
    "pair": "SELECT a.shop AS one, b.shop AS other\nFROM rich a JOIN rich b ON a.worth = b.worth AND a.shop < b.shop",
    "worths": "SELECT worth, COUNT(*) AS shops FROM rich GROUP BY worth",
}
BEFORE = {
    "price": [("pen", 2), ("ink", 5)],
    "sale": [("x", "pen", 10), ("y", "ink", 4), ("z", "pen", 1), ("z", "ink", 2), ("w", "ink", 7), (None, "ink", 3)],
}


def main() -> None:
    """Rewrite the page."""
    PAGE.write_text(page())


def page() -> str:
    """The whole page."""
    db = hw.connect()
    assert isinstance(db, hw.Database)
    with db:
        db.execute(SCHEMA)
        for name, query in VIEWS.items():
            db.execute(f"CREATE VIEW {name} AS {query}")
        db.insert("price", BEFORE["price"])
        db.insert("sale", BEFORE["sale"])
        db.observe(lambda number, changes: None)  # with an observer each map's change is kept apart from its store
        before = {name: stored(db, name) for name in ("sale", "price", "rich", "pair", "worths")}
        with db.epoch() as epoch:
            epoch.insert("sale", [("x", "ink", 1), (None, "pen", 5)])
            epoch.delete("sale", [("y", "ink", 4)])
            epoch.upsert("price", [("pen", 3)])
        after = {name: stored(db, name) for name in ("rich", "pair", "worths")}
        deltas = {name: rows(db, f"SELECT * FROM {delta_of(name)}") for name in before}
        pending = {name: rows(db, f"SELECT * FROM {pending_of(name)}") for name in ("rich", "pair", "worths")}
        terms = {name: str(db.explain(name).to_dict()["query"]) for name in VIEWS}
        views = {name: rows(db, None, db.query(f"SELECT * FROM {name}").to_pylist()) for name in VIEWS}
    return TEXT.format(
        schema=SCHEMA.strip(),
        **{f"sql_{name}": query for name, query in VIEWS.items()},
        **{f"tree_{name}": tree for name, tree in terms.items()},
        **{f"before_{name}": text for name, text in before.items()},
        **{f"delta_{name}": text for name, text in deltas.items()},
        **{f"pending_{name}": text for name, text in pending.items()},
        **{f"after_{name}": text for name, text in after.items()},
        **{f"view_{name}": text for name, text in views.items()},
    )


def stored(db: hw.Database, name: str) -> str:
    """The living rows of a store: what has been retracted is left out."""
    facts = db.engine.connection.sql(f'SELECT * FROM data."{name}" LIMIT 0').columns
    columns = ", ".join(f'"{c}"' for c in facts if c not in ("#n", "#e"))
    return rows(
        db, f'SELECT {columns}, sum("#n")::BIGINT AS "#n" FROM data."{name}" GROUP BY ALL HAVING sum("#n") <> 0'
    )


def rows(db: hw.Database, query: str | None, given: list[dict[str, object]] | None = None) -> str:
    """Rows as an aligned table, in a fixed order."""
    found = given if given is not None else db.engine.connection.sql(str(query)).to_arrow_table().to_pylist()
    if not found:
        return "(no rows)"
    names = list(found[0])
    lines = sorted([cell(row[name]) for name in names] for row in found)
    widths = [max(len(name), *(len(line[i]) for line in lines)) for i, name in enumerate(names)]
    table = [names, *lines]
    return "\n".join("  ".join(v.ljust(w) for v, w in zip(line, widths, strict=True)).rstrip() for line in table)


def cell(value: object) -> str:
    if value is None:
        return "NULL"
    return str(value).lower() if isinstance(value, bool) else str(value)


TEXT = """# A worked example

One epoch, followed by hand: a HAVING over a SUM over a join, a self-join of that view, and a view that lists each of
its values once. The epoch changes both tables: one group empties (`y`), one crosses the limit of HAVING (`NULL`), one
stays hidden below it (`z`), one changes (`x`), one is not touched at all (`w`). Every table below was printed by the
engine (`python -m tests.docs.worked_example` prints them again, and a test compares).

Read `docs/design/delta.md` first for the rules, `docs/design/epochs.md` for the order of steps.

## The program

```sql
{schema};
CREATE VIEW rich AS
{sql_rich};
CREATE VIEW pair AS
{sql_pair};
CREATE VIEW worths AS
{sql_worths};
```

`rich` is one block: a linear part (join, products, sums) and the `present` above it, which decides what is shown.

```
{tree_rich}
```

`pair` reads `rich` twice. Its delta for a change of `rich` has two terms, `Δrich ⋈ rich_new + rich_old ⋈ Δrich`.

```
{tree_pair}
```

`worths` is what `SELECT DISTINCT worth` needs underneath: a count per value, shown while it is positive.

```
{tree_worths}
```

## Before

`#n` is a row's multiplicity. `sale`, `price`:

```
{before_sale}

{before_price}
```

`rich` is stored by group: the key `#k1`, the payload (`#count` rows; `#p1` the sum; `#p2` how many of its terms were
not NULL), the row it is shown as, and `#v`, whether HAVING shows it. (`z`: 1·2 + 2·5 = 12, `NULL`: 3·5 = 15: both are
kept but not shown.)

```
{before_rich}
```

```
{before_pair}

{before_worths}
```

## The epoch

```python
with db.epoch() as epoch:
    epoch.insert("sale", [("x", "ink", 1), (None, "pen", 5)])
    epoch.delete("sale", [("y", "ink", 4)])
    epoch.upsert("price", [("pen", 3)])
```

The operations become signed rows. An upsert is the old row leaving and the new one coming.

```
Δsale
{delta_sale}

Δprice
{delta_price}
```

**Step of `sale`.** `price` still has its old rows: `Δsale ⋈ price` gives `x` +5, `y` −20, `NULL` +10. Then `Δsale` is
appended to `sale`.

**Step of `price`.** `sale` has its new rows already: `sale ⋈ Δprice`, a pen one euro dearer, gives `x` +10, `z` +1 and
`NULL` +5. Nothing was counted twice: the new `NULL` pens met the old price in the first step (10) and the rise in the
second (5), which makes 5·3.

Both contributions wait in `Σrich`; a count of 0 with a sum is a change of price, not of rows.

```
Σrich
{pending_rich}
```

**`rich` settles.** Per group the pending payload is added up, the stored row of the group is read and leaves, the new
one comes. `y` has no row left and only leaves.

```
Δrich
{delta_rich}
```

**Step of `rich`.** `pair` and `worths` take `Δrich`, only rows with `#v`: to them `NULL` is new and `z` does not
exist. In `Σpair` rows may cancel; in `Δpair` they are added up, and what cancels is gone, so that nobody is told of a
pair that never was.

```
Σpair
{pending_pair}

Δpair
{delta_pair}

Σworths
{pending_worths}

Δworths
{delta_worths}
```

## After

```
rich, as stored
{after_rich}

pair, as stored
{after_pair}

worths, as stored
{after_worths}
```

And as a reader sees them:

```
rich
{view_rich}

pair
{view_pair}

worths
{view_worths}
```
"""

if __name__ == "__main__":
    main()
