"""Whether it is time for an epoch without operations: one in which nothing but the clock advances."""

from __future__ import annotations

import datetime as dt

import duckdb
from sqlglot import exp

from headwater.algebra.clock import CLOCK
from headwater.emit.functions.clock import set_clock
from headwater.emit.layout import name, number, sql
from headwater.engine.engine import LONG_AGO, Engine


def is_due(engine: Engine, moment: dt.datetime) -> bool:
    """Whether some row enters or leaves a window if the clock advances to a moment.

    It looks at the windows as an epoch would, at a millisecond or so for each, and changes nothing. It may say yes when
    there is nothing to do: for a view that is recomputed, and for rows that have left already but are still stored.
    """
    with engine.lock:
        schedule, before = engine.schedule, engine.last_clock or LONG_AGO
        if not schedule.follows_clock or moment <= before:
            return False
        if any(stage.recompute and CLOCK in stage.inputs for stage in schedule.stages):
            return True
        triggers = next(stage.triggers for stage in schedule.stages if stage.name == CLOCK)
    reader = engine.warehouse.reader()
    try:
        reader.execute(set_clock("now", moment))
        reader.execute(set_clock("before", before))
        for trigger in triggers:
            rows = exp.Subquery(
                this=trigger.emitter.rows(trigger.statement.term), alias=exp.TableAlias(this=name("leaving"))
            )
            query = exp.Select(expressions=[number(1)]).from_(rows, copy=False).limit(1, copy=False)
            if reader.execute(sql(query)).fetchall():
                return True
    except duckdb.Error:  # a view was dropped meanwhile, or a value is out of range: let an epoch find out
        return True
    finally:
        reader.close()
    return False
