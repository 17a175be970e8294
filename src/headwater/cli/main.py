"""The `headwater` command: what it is called with, and how it ends.

Exit codes: 0 done, 1 your mistake or not supported, 2 wrong usage, 3 our bug, 130 Ctrl-C, 141 nobody reads the output.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from collections.abc import Sequence

from headwater.cli import check, demo, explain, init, run, serve, sql, status, subscribe
from headwater.cli.background import is_idle
from headwater.cli.render import UNWRITABLE, writing
from headwater.cli.report import debugging, report
from headwater.errors import HeadwaterError, InternalError
from headwater.serve.wire import unexpected
from headwater.version import VERSION

EXIT_USER = 1
EXIT_USAGE = 2
EXIT_BUG = 3
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141

_EXAMPLES = """\
examples:
  headwater sql                         open ./warehouse, or the project's, and type SQL
  headwater sql shop -f shop.sql        run a file
  headwater sql shop -c "SELECT * FROM revenue" --format json
  headwater explain revenue             how a view is kept fresh
  headwater status                      what is in the warehouse
  headwater subscribe revenue           follow the changes of a view
  headwater serve                       answer for the warehouse over HTTP
  headwater demo                        watch a pipeline on a local Spark, for about a minute
  headwater init shop                   make a small project that runs at once
  headwater run                         follow the project's sources and keep its views fresh
  headwater check                       compile a project's files without running them

exit codes: 0 done, 1 your mistake or not supported, 2 wrong usage, 3 a bug of Headwater, 130 Ctrl-C
"""


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    # SUPPRESS: without it the command's own default would undo an option given before the command.
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--debug",
        action="store_true",
        default=argparse.SUPPRESS,
        help="show the traceback of an error that is our bug (as HEADWATER_DEBUG=1 does)",
    )
    parser = argparse.ArgumentParser(
        prog="headwater",
        description="Headwater keeps SQL views fresh while data streams in.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[common],
    )
    parser.add_argument("--version", action="version", version=f"headwater {VERSION}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    for module in (demo, init, run, sql, subscribe, serve, explain, status, check):
        module.add_parser(commands, common)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code and never raises."""
    code = _guarded(argv)
    if not is_idle():
        # A statement was given up and still runs. Nothing is lost: an epoch is committed whole or not at all.
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    return code


def _guarded(argv: Sequence[str] | None) -> int:
    _prepare_streams()
    args = argparse.Namespace()
    try:
        try:
            code = _run(argv, args)
        finally:
            with writing("<stdout>"):
                sys.stdout.flush()
    except BrokenPipeError:
        _silence()
        return EXIT_BROKEN_PIPE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except HeadwaterError as error:
        if error.code == UNWRITABLE:
            _silence()
        return _report(error, args)
    except Exception as error:
        return _report(unexpected(error), args)
    return code


def _prepare_streams() -> None:
    """Let no standard stream be a reason to fail: neither one that is closed nor a terminal that is not in UTF-8."""
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115 (kept until the process ends)
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _run(argv: Sequence[str] | None, args: argparse.Namespace) -> int:
    parser = build_parser()
    try:
        parser.parse_args(argv, args)
    except SystemExit as end:  # --help, --version and wrong usage
        return end.code if isinstance(end.code, int) else EXIT_USAGE
    if args.command is None:
        parser.print_help(sys.stderr)
        return EXIT_USAGE
    code: int = args.run(args)
    return code


def _report(error: HeadwaterError, args: argparse.Namespace) -> int:
    with contextlib.suppress(BrokenPipeError):
        report(error, debugging(args), as_json=getattr(args, "format", None) in ("json", "jsonl"))
    return EXIT_BUG if isinstance(error, InternalError) else EXIT_USER


def _silence() -> None:
    """Nobody takes the output any more: let the interpreter's last flush go nowhere instead of complaining."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def entry() -> None:
    """The command as a process: ends without Python's own clearing up, which has nothing left to do but complain."""
    code = main()
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    entry()
