# SPDX-License-Identifier: Apache-2.0
"""What a batch asks of the GPU, as the emulated device counts it."""

import ctypes
import os
from typing import NamedTuple


def work_of(stream: int) -> tuple[int, int]:
    """How many kernels a stream was given, and how often the host has waited for it or for an event in it.

    Where a pipeline prepares one batch ahead, the stream of the first one that `run(-1)` gives out has served for
    nothing else."""
    launches, waits = ctypes.c_int64(), ctypes.c_int64()
    library = ctypes.CDLL(os.environ["PENSTOCK_CUDA_DRIVER"])
    library.emulated_counts(ctypes.c_void_p(stream), ctypes.byref(launches), ctypes.byref(waits))
    return launches.value, waits.value


class Copied(NamedTuple):
    """How often something was copied, and how many bytes."""

    copies: int
    nbytes: int


class Copies:
    """What is copied inside of a `with`: to the GPU, from it, on it by its driver."""

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
    """Nobody has waited for a batch on its way, but once for what a kernel says of its samples (`judged`), and it has
    taken one launch or, where there are several phases, as many as one of twice the samples does. `outputs` are those
    of `run(-1)`; the other pipeline is made only if needed."""
    launches, waits = work_of(outputs[0].stream)
    assert waits == judged, f"the host has waited for the GPU {waits} times"
    if launches > 1:
        more = with_twice_the_samples()
        assert work_of(more.run(-1)[0].stream) == (launches, 0), "more samples take more launches"
