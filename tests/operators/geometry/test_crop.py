# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock
from harness import Case, op_test, per_sample
from penstock import fn, pipeline_def, types


def _at(i, n, policy):
    """Index in [0, n) for position i, or -1."""
    if 0 <= i < n:
        return i
    if policy in ("edge", "clamp"):
        return 0 if i < 0 else n - 1
    if policy == "wrap":
        return i % n
    if policy in ("reflect", "reflect_1001"):
        return [*range(n), *reversed(range(n))][i % (2 * n)]
    if policy == "reflect_101":
        return [*range(n), *reversed(range(1, n - 1))][i % max(2 * n - 2, 1)]
    return -1


def windowed(x, start, extent, policy="error", fill=0.0):
    """The window; `fill` (cut to float32, and to whole numbers for integers) is broadcast against x."""
    fill = np.asarray(fill if policy in ("error", "constant", "pad", "trim_to_shape") else 0, "f4")
    spans = [range(s, s + e) for s, e in zip(start, extent)]
    if policy == "trim_to_shape":
        spans = [[i for i in span if 0 <= i < n] for span, n in zip(spans, x.shape)]
    if not all(len(s) for s in spans):
        return np.zeros([len(s) for s in spans], x.dtype)
    indices = [np.array([_at(i, n, policy) for i in span]) for span, n in zip(spans, x.shape)]
    ok = np.ones([len(s) for s in spans], bool)
    for d, index in enumerate(indices):
        ok &= (index >= 0).reshape([-1 if k == d else 1 for k in range(x.ndim)])
    source = x[np.ix_(*indices)] if x.size else np.zeros(ok.shape, x.dtype)
    return np.where(ok, source, np.trunc(fill).astype(x.dtype) if x.dtype.kind in "iu" else np.asarray(fill, x.dtype))


def converted(x, dtype):
    """Truncates fractions and clamps values."""
    if dtype is None:
        return x
    out = np.dtype(types.to_numpy_type(dtype))
    if out.kind == "f":
        return np.clip(x.astype("f4"), np.finfo(out).min, np.finfo(out).max).astype(out) if x.dtype != out else x
    info = np.iinfo(out)
    return np.clip(np.trunc(x.astype("f8")), info.min, info.max).astype(out)


def reference_for(layout):
    def reference(x, crop=None, crop_pos_x=0.5, crop_pos_y=0.5, crop_pos_z=0.5, rounding="round", dtype=None, **kw):
        policy, fill = kw.pop("out_of_bounds_policy", "error"), np.asarray(kw.pop("fill_values", 0.0) or 0.0)
        wanted = (
            dict(zip("WHD", reversed(list(crop)))) if crop is not None else {k[-1].upper(): v for k, v in kw.items()}
        )
        start, extent = [0] * x.ndim, list(x.shape)
        for name, position in (("W", crop_pos_x), ("H", crop_pos_y), ("D", crop_pos_z)):
            axis = "F" if name == "D" and "D" not in layout else name
            if axis not in layout:
                continue
            d = layout.index(axis)
            if int(wanted.get(name, 0)) > 0:
                extent[d] = int(wanted[name])
            place = float(np.float32(position)) * (x.shape[d] - extent[d])
            start[d] = int(place) if rounding == "truncate" else int(np.sign(place) * np.floor(abs(place) + 0.5))
        if fill.ndim:
            fill = fill.reshape([-1 if c == "C" else 1 for c in layout])
        return windowed(converted(x, dtype), start, extent, policy, fill)

    return reference


PADDED = {"crop": (9, 20), "out_of_bounds_policy": "pad"}

TestCrop = op_test(
    "crop",
    reference_for("HWC"),
    args=[
        {},
        {**PADDED, "crop_pos_x": per_sample(0, 1), "crop_pos_y": per_sample(0, 1)},
        {**PADDED, "fill_values": [7.9, 8, 9]},
        {**PADDED, "fill_values": []},
        {"crop": per_sample(1, 40, (2,)), "out_of_bounds_policy": "trim_to_shape"},
        {
            "crop_h": per_sample(0, 40),
            "crop_w": 3.9,
            "out_of_bounds_policy": "pad",
            "rounding": "truncate",
            "fill_values": [7],
        },
        {"crop": (0, -1), "dtype": types.FLOAT},
    ],
    errors=[
        ({"crop": (4, 4)}, RuntimeError, "can't be placed out of bounds"),
        ({"crop": (4, 4), "crop_h": 4, "crop_w": 4}, ValueError, "not both"),
        ({"crop_w": 4}, ValueError, "together"),
        ({"crop_h": 2, "crop_w": 2, "crop_pos_y": -0.5}, RuntimeError, r"outside of \[0, 1\]"),
        ({"out_of_bounds_policy": "border"}, ValueError, "supported: error, constant"),
        ({"dtype": types.INT32}, RuntimeError, "no conversion from uint8"),
        ({"crop": (9, 20), "out_of_bounds_policy": "edge"}, RuntimeError, "no border to repeat"),
    ],
)

NOT_EMPTY = ((5, 4), (1, 1), (2, 3), (33, 17), (8, 67))
TestBorders = op_test(
    "crop",
    reference_for("HWC"),
    args=[
        {"crop": (25, 40), "crop_pos_x": per_sample(0, 1), "out_of_bounds_policy": p}
        for p in ("edge", "clamp", "reflect", "reflect_1001", "reflect_101", "wrap")
    ]
    + [{"crop": (25, 40), "fill_values": [1, 2], "out_of_bounds_policy": "edge"}],  # ignored
    sizes=NOT_EMPTY,
)

_WIDE = {"crop": (4, 5), "out_of_bounds_policy": "pad"}
TestTypes = op_test(
    "crop",
    reference_for("HWC"),
    cases=[
        Case(i, "HWC", {**_WIDE, "fill_values": [3.7], "dtype": o})
        for i in ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8")
        for o in (None, types.FLOAT, types.FLOAT16, types.UINT8)
    ],
)


def _layout_test(layout):
    border = {"out_of_bounds_policy": "pad", "fill_values": [1, 2, 3]}
    return op_test(
        "crop",
        reference_for(layout),
        layouts=(layout,),
        args=[{"crop": (2, 7, 3), **border}, {"crop": (7, 3), **border}],
    )


TestPlanes = _layout_test("CHW")
TestVolumes = _layout_test("DHWC")
TestPlanarVolumes = _layout_test("CDHW")
TestSequences = _layout_test("FHWC")
TestPlanarSequences = _layout_test("FCHW")
TestSequencesInside = _layout_test("CFHW")


def _run(x, layout="HWC", **kwargs):
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        return fn.crop(fn.external_source(source=lambda: [x], layout=layout), **kwargs)

    return np.array(pipe().run()[0].at(0))


@settings(max_examples=150, deadline=None)
@given(
    st.integers(1, 9),
    st.integers(1, 9),
    st.floats(0, 24, width=32),
    st.floats(0, 1, width=32),
    st.sampled_from(["pad", "trim_to_shape", "edge", "reflect_1001", "reflect_101", "wrap"]),
)
def test_window_arithmetic(height, width, crop, position, policy):
    x = np.arange(1, height * width + 1, dtype="u1").reshape(height, width, 1)
    kwargs = {"crop": (crop, crop), "crop_pos_x": position, "crop_pos_y": position, "out_of_bounds_policy": policy}
    np.testing.assert_array_equal(_run(x, **kwargs), reference_for("HWC")(x, **kwargs))


@pytest.mark.parametrize("dtype", [penstock.types.FLOAT64, penstock.types.INT32])
def test_types_that_are_no_output(dtype):
    with pytest.raises(RuntimeError, match="no conversion from uint8 to DALIDataType"):
        _run(np.zeros((2, 2, 3), "u1"), crop=(1, 1), dtype=dtype)


@pytest.mark.parametrize("size", [np.nan, np.inf, -np.inf])
def test_sizes_that_are_no_number(size):
    with pytest.raises(RuntimeError, match=f"the size of the window along W must be finite, got {size:g}"):
        _run(np.zeros((2, 2, 3), "u1"), crop=(1, size))


def test_a_huge_window_reaches_out():
    with pytest.raises(RuntimeError, match="can't be placed out of bounds"):
        _run(np.zeros((2, 2, 3), "u1"), crop=(1, 1e30))
    assert _run(np.zeros((2, 2, 3), "u1"), crop=(1, 1e30), out_of_bounds_policy="trim_to_shape").shape == (1, 2, 3)


def test_five_dimensions():
    x = np.arange(2 * 3 * 4 * 5 * 3, dtype="u2").reshape(2, 3, 4, 5, 3)
    kwargs = {"crop": (2, 5, 2), "out_of_bounds_policy": "pad", "fill_values": [1, 2, 3]}
    np.testing.assert_array_equal(_run(x, "FDHWC", **kwargs), reference_for("FDHWC")(x, **kwargs))


def test_per_channel_fill_needs_one_value_a_channel():
    with pytest.raises(RuntimeError, match="2 fill_values for 3 channels"):
        _run(np.zeros((2, 2, 3), "u1"), crop=(3, 3), out_of_bounds_policy="pad", fill_values=[1, 2])


def test_old_name_of_dtype():
    with pytest.warns(DeprecationWarning, match="dtype"):
        assert _run(np.zeros((2, 2, 3), "u1"), output_dtype=penstock.types.FLOAT).dtype == np.float32
