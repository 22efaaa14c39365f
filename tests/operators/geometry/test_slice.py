# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import Case, op_test, per_sample
from operators.geometry.test_crop import converted, windowed
from penstock import fn, pipeline_def, types


def _round(v):
    return int(np.sign(v) * np.floor(abs(v) + 0.5))


def reference_for(layout):
    def reference(
        x,
        anchor=None,
        shape_input=None,
        axes=None,
        axis_names="WH",
        normalized_anchor=True,
        normalized_shape=True,
        **kw,
    ):
        policy, fill, dtype = (
            kw.pop("out_of_bounds_policy", "error"),
            np.asarray(kw.pop("fill_values", 0.0)),
            kw.pop("dtype", None),
        )
        axes = [layout.index(c) for c in axis_names] if axes is None else [int(d) % x.ndim for d in np.atleast_1d(axes)]
        start, extent = [0] * x.ndim, list(x.shape)
        for k, d in enumerate(axes):
            n = x.shape[d]
            at = {name: np.broadcast_to(v, (len(axes),))[k] for name, v in kw.items()}
            at = {name: np.float32(v) if name.startswith("rel") else float(v) for name, v in at.items()}
            if anchor is not None:
                a, s = float(anchor[k]), float(shape_input[k])
                by_anchor = normalized_anchor and anchor.dtype.kind == "f"
                by_shape = normalized_shape and shape_input.dtype.kind == "f"
                begin = a * n if by_anchor else a
                end = (a + s) * n if by_anchor and by_shape else begin + (s * n if by_shape else s)
            else:
                begin = at["start"] if "start" in at else float(at.get("rel_start", np.float32(0)) * np.float32(n))
                end = n
                if "end" in at:
                    end = at["end"]
                elif "rel_end" in at:
                    end = float(at["rel_end"] * np.float32(n))
                elif "shape" in at:
                    end = begin + at["shape"]
                elif "rel_shape" in at and "rel_start" in at:
                    end = max((float(at["rel_start"]) + float(at["rel_shape"])) * n, begin)
                elif "rel_shape" in at:
                    end = begin + float(at["rel_shape"] * np.float32(n))
            start[d] = _round(begin)
            extent[d] = _round(end) - start[d]
        if fill.ndim:
            fill = fill.reshape([-1 if c == "C" else 1 for c in layout])
        return windowed(converted(x, dtype), start, extent, policy, fill)

    return reference


PAD = {"out_of_bounds_policy": "pad"}
TestSlice = op_test(
    "slice",
    reference_for("HWC"),
    args=[
        {"rel_start": per_sample(0, 0.5, (2,)), "rel_shape": per_sample(0.1, 0.5, (2,))},
        {
            "rel_start": per_sample(-0.5, 0.5, (2,)),
            "rel_end": per_sample(0.5, 1.5, (2,)),
            **PAD,
            "fill_values": [1, 2, 3],
        },
        {"start": per_sample(-4, 4, (2,), "i4"), "shape": per_sample(0, 9, (2,), "i4"), **PAD, "axes": [0, 1]},
        {"start": 1, "end": (6, 9), "axis_names": "HW", "out_of_bounds_policy": "trim_to_shape"},
        {"rel_shape": 0.5, "axes": [-3]},
        {"end": [2], "axis_names": "C", "dtype": types.FLOAT},
        {"start": [-3, 1], "rel_shape": [1.5, 0.7], **PAD},
        {"rel_start": [0.25, 0.3], "shape": [7, 0], **PAD},
        {"rel_start": per_sample(0, 0.5, (2,)), "end": (33, 40), "axes": [0, 1], **PAD},
    ],
    errors=[
        ({"end": [4, 4], "shape": [1, 1]}, ValueError, "give one of end, rel_end, shape, rel_shape"),
        ({"axes": [0, 1], "axis_names": "HW"}, ValueError, "not both"),
        ({"rel_start": [0.5, 0.5], "rel_shape": [0.9, 0.5]}, RuntimeError, "can't be placed out of bounds"),
        ({"rel_start": [0.5, 0.5], "rel_shape": [0.5, -0.5]}, RuntimeError, "negative rel_shape"),
        ({"axes": [0, 0]}, RuntimeError, "more than once"),
        ({"axes": [0, 3]}, RuntimeError, r"out of range. Expected range is \[-3, 2\]"),
        ({"axis_names": "HX"}, RuntimeError, "Axis 'X' is not present in the input layout"),
        ({"rel_start": [0.1, 0.2, 0.3]}, RuntimeError, "3 values for 2 axes"),
    ],
)

TestBorders = op_test(
    "slice",
    reference_for("HWC"),
    args=[
        {
            "start": per_sample(-40, 40, (3,), "i4"),
            "shape": per_sample(0, 40, (3,), "i4"),
            "axes": [0, 1, 2],
            "out_of_bounds_policy": p,
        }
        for p in ("edge", "reflect_1001", "reflect_101", "wrap")
    ],
    sizes=((5, 4), (1, 1), (2, 3), (33, 17), (8, 67)),
)

TestTypes = op_test(
    "slice",
    reference_for("HWC"),
    cases=[
        Case(i, "HWC", {"start": [-1, 0], "shape": [3, 2], **PAD, "dtype": o})
        for i in ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8")
        for o in (None, types.FLOAT, types.FLOAT16, types.UINT8)
    ],
)


def _layout_test(layout, **axes):
    return op_test(
        "slice",
        reference_for(layout),
        layouts=(layout,),
        args=[{"start": 1, "end": (2, 3), **PAD, **axes, "fill_values": 5}],
    )


TestPlanes = _layout_test("CHW")
TestVolumes = _layout_test("DHWC", axis_names="DW")
TestSequences = _layout_test("FHWC", axes=[0, 2])
TestInsideSequences = _layout_test("CFHW", axes=[1, 0])


def _inputs(anchor, shape):
    return lambda rng, case: [
        [rng.uniform(*anchor[:2], 2).astype(anchor[2]) for _ in range(5)],
        [rng.uniform(*shape[:2], 2).astype(shape[2]) for _ in range(5)],
    ]


TestInputs = op_test(
    "slice", reference_for("HWC"), args=[{}, {"axes": [0, 1]}], extra_inputs=_inputs((0, 0.5, "f4"), (0, 0.5, "f4"))
)
TestIntegers = op_test("slice", reference_for("HWC"), args=[PAD], extra_inputs=_inputs((-5, 5, "i4"), (0, 9, "i4")))
TestLong = op_test("slice", reference_for("HWC"), args=[PAD], extra_inputs=_inputs((-5, 5, "i8"), (0, 9, "i8")))
TestAbsolute = op_test(
    "slice",
    reference_for("HWC"),
    args=[
        {**PAD, "normalized_anchor": a, "normalized_shape": s}
        for a, s in ((False, False), (True, False), (False, True))
    ],
    extra_inputs=_inputs((0, 1.2, "f4"), (0, 3, "f4")),
)


def _run(x, layout, extra=(), **kwargs):
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        more = [fn.external_source(source=lambda e=e: [e]) for e in extra]
        return fn.slice(fn.external_source(source=lambda: [x], layout=layout), *more, **kwargs)

    return np.array(pipe().run()[0].at(0))


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 50), st.floats(-0.5, 1.5, width=32), st.floats(0, 1.5, width=32))
def test_relative_windows(n, start, shape):
    x = np.arange(1, n + 1, dtype="u1")
    kwargs = {"rel_start": [start], "rel_shape": [shape], "axes": [0], **PAD}
    np.testing.assert_array_equal(_run(x, None, **kwargs), reference_for("?")(x, **kwargs))


@pytest.mark.parametrize("ndim", range(1, 8))
def test_dimensions(ndim):
    x = np.arange(3**ndim).reshape((3,) * ndim)
    got = _run(
        x, None, start=[-1, 1][: min(ndim, 2)], shape=[3, 2][: min(ndim, 2)], axes=[ndim - 1, 0][: min(ndim, 2)], **PAD
    )
    want = reference_for("?" * ndim)(
        x, start=[-1, 1][: min(ndim, 2)], shape=[3, 2][: min(ndim, 2)], axes=[ndim - 1, 0][: min(ndim, 2)], **PAD
    )
    np.testing.assert_array_equal(got, want)


def test_without_a_layout_names_are_those_of_images():
    x = np.arange(24).reshape(4, 3, 2)
    np.testing.assert_array_equal(_run(x, None, start=[1, 2], shape=[2, 1]), x[2:3, 1:3])


@pytest.mark.parametrize("shape", [(3, 3), (0,)])
def test_all_samples_have_too_many_or_too_few_values(shape):
    @pipeline_def(batch_size=2, num_threads=1)
    def pipe():
        image = fn.external_source(source=lambda: [np.zeros((6, 4, 3), "u1")] * 2, layout="HWC")
        return fn.slice(image, rel_end=fn.external_source(source=lambda: [np.ones(shape, "f4")] * 2))

    with pytest.raises(
        RuntimeError, match=f"Unexpected shape for argument `rel_end`: {np.prod(shape)} values for 2 axes"
    ):
        pipe().run()


def test_errors_of_inputs():
    x, pair = np.zeros((4, 4, 1), "u1"), np.zeros(2, "f4")
    with pytest.raises(RuntimeError, match="anchor and shape, start can't"):
        _run(x, "HWC", [pair, pair], start=[1, 1])
    with pytest.raises(RuntimeError, match="by two more inputs"):
        _run(x, "HWC", [pair])
    with pytest.raises(RuntimeError, match="by two more inputs"):
        _run(x, "HWC")
    with pytest.raises(RuntimeError, match=r"needs a value for each of the axes of the window, 2 in sample 0"):
        _run(x, "HWC", [np.zeros(3, "f4"), np.zeros(3, "f4")])
