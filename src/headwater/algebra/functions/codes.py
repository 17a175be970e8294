"""Text in codes: encodings, digests of its sound, how far apart two texts are, numbers with separators."""

from __future__ import annotations

import base64 as b64
import binascii
import re
import unicodedata
import urllib.parse
from decimal import ROUND_HALF_EVEN, Decimal

from headwater import types as t
from headwater.algebra.functions.errors import invalid_value
from headwater.algebra.functions.numbers import round_to
from headwater.algebra.functions.registry import Signature, define
from headwater.algebra.functions.signatures import accepts, count_args, describe, literal_value, takes
from headwater.algebra.functions.strings import to_text
from headwater.algebra.scalars import Call, Scalar

# --- encodings ------------------------------------------------------------------------------------------------------


def _is_utf_8(args: tuple[Scalar, ...]) -> None:
    name = literal_value(args[1])
    if not isinstance(name, str) or name.lower() != "utf-8":
        raise ValueError("the character set must be the literal 'UTF-8'")


def _encode_signature(args: tuple[Scalar, ...]) -> Signature:
    signature = takes(t.STRING, t.STRING, result=t.BINARY)(args)
    _is_utf_8(args)
    return signature


@define("encode", _encode_signature)
def encode(call: Call, text: str, _charset: str) -> object:
    """The bytes of a text in the character set 'UTF-8'."""
    return text.encode()


def _decode_signature(args: tuple[Scalar, ...]) -> Signature:
    signature = takes(t.BINARY, t.STRING, result=t.STRING)(args)
    _is_utf_8(args)
    return signature


@define("decode", _decode_signature, raises=True)
def decode(call: Call, data: bytes, _charset: str) -> object:
    """The text of bytes in the character set 'UTF-8'; with more arguments, the value beside the first equal one."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise invalid_value("bytes that are not UTF-8") from None


#: What is left of base 64 when everything else is taken out, as Java does; the padding may be missing.
BASE_64 = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?"


@define("unbase64", takes(t.STRING, result=t.BINARY), raises=True)
def unbase64(call: Call, text: str) -> object:
    """The bytes of a text in base 64; what does not belong to it is skipped."""
    digits = re.sub("[^A-Za-z0-9+/=]", "", text)
    if not re.fullmatch(BASE_64, digits):
        raise invalid_value(f"'{text}' is not base 64")
    bare = digits.rstrip("=")
    try:
        return b64.b64decode(bare + "=" * (-len(bare) % 4))
    except binascii.Error:
        raise invalid_value(f"'{text}' is not base 64") from None


@define("url_encode", to_text)
def url_encode(call: Call, text: str) -> object:
    """As in the query of an address: letters, digits and .-*_ stay, a blank is a plus, others are %XX."""
    return urllib.parse.quote_plus(text, safe="*").replace("~", "%7E")


@define("url_decode", to_text, raises=True)
def url_decode(call: Call, text: str) -> object:
    """The text that url_encode made this of; an error for a % without two digits, or bytes that are not UTF-8."""
    if re.search("%(?![0-9a-fA-F]{2})", text):
        raise invalid_value(f"'{text}' is not encoded as in an address")
    try:
        return urllib.parse.unquote_plus(text, errors="strict")
    except UnicodeDecodeError:
        raise invalid_value(f"'{text}' is not encoded as in an address") from None


# --- words ----------------------------------------------------------------------------------------------------------

#: More kinds of characters than this in two texts together are too many for DuckDB's distance, which counts bytes.
MOST_CHARACTERS = 127


def _distance_signature(args: tuple[Scalar, ...]) -> Signature:
    signature = takes(t.STRING, t.STRING, t.INT, result=t.INT, least=2)(args)
    if len(args) == 3 and not isinstance(literal_value(args[2]), int):
        raise ValueError("the largest distance must be an integer literal")
    return signature


@define("levenshtein", _distance_signature)
def levenshtein(call: Call, a: str, b: str, most: int | None = None) -> object:
    """How many characters to insert, delete or replace to make one text the other; -1 if more than a literal third."""
    ascii_only = a.isascii() and b.isascii()
    if not ascii_only and len(set(a + b)) > MOST_CHARACTERS:
        raise invalid_value(f"levenshtein of texts with more than {MOST_CHARACTERS} kinds of characters")
    before = list(range(len(b) + 1))
    for row, x in enumerate(a, 1):
        now = [row]
        for column, y in enumerate(b, 1):
            now.append(min(before[column] + 1, now[-1] + 1, before[column - 1] + (x != y)))
        before = now
    return before[-1] if most is None or before[-1] <= most else -1


LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#: What each letter sounds like; vowels are 0, and H and W are not heard.
SOUNDS = "01230127022455012623017202"


@define("soundex", to_text)
def soundex(call: Call, text: str) -> object:
    """How an English word sounds: its first letter and three digits. What begins with no letter stays as it is."""
    if not text or text[0] not in LETTERS + LETTERS.lower():
        return text
    sounds = dict(zip(LETTERS + LETTERS.lower(), SOUNDS * 2, strict=True))
    out, last = [text[0].upper()], sounds[text[0]]
    for letter in text[1:]:
        sound = sounds.get(letter, "0")
        if sound == "7":
            continue
        if sound not in ("0", last):
            out.append(sound)
        last = sound
    return "".join(out).ljust(4, "0")[:4]


@define("luhn_check", takes(t.STRING, result=t.BOOLEAN))
def luhn_check(call: Call, text: str) -> object:
    """Whether the last of a row of digits is the check digit of the others, as in card numbers."""
    if not re.fullmatch("[0-9]+", text):
        return False
    digits = [int(digit) for digit in reversed(text)]
    doubled = [2 * digit - 9 if digit > 4 else 2 * digit for digit in digits[1::2]]
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0


@define("find_in_set", takes(t.STRING, t.STRING, result=t.INT))
def find_in_set(call: Call, word: str, words: str) -> object:
    """Which of the words between commas the first argument is; 0 if none, or if it has a comma."""
    listed = words.split(",")
    return listed.index(word) + 1 if "," not in word and word in listed else 0


def _elt_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 2, 1_000_000)
    if not accepts(args[0], t.INT) or any(not accepts(arg, t.STRING) for arg in args[1:]):
        raise ValueError(f"takes an INT and texts, not ({describe(args)})")
    return Signature((t.INT, *(t.STRING,) * (len(args) - 1)), t.STRING)


@define("elt", _elt_signature, strict=False, raises=True)
def elt(call: Call, place: int | None, *texts: str | None) -> object:
    """The text at a place, the first being 1; an error if there is none."""
    if place is None:
        return None
    if not 1 <= place <= len(texts):
        raise invalid_value(f"elt has {len(texts)} texts, and none at {place}")
    return texts[place - 1]


def mask_characters(args: tuple[Scalar, ...]) -> list[str | None]:
    """What stands for upper case, lower case, digits and others; None leaves them."""
    found: list[str | None] = ["X", "x", "n", None]
    for place, arg in enumerate(args[1:]):
        value = literal_value(arg)
        if value is not None and not (isinstance(value, str) and len(value) == 1):
            raise ValueError("what stands for characters must be a literal of one character, or NULL")
        found[place] = value
    return found


def _mask_signature(args: tuple[Scalar, ...]) -> Signature:
    signature = takes(t.STRING, t.STRING, t.STRING, t.STRING, t.STRING, result=t.STRING, least=1)(args)
    mask_characters(args)
    return signature


@define("mask", _mask_signature, strict=False)
def mask(call: Call, text: str | None, *_characters: str | None) -> object:
    """Upper case letters as X, lower case ones as x, digits as n; literals say otherwise, and NULL leaves them."""
    if text is None:
        return None
    kinds = {"Lu": 0, "Ll": 1, "Nd": 2}
    instead = mask_characters(call.args)
    return "".join(instead[kinds.get(unicodedata.category(c), 3)] or c for c in text)


# --- numbers --------------------------------------------------------------------------------------------------------


def number_digits(args: tuple[Scalar, ...]) -> int | None:
    """The literal number of digits of FORMAT_NUMBER; None for NULL."""
    digits = literal_value(args[1])
    if digits is not None and not isinstance(digits, int):
        raise ValueError("the number of digits must be an integer literal")
    return digits


def _number_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 2)
    exact = t.as_decimal(args[0].type)
    if exact is None:
        raise ValueError(f"takes an integer or a DECIMAL, not {args[0].type}; cast it to DECIMAL")
    if exact.precision - exact.scale + (number_digits(args) or 0) >= t.MAX_PRECISION:
        raise ValueError("shows at most 37 digits; cast the number to a narrower DECIMAL")
    return Signature((args[0].type, t.INT), t.STRING)


@define("format_number", _number_signature)
def format_number(call: Call, value: int | Decimal, digits: int) -> object:
    """An integer or DECIMAL with commas between thousands and a literal number of digits, rounded half to even."""
    if digits < 0:
        return None
    rounded = round_to(Decimal(value), digits, ROUND_HALF_EVEN)
    return ("-" if value < 0 else "") + format(rounded.copy_abs(), ",f")
