"""The server: uvicorn around the routes, from the first connection to the last epoch."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from types import FrameType

import uvicorn

from headwater.errors import UserError
from headwater.http.backend import Backend
from headwater.http.guard import Guard, is_loopback
from headwater.http.limits import Limits
from headwater.http.protocol import Connection
from headwater.http.routes import Routes

#: So long reading may go on once the server was told to stop.
_GRACE_SECONDS = 5.0


@dataclass(frozen=True)
class Settings:
    """Where a server listens, and to whom.

    Attributes:
        host: an address or a name; others than loopback need a token.
        port: 0 takes any that is free.
        token: what clients must know.
        read_only: whether nothing may be changed.
        allow_files: whether statements may name files of this machine.
        limits: what clients may have.
    """

    host: str = "127.0.0.1"
    port: int = 8411
    token: str | None = None
    read_only: bool = False
    allow_files: bool = False
    limits: Limits = field(default_factory=Limits)


def listen(settings: Settings) -> socket.socket:
    """The socket of a server.

    Raises:
        UserError: HW495, others could reach it and there is no token; HW496, the address cannot be had.
    """
    host, port = settings.host, settings.port
    if settings.token is None and not is_loopback(host):
        raise UserError(
            "HW495",
            f"{host} can be reached from other machines, and there is no token",
            hint="give one with --token-file or HEADWATER_TOKEN, or listen on 127.0.0.1",
        )
    try:
        # The protocol must be named: asyncio sends small pieces at once only where it sees that this is TCP.
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        out = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError, OverflowError) as error:
        raise UserError("HW496", f"there is no address {host}: {error}", hint="name another one with --host") from None
    try:
        out.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        out.bind(address)
    except OSError as error:
        out.close()
        reason = error.strerror or str(error)
        raise UserError(
            "HW496", f"{host} port {port} cannot be had: {reason}", hint="name another one with --port; 0 takes any"
        ) from None
    return out


class Server(uvicorn.Server):
    """Serves a warehouse until SIGINT, SIGTERM or `stop`."""

    def __init__(self, backend: Backend, settings: Settings, listener: socket.socket) -> None:
        self._routes = Routes(backend, settings.limits, read_only=settings.read_only, allow_files=settings.allow_files)
        self._listener = listener
        self._told: Callable[[], None] = lambda: None
        self.address: tuple[str, int] = listener.getsockname()[:2]
        super().__init__(
            uvicorn.Config(
                Guard(self._routes, settings.host, settings.token),
                http=type("Connection", (Connection,), {"limits": settings.limits}),
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="critical",  # what goes wrong in a request is in its answer, and bugs are in our own log
                access_log=False,
                server_header=False,
                headers=[("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff")],
                proxy_headers=False,
                h11_max_incomplete_event_size=settings.limits.header_bytes,
                timeout_graceful_shutdown=int(_GRACE_SECONDS) + 5,
            )
        )

    @property
    def url(self) -> str:
        """Where it is found."""
        host, port = self.address
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def serve_forever(self, told: Callable[[], None] = lambda: None) -> None:
        """Answer until it is stopped; what is under way ends first.

        Args:
            told: called when it listens.
        """
        self._told = told
        try:
            self.run([self._listener])
        finally:
            self._routes.followers.stop()
            self._routes.work.close()
            self._routes.followers.close()

    def stop(self) -> None:
        """End `serve_forever`, from any thread."""
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._told()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        self._routes.followers.stop()
        await self._routes.work.stop(_GRACE_SECONDS)
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Stop at SIGINT and SIGTERM; unlike uvicorn, do not raise them once more when all is done."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def end(number: int, frame: FrameType | None) -> None:
            self.handle_exit(number, frame)

        before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
