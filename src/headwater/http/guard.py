"""Who may ask: the token, and the defence of a server on this machine against pages in its user's browser.

A page from anywhere can make a browser send requests to 127.0.0.1. It cannot choose the Host that the browser writes
into them, unless a name of its own leads to 127.0.0.1; and where a request comes from another page, the browser says so
in Origin. So on a loopback address Host must name that address, and Origin, where there is one, must be this server.
"""

from __future__ import annotations

import hmac
import ipaddress
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from headwater.errors import UserError
from headwater.http.failures import error_response

_OPEN = ("/healthz",)
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """Lets requests through to an application, or refuses them."""

    def __init__(self, app: ASGIApp, host: str, token: str | None) -> None:
        self._app = app
        self._token = token.encode() if token is not None else None
        self._hosts = _LOCAL | {host.lower()} if is_loopback(host) else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refused = self._refusal(Headers(scope=scope), scope["path"])
        if refused is not None:
            await error_response(refused, close=True)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _refusal(self, headers: Headers, path: str) -> UserError | None:
        host = headers.get("host", "")
        if self._hosts is not None and _name(host) not in self._hosts:
            return UserError(
                "HW483", f"this server is not {host[:100]!r}", hint="name it as it was started: 127.0.0.1 or localhost"
            )
        origin = headers.get("origin")
        if origin is not None and _place(origin) != host.lower():
            return UserError(
                "HW483",
                f"a page of {origin[:100]!r} may not use this server",
                hint="ask from a program, not from a page",
            )
        if self._token is None or path in _OPEN:
            return None
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), self._token):
            return None
        return UserError(
            "HW482",
            "the request has no token" if not given else "the token is not the server's",
            hint="send the header Authorization: Bearer TOKEN",
        )


def _place(origin: str) -> str:
    """The host and port of an Origin header; none if it has no such form."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _name(host: str) -> str:
    """The name or address in a Host header, without the port."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""
