# SPDX-License-Identifier: Apache-2.0
"""Windows drawn by random_bbox_crop in either library, and the search implemented from its definition in NumPy."""

import numpy as np
from scipy import stats

import penstock.fn
from penstock import pipeline_def

NONE = np.empty((0, 4), "f4")


def draw(boxes, n=1500, seed=3, library=None, labels=None, **kwargs):
    """n windows (x, y, width, height) for the same boxes, and the other outputs."""
    fn, define, options = library or (penstock.fn, pipeline_def, {})

    @define(batch_size=n, num_threads=2, seed=seed, **options)
    def pipe():
        fed = [fn.external_source(source=[[x] * n], cycle=True) for x in (boxes, labels) if x is not None]
        return tuple(fn.random_bbox_crop(*fed, **kwargs))

    anchor, shape, *more = pipe().run()
    rows = np.hstack([np.array(x.as_array()) for x in (anchor, shape)])
    return rows, *([np.array(x.at(i)) for i in range(n)] for x in more)


def drawn_by_definition(rng, n, scaling, aspect, size=(1, 1)):
    """Extents are independent and uniform, rejected unless the ratio is allowed; positions are uniform inside."""
    w, h = rng.uniform(*scaling, (2, 60 * n))
    ratio = w * size[0] / (h * size[1])
    w, h = (x[(ratio >= aspect[0]) & (ratio <= aspect[1])] for x in (w, h))
    x, y = rng.random((2, len(w)))
    return np.stack([x * (1 - w), y * (1 - h), w, h], axis=1)


def shared_area(windows, box):
    """Share (n,) of the box inside each window."""
    low, high = np.maximum(windows[:, :2], box[:2]), np.minimum(windows[:, :2] + windows[:, 2:], box[2:])
    return np.maximum(high - low, 0).prod(axis=1)


def has_centre(windows, box):
    centre = (box[:2] + box[2:]) / 2
    return ((centre >= windows[:, :2]) & (centre <= windows[:, :2] + windows[:, 2:])).all(axis=1)


def accepted(windows, boxes, threshold, all_boxes=True, overlap=False, prune=None):
    """Which windows are accepted by the definition, and which boxes (n, boxes) they keep."""
    areas = (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)
    both = np.stack([shared_area(windows, b) for b in boxes], axis=1)
    whole = windows[:, 2:].prod(axis=1)[:, None]
    metric = both / areas if overlap else both / (areas + whole - both)
    fits = (metric >= threshold).all(axis=1) if all_boxes else (metric >= threshold).any(axis=1)
    kept = np.stack([has_centre(windows, b) for b in boxes], axis=1)
    if prune is not None:
        kept = (both / areas >= prune) & (both > 0)
    return fits & kept.any(axis=1), kept


def least_p_value(a, b):
    """The smallest p-value of Kolmogorov-Smirnov tests of each column, and of derived quantities."""

    def columns(x):
        return [np.round(c, 5) for c in (*x.T, x[:, 2] / x[:, 3], x[:, 2] * x[:, 3], x[:, 0] + x[:, 1])]

    return min(stats.ks_2samp(u, v).pvalue for u, v in zip(columns(a), columns(b)))
