# SPDX-License-Identifier: Apache-2.0
"""Resampling on the device against the CPU's."""

import numpy as np
import pytest
from segments import Segment, Step

from penstock.core.batch import Spec

NN, LINEAR, CUBIC, LANCZOS3, TRIANGULAR, GAUSSIAN = range(6)
RNG = np.random.default_rng(2)
# in and out sizes: shrinking, growing, equal, one pixel, wider than a tile, much smaller
SIZES = (
    ((37, 53), (16, 23)),
    ((9, 7), (40, 33)),
    ((20, 20), (20, 20)),
    ((1, 1), (3, 2)),
    ((70, 610), (41, 301)),
    ((300, 430), (7, 5)),
    ((13, 1), (5, 9)),
)


def three(x):
    out = np.zeros((len(x), 3), np.asarray(x).dtype)
    out[:, : np.shape(x)[1]] = x
    return out


class Case:
    """Images, or volumes, that are resized."""

    def __init__(self, dtype, to=None, channels=3, layout="HWC", sizes=SIZES, filters=LINEAR, antialias=1, **more):
        n, spatial = len(sizes), layout.replace("C", "")
        ins, outs = np.array([a for a, _ in sizes]), np.array([b for _, b in sizes])
        axes = [layout.find(c) for c in spatial]
        shapes = [np.full((n, len(layout)), channels) for _ in range(2)]
        shapes[0][:, axes], shapes[1][:, axes] = ins, outs
        self.spec = Spec(shapes[0], np.dtype(dtype), layout)
        self.out = Spec(shapes[1], np.dtype(to or dtype), layout)
        high = 256 if dtype == "u1" else 30000
        self.samples = [
            RNG.integers(0, high, s).astype(dtype) if np.dtype(dtype).kind != "f" else RNG.random(s, "f4") * 200 - 30
            for s in shapes[0]
        ]
        self.columns = {
            "roi_start": three(np.zeros_like(ins, "f8")),
            "roi_end": three(ins.astype("f8")),
            "in_size": three(ins),
            "out_size": three(outs),
            "first_axis": axes[0],
            "n_axes": len(axes),
            "min_filter": filters,
            "mag_filter": filters,
            "antialias": antialias,
            **more,
        }

    def segment(self):
        return Segment(
            [Step("resample/resample", [1], [0], self.columns)], {0: self.spec, 1: self.out}, {0: self.samples}, {1}
        )

    def check(self, steps=0, **options):
        self.segment().check(steps, **options)


@pytest.mark.parametrize("channels", (1, 3, 4))
@pytest.mark.parametrize("filters", range(6))
def test_bytes(filters, channels):
    Case("u1", None, channels, filters=filters).check(1, offsets=(0, 1))


@pytest.mark.parametrize("antialias", (0, 1))
def test_filters_of_their_own_for_shrinking_and_growing(antialias):
    case = Case(
        "u1", antialias=antialias, min_filter=np.array([CUBIC, LANCZOS3] * 3 + [TRIANGULAR]), mag_filter=LANCZOS3
    )
    case.check(1)


@pytest.mark.parametrize("filters", range(6))
@pytest.mark.parametrize("of, to", (("u1", "f4"), ("f4", "f4"), ("i2", "i2"), ("u2", "u2"), ("i2", "f4")))
def test_other_types(of, to, filters):
    Case(of, to, filters=filters).check(32 if to == "f4" else 1)


@pytest.mark.parametrize("layout", ("CHW", "HWC"))
@pytest.mark.parametrize("channels", (1, 2, 3, 4, 5))
def test_layouts(layout, channels):
    Case("u1", None, channels, layout).check(1)
    Case("f4", None, channels, layout).check(64)


def test_regions_and_mirrored_axes():
    case = Case("u1", filters=TRIANGULAR)
    ins = case.columns["in_size"].astype("f8")
    case.columns["roi_start"] = ins * [[0.25, 0.9, 0]]
    case.columns["roi_end"] = ins * [[0.8, 0.1, 0]]
    case.check(1)


@pytest.mark.parametrize("to", ("u1", "f4"))
def test_windows_of_both_sides(to):
    """As in the executor if a later crop needs only a part."""
    case = Case("u1", to, sizes=[((90, 120), (40, 50))] * 3, filters=np.array([LINEAR, CUBIC, NN]))
    case.columns["out_origin"] = three(np.array([[5, 7], [0, 0], [38, 1]]))
    case.columns["in_origin"] = three(np.array([[0, 0], [2, 0], [60, 0]]))
    part = case.samples
    case.samples = [part[0], part[1][2:60, :], part[2][60:, :]]
    case.columns["in_origin"][1, 0] = 0
    case.samples[1] = part[1][:60]
    case.spec = Spec(np.array([x.shape for x in case.samples]), case.spec.dtype, "HWC")
    case.out = Spec(np.array([[20, 33, 3], [13, 50, 3], [2, 20, 3]]), case.out.dtype, "HWC")
    case.check(1 if to == "u1" else 32)


def test_many_taps():
    sizes = [((2100, 3), (1, 3)), ((3, 2100), (3, 2)), ((40, 3000), (20, 10))]
    Case("u1", sizes=sizes, filters=LANCZOS3).check(1)
    # Sums of 9000 products in float32 in another order: the error is at most n eps times their magnitude, a few times
    # the result.
    Case("f4", sizes=[((9000, 2), (1, 2)), ((2, 9000), (2, 1))], filters=LANCZOS3).check(1024)


@pytest.mark.parametrize("of, to", (("u1", "u1"), ("f4", "f4")))
@pytest.mark.parametrize("layout", ("DHWC", "CDHW"))
def test_volumes(layout, of, to):
    sizes = [((5, 9, 7), (3, 4, 9)), ((1, 1, 1), (2, 2, 2)), ((6, 5, 4), (6, 5, 4))]
    Case(of, to, 2, layout, sizes, filters=np.array([LINEAR, NN, CUBIC])).check(1 if of == "u1" else 64)


def test_sizes_are_saved():
    case = Case("u1")
    segment = case.segment()
    n = len(SIZES)
    segment.specs[2] = Spec.uniform(n, (2,), "i4")
    segment.steps[0].outs.append(2)
    segment.steps[0].columns["save_sizes"] = 1
    segment.kept.add(2)
    segment.check(1)


@pytest.mark.parametrize("of", ("u1", "f4"))
def test_empty_outputs(of):
    Case(of, sizes=[((5, 4), (0, 3)), ((5, 4), (2, 0)), ((6, 7), (3, 4))]).check(1)


def eight(rows):
    rows = np.asarray(rows)
    out = np.zeros((len(rows), 8), rows.dtype)
    out[:, : rows.shape[1]] = rows
    return out


def normalized(case, dtype, to="CHW", pad=0, mirror=True, axes=None):
    """The case followed by crop_mirror_normalize, with a window that exceeds the image by `pad`."""
    segment = case.segment()
    n, shape = case.out.n, case.out.shape
    axes = axes or ["HWC".find(c) for c in to]
    c = axes.index(2)
    first = np.zeros((n, 3), "i8")
    out = np.maximum(shape[:, axes] - 3, 1) + (np.array(axes) != 2) * pad
    out[:, c] = 3
    for d, a in enumerate(axes):
        if a != 2:
            first[:, d] = -pad + RNG.integers(0, 3, n)
    w = axes.index(1)
    turned = RNG.integers(0, 2, n) == 1 if mirror else np.zeros(n, bool)
    first[:, w] += np.where(turned, out[:, w] - 1, 0)
    columns = {"axis": eight(np.array([axes], "i4")), "first": eight(first), "channels": c}
    columns |= {"mirrored": np.where(turned, w, -1), "mean": np.array([[120.0, 110, 100]], "f4")}
    columns |= {"scale": np.array([[0.02, 0.019, 0.018]], "f4"), "fill": np.array([[1.0, 2, 3]], "f4")}
    segment.steps.append(Step("geometry/crop_mirror_normalize", [2], [1], columns))
    segment.specs[2] = Spec(out, np.dtype(dtype), to)
    segment.kept = {2}
    return segment


@pytest.mark.parametrize("pad", (0, 4))
@pytest.mark.parametrize("to", ("CHW", "HWC"))
@pytest.mark.parametrize("of", ("u1", "f4"))
def test_normalizing_is_part_of_the_launch(of, to, pad):
    sizes = SIZES[:1] + SIZES[3:6]
    segment = normalized(Case(of, sizes=sizes, filters=TRIANGULAR), "f4", to, pad)
    assert len(segment.launches()[1]) == 1
    want, got = segment.on_cpu()[2], segment.on_device()[2]
    for a, b in zip(want, got):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=0.021 if of == "u1" else 1e-4)


def test_turned_axes_are_a_launch_of_their_own():
    segment = normalized(Case("u1", sizes=SIZES[:2]), "f4", "CWH", axes=[2, 1, 0])
    assert len(segment.launches()[1]) == 2
    for a, b in zip(segment.on_cpu()[2], segment.on_device()[2]):
        np.testing.assert_allclose(a, b, atol=0.021)
