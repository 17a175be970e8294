"""LIKE and regular expressions."""

from __future__ import annotations

from headwater import types as t
from tests.functions.harness import Case, case, lit

TEXTS = [
    "abc",
    "ABC",
    "a%c",
    "a_c",
    "a\\c",
    "",
    "a\nc",
    "aXbXc",
    "éc",
    "a\U0001f600c",
    "ab\n",
    "a\rc",
    "a b",
    "a\x0bb",
    None,
]
TEXTS += ["2020-02-29", "x@y.org", "a-b", "a]b", "a^b", "1234", "a\u2028c", "ab\r\n", "b\n\n", "a.c", "foo123bar45"]

LIKES = ["a%", "%c", "a_c", "abc", "", "%", "a\\%c", "a\\_c", "a\\\\c", "%b%", "_", "é%", "%\n%", "a.c", "[a]%"]
REGEXES = [
    "b",
    "^a",
    "c$",
    "^a.c$",
    "^$",
    "[0-9]{4}-[0-9]{2}",
    "a|x",
    "^(a|é)",
    "\\d+",
    "\\w",
    "a\\sb",
    "[^a-c]",
    "b$",
    "(ab)+",
]
REGEXES += [
    "^[\\w.]+@[\\w]+\\.org$",
    "[-a]b",
    "[a\\]]b",
    "a\\.c",
    "\\S\\S\\S",
    "a.*?c",
    "\\D$",
    "a[\\s]b",
    "a{1,2}b?c",
    "\\z",
]

CASES: list[Case] = []
for pattern in LIKES:
    CASES.append(case("like", t.STRING, lit(pattern), rows=TEXTS, spark="{0} LIKE {1}"))
    CASES.append(case("ilike", t.STRING, lit(pattern.replace("a", "A")), rows=TEXTS, spark="{0} ILIKE {1}"))
CASES += [
    case("like", t.STRING, lit("a!%c"), lit("!"), rows=TEXTS, spark="{0} LIKE {1} ESCAPE {2}"),
    case("like", t.STRING, lit("a\\c"), lit("!"), rows=TEXTS, spark="{0} LIKE {1} ESCAPE {2}"),
    case("ilike", t.STRING, lit("A!_C"), lit("!"), rows=TEXTS, spark="{0} ILIKE {1} ESCAPE {2}"),
    case("like", t.INT, lit("1%"), rows=[12, 21, None], spark="{0} LIKE {1}"),
]
for regex in REGEXES:
    CASES.append(case("rlike", t.STRING, lit(regex), rows=TEXTS, spark="{0} RLIKE {1}"))
CASES += [
    case("regexp", t.STRING, lit("^a"), rows=TEXTS, spark="regexp({0}, {1})"),
    case("regexp_like", t.STRING, lit("^a"), rows=TEXTS),
    case("regexp_extract", t.STRING, lit("([a-z]+)([0-9]+)"), rows=TEXTS),
    case("regexp_extract", t.STRING, lit("([a-z]+)([0-9]+)"), lit(2), rows=TEXTS),
    case("regexp_extract", t.STRING, lit("[0-9]+"), lit(0), rows=TEXTS),
    case("regexp_extract", t.STRING, lit("a(x)?(.)"), lit(1), rows=TEXTS),
    case("regexp_extract", t.STRING, lit("(\\d{4})-(\\d{2})"), lit(2), rows=TEXTS),
    case("regexp_replace", t.STRING, lit("[0-9]+"), lit("#"), rows=TEXTS),
    case("regexp_replace", t.STRING, lit("([a-z])([0-9])"), lit("$2$1"), rows=TEXTS),
    case("regexp_replace", t.STRING, lit("a|c"), lit(""), rows=TEXTS),
    case("regexp_replace", t.STRING, lit("."), lit("x"), rows=TEXTS),
    case("regexp_replace", t.STRING, lit("\\s+"), lit("_"), rows=TEXTS),
]

MANY = ["aXbX", "", "X", "aaa", "a1b22c", "\n1\n2", "é1😀2", None, "a,b,,", ",a", "1"]
for pattern in ("X", "[0-9]+", "aa", ",", "(a)|(b)", "a|[0-9]", "^a", "^a|b", r"b\z", ".", r"\s[0-9]"):
    for name in ("regexp_count", "regexp_substr", "regexp_instr", "split"):
        CASES.append(case(name, t.STRING, lit(pattern), rows=MANY))
    CASES.append(case("regexp_extract_all", t.STRING, lit(pattern), lit(0), rows=MANY))
CASES += [
    case("regexp_extract_all", t.STRING, lit("([a-z])([0-9]+)"), rows=MANY),
    case("regexp_extract_all", t.STRING, lit("([a-z])([0-9]+)"), lit(2), rows=MANY),
    case("regexp_extract_all", t.STRING, lit("(z)?[ab]"), rows=MANY),
    case("split", t.STRING, lit(","), lit(-1), rows=MANY),
    case("split", t.STRING, lit(","), lit(0), rows=MANY),
]
