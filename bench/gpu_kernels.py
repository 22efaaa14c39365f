# SPDX-License-Identifier: Apache-2.0
"""Resampling with what is fused behind it, warping, reductions, and the GPU's half of the hybrid JPEG decoder, by the
GPU's clock, beside the time that moving the same bytes takes. Writes bench/results/gpu_kernels.md. Needs a GPU and
NVRTC."""

from __future__ import annotations

import argparse
import ctypes
import importlib
import statistics
import sys
import time
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "src")]
from gpu_pointwise import Bench, Chain, LaunchArgument, eight  # noqa: E402

from penstock.core import kernels  # noqa: E402
from penstock.core.batch import Batch, Spec  # noqa: E402
from penstock.gpu import compile  # noqa: E402
from penstock.gpu.driver import driver_version  # noqa: E402

ROOT = Path(__file__).parents[1]
NN, LINEAR, CUBIC, LANCZOS3, TRIANGULAR, _ = range(6)


def resample(chain: Chain, h: int, w: int, filters: int, dtype: str = "") -> Chain:
    """Adds an antialiased resize of whole images."""
    in_h, in_w, c = chain.specs[-1].shape[0]
    columns = {"roi_end": np.array([in_h, in_w, 0.0]), "in_size": np.array([in_h, in_w, 0])}
    columns |= {"out_size": np.array([h, w, 0]), "n_axes": 2, "antialias": 1}
    columns |= {"min_filter": filters, "mag_filter": filters}
    return chain.add("resample/resample", dtype, (h, w, int(c)), **columns)


def normalize(chain: Chain, dtype: str = "f4", h: int = 0, w: int = 0) -> Chain:
    """Adds a mirrored conversion to CHW; with h and w, a centre crop."""
    in_h, in_w, _ = (int(v) for v in chain.specs[-1].shape[0])
    h, w = h or in_h, w or in_w
    three = {"mean": np.full(3, 120, "f4"), "scale": np.full(3, 0.02, "f4"), "fill": np.zeros(3, "f4")}
    first = eight(0, (in_h - h) // 2, (in_w - w) // 2 + w - 1)
    columns = {"axis": eight(2, 0, 1), "channels": 0, "mirrored": 2, "first": first, **three}
    return chain.add("geometry/crop_mirror_normalize", dtype, (3, h, w), "CHW", **columns)


def chains(n: int) -> dict[str, Chain]:
    def photos(dtype: str = "u1") -> Chain:
        return Chain((375, 500, 3), n, dtype)

    angle = np.array([0.98, 0.17, -20, -0.17, 0.98, 40], "f4")
    warp = {"matrix": np.concatenate([angle, np.zeros(6, "f4")]), "linear": 1, "dims": 2, "fill": 0}
    all_axes, pixels = np.array([1, 1, 1, 0, 0, 0, 0, 0], "u1"), np.array([1, 1, 0, 0, 0, 0, 0, 0], "u1")
    whole = {"stddev_origin": 0, "epsilon": 0, "scale": 1}
    return {
        "resample 224 triangular": resample(photos(), 224, 224, TRIANGULAR),
        "resample 224 triangular + normalize f32 CHW": normalize(resample(photos(), 224, 224, TRIANGULAR)),
        "resample 224 triangular + normalize f16 CHW": normalize(resample(photos(), 224, 224, TRIANGULAR), "f2"),
        "resample 256x341 triangular + crop 224 + normalize": normalize(
            resample(photos(), 256, 341, TRIANGULAR), "f4", 224, 224
        ),
        "resample 224 cubic + normalize f32 CHW": normalize(resample(photos(), 224, 224, CUBIC)),
        "resample 224 lanczos + normalize f32 CHW": normalize(resample(photos(), 224, 224, LANCZOS3)),
        "resample 224 triangular u8 -> f32": resample(photos(), 224, 224, TRIANGULAR, "f4"),
        "resample 224 triangular f32": resample(photos("f4"), 224, 224, TRIANGULAR),
        "resample 750x1000 linear": resample(Chain((375, 500, 3), max(n // 4, 1)), 750, 1000, LINEAR),
        "warp linear u8": photos().add("geometry/warp", **warp),
        "warp linear u8 + normalize f32 CHW": normalize(photos().add("geometry/warp", **warp)),
        "normalize of each image u8 -> f32": photos().add("math/normalize", "f4", reduced=all_axes, **whole),
        "sum of each image u8": photos().add("reductions/sum", "u8", (1,), "W", reduced=all_axes),
        "mean of each channel u8": photos().add("reductions/sum", "f4", (3,), "C", reduced=pixels, is_mean=1),
        "largest of each channel f32": photos("f4").add(
            "reductions/extremum", "f4", (3,), "C", reduced=pixels, largest=1
        ),
        "root mean square of each row u8": photos().add(
            "reductions/mean_square", "f4", (375,), "H", reduced=np.array([0, 1, 1, 0, 0, 0, 0, 0], "u1"), root=1
        ),
        "normalize of each channel u8 -> f32": photos().add("math/normalize", "f4", reduced=pixels, **whole),
    }


def in_a_pipeline(library: str, pictures: list[np.ndarray], applications: int) -> float:
    """Seconds per batch of a pipeline that resizes and normalizes pictures `applications` times. The pictures are fed
    once and repeated, so they stay on the GPU."""
    fn, types, pipeline = (importlib.import_module(f"{library}.{m}") for m in ("fn", "types", "pipeline"))
    pipe = pipeline.Pipeline(len(pictures), 4, 0, seed=1, prefetch_queue_depth=2)
    with pipe:
        x = fn.external_source(name="pictures", device="gpu", layout="HWC", no_copy=True, repeat_last=True)
        out = []
        for _ in range(applications):  # `preserve` keeps DALI from merging them
            y = fn.resize(x, size=[224, 224], interp_type=types.INTERP_TRIANGULAR, preserve=True)
            three = {"mean": [120.0] * 3, "std": [50.0] * 3, "preserve": True}
            out.append(fn.crop_mirror_normalize(y, mirror=1, dtype=types.FLOAT, **three))
        pipe.set_outputs(*out)
    pipe.build()
    pipe.feed_input("pictures", pictures)
    for _ in range(4):
        pipe.run()
    rounds = []
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(10):
            pipe.run()
        ctypes.CDLL("libcuda.so.1").cuCtxSynchronize()
        rounds.append((time.perf_counter() - begin) / 10)
    return statistics.median(rounds)


def beside_dali(n: int) -> list[str]:
    """resize + crop_mirror_normalize in pipelines, from pictures on the GPU. The time of one application is an eighth
    of the difference between ten and two."""
    rng, times, lines = np.random.default_rng(1), [], []
    pictures = list(rng.integers(0, 256, (n, 375, 500, 3), "u1"))
    for library in ("penstock", "nvidia.dali"):
        try:
            importlib.import_module(library)
        except ImportError as e:
            return [*lines, f"| the same in DALI | not measured: {e} | | |"]
        times.append((in_a_pipeline(library, pictures, 10) - in_a_pipeline(library, pictures, 2)) / 8 * 1e3)
        lines.append(f"| resize 224 + crop_mirror_normalize f32 CHW in a pipeline of {library} | | | {times[-1]:.3f} |")
    return [*lines, f"| the same: DALI's time by penstock's | | | {times[1] / times[0]:.2f} x |"]


def size(file: bytes) -> tuple[int, int]:
    """Height and width from a JPEG file's frame header."""
    at = 2
    while not 0xC0 <= file[at + 1] <= 0xC2:
        at += 2 + int.from_bytes(file[at + 2 : at + 4], "big")
    return int.from_bytes(file[at + 5 : at + 7], "big"), int.from_bytes(file[at + 7 : at + 9], "big")


def jpeg(bench: Bench, folder: str, n: int) -> list[str]:
    """The GPU's part of decoding: two launches, from packed coefficients to RGB."""
    files = [np.fromfile(f, "u1") for f in sorted(Path(folder).rglob("*.jpg"))]
    files = [files[i % len(files)] for i in range(n)]
    encoded = Batch.from_samples(files, "")
    record_type = kernels.read_struct(kernels.read_header("decode/jpeg_coefficients.h"), "JpegRecord")[0]
    kernel = kernels.kernel("decode/jpeg_coefficients")
    in_rows = np.ascontiguousarray(encoded.rows)
    height, width = np.array([size(f.tobytes()) for f in files], "i8").T
    records, used = np.zeros(n, record_type), np.zeros(1, "i8")
    rows = Spec.uniform(n, (records.itemsize,), np.dtype("u1")).packed()
    rows["data"] = records.ctypes.data + records.itemsize * np.arange(n, dtype="u8")
    arena = np.zeros(sum(f.size for f in files) * 6, "u1")
    columns = {"format": 1, "height": height, "width": width, "window_height": height, "window_width": width}
    columns |= {"orientation": 1, "arena": arena.ctypes.data, "capacity": arena.size, "used": used.ctypes.data}
    args, _ = kernel.rows(n, columns)
    outcome = kernels.Outcome(np.zeros(n, "i4"), n, 1)
    kernels.Pool(1).run([kernels.Step(kernel, args, [(rows, -1)], [(in_rows, -1)])], n, outcome)
    cpu = float((outcome.spans["end"] - outcome.spans["begin"]).sum()) / n / 1e3

    spec = Spec(np.stack([height, width, np.full(n, 3)], 1), np.dtype("u1"), "HWC")
    nbytes = spec.volumes()
    out = bench.device.allocate(int(nbytes.sum()) + 16 * n)
    ends = np.cumsum((nbytes + 15) // 16 * 16)
    tensor = spec.packed()
    tensor["data"] = out + ends - (nbytes + 15) // 16 * 16
    packed = Spec(records["bytes"][:, None], np.dtype("u1")).packed()
    packed["data"] = bench.upload(arena[: used[0]]) + records["offset"]
    struct = kernels.read_struct(kernels.read_header("decode/jpeg_pixels.h"), "JpegPixelsArgs")[0]
    kernel_args, planes = np.zeros(n, struct), 64 * records["n_blocks"].astype("i8")
    kernel_args["record"] = bench.upload(records) + records.itemsize * np.arange(n, dtype="u8")
    kernel_args["planes"] = np.cumsum(planes) - planes
    kernel_args["height"], kernel_args["width"], kernel_args["orientation"] = height, width, 1
    argument = LaunchArgument(n=n, scratch=bench.device.allocate(int(planes.sum())))
    argument.tensors[0], argument.tensors[1] = bench.upload(tensor), bench.upload(packed)
    argument.args[0] = bench.upload(kernel_args)
    source = '#define OUT uint8_t\n#include "decode/jpeg_pixels.cu"\n'
    module = bench.device.load(compile.compile(source, "jpeg_pixels", bench.device.architecture))
    lines = []
    for name, groups in (("jpeg_blocks", -(-int(records["n_blocks"].max()) // 32)), ("jpeg_pixels", 64)):
        function = bench.device.function(module, name)
        grid = (min(groups, 64), n, 1)
        seconds = bench.seconds(lambda f=function, g=grid: bench.stream.launch(f, g, (256, 1, 1), 0, argument))
        moved = int(planes.sum()) + (int(used[0]) if name == "jpeg_blocks" else int(nbytes.sum()))
        lines.append(
            f"| {name} ({n} pictures; CPU half {cpu:.0f} us each) | {moved / seconds / 1e9:.0f} | | "
            f"{seconds * 1e3:.3f} |"
        )
    return lines


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--batch", type=int, default=256)
    p.add_argument("--rounds", type=int, default=15)
    p.add_argument("--only", default="")
    p.add_argument("--dali", action="store_true", help="run pipelines of penstock and DALI, too")
    p.add_argument("--jpeg", default="", help="a folder of JPEG files")
    p.add_argument("--out", default=str(ROOT / "bench/results/gpu_kernels.md"))
    o = p.parse_args()
    bench = Bench(o.rounds)
    copy = bench.copy(o.batch * 375 * 500 * 3)
    lines = [
        "# Kernels that read several pixels",
        "",
        f"{bench.device.name}, driver for CUDA {driver_version()}, NVRTC {'.'.join(map(str, compile.version()))}; "
        f"batches of {o.batch} images of 500x375. A copy moves {copy / 1e9:.0f} GB/s (read + written).",
        "",
        "| kernel | GB/s read and written | share of the copy | ms |",
        "|---|---:|---:|---:|",
    ]
    for name, chain in chains(o.batch).items():
        if o.only in name:
            try:
                speed, seconds = bench.chain(chain)
                lines.append(f"| {name} | {speed / 1e9:.0f} | {speed / copy:.0%} | {seconds * 1e3:.3f} |")
            except Exception as e:  # a failure should not hide the others
                lines.append(f"| {name} | failed: {type(e).__name__}: {str(e)[:200]} | | |")
            print(lines[-1], flush=True)
    if o.dali:
        lines += beside_dali(o.batch)
        print(*lines[-3:], sep="\n")
    if o.jpeg:
        lines += jpeg(bench, o.jpeg, o.batch)
        print(*lines[-2:], sep="\n")
    Path(o.out).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
