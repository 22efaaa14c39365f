# SPDX-License-Identifier: Apache-2.0
"""An HTTP server for Prometheus."""

from __future__ import annotations

import errno
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ..core.weak_set import WeakSet
from .text import CONTENT_TYPE, text


class Server:
    """Answers GET /metrics in its own thread until `close`, the end of its `with` block, or the end of the process. Not
    active in forked processes."""

    def __init__(self, port: int, address: str):
        try:
            self._http = ThreadingHTTPServer((address, port), _Handler)
        except OSError as e:
            hint = "; each process of a machine needs its own port" if e.errno == errno.EADDRINUSE else ""
            raise OSError(e.errno, f"{e.strerror}: port {port} of {address}{hint}") from None
        self._http.daemon_threads = True
        self.address, self.port = address, int(self._http.server_address[1])
        self._thread = threading.Thread(target=self._http.serve_forever, name="penstock metrics", daemon=True)
        self._thread.start()
        _SERVERS.add(self)

    @property
    def url(self) -> str:
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"http://{host}:{self.port}/metrics"

    def close(self) -> None:
        """Ends the thread and frees the port. A second call has no effect."""
        if self in _SERVERS:
            _SERVERS.discard(self)
            self._http.shutdown()
            self._http.server_close()
            self._thread.join()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<penstock.metrics.Server {self.url}{'' if self in _SERVERS else ', closed'}>"


def serve(port: int = 9464, address: str = "127.0.0.1") -> Server:
    """Serves the metrics of this process at http://address:port/metrics.

    Parameters
    ----------
    port
        The port; 0 selects a free one, see `Server.port`. Each process needs its own, such as 9464 + local rank.
    address
        The address to listen on. By default only this machine can connect; "0.0.0.0" allows all. There is no password.

    Raises OSError if the port is in use.

    >>> import urllib.request, penstock.metrics
    >>> with penstock.metrics.serve(port=0) as server:
    ...     urllib.request.urlopen(server.url).status
    200
    """
    return Server(port, address)


class _Handler(BaseHTTPRequestHandler):
    timeout = 10  # seconds for a client's request
    server_version = "penstock"

    def do_GET(self) -> None:
        if self.path.split("?")[0] not in ("/", "/metrics"):
            self.send_error(404)
            return
        body = text().encode()
        self.send_response(200)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Requests are not logged."""


_SERVERS = WeakSet[Server]()


def _let_go() -> None:
    """Closes the sockets in a forked process, which has no threads to answer: otherwise the port would stay in use, and
    clients would wait."""
    for server in list(_SERVERS):
        server._http.socket.close()
    _SERVERS.clear()


os.register_at_fork(after_in_child=_let_go)
