# SPDX-License-Identifier: Apache-2.0
"""Gathers along rows that are as long as several strips of a warp, against the CPU's."""

from itertools import product

import numpy as np
import pytest
from segments import Segment, Step

from penstock.core.batch import Spec

RNG = np.random.default_rng(14)
SIZES = ((9, 131), (11, 75), (5, 160), (0, 4), (6, 1))
PERSPECTIVE, SPHERE, WATER, JITTER = 1, 2, 3, 4
NEAREST, LINEAR, CUBIC = 0, 1, 2


def samples(dtype, layout, channels, sizes=SIZES):
    shapes = [{"HWC": (h, w, channels), "CHW": (channels, h, w), "FHWC": (2, h, w, channels)}[layout] for h, w in sizes]
    drawn = [RNG.normal(0, 90, s) if np.dtype(dtype).kind == "f" else RNG.integers(0, 200, s) for s in shapes]
    return np.array(shapes), [x.astype(dtype) for x in drawn]


def segment(kernel, columns, dtype="u1", channels=3, layout="HWC", to=None, sizes=SIZES):
    shapes, inputs = samples(dtype, layout, channels, sizes)
    specs = {0: Spec(shapes, np.dtype(dtype), layout), 1: Spec(shapes, np.dtype(to or dtype), layout)}
    return Segment([Step(kernel, [1], [0], columns)], specs, {0: inputs}, {1})


def warp(linear=1, clamp=0, **kwargs):
    matrix = np.array([[0.9, 0.2, 5.1, -0.07, 0.95, 0.7]], "f4")
    columns = {"matrix": np.pad(matrix, ((0, 0), (0, 6))), "fill": 42.4, "clamp": clamp, "linear": linear, "dims": 2}
    return segment("geometry/warp", columns, **kwargs)


def displace(kind, p=(), interp=NEAREST, border=0, layout="HWC", sizes=SIZES, **kwargs):
    columns = {
        "p": np.array([[*p, *(0,) * (9 - len(p))]], "f4"),
        "fill": np.array([[7, 8, 9, 10]], "f4"),
        "n_fill": 4,
        "range": 2,
        "extent": np.array([(w, h) for h, w in sizes]),
        "origin": np.array([[0, 0]]),
        "key": 77,
        "position": np.arange(len(sizes), dtype="u8"),
        "kind": kind,
        "interp": interp,
        "border": border,
        "planar": layout == "CHW",
    }
    return segment("geometry/displace", columns, layout=layout, sizes=sizes, **kwargs)


@pytest.mark.parametrize("channels", (1, 2, 3, 4))
@pytest.mark.parametrize("of, to", (("u1", "u1"), ("u1", "f4"), ("i2", "i2"), ("f4", "f4"), ("f4", "u1")))
def test_types_and_channels(of, to, channels):
    """Pixels of all sizes, at addresses aligned only to their elements."""
    warp(dtype=of, to=to, channels=channels).check(offsets=(0, 1, 3))


@pytest.mark.parametrize("linear, clamp", ((0, 0), (0, 1), (1, 1)))
def test_borders(linear, clamp):
    warp(linear, clamp).check(offsets=range(16))


def test_frames():
    warp(layout="FHWC").check()


@pytest.mark.parametrize("layout", ("HWC", "CHW"))
@pytest.mark.parametrize("dtype, interp", (("u1", NEAREST), ("u1", LINEAR), ("u1", CUBIC), ("f4", LINEAR)))
@pytest.mark.parametrize("kind", (SPHERE, JITTER))
def test_displacements(kind, dtype, interp, layout):
    displace(kind, interp=interp, dtype=dtype, layout=layout).check(offsets=(0, 1))


def test_perspective():
    displace(PERSPECTIVE, (0.9, 0.1, 5, -0.1, 0.9, 2, 0.0002, 0.0001, 1), LINEAR).check(offsets=(0, 1))


@pytest.mark.parametrize("width", (150, 1100))
def test_water(width):
    """Waves differ in the last bits between CPU and GPU, so the nearest neighbour may differ."""
    s = displace(WATER, (10, 0.06, 0.1, 7, 0.04, 0.3), sizes=((20, width),) * 2)
    cpu, gpu = s.on_cpu()[1], s.on_device()[1]
    for a, b in zip(cpu, gpu):
        assert (a != b).mean() < 1e-3


@pytest.mark.parametrize("dtype, algorithm", [*product(("u1", "u2"), range(4)), ("u1", 4)])
def test_debayer(dtype, algorithm):
    sizes = ((10, 132), (12, 76), (6, 20))
    mosaics = [RNG.integers(0, 200, s).astype(dtype) for s in sizes]
    shapes = np.array([(*s, 1 if algorithm == 2 else 3) for s in sizes])
    specs = {0: Spec(np.array(sizes), np.dtype(dtype), "HW"), 1: Spec(shapes, np.dtype(dtype), "HWC")}
    step = Step("color/debayer", [1], [0], {"algorithm": algorithm, "row": 1, "column": 0})
    s = Segment([step], specs, {0: mosaics}, {1})
    assert "run_gather<" in s.launches()[1][0].source
    s.check(offsets=(0, 1))


@pytest.mark.parametrize("dtype", ("f4", "f2", "u1"))
@pytest.mark.parametrize("mirrored", (-1, 2))
def test_what_follows_is_part_of_the_launch(dtype, mirrored):
    """Pixels are written to planes, in reverse order."""
    s = warp(sizes=SIZES[:3])
    shapes = s.specs[1].shape[:, [2, 0, 1]]
    columns = {
        "axis": np.array([[2, 0, 1, 0, 0, 0, 0, 0]]),
        "channels": 0,
        "mirrored": mirrored,
        "first": np.array([[0, 0, w - 1 if mirrored == 2 else 0, 0, 0, 0, 0, 0] for _, w in SIZES[:3]]),
        "mean": np.array([[100.0, 110, 120]], "f4"),
        "scale": np.array([[0.5, 0.25, 2]], "f4"),
        "fill": np.array([[0.0, 0, 0]], "f4"),
    }
    s.specs[2] = Spec(shapes, np.dtype(dtype), "CHW")
    s.steps.append(Step("geometry/crop_mirror_normalize", [2], [1], columns))
    s.kept = {2}
    (launch,) = s.launches()[1]
    assert "run_gather<" in launch.source
    s.check(offsets=(0, 1))
