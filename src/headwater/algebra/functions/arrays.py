"""Arrays: tuples of elements, any of which may be NULL."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from headwater import types as t
from headwater.algebra.functions.comparison import sort_key
from headwater.algebra.functions.errors import invalid_value
from headwater.algebra.functions.registry import Resolver, Signature, define
from headwater.algebra.functions.signatures import accepts, common, count_args, describe, literal_value
from headwater.algebra.scalars import Call, Scalar

Items = tuple[object, ...]


def element_of(arg: Scalar) -> t.Type:
    """The type of an array's elements."""
    if not isinstance(arg.type, t.Array):
        raise ValueError(f"takes an ARRAY, not {arg.type}")
    return arg.type.element


def meeting(a: t.Type, b: t.Type) -> t.Type:
    """The type of elements that two arrays, or an array and a value, have in common; text meets text only."""
    met = t.common_type(a, b)
    if met is None or isinstance(a, t.String) != isinstance(b, t.String) or isinstance(b, t.Null):
        raise ValueError(f"takes elements of one type, not {a} and {b}")
    return met


def _comparable(kind: t.Type) -> t.Type:
    if not t.is_groupable(kind):
        raise ValueError(f"values of type {kind} cannot be compared")
    return kind


def _one(result: Callable[[t.Type], t.Type], check: Callable[[t.Type], object] | None = None) -> Resolver:
    def resolve(args: tuple[Scalar, ...]) -> Signature:
        count_args(args, 1)
        element = element_of(args[0])
        if check:
            check(element)
        return Signature((args[0].type,), result(element))

    return resolve


def _two(args: tuple[Scalar, ...]) -> t.Type:
    count_args(args, 2)
    return _comparable(meeting(element_of(args[0]), element_of(args[1])))


def _with_value(result: Callable[[t.Type], t.Type]) -> Resolver:
    """An array and a value of its elements' type."""

    def resolve(args: tuple[Scalar, ...]) -> Signature:
        count_args(args, 2)
        kind = _comparable(meeting(element_of(args[0]), args[1].type))
        return Signature((t.Array(kind), kind), result(kind))

    return resolve


def _ordered(kind: t.Type) -> t.Type:
    if not t.is_orderable(kind):
        raise ValueError(f"values of type {kind} have no order")
    return kind


def _sortable(kind: t.Type) -> t.Type:
    if not t.is_sortable(kind):
        raise ValueError(f"values of type {kind} have no order")
    return kind


def same(a: object, b: object) -> bool:
    """Whether two elements are equal, NULL being equal to NULL."""
    return a is b if a is None or b is None else bool(sort_key(a) == sort_key(b))


def _holds(items: Items, value: object) -> bool:
    return any(same(item, value) for item in items)


def _distinct(items: Iterable[object]) -> Items:
    out: list[object] = []
    for item in items:
        if not _holds(tuple(out), item):
            out.append(item)
    return tuple(out)


def _make_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 1, 1_000_000)
    kind = common(args)
    if isinstance(kind, t.Null):
        raise ValueError("takes at least one element that is not NULL; cast it to say of which type")
    return Signature((kind,) * len(args), t.Array(kind))


@define("array", _make_signature, strict=False)
def array(call: Call, *items: object) -> object:
    """The array of the arguments."""
    return items


def _size_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 1)
    if not isinstance(args[0].type, t.Array | t.Map):
        raise ValueError(f"takes an ARRAY or a MAP, not {args[0].type}")
    return Signature((args[0].type,), t.INT)


@define(("size", "cardinality"), _size_signature)
def size(call: Call, items: Items) -> object:
    """How many elements an array has, or entries a map."""
    return len(items)


@define("array_size", _one(lambda kind: t.INT))
def array_size(call: Call, items: Items) -> object:
    """How many elements."""
    return len(items)


# --- elements -------------------------------------------------------------------------------------------------------


def map_value_signature(args: tuple[Scalar, ...]) -> Signature | None:
    """A map and a key of it; None if the first argument is no map."""
    kind = args[0].type
    if not isinstance(kind, t.Map):
        return None
    if args[1].type != kind.key and not (
        isinstance(args[1].type, t.Integer) and isinstance(kind.key, t.Integer) and args[1].type.bits < kind.key.bits
    ):
        raise ValueError(f"takes a key of type {kind.key}, not {args[1].type}")
    return Signature((kind, kind.key), kind.value)


def _place_signature(most_bits: int, maps: bool) -> Resolver:
    def resolve(args: tuple[Scalar, ...]) -> Signature:
        count_args(args, 2)
        found = map_value_signature(args) if maps else None
        if found is not None:
            return found
        element = element_of(args[0])
        place = args[1].type
        if not (isinstance(place, t.Integer) and place.bits <= most_bits):
            raise ValueError(f"takes an INT as the place of an element, not {place}")
        return Signature((args[0].type, t.Integer(most_bits)), element)

    return resolve


def value_at(entries: Items, key: object) -> object:
    """The value of a key in a map, NULL if there is none."""
    for entry in entries:
        assert isinstance(entry, tuple)
        if same(entry[0], key):
            return entry[1]
    return None


def _from_one(call: Call, items: Items, place: int) -> tuple[bool, object]:
    """Whether there is an element at a place that counts from 1, or from the end if negative; and the element."""
    if place == 0:
        raise invalid_value(f"{call.function} counts from 1, or from the end with negative numbers; there is no 0")
    inside = abs(place) <= len(items)
    return inside, items[place - 1 if place > 0 else place] if inside else None


@define("element_at", _place_signature(32, maps=True), raises=True)
def element_at(call: Call, items: Items, place: int) -> object:
    """The element at a place from 1, or from the end if negative, or the value of a key; an error past the end."""
    if isinstance(call.args[0].type, t.Map):
        return value_at(items, place)
    inside, found = _from_one(call, items, place)
    if not inside:
        raise invalid_value(f"element {place} of an array of {len(items)}")
    return found


@define("try_element_at", _place_signature(32, maps=True), raises=True)
def try_element_at(call: Call, items: Items, place: int) -> object:
    """As element_at, but NULL past the end."""
    return value_at(items, place) if isinstance(call.args[0].type, t.Map) else _from_one(call, items, place)[1]


@define("get", _place_signature(32, maps=False))
def get(call: Call, items: Items, place: int) -> object:
    """The element at a place from 0; NULL outside."""
    return items[place] if 0 <= place < len(items) else None


@define("element", _place_signature(64, maps=True), raises=True)
def element(call: Call, items: Items, place: int) -> object:
    """`array[n]`, from 0, and an error outside; `map[key]`, and NULL if there is no such key."""
    if isinstance(call.args[0].type, t.Map):
        return value_at(items, place)
    if not 0 <= place < len(items):
        raise invalid_value(f"element {place} of an array of {len(items)}")
    return items[place]


# --- search ---------------------------------------------------------------------------------------------------------


@define("array_contains", _with_value(lambda kind: t.BOOLEAN))
def array_contains(call: Call, items: Items, value: object) -> object:
    """Whether an element equals a value; NULL if only a NULL could be it."""
    return True if _holds(items, value) else None if None in items else False


@define("array_position", _with_value(lambda kind: t.BIGINT))
def array_position(call: Call, items: Items, value: object) -> object:
    """The place of the first element that equals a value, from 1; 0 if there is none."""
    return next((place for place, item in enumerate(items, 1) if same(item, value)), 0)


@define("arrays_overlap", lambda args: Signature((t.Array(_two(args)),) * 2, t.BOOLEAN))
def arrays_overlap(call: Call, a: Items, b: Items) -> object:
    """Whether both have an element that is not NULL in common; NULL if only a NULL could be it."""
    if any(item is not None and _holds(b, item) for item in a):
        return True
    return None if a and b and (None in a or None in b) else False


@define("array_min", _one(lambda kind: kind, _ordered))
def array_min(call: Call, items: Items) -> object:
    """The smallest element that is not NULL."""
    return min((item for item in items if item is not None), key=sort_key, default=None)  # type: ignore[arg-type]


@define("array_max", _one(lambda kind: kind, _ordered))
def array_max(call: Call, items: Items) -> object:
    """The largest element that is not NULL."""
    return max((item for item in items if item is not None), key=sort_key, default=None)  # type: ignore[arg-type]


# --- other arrays ---------------------------------------------------------------------------------------------------


def ascending(args: tuple[Scalar, ...]) -> bool:
    """The literal order of SORT_ARRAY; ascending if left out."""
    order = literal_value(args[1]) if len(args) == 2 else True
    if not isinstance(order, bool):
        raise ValueError("the order must be TRUE or FALSE")
    return order


def _sort_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 1, 2)
    _sortable(element_of(args[0]))
    ascending(args)
    return Signature((args[0].type, t.BOOLEAN)[: len(args)], args[0].type)


def _sorted(items: Items, descending: bool = False) -> list[object]:
    return sorted((i for i in items if i is not None), key=sort_key, reverse=descending)  # type: ignore[arg-type]


@define("sort_array", _sort_signature)
def sort_array(call: Call, items: Items, _ascending: bool = True) -> object:
    """The elements in order, NULLs first; with FALSE in descending order, NULLs last."""
    up = ascending(call.args)
    found = _sorted(items, not up)
    nulls: list[object] = [None] * (len(items) - len(found))
    return tuple(nulls + found if up else found + nulls)


@define("array_sort", _one(t.Array, _sortable))
def array_sort(call: Call, items: Items) -> object:
    """The elements in order, NULLs last."""
    found = _sorted(items)
    return (*found, *[None] * (len(items) - len(found)))


@define("array_distinct", _one(t.Array, _comparable))
def array_distinct(call: Call, items: Items) -> object:
    """Each element once, where it first occurs."""
    return _distinct(items)


def _both(args: tuple[Scalar, ...]) -> Signature:
    kind = t.Array(_two(args))
    return Signature((kind, kind), kind)


@define("array_union", _both)
def array_union(call: Call, a: Items, b: Items) -> object:
    """The elements of both, each once."""
    return _distinct(a + b)


@define("array_intersect", _both)
def array_intersect(call: Call, a: Items, b: Items) -> object:
    """The elements of the first that the second has too, each once."""
    return _distinct(item for item in a if _holds(b, item))


@define("array_except", _both)
def array_except(call: Call, a: Items, b: Items) -> object:
    """The elements of the first that the second has not, each once."""
    return _distinct(item for item in a if not _holds(b, item))


@define("array_remove", _with_value(t.Array))
def array_remove(call: Call, items: Items, value: object) -> object:
    """Without the elements that equal a value."""
    return tuple(item for item in items if not same(item, value))


@define("array_compact", _one(t.Array))
def array_compact(call: Call, items: Items) -> object:
    """Without NULLs."""
    return tuple(item for item in items if item is not None)


def _added(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 2)
    held = element_of(args[0])
    kind = held if isinstance(args[1].type, t.Null) else meeting(held, args[1].type)
    return Signature((t.Array(kind), kind), t.Array(kind))


@define("array_append", _added, strict=False)
def array_append(call: Call, items: Items | None, value: object) -> object:
    """With one more element at the end."""
    return None if items is None else (*items, value)


@define("array_prepend", _added, strict=False)
def array_prepend(call: Call, items: Items | None, value: object) -> object:
    """With one more element at the beginning."""
    return None if items is None else (value, *items)


def _repeat_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 2)
    if isinstance(args[0].type, t.Null) or not accepts(args[1], t.INT):
        raise ValueError(f"takes a value and an INT, not ({describe(args)})")
    return Signature((args[0].type, t.INT), t.Array(args[0].type))


@define("array_repeat", _repeat_signature, strict=False)
def array_repeat(call: Call, value: object, count: int | None) -> object:
    """An array of so many times a value."""
    return None if count is None else (value,) * max(count, 0)


def _slice_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 3)
    element_of(args[0])
    if not all(accepts(arg, t.INT) for arg in args[1:]):
        raise ValueError(f"takes an ARRAY and two INT, not ({describe(args)})")
    return Signature((args[0].type, t.INT, t.INT), args[0].type)


@define("slice", _slice_signature, raises=True)
def cut(call: Call, items: Items, start: int, count: int) -> object:
    """So many elements from a place on, from the end if negative."""
    if start == 0 or count < 0:
        raise invalid_value(f"slice from {start}, {count} elements: it counts from 1, and not backwards")
    first = start - 1 if start > 0 else len(items) + start
    return items[first : first + count] if first >= 0 else ()


def _flat_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 1)
    inner = element_of(args[0])
    if not isinstance(inner, t.Array):
        raise ValueError(f"takes an array of arrays, not {args[0].type}")
    return Signature((args[0].type,), inner)


@define("flatten", _flat_signature)
def flatten(call: Call, items: tuple[Items | None, ...]) -> object:
    """The elements of an array's arrays; NULL if one of these is."""
    return None if None in items else tuple(one for inner in items if inner is not None for one in inner)


def _join_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 2, 3)
    element = element_of(args[0])
    if not (element == t.STRING or isinstance(element, t.Integer | t.Decimal | t.Boolean | t.Date | t.Timestamp)):
        raise ValueError(f"takes elements that can be written as text, not {element}")
    if not all(accepts(arg, t.STRING) for arg in args[1:]):
        raise ValueError(f"takes an ARRAY and text, not ({describe(args)})")
    if not isinstance(literal_value(args[1]), str):
        raise ValueError("the separator must be a text literal")
    return Signature((t.Array(t.STRING), t.STRING, t.STRING)[: len(args)], t.STRING)


@define("array_join", _join_signature)
def array_join(call: Call, items: tuple[str | None, ...], separator: str, instead: str | None = None) -> object:
    """The elements as text with a literal separator between; NULLs are left out, or written as the third argument."""
    shown = [instead if item is None else item for item in items]
    return separator.join(item for item in shown if item is not None)
