"""Says whether the tests that use Spark can run, and what to do if not: `python -m tests.java`."""

from __future__ import annotations

from headwater.spark.java import why_no_spark

if __name__ == "__main__":
    reason = why_no_spark()
    if reason:
        print(f"note: the tests that use Spark are skipped. {reason}")
