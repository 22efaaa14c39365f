# SPDX-License-Identifier: Apache-2.0
"""Pointwise kernels on a batch larger than the GPU's L2 cache, as a share of the bandwidth of a plain copy in the same
run. Writes bench/results/gpu_pointwise.md. Needs a GPU and NVRTC."""

from __future__ import annotations

import argparse
import ctypes
import statistics
import sys
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parents[1] / "src")]
from penstock.core import kernels  # noqa: E402
from penstock.core.batch import Spec  # noqa: E402
from penstock.gpu import compile, launch  # noqa: E402
from penstock.gpu.driver import Device, driver_version  # noqa: E402
from penstock.gpu.stream import Event, Stream  # noqa: E402

ROOT = Path(__file__).parents[1]


class LaunchArgument(ctypes.Structure):
    _fields_ = [
        ("tensors", ctypes.c_uint64 * launch.MAX_TENSORS),
        ("args", ctypes.c_uint64 * launch.MAX_ARGS),
        ("scratch", ctypes.c_uint64),
        ("n", ctypes.c_int32),
        ("unused", ctypes.c_int32),
    ]


class Chain:
    """Consecutive kernels on a batch, with the same arguments for all samples."""

    def __init__(self, shape: tuple[int, ...], n: int, dtype: str = "u1", layout: str = "HWC"):
        self.n, self.specs, self.steps = n, [Spec.uniform(n, shape, np.dtype(dtype), layout)], []
        self.read = 0  # bytes read per sample, if not all

    def reading(self, nbytes: int) -> Chain:
        self.read = nbytes
        return self

    def add(self, kernel: str, dtype: str = "", shape=None, layout=None, **columns) -> Chain:
        x = self.specs[-1]
        self.specs.append(Spec.uniform(self.n, shape or x.shape[0], np.dtype(dtype or x.dtype), layout or x.layout))
        self.steps.append((kernel, columns))
        return self


def chains(n: int, h: int, w: int) -> dict[str, Chain]:
    """The measured chains, by name."""
    matrix = {"matrix": np.full(9, 0.33, "f4"), "offset": np.ones(3, "f4")}
    flip = {"flip": np.array([0, 1, 0, 0, 0, 0, 0, 0], "u1")}
    window = {"extent": eight(h, w, 3), "channels": -1, "fill": np.zeros(1, "f4")}
    three = {"mean": np.full(3, 120, "f4"), "scale": np.full(3, 0.02, "f4"), "fill": np.zeros(3, "f4")}
    cmn = {"axis": eight(2, 0, 1), "channels": 0, "mirrored": 2, "first": eight(0, 0, w - 1), **three}
    interleaved = {"axis": eight(0, 1, 2), "channels": 2, "mirrored": -1, **three}

    def u8() -> Chain:
        return Chain((h, w, 3), n)

    def f4() -> Chain:
        return Chain((h // 2, w // 2, 3), n, "f4")

    planes = (3, h, w)
    return {
        "linear u8 -> u8": u8().add("color/linear", mul=1.1, add=3),
        "linear u8 -> f32": u8().add("color/linear", "f4", mul=1.1, add=3),
        "linear f32 -> f32": f4().add("color/linear", mul=1.1, add=3),
        "linear f32 -> u8": f4().add("color/linear", "u1", mul=1.1, add=3),
        "cast u8 -> f16": u8().add("generic/cast", "f2"),
        "copy u8": u8().add("generic/copy"),
        "color_matrix u8 -> u8": u8().add("color/color_matrix", **matrix),
        "color_matrix u8 -> f32": u8().add("color/color_matrix", "f4", **matrix),
        "color_matrix f32 -> f32": f4().add("color/color_matrix", **matrix),
        "color_space RGB -> YCbCr": u8().add("color/color_space", to=3, **{"from": 0}),
        "color_space RGB -> GRAY": u8().add("color/color_space", shape=(h, w, 1), to=2, **{"from": 0}),
        "flip u8": u8().add("geometry/flip", **flip),
        "flip f32": f4().add("geometry/flip", **flip),
        "crop u8": u8()
        .reading((h - 11) * (w - 21) * 3)
        .add("geometry/window", shape=(h - 11, w - 21, 3), start=eight(5, 7), **window),
        "pad u8": u8().add("geometry/window", shape=(h + 11, w + 21, 3), start=eight(-5, -7), **window),
        "crop_mirror_normalize u8 -> f32 CHW": u8().add("geometry/crop_mirror_normalize", "f4", planes, "CHW", **cmn),
        "crop_mirror_normalize u8 -> f16 CHW": u8().add("geometry/crop_mirror_normalize", "f2", planes, "CHW", **cmn),
        "crop_mirror_normalize u8 -> f32 HWC": u8().add("geometry/crop_mirror_normalize", "f4", **interleaved),
        "transpose u8 HWC -> CHW": u8().add("generic/transpose", shape=planes, layout="CHW", perm=eight(2, 0, 1)),
        "transpose f32 HW -> WH": Chain((h, w), n, "f4", "HW").add(
            "generic/transpose", shape=(w, h), layout="WH", perm=eight(1, 0)
        ),
        "brightness + color matrix + flip + normalize": u8()
        .add("color/linear", mul=1.1, add=3)
        .add("color/color_matrix", **matrix)
        .add("geometry/flip", **flip)
        .add("geometry/crop_mirror_normalize", "f4", planes, "CHW", **cmn),
    }


def eight(*values: int) -> np.ndarray:
    return np.array([*values, *(0,) * (8 - len(values))], "i8")


class Bench:
    def __init__(self, rounds: int):
        self.device, self.rounds = Device.get(0), rounds
        self.device.__enter__()
        self.stream = Stream(self.device)

    def upload(self, array: np.ndarray) -> int:
        array = np.ascontiguousarray(array)
        address = self.device.allocate(array.nbytes)
        self.stream.upload(address, array.ctypes.data, array.nbytes)
        self.stream.synchronize()
        return address

    def seconds(self, do) -> float:
        """Median time of the rounds by the GPU's clock."""
        for _ in range(3):
            do()
        times = []
        for _ in range(self.rounds):
            begin, end = Event(self.device, timed=True), Event(self.device, timed=True)
            self.stream.record(begin)
            for _ in range(4):
                do()
            self.stream.record(end)
            end.wait()
            times.append(end.since(begin) / 4e3)
        return statistics.median(times)

    def copy(self, nbytes: int) -> float:
        """Bytes read and written per second by a plain copy."""
        a, b = self.device.allocate(nbytes), self.device.allocate(nbytes)
        seconds = self.seconds(lambda: self.stream.copy(b, a, nbytes))
        self.device.free(a), self.device.free(b)
        return 2 * nbytes / seconds

    def chain(self, c: Chain) -> tuple[float, float]:
        """Bytes read and written per second, and seconds."""
        n, addresses, rows = c.n, [], {}
        calls, args = [], []
        for i, (kernel, columns) in enumerate(c.steps):
            struct = "".join(w.capitalize() for w in kernel.split("/")[1].split("_")) + "Args"
            dtype, pointers = kernels.read_struct(kernels.read_header(f"{kernel}.h"), struct)
            packed = np.zeros(n, dtype)
            for name, value in columns.items():
                packed[name] = self.upload(value) if name in pointers else value
            calls.append(launch.Call(kernel, [i + 1], [i], packed))
            args.append(self.upload(packed))
        jobs = launch.Fusion(calls, {len(c.steps)}).plan(calls, c.specs, n)
        total = 0
        for t, spec in enumerate(c.specs):
            packed = spec.packed()
            if any(t in j.tensors for j in jobs):
                nbytes = int(spec.volumes()[0]) * spec.dtype.itemsize
                address = self.device.allocate(nbytes * n)
                addresses.append(address)
                self.stream.fill(address, 7, nbytes * n)
                packed["data"] = address + nbytes * np.arange(n, dtype="u8")
                total += (c.read if c.read and t == 0 else nbytes) * n
            rows[t] = self.upload(packed)
        scratch = max((j.scratch for j in jobs), default=0)
        addresses.append(self.device.allocate(scratch or 1))
        ready = []
        for j in jobs:
            image = compile.compile(j.source, j.entry, self.device.architecture)
            packed = LaunchArgument(n=n, scratch=addresses[-1])
            for i, t in enumerate((*j.tensors, *j.shapes)):
                packed.tensors[i] = rows[t]
            for i, k in enumerate(j.calls):
                packed.args[i] = args[k]
            ready.append((self.device.function(self.device.load(image), j.entry, j.shared), j, packed))

        def run() -> None:
            for function, j, packed in ready:
                if j.zero:
                    self.stream.fill(packed.scratch, 0, j.scratch)
                self.stream.launch(function, j.grid, j.block, j.shared, packed)

        seconds = self.seconds(run)
        for a in addresses:
            self.device.free(a)
        return total / seconds, seconds


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--batch", type=int, default=256)
    p.add_argument("--size", type=int, nargs=2, default=(375, 500))
    p.add_argument("--rounds", type=int, default=15)
    p.add_argument("--only", default="")
    p.add_argument("--out", default=str(ROOT / "bench/results/gpu_pointwise.md"))
    o = p.parse_args()
    bench = Bench(o.rounds)
    copy = bench.copy(o.batch * o.size[0] * o.size[1] * 3)
    lines = [
        "# Pointwise kernels on the GPU",
        "",
        f"{bench.device.name}, driver for CUDA {driver_version()}, NVRTC {'.'.join(map(str, compile.version()))}; "
        f"batches of {o.batch} images of {o.size[1]}x{o.size[0]}. A copy moves {copy / 1e9:.0f} GB/s (read + written).",
        "",
        "| kernel | GB/s | share of the copy | ms |",
        "|---|---:|---:|---:|",
    ]
    for name, chain in chains(o.batch, *o.size).items():
        if o.only in name:
            speed, seconds = bench.chain(chain)
            lines.append(f"| {name} | {speed / 1e9:.0f} | {speed / copy:.0%} | {seconds * 1e3:.3f} |")
            print(lines[-1], flush=True)
    Path(o.out).write_text("\n".join(lines) + "\n")
    print("\n".join(lines[2:3]))


if __name__ == "__main__":
    main()
