# SPDX-License-Identifier: Apache-2.0
"""Pictures of 1080p to RGB of 224 x 224: penstock against swscale.

    python bench/video_colours.py [--rounds 7] [--out FILE]

One thread, processor time of a picture, H.264 that PyAV makes here. penstock's is the difference between decoding a
video of one group of pictures to all its frames and decoding it to its last frame only: the pictures that are decoded
are the same, as each refers to the one before. penstock's resized frames are those of full RGB frames, resized: with
antialias=True, DALI's default, or without. swscale (PyAV's) converts pictures to full RGB, which something else has
to resize yet, as in DALI; or makes small ones in one call, whose colours are converted after the filter. DALI's flags
are bilinear, full chroma and accurate rounding. Medians of interleaved rounds.
"""

from __future__ import annotations

import argparse
import ctypes
import glob
import io
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measure
import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))
HEIGHT, WIDTH, FRAMES, SIZE = 1080, 1920, 48, 224
PAIRS = 5  # differences per round
BILINEAR, FULL_CHROMA, ACCURATE = 2, 0x2000 | 0x4000, 0x40000  # SWS_* flags, for input and output
YUV420P, RGB24 = 0, 2


def video() -> bytes:
    """A static texture: one key frame, and pictures that each refer to the one before."""
    import av

    rng, file = np.random.default_rng(0), io.BytesIO()
    texture = np.kron(rng.integers(0, 256, (HEIGHT // 8, WIDTH // 8, 3), "u1"), np.ones((8, 8, 1), "u1"))
    with av.open(file, "w", format="mp4") as out:
        stream = out.add_stream("libx264", rate=30, options={"g": "1000", "bf": "0", "preset": "veryfast"})
        stream.height, stream.width, stream.pix_fmt = HEIGHT, WIDTH, "yuv420p"
        for _ in range(FRAMES):
            out.mux(stream.encode(av.VideoFrame.from_ndarray(texture, "rgb24")))
        out.mux(stream.encode())
    return file.getvalue()


def by_penstock(data: bytes, antialias: bool) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Functions that decode all frames, and only the last one."""
    from penstock import fn, pipeline_def

    encoded = np.frombuffer(data, "u1")

    def decoding(frames: list[int]) -> Callable[[], Any]:
        @pipeline_def(batch_size=1, num_threads=1, prefetch_queue_depth=1, exec_async=False, exec_pipelined=False)
        def pipe() -> Any:
            files = fn.external_source(lambda: [encoded], batch=True)
            return fn.resize(fn.decoders.video(files, frames=frames), size=(SIZE, SIZE), antialias=antialias)

        return pipe().run

    return decoding(list(range(FRAMES))), decoding([FRAMES - 1])


class Swscale:
    def __init__(self, flags: int, height: int, width: int):
        import av

        folder = os.path.join(os.path.dirname(os.path.dirname(av.__file__)), "av.libs")
        self._lib = ctypes.CDLL(glob.glob(os.path.join(folder, "libswscale*"))[0])
        self._lib.sws_getContext.restype = ctypes.c_void_p
        self._context = ctypes.c_void_p(
            self._lib.sws_getContext(WIDTH, HEIGHT, YUV420P, width, height, RGB24, flags, None, None, None)
        )
        rng = np.random.default_rng(0)
        self._planes = [rng.integers(16, 236, s, "u1") for s in ((HEIGHT, WIDTH), *2 * [(HEIGHT // 2, WIDTH // 2)])]
        self._out = np.zeros((height, width, 3), "u1")
        addresses = [p.ctypes.data for p in self._planes]
        self._from = (ctypes.c_void_p * 4)(*addresses), (ctypes.c_int * 4)(WIDTH, WIDTH // 2, WIDTH // 2)
        self._to = (ctypes.c_void_p * 4)(self._out.ctypes.data), (ctypes.c_int * 4)(3 * width)

    def run(self) -> None:
        if self._lib.sws_scale(self._context, *self._from, 0, HEIGHT, *self._to) != len(self._out):
            raise RuntimeError("sws_scale has failed")


def processor_s(call: Callable[[], Any]) -> float:
    begin = time.process_time()
    call()
    return time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", default="")
    args = parser.parse_args()
    data = video()
    ours = {f"penstock, antialias={a}": by_penstock(data, a) for a in (True, False)}
    full, small = (HEIGHT, WIDTH), (SIZE, SIZE)
    theirs = {
        f"swscale{flags}{size}": Swscale(BILINEAR | number, *shape)
        for size, shape in (("", full), (" to 224 in one call", small))
        for flags, number in ((" with DALI's flags", FULL_CHROMA | ACCURATE), (", bilinear", 0))
    }
    found: dict[str, list[float]] = {name: [] for name in (*ours, *theirs)}
    for k in range(args.rounds + 1):
        for name, (every, last) in ours.items():
            # Both convert the last one. A difference of two long times needs many of them.
            pairs = [processor_s(every) - processor_s(last) for _ in range(PAIRS)]
            found[name] += [statistics.median(pairs) / (FRAMES - 1)] * (k > 0)  # the first round warms up
        for name, scaler in theirs.items():
            seconds = processor_s(lambda scaler=scaler: [scaler.run() for _ in range(20)]) / 20
            found[name] += [seconds] * (k > 0)
    lines = ["# Colours and sizes of video pictures", "", __doc__.split("\n\n")[2].strip().replace("\n", " "), ""]
    lines += [measure.machine(), "", "| | ms a picture | least and most |", "|---|---|---|"]
    ms = {name: 1000 * statistics.median(runs) for name, runs in found.items()}
    for name, runs in found.items():
        lines.append(f"| {name} | {ms[name]:.3f} | {1000 * min(runs):.3f} to {1000 * max(runs):.3f} |")
    lines += ["", "| claim | antialias=True | antialias=False | at least | |", "|---|---|---|---|---|"]
    for text, rival, least in (
        ("swscale with DALI's flags", "swscale with DALI's flags", 20),
        ("plain bilinear to full RGB, which isn't resized", "swscale, bilinear", 3),
        ("plain bilinear to 224 in one call, the same job", "swscale, bilinear to 224 in one call", 3),
    ):
        slow, quick = (ms[rival] / ms[f"penstock, antialias={a}"] for a in (True, False))
        verdict = "reached" if slow >= least else "reached without antialias" if quick >= least else "**missed**"
        lines.append(f"| against {text} | {slow:.2f} | {quick:.2f} | {least} | {verdict} |")
    measure.write(args.out, "video_colours.md", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
