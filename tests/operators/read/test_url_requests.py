# SPDX-License-Identifier: Apache-2.0
"""Requests by URL: how many at once, time limits, second requests for late responses, and checksums."""

import base64
import contextlib
import datetime
import hashlib
import socket
import time

import numpy as np
import pytest
from test_by_url import shards
from tfrecord_files import crc32c

from object_server import serving
from optional_packages import needs
from penstock import fn, pipeline_def
from penstock.core import storage

pytestmark = needs("obstore")
NEVER = {"read_timeout": "900s", "timeout": "900s"}


@pytest.fixture
def server():
    rng = np.random.default_rng(0)
    storage._connections.clear()
    with serving({f"d/{i}": rng.bytes(3000 + 7 * i) for i in range(200)}) as s:
        yield s


def build(urls, batch_size, **arguments):
    @pipeline_def(batch_size=batch_size, num_threads=2, **arguments)
    def pipe():
        return fn.readers.file(files=urls)[0]

    return pipe()


def contents(batch):
    return [bytes(batch.at(i)) for i in range(len(batch))]


def test_many_at_once_when_answers_are_late(server):
    """Also after fast responses, for which few requests are enough."""
    server.gated, server.wanted_at_once = (lambda path: int(path[2:]) >= 100), 90
    want = list(server.objects.values())
    options = {"hedge_after": None, "client_options": NEVER}
    pipe = build([f"{server.url}/{p}" for p in server.objects], 100, storage_options=options)
    for _ in range(2):
        assert contents(pipe.run()[0]) + contents(pipe.run()[0]) == want
    assert server.at_gate >= 90


def test_neighbours_come_together(server, tmp_path):
    """Samples of shards read in order: one request per batch or per megabyte of it."""
    shards(tmp_path / "data")
    server.put_folder(tmp_path / "data", "wds")
    server.asked.clear()

    @pipeline_def(batch_size=20, num_threads=2, exec_pipelined=False, exec_async=False, prefetch_queue_depth=1)
    def pipe():
        at = [f"{server.url}/wds/{i}" for i in range(3)]
        paths = {"paths": [f"{a}.tar" for a in at], "index_paths": [f"{a}.idx" for a in at]}
        return tuple(fn.readers.webdataset(ext=["jpg", "cls"], **paths))

    built = pipe()
    for _ in range(3):  # a batch is a shard
        built.run()
    sizes = [len(server.objects[f"wds/{i}.tar"]) for i in range(3)]
    asked = [server.asked[f"wds/{i}.tar"] for i in range(3)]
    assert all(1 <= n <= size // (1 << 20) + 2 for n, size in zip(asked, sizes, strict=True)), (asked, sizes)


def s3(server):
    return {"endpoint": server.url, "aws_skip_signature": "true", "aws_region": "us-east-1"}


@pytest.mark.parametrize("kind, fault", [("http", "late"), ("http", "stall"), ("s3", "late")])
def test_a_late_answer_is_asked_for_again(server, kind, fault):
    paths = list(server.objects)[:8]
    late = set(paths[2:4])
    server.fault = lambda path, number: fault if path in late and number == 1 else None
    options = {"hedge_after": 0.05, "client_options": NEVER} | (s3(server) if kind == "s3" else {})
    at = "s3:/" if kind == "s3" else server.url
    pipe = build([f"{at}/{p}" for p in paths], 8, storage_options=options)
    for _ in range(3):  # the first request for an object may be that of a batch that is read ahead
        assert contents(pipe.run()[0]) == [server.objects[p] for p in paths]
    counted = pipe.stats()["remote"]
    assert counted["hedged"] >= 2 and counted["retries"] == counted["failed"] == 0
    assert all(server.asked[p] >= 2 for p in late)


def test_the_first_answer_counts_if_the_second_fails(server):
    """If the server refuses the second request, the reader waits for the first."""
    server.fault = lambda path, number: "503" if (path, number) == ("d/0", 2) else None
    server.gated, server.wanted_at_once = (lambda path: path == "d/0"), 2  # the first is answered with the second one
    urls = [f"{server.url}/{p}" for p in server.objects]
    pipe = build(urls, 1, storage_options={"hedge_after": 0.05, "client_options": NEVER})
    assert contents(pipe.run()[0]) == [server.objects["d/0"]]
    assert server.asked["d/0"] == 2 and pipe.stats()["remote"]["retries"] == 0


@pytest.mark.parametrize("kind", ["http", "s3"])
def test_limits_on_time(server, kind):
    server.fault = lambda path, number: "late"
    options = {
        "client_options": {"read_timeout": datetime.timedelta(seconds=0.3), "timeout": "0.3s"},
        "retry_config": {"retry_timeout": 0.5},
        "hedge_after": None,
    } | (s3(server) if kind == "s3" else {})
    pipe = build(["s3://d/1" if kind == "s3" else f"{server.url}/d/1"], 1, storage_options=options)
    with pytest.raises(RuntimeError, match="the server does not answer in time"):
        pipe.run()
    assert pipe.stats()["remote"]["hedged"] == 0


@pytest.mark.parametrize("kind", ["http", "s3"])
def test_a_limit_on_the_whole_request(server, kind):
    """A server that keeps sending slowly and needs minutes for its response."""
    server.fault = lambda path, number: "trickle"
    options = {
        "client_options": {"read_timeout": "900s", "timeout": "0.5s"},
        "retry_config": {"retry_timeout": 0.7},
        "hedge_after": None,
    } | (s3(server) if kind == "s3" else {})
    begin = time.monotonic()
    pipe = build(["s3://d/1" if kind == "s3" else f"{server.url}/d/1"], 1, storage_options=options)
    with pytest.raises(RuntimeError, match="the server does not answer in time|the answer was cut off"):
        pipe.run()
    assert time.monotonic() - begin < 60, "an object of 3,007 bytes would take 150 s"


@pytest.mark.parametrize("kind", ["http", "s3"])
def test_a_connection_that_nobody_takes(kind):
    """The system does not answer connections that do not fit into the listener's queue."""
    with socket.socket() as listens, contextlib.ExitStack() as others:
        listens.bind(("127.0.0.1", 0))
        listens.listen(0)
        for _ in range(3):
            s = others.enter_context(socket.socket())
            s.setblocking(False)
            s.connect_ex(listens.getsockname())
        url = "http://127.0.0.1:{1}".format(*listens.getsockname())
        options = {"client_options": {"connect_timeout": 0.3}, "retry_config": {"retry_timeout": 0.5}}
        if kind == "s3":
            options |= {"endpoint": url, "aws_skip_signature": "true", "aws_region": "us-east-1"}
        begin = time.monotonic()
        with pytest.raises(RuntimeError, match="the server (can't be reached: timed out|does not answer in time)"):
            build(["s3://d/1" if kind == "s3" else f"{url}/d/1"], 1, storage_options=options).run()
        assert time.monotonic() - begin < 60, "it would wait for 10 s, 18 times"


@pytest.mark.parametrize(
    "options, error, text",
    [
        ({"hedge_after": "soon"}, TypeError, r"hedge_after takes seconds, a timedelta or a text as '5s'.*got 'soon'"),
        ({"hedge_after": -1}, ValueError, "hedge_after takes a time above 0; got -1"),
        ({"client_options": {"read_timeout": True}}, TypeError, "client_options: read_timeout takes seconds"),
        ({"client_options": {"timeout": "1.2.3s"}}, TypeError, "client_options: timeout takes seconds"),
        ({"retry_config": {"max_retries": 1.5}}, ValueError, "max_retries takes an integer of at least 0; got 1.5"),
        ({"retry_config": {"backoff": 2}}, ValueError, "retry_config takes max_retries, retry_timeout; got 'backoff'"),
        ({"requests_at_once": 2000}, ValueError, "requests_at_once takes at most 1024; got 2000"),
        ({"requests_at_once": True}, ValueError, "requests_at_once takes an integer of at least 1; got True"),
        ({"read_ahead": "1 GB"}, ValueError, "read_ahead takes an integer of at least 1; got '1 GB'"),
    ],
)
def test_wrong_limits(options, error, text):
    with pytest.raises(error, match=text):
        build(["http://127.0.0.1:9/x"], 1, storage_options=options)


def crc(body):
    return base64.b64encode(crc32c(body).to_bytes(4, "big")).decode()


def md5(body):
    return base64.b64encode(hashlib.md5(body).digest()).decode()


SUMS = {
    "Content-MD5": lambda body: {"Content-MD5": md5(body)},
    "x-goog-hash crc32c": lambda body: {"X-Goog-Hash": f"crc32c={crc(body)}"},
    "x-goog-hash md5": lambda body: {"x-goog-hash": f"crc32c={crc(body)}, md5={md5(body)}"},
    "x-amz-checksum-crc32c": lambda body: {"x-amz-checksum-crc32c": crc(body)},
}


@pytest.mark.parametrize("name", SUMS)
def test_bodies_have_the_checksums_that_the_server_names(server, name):
    sizes = [0, 1, 55, 56, 63, 64, 65, 119, 120, 128, 5000]
    server.objects = {f"d/{n}": bytes(i % 251 for i in range(n)) or b"e" for n in sizes}
    server.sums = SUMS[name]
    bad = {"d/1", "d/64", "d/5000"}
    server.fault = lambda path, number: "flipped" if path in bad and number == 1 else None
    options = {"hedge_after": None, "client_options": NEVER}
    pipe = build([f"{server.url}/{p}" for p in server.objects], len(sizes), storage_options=options)
    for _ in range(3):  # as above
        assert contents(pipe.run()[0]) == list(server.objects.values())
    assert pipe.stats()["remote"]["retries"] == 3
    server.fault = lambda path, number: "flipped"
    options = {"retry_config": {"retry_timeout": 0.1}}
    with pytest.raises(RuntimeError, match="does not have the (MD5|CRC-32C) checksum that the server names"):
        build([f"{server.url}/d/5000"], 1, storage_options=options).run()


def test_checksums_that_are_not_of_the_body(server):
    """Checksums of the stored bytes if the response is decompressed, and of the parts of an object."""
    server.sums = lambda body: {"x-goog-hash": "crc32c=AAAAAA==", "x-goog-stored-content-encoding": "gzip"}
    assert contents(build([f"{server.url}/d/1"], 1).run()[0]) == [server.objects["d/1"]]
    server.sums = lambda body: {"x-amz-checksum-crc32c": "AAAAAA==-3"}
    assert contents(build([f"{server.url}/d/1"], 1).run()[0]) == [server.objects["d/1"]]
