"""Maps and structs: tuples of (key, value) pairs, and tuples of fields."""

from __future__ import annotations

from headwater import types as t
from headwater.algebra.functions.arrays import Items, element_of, map_value_signature, same
from headwater.algebra.functions.errors import invalid_value
from headwater.algebra.functions.registry import Signature, define
from headwater.algebra.functions.signatures import common, count_args, literal_value
from headwater.algebra.scalars import Call, Scalar


def _map_of(arg: Scalar) -> t.Map:
    if not isinstance(arg.type, t.Map):
        raise ValueError(f"takes a MAP, not {arg.type}")
    return arg.type


def _key(kind: t.Type) -> t.Type:
    if not t.is_groupable(kind) or isinstance(kind, t.Null):
        raise ValueError(f"{kind} cannot be a key")
    return kind


def _make_signature(args: tuple[Scalar, ...]) -> Signature:
    if not args or len(args) % 2:
        raise ValueError("takes pairs of a key and a value, at least one")
    key, value = _key(common(args[::2])), common(args[1::2])
    if isinstance(value, t.Null):
        raise ValueError("takes at least one value that is not NULL; cast it to say of which type")
    return Signature((key, value) * (len(args) // 2), t.Map(key, value))


def _entries(keys: Items, values: Items) -> object:
    for place, key in enumerate(keys):
        if key is None:
            raise invalid_value("NULL is no key of a map")
        if any(same(key, other) for other in keys[:place]):
            raise invalid_value(f"the key {key} twice in a map")
    return tuple(zip(keys, values, strict=True))


@define("map", _make_signature, strict=False, raises=True)
def make_map(call: Call, *parts: object) -> object:
    """The map of keys and values in turn; an error for a key that is NULL or there twice."""
    return _entries(parts[::2], parts[1::2])


def _from_arrays_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 2)
    return Signature((args[0].type, args[1].type), t.Map(_key(element_of(args[0])), element_of(args[1])))


@define("map_from_arrays", _from_arrays_signature, raises=True)
def map_from_arrays(call: Call, keys: Items, values: Items) -> object:
    """The map of an array of keys and one of values."""
    if len(keys) != len(values):
        raise invalid_value(f"{len(keys)} keys and {len(values)} values")
    return _entries(keys, values)


def _keys_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 1)
    kind = _map_of(args[0])
    return Signature((kind,), t.Array(kind.key))


@define("map_keys", _keys_signature)
def map_keys(call: Call, entries: tuple[Items, ...]) -> object:
    """The keys of a map."""
    return tuple(key for key, _ in entries)


def _values_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 1)
    kind = _map_of(args[0])
    return Signature((kind,), t.Array(kind.value))


@define("map_values", _values_signature)
def map_values(call: Call, entries: tuple[Items, ...]) -> object:
    """The values of a map."""
    return tuple(value for _, value in entries)


def _entries_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 1)
    kind = _map_of(args[0])
    return Signature((kind,), t.Array(t.Struct((("key", kind.key), ("value", kind.value)))))


@define("map_entries", _entries_signature)
def map_entries(call: Call, entries: tuple[Items, ...]) -> object:
    """The entries of a map as an array of structs of key and value."""
    return entries


def _contains_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 2)
    _map_of(args[0])
    found = map_value_signature(args)
    assert found
    return Signature(found.params, t.BOOLEAN)


@define("map_contains_key", _contains_signature)
def map_contains_key(call: Call, entries: tuple[Items, ...], key: object) -> object:
    """Whether a map has a key."""
    return any(same(found, key) for found, _ in entries)


def field_name(arg: Scalar) -> str:
    """The literal name of a field."""
    name = literal_value(arg)
    if not isinstance(name, str):
        raise ValueError("the name of a field must be a text literal")
    return name


def _struct_signature(args: tuple[Scalar, ...]) -> Signature:
    if not args or len(args) % 2:
        raise ValueError("takes pairs of a name and a value, at least one")
    fields = tuple((field_name(name), value.type) for name, value in zip(args[::2], args[1::2], strict=True))
    if len({name.lower() for name, _ in fields}) < len(fields):
        raise ValueError("the names of fields must differ")
    if any(isinstance(kind, t.Null) for _, kind in fields):
        raise ValueError("a field must have a type; cast NULL to one")
    return Signature(tuple(arg.type for arg in args), t.Struct(fields))


@define("named_struct", _struct_signature, strict=False)
def named_struct(call: Call, *parts: object) -> object:
    """The struct of names, which are literals, and values in turn; struct(a, b) takes the names of columns."""
    return parts[1::2]


def field_place(args: tuple[Scalar, ...]) -> int:
    """Where the field stands that is read, its name in any case."""
    kind = args[0].type
    if not isinstance(kind, t.Struct):
        raise ValueError(f"only a STRUCT has fields, not {kind}")
    name = field_name(args[1])
    found = [place for place, (known, _) in enumerate(kind.fields) if known.lower() == name.lower()]
    if len(found) != 1:
        raise ValueError(f"{kind} has {'no' if not found else 'more than one'} field {name}")
    return found[0]


def _field_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 2)
    place = field_place(args)
    assert isinstance(args[0].type, t.Struct)
    return Signature((args[0].type, t.STRING), args[0].type.fields[place][1])


@define("field", _field_signature)
def field(call: Call, value: Items, _name: str) -> object:
    """`struct.name`: a field of a struct."""
    return value[field_place(call.args)]


def type_name(kind: t.Type) -> str:
    """A type as TYPEOF writes it."""
    match kind:
        case t.Array(element):
            return f"array<{type_name(element)}>"
        case t.Map(key, value):
            return f"map<{type_name(key)},{type_name(value)}>"
        case t.Struct(fields):
            return "struct<" + ",".join(f"{name}:{type_name(of)}" for name, of in fields) + ">"
    return str(kind).lower()


def _typeof_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 1)
    if isinstance(args[0].type, t.DayTimeInterval | t.YearMonthInterval):
        raise ValueError("takes no interval")
    return Signature((args[0].type,), t.STRING)


@define("typeof", _typeof_signature, strict=False)
def typeof(call: Call, _value: object) -> object:
    """The name of a value's type."""
    return type_name(call.args[0].type)
