# SPDX-License-Identifier: Apache-2.0
"""Affine transformations on the device against the CPU's."""

import numpy as np
import pytest
from segments import Segment, Step

from penstock.core.batch import Spec

RNG = np.random.default_rng(4)
SIZES = (((20, 30), (25, 35)), ((1, 1), (6, 4)), ((33, 7), (10, 50)), ((40, 41), (40, 41)), ((9, 9), (0, 5)))


def case(dtype="u1", to=None, channels=3, sizes=SIZES, dims=2, linear=1, clamp=0, fill=42.4, origin=None, layout=None):
    n = len(sizes)
    layout = layout or "DHWC"[-dims - 1 :]
    shapes = [np.array([(*s[k], channels) for s in sizes]) for k in (0, 1)]
    if np.dtype(dtype).kind == "f":
        samples = [RNG.normal(0, 90, s).astype(dtype) for s in shapes[0]]
    else:
        samples = [RNG.integers(0, 200, s).astype(dtype) for s in shapes[0]]
    matrix = np.zeros((n, 12), "f4")
    for m in matrix[: len(sizes)]:
        part = np.eye(dims) + RNG.normal(0, 0.3, (dims, dims))
        shift = RNG.normal(0, 2, dims)
        m[: dims * (dims + 1)] = np.concatenate([part, shift[:, None]], 1).reshape(-1)
    columns = {"matrix": matrix, "fill": fill, "clamp": clamp, "linear": linear, "dims": dims}
    if origin is not None:
        columns["origin"] = np.array([origin])
    specs = {0: Spec(shapes[0], np.dtype(dtype), layout), 1: Spec(shapes[1], np.dtype(to or dtype), layout)}
    return Segment([Step("geometry/warp", [1], [0], columns)], specs, {0: samples}, {1})


@pytest.mark.parametrize("clamp", (0, 1))
@pytest.mark.parametrize("linear", (0, 1))
@pytest.mark.parametrize("of, to", (("u1", "u1"), ("u1", "f4"), ("i2", "i2"), ("f4", "f4"), ("f4", "u1"), ("i4", "f4")))
def test_images(of, to, linear, clamp):
    case(of, to, linear=linear, clamp=clamp).check(offsets=(0, 1))


@pytest.mark.parametrize("channels", (1, 2, 4, 6))
def test_channels(channels):
    case(channels=channels).check()


@pytest.mark.parametrize("clamp", (0, 1))
@pytest.mark.parametrize("linear", (0, 1))
@pytest.mark.parametrize("channels", (1, 5))
def test_volumes(channels, linear, clamp):
    sizes = [((4, 8, 9), (5, 9, 7)), ((1, 1, 1), (2, 3, 2)), ((6, 5, 1), (6, 6, 6))]
    case("u1", None, channels, sizes, 3, linear, clamp).check()


def test_windows():
    case(origin=[3, 5, 0]).check()


def test_an_empty_input_is_filled():
    case(sizes=[((0, 4), (3, 5)), ((5, 6), (4, 4))]).check()


def test_normalizing_is_part_of_the_launch():
    segment = case(sizes=SIZES[:1])
    columns = {"mul": 0.5, "add": 7}
    segment.steps.append(Step("color/linear", [2], [1], columns))
    segment.specs[2] = segment.specs[1].like(dtype=np.dtype("f4"))
    segment.kept = {2}
    assert len(segment.launches()[1]) == 1
    segment.check()
