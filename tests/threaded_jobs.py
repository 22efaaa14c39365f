# SPDX-License-Identifier: Apache-2.0
"""Typical uses of the library, each as a function that returns bytes which depend only on its number.

`python threaded_jobs.py N` runs all of them in N threads at once, as the process's first use of the library, and prints
a digest of each thread's results."""

import hashlib
import json
import sys
import threading
from pathlib import Path

import numpy as np

from penstock import fn, math, metrics, pipeline_def, types
from penstock.experimental import dynamic as ndd

PHOTOS = str(Path(__file__).parents[1] / "examples" / "data")


def _bytes(outputs):
    """The bytes and shapes of all samples of all outputs."""
    parts = []
    for batch in outputs:
        for i in range(len(batch)):
            array = np.asarray(batch.at(i))
            parts += str((array.shape, array.dtype.str)).encode(), array.tobytes()
    return b"".join(parts)


@pipeline_def(batch_size=4, num_threads=2)
def _training(size):
    jpegs, labels = fn.readers.file(file_root=PHOTOS, shuffle="global", name="reader")
    images = fn.decoders.image(jpegs)
    images = fn.random_resized_crop(images, size=size)
    images = fn.crop_mirror_normalize(images, mirror=fn.random.coin_flip(), mean=[120.0], std=[60.0])
    return images, labels, math.floor(fn.random.uniform(range=[0, 9]) * 2)


def training(number):
    pipe = _training(24 + number % 3, seed=number)
    result = b"".join(_bytes(pipe.run()) for _ in range(6))
    plans = pipe.stats()["plans"]
    assert plans  # while other pipelines run
    return result


def conditional(number):
    @pipeline_def(batch_size=3, num_threads=1, enable_conditionals=True, seed=number)
    def pipe():
        x = fn.random.uniform(range=[0, 255], shape=[5, 4, 3])
        if fn.random.coin_flip():
            x = fn.flip(x, vertical=1)
        else:
            x = fn.flip(x * 0.5)
        return x

    p = pipe()
    return b"".join(_bytes(p.run()) for _ in range(5))


def from_source(number):
    def sample(info):
        return np.full((info.idx_in_epoch % 5 + 1, 3), info.iteration + number, "i4")

    pieces = [np.arange(6, dtype="f4").reshape(2, 3) + i + number for i in range(7)]

    @pipeline_def(batch_size=2, num_threads=2, seed=1)
    def pipe():
        a = fn.external_source(sample, batch=False)
        b = fn.external_source(source=lambda i: [pieces[i % 7], pieces[(i + 1) % 7]])
        return a * 2, fn.python_function(b, function=lambda x: x + 1)

    p = pipe()
    return b"".join(_bytes(p.run()) for _ in range(5))


def fed_by_another_thread(number):
    """`run` waits for data that another thread feeds meanwhile."""

    @pipeline_def(batch_size=2, num_threads=1, prefetch_queue_depth=2)
    def pipe():
        return fn.external_source(name="x", blocking=True) + 1

    p, n = pipe(), 40
    p.build()

    def feed():
        for i in range(n):
            p.feed_input("x", np.full((2, 3), i + number, "i4"))

    feeder = threading.Thread(target=feed)
    feeder.start()
    result = b"".join(_bytes(p.run()) for _ in range(n))
    feeder.join()
    return result


def imperative(number):
    rng = ndd.random.RNG(number)
    x = ndd.random.uniform(range=[0, 255], shape=[6, 5, 3], batch_size=3, rng=rng)
    parts = []
    for i in range(12):
        y = ndd.flip(x * 2 + i, horizontal=i % 2)
        z = ndd.cast(y, dtype=ndd.int32)
        parts += [np.asarray(t).tobytes() for t in z.tensors] if i % 3 else []
        x = ndd.cast(z, dtype=ndd.float32) / (number + 2)
    return b"".join([*parts, *(np.asarray(t).tobytes() for t in x.tensors)])


def resumed(number):
    first = _training(16, seed=number, enable_checkpointing=True)
    before = b"".join(_bytes(first.run()) for _ in range(3))
    saved = first.checkpoint()
    second = _training(16, seed=number, enable_checkpointing=True, checkpoint=saved)
    behind = [_bytes(first.run()) for _ in range(3)]
    assert behind == [_bytes(second.run()) for _ in range(3)], "resumed with other samples"
    return before + b"".join(behind)


def loose(number):
    """Nodes without a pipeline, which are numbered jointly for all threads."""
    constants = [types.Constant(np.int32([i, number])) for i in range(20)]

    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        return tuple(c + i for i, c in enumerate(constants))

    p = pipe()
    return _bytes(p.run())


def watched(number):
    """Metrics of all pipelines, while other pipelines start and end."""
    for _ in range(5):
        p = _training(8, seed=number)
        p.build()
        assert metrics.text().count("penstock_samples_total") >= 1
        del p
    return b""


JOBS = (training, conditional, from_source, fed_by_another_thread, imperative, resumed, loose, watched)


def digest(job, number):
    return hashlib.sha256(job(number)).hexdigest()


def alone(n):
    """The expected result of `in_threads`."""
    return [{job.__name__: digest(job, number) for job in JOBS} for number in range(n)]


def in_threads(n, seconds=100):
    """Digests by job for each of n threads, which start simultaneously, each with a different job. Raises the exception
    of any of them."""
    results, errors, start = [{} for _ in range(n)], [], threading.Barrier(n)

    def work(number):
        try:
            start.wait()
            for i in range(len(JOBS)):
                job = JOBS[(i + number) % len(JOBS)]
                results[number][job.__name__] = digest(job, number)
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(seconds)
        assert errors or not t.is_alive(), f"a thread does not end; the others have got {results}"
        if errors:
            raise errors[0]
    return [{job.__name__: r[job.__name__] for job in JOBS} for r in results]


if __name__ == "__main__":
    print(json.dumps(in_threads(int(sys.argv[1]))))
