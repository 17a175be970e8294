"""CREATE INDEX and DROP INDEX.

("A view maintenance concept for key-value stores" has INDEX views, by which rows are found by other columns than their
key; here whoever reads by other columns may have one.)
"""

from __future__ import annotations

from headwater.errors import NotSupported, UserError
from headwater.sql.dialect import Headwater
from headwater.sql.names import fold
from headwater.sql.statements import CreateIndex, DropIndex


def read_create_index(parser: Headwater.Parser) -> CreateIndex:
    """Read what follows CREATE INDEX: [IF NOT EXISTS] name ON relation (columns)."""
    if_not_exists = parser.take("IF NOT EXISTS")
    name = parser.name("the index's name")
    parser.expect("ON")
    if parser.at("TABLE") and parser.next_is_name(ahead=1):
        parser.take("TABLE")
    relation = parser.name("the name of a view or table")
    if parser.at("USING"):
        raise NotSupported("HW261", "CREATE INDEX ... USING is not supported", span=parser.here, hint="leave it out")
    columns = parser.names("a column")
    seen: set[str] = set()
    for one in columns:
        if fold(one.text) in seen:
            raise UserError("HW111", f"column {one.text} is listed twice", span=one.span)
        seen.add(fold(one.text))
    parser.end()
    return CreateIndex(parser.source, parser.span, name, relation, columns, if_not_exists)


def read_drop_index(parser: Headwater.Parser) -> DropIndex:
    """Read what follows DROP: INDEX [IF EXISTS] name [ON relation]."""
    parser.expect("INDEX")
    if_exists = parser.take("IF EXISTS")
    name = parser.name("the name of an index")
    relation = parser.name("the name of a view or table") if parser.take("ON") else None
    parser.end()
    return DropIndex(parser.source, parser.span, name, if_exists, relation)
