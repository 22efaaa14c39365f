# SPDX-License-Identifier: Apache-2.0
"""Data by URL: over loopback against obstore alone and what nginx can send, with 30 ms a request against the disk and
other libraries, and from the cache. The servers run on the same processors: what they take of them is told apart.
Needs nginx (Debian: nginx; PENSTOCK_NGINX names another) and a C compiler; PENSTOCK_RIVALS names the Python that
has the other libraries.

Results are kept beside the data, so that a long measurement can be made in pieces: --only takes a regular expression.
What is compared should be in one piece."""

from __future__ import annotations

import argparse
import ctypes
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import measure

OBJECTS, BYTES = 2000, 56_000
SHARDS, DELAY_MS = 4, 30
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
    """Objects of random bytes, and the photographs, each as an object and in shards."""
    import numpy as np

    done = ROOT / "prepared"
    if done.exists():
        return
    (ROOT / "objects").mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    for i in range(OBJECTS):
        (ROOT / "objects" / str(i)).write_bytes(rng.bytes(BYTES))
    photos = sorted((Path(data) / "photos500").rglob("*.jp*g")) or sorted(Path(data).rglob("*.jp*g"))
    (ROOT / "photographs").mkdir(exist_ok=True)
    for i in range(OBJECTS):
        shutil.copyfile(photos[i % len(photos)], ROOT / "photographs" / f"{i}.jpg")
    for shard in range(SHARDS):
        with tarfile.open(ROOT / f"{shard}.tar", "w") as archive:
            for i in range(500):
                for ext, content in (("jpg", photos[(500 * shard + i) % len(photos)].read_bytes()), ("cls", b"7")):
                    member = tarfile.TarInfo(f"{i:06}.{ext}")
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))
    (ROOT / "mds").mkdir(exist_ok=True)
    about = []
    for shard in range(SHARDS):
        samples = [(ROOT / "objects" / str(i)).read_bytes() for i in range(shard * 500, shard * 500 + 500)]
        packed = [len(s).to_bytes(4, "little") + s for s in samples]
        columns = {"column_names": ["x"], "column_encodings": ["bytes"], "column_sizes": [None]}
        config = {"format": "mds", "version": 2, "compression": None, "hashes": [], "size_limit": 1 << 26, **columns}
        text = json.dumps(config).encode()
        begins = np.cumsum([4 * 502 + len(text), *map(len, packed)], dtype="u4")
        raw = np.uint32(500).tobytes() + begins.tobytes() + text + b"".join(packed)
        name = f"shard.{shard:05}.mds"
        (ROOT / "mds" / name).write_bytes(raw)
        config |= {"samples": 500, "zip_data": None, "raw_data": {"basename": name, "bytes": len(raw), "hashes": {}}}
        about.append(config)
    (ROOT / "mds" / "index.json").write_text(json.dumps({"version": 2, "shards": about}))
    done.touch()


# What is measured ---------------------------------------------------------------------------------------------------


def load(o: argparse.Namespace) -> Iterator[int]:
    """The rate at which nginx can send, measured by a program in C."""
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
    """The same as `objects`, after the first epoch."""

    def contender(o: argparse.Namespace) -> Iterator[int]:
        batches = objects(at, **arguments)(o)
        for _ in range(2 * OBJECTS // 256):
            next(batches)
        yield from batches

    return contender


def shards(at: str):
    def read(readers):
        paths = [f"{at}/{i}.tar" for i in range(SHARDS)]
        return readers.webdataset(paths=paths, ext=["jpg", "cls"], random_shuffle=True)

    return read


def photographs(at: str):
    return lambda readers: readers.file(files=[f"{at}/photographs/{i}.jpg" for i in range(OBJECTS)])


def val(read, epochs_before: int = 0, **arguments):
    """Decodes, resizes, crops and normalises the photographs that `read` gives; measured after some epochs."""

    def contender(o: argparse.Namespace) -> Iterator[int]:
        from penstock import fn, pipeline_def, types

        @pipeline_def(batch_size=o.batch, num_threads=o.threads, seed=1, **arguments)
        def pipe():
            jpegs, labels = read(fn.readers)
            images = fn.decoders.image(jpegs)
            images = fn.resize(images, resize_shorter=256)
            mirrored = fn.crop_mirror_normalize(
                images, crop=(224, 224), dtype=types.FLOAT, output_layout="CHW", mean=[124, 116, 104], std=[58, 57, 57]
            )
            return mirrored, labels

        built = pipe()
        for _ in range(-(-epochs_before * OBJECTS // o.batch)):
            built.run()
        while True:
            yield len(built.run()[0])

    return contender


def one_batch(o: argparse.Namespace) -> Iterator[int]:
    """One batch at a time without prefetching: the rate is 256 over the time of a batch."""
    return objects(SLOW, exec_pipelined=False, exec_async=False, prefetch_queue_depth=1)(o)


IN_A_BUCKET = {"storage_options": {"endpoint": SLOW, "aws_skip_signature": "true", "aws_region": "us-east-1"}}


def of_reader(make, **arguments):
    """Samples of a reader, not decoded."""

    def contender(o: argparse.Namespace) -> Iterator[int]:
        from penstock import fn, pipeline_def

        @pipeline_def(batch_size=o.batch, num_threads=o.threads, seed=1, **arguments)
        def pipe():
            return make(fn.readers)

        built = pipe()
        while True:
            yield len(built.run()[0])

    return contender


def ends_with_its_parent(_: int) -> None:
    """Ends a worker with its parent, as its open pipes would block the measurement."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def loader(data, o: argparse.Namespace):
    from torch.utils.data import DataLoader

    return DataLoader(data, o.batch, num_workers=o.threads, collate_fn=list, worker_init_fn=ends_with_its_parent)


def by_webdataset(o: argparse.Namespace) -> Iterator[int]:
    """The webdataset library, which reads by curl, with a process per thread."""
    import webdataset

    urls = [f"pipe:curl -s {SLOW}/{i}.tar" for i in range(SHARDS)]
    data = webdataset.WebDataset(urls, shardshuffle=False)
    while True:
        for batch in loader(data, o):
            yield len(batch)


def by_s3fs(o: argparse.Namespace) -> Iterator[int]:
    """Objects of a bucket, read by s3fs in the processes of a DataLoader."""

    class Objects:
        files = None

        def __len__(self) -> int:
            return OBJECTS

        def __getitem__(self, i: int) -> bytes:
            import s3fs

            if self.files is None:
                self.files = s3fs.S3FileSystem(key="k", secret="s", client_kwargs={"endpoint_url": SLOW})
            return self.files.cat_file(f"objects/{i}")

    while True:
        for batch in loader(Objects(), o):
            yield len(batch)


def by_streaming(o: argparse.Namespace) -> Iterator[int]:
    """MosaicML streaming; shards are downloaded again in each epoch, as in the first one."""
    from streaming import StreamingDataset

    os.environ |= {"S3_ENDPOINT_URL": SLOW, "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}
    while True:
        with tempfile.TemporaryDirectory() as local:
            data = StreamingDataset(remote="s3://mds", local=local, batch_size=o.batch, shuffle=False)
            for batch in loader(data, o):
                yield len(batch)


CONTENDERS = {
    "loopback: nginx, by a load generator in C": load,
    "loopback: obstore alone, 4 threads": obstore_alone(4),
    "loopback: obstore alone, 16 threads": obstore_alone(16),
    "loopback: penstock": objects(FAST),
    "val from shards: disk": val(shards(str(ROOT))),
    "val from shards: 30 ms a request": val(shards(SLOW)),
    "objects, 30 ms a request: one batch at a time": one_batch,
    "objects: from files": epochs(str(ROOT)),
    "objects: from the cache": epochs(FAST, cache=str(ROOT / "cache")),
    "val of objects: from files": val(photographs(str(ROOT)), epochs_before=1),
    "val of objects: from the cache": val(photographs(FAST), epochs_before=1, cache=str(ROOT / "cache")),
    "tar shards, 30 ms a request: penstock": of_reader(
        lambda readers: readers.webdataset(paths=[f"{SLOW}/{i}.tar" for i in range(SHARDS)], ext=["jpg", "cls"])[0]
    ),
    "tar shards, 30 ms a request: webdataset": by_webdataset,
    "objects of a bucket, 30 ms a request: penstock": of_reader(
        lambda readers: readers.file(files=[f"s3://objects/{i}" for i in range(OBJECTS)])[0], **IN_A_BUCKET
    ),
    "objects of a bucket, 30 ms a request: s3fs and DataLoader": by_s3fs,
    "MDS shards, 30 ms a request: penstock": of_reader(
        lambda readers: readers.mds(path="s3://mds", columns=["x"]), **IN_A_BUCKET
    ),
    "MDS shards, 30 ms a request: MosaicML streaming": by_streaming,
}
RIVALS = ("webdataset", "s3fs and DataLoader", "MosaicML streaming")


def server_s() -> float:
    """Processor time of the servers so far."""
    ticks = 0
    for pid in (ROOT / "servers").read_text().split():
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()  # nginx's workers
        for process in (pid, *children):
            ticks += sum(map(int, Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def work(contender: measure.Contender, o: argparse.Namespace) -> None:
    before = 0.0

    def is_warm() -> None:
        nonlocal before
        before = server_s()

    measure.work(contender, o, lambda: {"server_s": server_s() - before}, is_warm)


def table(results: dict[str, dict[str, Any]]) -> list[str]:
    """The claims about the results, and whether they hold."""
    rate = {n: r["images_per_s"] for n, r in results.items()}
    alone = max((f"loopback: obstore alone, {n} threads" for n in (4, 16)), key=lambda n: rate.get(n, 0))
    disk, far = "val from shards: disk", "val from shards: 30 ms a request"
    one, slow = "objects, 30 ms a request: one batch at a time", ", 30 ms a request: "
    ours, val_of, read = "loopback: penstock", "val of objects: from ", "objects: from "
    claims = {
        "over loopback, against obstore alone": (ours, alone, 1.3),
        "over loopback, of what nginx can send": (ours, "loopback: nginx, by a load generator in C", 0.75),
        "val from shards with 30 ms a request, against the disk": (far, disk, 0.9),
        "second epoch of val from the cache, against files": (val_of + "the cache", val_of + "files", 0.95),
        "second epoch of reading alone from the cache, against files": (read + "the cache", read + "files", 0.95),
    }
    for data, rival in (
        *(("tar shards", "webdataset"), ("objects of a bucket", "s3fs and DataLoader")),
        ("MDS shards", "MosaicML streaming"),
    ):
        claims[f"{data}, against {rival}"] = (f"{data}{slow}penstock", f"{data}{slow}{rival}", 3)
    held = [
        (what, measure.ratio(results[a], results[b]), least)
        for what, (a, b, least) in claims.items()
        if a in rate and b in rate
    ]
    lines = []
    for n in CONTENDERS:
        if n in rate:
            spent = (results[n].get(of, 0) / results[n]["seconds"] / rate[n] * 1e6 for of in ("cpu_s", "server_s"))
            lines.append(f"| {n} | {rate[n]:,.0f} | {' | '.join(f'{us:.0f}' if us else '' for us in spent)} |")
    batch = []
    if one in rate:
        batch_ms = 256e3 / rate[one]
        held.append(("a batch of 256 objects: 3 x 30 ms over its time", 3 * DELAY_MS / batch_ms, 1.0))
        batch = ["", f"A batch of 256 objects with 30 ms a request takes {batch_ms:.0f} ms."]
    if far in rate and disk in rate:
        processors = os.cpu_count() or 1
        share = results[far].get("server_s", 0) / results[far]["seconds"] / processors
        batch += [
            "",
            f"While val reads with 30 ms a request, the server takes {share:.0%} of the {processors} processors; of "
            f"what it leaves, val reaches {measure.ratio(results[far], results[disk]) / (1 - share):.2f} of that from "
            "the disk.",
        ]
    return [
        *(
            "| | objects/s | processor time per object, us | of the server, us |",
            "|---|---|---|---|",
            *lines,
            "",
        ),
        *("| claim | measured | wanted | holds |", "|---|---|---|---|"),
        *(f"| {what} | {got:.2f} | {wanted} | {'yes' if got >= wanted else '**no**'} |" for what, got, wanted in held),
        *batch,
    ]


def nginx() -> str:
    return os.environ.get("PENSTOCK_NGINX") or shutil.which("nginx") or "/usr/sbin/nginx"


def main() -> None:
    parser = measure.arguments(__doc__ or "")
    o = parser.parse_args()
    if o.worker:
        return work(CONTENDERS[o.worker], o)
    prepare(o.data)
    (ROOT / "nginx.conf").write_text(NGINX.format(root=ROOT, port=NGINX_PORT))
    for program in ("http_load", "slow_server"):
        source = Path(__file__).parent / "native" / f"{program}.c"
        subprocess.run(["cc", "-O2", "-pthread", source, "-o", ROOT / program], check=True)
    rivals = os.environ.get("PENSTOCK_RIVALS", sys.executable)
    servers = [
        subprocess.Popen([nginx(), "-c", ROOT / "nginx.conf"]),
        subprocess.Popen([ROOT / "slow_server", ROOT, str(SLOW_PORT), str(DELAY_MS)]),
    ]
    (ROOT / "servers").write_text(" ".join(str(server.pid) for server in servers))
    try:
        time.sleep(1)
        pythons = {n: rivals for n in CONTENDERS if n.endswith(RIVALS)}
        names = [n for n in CONTENDERS if re.search(o.only, n)]
        results = measure.kept(ROOT / "results.json", measure.measure(__file__, names, o, pythons))
    finally:
        for server in servers:
            server.terminate()
            server.wait(10)
    lines = ["# Data by URL", "", __doc__ or "", "", measure.machine(), measure.versions("obstore"), ""]
    lines += table(results)
    measure.write(o.out, "remote.md", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
