# SPDX-License-Identifier: Apache-2.0
"""Pipelines for the tests of workers, and access to their processes."""

import os
import time
from pathlib import Path

import numpy as np
from PIL import Image

from penstock import Pipeline, fn, pipeline_def

N, SIZE = 37, 5


def write_pictures(folder, n=N):
    """`n` small PNG files of different sizes."""
    rng = np.random.default_rng(7)
    for i in range(n):
        shape = (*rng.integers(8, 40, 2), 3)
        Image.fromarray(rng.integers(0, 255, shape, dtype=np.uint8)).save(Path(folder) / f"{i:03}.png")
    return [str(p) for p in sorted(Path(folder).glob("*.png"))]


@pipeline_def(batch_size=SIZE, seed=11, num_threads=1, enable_checkpointing=True)
def pictures(files, slow=False, **reader):
    data, labels = fn.readers.file(files=files, labels=list(range(len(files))), name="files", **reader)
    whole = fn.decoders.image(data)
    small = fn.resize(whole, size=(16, 16))
    if slow:
        small = fn.gaussian_blur(fn.resize(small, size=(450, 450)), window_size=31)
    mirrored = fn.crop_mirror_normalize(small, mirror=fn.random.coin_flip(), mean=[100.0], std=[50.0])
    return whole, mirrored, labels


def values(batch):
    return [[np.array(s) for s in output] for output in batch]


def assert_same(a, b, what=""):
    assert [len(x) for x in a] == [len(x) for x in b], what
    for x, y in zip(a, b):
        for s, t in zip(x, y):
            assert s.dtype == t.dtype
            np.testing.assert_array_equal(s, t, err_msg=str(what))


def pool_of(pipe: Pipeline):
    pipe.build()
    return pipe._executor._production.producer.workers


def processes(pipe):
    """The pids of the current workers."""
    links = [m.link for m in pool_of(pipe).slots]
    return [link._process.pid for link in links if link is not None and link._process is not None]


def wait_until(condition, seconds=60.0):
    """The timeout is long, so that tests do not fail on a busy machine."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.01)


def all_ready(pipe):
    wait_until(lambda: all(m.state == "ready" for m in pool_of(pipe).slots))


def exists(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
