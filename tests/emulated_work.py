# SPDX-License-Identifier: Apache-2.0
"""GPU work of a batch, counted by the emulated device."""

import ctypes
import os
from typing import NamedTuple


def work_of(stream: int) -> tuple[int, int]:
    """Number of kernels launched on a stream, and of the host's waits for it or its events.

    If a pipeline prepares one batch ahead, the stream of the first batch of `run(-1)` has no other work."""
    launches, waits = ctypes.c_int64(), ctypes.c_int64()
    library = ctypes.CDLL(os.environ["PENSTOCK_CUDA_DRIVER"])
    library.emulated_counts(ctypes.c_void_p(stream), ctypes.byref(launches), ctypes.byref(waits))
    return launches.value, waits.value


class Copied(NamedTuple):
    """Number of copies, and bytes."""

    copies: int
    nbytes: int


class Copies:
    """Copies inside a `with` block: to the GPU, from it, and on it by the driver."""

    to_gpu = from_gpu = on_gpu = Copied(0, 0)

    def __enter__(self):
        self._before = self._counts()
        return self

    def __exit__(self, *exc):
        pairs = [Copied(a - c, b - d) for (a, b), (c, d) in zip(self._counts(), self._before)]
        self.to_gpu, self.from_gpu, self.on_gpu = pairs

    @staticmethod
    def _counts():
        counts = (ctypes.c_int64 * 2 * 3)()
        ctypes.CDLL(os.environ["PENSTOCK_CUDA_DRIVER"]).emulated_copies(counts)
        return [tuple(pair) for pair in counts]


def check_work(outputs, with_twice_the_samples, judged: bool = False) -> None:
    """Checks that the host did not wait for a batch, except once for a kernel's status (`judged`), and that it took one
    launch or, with several phases, as many as for twice the samples. `outputs`: result of `run(-1)`; the other pipeline
    is created only if needed."""
    launches, waits = work_of(outputs[0].stream)
    assert waits == judged, f"the host has waited for the GPU {waits} times"
    if launches > 1:
        more = with_twice_the_samples()
        assert work_of(more.run(-1)[0].stream) == (launches, 0), "more samples take more launches"
