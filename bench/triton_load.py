# SPDX-License-Identifier: Apache-2.0
"""Load for a model in Triton, by HTTP: many connections in one thread, whose requests are built before they are timed.

A client that costs as much as the server would hide what the server can do on the same cores.
"""

from __future__ import annotations

import json
import mmap
import select
import socket
import time
import urllib.request
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

_BUFFER = 1 << 20  # of sockets; requests fit into it, so sending never blocks


def request(model: str, inputs: dict[str, Any], outputs: list[dict[str, Any]], data: bytes) -> bytes:
    """A whole HTTP request."""
    head = json.dumps({"inputs": [inputs], "outputs": outputs}).encode()
    lines = [
        f"POST /v2/models/{model}/infer HTTP/1.1",
        "Host: localhost",
        f"Inference-Header-Content-Length: {len(head)}",
        f"Content-Length: {len(head) + len(data)}",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + head + data


def in_the_body(model: str, photos: list[bytes]) -> list[bytes]:
    """Requests that contain a picture and ask for its pixels in the response."""
    outputs = [{"name": "OUTPUT_0", "parameters": {"binary_data": True}}]
    return [request(model, _input(p, {"binary_data_size": len(p)}), outputs, p) for p in photos]


def _input(photo: bytes, parameters: dict[str, Any]) -> dict[str, Any]:
    return {"name": "DATA", "shape": [1, len(photo)], "datatype": "UINT8", "parameters": parameters}


class SharedMemory:
    """Memory from which the server reads pictures, and to which it writes pixels, with a place for each connection."""

    def __init__(self, port: int, photos: list[bytes], connections: int, answer_bytes: int):
        self._path = Path(f"/dev/shm/penstock-bench-{port}")
        self._at = np.cumsum([0, *(len(p) for p in photos)]).tolist()
        self._photos, self._answer_bytes = photos, answer_bytes
        size = self._at[-1] + connections * answer_bytes
        with self._path.open("w+b") as file:
            file.truncate(size)
            self.memory = mmap.mmap(file.fileno(), size)
        self.memory[: self._at[-1]] = b"".join(photos)
        body = json.dumps({"key": f"/{self._path.name}", "offset": 0, "byte_size": size}).encode()
        url = f"http://127.0.0.1:{port}/v2/systemsharedmemory/region/bench/register"
        urllib.request.urlopen(urllib.request.Request(url, body, method="POST")).read()

    def requests(self, model: str, connection: int) -> list[bytes]:
        place = {"shared_memory_region": "bench"}
        there = self._at[-1] + connection * self._answer_bytes
        to = {**place, "shared_memory_byte_size": self._answer_bytes, "shared_memory_offset": there}
        outputs = [{"name": "OUTPUT_0", "parameters": to}]
        return [
            request(
                model,
                _input(p, {**place, "shared_memory_byte_size": len(p), "shared_memory_offset": at}),
                outputs,
                b"",
            )
            for p, at in zip(self._photos, self._at)
        ]

    def close(self) -> None:
        self.memory.close()
        self._path.unlink()


class _Connection:
    def __init__(self, port: int, requests: list[bytes]):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            self.socket.setsockopt(socket.SOL_SOCKET, option, _BUFFER)
        self.requests = requests
        self._answer = bytearray(_BUFFER)
        self._got = self._length = 0
        self.since = 0.0

    def send(self, which: int, since: float) -> None:
        """Sends a request. `since`: when it was due."""
        self.since, self._got, self._length = since, 0, 0
        self.socket.sendall(self.requests[which % len(self.requests)])

    def receive(self) -> bool:
        """Receives available bytes. Returns whether the response is complete. Raises RuntimeError for errors."""
        n = self.socket.recv_into(memoryview(self._answer)[self._got :])
        if not n:
            raise RuntimeError("the server hung up")
        self._got += n
        if not self._length:
            end = self._answer.find(b"\r\n\r\n", 0, self._got)
            if end < 0:
                return False
            lines = bytes(self._answer[:end]).lower().split(b"\r\n")
            self._length = end + 4 + next(int(x[15:]) for x in lines if x.startswith(b"content-length:"))
            if b" 200 " not in lines[0] + b" ":
                raise RuntimeError(bytes(self._answer[: self._got]).decode(errors="replace"))
        return self._got >= self._length


@contextmanager
def connected(port: int, requests: list[list[bytes]]) -> Iterator[list[_Connection]]:
    """One connection per list of requests."""
    made = [_Connection(port, r) for r in requests]
    try:
        yield made
    finally:
        for c in made:
            c.socket.close()


def run(
    connections: list[_Connection], seconds: float, rate: float | None = None, at_random: bool = True
) -> tuple[float, list[float]]:
    """Requests/s and latencies in s. Without a rate, each connection sends its next request after its response. With
    one, requests are due at random times (exponential gaps) or at regular ones, and latencies count from then."""
    rng, latencies, sent = np.random.default_rng(0), [], 0
    idle, busy = list(connections), {}
    begin = time.perf_counter()
    due: deque[float] | None = None
    if rate is not None:
        n = int(rate * seconds)
        due = deque(begin + np.cumsum(rng.exponential(1 / rate, n) if at_random else np.full(n, 1 / rate)))
    while True:
        now = time.perf_counter()
        while idle and (now < begin + seconds if due is None else due and due[0] <= now):
            c = idle.pop()
            c.send(sent, now if due is None else due.popleft())
            busy[c.socket.fileno()] = c
            sent += 1
        if not busy and not due:
            return len(latencies) / (time.perf_counter() - begin), latencies
        wait = max(0.0, due[0] - now) if due and idle else None
        for fd in select.select(busy, [], [], wait)[0]:
            c = busy[fd]
            if c.receive():
                latencies.append(time.perf_counter() - c.since)
                del busy[fd]
                idle.append(c)
