# SPDX-License-Identifier: Apache-2.0
"""Exchanges inside a warp follow each other without a barrier between them. The emulated device lets its threads run
one after the other, so that one may begin the next exchange before another has read the values of this one."""

import ctypes

import numpy as np

from penstock.gpu import compile
from penstock.gpu.driver import Device
from penstock.gpu.stream import Stream

THREADS, ROUNDS = 96, 5
SOURCE = (
    f"#define THREADS {THREADS}\n#define ROUNDS {ROUNDS}\n"
    + """#include "core/gpu.h"
struct Out { unsigned *values; };
extern "C" __global__ void exchanges(Out out) {
  unsigned x = threadIdx.x * 2654435761u + 1, *to = out.values + threadIdx.x;
  for (int i = 0; i < ROUNDS; i++) {
    x = x * 3 + __shfl_xor_sync(~0u, x, 1 << i);
    x = x * 3 + __shfl_sync(~0u, x, 7 * i);
    x = x * 3 + __ballot_sync(~0u, x >> 3 & 1);
    if (i % 2) __syncthreads();
    x = x * 3 + __shfl_down_sync(~0u, x, i);
    if (i % 3) __syncwarp();
    x = x * 3 + __shfl_up_sync(~0u, x, i);
    to[i * THREADS] = x;
  }
}
"""
)


class Out(ctypes.Structure):
    _fields_ = [("values", ctypes.c_uint64)]


def expected():
    x, lane, found = (np.arange(THREADS, dtype="u4") * np.uint32(2654435761) + 1).reshape(-1, 32), np.arange(32), []
    for i in range(ROUNDS):
        x = x * 3 + x[:, lane ^ 1 << i]
        x = x * 3 + x[:, [7 * i]]
        x = x * 3 + ((x >> 3 & 1) << lane.astype("u4")).sum(1, "u4")[:, None]
        x = x * 3 + x[:, np.where(lane + i < 32, lane + i, lane)]
        x = x * 3 + x[:, np.where(lane >= i, lane - i, lane)]
        found.append(x.ravel())
    return np.stack(found)


def test_exchanges_inside_a_warp():
    device, got = Device.get(0), np.zeros((ROUNDS, THREADS), "u4")
    with device:
        stream = Stream(device)
        function = device.function(device.load(compile.compile(SOURCE, "exchanges", device.architecture)), "exchanges")
        values = device.allocate(got.nbytes)
        stream.launch(function, (1, 1, 1), (THREADS, 1, 1), 0, Out(values))
        stream.download(got.ctypes.data, values, got.nbytes)
        stream.synchronize()
        device.free(values)
    np.testing.assert_array_equal(got, expected())
