"""Text in codes, and text read in a format."""

from __future__ import annotations

from headwater import types as t
from headwater.algebra.scalars import Literal
from tests.functions.harness import Case, D, case, cast_case, lit

S, I, B = t.STRING, t.INT, t.BINARY  # noqa: E741
NULL_TEXT = Literal(None, t.NULL)
LONG = "abcdefghij" * 20
PAIRS = [("kitten", "sitting"), ("", ""), ("", "abc"), ("abc", ""), ("a", "b"), (None, "a"), ("a", None), ("é", "e")]
PAIRS += [
    ("añb😀c", "anb😁c"),
    ("日本語", "日本"),
    ("e\u0301", "é"),
    ("\x01é", "é\x02"),
    ("frog", "fog"),
    (LONG, LONG[5:] + "é"),
]
BASE_64 = [
    "YWJj",
    "YW Jj\r\n",
    "YWI",
    "YWI=",
    "",
    "YQ==",
    "YQ",
    "Y",
    "YQ=",
    "=",
    "YQ==YQ==",
    "Y!W-J_j",
    None,
    "é",
    "/+8=",
]
ADDRESSES = ["a b~*-._é/", "", "a+b=c&d", "😀", "\n%", None, "AZaz09"]
DECODED = ["a%20b+c%C3%A9", "", "%", "%4", "%zz", "%41%", "abc", None, "%F0%9F%98%80", "a%0ab", "\n%41"]
NAMES = ["Miller", "Robert", "Rupert", "Tymczak", "Pfister", "Ashcraft", "Honeyman", "h", "hw", "whw b", "a-b", "bOB"]
NAMES += [
    "",
    "1a",
    "éa",
    "baé",
    "BBBB",
    "Jackson",
    "a1a",
    "Lloyd",
    None,
    "x" * 20,
    "Bſb",
    "Kelvin\u212a",
    "h-bb",
    "aKſ",
    "bhb",
    "bab",
]
CARDS = ["8112189876", "79927398713", "79927398710", "", "x", "0", " 0", "4111 1111", None, "٣", "1" * 40]

CASES: list[Case] = [
    case("encode", S, lit("UTF-8"), rows=["abc", "é😀", "", None]),
    case("encode", S, lit("utf-8"), rows=["é"]),
    case("decode", B, lit("utf-8"), rows=[b"abc", b"\xc3\xa9", b"", None, b"\xff"]),
    cast_case(B, S, b"abc", b"\xc3\xa9", b"", None),
    cast_case(B, S, b"abc", b"", None, safe=True),
    case("unbase64", S, rows=BASE_64),
    case("url_encode", S, rows=ADDRESSES),
    case("url_decode", S, rows=DECODED),
    case("levenshtein", S, S, rows=PAIRS),
    *(case("levenshtein", S, S, lit(n), rows=PAIRS) for n in (0, 1, 3, -1)),
    case("soundex", S, rows=NAMES),
    case("luhn_check", S, rows=CARDS),
    case(
        "find_in_set",
        S,
        S,
        rows=[("b", "a,b,c"), ("a,", "a,b"), ("", ""), ("", "a,"), ("z", "a"), ("é", "a,é"), ("a", "a,a")],
    ),
    case("find_in_set", S, S, rows=[(None, "a"), ("a", None), (",", ",")]),
    case(
        "elt",
        I,
        S,
        S,
        rows=[(1, "a", "b"), (2, "a", None), (3, "a", "b"), (0, "a", "b"), (-1, "a", "b"), (None, "a", "b")],
    ),
    case("elt", I, S, I, rows=[(2, "a", 5), (1, None, 5)]),
    case("mask", S, rows=["AbCD123-@$#", "", "ñÑ٣", "日本", "a\nB", None]),
    case("mask", S, lit("Q"), rows=["AbCD123-é", None]),
    case("mask", S, lit("x"), lit("X"), rows=["aBc", None]),
    case("mask", S, lit("U"), lit("l"), lit("d"), lit("-"), rows=["aB1 é😀\n", "", None]),
    case("mask", S, NULL_TEXT, lit("y"), NULL_TEXT, lit("#"), rows=["aB1 é😀", None]),
    case("mask", S, NULL_TEXT, NULL_TEXT, NULL_TEXT, NULL_TEXT, rows=["aB1"]),
]
AMOUNTS = [
    D("1234567.89"),
    D("-1234567.89"),
    D("0.00"),
    D("-0.01"),
    D("0.05"),
    D("0.15"),
    D("-2.50"),
    D("999.99"),
    None,
]
for digits in (0, 1, 2, 5):
    CASES.append(case("format_number", t.Decimal(12, 2), lit(digits), rows=AMOUNTS))
CASES += [
    case("format_number", t.Decimal(12, 2), lit(-1), rows=AMOUNTS[:2]),
    case("format_number", I, lit(2), rows=[0, 1, -1, 1000, -2147483648, 2147483647, None]),
    case("format_number", t.BIGINT, lit(0), rows=[9223372036854775807, -9223372036854775808, 999, None]),
    case("format_number", t.TINYINT, lit(3), rows=[-128, 5]),
    case("format_number", t.Decimal(38, 8), lit(7), rows=[D("1" * 30 + ".12345675"), D("-" + "9" * 30 + ".99999995")]),
]

# --- formats --------------------------------------------------------------------------------------------------------

DAYS = ["2020-02-29", "2021-02-29", "2020-2-29", " 2020-02-29", "2020-02-29 ", "20-02-29", "12020-02-29", "", "x", None]
DAYS += [
    "2020-13-01",
    "2020-00-10",
    "2020-01-00",
    "9999-12-31",
    "0001-01-01",
    "2020-02-29\n",
    "٢٠٢٠-02-29",
    "2020/02/29",
]
TIMES = [
    "2020-02-29 01:02:03",
    "2020-02-29 23:59:59",
    "2020-02-29 24:00:00",
    "2020-02-29 01:60:00",
    "2020-02-29 01:02:60",
]
TIMES += ["1969-12-31 23:59:59", "2020-02-29", "2020-02-29T01:02:03", "2020-02-29 1:02:03", None]
FORMS: list[tuple[str, list[str | None]]] = [
    ("yyyy-MM-dd", DAYS),
    ("yyyy-MM-dd HH:mm:ss", TIMES),
    ("dd/MM/yyyy", ["29/02/2020", "1/2/2020", "30/02/2020", "29-02-2020", None]),
    ("yyyyMMdd", ["20200229", "2020022", "202002299", "20210229", None]),
    (
        "d.M.yyyy",
        ["9.2.2020", "09.02.2020", "009.2.2020", "99.2.2020", ".2.2020", "12345678901234567890.1.2020", "-1.2.2020"],
    ),
    ("yyyy-M-d H:m:s", ["2020-2-9 1:2:3", "2020-02-09 01:02:03", "2020-2-9 24:2:3", None]),
    (
        "dd-MMM-yyyy",
        ["29-Feb-2020", "29-FEB-2020", "29-feb-2020", "29-February-2020", "29-Xyz-2020", "01-Dec-1999", None],
    ),
    (
        "yyyy-MM-dd'T'HH:mm:ss.SSS",
        [
            "2020-02-29T01:02:03.123",
            "2020-02-29t01:02:03.123",
            "2020-02-29T01:02:03.12",
            "2020-02-29T01:02:03.1234",
            "2020-02-29T01:02:03.",
            None,
        ],
    ),
    ("yyyy-MM-dd HH:mm:ss.SSSSSS", ["2020-02-29 01:02:03.000001", "1969-12-31 23:59:59.999999"]),
    ("yyyy-MM", ["2020-02", "2020-13", "2020-02-01", None]),
    ("yyyy", ["2020", "202", "20201", None]),
    ("yyyyMMddHHmmss", ["20200229010203", "20200229240000", "2020022901020", None]),
]
for form, texts in FORMS:
    for name in ("to_date", "to_timestamp", "try_to_date", "try_to_timestamp", "unix_timestamp"):
        CASES.append(case(name, S, lit(form), rows=texts))
CASES += [
    case("to_timestamp_ltz", S, lit("yyyy"), rows=["2020"]),
    case("to_timestamp_ltz", S, rows=["2020-02-29"]),
    case("to_unix_timestamp", S, lit("yyyy-MM-dd"), rows=["2020-02-29", None]),
    case("unix_timestamp", S, rows=TIMES),
    case("to_unix_timestamp", S, rows=TIMES),
]
