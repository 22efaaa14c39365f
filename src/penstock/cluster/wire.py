# SPDX-License-Identifier: Apache-2.0
"""Messages over a socket, and mutual authentication."""

from __future__ import annotations

import hmac
import pickle
import secrets
import socket
import struct
from typing import Any

_LENGTH = struct.Struct("=Q")
_NONCE_BYTES = 32


def send(sock: socket.socket, message: Any) -> None:
    """Sends a message. OSError if the other end is gone."""
    data = pickle.dumps(message, 5)
    sock.sendall(_LENGTH.pack(len(data)) + data)


def receive(sock: socket.socket) -> Any:
    """Receives a message. EOFError or OSError if the other end is gone."""
    (length,) = _LENGTH.unpack(_exactly(sock, _LENGTH.size))
    return pickle.loads(_exactly(sock, length))


def _exactly(sock: socket.socket, n: int) -> bytearray:
    data = bytearray(n)
    fill(sock, data)
    return data


def fill(sock: socket.socket, memory: Any) -> None:
    """Receives bytes until `memory` is full. EOFError or OSError if the other end is gone."""
    left = memoryview(memory)
    while left:
        got = sock.recv_into(left, 0, socket.MSG_WAITALL)
        if not got:
            raise EOFError
        left = left[got:]


def prove(sock: socket.socket, token: bytes, mine: bytes, theirs: bytes, seconds: float) -> None:
    """Both ends prove that they have the same token, without sending it; `mine` and `theirs` are their names. Call
    before any message is unpickled. Raises PermissionError, OSError or EOFError if the other end does not have it, or
    does not answer within `seconds`."""
    sock.settimeout(seconds)
    nonce = secrets.token_bytes(_NONCE_BYTES)
    sock.sendall(nonce)
    asked = _exactly(sock, _NONCE_BYTES)
    sock.sendall(hmac.digest(token, mine + asked, "sha256"))
    if not hmac.compare_digest(_exactly(sock, 32), hmac.digest(token, theirs + nonce, "sha256")):
        raise PermissionError("the other end does not have the token")
    sock.settimeout(None)
