# SPDX-License-Identifier: Apache-2.0
"""A local server that keeps objects in memory: HTTP with ranges, S3 listings, and faults on demand."""

from __future__ import annotations

import gzip
import hashlib
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape

CHANGED = "Sun, 22 Nov 2026 10:00:00 GMT"
PAGE = 100  # keys in one answer of a listing


def etag(body: bytes) -> str:
    return f'"{hashlib.md5(body).hexdigest()}"'


class ObjectServer(ThreadingHTTPServer):
    """Objects by path, without the slash in front. An S3 client sees the first folder as the bucket."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, objects: dict[str, bytes] | None = None, port: int = 0):
        super().__init__(("127.0.0.1", port), _Handler)
        self.objects = dict(objects or {})
        self.asked: Counter = Counter()  # requests by path
        self.in_flight = self.most_in_flight = 0
        self.ranges = True
        self.gzips = False
        self.refused = 0  # unauthorised requests
        self.starts_after = True  # whether a listing may begin after a key
        self.latency = 0.0
        self.redirects: dict[str, str] = {}
        self.answer_with = ""  # the text of rejections
        self.sums: Callable[[bytes], dict[str, str]] = lambda body: {}  # headers with checksums of an object
        # Requests for these paths are answered when this many of them are pending.
        self.gated: Callable[[str], bool] = lambda path: False
        self.wanted_at_once = self.at_gate = 0
        self.gate = threading.Event()
        # Function (path, number of the request for it) -> fault of `_Handler`, or None.
        self.fault = lambda path, number: None
        self.lock = threading.Lock()
        self.seen: list[dict[str, str]] = []  # headers of requests, and the query of each
        self.stopped = threading.Event()
        self.connections: set[socket.socket] = set()

    def process_request(self, request, client_address) -> None:
        with self.lock:
            self.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request) -> None:
        with self.lock:
            self.connections.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """Ends the threads of clients that keep their connections for later."""
        with self.lock:
            for connection in self.connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def put_folder(self, folder: Path, prefix: str) -> None:
        for path in folder.rglob("*"):
            if path.is_file():
                self.objects[f"{prefix}/{path.relative_to(folder).as_posix()}"] = path.read_bytes()

    def path_of(self, path: str) -> str:
        """The path of an object, from the path of a URL."""
        return unquote(path).lstrip("/")

    def refusal(self, request: BaseHTTPRequestHandler) -> tuple[int, bytes] | None:
        """Status and body of the rejection of an unauthorised request."""
        return None

    def posted(self, request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes]:
        """Status and body of the answer to a POST request."""
        return 405, b""

    def is_listing(self, query: dict[str, list[str]]) -> bool:
        return "list-type" in query

    def page(self, bucket: str, prefix: str, delimiter: str, start: str) -> tuple[list[str], list[str], bool]:
        """Keys after `start`, folders, and whether there are more keys."""
        keys, folders = [], set()
        for path in sorted(self.objects):
            key = path.removeprefix(f"{bucket}/")
            if not path.startswith(f"{bucket}/") or not key.startswith(prefix):
                continue
            rest, found, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
            if found:
                folders.add(prefix + rest + delimiter)
            elif key > start:
                keys.append(key)
        return keys[:PAGE], sorted(folders), len(keys) > PAGE

    def listing(self, bucket: str, query: dict[str, list[str]]) -> bytes:
        prefix, delimiter = query.get("prefix", [""])[0], query.get("delimiter", [""])[0]
        start = query.get("continuation-token") or (query.get("start-after") if self.starts_after else None) or [""]
        page, folders, more = self.page(bucket, prefix, delimiter, start[0])
        contents = "".join(
            f"<Contents><Key>{escape(k)}</Key><Size>{len(self.objects[f'{bucket}/{k}'])}</Size>"
            f"<ETag>{escape(etag(self.objects[f'{bucket}/{k}']))}</ETag>"
            "<LastModified>2026-11-22T10:00:00.000Z</LastModified></Contents>"
            for k in page
        )
        common = "".join(f"<CommonPrefixes><Prefix>{escape(f)}</Prefix></CommonPrefixes>" for f in folders)
        token = f"<NextContinuationToken>{quote(page[-1])}</NextContinuationToken>" if more else ""
        return (
            f"<?xml version='1.0'?><ListBucketResult><IsTruncated>{str(more).lower()}</IsTruncated>{token}{contents}"
            f"{common}</ListBucketResult>"
        ).encode()

    def handle_error(self, request, client_address) -> None:
        pass  # clients that hang up are part of the tests


def some_fail(share: float, kinds: tuple[str, ...], seed: int = 1):
    """A fault for this share of requests, selected by path and number of the request, independent of the order of
    threads."""

    def fault(path: str, number: int) -> str | None:
        rng = random.Random(f"{seed} {path} {number}")
        return rng.choice(kinds) if rng.random() < share else None

    return fault


@contextmanager
def serving(
    objects: dict[str, bytes] | None = None, kind: type[ObjectServer] = ObjectServer, port: int = 0
) -> Iterator[ObjectServer]:
    """Serves on a free port, if none is given."""
    server = kind(objects, port) if port else kind(objects)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stopped.set()
        server.shutdown()
        server.server_close()
        thread.join(10)
        server.hang_up()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ObjectServer
    timeout = 60
    wbufsize = -1  # one packet for headers and body
    disable_nagle_algorithm = True

    def log_message(self, *_) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_PUT(self) -> None:
        path = self.server.path_of(urlsplit(self.path).path)
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        refusal = self.server.refusal(self)
        if refusal:
            return self.send(*refusal)
        self.server.objects[path] = body
        return self.send(201, b"", {"ETag": etag(body), "Last-Modified": CHANGED})

    def do_POST(self) -> None:
        self.send(*self.server.posted(self, self.rfile.read(int(self.headers["Content-Length"] or 0))))

    def do_GET(self) -> None:
        server, parts = self.server, urlsplit(self.path)
        path = server.path_of(parts.path)
        with server.lock:
            server.asked[path] += 1
            number = server.asked[path]
            server.seen.append({**self.headers, "query": parts.query})
            server.in_flight += 1
            server.most_in_flight = max(server.most_in_flight, server.in_flight)
            fault = server.fault(path, number)
            server.at_gate += server.gated(path)
            if server.at_gate >= server.wanted_at_once:
                server.gate.set()
        try:
            if server.gated(path):
                server.gate.wait(300)
            if server.latency:
                time.sleep(server.latency)
            self.respond(path, parse_qs(parts.query), fault)
        finally:
            with server.lock:
                server.in_flight -= 1

    def respond(self, path: str, query: dict[str, list[str]], fault: str | None) -> None:
        server = self.server
        if fault in ("500", "503", "429", "404", "403", "expired"):
            status, code = (400, "ExpiredToken") if fault == "expired" else (int(fault), "Planted")
            text = f"<Error><Code>{code}</Code><Message>{server.answer_with}</Message></Error>"
            return self.send(status, text.encode())
        if fault in ("elsewhere", "signed for elsewhere"):  # S3's answers about a bucket of another region
            status, code = (301, "PermanentRedirect") if fault == "elsewhere" else (400, "AuthorizationHeaderMalformed")
            return self.send(status, f"<Error><Code>{code}</Code></Error>".encode())
        if fault == "garbled":  # flipped bits in the header
            self.close_connection = True
            self.wfile.write(b"HT\xd4P/1.1 2\x900 OK\r\nContent-Lengtl: 5\r\n\r\nhello")
            return None
        if fault == "late":  # no response
            server.stopped.wait(60)
            self.close_connection = True
            return None
        if fault == "hangup":
            self.close_connection = True
            return None
        if path in server.redirects:
            return self.send(302, b"", {"Location": server.redirects[path]})
        refusal = server.refusal(self)
        if refusal:
            with server.lock:
                server.refused += 1
            return self.send(*refusal)
        if server.is_listing(query):
            return self.send(200, server.listing(path.rstrip("/"), query), {"Content-Type": "application/xml"})
        if path not in server.objects:
            return self.send(404, b"<Error><Code>NoSuchKey</Code></Error>")
        body = server.objects[path]
        headers = {"ETag": etag(body), "Last-Modified": CHANGED}
        if self.headers.get("If-None-Match") == headers["ETag"]:
            return self.send(304, b"", headers)
        headers |= server.sums(body)
        if fault == "flipped":  # one bit in transit
            body = bytes([body[0] ^ 4]) + body[1:]
        if server.gzips:
            body, headers["Content-Encoding"] = gzip.compress(body), "gzip"
        wanted, status = self.headers.get("Range"), 200
        if wanted and server.ranges:
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            begin, end = int(first), min(int(last) + 1 if last else len(body), len(body))
            if begin >= len(body):
                return self.send(416, b"", {"Content-Range": f"bytes */{len(body)}"})
            headers["Content-Range"] = f"bytes {begin}-{end - 1}/{len(body)}"
            body, status = body[begin:end], 206
        if fault == "stall":
            headers["Content-Length"] = str(len(body))
            self.send(status, body[: len(body) // 2], headers)
            self.wfile.flush()
            server.stopped.wait(30)
            self.close_connection = True
            return None
        if fault == "trickle":  # it never stops sending
            self.close_connection = True
            self.send(status, b"", {**headers, "Content-Length": str(len(body))})
            for byte in body:
                if server.stopped.wait(0.05):
                    break
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
            return None
        if fault == "cut":
            headers["Content-Length"] = str(len(body))
            self.close_connection = True
            return self.send(status, body[: len(body) // 2], headers)
        return self.send(status, body, headers)

    def send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), "Accept-Ranges": "bytes", **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
