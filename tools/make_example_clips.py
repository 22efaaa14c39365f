# SPDX-License-Identifier: Apache-2.0
"""Makes examples/clips: a few short videos of drawn pictures, which are free of rights. Needs PyAV and NumPy.

python tools/make_example_clips.py [OUT]
"""

import sys
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

FRAMES, RATE, SIZE = 12, 12, (48, 64)


def clock(i: int) -> np.ndarray:
    """A dial with one hand that turns once in FRAMES frames."""
    height, width = SIZE
    y, x = np.mgrid[:height, :width] - np.array([[[height / 2]], [[width / 2]]])
    radius, angle = np.hypot(x, y), np.arctan2(x, -y) % (2 * np.pi)
    turned = np.abs((angle - 2 * np.pi * i / FRAMES + np.pi) % (2 * np.pi) - np.pi)
    image = np.full((height, width, 3), (30, 40, 60), "u1")
    image[radius < 21] = (240, 235, 220)
    image[(radius < 18) & (turned * np.maximum(radius, 1) < 1.5)] = (200, 40, 30)
    return image


def write(path: Path, codec: str, options: dict[str, str]) -> None:
    with av.open(str(path), "w") as out:
        stream = out.add_stream(codec, rate=RATE, options=options)
        stream.height, stream.width = SIZE
        stream.pix_fmt = "yuv420p"
        for i in range(FRAMES):
            frame = av.VideoFrame.from_ndarray(clock(i), "rgb24")
            frame.pts, frame.time_base = i, Fraction(1, RATE)
            out.mux(stream.encode(frame))
        out.mux(stream.encode())


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "examples" / "clips")
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "clock.webm", "libvpx-vp9", {"g": "6", "crf": "20", "b": "0"})
    write(folder / "clock.mp4", "libx264", {"g": "6", "crf": "18"})
