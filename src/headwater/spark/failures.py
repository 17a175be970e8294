"""What Spark's errors mean to a user."""

from __future__ import annotations

import re

from headwater.errors import UserError

UNREADABLE = "HW473"


def unreadable(error: Exception, log: object) -> UserError:
    """An error of Spark's about a source, as one of ours; Spark's stack of causes is in its log.

    Args:
        error: what PySpark raised.
        log: where Spark's log is.
    """
    return UserError(UNREADABLE, f"a source cannot be read: {reason_of(str(error))}", hint=f"Spark's log is {log}")


def reason_of(text: str) -> str:
    """The sentence in a stack of Java causes that says most: the last cause, and the file it is about.

    >>> reason_of("x\\nCaused by: a.BException: Encountered error while reading file file:///d/x.csv.  SQLSTATE: K\\n"
    ...           "Caused by: a.CException: The header is wrong.\\nExpected: b but found: c\\n\\tat x.y.Z")
    'file /d/x.csv: The header is wrong. Expected: b but found: c'
    >>> reason_of("An exception was thrown from the Python worker:\\nTraceback (most recent call last):\\n"
    ...           "  File \\"x.py\\", line 1, in f\\n    g()\\na.b.SomeError: it is wrong\\n")
    'SomeError: it is wrong'
    """
    file = re.search(r"reading file (file:\S+?)\.?\s", text)
    causes = re.findall(r"Caused by: [\w.$]+(?:Exception|Error): (.*?)(?=\n\tat |\nCaused by|\Z)", text, re.DOTALL)
    python = re.findall(r"^(?:\w+\.)*(\w+(?:Error|Exception|Exit|Interrupt)(?:: .*)?)$", text, re.MULTILINE)
    mismatch = re.search(r"Data type mismatches when reading Parquet column [^\n]*?(?= SQLSTATE)", text)
    if mismatch:
        reason = mismatch.group()
    elif "Traceback (most recent call last)" in text and python:
        reason = python[-1]
    elif causes:
        reason = causes[-1]
    else:
        reason = next((line for line in text.split("\n") if line.strip()), "no reason was given")
    lines = [line.strip() for line in reason.split("\n")]
    told = " ".join(line for line in lines if line and not re.match(r"(Header|Schema|CSV file):", line))
    told = re.sub(r"^\[[A-Z_.]+\] | SQLSTATE: \w+$", "", told)
    return f"file {_path(file.group(1))}: {told}" if file and _path(file.group(1)) not in told else told


def _path(url: str) -> str:
    return re.sub(r"^file:/*", "/", url)
