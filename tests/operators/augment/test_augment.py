# SPDX-License-Identifier: Apache-2.0
"""Each kind of step compared with its definition, and random draws from a table. Policies, suites and the decorator are
tested in tests/auto_aug."""

import numpy as np
import pytest
from scipy import ndimage, stats

from harness import op_test, per_sample, saturate
from penstock import fn, pipeline_def, types
from penstock.core.op import REGISTRY
from penstock.graph import trace
from penstock.operators.augment._steps import FLOATS, PROBABILITY, rows_of


def warped(x, matrix, fill_value, interp_type):
    """The image at (matrix @ (column, row, 1)) for each output pixel, by pixel centres."""
    h, w, c = x.shape
    v, u = np.mgrid[:h, :w] + 0.5
    columns, rows = (matrix[i][0] * u + matrix[i][1] * v + matrix[i][2] - 0.5 for i in (0, 1))
    if interp_type == types.INTERP_NN:
        columns, rows = np.floor(columns + 0.5), np.floor(rows + 0.5)
    left, top = np.floor(columns), np.floor(rows)
    total = np.zeros((h, w, c))
    for dy, dx in ((0, 0), (0, 1), (1, 0), (1, 1)):
        ix, iy = (left + dx).astype("i8"), (top + dy).astype("i8")
        inside = (ix >= 0) & (ix < w) & (iy >= 0) & (iy < h)
        tap = x[np.clip(iy, 0, h - 1), np.clip(ix, 0, w - 1)].astype("f8") if x.size else total
        if fill_value is not None:
            tap = np.where(inside[..., None], tap, fill_value)
        weight = (1 - abs(columns - left - dx)) * (1 - abs(rows - top - dy))
        total += tap * weight[..., None]
    return saturate(total, "u1")


def matrix_of(kind, p, shape, x):
    """From output to input."""
    if kind == "shear":
        return np.linalg.inv([[1, p[0], 0], [p[1], 1, 0], [0, 0, 1]])
    if kind == "rotate":
        c, s = np.cos(np.deg2rad(p[0])), np.sin(np.deg2rad(p[0]))
        cx, cy = x.shape[1] / 2, x.shape[0] / 2
        return np.array([[c, -s, cx - c * cx + s * cy], [s, c, cy - s * cx - c * cy]])
    by = p if kind == "translate" else (p[0] * shape[1], p[1] * shape[0])
    return np.array([[1, 0, -by[0]], [0, 1, -by[1]]])


def spread(channel):
    if channel.size == 0 or channel.min() == channel.max():
        return channel
    found, counts = np.unique(channel, return_counts=True)
    below = np.cumsum(counts) - counts[0]
    return np.round(255 * below / below[-1]).astype("u1")[np.searchsorted(found, channel)]


def stretched(channel):
    if channel.size == 0 or channel.min() == channel.max():
        return channel
    lo, hi = float(channel.min()), float(channel.max())
    return saturate((channel - lo) * (255 / (hi - lo)), "u1")


def saturation(x, factor):
    """The linear map that preserves grey and scales chroma in the YIQ space of NTSC."""
    to_yiq = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]])
    matrix = np.linalg.inv(to_yiq) @ np.diag([1, factor, factor]) @ to_yiq
    return saturate(x.astype("f8") @ matrix.T, "u1")


def reference(x, kind, parameter=(), fill_value=None, interp_type=types.INTERP_LINEAR, shape=None):
    p = np.asarray(parameter, "f8")
    wide = x.astype("f8")
    if kind in ("shear", "translate", "translate_relative", "rotate"):
        return warped(x, matrix_of(kind, p, shape, x), fill_value, interp_type)
    if kind == "sharpness":
        if not x.size:
            return x
        planes = [ndimage.correlate(wide[..., c], p.reshape(3, 3), mode="mirror") for c in range(x.shape[-1])]
        return saturate(np.stack(planes, -1), "u1")
    if kind in ("equalize", "auto_contrast"):
        change = spread if kind == "equalize" else stretched
        return np.stack([change(x[..., c]) for c in range(x.shape[-1])], -1)
    if kind == "contrast":
        weights = [0.299, 0.587, 0.114] if x.shape[-1] == 3 else [1.0]
        center = wide.mean(axis=(0, 1)) @ weights if x.size else 0
        return saturate(center + (wide - center) * p[0], "u1")
    return {
        "identity": lambda: x,
        "color": lambda: saturation(x, p[0]),
        "brightness": lambda: saturate(wide * p[0], "u1"),
        "posterize": lambda: x & np.uint8(p[0]),
        "solarize": lambda: np.where(x < p[0], x, 255 - x),
        "solarize_add": lambda: np.where(x < 128, x + np.uint8(p[0]), x),
        "invert": lambda: 255 - x,
    }[kind]()


SMOOTH = np.full(9, 0.05).tolist()
SMOOTH[4] = 0.6
VALUES = [
    {"kind": "brightness", "parameter": per_sample(0.1, 1.9, (1,))},
    {"kind": "posterize", "parameter": [0xE0]},
    {"kind": "solarize", "parameter": per_sample(0, 256, (1,), "i4")},
    {"kind": "solarize_add", "parameter": [110]},
    {"kind": "invert", "parameter": [0.0]},
    {"kind": "identity", "parameter": [0.0]},
    {"kind": "equalize", "parameter": [0.0]},
    {"kind": "auto_contrast", "parameter": [0.0]},
]
COLORS = [
    {"kind": "contrast", "parameter": per_sample(0.1, 1.9, (1,))},
    {"kind": "color", "parameter": per_sample(0.1, 1.9, (1,))},
]
FILTERS = [
    {"kind": "sharpness", "parameter": SMOOTH},
    {"kind": "sharpness", "parameter": [-0.05] * 4 + [1.4] + [-0.05] * 4},
    {"kind": "sharpness", "parameter": per_sample(-0.3, 0.5, (9,))},
]
WARPS = [
    {"kind": "shear", "parameter": [0.3, 0.0], "fill_value": 128.0},
    {"kind": "shear", "parameter": per_sample(-0.3, 0.3, (2,))},
    {"kind": "translate", "parameter": per_sample(-5, 6, (2,)), "fill_value": 7.0},
    {"kind": "translate", "parameter": [3.0, -2.0], "interp_type": types.INTERP_NN},
    {"kind": "translate_relative", "parameter": [0.2, -0.1], "shape": per_sample(4, 20, (2,), "i4")},
    {"kind": "translate_relative", "parameter": [0.25, 0.5], "shape": [8.0, 20.0], "fill_value": 0.0},
    {"kind": "rotate", "parameter": per_sample(-135, 135, (1,))},
    {"kind": "rotate", "parameter": [30.0], "fill_value": 255.0},
]

NAME = "_auto_aug.augment"
LAYOUTS = ("HWC", "FHWC")
TestValues = op_test(NAME, reference, layouts=LAYOUTS, args=VALUES, steps=1, share=0.002)
TestChannels = [op_test(NAME, reference, args=VALUES[-3:], steps=1, share=0.002, channels=c) for c in (1, 2, 4, 5)]
TestOneChannel, TestTwoChannels, TestFourChannels, TestFiveChannels = TestChannels
TestContrast = op_test(NAME, reference, layouts=LAYOUTS, args=COLORS[:1], steps=1, share=0.002)
TestGreyContrast = op_test(NAME, reference, args=COLORS[:1], steps=1, share=0.002, channels=1)
TestColor = op_test(NAME, reference, layouts=LAYOUTS, args=COLORS[1:], steps=1, share=0.02)
TestFilters = op_test(NAME, reference, layouts=LAYOUTS, args=FILTERS, steps=1, share=0.03)
TestGreyFilters = op_test(NAME, reference, args=FILTERS, steps=1, share=0.03, channels=1)
TestWarps = op_test(
    NAME,
    reference,
    layouts=LAYOUTS,
    args=WARPS,
    steps=1,
    share=0.05,
    errors=[
        ({"interp_type": types.INTERP_CUBIC}, ValueError, "INTERP_CUBIC.*is not supported; supported: INTERP_LINEAR"),
        ({"kind": "rotate"}, RuntimeError, "rotate takes 1 value, got 2"),
        ({"kind": "translate_relative"}, RuntimeError, "needs `shape`, its height and width"),
    ],
)


# What is drawn. -------------------------------------------------------------------------------------------------------


def drawn(table, n=6000, seed=1, gpu=False, threads=1, value=0, **kwargs):
    """The first value of each of n black images after the steps of the table, one of which is drawn."""

    @pipeline_def(batch_size=n, num_threads=threads, seed=seed, device_id=0 if gpu else None)
    def pipe():
        x = types.Constant(np.full((1, 1, 3), value, np.uint8), layout="HWC")
        x = x.gpu() if gpu else x
        return trace.call(REGISTRY[NAME], (x,), {"table": table, **kwargs})

    (out,) = pipe().run()
    return (out.as_cpu() if gpu else out).as_array()[:, 0, 0, 0].astype("i8")


def adding(shifts, probability=1.0):
    """Rows that add these shifts to a black image."""
    rows = rows_of("solarize_add", np.asarray(shifts).reshape(-1, 1))[:, 0]
    rows[:, PROBABILITY] = probability
    return rows


def check_uniform(counts, p=None):
    expected = None if p is None else np.asarray(p) * np.sum(counts)
    assert stats.chisquare(counts, expected).pvalue > 1e-4, counts


def test_items_bins_and_signs_are_equally_likely():
    items, bins = 5, 3
    values = drawn(adding(np.arange(items * bins * 2)), bins=bins)
    check_uniform(np.bincount(values, minlength=items * bins * 2))


def test_stages_are_independent():
    first = np.arange(4)
    table = np.repeat(adding(first), 2, axis=0)  # both signs alike
    values = drawn(table, stages=2)
    expected = np.zeros(7)
    for a in first:
        for b in first:
            expected[a + b] += 1 / 16
    check_uniform(np.bincount(values, minlength=7), expected)


def test_probabilities_are_those_of_the_rows():
    table = np.repeat(adding([1, 10, 2, 20], [0.3, 0.8, 1.0, 0.0]), 2, axis=0)
    values = drawn(table, stages=2, policies=True, n=20000)
    want = {0: 0.5 * 0.7 * 0.2, 1: 0.5 * 0.3 * 0.2, 10: 0.5 * 0.7 * 0.8, 11: 0.5 * 0.3 * 0.8, 2: 0.5}
    assert set(values.tolist()) == set(want)
    check_uniform([np.count_nonzero(values == v) for v in want], list(want.values()))


def test_what_is_drawn_is_given_by_the_seed_alone():
    table = adding(np.arange(100))
    values = drawn(table)
    assert (drawn(table, threads=3) == values).all() and (drawn(table, seed=2) != values).any()
    assert (drawn(table, n=64)[:64] == values[:64]).all()
    assert (drawn(table, n=64, gpu=True) == values[:64]).all()


def test_epochs_and_batches_draw_anew():
    @pipeline_def(batch_size=50, num_threads=1, seed=1)
    def pipe():
        x = types.Constant(np.zeros((1, 1, 3), np.uint8), layout="HWC")
        return trace.call(REGISTRY[NAME], (x,), {"table": adding(np.arange(100))})

    p = pipe()
    first, second = (p.run()[0].as_array().copy() for _ in range(2))
    assert (first != second).any()


def test_given_items_and_bins():
    table = adding(np.arange(12))
    pairs = [(i, b) for i in range(2) for b in range(6)]

    @pipeline_def(batch_size=12, num_threads=1)
    def pipe():
        x = types.Constant(np.zeros((1, 1, 3), np.uint8), layout="HWC")
        item, bin_ = (fn.external_source(source=lambda i, k=k: [np.int32(p[k]) for p in pairs]) for k in (0, 1))
        return trace.call(REGISTRY[NAME], (x,), {"table": table, "bins": 3, "item": item, "bin": bin_})

    assert pipe().run()[0].as_array()[:, 0, 0, 0].tolist() == list(range(12))
    pairs[5] = (2, 0)
    with pytest.raises(RuntimeError, match=r"item \[2\] with bin \[0\] is out of range"):
        pipe().run()


def test_types_and_channels_that_are_refused():
    def run(image, kind):
        @pipeline_def(batch_size=1, num_threads=1)
        def pipe():
            x = types.Constant(image, layout="HWC")
            return trace.call(REGISTRY[NAME], (x,), {"kind": kind, "parameter": [1.0]})

        return pipe().run()

    with pytest.raises(RuntimeError, match="images are uint8, got float32"):
        run(np.zeros((2, 2, 3), np.float32), "invert")
    with pytest.raises(RuntimeError, match="color needs 3 channels, got 1"):
        run(np.zeros((2, 2, 1), np.uint8), "color")
    with pytest.raises(RuntimeError, match="contrast needs 1 or 3 channels, got 4"):
        run(np.zeros((2, 2, 4), np.uint8), "contrast")


@pytest.mark.parametrize("gpu", [False, True], ids=["cpu", "gpu"])
@pytest.mark.parametrize("stages", [1, 2, 3, 4])
def test_steps_follow_each_other(stages, gpu):
    """Any number of steps in one operator."""
    kinds = [("equalize", []), ("rotate", [20.0]), ("contrast", [1.5]), ("invert", [])][:stages]
    rng = np.random.default_rng(3)
    images = [rng.integers(0, 256, (h, w, 3), np.uint8) for h, w in ((17, 13), (5, 40), (1, 1), (0, 3))]
    table = np.concatenate([np.repeat(rows_of(k, np.float64([p]))[:, 0], 2, axis=0) for k, p in kinds])

    @pipeline_def(batch_size=len(images), num_threads=2, device_id=0 if gpu else None)
    def pipe():
        x = fn.external_source(source=lambda i: images, layout="HWC")
        x = x.gpu() if gpu else x
        apart = x
        for kind, p in kinds:
            apart = trace.call(REGISTRY[NAME], (apart,), {"kind": kind, "parameter": p or [0.0]})
        return trace.call(REGISTRY[NAME], (x,), {"table": table, "stages": stages, "policies": True}), apart

    together, apart = (o.as_cpu() if gpu else o for o in pipe().run())
    for i in range(len(images)):
        np.testing.assert_array_equal(together.at(i), apart.at(i))


def test_the_table_has_rows_of_floats():
    assert rows_of("rotate", np.zeros((4, 1))).shape == (4, 1, FLOATS)
