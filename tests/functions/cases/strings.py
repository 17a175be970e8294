"""Text."""

from __future__ import annotations

import datetime as dt

from headwater import types as t
from tests.functions.harness import Case, D, case, lit

S, I = t.STRING, t.INT  # noqa: E741
WORDS = [
    "abc",
    "",
    " a b ",
    "éÀ",
    "a\U0001f600b",
    "e\u0301x",
    "\ta\n",
    "ABC",
    "straße",
    None,
    "  ",
    "ΑΣ ΒΣ",
    "İstanbul",
]
LONG = "a" * 80

CASES: list[Case] = []
for name in ("length", "char_length", "character_length", "len", "octet_length", "bit_length"):
    CASES.append(case(name, S, rows=WORDS))
    CASES.append(case(name, t.BINARY, rows=[b"ab", b"", b"\xff", None]))
for name in ("upper", "ucase", "lower", "lcase"):
    CASES.append(case(name, S, rows=[*WORDS, "ΑΣ.", "ΑΣ.Α", "Σ", "ΑΣΣ", "ǆ", "Ĳ", "ОДНА", "ὈΔΥΣΣΕΎΣ"]))
CASES += [
    case("initcap", S, rows=["hello wORLD", "a-b c_d éa", "ab\tcd", "  aB  Cd", "", None, "ΑΣ ΒΣ", "o'neil", "1st"]),
    case("reverse", S, rows=WORDS),
    case("trim", S, rows=[*WORDS, "\u00a0a"]),
    case("ltrim", S, rows=WORDS),
    case("rtrim", S, rows=WORDS),
    case("btrim", S, rows=WORDS),
    case("upper", I, rows=[5, None]),
    case("concat", S, t.Decimal(10, 2), rows=[("a", D("1.50")), ("a", None)]),
]
CHARS = [("x", "xxax"), ("xy", "xyxaxy"), ("", " a "), ("x", ""), (None, "a"), ("a", None), ("é", "éaé"), (" ", " a ")]
CASES += [
    case("trim", S, S, rows=CHARS),
    case("trim", S, S, rows=CHARS, spark="trim(BOTH {0} FROM {1})"),
    case("ltrim", S, S, rows=CHARS),
    case("rtrim", S, S, rows=CHARS),
    case("btrim", S, S, rows=[(b, a) for a, b in CHARS]),
]
PLACES = [1, 2, 0, -1, -3, -10, 5, 6, 10, 2147483647, None]
SIZES = [0, 1, 2, 7, -1, 2147483647, None]
for name in ("substring", "substr"):
    CASES += [
        case(
            name, S, I, I, rows=[("hello", p, n) for p in PLACES for n in SIZES] + [("é\U0001f600x", 2, 1), ("", 1, 1)]
        ),
        case(name, S, I, rows=[("hello", p) for p in PLACES] + [("é\U0001f600x", -2), (None, 1)]),
        case(name, S, lit(2), lit(3), rows=["hello", "h", "", None]),
        case(name, S, lit(0), lit(2), rows=["hello", None]),
        case(name, S, lit(-3), lit(2), rows=["hello", "h", None]),
        case(name, S, lit(2), rows=["hello", "h", "", None]),
    ]
for name in ("left", "right"):
    CASES.append(case(name, S, I, rows=[("abc", n) for n in (2, 0, -1, 10, None)] + [("é\U0001f600", 1), (None, 1)]))
    CASES.append(case(name, S, lit(2), rows=["abc", "a", "", None]))
PADS = [
    ("abc", 5, "xy"),
    ("abc", 2, "x"),
    ("abc", 5, ""),
    ("abc", 2, ""),
    ("abc", -1, "x"),
    ("abc", 0, "x"),
    ("", 3, "ab"),
]
PADS += [("é", 3, "\U0001f600"), (None, 3, "x"), ("a", None, "x"), ("a", 3, None), ("abc", 3, "x")]
for name in ("lpad", "rpad"):
    CASES.append(case(name, S, I, S, rows=PADS))
    CASES.append(case(name, S, lit(5), lit("0"), rows=["42", "1234567", "", None]))
    CASES.append(case(name, S, I, rows=[("a", 3), ("abc", 2), ("a", -1), (None, 1)]))
CASES += [
    case(
        "overlay",
        S,
        S,
        I,
        I,
        rows=[("abcdef", "XY", p, n) for p in (2, 1, 0, -1, -2, -10, 7, 10) for n in (0, 1, 3, 10, -1)],
    ),
    case(
        "overlay", S, S, I, rows=[("abcdef", "XY", p) for p in (2, 1, 0, -1, -2, 10)] + [(None, "a", 1), ("a", None, 1)]
    ),
    case("split_part", S, S, I, rows=[("a.b.c", ".", n) for n in (1, 3, 4, -1, -3, -4, 0, None)]),
    case(
        "split_part",
        S,
        S,
        I,
        rows=[("ab", "", 1), ("ab", "", 2), ("ab", "", -1), ("", ",", 1), (None, ",", 0), ("a--b", "--", 2)],
    ),
    case("split_part", S, lit(","), lit(2), rows=["a,b", "a", "", None, ",é"]),
    case(
        "substring_index",
        S,
        lit("."),
        I,
        rows=[("a.b.c", n) for n in (1, 2, 5, -1, -2, -5, 0, None)] + [("", 1), (None, 1)],
    ),
    case("substring_index", S, lit("->"), lit(1), rows=["a->b->c", "a-b", None]),
    case("substring_index", S, lit(""), lit(1), rows=["abc", None]),
    case("concat", S, S, rows=[("a", "b"), ("", ""), (None, "b"), ("a", None)]),
    case("concat", S, S, S, rows=[("a", "b", "c")]),
    case("concat", S, rows=["a", None]),
    case("concat", S, I, rows=[("a", 1), ("a", None)]),
    case("concat", t.DATE, S, t.BOOLEAN, rows=[(dt.date(2020, 2, 29), "x", True)]),
    case("concat", rows=[()]),
    case("||", S, S, rows=[("a", "b"), ("a", None), (None, None)]),
    case("||", S, I, rows=[("a", 1)]),
    case(
        "concat_ws",
        S,
        S,
        S,
        rows=[(",", "a", "b"), (",", None, "b"), (",", None, None), (None, "a", "b"), ("", "a", "b"), (",", "", "")],
    ),
    case("concat_ws", lit(","), I, S, rows=[(1, "a"), (None, "a")]),
    case("concat_ws", S, rows=[",", None]),
    case(
        "replace",
        S,
        S,
        S,
        rows=[("aaa", "a", "b"), ("abc", "", "x"), ("aaa", "aa", "b"), ("a", "b", None), ("é", "é", "")],
    ),
    case("replace", S, S, rows=[("abcabc", "bc"), ("abc", ""), (None, "a")]),
    case(
        "translate",
        S,
        S,
        S,
        rows=[("abcabc", "abc", "12"), ("aabc", "aa", "xy"), ("abc", "", "x"), ("abc", "b", ""), (None, "a", "b")],
    ),
    case("translate", S, S, S, rows=[("a\U0001f600b", "\U0001f600", "xy"), ("é", "é", "e"), ("a", "a", None)]),
    case("repeat", S, I, rows=[("ab", 2), ("ab", 0), ("ab", -1), ("", 3), (None, 1), ("a", None)]),
    case("space", I, rows=[3, 0, -1, None]),
    case(
        "instr",
        S,
        S,
        rows=[("hello", "l"), ("hello", ""), ("", ""), ("", "a"), ("é\U0001f600x", "x"), (None, "a"), ("a", None)],
    ),
    case("ascii", S, rows=["a", "", "é", "\U0001f600", None]),
    case("chr", t.BIGINT, rows=[65, 0, 255, 256, 321, -1, 4294967361, None]),
    case("char", t.INT, rows=[97, None]),
    case("md5", S, rows=["a", "", "é", None]),
    case("md5", t.BINARY, rows=[b"a", b"\xff", None]),
    case("sha1", S, rows=["a", "", None]),
    case("sha", t.BINARY, rows=[b"a"]),
    case("sha2", S, lit(256), rows=["a", "", None]),
    case("sha2", S, lit(0), rows=["a"]),
    case("base64", S, rows=["abc", "", "a" * 57, "a" * 58, LONG, None, "a" * 200]),
    case("base64", t.BINARY, rows=[b"\xff\x00"]),
]
LOCATE = [("l", "hello", n) for n in (1, 3, 4, 5, 9, 0, -1, None)]
LOCATE += [
    ("", "hello", 2),
    ("", "abc", 9),
    ("a", "", 1),
    (None, "a", 1),
    ("a", None, 1),
    ("", "", 0),
    ("x", "\U0001f600éx", 2),
]
for name in ("locate", "position"):
    CASES.append(case(name, S, S, I, rows=LOCATE))
    CASES.append(case(name, S, S, rows=[("l", "hello"), ("", "a"), ("z", "a"), (None, "a"), ("a", None)]))
for name in ("startswith", "endswith", "contains"):
    CASES.append(
        case(
            name,
            S,
            S,
            rows=[
                ("abc", "a"),
                ("abc", "c"),
                ("abc", ""),
                ("", "a"),
                ("abc", "b"),
                (None, "a"),
                ("a", None),
                ("É", "é"),
            ],
        )
    )
