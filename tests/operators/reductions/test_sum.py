# SPDX-License-Identifier: Apache-2.0
import numpy as np
from axes_cases import ERRORS, NO_AXES, axes_of, photographs, shaped_input, shapes

from harness import Case, op_test, run
from penstock import types


def reference(x, axes=None, axis_names=None, keep_dims=False, dtype=None):
    """Computed with exact integers or float64."""
    wide = "f8" if x.dtype.kind == "f" else x.dtype.kind + "8"
    to = ("f4" if x.dtype.kind == "f" else wide) if dtype is None else types.to_numpy_type(dtype)
    return np.sum(x.astype(wide), axis=axes_of(x.ndim, axes, axis_names), keepdims=keep_dims).astype(to)


TestSum = op_test(
    "reductions.sum",
    reference,
    cases=[
        *photographs(
            args=[
                (("u1",), {"dtype": types.UINT8, "axes": [0]}),
                (("u1", "u2", "u4", "i1", "i2", "i4"), {"dtype": types.FLOAT, "axes": [1]}),
                (("i2",), {"dtype": types.INT16}),
                (("u4", "u8"), {"dtype": types.UINT64}),
                (("f4",), {"dtype": types.FLOAT}),
                (("u1", "f4"), NO_AXES),
                (("u1",), {"axis_names": ""}),
            ]
        ),
        *shapes(),
    ],
    make_input=shaped_input,
    errors=[
        *ERRORS,
        ({"dtype": types.UINT16}, RuntimeError, "output type uint16 is not supported for input type uint8"),
        ({"dtype": types.FLOAT64}, RuntimeError, "supported: uint64, float32, uint8"),
    ],
)
TestSequence = op_test(
    "reductions.sum",
    reference=lambda x, axis_names, **kw: reference(x, ["FHWC".index(c) for c in axis_names], **kw),
    layouts=("FHWC",),
    args=[{"axis_names": "F"}, {"axis_names": "FC", "keep_dims": True}, {"axis_names": "HW"}],
)


def test_large_sums_are_exact():
    x = np.full((3, 100_000, 3), 255, "u1")
    ((y,),) = run("reductions.sum", [x], Case("u1", "HWC", {"axes": [1]}), {})
    assert (y == 25_500_000).all()
    x = np.full(300_000, 2**31 - 1, "i4")
    ((y,),) = run("reductions.sum", [x], Case("i4", "", {}), {})
    assert y == 300_000 * (2**31 - 1)
    x = np.full(70_000, -(2**15), "i2")
    ((y,),) = run("reductions.sum", [x], Case("i2", "", {}), {})
    assert y == -70_000 * 2**15


def test_what_does_not_fit_is_cut_off():
    ((y,),) = run("reductions.sum", [np.full(300, 255, "u1")], Case("u1", "", {"dtype": types.UINT8}), {})
    assert y == 300 * 255 % 256
    ((y,),) = run("reductions.sum", [np.full(2, 2**63 - 1, "i8")], Case("i8", "", {}), {})
    assert y == -2


def test_floats_keep_their_digits():
    x = np.float32([1e8, 1, -1e8] * 1000)
    ((y,),) = run("reductions.sum", [x], Case("f4", "", {}), {})
    assert y == 1000


def test_layout_keeps_what_is_left():
    from penstock import fn, pipeline_def

    @pipeline_def(batch_size=1)
    def pipe():
        x = types.Constant(np.ones((2, 3, 4), "u1"), layout="HWC")
        return (
            fn.reductions.sum(x, axes=[1]),
            fn.reductions.sum(x, axis_names="WH", keep_dims=True),
            fn.reductions.sum(x),
        )

    assert [t.layout() for t in pipe().run()] == ["HC", "HWC", ""]
