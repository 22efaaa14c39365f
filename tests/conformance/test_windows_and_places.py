# SPDX-License-Identifier: Apache-2.0
"""Windows given by inputs, with axes that differ from sample to sample, and the pixels that INTERP_NN chooses in
windows and regions. The same program runs in both libraries."""

import io

import numpy as np
import pytest
from PIL import Image

import penstock
from conformance import oracle

IMAGES = [(np.arange(24 * (i + 1)).reshape(4, 2 * (i + 1), 3) % 251).astype("u1") for i in range(3)]
AXES = ([0], [1, 0], [1])


@pytest.fixture(scope="module")
def theirs():
    return pytest.importorskip("nvidia.dali", reason="the real DALI is not installed")


def files():
    for x in IMAGES:
        file = io.BytesIO()
        Image.fromarray(x).save(file, "PNG")
        yield np.frombuffer(file.getvalue(), "u1")


FILES = list(files())


def given(m, *samples, dtype="i4", layout=None):
    arrays = [np.asarray(s, dtype) for s in samples]
    return m.fn.external_source(source=lambda i: arrays, layout=layout)


def outcome(m, define, n):
    """The outputs, or "error"."""
    try:
        pipe = m.pipeline_def(lambda: define(m), batch_size=n, num_threads=1, device_id=None)()
        pipe.build()
        return oracle._collect(pipe.run())
    except RuntimeError:
        return "error"


def assert_alike(theirs, define, n=3, ulps=0):
    want, got = outcome(theirs, define, n), outcome(penstock, define, n)
    if "error" in (want, got):
        assert want == got
    else:
        problem = oracle.compare(want, got, oracle.Bound(ulps=ulps), oracle.Tally())
        assert not problem, problem


# Windows by inputs ---------------------------------------------------------------------------------------------------

OPERATORS = {
    "slice": lambda m, *window, **kwargs: m.fn.slice(given(m, *IMAGES, dtype="u1", layout="HWC"), *window, **kwargs),
    "image_slice": lambda m, *window, **kwargs: m.fn.decoders.image_slice(
        given(m, *FILES, dtype="u1"), *window, **kwargs
    ),
}
WINDOWS = {
    "pixels": lambda m, cut: cut(m, given(m, [1], [0, 1], [1]), given(m, [1], [2, 2], [1]), axes=given(m, *AXES)),
    "long integers": lambda m, cut: cut(
        m,
        given(m, [1], [0, 1], [1], dtype="i8"),
        given(m, [1], [2, 2], [1], dtype="i8"),
        axes=given(m, *AXES),
        normalized_shape=True,
    ),
    "shares": lambda m, cut: cut(
        m,
        given(m, [0.25], [0, 0.5], [0.5], dtype="f4"),
        given(m, [0.5], [0.5, 0.5], [0.3], dtype="f4"),
        axes=given(m, *AXES),
    ),
    "real pixels": lambda m, cut: cut(
        m,
        given(m, [1.4], [0, 1], [0.6], dtype="f4"),
        given(m, [1.4], [2, 2], [1], dtype="f4"),
        axes=given(m, *AXES),
        normalized_anchor=False,
        normalized_shape=False,
    ),
    "shares of an extent, and pixels": lambda m, cut: cut(
        m,
        given(m, [0.25], [0, 0.5], [0.5], dtype="f4"),
        given(m, [1], [2, 1], [1], dtype="f4"),
        axes=given(m, *AXES),
        normalized_shape=False,
    ),
    "rows": lambda m, cut: cut(
        m, given(m, [[1]], [[0, 1]], [[1]]), given(m, [[1]], [[2, 2]], [[1]]), axes=given(m, *AXES)
    ),
    "from the last": lambda m, cut: cut(
        m, given(m, [1], [0, 0], [1]), given(m, [1], [2, 2], [1]), axes=given(m, [-1], [-2, -1], [-2])
    ),
    "scalars": lambda m, cut: cut(m, given(m, 1, 0, 1), given(m, 1, 2, 1), axes=[1]),
    "by default": lambda m, cut: cut(m, given(m, [1, 1], [0, 1], [1, 1]), given(m, [1, 1], [2, 2], [1, 1])),
    "fewer values than axes": lambda m, cut: cut(
        m, given(m, [1], [0], [1]), given(m, [1], [2], [1]), axes=given(m, *AXES)
    ),
    "more values than axes": lambda m, cut: cut(
        m, given(m, [1, 1], [0, 1], [1, 1]), given(m, [1, 1], [2, 2], [1, 1]), axes=given(m, *AXES)
    ),
    "an axis twice": lambda m, cut: cut(
        m, given(m, [1], [0, 1], [1]), given(m, [1], [2, 2], [1]), axes=given(m, [0], [1, 1], [0])
    ),
    "no such axis": lambda m, cut: cut(
        m, given(m, [1], [0, 1], [1]), given(m, [1], [2, 2], [1]), axes=given(m, [0], [1, 3], [0])
    ),
    "booleans": lambda m, cut: cut(m, given(m, [1], [0], [1], dtype="?"), given(m, [1], [1], [1], dtype="?"), axes=[0]),
    "no axes": lambda m, cut: cut(m, start=[1, 1, 1], end=[2, 2, 2], axes=[]),
    "no axes of an image": lambda m, cut: cut(m, start=[1, 1], end=[2, 2], axes=[]),
    "no names": lambda m, cut: cut(m, start=1, end=2, axis_names=""),
    "no axes in a sample": lambda m, cut: cut(m, start=1, end=2, axes=given(m, [0], [], [1])),
    "no axes in any sample": lambda m, cut: cut(m, start=1, end=2, axes=given(m, [], [], [])),
    "inputs, no axes": lambda m, cut: cut(
        m, given(m, [1] * 3, [1] * 3, [1] * 3), given(m, [1] * 3, [1] * 3, [1] * 3), axes=[]
    ),
    # By arguments:
    "arguments": lambda m, cut: cut(
        m, start=given(m, [1], [0, 1], [1]), shape=given(m, [1], [2, 2], [1]), axes=given(m, *AXES)
    ),
    "one value for all axes": lambda m, cut: cut(m, start=[1], end=[2], axes=given(m, *AXES)),
    "one value for both axes": lambda m, cut: cut(m, start=1, shape=[1]),
    "two values and one": lambda m, cut: cut(m, start=[0, 1], rel_end=1.0),
    "shares as arguments": lambda m, cut: cut(m, rel_start=[0.3], rel_shape=[0.33], axes=given(m, *AXES)),
    "both names of axes": lambda m, cut: cut(m, start=[1], shape=[1], axes=[0], axis_names="W"),
    "both starts": lambda m, cut: cut(m, start=[1], rel_start=[0.1], axes=[0]),
    "one input": lambda m, cut: cut(m, given(m, [1], [1], [1])),
    "inputs and arguments": lambda m, cut: cut(
        m, given(m, [1], [1], [1]), given(m, [1], [1], [1]), start=[1], axes=[0]
    ),
    "no window": lambda m, cut: cut(m),
}


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("window", WINDOWS)
def test_windows(theirs, operator, window):
    if operator == "image_slice" and ("no axes" in window or window == "no names"):
        pytest.skip("DALI takes the window from memory that it has not set")
    assert_alike(theirs, lambda m: WINDOWS[window](m, OPERATORS[operator]))


# Pixels chosen by INTERP_NN -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [{}, {"crop_h": 2.0, "crop_w": 1.0}])
@pytest.mark.parametrize("name", ["crop", "crop_mirror_normalize"])
@pytest.mark.parametrize("position", [{"crop_pos_x": -0.5}, {"crop_pos_y": 1.5}, {"crop_pos_z": 2.0}])
def test_positions_of_what_is_not_cropped(theirs, name, size, position):
    def define(m):
        return getattr(m.fn, name)(given(m, *IMAGES, dtype="u1", layout="HWC"), **size, **position)

    assert_alike(theirs, define)


def numbered(layout, shape):
    """Every pixel has a number of its own."""
    extents = dict(zip("DHW" if "D" in layout else "HW", shape), C=1)
    full = [extents[axis] for axis in layout]
    return np.arange(np.prod(full), dtype="f4").reshape(full)


def sizes(rng, axes):
    """Arguments that give the size, and the largest crop that fits into all images."""
    kind = rng.integers(4)
    if kind == 0:
        return {"size": [float(v) for v in rng.integers(20, 100, axes)]}
    if kind == 1:
        return {"resize_shorter": float(rng.choice([20, 33, 50.5, 71]))}
    if kind == 2:
        return {"resize_longer": float(rng.integers(60, 150))}
    return {"resize_x": float(rng.integers(20, 90)), "resize_y": -float(rng.integers(20, 90))}


@pytest.mark.parametrize("layout", ["HWC", "CHW", "DHWC"])
@pytest.mark.parametrize("seed", range(12))
def test_nearest_pixels_in_windows(theirs, layout, seed):
    rng = np.random.default_rng([seed, len(layout)])
    axes = 3 if "D" in layout else 2
    images = [numbered(layout, rng.integers(40, 90, axes) // [5, 1, 1][-axes:]) for _ in range(4)]
    size = sizes(rng, axes)
    pixels = {
        "interp_type": "INTERP_NN",
        **size,
        "crop": [float(v) for v in rng.integers(2, 15, axes) // [2, 1, 1][-axes:]],
    }
    pixels |= {f"crop_pos_{axis}": float(rng.random()) for axis in "xyz"}
    pixels |= {"mirror": int(rng.integers(4))} if layout == "HWC" else {}  # for others, DALI mirrors another axis
    pixels |= {"rounding": "truncate"} if rng.random() < 0.3 else {}
    pixels |= {"subpixel_scale": False} if rng.random() < 0.3 else {}
    assert_nearest(theirs, "resize_crop_mirror", images, layout, pixels)


@pytest.mark.parametrize("layout", ["HWC", "CHW", "DHWC"])
@pytest.mark.parametrize("seed", range(8))
def test_nearest_pixels_in_regions(theirs, layout, seed):
    """Regions that begin at whole pixels, as those of crops do, have most ties."""
    rng = np.random.default_rng([seed, len(layout)])
    axes = 3 if "D" in layout else 2
    images = [numbered(layout, rng.integers(60, 90, axes) // [5, 1, 1][-axes:]) for _ in range(4)]
    begin, end = rng.integers(0, 4, axes), rng.integers(5, 12, axes) * [1, 5, 5][-axes:]
    region = {"roi_start": [float(v) for v in begin], "roi_end": [float(v) for v in end]}
    region |= {"interp_type": "INTERP_NN", "size": [float(v) for v in rng.integers(1, 90, axes)]}
    assert_nearest(theirs, "resize", images, layout, region)


@pytest.mark.parametrize("axis", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0]])
@pytest.mark.parametrize("angle", [45.0, -45.0, 60.0, 135.0, 405.0])
def test_volumes_whose_axes_are_turned_equally(theirs, axis, angle):
    """Which extents are odd depends on the digits of the matrix."""
    volumes = [np.zeros(shape, "u1") for shape in ((1, 8, 1, 1), (5, 6, 6, 1), (3, 8, 5, 1))]
    assert_alike(
        theirs,
        lambda m: m.fn.rotate(
            given(m, *volumes, dtype="u1", layout="DHWC"),
            angle=angle,
            axis=axis,
            fill_value=1,
            interp_type=m.types.INTERP_NN,
        ),
    )


def test_turned_boxes_of_samples_without_any(theirs):
    boxes = [np.zeros((0, 5)), np.float32([[0.2, 0.3, 0.6, 0.5]]), np.zeros((0, 0))]
    assert_alike(
        theirs, lambda m: m.fn.bbox_rotate(given(m, *boxes, dtype="f4"), angle=30.0, input_shape=[20, 30]), ulps=8
    )


def assert_nearest(theirs, operator, images, layout, kwargs):
    def define(m):
        x = given(m, *images, dtype="f4", layout=layout)
        named = {k: getattr(m.types, v) if k == "interp_type" else v for k, v in kwargs.items()}
        return getattr(m.fn, operator)(x, **named)

    assert_alike(theirs, define, len(images))
