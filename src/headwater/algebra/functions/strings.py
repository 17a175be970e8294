"""Text. Positions count code points from 1."""

from __future__ import annotations

import base64 as b64
import hashlib
from collections.abc import Callable
from itertools import chain
from typing import Any

from headwater import types as t
from headwater.algebra.functions.errors import invalid_value
from headwater.algebra.functions.registry import Function, Resolver, Signature, define, register
from headwater.algebra.functions.signatures import accepts, common, count_args, describe, first_of, literal_value, takes
from headwater.algebra.scalars import Call, Scalar

to_text = takes(t.STRING, result=t.STRING)
_text_test = takes(t.STRING, t.STRING, result=t.BOOLEAN)


def _texts(least: int) -> Resolver:
    def resolve(args: tuple[Scalar, ...]) -> Signature:
        count_args(args, least, 1_000_000)
        if any(not accepts(arg, t.STRING) for arg in args):
            raise ValueError(f"takes text, not ({describe(args)})")
        return Signature((t.STRING,) * len(args), t.STRING)

    return resolve


# --- length and case ------------------------------------------------------------------------------------------------


@define(
    ("length", "char_length", "character_length", "len"),
    first_of(takes(t.STRING, result=t.INT), takes(t.BINARY, result=t.INT)),
)
def length(call: Call, text: str | bytes) -> object:
    """How many characters, or bytes of a BINARY."""
    return len(text)


_bytes_of = first_of(takes(t.STRING, result=t.INT), takes(t.BINARY, result=t.INT))


@define("octet_length", _bytes_of)
def octet_length(call: Call, text: str | bytes) -> object:
    """How many bytes, in UTF-8."""
    return len(text.encode() if isinstance(text, str) else text)


@define("bit_length", _bytes_of)
def bit_length(call: Call, text: str | bytes) -> object:
    """How many bits, in UTF-8."""
    return 8 * len(text.encode() if isinstance(text, str) else text)


#: Letters that become several letters in upper case and that DuckDB leaves alone; ß is not among them.
UPPER_UNKNOWN = (
    "\u0149\u01f0\u0390\u03b0\u0587\u1e96-\u1e9a\u1f50\u1f52\u1f54\u1f56\u1f80-\u1faf\u1fb2-\u1fb4\u1fb6\u1fb7\u1fbc"
    "\u1fc2-\u1fc4\u1fc6\u1fc7\u1fcc\u1fd2\u1fd3\u1fd6\u1fd7\u1fe2-\u1fe4\u1fe6\u1fe7\u1ff2-\u1ff4\u1ff6\u1ff7\u1ffc"
    "\ufb00-\ufb06\ufb13-\ufb17"
)
#: The same for the first letter of a word under INITCAP: also ß, letters with a title case, and Georgian.
TITLE_UNKNOWN = UPPER_UNKNOWN + "\u00df\u01c4-\u01cc\u01f1-\u01f3\u10d0-\u10ff"


def _members(ranges: str) -> frozenset[str]:
    found: set[str] = set()
    position = 0
    while position < len(ranges):
        first = last = ranges[position]
        if ranges[position + 1 : position + 2] == "-":
            last = ranges[position + 2]
            position += 2
        found.update(map(chr, range(ord(first), ord(last) + 1)))
        position += 1
    return frozenset(found)


_UPPER_UNKNOWN, _TITLE_UNKNOWN = _members(UPPER_UNKNOWN), _members(TITLE_UNKNOWN)

# The three below raise for a few dozen letters, too rare to pay for with the guards that `raises` brings.


@define(("upper", "ucase"), to_text)
def upper(call: Call, text: str) -> object:
    """In upper case; an error for the few letters, such as ligatures, that would become several."""
    if not _UPPER_UNKNOWN.isdisjoint(text):
        raise invalid_value(f"'{text}' has a letter that {call.function} does not know")
    return text.upper()


@define(("lower", "lcase"), to_text)
def lower(call: Call, text: str) -> object:
    """In lower case."""
    return text.lower()


@define("initcap", to_text)
def initcap(call: Call, text: str) -> object:
    """Words, which are what blanks separate, with a capital first letter and the rest in lower case."""
    words = text.lower().split(" ")
    if any(word[:1] in _TITLE_UNKNOWN for word in words if word):
        raise invalid_value(f"'{text}' has a letter that initcap does not know")
    return " ".join(word[:1].upper() + word[1:] for word in words)


# --- parts ----------------------------------------------------------------------------------------------------------


def cut(text: str, position: int, size: int | None) -> str:
    """SUBSTRING: a negative position counts from the end, 0 is 1."""
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    end = len(text) if size is None else start + size
    return text[max(start, 0) : max(end, 0)] if end > start else ""


@define(("substring", "substr"), takes(t.STRING, t.INT, t.INT, result=t.STRING, least=2))
def substring(call: Call, text: str, position: int, size: int | None = None) -> object:
    """So many characters from a position on; a negative position counts from the end."""
    return cut(text, position, size)


@define("left", takes(t.STRING, t.INT, result=t.STRING))
def left(call: Call, text: str, size: int) -> object:
    """The first characters."""
    return text[: max(size, 0)]


@define("right", takes(t.STRING, t.INT, result=t.STRING))
def right(call: Call, text: str, size: int) -> object:
    """The last characters."""
    return text[-size:] if size > 0 else ""


@define("overlay", takes(t.STRING, t.STRING, t.INT, t.INT, result=t.STRING, least=3))
def overlay(call: Call, text: str, new: str, position: int, size: int = -1) -> object:
    """The text with characters from a position on replaced by others, as many as they are unless said."""
    size = len(new) if size < 0 else size
    return cut(text, 1, position - 1) + new + cut(text, position + size, None)


@define("split_part", takes(t.STRING, t.STRING, t.INT, result=t.STRING), raises=True)
def split_part(call: Call, text: str, delimiter: str, number: int) -> object:
    """The n-th part between delimiters, from the end if negative; empty if there is none."""
    if number == 0:
        raise invalid_value("split_part has no part 0")
    parts = text.split(delimiter) if delimiter else [text]
    position = number - 1 if number > 0 else len(parts) + number
    return parts[position] if 0 <= position < len(parts) else ""


def _substring_index_signature(args: tuple[Scalar, ...]) -> Signature:
    signature = takes(t.STRING, t.STRING, t.INT, result=t.STRING)(args)
    delimiter = literal_value(args[1])
    # Spark lets occurrences overlap when it counts them, which splitting does not.
    if isinstance(delimiter, str) and any(delimiter.endswith(delimiter[:n]) for n in range(1, len(delimiter))):
        raise ValueError("takes a delimiter that does not overlap itself")
    return signature


@define("substring_index", _substring_index_signature)
def substring_index(call: Call, text: str, delimiter: str, count: int) -> object:
    """What stands before the n-th delimiter, or after the n-th from the end; the delimiter is a literal."""
    if not delimiter or count == 0:
        return ""
    parts = text.split(delimiter)
    return delimiter.join(parts[:count] if count > 0 else parts[count:])


def _stripper(strip: Callable[[str, str], str], chars_first: bool) -> Callable[..., object]:
    def evaluate(call: Call, a: str, b: str | None = None) -> object:
        if b is None:
            return strip(a, " ")
        return strip(b, a) if chars_first else strip(a, b)

    return evaluate


def _strip_both(text: str, chars: str) -> str:
    return text.strip(chars) if chars else text


def _strip_left(text: str, chars: str) -> str:
    return text.lstrip(chars) if chars else text


def _strip_right(text: str, chars: str) -> str:
    return text.rstrip(chars) if chars else text


_one_or_two = takes(t.STRING, t.STRING, result=t.STRING, least=1)
for _name, _strip, _first, _summary in (
    ("trim", _strip_both, True, "Without blanks at both ends; trim(chars, text) removes any of these characters."),
    (
        "ltrim",
        _strip_left,
        True,
        "Without blanks at the beginning; ltrim(chars, text) removes any of these characters.",
    ),
    ("rtrim", _strip_right, True, "Without blanks at the end; rtrim(chars, text) removes any of these characters."),
    ("btrim", _strip_both, False, "Without blanks at both ends; btrim(text, chars) removes any of these characters."),
):
    register(Function(_name, _one_or_two, _stripper(_strip, _first), summary=_summary))


# --- composition ----------------------------------------------------------------------------------------------------


def _concat_signature(args: tuple[Scalar, ...]) -> Signature:
    if not any(isinstance(arg.type, t.Array) for arg in args):
        return _texts(0)(args)
    kind = common(args)
    if not isinstance(kind, t.Array):
        raise ValueError(f"takes texts or arrays, not ({describe(args)})")
    return Signature((kind,) * len(args), kind)


@define(("concat", "||"), _concat_signature)
def concat(call: Call, *parts: Any) -> object:
    """Texts or arrays one after the other; NULL if one is NULL."""
    return tuple(chain.from_iterable(parts)) if isinstance(call.type, t.Array) else "".join(parts)


@define("concat_ws", _texts(1), strict=False)
def concat_ws(call: Call, separator: str | None, *texts: str | None) -> object:
    """One after the other with a separator between; NULLs are left out."""
    return None if separator is None else separator.join(text for text in texts if text is not None)


@define("replace", takes(t.STRING, t.STRING, t.STRING, result=t.STRING, least=2))
def replace(call: Call, text: str, search: str, new: str = "") -> object:
    """Every occurrence of a text replaced by another, or removed."""
    return text.replace(search, new) if search else text


@define("translate", takes(t.STRING, t.STRING, t.STRING, result=t.STRING))
def translate(call: Call, text: str, old: str, new: str) -> object:
    """Every character of the second argument replaced by the one at its place in the third, or removed."""
    table: dict[int, str | None] = {}
    for place, character in enumerate(old):
        table.setdefault(ord(character), new[place] if place < len(new) else None)
    return text.translate(table)


def _reverse_signature(args: tuple[Scalar, ...]) -> Signature:
    if len(args) == 1 and isinstance(args[0].type, t.Array):
        return Signature((args[0].type,), args[0].type)
    return to_text(args)


@define("reverse", _reverse_signature)
def reverse(call: Call, value: str | tuple[object, ...]) -> object:
    """The characters of a text, or the elements of an array, from last to first."""
    return value[::-1]


@define("repeat", takes(t.STRING, t.INT, result=t.STRING))
def repeat(call: Call, text: str, count: int) -> object:
    """The text so many times."""
    return text * max(count, 0)


@define("space", takes(t.INT, result=t.STRING))
def space(call: Call, count: int) -> object:
    """So many blanks."""
    return " " * max(count, 0)


def _padding(text: str, size: int, pad: str) -> str:
    missing = max(size - len(text), 0)
    return (pad * missing)[:missing]


_padded = takes(t.STRING, t.INT, t.STRING, result=t.STRING, least=2)


@define("lpad", _padded)
def lpad(call: Call, text: str, size: int, pad: str = " ") -> object:
    """Filled up at the beginning, or cut at the end, to so many characters."""
    return (_padding(text, size, pad) + text)[: max(size, 0)] if pad else text[: max(size, 0)]


@define("rpad", _padded)
def rpad(call: Call, text: str, size: int, pad: str = " ") -> object:
    """Filled up, or cut, at the end to so many characters."""
    return (text + _padding(text, size, pad))[: max(size, 0)]


# --- search ---------------------------------------------------------------------------------------------------------


@define("instr", takes(t.STRING, t.STRING, result=t.INT))
def instr(call: Call, text: str, search: str) -> object:
    """Where the second argument first occurs in the first; 0 if nowhere."""
    return text.find(search) + 1


@define(("locate", "position"), takes(t.STRING, t.STRING, t.INT, result=t.INT, least=2), strict=False)
def locate(call: Call, search: str | None, text: str | None, start: int | None = 1) -> object:
    """Where the first argument occurs in the second, from a position on; 0 if nowhere."""
    if start is None:
        return 0
    if search is None or text is None:
        return None
    if start < 1:
        return 0
    return text.find(search, start - 1) + 1 if search else 1


@define("startswith", _text_test)
def startswith(call: Call, text: str, search: str) -> object:
    """Whether the first argument begins with the second."""
    return text.startswith(search)


@define("endswith", _text_test)
def endswith(call: Call, text: str, search: str) -> object:
    """Whether the first argument ends with the second."""
    return text.endswith(search)


@define("contains", _text_test)
def contains(call: Call, text: str, search: str) -> object:
    """Whether the second argument occurs in the first."""
    return search in text


# --- characters and digests -----------------------------------------------------------------------------------------


@define("ascii", takes(t.STRING, result=t.INT))
def first_code_point(call: Call, text: str) -> object:
    """The code of the first character; 0 of none."""
    return ord(text[0]) if text else 0


@define(("chr", "char"), takes(t.BIGINT, result=t.STRING))
def character(call: Call, code: int) -> object:
    """The character of a code modulo 256; none of a negative one."""
    return "" if code < 0 else chr(code % 256)


_digested = takes(t.BINARY, result=t.STRING)


@define("md5", _digested)
def md5(call: Call, data: bytes) -> object:
    """MD5 in hexadecimal."""
    return hashlib.md5(data).hexdigest()


@define(("sha1", "sha"), _digested)
def sha1(call: Call, data: bytes) -> object:
    """SHA-1 in hexadecimal."""
    return hashlib.sha1(data).hexdigest()


def _sha2_signature(args: tuple[Scalar, ...]) -> Signature:
    signature = takes(t.BINARY, t.INT, result=t.STRING)(args)
    if literal_value(args[1]) not in (0, 256):
        raise ValueError("takes 256 (or 0, which means 256) as its second argument")
    return signature


@define("sha2", _sha2_signature)
def sha2(call: Call, data: bytes, _bits: int) -> object:
    """SHA-256 in hexadecimal; the second argument is 256 or 0."""
    return hashlib.sha256(data).hexdigest()


@define("base64", takes(t.BINARY, result=t.STRING))
def base64(call: Call, data: bytes) -> object:
    """Base 64, in lines of 76 characters."""
    digits = b64.b64encode(data).decode()
    return "\r\n".join(digits[i : i + 76] for i in range(0, len(digits), 76))
