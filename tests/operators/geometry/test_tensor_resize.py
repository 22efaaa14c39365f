# SPDX-License-Identifier: Apache-2.0
import numpy as np

from harness import op_test, per_sample
from penstock import types
from resampling_reference import finish, resample

SHAPES = [(5, 6, 3), (9, 2, 4), (1, 7, 2)]


def reference(x, axes=None, axis_names=None, sizes=None, scales=None, alignment=0.5, size_rounding="round", **kw):
    """Resizes the given axes one by one, by the definition."""
    if axis_names is not None:
        axes = ["HWC".index(c) for c in axis_names]
    axes = [d % x.ndim for d in (range(x.ndim) if axes is None else np.atleast_1d(axes))]
    k = len(axes)
    each = lambda v: np.broadcast_to(np.asarray(v, "f4"), (k,))  # noqa: E731
    extent = np.array([x.shape[d] for d in axes], "f4")
    lo, hi = np.zeros(k, "f4"), extent
    if "roi_start" in kw:
        unit = extent if kw.get("roi_relative") else np.float32(1)
        lo, hi = each(kw["roi_start"]) * unit, each(kw["roi_end"]) * unit
    region = np.abs(hi - lo)
    want = each(sizes) if scales is None else each(scales) * extent
    most, share_of = each(kw.get("max_size", np.inf)), each(alignment)
    for d in range(x.ndim):  # the other axes request their own extent
        if d not in axes:
            axes.append(d)
            n = np.float32(x.shape[d])
            lo, hi, region, want = np.append(lo, 0), np.append(hi, n), np.append(region, n), np.append(want, n)
            most, share_of = np.append(most, np.inf), np.append(share_of, 0.5)
    k = x.ndim
    ratios = [abs(want[d]) / region[d] for d in range(k) if want[d]]
    mode = kw.get("mode", "default")
    if mode == "default":
        mean = np.float32(np.prod(ratios)) ** np.float32(1 / len(ratios))
        real = np.array([abs(want[d]) or region[d] * mean for d in range(k)], "f4")
    elif mode == "stretch":
        real = np.array([abs(want[d]) or region[d] for d in range(k)], "f4")
    else:
        real = region * np.float32(min(ratios) if mode == "not_larger" else max(ratios))
    real = np.minimum(real, most)
    how = {"round": lambda v: np.floor(v + 0.5), "truncate": np.floor, "ceil": np.ceil}
    size = np.maximum(how["round" if scales is None else size_rounding](real), 1).astype(int)
    interp = int(kw.get("interp_type", 1))
    full, a, b = np.array(x.shape), np.zeros(x.ndim), np.array(x.shape, "f8")
    for d in range(k):
        start, end, share = float(lo[d]), float(hi[d]), float(share_of[d])
        if kw.get("subpixel_scale", True):
            share = 1 - share if want[d] < 0 else share  # of the flipped region
            point, grown = (1 - share) * start + share * end, size[d] / real[d]
            start, end = point + (start - point) * grown, point + (end - point) * grown
        if want[d] < 0:
            start, end = end, start
        full[axes[d]], a[axes[d]], b[axes[d]] = size[d], start, end
    out = resample(x, 0, full, a, b, interp, interp, kw.get("antialias", True))
    return finish(out, x.dtype if kw.get("dtype") is None else "f4")


def three(rng, case):
    return [(rng.random(s) * 255).astype(case.dtype) for s in SHAPES]


ROI = {"roi_start": [0.1, 0.2], "roi_end": [0.8, 0.7], "roi_relative": True}
TestTensorResize = op_test(
    "tensor_resize",
    reference,
    dtypes=("u1", "f4"),
    layouts=("HWC",),
    make_input=three,
    args=[
        {"sizes": [4, 9], "axes": [0, 1]},
        {"sizes": [9, 4], "axes": [1, 0]},
        {"sizes": [7], "axes": [2]},
        {"sizes": 6, "axis_names": "HC"},
        {"sizes": [4, 5, 6]},
        {"sizes": per_sample(2, 12, (2,)), "axes": [0, -1]},
        {"sizes": [-4, 9], "axes": [0, 1]},
        {"sizes": [4, 0], "axes": [0, 1]},
        {"sizes": [4.4, 0], "axes": [0, 1], "mode": "stretch"},
        {"sizes": [4, 12], "axes": [0, 1], "mode": "not_larger"},
        {"sizes": [4, 12], "axes": [0, 1], "mode": "not_smaller"},
        {"sizes": 12, "axes": [0, 1], "max_size": 9},
        {"scales": [0.7, 1.6], "axes": [0, 1]},
        {"scales": per_sample(0.5, 2, (2,)), "axes": [0, 1], "alignment": 0.0},
        {"scales": [0.7, 1.6], "axes": [0, 1], "alignment": [1.0, 0.2], "size_rounding": "ceil"},
        {"scales": 1.3, "axes": [0, 1], "size_rounding": "truncate", "subpixel_scale": False},
        {"sizes": 6, "axes": [0, 1], **ROI},
        {"scales": [0.8, 0.7], "axes": [0, 1], **ROI},
        {"scales": [-0.61, 1.3], "axes": [0, 1], "alignment": [0.2, 0.9]},
        {"sizes": [5, 3], "axes": [0, 1], "interp_type": types.INTERP_CUBIC},
        {"sizes": [5, 3], "axes": [0, 1], "antialias": False, "dtype": types.FLOAT},
    ],
    errors=[
        ({"scales": 2}, ValueError, "exactly one of"),
        ({"mode": "up"}, ValueError, "invalid resize mode"),
        ({"size_rounding": "up"}, ValueError, "invalid size_rounding"),
        ({"roi_start": 0}, ValueError, "together"),
    ],
    steps=1,
    atol=1e-2,
)
TestChannels = op_test(  # the GPU must not take pixels as units here
    "tensor_resize",
    reference,
    layouts=("HWC",),
    make_input=lambda rng, case: [(rng.random((*s, 3)) * 255).astype(case.dtype) for s in ((5, 6), (9, 2))],
    args=[{"sizes": 6, "axis_names": "HC"}, {"sizes": 2, "axis_names": "C"}],
    steps=1,
)
TestLines = op_test(
    "tensor_resize",
    reference,
    layouts=("",),
    make_input=lambda rng, case: [(rng.random(n) * 255).astype(case.dtype) for n in (9, 30)],
    args=[{"sizes": 12}, {"scales": 0.6}],
    steps=1,
)
