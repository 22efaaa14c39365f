# SPDX-License-Identifier: Apache-2.0
"""Data by URL: over loopback against obstore alone and what nginx can send, with 30 ms a request against the disk, and
from the cache. Needs nginx (Debian: nginx-light; PENSTOCK_NGINX names another) and a C compiler."""

from __future__ import annotations

import argparse
import asyncio
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import measure

OBJECTS, BYTES = 2000, 56_000
SHARDS, DELAY_S = 4, 0.03
NGINX_PORT, SLOW_PORT = 18871, 18872
ROOT = Path(tempfile.gettempdir()) / f"penstock-bench-remote-{os.getuid()}"
FAST, SLOW = f"http://127.0.0.1:{NGINX_PORT}", f"http://127.0.0.1:{SLOW_PORT}"
NGINX = """daemon off; pid {root}/nginx.pid; error_log {root}/error.log; worker_processes 1;
events {{ worker_connections 1024; }}
http {{ access_log off; keepalive_requests 10000000; sendfile on; tcp_nodelay on; client_body_temp_path {root}/t;
proxy_temp_path {root}/t; fastcgi_temp_path {root}/t; uwsgi_temp_path {root}/t; scgi_temp_path {root}/t;
server {{ listen 127.0.0.1:{port}; root {root}; }} }}
"""


def prepare(data: str) -> None:
    """Objects of random bytes, and the photographs in shards."""
    import numpy as np

    if (ROOT / "done").exists():
        return
    (ROOT / "objects").mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    for i in range(OBJECTS):
        (ROOT / "objects" / str(i)).write_bytes(rng.bytes(BYTES))
    photos = sorted((Path(data) / "photos500").rglob("*.jp*g")) or sorted(Path(data).rglob("*.jp*g"))
    for shard in range(SHARDS):
        with tarfile.open(ROOT / f"{shard}.tar", "w") as archive:
            for i in range(500):
                for ext, content in (("jpg", photos[(500 * shard + i) % len(photos)].read_bytes()), ("cls", b"7")):
                    member = tarfile.TarInfo(f"{i:06}.{ext}")
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))
    (ROOT / "done").touch()


class Slow(asyncio.Protocol):
    """Answers with ranges of files, each after a delay."""

    files: dict[str, bytes] = {}

    def connection_made(self, transport) -> None:
        self.transport, self.text = transport, b""

    def data_received(self, data: bytes) -> None:
        self.text += data
        while b"\r\n\r\n" in self.text:
            head, _, self.text = self.text.partition(b"\r\n\r\n")
            asyncio.get_running_loop().call_later(DELAY_S, self.answer, head.decode("latin1"))

    def answer(self, head: str) -> None:
        lines = head.split("\r\n")
        method, path, _ = lines[0].split(" ")
        if path not in self.files:
            self.files[path] = (ROOT / path.lstrip("/")).read_bytes()
        body = self.files[path]
        asked = next((line for line in lines if line.lower().startswith("range: bytes=")), "")
        status, extra, part = "200 OK", "", memoryview(body)
        if asked:
            first, _, last = asked.partition("=")[2].partition("-")
            begin, end = int(first), min(int(last) + 1, len(body)) if last else len(body)
            status, extra = "206 Partial Content", f"Content-Range: bytes {begin}-{end - 1}/{len(body)}\r\n"
            part = part[begin:end]
        answer = (
            f'HTTP/1.1 {status}\r\nContent-Length: {len(part)}\r\nETag: "{path}"\r\n{extra}'
            "Last-Modified: Sun, 22 Nov 2026 10:00:00 GMT\r\nAccept-Ranges: bytes\r\n\r\n"
        )
        self.transport.write(answer.encode())
        if method != "HEAD":
            self.transport.write(part)


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Slow, "127.0.0.1", SLOW_PORT, backlog=512)
    await server.serve_forever()


# What is measured ---------------------------------------------------------------------------------------------------


def load(o: argparse.Namespace) -> Iterator[int]:
    """What nginx can send, by a program in C."""
    while True:
        seconds = "1"
        command = [ROOT / "http_load", NGINX_PORT, OBJECTS, BYTES, 16, seconds]
        began = time.perf_counter()
        rate = float(subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True).stdout)
        yield int(rate * (time.perf_counter() - began))


def obstore_alone(threads: int):
    def contender(o: argparse.Namespace) -> Iterator[int]:
        import obstore

        store = obstore.store.HTTPStore.from_url(FAST, client_options={"allow_http": True})
        with ThreadPoolExecutor(threads) as pool:
            i = 0
            while True:
                names = [f"objects/{k % OBJECTS}" for k in range(i, i + 256)]
                i += 256
                list(pool.map(lambda name: len(obstore.get(store, name).bytes()), names))
                yield 256

    return contender


def objects(at: str, batch: int = 256, **arguments):
    def contender(o: argparse.Namespace) -> Iterator[int]:
        from penstock import fn, pipeline_def

        @pipeline_def(batch_size=batch, num_threads=o.threads, seed=1, **arguments)
        def pipe():
            return fn.readers.file(files=[f"{at}/objects/{i}" for i in range(OBJECTS)])[0]

        built = pipe()
        while True:
            yield len(built.run()[0])

    return contender


def epochs(at: str, **arguments):
    """The same after the first epoch."""

    def contender(o: argparse.Namespace) -> Iterator[int]:
        batches = objects(at, **arguments)(o)
        for _ in range(2 * OBJECTS // 256):
            next(batches)
        yield from batches

    return contender


def val(at: str):
    def contender(o: argparse.Namespace) -> Iterator[int]:
        from penstock import fn, pipeline_def, types

        @pipeline_def(batch_size=o.batch, num_threads=o.threads, seed=1)
        def pipe():
            paths = [f"{at}/{i}.tar" for i in range(SHARDS)]
            jpegs, labels = fn.readers.webdataset(paths=paths, ext=["jpg", "cls"], random_shuffle=True)
            images = fn.decoders.image(jpegs)
            images = fn.resize(images, resize_shorter=256)
            mirrored = fn.crop_mirror_normalize(
                images, crop=(224, 224), dtype=types.FLOAT, output_layout="CHW", mean=[124, 116, 104], std=[58, 57, 57]
            )
            return mirrored, labels

        built = pipe()
        while True:
            yield len(built.run()[0])

    return contender


def one_batch(o: argparse.Namespace) -> Iterator[int]:
    """A batch at a time, nothing read ahead: its rate is 256 over the time of a batch."""
    return objects(SLOW, exec_pipelined=False, exec_async=False, prefetch_queue_depth=1)(o)


def by_webdataset(o: argparse.Namespace) -> Iterator[int]:
    """The library of that name, which reads by curl, decoding nothing."""
    import webdataset

    url = f"{SLOW}/{{0..{SHARDS - 1}}}.tar"
    while True:
        for _ in webdataset.WebDataset(f"pipe:curl -s {url}", shardshuffle=False):
            yield 1


CONTENDERS = {
    "loopback: nginx, by a load generator in C": load,
    "loopback: obstore alone, 4 threads": obstore_alone(4),
    "loopback: obstore alone, 16 threads": obstore_alone(16),
    "loopback: penstock": objects(FAST),
    "val from shards: disk": val(str(ROOT)),
    "val from shards: 30 ms a request": val(SLOW),
    "objects, 30 ms a request: one batch at a time": one_batch,
    "objects: from files": epochs(str(ROOT)),
    "objects: from the cache": epochs(FAST, cache=str(ROOT / "cache")),
    "shards, 30 ms a request, not decoded: webdataset 1 process": by_webdataset,
}


def table(rate: dict[str, float]) -> list[str]:
    """The claims, and whether they hold."""

    def over(a: str, b: str) -> float:
        return rate.get(a, 0) / max(rate.get(b, 1e-9), 1e-9)

    names = list(CONTENDERS)
    alone = max(names[1:3], key=lambda n: rate.get(n, 0))
    batch_ms = 256e3 / max(rate.get(names[6], 1e-9), 1e-9)
    claims = [
        ("over loopback, against obstore alone", over(names[3], alone), 1.3),
        ("over loopback, of what nginx can send", over(names[3], names[0]), 0.75),
        ("val from shards with 30 ms a request, against the disk", over(names[5], names[4]), 0.9),
        ("a batch of 256 objects: 3 x 30 ms over its time", 90 / batch_ms, 1.0),
        ("second epoch from the cache, against files", over(names[8], names[7]), 0.95),
    ]
    lines = [f"| {n} | {rate[n]:,.0f} |" for n in names if n in rate]
    held = [
        f"| {what} | {got:.2f} | {wanted} | {'yes' if got >= wanted else '**no**'} |" for what, got, wanted in claims
    ]
    return [
        *("| | objects/s |", "|---|---|", *lines, ""),
        *("| claim | measured | wanted | holds |", "|---|---|---|---|", *held, ""),
        f"A batch of 256 objects with 30 ms a request takes {batch_ms:.0f} ms.",
    ]


def main() -> None:
    parser = measure.arguments(__doc__ or "")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    o = parser.parse_args()
    if o.serve:
        return asyncio.run(serve())
    if o.worker:
        return measure.work(CONTENDERS[o.worker], o)
    prepare(o.data)
    nginx = os.environ.get("PENSTOCK_NGINX") or shutil.which("nginx") or "/usr/sbin/nginx"
    (ROOT / "nginx.conf").write_text(NGINX.format(root=ROOT, port=NGINX_PORT))
    source = Path(__file__).parent / "native" / "http_load.c"
    subprocess.run(["cc", "-O2", "-pthread", source, "-o", ROOT / "http_load"], check=True)
    servers = [
        subprocess.Popen([nginx, "-c", ROOT / "nginx.conf"]),
        subprocess.Popen([sys.executable, __file__, "--serve"]),
    ]
    try:
        time.sleep(1)
        results = measure.measure(__file__, [n for n in CONTENDERS if o.only in n], o)
    finally:
        for server in servers:
            server.terminate()
            server.wait(10)
    lines = ["# Data by URL", "", __doc__ or "", "", measure.machine(), measure.versions("obstore", "webdataset"), ""]
    lines += table({n: r["images_per_s"] for n, r in results.items()})
    text = "\n".join(lines) + "\n"
    print(text)
    if not o.only:
        measure.write(o.out, "remote.md", text)


if __name__ == "__main__":
    main()
