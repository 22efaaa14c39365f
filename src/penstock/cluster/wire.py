# SPDX-License-Identifier: Apache-2.0
"""Messages over a socket that a worker has inherited."""

from __future__ import annotations

import pickle
import socket
import struct
from typing import Any

_LENGTH = struct.Struct("=Q")


def send(sock: socket.socket, message: Any) -> None:
    """OSError if the other end is gone."""
    data = pickle.dumps(message, 5)
    sock.sendall(_LENGTH.pack(len(data)) + data)


def receive(sock: socket.socket) -> Any:
    """EOFError or OSError if the other end is gone."""
    (length,) = _LENGTH.unpack(_exactly(sock, _LENGTH.size))
    return pickle.loads(_exactly(sock, length))


def _exactly(sock: socket.socket, n: int) -> bytearray:
    data = bytearray(n)
    left = memoryview(data)
    while left:
        got = sock.recv_into(left)
        if not got:
            raise EOFError
        left = left[got:]
    return data
