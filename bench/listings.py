# SPDX-License-Identifier: Apache-2.0
"""A bucket with a million keys is listed, in 1,000 pages of 1,000 keys, from a server on the same machine: seconds, and
the memory of the process. With `cache` and `listing_age` a later run reads what was kept."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import measure

KEYS, PAGE = 1_000_000, 1000
KINDS = {"1,000 folders": 1000, "one folder": 1}


class Bucket(BaseHTTPRequestHandler):
    """Serves S3 listings of `folders` folders, generated on request."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    folders = 1

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        prefix, page, more = query.get("prefix", ""), int(query.get("continuation-token", 0)), False
        if "delimiter" in query:
            body = "".join(f"<CommonPrefixes><Prefix>{i:04}/</Prefix></CommonPrefixes>" for i in range(self.folders))
        else:
            more = page + 1 < KEYS // self.folders // PAGE
            body = "".join(
                f"<Contents><Key>{prefix}{i:08}.jpg</Key><Size>{i}</Size><ETag>&quot;{i:032x}&quot;</ETag>"
                "<LastModified>2026-11-22T10:00:00.000Z</LastModified></Contents>"
                for i in range(page * PAGE, page * PAGE + PAGE)
            )
        token = f"<NextContinuationToken>{page + 1}</NextContinuationToken>" if more else ""
        text = (
            f"<ListBucketResult><IsTruncated>{str(more).lower()}</IsTruncated>{token}{body}</ListBucketResult>".encode()
        )
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


def serve(folders: int) -> None:
    Bucket.folders = folders
    server = ThreadingHTTPServer(("127.0.0.1", 0), Bucket)
    print(server.server_address[1], flush=True)
    server.serve_forever()


def listed(port: str, cache: str) -> None:
    """Prints the number of keys, the seconds, and the memory in MB before and at the peak."""
    from penstock import fn, pipeline_def

    options = {"endpoint": f"http://127.0.0.1:{port}", "aws_skip_signature": "true", "listing_age": "1h"}

    @pipeline_def(batch_size=1, num_threads=2, storage_options=options, cache=cache)
    def pipe():
        return fn.readers.file(file_root="s3://bucket", name="reader")

    before, begin = memory_mb("VmRSS"), time.perf_counter()
    built = pipe()
    built.build()
    seconds = time.perf_counter() - begin
    print(built.epoch_size("reader"), seconds, before, memory_mb("VmHWM"), flush=True)


def memory_mb(name: str) -> float:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name)) / 1e3


def main() -> None:
    parser = measure.arguments(__doc__ or "")
    parser.add_argument("--serve", type=int, default=0)
    parser.add_argument("--list", nargs=2)
    o = parser.parse_args()
    if o.serve:
        return serve(o.serve)
    if o.list:
        return listed(*o.list)
    rows = []
    for kind, folders in KINDS.items():
        server = subprocess.Popen(
            [sys.executable, __file__, "--serve", str(folders)], stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout is not None
            port = server.stdout.readline().strip()
            with tempfile.TemporaryDirectory() as cache:
                for run in ("from the server", "from the cache"):
                    command = [sys.executable, __file__, "--list", port, cache]
                    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
                    assert int(said[0]) == KEYS
                    rows.append(
                        f"| {kind}, {run} | {float(said[1]):.1f} | {float(said[2]):.0f} | {float(said[3]):.0f} |"
                    )
        finally:
            server.terminate()
            server.wait(10)
    lines = ["# Listings of buckets", "", __doc__ or "", "", measure.machine(), measure.versions("obstore"), ""]
    lines += ["| | seconds | MB before | MB at most |", "|---|---|---|---|", *rows]
    text = "\n".join(lines) + "\n"
    print(text)
    measure.write(o.out, "listings.md", text)


if __name__ == "__main__":
    main()
