# SPDX-License-Identifier: Apache-2.0
"""Where rounding decides which pixel is taken: as in DALI, so that masks do not move when a program does."""

import numpy as np
import pytest


@pytest.fixture(scope="module")
def theirs():
    return pytest.importorskip("nvidia.dali", reason="the real DALI is not installed")


def outputs(m, define, n):
    pipe = m.pipeline_def(define, batch_size=n, num_threads=1, device_id=None)()
    pipe.build()
    out = pipe.run()[0]
    return [np.asarray(out.at(i)) for i in range(n)]


SIZES = [*range(1, 60), 100, 101, 127, 333, 375, 500]
PAIRS = [(of, to) for of in SIZES for to in [*SIZES, 224, 256, 512]]
FEW = [(of, to) for of in range(1, 30) for to in range(1, 60)]


def nearest(m, pairs, axis, layout, dtype, roi=None):
    n_axes = len(layout) - 1
    shapes = [[of if d == axis else 3 for d in range(n_axes)] for of, _ in pairs]
    samples = []
    for shape in shapes:
        ramp = (np.arange(shape[axis]) % 251).reshape([-1 if d == axis else 1 for d in range(n_axes)] + [1])
        samples.append(np.ascontiguousarray(np.broadcast_to(ramp, [*shape, 1])).astype(dtype))
    sizes = [np.float32([to if d == axis else 3 for d in range(n_axes)]) for _, to in pairs]
    region = {}
    if roi:
        ends = ([end if d == axis else float(k) for d in range(n_axes)] for k, end in enumerate(roi))
        region = {**dict(zip(("roi_start", "roi_end"), ends)), "roi_relative": True}

    def define():
        x = m.fn.external_source(source=lambda i: samples, layout=layout)
        size = m.fn.external_source(source=lambda i: sizes)
        return m.fn.resize(x, size=size, interp_type=m.types.INTERP_NN, **region)

    return outputs(m, define, len(pairs))


@pytest.mark.parametrize("dtype", ["u1", "f4"])
@pytest.mark.parametrize("axis", [0, 1])
def test_nearest_neighbours_of_images(theirs, axis, dtype):
    import penstock

    ours, want = (nearest(m, PAIRS, axis, "HWC", dtype) for m in (penstock, theirs))
    assert [p for p, a, b in zip(PAIRS, ours, want) if (a != b).any()] == []


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_nearest_neighbours_of_volumes(theirs, axis):
    import penstock

    ours, want = (nearest(m, FEW, axis, "DHWC", "f4") for m in (penstock, theirs))
    assert [p for p, a, b in zip(FEW, ours, want) if (a != b).any()] == []


@pytest.mark.parametrize("roi", [(0.1, 0.9), (0.9, 0.1), (0.33, 0.71), (1.0, 0.0)])
@pytest.mark.parametrize("axis", [0, 1])
def test_nearest_neighbours_in_a_region(theirs, axis, roi):
    import penstock

    ours, want = (nearest(m, FEW, axis, "HWC", "f4", roi) for m in (penstock, theirs))
    differing = [(a != b).any(axis=(1 - axis, 2)).sum() for a, b in zip(ours, want) if (a != b).any()]
    assert len(differing) <= len(FEW) / 80 and all(n == 1 for n in differing)


ANGLES = np.float32([0, 45, 90, 135, 180, 225, 270, 315, 360, -45, -90, 30, 60, 120, 10, 1, 89.9, 26.56505, 53.1301])


def rotated(m, image, kwargs):
    def define():
        x = m.fn.external_source(source=lambda i: [image] * len(ANGLES), layout="HWC")
        angle = m.fn.external_source(source=lambda i: list(ANGLES))
        return m.fn.rotate(x, angle=angle, interp_type=m.types.INTERP_NN, fill_value=0, **kwargs)

    return outputs(m, define, len(ANGLES))


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 3), (5, 4), (6, 7), (16, 9), (17, 31), (32, 32), (100, 75)])
@pytest.mark.parametrize("larger", [(0, 0), (3, 2)])
def test_nearest_neighbours_of_rotations(theirs, shape, larger):
    """DALI adds up the step from pixel to pixel of a row in float32, begun anew every 256 pixels, and so decides a
    tie by what it has rounded until then; ours computes each place by itself. They differ only where a place lies on
    the border of two pixels, within what the sum over a row is off."""
    import penstock

    h, w = shape
    size = h + larger[0], w + larger[1]
    number = np.arange(1, h * w + 1).reshape(h, w)
    image = np.stack([number % 256, number // 256], -1).astype("u1")
    ours, want = (rotated(m, image, {"size": size}) for m in (penstock, theirs))
    error = size[1] * np.spacing(np.float32(max(size)))
    down, across = np.mgrid[: size[0], : size[1]] + 0.5
    for degrees, a, b in zip(ANGLES, ours, want):
        turn = np.deg2rad(float(degrees))
        y, x = down - size[0] / 2, across - size[1] / 2
        places = np.cos(turn) * x - np.sin(turn) * y + w / 2, np.sin(turn) * x + np.cos(turn) * y + h / 2
        off = np.min([np.abs(p - np.round(p)) for p in places], axis=0)
        assert ((a == b).all(axis=-1) | (off < error)).all(), degrees
