# SPDX-License-Identifier: Apache-2.0
"""If rounding decides which pixel is used, the result is DALI's, so that masks do not change when a program is
ported."""

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


# Sizes with fractions show a region that starts or ends within a pixel; limits and means make such sizes.
FRACTIONS = {
    "max_size": ("resize", "HWC", {"resize_shorter": 7, "max_size": 11}),
    "max_size of two axes": ("resize", "HWC", {"size": [8, 6], "mode": "not_smaller", "max_size": [9, 7]}),
    "fractions": ("resize", "HWC", {"resize_shorter": 7.5}),
    "mean of two": ("resize", "DHWC", {"resize_x": 7, "resize_y": 11}),
    "mean and max_size": ("resize", "DHWC", {"resize_x": 7, "resize_y": 9, "max_size": 8}),
    "max_size of volumes": ("resize", "DHWC", {"resize_shorter": 6, "max_size": 13}),
    "tensor, max_size": (
        "tensor_resize",
        "HWC",
        {"sizes": [7, 7], "axes": [0, 1], "mode": "not_smaller", "max_size": 11},
    ),
    "tensor, one of two": ("tensor_resize", "HWC", {"sizes": [8, 0], "axes": [0, 1]}),
    "tensor, all axes": ("tensor_resize", "HWC", {"sizes": [7.3, 0, 3]}),
}


@pytest.mark.parametrize("case", FRACTIONS)
def test_nearest_neighbours_with_fractions(theirs, case):
    import penstock

    name, layout, kwargs = FRACTIONS[case]
    rng = np.random.default_rng(5)
    shapes = rng.integers(1, 40 if layout == "HWC" else 25, (400, len(layout) - 1))
    samples = [np.stack(np.indices(shape), -1).astype("u1") for shape in shapes]
    if layout == "HWC":
        samples = [np.concatenate([x, x[..., :1]], -1) for x in samples]

    def of(m):
        resize = m.fn.resize if name == "resize" else m.fn.experimental.tensor_resize

        def define():
            x = m.fn.external_source(source=lambda i: samples, layout=layout)
            return resize(x, interp_type=m.types.INTERP_NN, **kwargs)

        return outputs(m, define, len(samples))

    for shape, ours, want in zip(shapes, of(penstock), of(theirs), strict=True):
        np.testing.assert_array_equal(ours, want, str(shape))


RNG = np.random.default_rng(8)
ANGLES = np.float32([*range(-180, 405, 45), 30, 60, 120, 10, 1, 0.1, 0.01, 89.9, 26.56505, 53.1301, 327.56366])
ANGLES = np.concatenate([ANGLES, RNG.uniform(-400, 400, 20).astype("f4")])
# Steps are accumulated along 256 pixels of a row, then restarted.
SHAPES = [(1, 1), (2, 2), (5, 4), (6, 7), (17, 31), (32, 32), (100, 75), (30, 256), (17, 700), (9, 1030), (300, 520)]


def numbered(shape):
    number = np.arange(np.prod(shape)).reshape(shape)
    return np.stack([number % 256, number // 256 % 256, number // 65536], -1).astype("u1")


def warped(m, op, image, columns, **kwargs):
    """`columns`: arguments that differ between samples, all of the same image."""
    n = len(next(iter(columns.values())))

    def define():
        x = m.fn.external_source(source=[[image] * n], cycle=True, layout="DHWC"[-image.ndim :])
        more = {k: m.fn.external_source(source=[list(v)], cycle=True) for k, v in columns.items()}
        return getattr(m.fn, op)(x, fill_value=0, **more, **kwargs)

    return outputs(m, define, n)


def differing(theirs, *args, interp="INTERP_NN", **kwargs):
    """How many pixels differ, for each sample."""
    import penstock

    ours, want = (warped(m, *args, interp_type=getattr(m.types, interp), **kwargs) for m in (penstock, theirs))
    return [int((a != b).any(axis=-1).sum()) for a, b in zip(ours, want, strict=True)]


@pytest.mark.parametrize("interp", ["INTERP_NN", "INTERP_LINEAR"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("larger", [(0, 0), (3, 2)])
def test_rotations(theirs, shape, larger, interp):
    size = shape[0] + larger[0], shape[1] + larger[1]
    columns = {"angle": ANGLES}
    assert differing(theirs, "rotate", numbered(shape), columns, size=size, interp=interp) == [0] * len(ANGLES)


def test_rotations_of_their_own_size(theirs):
    columns = {"angle": ANGLES}
    assert differing(theirs, "rotate", numbered((33, 58)), columns) == [0] * len(ANGLES)


@pytest.mark.parametrize("interp", ["INTERP_NN", "INTERP_LINEAR"])
@pytest.mark.parametrize("quarters", [False, True])
@pytest.mark.parametrize("size", [(40, 60), (20, 1300), (103, 522)])
def test_affine_maps(theirs, size, quarters, interp):
    matrices = RNG.normal(0, [0.4, 1, 50], (40, 2, 3)) + [[0, 0, 60], [0, 0, 40]]
    matrices = np.float32(np.round(matrices * 4) / 4 if quarters else matrices)
    columns = {"matrix": matrices}
    assert differing(theirs, "warp_affine", numbered((90, 120)), columns, size=size, interp=interp) == [0] * 40


@pytest.mark.parametrize("quarters", [False, True])
def test_affine_maps_of_volumes(theirs, quarters):
    matrices = RNG.normal(0, [0.4, 0.7, 1, 9], (20, 3, 4)) + [[0, 0, 0, 60], [0, 0, 0, 20], [0, 0, 0, 9]]
    matrices = np.float32(np.round(matrices * 4) / 4 if quarters else matrices)
    columns = {"matrix": matrices}
    assert differing(theirs, "warp_affine", numbered((20, 40, 90)), columns, size=(15, 31, 300)) == [0] * 20


@pytest.mark.parametrize("axis", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, -2), (0.3, 1, -0.5)])
def test_rotations_of_volumes(theirs, axis):
    """For axes not parallel to the volume's, the last bits of the matrix differ, which rarely matters."""
    columns = {"angle": ANGLES}
    n = differing(theirs, "rotate", numbered((9, 20, 300)), columns, axis=axis, size=(10, 21, 303))
    assert max(n) <= (2 if np.count_nonzero(axis) > 1 else 0)
