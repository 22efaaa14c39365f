# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from scipy import stats
from windows import NONE, accepted, draw, drawn_by_definition, least_p_value

from penstock import fn, pipeline_def

P_VALUE = 1e-4  # seeds are fixed: a test passes always or never
FAR = np.float32([[0.2, 0.2, 0.3, 0.3], [0.7, 0.7, 0.8, 0.8]])
WIDE = {"scaling": [0.5, 0.9], "aspect_ratio": [0.5, 2.0], "allow_no_crop": False}


@pytest.mark.parametrize(
    "scaling, aspect, size",
    [
        ([0.3, 1.0], [0.5, 2.0], None),
        ([0.2, 0.8], [1.0, 3.0], None),
        ([0.1, 1.0], [0.9, 1.1], None),
        ([0.3, 1.0], [0.5, 2.0], (100, 300)),
        ([0.3, 1.0], [0.5, 2.0], (300, 100)),
    ],
)
def test_windows_without_boxes(scaling, aspect, size):
    more = {"input_shape": list(size)} if size else {}
    windows, boxes = draw(NONE, scaling=scaling, aspect_ratio=aspect, allow_no_crop=False, num_attempts=50, **more)
    expected = drawn_by_definition(np.random.default_rng(1), 2000, scaling, aspect, size or (1, 1))
    assert least_p_value(windows, expected) > P_VALUE
    assert all(b.shape == (0, 4) for b in boxes)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"thresholds": [0.0]},
        {"thresholds": [0.01]},
        {"thresholds": [0.01], "all_boxes_above_threshold": False},
        {"thresholds": [0.5], "threshold_type": "overlap"},
        {"thresholds": [1.0], "threshold_type": "overlap"},
        {"thresholds": [0.5], "threshold_type": "overlap", "all_boxes_above_threshold": False},
        {"thresholds": [0.0], "threshold_type": "overlap", "bbox_prune_threshold": 0.2},
        {"thresholds": [0.0], "bbox_prune_threshold": 1.0},
    ],
    ids=str,
)
def test_windows_that_show_boxes(kwargs):
    windows, kept = draw(FAR, **WIDE, **kwargs)
    candidates = drawn_by_definition(np.random.default_rng(1), 4000, WIDE["scaling"], WIDE["aspect_ratio"])
    takes, of_boxes = accepted(
        candidates,
        FAR,
        kwargs["thresholds"][0] - 1e-6,
        kwargs.get("all_boxes_above_threshold", True),
        kwargs.get("threshold_type") == "overlap",
        kwargs.get("bbox_prune_threshold"),
    )
    assert least_p_value(windows, candidates[takes]) > P_VALUE
    seen = np.bincount([len(b) for b in kept], minlength=3)
    expected = np.bincount(of_boxes[takes].sum(axis=1), minlength=3)
    assert seen[0] == 0
    table = np.stack([seen, expected])[:, expected > 0]
    assert seen[expected == 0].sum() == 0
    assert table.shape[1] == 1 or stats.chi2_contingency(table).pvalue > P_VALUE


def test_boxes_are_cut_to_the_window():
    rng = np.random.default_rng(5)
    corners = np.sort(rng.random((12, 2, 2)), axis=1)
    boxes, labels = corners.reshape(12, 4).astype("f4"), np.arange(12, dtype="i4") + 100
    options = {**WIDE, "scaling": [0.3, 0.7], "output_bbox_indices": True}
    windows, kept, of_kept, indices = draw(boxes, labels=labels, n=100, **options)
    for w, got, names, rows in zip(windows.astype("f8"), kept, of_kept, indices):
        _, inside = accepted(w[None], boxes.astype("f8"), 0)
        assert rows.tolist() == inside[0].nonzero()[0].tolist() and rows.dtype == np.int32
        np.testing.assert_array_equal(names, labels[rows])
        scale, shift = np.tile(w[2:], 2), np.tile(w[:2], 2)
        np.testing.assert_allclose(got, np.clip((boxes[rows] - shift) / scale, 0, 1), atol=2e-6)


@pytest.mark.parametrize("layout", ["xyWH", "yxYX", "XYxy", "xWyH", "HyWx"])
def test_layouts_of_boxes(layout):
    """The same boxes in another order give the same windows and boxes."""
    windows, kept = draw(FAR, n=50, **WIDE)
    x, y, right, bottom = FAR.T
    names = {"x": x, "y": y, "X": right, "Y": bottom, "W": right - x, "H": bottom - y}
    other, kept_too = draw(np.stack([names[c] for c in layout], axis=1), n=50, bbox_layout=layout, **WIDE)
    np.testing.assert_allclose(windows, other, atol=1e-6)
    for a, b in zip(kept, kept_too):
        b = dict(zip(layout, b.T))
        right, bottom = b.get("X", b["x"] + b.get("W", 0)), b.get("Y", b["y"] + b.get("H", 0))
        np.testing.assert_allclose(a, np.stack([b["x"], b["y"], right, bottom], axis=1), atol=1e-5)
    if layout == "xyWH":
        former, _ = draw(np.stack([names[c] for c in layout], axis=1), n=50, ltrb=False, **WIDE)
        np.testing.assert_array_equal(former, other)


@pytest.mark.parametrize(
    "thresholds, share", [([0.0], 1 / 2), ([0.0, 0.0, 0.0], 1 / 4), ([1.0], 1.0), ([1.0, 0.0], 0.5)]
)
def test_the_whole_image_is_one_of_the_choices(thresholds, share):
    """If no window can reach a threshold, the whole image is eventually chosen."""
    whole = np.float32([[0, 0, 1, 1]])
    options = {"scaling": [0.6, 0.9], "thresholds": thresholds, "aspect_ratio": [0.1, 10.0]}
    windows, boxes = draw(whole, n=1000, **options)
    is_whole = (windows == [0, 0, 1, 1]).all(axis=1)
    assert is_whole.mean() == share if share == 1 else stats.binomtest(is_whole.sum(), 1000, share).pvalue > P_VALUE
    assert all((boxes[i] == whole).all() for i in is_whole.nonzero()[0])


def test_a_limited_search_takes_the_best():
    options = {**WIDE, "scaling": [0.2, 0.5], "thresholds": [1.0], "all_boxes_above_threshold": False}
    few, many = (draw(FAR, n=300, total_num_attempts=k, **options)[0] for k in (1, 30))
    free = drawn_by_definition(np.random.default_rng(1), 2000, [0.2, 0.5], [0.5, 2.0])

    def best(windows):
        areas = windows[:, 2:].prod(axis=1)
        low = [np.maximum(windows[:, :2], b[:2]) for b in FAR]
        high = [np.minimum(windows[:, :2] + windows[:, 2:], b[2:]) for b in FAR]
        both = [np.maximum(h - w, 0).prod(axis=1) for w, h in zip(low, high)]
        return np.max([b / (areas + 0.01 - b) for b in both], axis=0)

    # With one attempt, the aspect ratio may be invalid, and then the whole image is used.
    few = few[few[:, 2] < 1]
    assert least_p_value(few, free) > P_VALUE
    assert best(many).mean() > 4 * best(few).mean()


def test_one_aspect_ratio():
    """The longer side decides: the largest of two uniform numbers."""
    for aspect in (1.0, 2.0, 0.5):
        windows, _ = draw(NONE, scaling=[0.3, 1.0], aspect_ratio=[aspect] * 2, allow_no_crop=False)
        longer = np.random.default_rng(2).uniform(0.3, 1, (2, 5000)).max(axis=0)
        np.testing.assert_allclose(windows[:, 2] / windows[:, 3], aspect, rtol=1e-4)
        assert stats.ks_2samp(windows[:, 2:].max(axis=1), longer).pvalue > P_VALUE


def test_no_window_reaches_out_of_the_image():
    """A square in an image that is three times as high as wide: its relative height is at most a third."""
    windows, _ = draw(NONE, scaling=[0.3, 1.0], input_shape=[100, 300], allow_no_crop=False)
    assert windows[:, :2].min() >= 0 and (windows[:, :2] + windows[:, 2:]).max() <= 1
    np.testing.assert_allclose(windows[:, 2] / windows[:, 3], 3, rtol=1e-4)


def test_three_dimensions():
    none = np.empty((0, 6), "f4")
    windows, _ = draw(none, scaling=[0.3, 1.0], allow_no_crop=False)
    assert windows.shape == (1500, 6)
    np.testing.assert_allclose(windows[:, 3:], windows[:, 3:4] * np.ones(3), rtol=1e-5)
    longest = np.random.default_rng(2).uniform(0.3, 1, (3, 5000)).max(axis=0)
    assert stats.ks_2samp(windows[:, 3], longest).pvalue > P_VALUE
    ranges = {"aspect_ratio": [0.5, 2.0, 1.0, 1.0, 0.25, 1.5], "scaling": [0.3, 1.0], "allow_no_crop": False}
    w, h, d = draw(none, **ranges)[0][:, 3:].T
    assert (w / h).min() >= 0.4999 and (w / h).max() <= 2.0001 and (h / d).max() <= 1.5001
    np.testing.assert_allclose(w, d, rtol=1e-4)
    box = np.float32([[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]])
    windows, kept = draw(box, n=50, scaling=[0.4, 0.8], allow_no_crop=False)
    for w, b in zip(windows, kept):
        expected = np.clip((box.reshape(2, 3) - w[:3]) / w[3:], 0, 1).reshape(1, 6)
        np.testing.assert_allclose(b, expected, atol=1e-5)


@pytest.mark.parametrize("layout", [None, "WH", "HW"])
def test_windows_of_a_fixed_size(layout):
    more = {} if layout is None else {"shape_layout": layout}
    order = slice(None, None, -1 if layout == "HW" else 1)
    crop, size = [10, 6][order], [13, 10][order]
    windows, boxes = draw(np.float32([[0, 0, 1, 1]]), n=2000, crop_shape=crop, input_shape=size, **more)
    assert (windows[:, 2:] == [10, 6]).all() and all((b == [[0, 0, 1, 1]]).all() for b in boxes)
    counts = [np.bincount(windows[:, d].astype("i8"), minlength=k) for d, k in ((0, 4), (1, 5))]
    assert [len(c) for c in counts] == [4, 5]
    # Only windows that contain the centre of the box are accepted: here all except those too far away.
    for d, (k, c, extent) in enumerate(((4, 10, 13), (5, 6, 10))):
        possible = np.array([i <= extent / 2 <= i + c for i in range(k)])
        assert (counts[d][~possible] == 0).all() and stats.chisquare(counts[d][possible]).pvalue > P_VALUE


def test_a_fixed_size_larger_than_the_image():
    windows, boxes = draw(np.float32([[0, 0, 1, 1]]), n=100, crop_shape=[100, 10], input_shape=[20, 40])
    assert windows[:, 0].min() >= -80 and windows[:, 0].max() <= 0
    for w, b in zip(windows, boxes):
        np.testing.assert_allclose(b, [[-w[0] / 100, 0, (20 - w[0]) / 100, 1]], atol=1e-6)


def test_shapes_that_differ_from_sample_to_sample():
    sizes = np.int32([[20, 30], [40, 50], [60, 20]])

    @pipeline_def(batch_size=3, num_threads=2, seed=1)
    def pipe():
        boxes = fn.external_source(source=[[NONE] * 3], cycle=True)
        size, crop = (fn.external_source(source=[list(s)], cycle=True) for s in (sizes, sizes // 2))
        return tuple(fn.random_bbox_crop(boxes, input_shape=size, crop_shape=crop))

    assert (pipe().run()[1].as_array() == sizes // 2).all()


def test_numbers_are_a_function_of_seed_and_sample():
    rng = np.random.default_rng(3)
    batches = [
        [np.sort(rng.random((k, 2, 2)), axis=1).reshape(k, 4).astype("f4") for k in (3, 0, 7, 1)] for _ in range(3)
    ]

    def run(num_threads, seed=1, depth=2):
        @pipeline_def(batch_size=4, num_threads=num_threads, seed=seed, prefetch_queue_depth=depth)
        def pipe():
            boxes = fn.external_source(source=batches)
            return tuple(fn.random_bbox_crop(boxes, thresholds=[0.1, 0.3], total_num_attempts=50, **WIDE))

        p = pipe()
        return [[np.array(x.at(i)) for x in p.run() for i in range(4)] for _ in range(3)]

    def same(a, b):
        return all(np.array_equal(x, y) for u, v in zip(a, b) for x, y in zip(u, v))

    first = run(1)
    assert same(first, run(4, depth=1)) and not same(first, run(1, seed=2)) and not same(first[:1], first[1:2])


def test_a_search_that_can_not_succeed_ends():
    windows, boxes = draw(FAR, n=4, thresholds=[1.0], **WIDE)
    assert np.isfinite(windows).all() and len(boxes) == 4
    windows, _ = draw(FAR, n=4, scaling=[0.3, 1.0], aspect_ratio=[5.0, 6.0], allow_no_crop=False)
    assert (windows == [0, 0, 1, 1]).all()


@pytest.mark.parametrize(
    "kwargs, text",
    [
        ({"aspect_ratio": [2.0, 1.0]}, "aspect_ratio takes one or three ranges"),
        ({"aspect_ratio": [1.0]}, "aspect_ratio takes one or three ranges"),
        ({"scaling": [0.9, 0.1]}, "scaling takes a range"),
        ({"scaling": [-1.0, 1.0]}, "scaling takes a range"),
        ({"num_attempts": 0}, "must be at least 1, got 0"),
        ({"total_num_attempts": 0}, "must be at least 1, got 1 and 0"),
        ({"thresholds": [-1.0]}, r"thresholds takes numbers in \[0, 1\]"),
        ({"thresholds": []}, r"thresholds takes numbers in \[0, 1\], at least one"),
        ({"threshold_type": "x"}, "'iou' or 'overlap', got 'x'"),
        ({"bbox_prune_threshold": 2.0}, r"in \[0, 1\], got 2.0"),
        ({"crop_shape": [1, 1]}, "crop_shape also needs the input_shape"),
        ({"crop_shape": [1, 1], "input_shape": [2, 2], "scaling": [0.1, 0.2]}, "leave scaling and aspect_ratio out"),
        ({"ltrb": True, "bbox_layout": "xyXY"}, "give the layout only"),
        ({"bbox_layout": "xyXH"}, "bbox_layout takes xyXY, xyWH"),
        ({"shape_layout": "HH"}, "shape_layout takes WH or WHD"),
    ],
)
def test_arguments_that_make_no_sense(kwargs, text):
    with pytest.raises(ValueError, match=text):
        draw(FAR, n=1, **kwargs)


@pytest.mark.parametrize(
    "boxes, labels, kwargs, text",
    [
        (np.zeros((1, 4), "f8"), None, {}, "must be float32, got float64"),
        (np.zeros((1, 3), "f4"), None, {}, r"the shape \(boxes, 4\) or \(boxes, 6\), got \[1, 3\]"),
        (np.zeros(4, "f4"), None, {}, "got 1 dimensions"),
        (np.zeros((1, 6), "f4"), None, {"bbox_layout": "xyWH"}, r"the shape \(boxes, 4\), got \[1, 6\]"),
        (np.float32([[0.5, 0.5, 1.1, 0.9]]), None, {}, "box 0 reaches from 0.5 to 1.1 along x"),
        (np.float32([[0.5, -0.5, 1, 0.9]]), None, {}, "box 0 reaches from -0.5 to 0.9 along y"),
        (np.float32([[0.5, 0.5, np.nan, 0.9]]), None, {}, "box 0 reaches from 0.5 to nan along x"),
        (FAR, np.zeros(3, "i4"), {}, "there are 3 labels for 2 boxes"),
        (FAR, np.zeros(2, "i8"), {}, "must be int32, got int64"),
        (FAR, None, {"input_shape": [0, 5]}, "input_shape must be positive"),
        (FAR, None, {"input_shape": [5, 5], "crop_shape": [0, 5]}, "crop_shape must be positive"),
        (FAR, None, {"input_shape": [5]}, "input_shape takes 2 numbers"),
        (FAR, None, {"input_shape": [5, 5, 5], "shape_layout": "WHD"}, "does not fit boxes of 2 dimensions"),
    ],
)
def test_inputs_that_do_not_fit(boxes, labels, kwargs, text):
    with pytest.raises(RuntimeError, match=text):
        draw(boxes, n=1, labels=labels, **kwargs)


def test_odd_boxes_break_nothing():
    """Boxes without area, inverted, or slightly outside the image."""
    odd = np.float32([[0.5, 0.5, 0.5, 0.5], [0.6, 0.6, 0.2, 0.2], [0.5, 0.5, 1.000001, 0.9]])
    for more in ({}, {"bbox_prune_threshold": 0.0}, {"threshold_type": "overlap", "thresholds": [0.5]}):
        windows, boxes = draw(odd, n=50, total_num_attempts=20, **WIDE, **more)
        assert np.isfinite(windows).all() and all(np.isfinite(b).all() and len(b) <= 3 for b in boxes)


def test_labels_of_several_columns():
    labels = np.arange(4, dtype="i4").reshape(2, 2)
    _, kept, of_kept = draw(FAR, n=20, labels=labels, **WIDE)
    assert all(len(k) == len(o) and o.shape[1] == 2 for k, o in zip(kept, of_kept))
