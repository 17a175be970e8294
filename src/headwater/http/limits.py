"""What a server lets its clients have."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Limits of a server; each is an option of `headwater serve`.

    Attributes:
        body_bytes: the longest body of a request.
        result_rows: the most rows of an answer.
        result_bytes: the most bytes of an answer.
        seconds: the time until an answer must be there.
        body_seconds: the time in which a request's head must be there, and then its body.
        running: requests that are worked on at a time.
        requests: requests that are worked on or wait for it.
        subscriptions: subscriptions at a time.
        connections: connections at a time.
        header_bytes: the longest head of a request.
        send_seconds: a client that takes nothing of its answer for so long is let go.
        heartbeat_seconds: a follower hears something at least that often.
        buffer_rows: changes that wait in memory for a follower of a view that does not keep them.
    """

    body_bytes: int = 64 << 20
    result_rows: int = 100_000
    result_bytes: int = 64 << 20
    seconds: float = 30.0
    body_seconds: float = 30.0
    running: int = 8
    requests: int = 64
    subscriptions: int = 64
    connections: int = 512
    header_bytes: int = 16 << 10
    send_seconds: float = 30.0
    heartbeat_seconds: float = 15.0
    buffer_rows: int = 100_000
