# SPDX-License-Identifier: Apache-2.0
"""Random operators on boxes and masks against the real DALI: the same distributions, by tests of fixed seeds."""

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import penstock
from conformance import oracle, report

sys.path.append(str(Path(__file__).parents[1] / "operators" / "bbox"))
from windows import NONE, draw, least_p_value

P_VALUE = 1e-4
FAR = np.float32([[0.2, 0.2, 0.3, 0.3], [0.7, 0.7, 0.8, 0.8]])
MANY = np.float32([[0.1, 0.1, 0.5, 0.3], [0.55, 0.5, 0.95, 0.9], [0, 0, 0.2, 0.1], [0.9, 0.9, 1, 1]])
WIDE = {"scaling": [0.3, 1.0], "aspect_ratio": [0.5, 2.0], "quiet": True}
SSD = {**WIDE, "thresholds": [0.0, 0.1, 0.3, 0.5, 0.7, 0.9], "num_attempts": 50, "total_num_attempts": 1000}
CROPS = [
    (NONE, {**WIDE, "allow_no_crop": False}),
    (NONE, {"scaling": [0.3, 1.0], "allow_no_crop": False}),
    (NONE, {"scaling": [0.3, 1.0], "aspect_ratio": [2.0, 2.0]}),
    (NONE, {**WIDE, "input_shape": [100, 300]}),
    (NONE, {**WIDE, "input_shape": [300, 100], "shape_layout": "HW"}),
    (NONE, {"crop_shape": [10, 8], "input_shape": [13, 30]}),
    (MANY, {"crop_shape": [10, 8], "input_shape": [13, 30], "total_num_attempts": 100, "quiet": True}),
    (FAR, {**WIDE, "thresholds": [0.01], "total_num_attempts": 1000}),
    (FAR, {**WIDE, "thresholds": [0.05], "all_boxes_above_threshold": False}),
    (FAR, {**WIDE, "thresholds": [0.5, 1.0], "threshold_type": "overlap", "num_attempts": 5}),
    (MANY, {**WIDE, "thresholds": [0.2], "all_boxes_above_threshold": False, "bbox_prune_threshold": 0.3}),
    (MANY, {**WIDE, "thresholds": [0.3], "total_num_attempts": 3, "allow_no_crop": False}),
    (MANY, {**SSD, "all_boxes_above_threshold": False}),
    (MANY, {**SSD, "bbox_layout": "xyWH"}),
]


# Only the batches that are looked at are drawn.
NO_OTHERS = {"prefetch_queue_depth": 1, "exec_pipelined": False, "exec_async": False}
OURS = (penstock.fn, penstock.pipeline_def, NO_OTHERS)


def dali():
    return oracle.dali_fn, oracle.pipeline_def, {"device_id": None, **NO_OTHERS}


def allowed(windows):
    """Without the empty windows that DALI returns if no attempt had an allowed aspect ratio."""
    return windows[(windows[:, 2:] > 0).all(axis=1)]


@pytest.mark.parametrize("boxes, kwargs", CROPS, ids=[str(i) for i in range(len(CROPS))])
def test_random_bbox_crop(boxes, kwargs):
    tally = report.tally("random_bbox_crop")
    tally.cases += 1
    kwargs = {**kwargs, "output_bbox_indices": True}
    if kwargs.get("bbox_layout") == "xyWH":
        boxes = np.hstack([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]])
    labels = np.arange(len(boxes), dtype="i4")
    ours, theirs = (draw(boxes, n=1200, labels=labels, library=x, **kwargs) for x in (OURS, dali()))
    problems = []
    for got, want in zip(ours[1:], theirs[1:]):
        seen = {(x[0].dtype.name, x[0].ndim) for x in (got, want)}
        if len(seen) > 1:
            problems.append(f"types and dimensions {seen}")
        for rows in zip(got[:50], ours[2][:50]):
            assert len(rows[0]) == len(rows[1])
    p = least_p_value(ours[0], allowed(theirs[0]))
    if p < P_VALUE:
        problems.append(f"windows are distributed otherwise, p = {p:.2g}")
    counts = np.stack([np.bincount([len(x) for x in side[1]], minlength=5) for side in (ours, theirs)])
    counts = counts[:, counts.sum(axis=0) > 0]
    if counts.shape[1] > 1 and stats.chi2_contingency(counts).pvalue < P_VALUE:
        problems.append(f"numbers of boxes kept: {counts.tolist()}")
    if problems:
        tally.failures.append(f"{kwargs}: {problems}")
        pytest.fail(f"{kwargs}: {problems}", pytrace=False)


MASK = np.array([[1, 0, 0, 0, 5], [0, 0, 3, 0, 0], [0, 3, 0, 0, 0], [0, 0, 0, 0, 7]])


def places(library, mask, kwargs):
    """(1000, ndim) pixels of the mask."""
    fn, define, options = library

    @define(batch_size=1000, num_threads=2, seed=5, **options)
    def pipe():
        x = fn.external_source(source=[np.stack([mask] * 1000)], cycle=True)
        return fn.segmentation.random_mask_pixel(x, **kwargs)

    found = np.array(pipe().run()[0].as_array())
    assert found.dtype == np.int64
    return found


@pytest.mark.parametrize("dtype", ["u1", "i2", "u8", "f4", "b1"])
@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"foreground": 1},
        {"foreground": 1, "threshold": 3.0},
        {"foreground": 1, "threshold": 2.5},
        {"foreground": 1, "value": 3},
        {"foreground": 1, "value": 30},
        {"foreground": 1, "threshold": -1.0},
    ],
    ids=str,
)
def test_random_mask_pixel(dtype, kwargs):
    tally = report.tally("segmentation.random_mask_pixel")
    tally.cases += 1
    counts = [np.bincount(places(x, MASK.astype(dtype), kwargs) @ [5, 1], minlength=20) for x in (OURS, dali())]
    table = np.stack(counts)
    table = table[:, table.sum(axis=0) > 0]
    if table.shape[1] > 1 and stats.chi2_contingency(table).pvalue < P_VALUE:
        tally.failures.append(f"{dtype}, {kwargs}: {table.tolist()}")
        pytest.fail(tally.failures[-1], pytrace=False)


LABELS = np.zeros((6, 8), "u1")
LABELS[0, 0:5] = LABELS[2:4, 3:5] = LABELS[5, 0] = 1
LABELS[5, 7], LABELS[4, 5:7], LABELS[0, 7] = 2, 3, 3


def drawn_objects(library, mask, kwargs):
    """Counts of each box, with its label if any, in 2000 draws."""
    fn, define, options = library

    @define(batch_size=2000, num_threads=2, seed=5, **options)
    def pipe():
        x = fn.external_source(source=[np.stack([mask] * 2000)], cycle=True)
        out = fn.segmentation.random_object_bbox(x, **kwargs)
        return tuple(out) if isinstance(out, (tuple, list)) else out

    outputs = [np.array(x.as_array()) for x in pipe().run()]
    form = [(x.dtype.name, x.shape[1:]) for x in outputs]
    rows = np.hstack([x.reshape(2000, -1) for x in outputs])
    return form, Counter(map(tuple, rows.tolist()))


@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"format": "start_end"},
        {"format": "box", "output_class": True},
        {"output_class": True, "classes": [3, 1]},
        {"output_class": True, "classes": [3, 1, 8], "class_weights": [1.0, 2.0, 5.0]},
        {"output_class": True, "class_weights": [1.0, 0.0, 4.0]},
        {"output_class": True, "background": 1},
        {"output_class": True, "background": 1, "class_weights": [1.0, 2.0, 1.0]},
        {"output_class": True, "background": 3, "class_weights": [1.0, 2.0, 1.0]},
        {"output_class": True, "classes": [0, 2], "foreground_prob": 0.6},
        {"output_class": True, "classes": [-1, 0], "foreground_prob": 0.6},
        {"output_class": True, "threshold": [1, 2]},
        {"output_class": True, "threshold": [2], "k_largest": 1},
        {"output_class": True, "threshold": [2, 1], "k_largest": 2},
        {"k_largest": 1},
        {"k_largest": 2},
        {"output_class": True, "threshold": [9, 1]},
        {"ignore_class": True},
        {"ignore_class": True, "k_largest": 2},
        {"ignore_class": True, "threshold": [1, 2]},
        {"ignore_class": True, "background": 2},
        {"foreground_prob": 0.3},
        {"cache_objects": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["u1", "i4"])
def test_random_object_bbox(dtype, kwargs):
    tally = report.tally("segmentation.random_object_bbox")
    tally.cases += 1
    (form, ours), (wanted, theirs) = (drawn_objects(x, LABELS.astype(dtype), kwargs) for x in (OURS, dali()))
    keys = sorted({*ours, *theirs})
    table = np.array([[side[k] for k in keys] for side in (ours, theirs)])
    if form != wanted or len(keys) > 1 and stats.chi2_contingency(table).pvalue < P_VALUE:
        tally.failures.append(f"{dtype}, {kwargs}: {form} {ours}, DALI has {wanted} {theirs}")
        pytest.fail(tally.failures[-1], pytrace=False)


@pytest.mark.parametrize("kwargs", [{}, {"num_attempts": 50}], ids=str)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_ssd_random_crop(kwargs):
    tally = report.tally("ssd_random_crop")
    tally.cases += 1
    image = np.stack([*np.mgrid[:60, :80], np.zeros((60, 80))], axis=-1).astype("u1")  # pixel values are coordinates
    sides = []
    for library in (OURS, dali()):
        outputs = cropped(library, image, MANY, np.arange(4, dtype="i4"), kwargs)
        assert outputs[1][0].dtype == np.float32 and outputs[2][0].dtype == np.int32
        assert all(len(b) == len(c) for b, c in zip(*outputs[1:]))
        windows = np.array([[i[0, 0, 1], i[0, 0, 0], i.shape[1], i.shape[0]] for i in outputs[0]], "f8")
        sides.append((windows, np.bincount([len(b) for b in outputs[1]], minlength=5)))
    (ours, counts), (theirs, expected) = sides
    table = np.stack([counts, expected])[:, counts + expected > 0]
    # The libraries round a window's edges differently.
    far = max(stats.ks_2samp(a, b).statistic for a, b in zip(ours.T, theirs.T))
    if far > 0.06 or stats.chi2_contingency(table).pvalue < P_VALUE:
        tally.failures.append(f"{kwargs}: windows differ by {far:.3g}, numbers of boxes {table.tolist()}")
        pytest.fail(tally.failures[-1], pytrace=False)


def cropped(library, image, boxes, labels, kwargs):
    """The outputs of ssd_random_crop, 2000 samples each."""
    fn, define, options = library

    @define(batch_size=2000, num_threads=2, seed=5, **options)
    def pipe():
        fed = [fn.external_source(source=[[x] * 2000], cycle=True, layout=k) for x, k in ((image, "HWC"),)]
        fed += [fn.external_source(source=[[x] * 2000], cycle=True) for x in (boxes, labels)]
        return tuple(fn.ssd_random_crop(*fed, **kwargs))

    return [[np.array(x.at(i)) for i in range(2000)] for x in pipe().run()]
