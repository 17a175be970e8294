"""A server on this machine that speaks the protocol of S3, in a process of its own."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import fsspec  # type: ignore[import-untyped]

BUCKET = "lake"
_PATIENCE_SECONDS = 60.0


class Server:
    """The server, and what a client must know of it."""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}"
        #: What is said of it to who uses it.
        self.options = {"endpoint_url": self.address, "key": "somebody", "secret": "something"}

    @property
    def files(self) -> Any:
        """What is there, asked anew."""
        found = fsspec.filesystem("s3", **self.options)
        found.invalidate_cache()
        return found

    def listed(self, prefix: str) -> list[str]:
        return [f"s3://{one}" for one in self.files.find(prefix)]


@contextmanager
def serving() -> Iterator[Server]:
    """A server with one empty bucket, until the block ends."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        server = Server(port)
        until = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                urllib.request.urlopen(server.address, timeout=5).close()
                break
            except OSError:
                assert time.monotonic() < until and process.poll() is None, "the server did not start"
                time.sleep(0.05)
        server.files.mkdir(BUCKET)
        yield server
    finally:
        process.kill()
        process.wait()
