# SPDX-License-Identifier: Apache-2.0
"""Colours of decoded pictures: each bit as the integer arithmetic of kernels/video defines it, by the loops of all
instruction sets, and the same whether frames are resized afterwards or while they are decoded."""

import io
from functools import cache

import numpy as np
import pytest

from optional_packages import Package, needs
from penstock import fn, pipeline_def, types
from penstock.core import kernels

pytestmark = needs("av")
av = Package("av")
PLAIN, AVX2, AVX512 = LEVELS = range(3)
# KR and KB of H.273's matrices, by x264's names.
MATRICES = {
    "bt709": (0.2126, 0.0722), "fcc": (0.30, 0.11), "bt470bg": (0.299, 0.114), "smpte240m": (0.212, 0.087),
    "bt2020nc": (0.2627, 0.0593),
}  # fmt: skip
LEFT, CENTRE, TOP_LEFT = range(3)  # x264's chromaloc


@pytest.fixture
def limit():
    """Selects the loops of an instruction set."""
    library = kernels.library()

    def to(level):
        library.half_chroma_limit(level)
        library.resample_limit(level)

    yield to
    to(AVX512)


@cache
def made(size, pixels="yuv420p", codec="libx264", n=1, **x264):
    """A lossless video of values from the whole range, flat in places, and its planes: [n][3] of int64."""
    rng = np.random.default_rng(3)
    height, width = size
    file, planes = io.BytesIO(), []
    options = {"lossless": "1"} if codec != "libx264" else {"qp": "0", "preset": "ultrafast"}
    options |= {"x264-params": ":".join(f"{k}={v}" for k, v in x264.items())} if x264 else {}
    with av.open(file, "w", format="matroska") as out:
        stream = out.add_stream(codec, rate=10, options=options)
        stream.height, stream.width, stream.pix_fmt = height, width, pixels
        for _ in range(n):
            frame = av.VideoFrame(width, height, pixels)
            kept = []
            for plane in frame.planes:
                bits = 10 if "10" in pixels else 8
                values = rng.integers(0, 1 << bits, (plane.height, plane.width), "u2")
                values[: plane.height // 3] = rng.choice([0, 1 << bits - 1, (1 << bits) - 1], plane.width)
                if bits == 8:
                    values = values.astype("u1")
                rows = np.zeros((plane.height, plane.line_size // values.itemsize), values.dtype)
                rows[:, : plane.width] = values
                plane.update(rows)
                kept.append(values.astype("i8"))
            planes.append(kept)
            out.mux(stream.encode(frame))
        out.mux(stream.encode())
    return np.frombuffer(file.getvalue(), "u1"), planes


def times(a, b):
    return (a * b + (1 << 14)) >> 15


def spread(c, height, width, siting):
    """Chroma of 8 bits, less its middle, at all pixels in 15 bits."""
    if len(c) < height:
        y = np.arange(height)
        near, far = y // 2, np.clip(np.where(y % 2, y // 2 + 1, y // 2 - 1), 0, len(c) - 1)
        weights = 3, 1
        if siting == TOP_LEFT:
            far, weights = np.where(y % 2, far, near), (2, 2)
        c = weights[0] * c[near] + weights[1] * c[far] - 512
    else:
        c = 4 * c - 512
    x = np.arange(width)
    near, right = x // 2, np.clip(x // 2 + 1, 0, c.shape[1] - 1)
    if siting != CENTRE:
        return np.where(x % 2, (c[:, near] + c[:, right]) * 16, 2 * c[:, near] * 16)
    far = np.where(x % 2, right, np.clip(x // 2 - 1, 0, None))
    return ((3 * c[:, near] + c[:, far] + 1) >> 1) * 16


def expected(planes, matrix, full, siting):
    y, u, v = planes
    kr, kb = MATRICES[matrix]
    luma, chroma = (1, 1) if full else (255 / 219, 255 / 224)
    k = lambda x: int(np.floor(x * 32 * 256 + 0.5)) if x >= 0 else -int(np.floor(-x * 32 * 256 + 0.5))
    kg = 1 - kr - kb
    u, v = (spread(c, *y.shape, siting) for c in (u, v))
    y = times((y - (0 if full else 16)) << 7, k(luma))
    r = y + times(v, k(2 * (1 - kr) * chroma))
    g = y + times(u, k(-2 * (1 - kb) * kb / kg * chroma)) + times(v, k(-2 * (1 - kr) * kr / kg * chroma))
    b = y + times(u, k(2 * (1 - kb) * chroma))
    return np.clip((np.stack([r, g, b], -1) + 16) >> 5, 0, 255).astype("u1")


def decode(data, resizing=None, decoding=None):
    """The frames, resized by an operator of their own and while they are decoded if `resizing` is given."""
    decoding = decoding or {}

    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        frames = fn.decoders.video(types.Constant(data), **decoding)
        if resizing is None:
            return frames
        one = fn.resize(fn.decoders.video(types.Constant(data), **decoding), **resizing)
        return one, fn.resize(frames, **resizing), frames

    p = pipe()
    if resizing is not None:
        assert p.explain().count("fn.decoders.video and fn.resize") == 1
    return [o.as_array()[0] for o in p.run()]


@pytest.mark.parametrize("siting", [LEFT, CENTRE, TOP_LEFT])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("matrix", MATRICES)
def test_each_bit(limit, matrix, full, siting):
    """The width is one of the loops' blocks and a part of one."""
    size = (18, 1114)
    data, planes = made(size, colormatrix=matrix, fullrange="on" if full else "off", chromaloc=siting)
    right = expected(planes[0], matrix, full, siting)
    assert (right == 0).any() and (right == 255).any()
    for level in LEVELS:
        limit(level)
        np.testing.assert_array_equal(decode(data)[0][0], right, err_msg=str(level))


@pytest.mark.parametrize("pixels", ["yuv420p", "yuv422p"])
@pytest.mark.parametrize("width", [30, 32, 34, 62, 64, 66, 126, 130, 1022, 1024, 1026, 1056, 1090, 2048, 2110])
def test_widths_around_the_steps_of_loops(limit, width, pixels):
    data, planes = made((6, width), pixels, colormatrix="bt709")
    right = expected(planes[0], "bt709", False, LEFT)
    for level in LEVELS:
        limit(level)
        np.testing.assert_array_equal(decode(data)[0][0], right, err_msg=str(level))


LARGE = {
    "of 1080p": {"size": (224, 224)},
    "without antialiasing": {"size": (224, 224), "antialias": False},
    "cubic": {"size": (224, 224), "interp_type": types.INTERP_CUBIC},
    "Lanczos": {"size": (200, 333), "interp_type": types.INTERP_LANCZOS3},
    "Gaussian": {"size": (100, 90), "interp_type": types.INTERP_GAUSSIAN},
    "nearest": {"size": (224, 224), "interp_type": types.INTERP_NN},
    "nearest, then linear": {"size": (224, 2000), "min_filter": types.INTERP_NN},
    "tiny": {"size": (5, 7)},
    "one row": {"size": (1, 300)},
    "half of the columns": {"size": (1080, 960)},
    "larger": {"size": (1100, 1930)},
    "region": {"size": (224, 224), "roi_start": [11, 301], "roi_end": [1001, 1777]},
    "narrow region": {"size": (50, 9), "roi_start": [100, 1000], "roi_end": [500, 1013.5]},
    "backwards": {"size": (97, 224), "roi_start": [1080, 1919], "roi_end": [1, 0]},
    "float": {"size": (224, 224), "dtype": types.FLOAT},
    "Pillow's": {"size": (224, 224), "rule": "pillow"},
    "PyTorch's": {"size": (224, 224), "rule": "torch"},
}
LARGE_PICTURES = {
    "8 bits": {"size": (1080, 1920), "colormatrix": "bt709"},
    "10 bits": {"size": (270, 1014), "pixels": "yuv420p10le", "fullrange": "on"},
    "odd size": {"size": (271, 1013), "codec": "libvpx-vp9"},
}


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("picture", LARGE_PICTURES)
def test_large_pictures_resized_while_they_are_decoded(limit, picture, name):
    data, _ = made(**LARGE_PICTURES[picture])
    resizing = LARGE[name]
    if "roi_start" in resizing and picture != "8 bits":
        scale = np.float32([270 / 1080, 1013 / 1920])
        resizing = resizing | {k: (resizing[k] * scale).tolist() for k in ("roi_start", "roi_end")}
    of_levels = []
    for level in LEVELS:
        limit(level)
        one, two, _ = decode(data, resizing)
        np.testing.assert_array_equal(one, two, err_msg=str(level))
        of_levels.append(one)
    for other in of_levels[1:]:
        np.testing.assert_array_equal(other, of_levels[0])


def test_fill_values_and_ycbcr_resized_while_they_are_decoded(limit):
    data, _ = made((144, 1100), n=2)
    for level in LEVELS:
        limit(level)
        for decoding in ({"frames": [1, -1, 0], "fill_value": [9, 80, 200]}, {"image_type": types.YCbCr}):
            for antialias in (True, False):
                one, two, _ = decode(data, {"size": (60, 70), "antialias": antialias}, decoding)
                np.testing.assert_array_equal(one, two)
                if "frames" in decoding:
                    assert (one[1] == [9, 80, 200]).all() and one[0].std() > 1
