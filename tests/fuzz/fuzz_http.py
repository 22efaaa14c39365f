# SPDX-License-Identifier: Apache-2.0
"""Fuzzes the client for http:// URLs under AddressSanitizer.

    python tests/fuzz/fuzz_http.py [--seconds 180] [--seed 0] [FILE...]

Builds fuzz_http.cpp together with the client, writes answers of servers, and damages them until the time is up. With
FILEs and `--seconds 0` it takes just these, to repeat a crash.
"""

import sys
from pathlib import Path

import damaging

ROOT = Path(__file__).parents[2]
BODY = b"0123456789"


def answer(status: str, *headers: str, body: bytes = b"") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *headers, "", ""]).encode() + body


def seeds() -> dict[str, bytes]:
    tag, part = 'ETag: "abc"', "Content-Range: bytes 100-109/"
    return {
        "part": answer("206 Partial Content", tag, "Content-Length: 10", part + "5000", body=BODY),
        "part_large": answer("206 Partial Content", tag, "Content-Length: 10", part + "9" * 18, body=BODY),
        "whole": answer("200 OK", tag, "content-length:  10 ", "Connection: close", body=BODY),
        "whole_long": answer("200 OK", "Content-Length: 5000", tag, body=bytes(5000)),
        "promises": answer("200 OK", tag, "Content-Length: 100000000", body=BODY),
        "empty": answer("200 OK", tag, "Content-Length: 0"),
        "unchanged": answer("304 Not Modified", tag),
        "busy": answer("503 Slow Down", "Retry-After: 1", "Content-Length: 0"),
        "chunked": answer("200 OK", tag, "Transfer-Encoding: chunked", body=b"5\r\n01234\r\n0\r\n\r\n"),
        "moved": answer("302 Found", "Location: /elsewhere", "Content-Length: 0"),
        "old": b'HTTP/1.0 200 OK\r\nETag: "abc"\r\nContent-Length: 10\r\n\r\n' + BODY,
        "sums": answer(
            *("200 OK", tag, "Content-Length: 10", "x-goog-hash: crc32c=KAwGng==,md5=eB5eJF1pt5l9ho4d8WWSsg=="),
            *("x-amz-checksum-crc32c: KAwGng==", "Content-MD5: eB5eJF1ptWaXmrhfo5Xgnw=="),
            body=BODY,
        ),
        "long_head": answer("200 OK", "X: " + "y" * 17000, tag, "Content-Length: 10", body=BODY),
    }


def main() -> int:
    args = damaging.arguments(__doc__).parse_args()
    names = ("http_client", "http_exchange", "http_head", "tls", "md5", "crc32c", "remote_queue", "signed_urls", "url")
    names = (*(f"read/{n}" for n in names), "core/memory", "core/native_time", "core/python")
    return damaging.run(damaging.build(args.build_folder, "fuzz_http", names), args, "answers", seeds())


if __name__ == "__main__":
    sys.exit(main())
