# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from harness import op_test
from penstock import fn, pipeline_def


def equalized(x, tiles_x, tiles_y, clip_limit):
    """Equalises a plane, by the definition."""
    h, w = x.shape
    rest = (h % tiles_y, w % tiles_x)
    whole = np.pad(x, ((0, tiles_y - rest[0]), (0, tiles_x - rest[1])), mode="reflect") if any(rest) else x
    th, tw = whole.shape[0] // tiles_y, whole.shape[1] // tiles_x
    n = th * tw
    tables = np.zeros((tiles_y, tiles_x, 256))
    for j in range(tiles_y):
        for i in range(tiles_x):
            counts = np.bincount(whole[j * th : (j + 1) * th, i * tw : (i + 1) * tw].ravel(), minlength=256)
            if clip_limit > 0:
                limit = max(int(np.float32(clip_limit) * n / 256), 1)
                cut = np.maximum(counts - limit, 0).sum()
                counts = np.minimum(counts, limit) + cut // 256
                if cut % 256:
                    counts[:: max(256 // (cut % 256), 1)][: cut % 256] += 1
            tables[j, i] = np.round(np.cumsum(counts) * 255 / n)

    def around(extent, tile, tiles):
        at = np.arange(extent) / tile - 0.5
        low = np.floor(at).astype(int)
        return np.maximum(low, 0), np.minimum(low + 1, tiles - 1), at - low

    y0, y1, wy = around(h, th, tiles_y)
    x0, x1, wx = around(w, tw, tiles_x)
    near = [[tables[a[:, None], b[None], x] for b in (x0, x1)] for a in (y0, y1)]
    rows = [a * (1 - wx) + b * wx for a, b in near]
    return np.round(rows[0] * (1 - wy[:, None]) + rows[1] * wy[:, None]).astype("u1")


def lab(rgb):
    """CIE L*a*b* of sRGB, D65, L in [0, 255], a and b around 128, rounded."""
    s = rgb / 255
    s = np.where(s <= 0.04045, s / 12.92, ((s + 0.055) / 1.055) ** 2.4)
    m = np.array([[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]])
    t = s @ m.T / [0.950456, 1, 1.088754]
    f = np.where(t > 0.008856, np.cbrt(t), 7.787 * t + 16 / 116)
    out = np.stack([(116 * f[..., 1] - 16) * 2.55, 500 * (f[..., 0] - f[..., 1]), 200 * (f[..., 1] - f[..., 2])], -1)
    return np.round(out + [0, 128, 128]).clip(0, 255)


def srgb(x):
    fy = (x[..., 0] / 2.55 + 16) / 116
    f = np.stack([fy + (x[..., 1] - 128) / 500, fy, fy - (x[..., 2] - 128) / 200], -1)
    t = np.where(f > 6 / 29, f**3, (f - 16 / 116) / 7.787) * [0.950456, 1, 1.088754]
    m = np.array([[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]])
    s = (t @ np.linalg.inv(m).T).clip(0, 1)
    s = np.where(s <= 0.0031308, 12.92 * s, 1.055 * s ** (1 / 2.4) - 0.055)
    return np.round(s * 255).astype("u1")


def reference(x, tiles_x, tiles_y, clip_limit, luma_only=True, bins=256):
    args = tiles_x, tiles_y, clip_limit
    if x.size == 0:
        return x
    if x.shape[2] == 1 or not luma_only:
        return np.stack([equalized(x[..., c], *args) for c in range(x.shape[2])], -1)
    light = lab(x)
    light[..., 0] = equalized(light[..., 0].astype("u1"), *args)
    return srgb(light)


def smooth(rng, case):
    """Similar to photographs; some sizes are multiples of the tiles."""
    samples = []
    for h, w in ((40, 48), (41, 48), (37, 50), (8, 90), (2, 3), (1, 1)):
        y, x = np.mgrid[:h, :w]
        base = 120 + 60 * np.sin(x / 9) + 40 * np.cos(y / 7)
        samples.append((base[..., None] * [1, 0.8, 0.6] + rng.normal(0, 10, (h, w, 3))).clip(0, 255).astype("u1"))
    return samples


def gray(rng, case):
    return [x[..., :1].copy() for x in smooth(rng, case)]


ARGS = [
    {"tiles_x": tx, "tiles_y": ty, "clip_limit": limit}
    for tx, ty, limit in ((4, 4, 2.0), (8, 2, 4.0), (1, 1, 3.0), (3, 5, 1.0), (4, 4, 0.0), (6, 8, 40.0), (2, 2, -1.0))
]
TestGray = op_test("clahe", reference, args=ARGS, make_input=gray, steps=1, share=0.03)
TestChannels = op_test(
    "clahe", reference, args=[{**a, "luma_only": False} for a in ARGS], make_input=smooth, steps=1, share=0.03
)
# Rounding L to integers causes steps in the tables, so the float64 reference sometimes differs considerably.
TestLightness = op_test("clahe", reference, args=ARGS, make_input=smooth, steps=64, share=0.8, dali_steps=2)


def test_lightness_alone_hardly_changes_a_colour():
    """The limit leaves uniform histograms, with nearly linear tables."""
    x = np.random.default_rng(5).integers(0, 256, (64, 64, 3)).astype("u1")
    light = lab(x)
    light[..., 0] = equalized(light[..., 0].astype("u1"), 1, 1, 1.0)
    got = run(x, tiles_x=1, tiles_y=1, clip_limit=1.0)
    off = np.abs(got.astype(int) - srgb(light))
    assert off.mean() < 0.7 and np.quantile(off, 0.99) <= 5


def run(x, **kwargs):
    @pipeline_def(batch_size=1)
    def pipe():
        return fn.clahe(fn.external_source(source=lambda i: [x], layout="HWC"), **kwargs)

    return pipe().run()[0].at(0)


@pytest.mark.parametrize("name, value", [("tiles_x", 0), ("tiles_y", -2)])
def test_tiles_are_positive(name, value):
    with pytest.raises(ValueError, match=f"{name}={value} must be at least 1"):
        run(np.zeros((4, 4, 3), "u1"), **{"tiles_x": 2, "tiles_y": 2, "clip_limit": 1.0, name: value})


def test_too_many_tiles():
    with pytest.raises(ValueError, match="tiles_x=2147483647 by tiles_y=2147483647 are too many tiles"):
        run(np.zeros((4, 4, 3), "u1"), tiles_x=2**31 - 1, tiles_y=2**31 - 1, clip_limit=1.0)


@pytest.mark.parametrize(
    "x, text",
    [
        (np.zeros((4, 4, 3), "f4"), "input type float32 is not supported"),
        (np.zeros((4, 4, 2), "u1"), "1 or 3 channels"),
    ],
)
def test_inputs_that_are_refused(x, text):
    with pytest.raises(RuntimeError, match=text):
        run(x, tiles_x=2, tiles_y=2, clip_limit=2.0)
