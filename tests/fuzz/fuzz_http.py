# SPDX-License-Identifier: Apache-2.0
"""Fuzzes the client for http:// URLs under AddressSanitizer.

    python tests/fuzz/fuzz_http.py [--seconds 180] [--seed 0] [FILE...]

Builds fuzz_http.cpp together with the client, writes answers of servers, and damages them until the time is up. With
FILEs and `--seconds 0` it takes just these, to repeat a crash.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

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
        "long_head": answer("200 OK", "X: " + "y" * 17000, tag, "Content-Length: 10", body=BODY),
    }


def build(folder: Path) -> Path:
    program = folder / "fuzz_http"
    kernels = ROOT / "kernels"
    names = ("read/http_client", "read/remote_queue", "core/memory", "core/native_time")
    sources = [ROOT / "tests/fuzz/fuzz_http.cpp", *(kernels / f"{n}.cpp" for n in names)]
    sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
    flags = ["-std=c++17", "-O1", "-g", *sanitizers, "-DCLONES=", "-pthread", f"-I{kernels}"]
    subprocess.run([os.environ.get("CXX", "g++"), *flags, "-o", str(program), *map(str, sources)], check=True)
    return program


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--build-folder", type=Path, default=ROOT / "build/fuzz")
    parser.add_argument("files", nargs="*", help="files to start from instead of the built-in ones")
    args = parser.parse_args()
    folder = args.build_folder
    (folder / "answers").mkdir(parents=True, exist_ok=True)
    files = list(map(os.path.abspath, args.files))
    if not files:
        for name, data in seeds().items():
            (folder / "answers" / name).write_bytes(data)
            files.append(str((folder / "answers" / name).resolve()))
    command = [str(build(folder).resolve()), str(args.seconds), str(args.seed), *files]
    options = {"ASAN_OPTIONS": "abort_on_error=1:allocator_may_return_null=1", "UBSAN_OPTIONS": "abort_on_error=1"}
    return subprocess.run(command, cwd=folder, env={**os.environ, **options}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
