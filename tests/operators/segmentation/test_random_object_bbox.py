# SPDX-License-Identifier: Apache-2.0
from collections import Counter

import numpy as np
import pytest
from scipy import ndimage, stats

from penstock import fn, pipeline_def

P_VALUE = 1e-4
MASK = np.zeros((6, 8), "u1")
MASK[0, 0:5] = MASK[2:4, 3:5] = MASK[5, 0] = 1
MASK[5, 7] = 2
MASK[4, 6] = MASK[0, 7] = 3
LONG, SQUARE, SMALL = (0, 0, 1, 5), (2, 3, 4, 5), (5, 0, 6, 1)  # class 1
TWO, NEAR, CORNER = (5, 7, 6, 8), (4, 6, 5, 7), (0, 7, 1, 8)
WHOLE = (0, 0, 6, 8)


def draw(masks, num_threads=2, seed=1, **kwargs):
    """Returns the outputs, each a list of arrays."""

    @pipeline_def(batch_size=len(masks), num_threads=num_threads, seed=seed)
    def pipe():
        x = fn.external_source(source=[masks], cycle=True)
        columns = {
            k: fn.external_source(source=[v], cycle=True) if isinstance(v, list) and len(v) == len(masks) else v
            for k, v in kwargs.items()
        }
        out = fn.segmentation.random_object_bbox(x, **columns)
        return tuple(out) if isinstance(out, (tuple, list)) else out

    return [[np.array(x.at(i)) for i in range(len(masks))] for x in pipe().run()]


def objects(mask, background=0):
    """{label: boxes}, computed with scipy."""
    found = {}
    for label in np.unique(mask):
        if label != background:
            blobs, _ = ndimage.label(mask == label)
            slices = ndimage.find_objects(blobs)
            found[int(label)] = [tuple(s.start for s in box) + tuple(s.stop for s in box) for box in slices]
    return found


def by_class(boxes, weights):
    """{(label, box): probability}"""
    total = sum(weights[c] for c in boxes)
    return {(c, b): weights[c] / total / len(boxes[c]) for c in boxes for b in boxes[c]}


ALL = {1: [LONG, SQUARE, SMALL], 2: [TWO], 3: [NEAR, CORNER]}
EQUAL = dict.fromkeys(range(-5, 10), 1.0)
CASES = [
    ({}, by_class(ALL, EQUAL)),
    ({"classes": [1, 3]}, by_class({k: ALL[k] for k in (1, 3)}, EQUAL)),
    ({"classes": [1, 3], "class_weights": [1.0, 3.0]}, by_class({k: ALL[k] for k in (1, 3)}, {1: 1, 3: 3})),
    ({"classes": [3, 9, 1], "class_weights": [3.0, 5.0, 1.0]}, by_class({k: ALL[k] for k in (1, 3)}, {1: 1, 3: 3})),
    ({"class_weights": [1.0, 0.0, 3.0]}, by_class({k: ALL[k] for k in (1, 3)}, {1: 1, 3: 3})),
    ({"class_weights": [1.0, 1.0, 1.0, 0.0, 2.0]}, by_class(ALL, EQUAL)),
    ({"classes": [1, 1, 3]}, by_class({k: ALL[k] for k in (1, 3)}, {1: 2, 3: 1})),
    ({"background": 3, "class_weights": [1.0, 1.0, 1.0]}, by_class({0: [WHOLE], 1: ALL[1], 2: [TWO]}, EQUAL)),
    ({"background": 1}, by_class({0: [WHOLE], 2: [TWO], 3: ALL[3]}, EQUAL)),
    ({"classes": [0, 2]}, by_class({0: [WHOLE], 2: [TWO]}, EQUAL)),
    ({"threshold": [2, 1]}, {(1, SQUARE): 1}),
    ({"threshold": [2]}, {(1, SQUARE): 1}),
    ({"threshold": [1, 2]}, by_class({1: [LONG, SQUARE]}, EQUAL)),
    ({"threshold": [2, 1], "k_largest": 1}, {(1, SQUARE): 1}),
    ({"k_largest": 1}, by_class({1: [LONG], 2: [TWO], 3: [CORNER]}, EQUAL)),  # the first of those of one size
    ({"k_largest": 2}, by_class({1: [LONG, SQUARE], 2: [TWO], 3: ALL[3]}, EQUAL)),
    ({"classes": [9]}, {(0, WHOLE): 1}),
    ({"classes": []}, {(0, WHOLE): 1}),
    ({"class_weights": [0.0, 0.0]}, {(0, WHOLE): 1}),
    ({"threshold": [9, 9]}, {(0, WHOLE): 1}),
    ({"foreground_prob": 0.0}, {(0, WHOLE): 1}),
    ({"foreground_prob": -1.0, "classes": [0, 1]}, {(-1, WHOLE): 1}),
    ({"foreground_prob": 0.0, "classes": [0, 1, -5]}, {(-6, WHOLE): 1}),
    (
        {"foreground_prob": 0.25, "classes": [1]},
        {(0, WHOLE): 0.75, **{k: v / 4 for k, v in by_class({1: ALL[1]}, EQUAL).items()}},
    ),
]


def check(seen, expected):
    assert set(seen) <= set(expected), set(seen) - set(expected)
    counts = np.array([seen[k] for k in expected])
    if len(expected) > 1:
        assert stats.chisquare(counts, np.array(list(expected.values())) * counts.sum()).pvalue > P_VALUE


@pytest.mark.parametrize("kwargs, expected", CASES, ids=[str(c[0]) for c in CASES])
def test_which_object(kwargs, expected):
    boxes, labels = draw([MASK] * 1500, format="box", output_class=True, **kwargs)
    check(Counter((int(c), tuple(b.tolist())) for b, c in zip(boxes, labels)), expected)
    assert boxes[0].dtype == labels[0].dtype == np.int32 and labels[0].shape == ()


@pytest.mark.parametrize(
    "kwargs, expected",
    [
        ({}, [LONG, SQUARE, SMALL, TWO, NEAR, CORNER]),
        ({"k_largest": 2}, [LONG, SQUARE]),
        ({"k_largest": 20}, [LONG, SQUARE, SMALL, TWO, NEAR, CORNER]),
        ({"threshold": [1, 2]}, [LONG, SQUARE]),
        ({"background": 1}, [WHOLE, TWO, NEAR, CORNER]),
    ],
    ids=str,
)
def test_all_objects_alike(kwargs, expected):
    (boxes,) = draw([MASK] * 1500, format="box", ignore_class=True, **kwargs)
    check(Counter(tuple(b.tolist()) for b in boxes), dict.fromkeys(expected, 1 / len(expected)))


def test_formats():
    options = {"classes": [1], "output_class": True}
    (boxes, labels), anchored, corners = (
        draw([MASK] * 50, format=f, **options) for f in ("box", "anchor_shape", "start_end")
    )
    for i, box in enumerate(boxes):
        assert (corners[0][i] == box[:2]).all() and (corners[1][i] == box[2:]).all()
        assert (anchored[0][i] == box[:2]).all() and (anchored[1][i] == box[2:] - box[:2]).all()
        assert labels[i] == anchored[2][i] == corners[2][i] == 1
    assert len(draw([MASK])) == 2


@pytest.mark.parametrize("dtype", ["b1", "u1", "i1", "u2", "i2", "u4", "i4"])
@pytest.mark.parametrize("shape", [(40,), (17, 70), (5, 6, 65), (3, 2, 5, 9)])
def test_blobs_are_those_of_scipy(dtype, shape):
    """Every drawn box is one of scipy's, and of a few objects all are drawn."""
    rng = np.random.default_rng(len(shape))
    low = {"u": 0, "b": 0}.get(dtype[0], -1)
    for high, density in ((2, 0.5), (4, 0.9)):
        mask = (rng.integers(low, high, shape) * (rng.random(shape) < density)).astype(dtype)
        boxes, labels = draw([mask] * 150, format="box", output_class=True)
        known = objects(mask)
        for box, label in zip(boxes, labels):
            assert tuple(box.tolist()) in known[int(label)]
        (all_alike,) = draw([mask] * 150, format="box", ignore_class=True)
        assert {tuple(b.tolist()) for b in all_alike} <= {b for boxes in known.values() for b in boxes}


def test_shapes_that_are_hard_to_join():
    """A spiral and a comb are one blob each, a checkerboard has one per field, and nested rings are several."""
    spiral = np.zeros((31, 31), "u1")
    spiral[0, :] = 1
    y, x = 0, 30
    for k, length in enumerate([30, 30, 28, 28, 26, 26, 24, 24, 22, 22, 20, 20]):
        dy, dx = [(1, 0), (0, -1), (-1, 0), (0, 1)][k % 4]
        for _ in range(length):
            y, x = y + dy, x + dx
            spiral[y, x] = 1
    comb = np.zeros((20, 41), "u1")
    comb[:, ::2] = 1
    comb[-1] = 1
    board = (np.indices((9, 9)).sum(axis=0) % 2).astype("u1")
    rings = (np.maximum(*np.abs(np.indices((21, 21)) - 10)) % 2).astype("u1")
    for mask in (spiral, comb, comb[::-1].copy(), board, rings, np.ones((64, 64), "u1")):
        known = objects(mask)[1]
        (boxes,) = draw([mask] * 400, format="box", ignore_class=True)
        seen = {tuple(b.tolist()) for b in boxes}
        assert seen <= set(known) and (len(known) > 20 or seen == set(known))


def test_ragged_masks_arguments_and_threads():
    rng = np.random.default_rng(0)
    masks = [rng.integers(0, 4, (h, w)).astype("u1") for h, w in ((5, 4), (1, 1), (33, 17), (80, 67), (2, 500), (0, 3))]
    options = {
        "format": "box",
        "output_class": True,
        "classes": [np.int32([1 + i % 3, 2]) for i in range(6)],
        "class_weights": [np.float32([1, i]) for i in range(6)],
        "threshold": [np.int32([1, 1 + i % 2]) for i in range(6)],
        "foreground_prob": [np.float32(i != 3) for i in range(6)],
        "background": [np.int32(7 + i) for i in range(6)],
    }
    first = draw(masks, num_threads=1, **options)
    for i, (mask, box, label) in enumerate(zip(masks, *first)):
        if label != 7 + i:
            assert tuple(box.tolist()) in objects(mask)[int(label)] and label in options["classes"][i]
            assert box[3] - box[1] >= options["threshold"][i][1]
        else:
            assert box.tolist() == [0, 0, *mask.shape]
    assert first[1][3] == 10 and first[1][5] == 12
    for other in (draw(masks, num_threads=4, **options), draw(masks, num_threads=2, cache_objects=True, **options)):
        assert all((a == b).all() for u, v in zip(first, other) for a, b in zip(u, v))
    assert any((a != b).any() for a, b in zip(first[0], draw(masks, seed=2, **options)[0]))


@pytest.mark.parametrize(
    "mask, kwargs, exception, text",
    [
        (MASK, {"format": "x"}, ValueError, "format takes 'anchor_shape', 'start_end', 'box'; got 'x'"),
        (MASK, {"k_largest": 0}, ValueError, "k_largest must be at least 1, got 0"),
        (MASK, {"ignore_class": True, "output_class": True}, ValueError, "ignore_class can't be combined"),
        (MASK, {"ignore_class": True, "classes": [1]}, ValueError, "ignore_class can't be combined"),
        (MASK, {"classes": [1, 2], "background": 2}, RuntimeError, "the background label 2 is one of the classes"),
        (MASK, {"classes": [1], "class_weights": [1.0, 2.0]}, RuntimeError, "2 class_weights for 1 classes"),
        (MASK, {"class_weights": [-1.0, 2.0]}, RuntimeError, "class_weights are finite numbers from 0 on"),
        (MASK, {"class_weights": [float("nan"), 2.0]}, RuntimeError, "class_weights are finite numbers from 0 on"),
        (MASK, {"threshold": [1, 2, 3]}, RuntimeError, "threshold takes one number, or one for each of 2 axes; got 3"),
        (MASK.astype("f4"), {}, RuntimeError, "must be of one of the types .* got float32"),
        (MASK.astype("i8"), {}, RuntimeError, "must be of one of the types .* got int64"),
        (np.uint8(1), {}, RuntimeError, "must have 1 to 8 dimensions, got 0"),
    ],
)
def test_errors(mask, kwargs, exception, text):
    with pytest.raises(exception, match=text):
        draw([mask, mask, mask, mask], **kwargs)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_an_axis_of_extent_1_changes_nothing(axis):
    boxes = draw([MASK] * 50, format="box")[0]
    for got, (y, x, y_end, x_end) in zip(draw([np.expand_dims(MASK, axis)] * 50, format="box")[0], boxes):
        assert got.tolist() == [*np.insert([y, x], axis, 0), *np.insert([y_end, x_end], axis, 1)]


@pytest.mark.parametrize("shape", [(1,), (1, 1, 1), (5, 1), (1, 5)])
def test_one_blob_is_all(shape):
    assert draw([np.ones(shape, "u1")], format="box")[0][0].tolist() == [*(0 for _ in shape), *shape]


def test_classes_of_different_number():
    n = 300
    classes = [np.int32([2]), np.int32([1, 3]), np.int32([0, 1, 2])] * n
    weights = [np.float32([1]), np.float32([0, 5]), np.float32([0, 1, 3])] * n
    for kwargs, expected in (
        ({"classes": classes}, ({2: 1}, {1: 0.5, 3: 0.5}, {0: 1 / 3, 1: 1 / 3, 2: 1 / 3})),
        ({"classes": classes, "class_weights": weights}, ({2: 1}, {3: 1}, {1: 0.25, 2: 0.75})),
        ({"class_weights": weights}, ({1: 1}, {2: 1}, {2: 0.25, 3: 0.75})),
    ):
        labels = [int(x) for x in draw([MASK] * (3 * n), output_class=True, format="box", **kwargs)[1]]
        for i, frequencies in enumerate(expected):
            seen = Counter(labels[i::3])
            assert set(seen) == set(frequencies)
            if len(seen) > 1:
                wanted = [frequencies[k] * n for k in seen]
                assert stats.chisquare(list(seen.values()), wanted).pvalue > P_VALUE


def test_class_weights_of_another_number():
    masks, classes = [MASK] * 3, [np.int32([1]), np.int32([1, 2]), np.int32([1])]
    with pytest.raises(RuntimeError, match="there are 1 class_weights for 2 classes"):
        draw(masks, classes=classes, class_weights=[np.float32([1])] * 3)
