# SPDX-License-Identifier: Apache-2.0
"""The cache on the local disk: data read by URL is not requested again, whatever happens to the cache's files."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from test_by_url import shards

from object_server import serving
from optional_packages import needs
from penstock import fn, pipeline_def
from penstock.core import storage

pytestmark = needs("obstore")
BLOCK = 1 << 20  # bytes of a cache block


@pytest.fixture
def server():
    rng = np.random.default_rng(0)
    sizes = [1, 100, 16384, 16385, 60000, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 17, 50000, 0]
    with serving({f"d/{i}": rng.bytes(n) for i, n in enumerate(sizes)}) as s:
        s.objects["d/10"] = b"e"
        yield s


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))


def build(server, cache, paths=None, **arguments):
    paths = list(server.objects) if paths is None else paths

    @pipeline_def(batch_size=len(paths), num_threads=2, cache=cache, **arguments)
    def pipe():
        return fn.readers.file(files=[f"{server.url}/{p}" for p in paths])[0]

    return pipe()


def epoch(pipe):
    return [bytes(x) for x in (lambda b: [b.at(i) for i in range(len(b))])(pipe.run()[0])]


def anew():
    """Simulates another process, which knows no objects."""
    storage._connections.clear()


def kept(cache):
    return sorted(p for p in Path(cache).rglob("*") if p.is_file() and p.name != "lock")


def test_a_second_epoch_asks_for_nothing(server, tmp_path):
    pipe, want = build(server, tmp_path / "cache"), list(server.objects.values())
    for _ in range(5):  # more than are read ahead, before the first one is kept
        assert epoch(pipe) == want
    asked = server.asked.total()
    for _ in range(5):
        assert epoch(pipe) == want
    assert server.asked.total() == asked
    # All epochs but the first, and one more that may have been prefetched before the first one was cached.
    assert pipe.stats()["remote"]["cached_bytes"] >= 4 * sum(map(len, want))


def test_another_run_asks_whether_they_are_the_same(server, tmp_path):
    assert epoch(build(server, tmp_path / "cache")) == list(server.objects.values())
    server.seen.clear()
    sent = build(server, tmp_path / "cache")
    assert epoch(sent) == list(server.objects.values())
    assert sent.stats()["remote"]["bytes"] == 0
    assert all("If-None-Match" in h or "if-none-match" in h for h in server.seen)
    server.objects["d/4"] = b"changed"
    assert epoch(build(server, tmp_path / "cache")) == list(server.objects.values())


def swapped(b):
    """Swaps two words of one column of the checksum, 640 bytes apart."""
    at = len(b) // 2
    return b[:at] + b[at + 640 : at + 648] + b[at + 8 : at + 640] + b[at : at + 8] + b[at + 648 :]


def flipped(b):
    """Flips the highest bits of two such words."""
    b = bytearray(b)
    for at in (len(b) // 2, len(b) // 2 + 640):
        if at < len(b):
            b[at] ^= 128
    return bytes(b)


def zeroed(b):
    """Zeroes a page, as if it was never written."""
    return b[:-100] + b"\0" * 100 if len(b) < 9000 else b[:4096] + b"\0" * 4096 + b[8192:]


@pytest.mark.parametrize(
    "damage",
    [
        *(lambda b: b[:-1], lambda b: b"", lambda b: b[:300] + b"!" + b[301:], lambda b: b[:-9] + b"!" + b[-8:]),
        *(swapped, flipped, zeroed),
    ],
)
def test_damaged_files_are_read_anew(server, tmp_path, damage):
    epoch(build(server, tmp_path / "cache"))
    for path in kept(tmp_path / "cache"):
        path.write_bytes(damage(path.read_bytes()))
    for _ in range(2):
        assert epoch(build(server, tmp_path / "cache")) == list(server.objects.values())
    for path in kept(tmp_path / "cache"):  # they are open now
        path.write_bytes(damage(path.read_bytes()))
    for _ in range(2):
        assert epoch(build(server, tmp_path / "cache")) == list(server.objects.values())


def test_spans_of_shards(server, tmp_path, monkeypatch):
    """Archives are read in blocks, each once, although it has many samples."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    shards(tmp_path / "data")
    server.put_folder(tmp_path / "data", "wds")

    def read(at, **arguments):
        @pipeline_def(batch_size=20, num_threads=2, seed=1, **arguments)
        def pipe():
            paths = [f"{at}/{i}.tar" for i in range(3)]
            return tuple(fn.readers.webdataset(paths=paths, ext=["jpg", "cls"], random_shuffle=True))

        built = pipe()
        return built, [bytes(x.at(i)) for _ in range(6) for x in built.run() for i in range(len(x))]

    _, want = read(tmp_path / "data")
    pipe, got = read(f"{server.url}/wds", cache=tmp_path / "cache")
    assert got == want
    size = sum(len(b) for p, b in server.objects.items() if p.startswith("wds"))
    assert pipe.stats()["remote"]["bytes"] <= size


def test_room(server, tmp_path):
    """The least recently read data is deleted first."""
    rng = np.random.default_rng(1)
    for i in range(40):
        server.objects[f"r/{i:02}"] = rng.bytes(100000)
    paths = [f"r/{i:02}" for i in range(40)]
    pipe = build(server, tmp_path / "cache", paths, cache_bytes=1_500_000)
    assert epoch(pipe) == [server.objects[p] for p in paths]
    del pipe
    assert 500_000 < sum(p.stat().st_size for p in kept(tmp_path / "cache")) < 1_800_000
    old = kept(tmp_path / "cache")
    for path in old:
        os.utime(path, (1, 1))
    epoch(build(server, tmp_path / "cache", ["d/8"], cache_bytes=1_500_000))
    epoch(build(server, tmp_path / "cache", ["d/7"], cache_bytes=1_500_000))
    left = kept(tmp_path / "cache")
    assert sum(p.stat().st_size for p in left) < 6_000_000 and len(set(left) & set(old)) < len(old) / 2


def test_a_folder_that_can_not_be_written_to(server, tmp_path, capfd):
    (tmp_path / "file").write_text("not a folder")
    pipe = build(server, tmp_path / "file" / "cache")
    for _ in range(3):
        assert epoch(pipe) == list(server.objects.values())
    assert capfd.readouterr().err.count("nothing more is kept there") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk")
def test_a_full_disk(server, tmp_path, capfd):
    (tmp_path / "disk").mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", tmp_path / "disk"], capture_output=True
    ).returncode:
        pytest.skip("can't mount")
    try:
        pipe = build(server, tmp_path / "disk")
        for _ in range(3):
            assert epoch(pipe) == list(server.objects.values())
        assert capfd.readouterr().err.count("No space left on device): nothing more is kept there") == 1
        assert not [p for p in kept(tmp_path / "disk") if "unfinished" in p.name]
    finally:
        subprocess.run(["umount", "-l", tmp_path / "disk"], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a disk")
def test_a_disk_that_can_only_be_read(server, tmp_path, capfd):
    """Its cached data is used, and nothing is added, with one warning."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "none", disk], capture_output=True).returncode:
        pytest.skip("can't mount")
    try:
        first = ["d/4", "d/5"]
        assert epoch(build(server, disk, first)) == [server.objects[p] for p in first]
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        anew()
        pipe = build(server, disk)
        for _ in range(3):
            assert epoch(pipe) == list(server.objects.values())
        assert capfd.readouterr().err.count("nothing more is kept there") == 1
        assert pipe.stats()["remote"]["cached_bytes"] >= sum(len(server.objects[p]) for p in first)
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


PROGRAM = """
import hashlib, sys
from penstock import fn, pipeline_def
@pipeline_def(batch_size=10, num_threads=2, cache=sys.argv[2], seed=int(sys.argv[3]))
def pipe():
    return fn.readers.file(files=[sys.argv[1] + f"/k/{i}" for i in range(300)], random_shuffle=True)
built = pipe()
print("begun", flush=True)
found = {}
for _ in range(60):
    data, labels = built.run()
    for i in range(10):
        found[int(labels.at(i)[0])] = hashlib.md5(bytes(data.at(i))).hexdigest()
print(hashlib.md5(repr(sorted(found.items())).encode()).hexdigest())
"""

LITTLE_ROOM = PROGRAM.replace("cache=sys.argv[2]", "cache=sys.argv[2], cache_bytes=4_000_000")


def start(server, cache, seed, program=PROGRAM):
    command = [sys.executable, "-c", program, server.url, str(cache), str(seed)]
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=paths)


@pytest.fixture
def many(server):
    rng = np.random.default_rng(2)
    for i in range(300):
        server.objects[f"k/{i}"] = rng.bytes(40000)
    return server


def digest(server):
    import hashlib

    found = {i: hashlib.md5(server.objects[f"k/{i}"]).hexdigest() for i in range(300)}
    return hashlib.md5(repr(sorted(found.items())).encode()).hexdigest()


@pytest.mark.parametrize("program", [PROGRAM, LITTLE_ROOM], ids=["filled", "filled and emptied"])
def test_killed_while_it_is_filled(many, tmp_path, program):
    for after in (0.02, 0.1, 0.3):
        killed = start(many, tmp_path / "cache", 1, program)
        assert killed.stdout.readline() == "begun\n"
        time.sleep(after)
        killed.send_signal(signal.SIGKILL)
        killed.communicate(timeout=20)
    last = start(many, tmp_path / "cache", 1, program)
    assert last.communicate(timeout=60)[0].split() == ["begun", digest(many)]
    if program == LITTLE_ROOM:
        assert sum(p.stat().st_size for p in kept(tmp_path / "cache")) < 5_000_000


def test_several_processes_fill_it(many, tmp_path):
    programs = [start(many, tmp_path / "cache", seed) for seed in range(3)]
    for program in programs:
        assert program.communicate(timeout=60)[0].split() == ["begun", digest(many)]
    assert len(kept(tmp_path / "cache")) == 300


FEW_FILES = (
    """
import os, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (800, 800))
"""
    + PROGRAM
    + """
import contextlib
opened = []
for n in os.listdir("/proc/self/fd"):
    with contextlib.suppress(FileNotFoundError):  # a thread that reads ahead has closed it meanwhile
        opened.append(os.readlink(f"/proc/self/fd/{n}"))
in_cache = [p for p in opened if "/cache/" in p]
print(len(in_cache), sum("(deleted)" in p for p in in_cache))
"""
)


def test_some_stay_open(many, tmp_path):
    """Up to a quarter of the files that a process may open."""
    for _ in range(2):
        begun, found, n_open, n_deleted = (
            start(many, tmp_path / "cache", 1, FEW_FILES).communicate(timeout=60)[0].split()
        )
    assert found == digest(many) and 0 < int(n_open) <= 200 and n_deleted == "0"


def test_what_is_deleted_does_not_stay_open(many, tmp_path):
    """In a small cache, which deletes files constantly."""
    program = FEW_FILES.replace(PROGRAM, LITTLE_ROOM)
    begun, found, n_open, n_deleted = start(many, tmp_path / "cache", 1, program).communicate(timeout=60)[0].split()
    assert found == digest(many) and int(n_deleted) <= 10


@pytest.fixture
def busy_processors():
    """Two processes that compute on each processor."""
    program = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(program) for _ in range(2 * len(os.sched_getaffinity(0)))]
    yield
    for process in processes:
        process.kill()
        process.wait()


def test_reading_from_it_wakes_few_threads(many, tmp_path, busy_processors):
    """What is in the cache waits for no network, however long it takes while other processes compute. So there is no
    need for as many threads as requests would be in flight, which would only wake each other."""
    pipe = build(many, tmp_path / "cache", [f"k/{i}" for i in range(300)])
    for _ in range(10):  # the first ones come by network
        pipe.run()
    asked, before = many.asked.total(), resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
    for _ in range(20):
        pipe.run()
    assert many.asked.total() == asked
    assert resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before < 0.4 * 20 * 300


def test_arguments():
    with pytest.raises(ValueError, match="cache_bytes takes a positive integer, and a folder in 'cache'"):
        pipeline_def(batch_size=1, cache_bytes=5)(lambda: 1)()
