"""Connections: how many there may be, how long a request's head may take, how long a client may take nothing of its
answer, and errors of HTTP itself as JSON."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from headwater.errors import HeadwaterError, UserError
from headwater.http.failures import error_json, status_of
from headwater.http.limits import Limits


class Connection(H11Protocol):
    """A connection as uvicorn keeps it, with our limits. `limits` is set on a class of its own for each server."""

    limits = Limits()
    _overdue: asyncio.TimerHandle | None = None
    _stuck: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            self._refuse(
                UserError(
                    "HW488", f"{self.limits.connections} connections are open, as many as may be", hint="try again"
                )
            )
            return
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_is_there()
        self._is_taken()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._stuck is None:  # closing would wait until the client takes what waits for it
            self._stuck = self.loop.call_later(self.limits.send_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        self._is_taken()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        if self._between_requests:
            self._expect_head()
        super().data_received(data)
        if not self._between_requests:
            self._head_is_there()

    def send_400_response(self, msg: str) -> None:
        self._refuse(UserError("HW490", "this is no HTTP request that can be read", hint="check its first lines"))

    @property
    def _between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _expect_head(self) -> None:
        if self._overdue is None:
            self._overdue = self.loop.call_later(self.limits.body_seconds, self._give_up)

    def _head_is_there(self) -> None:
        if self._overdue is not None:
            self._overdue.cancel()
            self._overdue = None

    def _is_taken(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None

    def _give_up(self) -> None:
        self._overdue = None
        if self._between_requests and not self.transport.is_closing():
            self._refuse(
                UserError("HW494", f"no request was there after {self.limits.body_seconds:g} seconds", hint="try again")
            )

    def _refuse(self, error: HeadwaterError) -> None:
        body = (error_json(error) + "\n").encode()
        status = status_of(error)
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        if status == 503:
            headers.append((b"retry-after", b"1"))
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            for event in (h11.Response(status_code=status, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
