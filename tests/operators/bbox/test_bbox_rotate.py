# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from harness import Column, op_test, per_sample
from penstock import fn, pipeline_def


def canvas_of(angle, height, width):
    """Width and height of the output of `rotate`: the enclosing size, with the parity of the side that contributes
    most."""
    c, s = abs(np.cos(angle)), abs(np.sin(angle))
    out = []
    for own, other in ((width, height), (height, width)):
        n = int(np.ceil(c * own + s * other - 0.01))
        out.append(n + (n - (own if c >= s else other)) % 2)
    return np.array(out, "f8")


def turns_over(box, radians, extent, canvas, has_size, is_normalized):
    """Whether a wide box becomes tall by a rotation, or a tall one wide. In float32, which matters at 45 degrees."""
    box, extent, canvas = box.astype("f4").copy(), extent.astype("f4"), canvas.astype("f4")
    if has_size:
        box[2:] += box[:2]
    box = box.reshape(2, 2)
    box = (box - np.float32(0.5)) * extent if is_normalized else box - extent / 2
    cosine, sine = np.float32(np.cos(float(radians))), np.float32(np.sin(float(radians)))
    x, y = np.meshgrid(*box.T)
    turned = np.float32([cosine * x + sine * y + canvas[0] / 2, cosine * y - sine * x + canvas[1] / 2])
    width, height = np.ptp(turned, axis=(1, 2))
    was_wide = abs(box[1, 0] - box[0, 0]) > abs(box[1, 1] - box[0, 1])
    return was_wide == (width < height)


def reference(
    boxes,
    labels=None,
    angle=0.0,
    input_shape=(),
    shape_layout="HW",
    bbox_layout="xyXY",
    bbox_normalized=True,
    keep_size=False,
    mode="expand",
    remove_threshold=0.1,
    size=None,
):
    """Rotates the corners one by one."""
    radians = float(np.float32(angle) * np.float32(np.pi / 180))
    height, width = (int(input_shape[shape_layout.index(c)]) for c in "HW")
    extent = np.array([width, height], "f8")
    canvas = canvas_of(radians, height, width)
    if keep_size:
        canvas = extent
    if size is not None and len(size):
        canvas = np.floor(np.array([size[1], size[0]], "f8") + 0.5)
    turn = np.array([[np.cos(radians), np.sin(radians)], [-np.sin(radians), np.cos(radians)]])
    kept, rows = [], []
    for i, box in enumerate(boxes.astype("f8")):
        low, high = box[:2], box[2:]
        if bbox_layout == "xyWH":
            high = low + high
        if bbox_normalized:
            low, high = low * extent, high * extent
        corners = np.array([[x, y] for x in (low[0], high[0]) for y in (low[1], high[1])])
        turned = (corners - extent / 2) @ turn.T + canvas / 2
        begin, end = turned.min(axis=0), turned.max(axis=0)
        middle = (begin + end) / 2
        quarter = turns_over(boxes[i], np.float32(radians), extent, canvas, bbox_layout == "xyWH", bbox_normalized)
        spread = {"expand": end - begin, "fixed": np.abs(high - low)[:: -1 if quarter else 1]}
        spread["halfway"] = (spread["expand"] + spread["fixed"]) / 2
        begin, end = middle - spread[mode] / 2, middle + spread[mode] / 2
        inside = np.clip(begin, 0, canvas), np.clip(end, 0, canvas)
        with np.errstate(invalid="ignore"):
            if not (inside[1] - inside[0]).prod() / (end - begin).prod() >= remove_threshold:
                continue
        out = np.concatenate([inside[0], inside[1] - inside[0] if bbox_layout == "xyWH" else inside[1]])
        kept.append(out / np.tile(canvas, 2) if bbox_normalized else out)
        rows.append(i)
    out = np.array(kept, "f4").reshape(-1, 4)
    return out if labels is None else (out, labels[rows])


COUNTS = (4, 0, 1, 60, 9)


def boxes(rng, case):
    """Boxes in the whole image, and some that exceed it."""
    samples = []
    for n in COUNTS:
        corners = np.sort(rng.random((n, 2, 2)) * 1.2 - 0.1, axis=1)
        if case.kwargs.get("bbox_layout") == "xyWH":
            corners[:, 1] -= corners[:, 0]
        if not case.kwargs.get("bbox_normalized", True):
            corners *= 150
        samples.append(corners.reshape(n, 4).astype("f4"))
    return samples


def labels(rng, case):
    return [[rng.integers(0, 90, n).astype("i4") for n in COUNTS]]


def column_of_labels(rng, case):
    return [[rng.integers(0, 90, (n, 1)).astype("i4") for n in COUNTS]]


HERE = {"angle": 30.0, "input_shape": [100, 201]}
ARGS = [
    {**HERE, **more}
    for more in (
        {},
        {"angle": 0.0},
        {"angle": 90.0},
        {"angle": -135.0},
        {"angle": 180.5},
        {"angle": per_sample(-360, 360)},
        {"input_shape": per_sample(50, 300, (2,), "i4")},
        {"input_shape": per_sample(50, 300, (3,), "i4"), "angle": per_sample(0, 90)},
        {"shape_layout": "WH"},
        {"shape_layout": "CHW", "input_shape": [3, 100, 120]},
        {"keep_size": True},
        {"keep_size": True, "angle": 77.0},
        {"keep_size": True, "remove_threshold": 0.0},
        {"keep_size": True, "remove_threshold": 0.5},
        {"keep_size": True, "remove_threshold": 0.99},
        {"keep_size": True, "remove_threshold": 0.8, "mode": "fixed"},
        {"keep_size": True, "remove_threshold": 0.8, "mode": "halfway"},
        {"mode": "fixed"},
        {"mode": "fixed", "angle": 45.0, "keep_size": True},
        {"mode": "halfway", "angle": -135.0, "keep_size": True},
        {"mode": "halfway"},
        {"mode": "fixed", "angle": 45.0},
        {"mode": "fixed", "angle": 225.0, "bbox_normalized": False},
        {"mode": "fixed", "angle": 315.0, "bbox_layout": "xyWH", "keep_size": True},
        {"mode": "fixed", "angle": per_sample(44.99999, 45.00001), "keep_size": True},
        {"size": [150.0, 120.0]},
        {"size": [50.0, 300.0], "remove_threshold": 0.3},
        {"size": per_sample(50, 300, (2,), "f4"), "angle": per_sample(0, 90)},
        {"size": Column(lambda rng, shape: rng.integers(50, 300, 2).astype("f4"), text="whole_numbers")},
        {"mode": "fixed", "angle": 80.0, "keep_size": True, "remove_threshold": 0.5},
        {"mode": "halfway", "angle": per_sample(90, 270)},
        {"bbox_layout": "xyWH"},
        {"bbox_layout": "xyWH", "keep_size": True, "remove_threshold": 0.3},
        {"bbox_layout": "xyWH", "mode": "halfway", "angle": 200.0},
        {"bbox_normalized": False},
        {"bbox_normalized": False, "bbox_layout": "xyWH", "keep_size": True},
        {"bbox_normalized": False, "mode": "fixed", "angle": per_sample(-90, 90)},
    )
]
ERRORS = [
    ({"mode": "x"}, ValueError, "mode takes 'expand', 'halfway', 'fixed'; got 'x'"),
    ({"bbox_layout": "XYxy"}, ValueError, "bbox_layout takes 'xyXY' or 'xyWH', got 'XYxy'"),
    ({"remove_threshold": 1.0}, ValueError, r"remove_threshold must be in \[0, 1\), got 1.0"),
    ({"shape_layout": "HH"}, ValueError, "shape_layout must have one H and one W"),
    ({"keep_size": True, "size": [10.0, 10.0]}, ValueError, "either `keep_size` or `size`"),
    ({"input_shape": [10]}, RuntimeError, "input_shape has 1 numbers for the shape_layout 'HW'"),
    ({"size": [10.0, 0.0]}, RuntimeError, r"size must be positive, got \[10.0, 0.0\]"),
    ({"size": [10.0]}, RuntimeError, "size takes two numbers, height and width; got 1"),
]
DIFFERS = {"size=per_sample": "sizes are rounded, as fn.rotate does; DALI cuts off what its rotate rounds"}
SHARED = {"ulps": 8, "make_input": boxes, "dali_differs": DIFFERS}
TestBoxes = op_test("bbox_rotate", reference, ("f4",), ("",), ARGS, ERRORS, **SHARED)
TestLabels = op_test("bbox_rotate", reference, ("f4",), ("",), ARGS[::3], extra_inputs=labels, **SHARED)
TestColumn = op_test("bbox_rotate", reference, ("f4",), ("",), ARGS[10:14], extra_inputs=column_of_labels, **SHARED)


def run(boxes, *labels, **kwargs):
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        fed = [fn.external_source(source=[[x]], cycle=True) for x in (boxes, *labels)]
        out = fn.bbox_rotate(*fed, **{**HERE, **kwargs})
        return tuple(out) if labels else out

    return [x.at(0) for x in pipe().run()]


@pytest.mark.parametrize(
    "boxes, labels, text",
    [
        (np.zeros((2, 4), "f4"), np.zeros(3, "i4"), "there are 3 labels for 2 boxes"),
        (np.zeros((2, 4), "f4"), np.zeros((2, 2), "i4"), r"labels must have the shape .* got \[2, 2\]"),
        (np.zeros((2, 4), "f4"), np.zeros((), "i4"), "there are 0 labels for 2 boxes"),
        (np.zeros((2, 3), "f4"), np.zeros(2, "i4"), r"the shape \(boxes, 4\), got \[2, 3\]"),
        (np.zeros(8, "f4"), np.zeros(2, "i4"), r"the shape \(boxes, 4\), got 1 dimensions"),
        (np.zeros((2, 4), "f8"), np.zeros(2, "i4"), "must be float32, got float64"),
        (np.zeros((2, 4), "f4"), np.zeros(2, "i8"), "must be int32, got int64"),
    ],
)
def test_inputs_that_do_not_fit(boxes, labels, text):
    with pytest.raises(RuntimeError, match=text):
        run(boxes, labels)


@pytest.mark.parametrize("kwargs", [{"angle": float("nan")}, {"input_shape": [0, 0]}, {"angle": float("inf")}, {}])
def test_what_has_no_area_is_removed(kwargs):
    boxes = np.float32([[0.3, 0.3, 0.3, 0.3], [np.nan, 0, 1, 1], [0, -np.inf, 1, np.inf]])
    assert run(boxes, np.int32([1, 2, 3]), **kwargs)[0].shape == (0, 4)


def test_boxes_follow_the_image():
    """A rectangle painted into an image is found where its box says, after both were rotated."""
    image = np.zeros((60, 91, 1), "f4")
    image[10:30, 20:50] = 1
    box = np.float32([[20 / 91, 10 / 60, 50 / 91, 30 / 60]])

    @pipeline_def(batch_size=1, num_threads=1)
    def pipe(angle, **kwargs):
        x = fn.external_source(source=[[image]], cycle=True, layout="HWC")
        b = fn.external_source(source=[[box]], cycle=True)
        rotated = fn.rotate(x, angle=angle, fill_value=0, **kwargs)
        return rotated, fn.bbox_rotate(b, angle=angle, input_shape=image.shape[:2], **kwargs)

    for kwargs in ({}, {"keep_size": True}, {"size": [80.0, 70.0]}):
        for angle in (0, 20, 90, 135, 250):
            rotated, moved = (x.at(0) for x in pipe(angle, **kwargs).run())
            height, width = rotated.shape[:2]
            rows, columns = (rotated[..., 0] > 0.5).nonzero()
            seen = [columns.min() / width, rows.min() / height, (columns.max() + 1) / width, (rows.max() + 1) / height]
            np.testing.assert_allclose(moved[0], seen, atol=2 / 60)
