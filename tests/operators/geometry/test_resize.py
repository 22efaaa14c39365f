# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from deviations import Either
from harness import Case, op_test, per_sample, run
from penstock import fn, pipeline_def, types
from resampling_reference import finish, resample, resamplings

LAYOUTS = ("HWC", "FHWC", "CHW", "FCHW", "CFHW", "DHWC", "FDHWC", "CDHW", "FCDHW", "CFDHW")


def wanted_size(extent, region, k, size=None, mode="default", max_size=None, resize_shorter=0, resize_longer=0, **xyz):
    """Extents before rounding and their signs, in float32 like DALI's."""
    f4 = np.float32
    if size is not None:
        want = np.broadcast_to(np.asarray(size, "f4"), (k,))
    elif resize_shorter or resize_longer:
        want, mode = (
            np.full(k, resize_shorter or resize_longer, "f4"),
            "not_smaller" if resize_shorter else "not_larger",
        )
    else:
        want = np.array([xyz.get(f"resize_{a}", 0) for a in "zyx"[-k:]], "f4")
    given = (want != 0) & (extent > 0)
    if not given.any():
        return region, want
    scale = [f4(abs(want[d]) / region[d]) for d in range(k) if given[d]]
    limit = np.broadcast_to(np.asarray(np.inf if max_size is None else max_size, "f4"), (k,))
    if mode in ("not_larger", "not_smaller"):
        s = min(scale) if mode == "not_larger" else max(scale)
        s = min(s, *(limit[d] / region[d] for d in range(k) if region[d] > 0))
        return region * f4(s), want
    mean = np.prod(scale, dtype="f4") ** f4(1 / len(scale)) if mode == "default" else f4(1)
    return np.minimum([abs(want[d]) if given[d] else region[d] * mean for d in range(k)], limit).astype("f4"), want


def geometry(x, layout, **kw):
    """For a sample or frame in `layout`: the first resized axis, the extents of input and output along the resized
    axes, and begin and end of the region of interest."""
    first = layout.find("D") if "D" in layout else layout.find("H")
    k = 3 if "D" in layout else 2
    extent = np.array(x.shape[first : first + k])
    lo, hi = np.zeros(k), extent.astype("f8")
    if "roi_start" in kw:
        unit = extent if kw.get("roi_relative") else 1
        lo, hi = (np.asarray(kw[n], "f4") * np.float32(unit) for n in ("roi_start", "roi_end"))
        lo, hi = lo.astype("f8"), hi.astype("f8")
    names = ("size", "mode", "max_size", "resize_shorter", "resize_longer", "resize_x", "resize_y", "resize_z")
    real, want = wanted_size(extent, np.abs(hi - lo).astype("f4"), k, **{n: kw[n] for n in names if n in kw})
    size = np.where(extent == 0, 0, np.maximum(np.floor(real + 0.5), 1)).astype(int)
    for d in range(k):
        if want[d] < 0:
            lo[d], hi[d] = hi[d], lo[d]
        if kw.get("subpixel_scale", True) and real[d] > 0:
            middle, half = (lo[d] + hi[d]) / 2, (hi[d] - lo[d]) / 2 * size[d] / max(real[d], np.float32(0.1))
            lo[d], hi[d] = middle - half, middle + half
    return first, extent, size, lo, hi


def references(x, layout, by=resamplings, **kw):
    """Allowed results for one sample or frame in `layout`."""
    first, extent, size, lo, hi = geometry(x, layout, **kw)
    interp = kw.get("interp_type", 1)
    filters = (int(kw.get(name, interp)) for name in ("min_filter", "mag_filter"))
    outs = by(x, first, size, lo, hi, *filters, kw.get("antialias", True))
    outs = [finish(out, x.dtype if kw.get("dtype") is None else "f4") for out in outs]
    return [(out, extent.astype("i4")) for out in outs] if kw.get("save_attrs") else outs


def begun_twice(x, layout, **kw):
    """As `references`, or shifted by the region's begin, which DALI adds twice for the axis it resizes first."""
    outs = references(x, layout, **kw)
    first, _, size, lo, _ = geometry(x, layout, **kw)
    for d, m in enumerate(size):
        rows = np.clip(np.arange(m) + int(np.floor(lo[d] + 0.5)), 0, m - 1)
        outs = [*outs, *(np.take(out, rows, first + d) for out in outs)]
    return outs


def reference(x, layout, **kw):
    return references(x, layout, lambda *args: [resample(*args)], **kw)[0]


def case_of(layout):
    return lambda x, **kw: reference(x, layout.removeprefix("F"), **kw)


ROI = {"roi_start": [0.1, 0.2], "roi_end": [0.8, 0.7], "roi_relative": True}
TestImages = op_test(
    "resize",
    case_of("HWC"),
    args=[
        {"resize_shorter": 12},
        {"resize_longer": per_sample(3, 40)},
        {"size": (9, 31)},
        {"size": per_sample(2, 50, (2,))},
        {"resize_x": 21.0},
        {"resize_y": 6.4, "mode": "stretch"},
        {"resize_x": 20, "resize_y": per_sample(3, 9), "mode": "not_larger"},
        {"resize_shorter": 30, "max_size": 40},
        {"size": 25, "mode": "not_smaller", "max_size": [60, 30]},
        {"size": (-8, 11)},
        {"size": (12.3, 6.7), "subpixel_scale": False},
        {"size": (8, 9), **ROI},
        {"size": (8, 9), "roi_start": [0.8, 0.1], "roi_end": [0.1, 0.9], "roi_relative": True},
        {"size": (7, 12), "interp_type": types.INTERP_NN},
        {"size": (7, 12), "interp_type": types.INTERP_CUBIC},
        {"size": (7, 12), "interp_type": types.INTERP_LANCZOS3},
        {"size": (7, 13), "interp_type": types.INTERP_GAUSSIAN},
        {"size": (7, 12), "interp_type": types.INTERP_TRIANGULAR, "antialias": False},
        {"size": (7, 12), "min_filter": types.INTERP_CUBIC, "antialias": False},
        {"size": (7, 40), "mag_filter": types.INTERP_LANCZOS3},
        {"size": (7, 12), "interp_type": per_sample(1, 5, dtype="i4")},
        {"size": (7, 12), "dtype": types.FLOAT},
        {"size": (7, 12), "save_attrs": True},
        {"size": 1e-30},
        {"size": (0.03, 4.0)},
        {"size": (9, 7), "max_size": (1e-9, 0.2)},
    ],
    steps=1,
    atol=3e-3,  # float32 sums of values up to 255
    errors=[
        ({"resize_x": 1}, ValueError, "exactly one way"),
        ({"mode": "stretch"}, ValueError, "mutually exclusive"),
        ({"dtype": types.INT32}, RuntimeError, "must have the type of the input"),
        ({"roi_start": [0, 0]}, ValueError, "specified together"),
        ({"max_size": [1, 2, 3]}, RuntimeError, "'max_size' takes a single value or 2 values"),
    ],
    dali_differs={
        "INTERP_GAUSSIAN": Either(
            "which samples on the rim of the filter count is decided in double precision", references
        ),
        "form:size=1e-30": "an axis with pixels keeps one, also where another axis has none",
        "form:max_size=(1e-09": "an axis with pixels keeps one, also where another axis has none",
        "mag_filter=INTERP_NN": Either("where one axis only is INTERP_NN, DALI misplaces the other", begun_twice),
        "size=[7.0]/sample": "one number per sample may stand for all axes, as a constant may",
        "interp_type=per_sample": "integers are accepted for interpolation types; DALI wants data of that type",
    },
)
TestTypes = op_test(
    "resize",
    case_of("HWC"),
    dtypes=("u2", "i2", "f4"),
    args=[{"size": (9, 14)}, {"size": (9, 14), "interp_type": types.INTERP_CUBIC, "dtype": types.FLOAT}],
    steps=1,
    atol=0.6,  # of 65535, and of 1 for floats, whose own bound is below
    ulps=8,
)


for _layout in LAYOUTS:
    _size = (4, 9, 14) if "D" in _layout else (9, 14)
    _args = [{"size": _size}] + ([] if _layout.startswith("F") else [{"size": _size, "save_attrs": True}])
    globals()[f"Test{_layout}"] = op_test(
        "resize",
        case_of(_layout),
        layouts=(_layout,),
        args=_args,
        steps=1,
        sizes=((5, 4), (1, 1), (33, 17), (8, 40), (3, 3)),
    )


def test_a_sequence_has_one_set_of_attributes():
    x = np.random.default_rng(2).integers(0, 256, (3, 6, 8, 1), "u1")
    out, extents = run("resize", [x], Case("u1", "FHWC", {"size": 4, "save_attrs": True}), {})
    assert extents[0].tolist() == [6, 8] and extents[0].dtype == np.int32
    np.testing.assert_array_equal(out[0], run("resize", [x], Case("u1", "FHWC", {"size": 4}), {})[0][0])


def sizes(shapes, **kwargs):
    samples = [np.zeros((*s, 1), "u1") for s in shapes]
    return [o.shape[:2] for o in run("resize", samples, Case("u1", "HWC", kwargs), {})[0]]


def test_sizes_follow_the_documented_rules():
    assert sizes([(375, 500), (500, 375)], resize_shorter=256) == [(256, 341), (341, 256)]
    assert sizes([(720, 1280)], size=(480, 640), mode="not_larger") == [(360, 640)]
    assert sizes([(480, 640)], size=(1080, 1920), mode="not_smaller") == [(1440, 1920)]
    assert sizes([(600, 1200)], size=800, mode="not_smaller", max_size=1400) == [(700, 1400)]
    assert sizes([(10, 40)], resize_x=0) == [(10, 40)]
    assert sizes([(1, 1000)], resize_longer=10) == [(1, 10)]


def test_a_negative_size_flips():
    x = np.random.default_rng(0).integers(0, 256, (6, 8, 3), "u1")
    out = run("resize", [x], Case("u1", "HWC", {"size": (-6, 8)}), {})[0][0]
    np.testing.assert_array_equal(out, x[::-1])


def test_bad_sizes_name_the_sample():
    with pytest.raises(RuntimeError, match="finite"):
        sizes([(4, 4)], size=float("nan"))
    with pytest.raises(RuntimeError, match="is too large"):
        sizes([(4, 4)], size=1e12)


def test_only_what_is_needed_is_read():
    """Two chained resizes give the same pixels as separate ones, although the first computes only a window."""
    x = np.random.default_rng(1).integers(0, 256, (60, 80, 3), "u1")
    roi = {"roi_start": (10, 12), "roi_end": (22, 30)}

    @pipeline_def(batch_size=1, num_threads=1)
    def joined():
        y = fn.resize(fn.external_source(source=lambda i: [x], layout="HWC"), size=(40, 50))
        return fn.resize(y, size=(9, 9), **roi)

    first = run("resize", [x], Case("u1", "HWC", {"size": (40, 50)}), {})[0][0]
    second = run("resize", [first], Case("u1", "HWC", {"size": (9, 9), **roi}), {})[0][0]
    np.testing.assert_array_equal(joined().run()[0].at(0), second)


@pytest.mark.parametrize("start, end", [([0, -3e7], [3, 3]), ([0, 0], [3, float("nan")])])
def test_endless_regions_of_interest(start, end):
    """Not compared with DALI, which exhausts memory."""

    @pipeline_def(batch_size=1)
    def pipe():
        image = types.Constant(np.zeros((8, 8, 3), np.uint8), layout="HWC")
        return fn.resize(image, size=(4, 4), roi_start=start, roi_end=end)

    with pytest.raises(RuntimeError, match=r"must lie within 2\*\*24 pixels of the image"):
        pipe().run()
