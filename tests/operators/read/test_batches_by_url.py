# SPDX-License-Identifier: Apache-2.0
"""Batches read by URL are requested far ahead, whatever the queue depth, but not more batches are produced."""

import io
import tarfile
import time

import numpy as np
import pytest

from object_server import serving
from optional_packages import needs
from penstock import fn, pipeline_def
from penstock.operators.read._records import RecordReader

pytestmark = needs("obstore")

SIZE, DEPTH = 4, 2
AT_ONCE, READ_AHEAD = 8, 4  # requests, and the batches that have twice as many
MANY = READ_AHEAD + DEPTH
SAMPLES = SIZE * 2 * MANY


@pytest.fixture
def server():
    with serving({f"data/{i:04}.bin": b"%04d" % i for i in range(SAMPLES)}) as server:
        yield server


def pipeline(server, seen=None, **more):
    def look(x):
        seen.append(bytes(x))
        return x

    options = {"requests_at_once": AT_ONCE, **more.pop("storage_options", {})}
    settings = {"batch_size": SIZE, "num_threads": 2, "prefetch_queue_depth": DEPTH, "storage_options": options}

    @pipeline_def(**settings, **more)
    def pipe():
        names = [f"{server.url}/data/{i:04}.bin" for i in range(SAMPLES)]
        data, labels = fn.readers.file(files=names, name="reader")
        return data if seen is None else fn.python_function(data, function=look), labels

    return pipe()


def wait_until(happened):
    return any(happened() or time.sleep(0.01) for _ in range(6000))


def labels_of(batch):
    return np.array(batch[1].as_array()).ravel().tolist()


def test_they_are_asked_for_and_not_made(server):
    seen = []
    pipe = pipeline(server, seen)
    assert labels_of(pipe.run()) == list(range(SIZE))
    assert wait_until(lambda: len(server.asked) >= SIZE * (1 + MANY)), "as many are read as the pipeline may"
    assert wait_until(lambda: len(seen) >= SIZE * (1 + DEPTH))
    assert len(server.asked) == SIZE * (1 + MANY) and len(seen) == SIZE * (1 + DEPTH)
    for i in range(1, 5):
        assert labels_of(pipe.run()) == list(range(i * SIZE, (i + 1) * SIZE))
    pipe.close()


def test_those_that_are_read_are_dropped(server):
    pipe = pipeline(server)
    first = [labels_of(pipe.run()) for _ in range(3)]
    assert wait_until(lambda: len(server.asked) >= SIZE * (3 + MANY))
    pipe.reset()
    assert [labels_of(pipe.run()) for _ in range(3)] == first
    pipe.close()


@pytest.mark.parametrize("taken", [1, 7])
def test_checkpoints_are_behind_the_batch_that_was_given_out(server, taken):
    pipe = pipeline(server, enable_checkpointing=True)
    for _ in range(taken):
        pipe.run()
    checkpoint = pipe.checkpoint()
    following = [labels_of(pipe.run()) for _ in range(3)]
    pipe.close()
    resumed = pipeline(server, checkpoint=checkpoint)
    assert [labels_of(resumed.run()) for _ in range(3)] == following
    resumed.close()


def test_an_error_comes_with_its_batch(server):
    del server.objects[f"data/{SIZE * 5:04}.bin"]
    pipe = pipeline(server)
    for _ in range(5):
        pipe.run()
    with pytest.raises(RuntimeError, match=f"{SIZE * 5:04}.bin"):
        pipe.run()
    assert labels_of(pipe.run()) == list(range(SIZE * 6, SIZE * 7))
    pipe.close()


@pytest.mark.parametrize("ahead", [None, 1, 3])
def test_files_are_read_as_far_ahead_as_the_reader_says(tmp_path, monkeypatch, ahead):
    begun, begin = [], RecordReader.begin
    monkeypatch.setattr(RecordReader, "begin", lambda *a: begun.append(1) or begin(*a))
    files = [tmp_path / f"{i}" for i in range(20)]
    for i, file in enumerate(files):
        file.write_bytes(bytes([i]))
    seen = []

    @pipeline_def(batch_size=1, num_threads=1, prefetch_queue_depth=DEPTH)
    def pipe():
        given = {} if ahead is None else {"prefetch_queue_depth": ahead}
        data = fn.readers.file(files=[str(f) for f in files], **given)[0]
        return fn.python_function(data, function=lambda x: seen.append(bytes(x)) or x)

    p, most = pipe(), ahead or 1
    for i in range(3):
        assert np.array(p.run()[0][0]).tolist() == [i]
        wanted = [i + 1 + DEPTH + most, i + 1 + DEPTH]
        assert wait_until(lambda wanted=wanted: len(begun) >= wanted[0] and len(seen) >= wanted[1])
        assert [len(begun), len(seen)] == wanted
    assert f"{DEPTH} batches ahead, {most} more {'is' if most == 1 else 'are'} read" in str(p.explain())
    p.close()


def test_batches_of_files_that_nobody_asks_for_any_more_are_made(tmp_path):
    """`share_outputs` without another `schedule_run` makes the batches that were only read."""
    files = [tmp_path / f"{i}" for i in range(8)]
    for i, file in enumerate(files):
        file.write_bytes(bytes([i]))

    @pipeline_def(batch_size=1, num_threads=1, prefetch_queue_depth=1)
    def pipe():
        return fn.readers.file(files=[str(f) for f in files], prefetch_queue_depth=4)[0]

    p = pipe()
    p.build()
    for _ in range(5):
        p.schedule_run()
    for i in range(5):
        assert np.array(p.share_outputs()[0][0]).tolist() == [i]
        p.release_outputs()
    p.close()


def test_a_bad_batch_does_not_hold_up_those_that_were_only_read(tmp_path):
    """`share_outputs` raises for the first batch, and the others are made although nothing else is requested."""
    files = [tmp_path / f"{i}" for i in range(8)]
    for i, file in enumerate(files[1:], 1):
        file.write_bytes(bytes([i]))

    @pipeline_def(batch_size=1, num_threads=1, prefetch_queue_depth=1)
    def pipe():
        return fn.readers.file(files=[str(f) for f in files], prefetch_queue_depth=4)[0]

    p = pipe()
    p.build()
    for _ in range(5):
        p.schedule_run()
    with pytest.raises(RuntimeError, match="No such file"):
        p.share_outputs()
    for i in range(1, 5):
        assert np.array(p.share_outputs()[0][0]).tolist() == [i]
        p.release_outputs()
    p.close()


def test_a_reader_reads_at_least_one_batch_ahead():
    with pytest.raises(ValueError, match="prefetch_queue_depth takes at least 1; got 0"):
        fn.readers.file(files=["a"], prefetch_queue_depth=0)


def test_no_more_than_half_an_epoch(server):
    pipe = pipeline(server, storage_options={"requests_at_once": 128})
    pipe.build()
    assert f"{DEPTH} batches ahead, {MANY} more are read" in str(pipe.explain())


def test_it_is_explained(server):
    pipe = pipeline(server)
    pipe.build()
    assert f"{DEPTH} batches ahead, {READ_AHEAD} more are read" in str(pipe.explain())


@pytest.mark.parametrize("known", [False, True])
def test_bytes_that_are_read_ahead_are_limited(known):
    """For whole objects, whose sizes are known on arrival, and for samples in one object."""
    n, size, most = 400, 10_000, 100_000
    contents = [b"%06d" % i + bytes(size - 6) for i in range(n)]
    shard = io.BytesIO()
    with tarfile.open(fileobj=shard, mode="w") as archive:
        for i, content in enumerate(contents):
            member = tarfile.TarInfo(f"{i:06}.bin")
            member.size = size
            archive.addfile(member, io.BytesIO(content))
    with serving({"shard.tar": shard.getvalue()} | {f"{i}": c for i, c in enumerate(contents)}) as server:

        @pipeline_def(batch_size=1, num_threads=2, storage_options={"read_ahead": most, "requests_at_once": 32})
        def pipe():
            if known:
                return fn.readers.webdataset(paths=[f"{server.url}/shard.tar"], ext=["bin"])
            return fn.readers.file(files=[f"{server.url}/{i}" for i in range(n)])[0]

        p = pipe()
        assert [bytes(p.run()[0].at(0)[:6]) for _ in range(60)] == [b"%06d" % i for i in range(60)]
        assert size <= p.stats()["remote"]["most_bytes_ahead"] <= 2 * most
        p.close()
