"""Answers with a body of any size, sent piece by piece as the client takes them."""

from __future__ import annotations

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

#: So many bytes are handed over at a time. What is handed over waits in memory until the client takes it.
_PIECE_BYTES = 256 << 10


class Pieces(Response):
    """A response that waits for its client, so that the connection sees whether anything is taken."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for at in range(0, max(1, len(self.body)), _PIECE_BYTES):
            piece = bytes(self.body[at : at + _PIECE_BYTES])
            more = at + _PIECE_BYTES < len(self.body)
            await send({"type": "http.response.body", "body": piece, "more_body": more})
