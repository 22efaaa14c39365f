# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from harness import op_test
from penstock import fn, pipeline_def, types


def centred(b):
    return np.concatenate([(b[..., :2] + b[..., 2:]) / 2, b[..., 2:] - b[..., :2]], axis=-1)


def overlaps(boxes, anchors):
    """(boxes, anchors) intersection over union."""
    low = np.maximum(boxes[:, None, :2], anchors[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], anchors[None, :, 2:])
    both = np.maximum(high - low, 0).prod(axis=2)
    areas = [(x[:, 2:] - x[:, :2]).prod(axis=1) for x in (boxes, anchors)]
    with np.errstate(invalid="ignore"):
        return both / (areas[0][:, None] + areas[1][None] - both)


def reference(boxes, labels, anchors, criteria=0.5, offset=False, scale=1.0, means=(0,) * 4, stds=(1,) * 4):
    """Boxes are matched in float32, as rounding decides between nearly equal overlaps."""
    boxes, anchors = boxes.reshape(-1, 4), np.array(anchors, "f4").reshape(-1, 4)
    of_anchors = centred(anchors.astype("f8"))
    m, labels = len(anchors), labels.reshape(-1)
    if not len(boxes):
        return (0 if offset else 1) * of_anchors.astype("f4"), np.zeros(m, "i4")
    iou = np.nan_to_num(overlaps(boxes, anchors))
    found = len(boxes) - 1 - iou[::-1].argmax(axis=0)  # the last of the largest
    matched = iou[found, np.arange(m)] > np.float32(criteria)
    for i, row in enumerate(iou):
        nearest = m - 1 - row[::-1].argmax()
        found[nearest], matched[nearest] = i, True
    of_boxes = centred(boxes[found].astype("f8"))
    if offset:
        with np.errstate(divide="ignore", invalid="ignore"):
            place = (of_boxes - of_anchors)[:, :2] / of_anchors[:, 2:]
            size = np.log(of_boxes[:, 2:] / of_anchors[:, 2:])
        codes, missing = (np.concatenate([place, size], axis=1) - means) / stds, np.zeros((m, 4))
    else:
        codes, missing = of_boxes, of_anchors
    out = np.where(matched[:, None], codes, missing).astype("f4")
    return out, np.where(matched, labels[found], 0).astype("i4")


def grid(n, sizes):
    """Anchors around the n x n places of an image."""
    at = (np.arange(n) + 0.5) / n
    x, y, s = np.meshgrid(at, at, sizes, indexing="ij")
    return np.stack([x - s / 2, y - s / 2, x + s / 2, y + s / 2], axis=-1).reshape(-1).tolist()


def random_boxes(rng, n):
    corners = rng.random((n, 2, 2))
    return np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1).astype("f4")


COUNTS = (3, 0, 1, 40, 7)


def boxes(rng, case):
    return [random_boxes(rng, n) for n in COUNTS]


def labels(rng, case):
    return [[rng.integers(1, 90, n).astype("i4") for n in COUNTS]]


def special_boxes(rng, case):
    """Duplicate boxes, without area, inverted, outside the image, only touching anchors, and the anchors themselves."""
    return [
        np.float32([[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5]]),
        np.float32([[0.2, 0.2, 0.2, 0.2], [0.1, 0.1, 0.5, 0.5]]),
        np.float32([[0.5, 0.5, 0.2, 0.2], [0.1, 0.1, 0.5, 0.5]]),
        np.float32([[-1, -1, 0.2, 0.2], [0.1, 0.1, 5, 0.5]]),
        np.float32([[2, 2, 3, 3], [1, 0, 2, 1]]),
        np.array(case.kwargs["anchors"], "f4").reshape(-1, 4)[:2],
    ]


def column_of_labels(rng, case):
    return [[rng.integers(1, 90, (2, 1)).astype("i4") for _ in range(6)]]


SSD = {"stds": [0.1, 0.1, 0.2, 0.2], "means": [0.01, 0.02, -0.5, 0.5], "scale": 300.0}
ANCHORS = [grid(4, [0.3, 0.6]), grid(7, [0.1, 0.2, 0.45]), grid(1, [1.0]), grid(5, [0.2])[: 4 * 17]]
ARGS = [
    {"anchors": anchors, **more}
    for anchors in ANCHORS
    for more in (
        {},
        {"criteria": 0.2},
        {"criteria": 0.0},
        {"criteria": 1.0},
        {"offset": True},
        {"offset": True, "criteria": 0.3, **SSD},
    )
]
# There are too many numbers in anchors for names of cases.
for _args in ARGS:
    _args["anchors"] = type("Anchors", (list,), {"name": f"{len(_args['anchors']) // 4}_anchors"})(_args["anchors"])

ERRORS = [
    ({"anchors": [0.0] * 5}, ValueError, "four numbers for each anchor; got 5"),
    ({"criteria": 1.5}, ValueError, r"criteria must be in \[0, 1\], got 1.5"),
    ({"criteria": -0.5}, ValueError, r"criteria must be in \[0, 1\], got -0.5"),
    ({"means": [1.0]}, ValueError, "means takes four numbers"),
    ({"stds": [1.0, 0.0, 1.0, 1.0]}, ValueError, "stds can't be zero"),
]
TestBoxEncoder = op_test(
    "box_encoder", reference, ("f4",), ("",), ARGS, ERRORS, make_input=boxes, extra_inputs=labels, ulps=8
)
TestSpecialBoxes = op_test(
    "box_encoder",
    reference,
    ("f4",),
    ("",),
    [ARGS[0], ARGS[1], ARGS[6]],
    make_input=special_boxes,
    extra_inputs=column_of_labels,
)


@pytest.mark.parametrize(
    "boxes, labels, text",
    [
        (np.zeros((2, 4), "f4"), np.zeros(3, "i4"), "there are 3 labels for 2 boxes"),
        (np.zeros((2, 3), "f4"), np.zeros(2, "i4"), r"the shape \(boxes, 4\), got \[2, 3\]"),
        (np.zeros(8, "f4"), np.zeros(2, "i4"), r"the shape \(boxes, 4\), got 1 dimensions"),
        (np.zeros((2, 4), "f8"), np.zeros(2, "i4"), "must be float32, got float64"),
        (np.zeros((2, 4), "f4"), np.zeros(2, "i8"), "must be int32, got int64"),
    ],
)
def test_inputs_that_do_not_fit(boxes, labels, text):
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        fed = [fn.external_source(source=[[x]], cycle=True) for x in (boxes, labels)]
        return fn.box_encoder(*fed, anchors=[0, 0, 1, 1])

    with pytest.raises(RuntimeError, match=text):
        pipe().run()


def test_not_a_number_finds_something_or_nothing_but_nothing_breaks():
    nan = np.float32([[np.nan, 0, 1, 1], [0, np.inf, -np.inf, 1]])

    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        fed = [fn.external_source(source=[[x]], cycle=True) for x in (nan, np.int32([1, 2]))]
        return fn.box_encoder(*fed, anchors=ANCHORS[1], offset=True)

    labels = pipe().run()[1].at(0)
    assert set(labels.tolist()) <= {0, 1, 2}


def test_no_anchors():
    """Not among the errors above, as these are also run in DALI, which crashes."""
    with pytest.raises(ValueError, match="four numbers for each anchor; got 0"):

        @pipeline_def(batch_size=1, num_threads=1)
        def pipe():
            return fn.box_encoder(np.zeros((1, 4), "f4"), np.zeros(1, "i4"), anchors=[])

        pipe()


def test_two_boxes_of_one_anchor():
    """It gets the last one, even if the first is the anchor itself; as in DALI."""
    anchors, small = [0.0, 0.0, 0.5, 1.0, 0.5, 0.0, 1.0, 1.0], [0.0, 0.0, 0.25, 0.25]
    for two, centre in (([anchors[:4], small], [0.125, 0.125]), ([small, anchors[:4]], [0.25, 0.5])):

        @pipeline_def(batch_size=1, num_threads=1)
        def pipe(two=two):
            return fn.box_encoder(types.Constant(np.float32(two)), types.Constant(np.int32([7, 8])), anchors=anchors)

        codes, classes = (x.as_array()[0] for x in pipe().run())
        assert codes[0, :2].tolist() == centre and classes.tolist() == [8, 0]
