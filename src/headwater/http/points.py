"""One row of a relation by its key."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from headwater import types as t
from headwater.engine.ingest_text import from_text
from headwater.engine.ingest_values import RefusedError
from headwater.errors import UserError
from headwater.http.backend import Shape, Warehouse
from headwater.sql.names import fold


def key_of_path(shape: Shape, text: str) -> dict[str, str]:
    """The key that stands at the end of an address, for a relation with a key of one column."""
    _check_key(shape)
    if len(shape.key) != 1:
        raise _wrong_key(shape)
    return {shape.key[0].name: text}


def key_of_parameters(shape: Shape, given: Mapping[str, str]) -> dict[str, str]:
    """The key that parameters of an address give, one for each column."""
    _check_key(shape)
    by_name = {fold(name): value for name, value in given.items()}
    if by_name.keys() != {fold(field.name) for field in shape.key} or len(by_name) != len(given):
        raise _wrong_key(shape)
    return {field.name: by_name[fold(field.name)] for field in shape.key}


def typed_key(key: Mapping[str, str], fields: t.Schema) -> dict[str, object]:
    """The values of a key, each of its column's type.

    Raises:
        UserError: HW490, a text is no value of its column's type.
    """
    out: dict[str, object] = {}
    for field in fields:
        try:
            out[field.name] = from_text(field.type)(key[field.name])
        except RefusedError as refused:
            raise UserError("HW490", f"{field.name} {field.type}: {refused.reason}", hint=refused.hint) from None
        except KeyError:  # a nested type has no form as text
            raise UserError(
                "HW490", f"{field.name} is {field.type}, and has no form in an address", hint="POST /v1/query"
            ) from None
    return out


def get_rows(warehouse: Warehouse, shape: Shape, key: Mapping[str, str]) -> pa.Table:
    """The row of a key: a table with one row, or with none."""
    typed = typed_key(key, shape.key)  # a text that is no key is a mistake of the client, not a row that is not there
    return warehouse.get_many(shape.name, [typed])


def _check_key(shape: Shape) -> None:
    if not shape.key:
        raise UserError(
            "HW490",
            f"nothing tells the rows of {shape.kind} {shape.name} apart, so that none can be asked for by a key",
            hint="POST /v1/query with a SELECT",
        )


def _wrong_key(shape: Shape) -> UserError:
    columns = [field.name for field in shape.key]
    return UserError(
        "HW490",
        f"the key of {shape.name} is ({', '.join(columns)})",
        hint=f"/v1/relations/{shape.name}/rows?" + "&".join(f"{name}=..." for name in columns),
    )
