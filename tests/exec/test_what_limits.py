# SPDX-License-Identifier: Apache-2.0
"""The sentence of `Pipeline.stats` about the bottleneck of a pipeline."""

import os
import time

import numpy as np
import pytest

from penstock import fn, pipeline_def

SECOND = 10**9


def images():
    return [np.zeros((8, 8, 3), "u1")] * 4


def built(define, **kwargs):
    p = pipeline_def(define, batch_size=4, **{"num_threads": 2, **kwargs})()
    p.build()
    return p


def limit_of(p, **sums):
    """The sentence for one second with 10 batches and these sums."""
    s = p._runner.statistics
    s.reset()
    s.started, s.last, s.batches, s.samples = 0, SECOND, 10, 40
    for name, value in sums.items():
        setattr(s, name, value)
    return p.stats()["limit"]


def fed(**kwargs):
    return lambda: fn.flip(fn.external_source(source=images, layout="HWC", **kwargs))


def test_nothing_measured():
    p = built(fed())
    assert p.stats()["limit"] == "Nothing was measured yet."


def test_a_consumer_that_takes_longer():
    p = built(fed())
    text = limit_of(p, wait_ns=SECOND // 50, kernel_ns={1: 2 * SECOND})
    assert text == "The pipeline keeps up: the consumer waits 2% of the time."


@pytest.mark.parametrize("n, advice", [(1, "more threads (num_threads; there are 4 CPUs)"), (4, "it more than 4 CPUs")])
def test_native_threads(monkeypatch, n, advice):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    p = built(fed(), num_threads=n)
    text = limit_of(p, wait_ns=SECOND // 2, kernel_ns={1: n * SECOND * 8 // 10})
    assert text.startswith("The consumer waits 50% of the time; flip (1) takes 80% of the time of ")
    assert text.endswith(f"give {advice}, or move it to the GPU.")


def test_loading():
    p = built(fed(background=True))
    text = limit_of(p, wait_ns=SECOND, load_ns={0: SECOND * 9 // 10}, kernel_ns={1: SECOND // 5})
    assert "external_source (0) waits 90% of the time for data: use faster storage" in text


def test_python():
    p = built(lambda: fn.python_function(fn.external_source(source=images), function=lambda x: x))
    text = limit_of(p, wait_ns=SECOND, python_ns={1: SECOND * 19 // 10})
    assert "python_function (1) takes 100% of the time in Python: use other operators" in text
    assert "Python takes 70% of a core: make larger batches" in (
        limit_of(p, wait_ns=SECOND, _worked=[7 * SECOND // 10, 0, 0])
    )


def test_no_part_is_busy():
    text = limit_of(built(fed()), wait_ns=SECOND, kernel_ns={1: SECOND // 5})
    assert "no part is busy for long (flip (1) takes 10% of the time of 2 threads)" in text


@pytest.mark.parametrize(
    "kwargs, advice",
    [
        ({}, "in the thread that calls run(): give it background=True, or parallel=True"),
        ({"background": True}, "make it faster, or call it in processes (parallel=True)"),
    ],
)
def test_a_slow_source(kwargs, advice):
    def source():
        time.sleep(0.1)
        return images()

    p = built(lambda: fn.flip(fn.external_source(source=source, layout="HWC", **kwargs)))
    for k in range(12):
        p.run()
        if k == 1:
            p.reset_stats()
    stats = p.stats()
    assert "the source of external_source (0) takes" in stats["limit"] and advice in stats["limit"]
    assert str(stats).endswith(stats["limit"])
    assert stats["waited_share"] > 0.6
    assert 90 < stats["operators"]["external_source (0)"]["load_ms_per_batch"] < 1000


def test_data_that_is_fed_late_is_no_slow_source():
    p = built(lambda: fn.flip(fn.external_source(name="x", layout="HWC", blocking=True)))
    p.feed_input("x", images())
    p.run()
    assert "the source of" not in limit_of(p, wait_ns=SECOND, source_ns={0: SECOND})
