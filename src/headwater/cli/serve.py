"""`headwater serve`: a warehouse over HTTP."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headwater.cli.render import say
from headwater.cli.target import Target, find_target
from headwater.errors import UserError
from headwater.http.limits import Limits

_EXAMPLES = """\
examples:
  headwater serve                                   the project's warehouse, or ./warehouse, on http://127.0.0.1:8411
  headwater serve shop --port 9000 --read-only
  headwater serve shop --host 0.0.0.0 --token-file token.txt

  curl http://127.0.0.1:8411/v1/query -d "SELECT * FROM revenue"
  curl -N http://127.0.0.1:8411/v1/relations/revenue/changes

docs/http.md has all routes. On another address than a loopback one every request needs a token. It works beside a
pipeline that has the warehouse open.
"""
_SHORTEST_TOKEN = 16
#: The options that limit what clients may have, by the fields of `Limits`.
_LIMITS = {
    "body_bytes": ("--max-body-bytes", "the longest body of a request"),
    "result_rows": ("--max-result-rows", "the most rows of an answer"),
    "result_bytes": ("--max-result-bytes", "the most bytes of an answer"),
    "seconds": ("--max-seconds", "the time until an answer must be there"),
    "body_seconds": ("--max-body-seconds", "the time in which a request must be there"),
    "running": ("--max-running", "requests that are worked on at a time"),
    "requests": ("--max-requests", "requests that are worked on or wait for it"),
    "subscriptions": ("--max-subscriptions", "subscriptions at a time"),
    "connections": ("--max-connections", "connections at a time"),
    "header_bytes": ("--max-header-bytes", "the longest head of a request"),
    "send_seconds": ("--send-seconds", "a client that takes nothing of its answer for so long is let go"),
    "heartbeat_seconds": ("--heartbeat-seconds", "a follower hears something at least that often"),
    "buffer_rows": ("--buffer-rows", "changes that wait for a follower of a view that does not keep them"),
}


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "serve",
        help="answer for a warehouse over HTTP",
        description="Answer queries, take rows and tell changes over HTTP, until Ctrl-C.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[common],
    )
    parser.add_argument(
        "warehouse",
        nargs="?",
        metavar="WAREHOUSE",
        help="the warehouse's folder or a project's; default: the project in the current folder, else ./warehouse",
    )
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="where to listen (default: 127.0.0.1)")
    parser.add_argument("--port", type=_port, default=8411, metavar="N", help="default: 8411; 0 takes any that is free")
    parser.add_argument("--token-file", metavar="FILE", help="the token that clients must send (or HEADWATER_TOKEN)")
    parser.add_argument("--read-only", action="store_true", help="let nobody change anything")
    parser.add_argument(
        "--allow-files", action="store_true", help="let statements name files of this machine (COPY, FROM)"
    )
    defaults = Limits()
    for field, (option, help_) in _LIMITS.items():
        default = getattr(defaults, field)
        whole = isinstance(default, int)
        parser.add_argument(
            option,
            dest=field,
            type=_count if whole else _seconds,
            default=default,
            metavar="N" if whole else "SECONDS",
            help=f"{help_} (default: {default:g})" if not whole else f"{help_} (default: {default})",
        )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Carry the command out."""
    try:
        from headwater.http.backend import Backend
        from headwater.http.server import Server, Settings, listen
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn", "h11", "anyio"):
            raise
        raise UserError(
            "HW497",
            f"headwater serve needs {error.name}, which is not installed",
            hint="pip install 'headwater[serve]'",
        ) from None
    settings = Settings(
        host=args.host,
        port=args.port,
        token=_token(args.token_file),
        read_only=args.read_only,
        allow_files=args.allow_files,
        limits=Limits(**{field: getattr(args, field) for field in _LIMITS}),
    )
    listener = listen(settings)
    with listener:
        target = find_target(args.warehouse)
        backend = Backend(_opening(target))
        try:
            server = Server(backend, settings, listener)
            holder = backend.holder
            through = f" through process {holder}" if holder is not None else ""
            server.serve_forever(lambda: say(f"serving {target.path}{through} on {server.url}; Ctrl-C ends it"))
        finally:
            backend.close()
    return 0


def _opening(target: Target) -> Callable[[], Any]:
    return target.open_existing


def _token(file: str | None) -> str | None:
    """The token of a file, or of the environment.

    Raises:
        UserError: HW498, it cannot be read, or is none that is hard to guess.
    """
    if file is not None:
        try:
            text = Path(file).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise UserError("HW498", f"the token in {file} cannot be read: {reason}", hint="check the path") from None
        where = file
    else:
        text = os.environ.get("HEADWATER_TOKEN", "")
        if not text:
            return None
        where = "HEADWATER_TOKEN"
    token = text.strip()
    if len(token) < _SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise UserError(
            "HW498",
            f"the token in {where} is not one of at least {_SHORTEST_TOKEN} letters, digits and signs",
            hint="make one: openssl rand -hex 32",
        )
    return token


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 65535:
        raise ValueError
    return number


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def _seconds(text: str) -> float:
    number = float(text)
    if not 0 < number < 1e6:
        raise ValueError
    return number


_port.__name__ = "number of a port"  # how argparse names them in its complaints
_count.__name__ = "number of at least 1"
_seconds.__name__ = "number of seconds"
