# SPDX-License-Identifier: Apache-2.0
"""GPU arrays of a simulated library, and pipelines that use them."""

import gc
import time

import numpy as np
from test_reuse import LONG

from penstock import fn, pipeline_def
from penstock.gpu import borrowed, dlpack
from penstock.gpu.driver import Device
from penstock.gpu.memory import pool
from penstock.gpu.stream import ForeignStream, Stream

N = 5
DENSE = np.arange(N * 3 * 40, dtype="f4").reshape(N, 3, 40)
RAGGED = [np.arange(k * 7, dtype="i4").reshape(k, 7) - k for k in range(1, N + 1)]


class Array:
    """An array of a library that works in its own stream, which its interface states."""

    def __init__(self, values, stream, offset=0):
        self.shape, self.dtype, self.stream = values.shape, values.dtype, stream
        self.nbytes = values.nbytes
        with stream.device:
            self.block = pool(stream.device).take(values.nbytes + offset, stream)
            self.address = self.block.address + offset
            self.fill(values)
            stream.synchronize()

    def fill(self, values):
        values = np.ascontiguousarray(values)
        with self.stream.device:
            self.stream.upload(self.address, values.ctypes.data, values.nbytes)

    def interface(self, **more):
        about = {"data": (self.address, False), "shape": self.shape, "typestr": self.dtype.str, "version": 3}
        return {**about, **more}

    @property
    def __cuda_array_interface__(self):
        return self.interface(stream=self.stream.handle)


class Silent(Array):
    @property
    def __cuda_array_interface__(self):
        return self.interface(version=2)


class WithDlpack(Array):
    """As JAX: makes the consumer's stream wait."""

    __cuda_array_interface__ = property()
    device_id = 0

    def __dlpack_device__(self):
        return (2, self.device_id)

    def __dlpack__(self, *, stream=None, **kwargs):
        with self.stream.device:
            ForeignStream(self.stream.device, stream).wait(self.stream.record())
        return self.capsule()

    def capsule(self):
        return dlpack.capsule(self.address, self.shape, self.dtype, self.device_id, self)


def made_by_a_pipeline(x):
    define = pipeline_def(lambda: fn.external_source(lambda: x, device="gpu"), batch_size=N, num_threads=1, device_id=0)
    return define().run()[0]


def by_batches(made, **kwargs):
    return pipe_of(lambda: made, **kwargs)


def by_samples(made, **kwargs):
    return pipe_of(lambda info: made[info.idx_in_batch], batch=False, **kwargs)


def fed(made, **kwargs):
    pipe = pipe_of(None, name="x", **kwargs)
    pipe.feed_input("x", made)
    return pipe


def pipe_of(source, device="gpu", then=lambda x: x, on_error="raise", batch_size=N, **kwargs):
    """A pipeline that computes one batch at a time, on request."""

    @pipeline_def(batch_size=batch_size, num_threads=1, device_id=0, prefetch_queue_depth=1, on_error=on_error)
    def define():
        return then(fn.external_source(source, device=device, **kwargs))

    pipe = define()
    pipe.build()
    return pipe


def values_of(out):
    return [np.array(a) for a in out.as_cpu()]


def check_values(out, want):
    got = values_of(out)
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert g.dtype == w.dtype
        np.testing.assert_array_equal(g, w)


def ends(alive):
    """Whether an object is released after the GPU has finished."""
    end = time.monotonic() + LONG
    while alive() is not None and time.monotonic() < end:
        borrowed.collect()
        gc.collect()
        time.sleep(0.001)
    return alive() is None


def stream_of(pipe):
    """The stream in which the source copies."""
    (source,) = (pipe._plan.source_op(n) for n in pipe._plan.sources)
    return next(iter(source.on_gpu.values()))._stream


def stream_of_somebody():
    """A foreign stream, which outlives all batches."""
    device = Device.get(0)
    with device:
        return Stream(device)


WAYS = {"by batches": by_batches, "by samples": by_samples, "fed": fed}
