# SPDX-License-Identifier: Apache-2.0
"""Videos that PyAV encodes, and their frames as PyAV decodes them, in RGB by the definition (ITU-T H.273)."""

import io
from fractions import Fraction
from functools import cache

import numpy as np

from optional_packages import Package

av = Package("av")

LUMA = {"bt709": (0.2126, 0.0722), "bt601": (0.299, 0.114), "bt2020": (0.2627, 0.0593)}
_AV_MATRICES = {1: "bt709", 9: "bt2020"}


def pattern(n, height, width, seed=0):
    """(n, height, width, 3) moving shapes and noise."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    frames = np.empty((n, height, width, 3), "u1")
    for i in range(n):
        for c in range(3):
            frames[i, :, :, c] = 127 + 120 * np.sin((x * (c + 1) + 3 * i) / 9 + y / (5 + c))
        frames[i, : height // 3, : width // 3] = rng.integers(0, 256, 3)
    return frames


@cache
def clip(
    codec="libx264",
    pixels="yuv420p",
    size=(48, 64),
    n=20,
    container="mp4",
    times=None,
    codec_options=(),
    container_options=(),
    rate=10,
    gray=False,
):
    """The bytes of a video. `times` are those of the frames in units of 1 / (100 * rate) s; even ones by default."""
    unit = Fraction(1, rate if times is None else 100 * rate)
    file = io.BytesIO()
    with av.open(file, "w", format=container, options=dict(container_options)) as out:
        stream = out.add_stream(codec, rate=rate, options=dict(codec_options))
        stream.height, stream.width, stream.pix_fmt = *size, pixels
        stream.codec_context.time_base = unit
        frames = pattern(n, *size)
        if gray:
            frames = np.broadcast_to(frames[..., :1], frames.shape).copy()
        for i, image in enumerate(frames):
            frame = av.VideoFrame.from_ndarray(image, "rgb24").reformat(format=pixels)
            frame.pts, frame.time_base = i if times is None else times[i], unit
            out.mux(stream.encode(frame))
        out.mux(stream.encode())
    return file.getvalue()


def planes(frame):
    """Y, U, V of a frame of PyAV, as float64, and the bits of each."""
    name = frame.format.name
    bits = next((b for b in (10, 12) if f"p{b}" in name), 8)
    found = []
    for plane in frame.planes:
        line = np.frombuffer(plane, "<u2" if bits > 8 else "u1").reshape(plane.height, -1)
        found.append(line[:, : plane.width].astype("f8"))
    return found, bits


def decoded(file):
    """(n, height, width, 3) uint8: all frames of the largest video in a file."""
    with av.open(io.BytesIO(bytes(file))) as container:
        stream = max(container.streams.video, key=lambda s: s.height * s.width)
        return np.stack([rgb(f, stream.codec_context.name == "mjpeg") for f in container.decode(stream)])


def rgb(frame, is_centred=False):
    """(height, width, 3) uint8. Chroma is interpolated linearly from its samples, which lie at the left of every second
    pixel, or between two pixels if `is_centred` (as JPEG's do), and between two rows."""
    (y, u, v), bits = planes(frame)
    height, width = y.shape
    name = frame.format.name

    def spread(c):
        if len(c) < height:
            row = np.arange(height)
            near = row // 2
            far = np.clip(np.where(row % 2, near + 1, near - 1), 0, len(c) - 1)
            c = 0.75 * c[near] + 0.25 * c[far]
        if c.shape[1] < width:
            even, odd = c[:, : -(-width // 2)], c[:, : width // 2]
            before = np.concatenate([c[:, :1], c[:, :-1]], 1)[:, : even.shape[1]]
            behind = np.concatenate([c[:, 1:], c[:, -1:]], 1)[:, : odd.shape[1]]
            c = np.empty((height, width))
            c[:, ::2] = 0.75 * even + 0.25 * before if is_centred else even
            c[:, 1::2] = 0.75 * odd + 0.25 * behind if is_centred else 0.5 * odd + 0.5 * behind
        return c

    most, step = 2.0**bits - 1, 2.0 ** (bits - 8)
    if frame.color_range == 2 or "yuvj" in name:
        luma, (blue, red) = y / most, (spread((c - 128 * step) / most) for c in (u, v))
    else:
        luma = (y - 16 * step) / (219 * step)
        blue, red = (spread((c - 128 * step) / (224 * step)) for c in (u, v))
    kr, kb = LUMA[_AV_MATRICES.get(int(frame.colorspace), "bt601")]
    r, b = luma + 2 * (1 - kr) * red, luma + 2 * (1 - kb) * blue
    g = (luma - kr * r - kb * b) / (1 - kr - kb)
    pixels = np.empty((height, width, 3), "u1")
    for i, values in enumerate((r, g, b)):
        values *= 255
        np.rint(values, out=values)
        pixels[..., i] = np.clip(values, 0, 255, out=values)
    return pixels
