# SPDX-License-Identifier: Apache-2.0
"""Runs a segment of kernels on the CPU, and on a device as the executor does, for comparison."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock.core import kernels
from penstock.core.batch import Batch, Spec
from penstock.gpu import compile, launch
from penstock.gpu.driver import Device
from penstock.gpu.stream import Stream

_UNTOUCHED = 0xA5


def _whole_blocks(nbytes: int) -> int:
    """Kernels may read partially valid blocks of 16 bytes, which the pool's memory allows."""
    return max(nbytes + 15 & ~15, 16)


class LaunchArgument(ctypes.Structure):
    """struct Launch of kernels/core/gpu.h."""

    _fields_ = [
        ("tensors", ctypes.c_uint64 * launch.MAX_TENSORS),
        ("args", ctypes.c_uint64 * launch.MAX_ARGS),
        ("scratch", ctypes.c_uint64),
        ("n", ctypes.c_int32),
        ("unused", ctypes.c_int32),
    ]


@dataclass
class Step:
    """One kernel: indices of its tensors, and its arguments as columns."""

    kernel: str
    outs: list[int]
    ins: list[int]
    columns: dict[str, Any] = field(default_factory=dict)


@dataclass
class Segment:
    """Kernels in order. `specs`: of all tensors; `inputs`: samples of external tensors."""

    steps: list[Step]
    specs: dict[int, Spec]
    inputs: dict[int, list[np.ndarray]]
    kept: set[int]

    @property
    def n(self) -> int:
        return next(iter(self.specs.values())).n

    def on_cpu(self) -> dict[int, list[np.ndarray]]:
        """The samples of the kept tensors."""
        pool, rows, batches = kernels.Pool(1), {}, {}
        for t, samples in self.inputs.items():
            batches[t] = Batch.from_samples(samples, self.specs[t].layout)
            rows[t] = batches[t].rows
        steps, alive = [], []
        for s in self.steps:
            for t in s.outs:
                spec = self.specs[t]
                batches[t] = Batch.allocate(Spec(spec.stored, spec.dtype, spec.layout))
                rows[t] = batches[t].rows
            kernel = kernels.kernel(s.kernel)
            args, keep = kernel.rows(self.n, s.columns)
            alive.append(keep)
            steps.append(kernels.Step(kernel, args, [(rows[t], -1) for t in s.outs], [(rows[t], -1) for t in s.ins]))
        outcome = kernels.Outcome(np.zeros(self.n, "i4"), self.n, len(steps))
        pool.run(steps, self.n, outcome)
        assert not outcome.status.any(), outcome.errors
        return {t: [batches[t].sample(i).copy() for i in range(self.n)] for t in sorted(self.kept)}

    def launches(self) -> tuple[list[launch.Call], list[launch.Launch]]:
        calls = []
        for s in self.steps:
            args, _ = kernels.kernel(s.kernel).rows(self.n, s.columns)
            calls.append(launch.Call(s.kernel, s.outs, s.ins, args))
        specs = [self.specs[t] for t in range(len(self.specs))]
        return calls, launch.Fusion(calls, self.kept).plan(calls, specs, self.n)

    def on_device(self, offset: int = 0) -> dict[int, list[np.ndarray]]:
        """The same on GPU 0. Samples begin `offset` elements after a multiple of 256 bytes."""
        device = Device.get(0)
        with device:
            stream = Stream(device)
            _, launches = self.launches()
            owned: list[int] = []

            def upload(array: np.ndarray, shift: int = 0) -> int:
                array = np.ascontiguousarray(array)
                address = device.allocate(_whole_blocks(array.nbytes + shift))
                owned.append(address)
                if array.nbytes:
                    stream.upload(address + shift, array.ctypes.data, array.nbytes)
                    stream.synchronize()
                return address + shift

            data: dict[int, list[int]] = {}
            for t, samples in self.inputs.items():
                data[t] = [upload(x, offset * x.itemsize) for x in samples]
            for t in {t for x in launches for t in x.tensors} - data.keys():
                spec = self.specs[t]
                data[t] = []
                for v in spec.volumes():
                    begin = offset * spec.dtype.itemsize
                    size = _whole_blocks(begin + int(v) * spec.dtype.itemsize)
                    data[t].append(upload(np.full(size, _UNTOUCHED, "u1")) + begin)
            assert self.kept <= data.keys(), "a kept tensor is fused away"
            rows = {}
            for t, spec in self.specs.items():
                packed = spec.packed()
                if t in data:
                    packed["data"] = data[t]
                rows[t] = upload(packed)
            args = []
            for s in self.steps:
                kernel = kernels.kernel(s.kernel)
                packed, _ = kernel.rows(self.n, s.columns)
                for name in kernel.pointers & s.columns.keys():
                    values = np.ascontiguousarray(s.columns[name])
                    step = 0 if len(values) == 1 else values.strides[0]
                    packed[name] = upload(values) + step * np.arange(self.n, dtype="u8")
                args.append(upload(packed))
            shared: dict[tuple[int, ...], int] = {}  # scratch of a group
            for x in launches:
                image = compile.compile(x.source, x.entry, device.architecture)
                function = device.function(device.load(image), x.entry, x.shared)
                group = tuple(x.calls)
                if x.scratch and (x.zero or group not in shared):
                    shared[group] = upload(np.full(x.scratch, 0 if x.zero else 0xFE, "u1"))
                scratch = shared.get(group, 0)
                tensors = [rows[t] for t in (*x.tensors, *x.shapes)]
                packed = LaunchArgument(n=self.n, scratch=scratch)
                packed.tensors[: len(tensors)] = tensors
                packed.args[: len(x.calls)] = [args[i] for i in x.calls]
                stream.launch(function, x.grid, x.block, x.shared, packed)
            stream.synchronize()
            out = {}
            for t in sorted(self.kept):
                spec, out[t] = self.specs[t], []
                for shape, address in zip(spec.stored, data[t]):
                    begin = offset * spec.dtype.itemsize
                    nbytes = int(np.prod(shape)) * spec.dtype.itemsize
                    block = np.empty(_whole_blocks(begin + nbytes), "u1")
                    stream.download(block.ctypes.data, address - begin, block.nbytes)
                    stream.synchronize()
                    around = np.concatenate([block[:begin], block[begin + nbytes :]])
                    assert (around == _UNTOUCHED).all(), f"tensor {t}: written beside a sample of shape {shape}"
                    out[t].append(np.ndarray(shape, spec.dtype, block[begin : begin + nbytes].tobytes()))
            for address in owned:
                device.free(address)
        return out

    def check(self, steps: float = 0, offsets: tuple[int, ...] = (0,)) -> None:
        """The device's samples are those of the CPU, up to `steps` for integers and relative `steps` * eps for
        floats."""
        want = self.on_cpu()
        for offset in offsets:
            got = self.on_device(offset)
            for t in want:
                for i, (a, b) in enumerate(zip(got[t], want[t])):
                    where = f"tensor {t}, sample {i} of shape {b.shape}, offset {offset}"
                    if steps and b.dtype.kind == "f":
                        eps = np.finfo(b.dtype).eps
                        np.testing.assert_allclose(a, b, rtol=steps * eps, atol=steps * eps, err_msg=where)
                    elif steps:
                        assert np.abs(a.astype("f8") - b.astype("f8")).max(initial=0) <= steps, where
                    else:
                        np.testing.assert_array_equal(a, b, err_msg=where)
