# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from harness import op_test, per_sample
from penstock import fn, pipeline_def

TYPES = ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4")


def reference(layout):
    def erase(x, anchor=(), shape=(), axes=None, axis_names="HW", fill_value=0.0, normalized=False,
              normalized_anchor=False, normalized_shape=False, centered_anchor=False):  # fmt: skip
        axes = [layout.index(c) for c in axis_names] if axes is None else [d % x.ndim for d in axes]
        extent = np.array([x.shape[d] for d in axes], "f4")
        shape = np.asarray(shape, "f4").reshape(-1, len(axes))
        anchor = np.asarray(anchor, "f4").reshape(-1, len(axes)) if np.size(anchor) else np.zeros_like(shape)
        if normalized or normalized_anchor:
            anchor = anchor * extent
        if normalized or normalized_shape:
            shape = shape * extent
        if centered_anchor:
            anchor = anchor - shape / 2
        fill = np.atleast_1d(np.asarray(fill_value, "f4")) if np.size(fill_value) else np.zeros(1, "f4")
        if x.dtype.kind in "iu":
            fill = np.clip(np.trunc(fill).astype("f8"), np.iinfo(x.dtype).min, np.iinfo(x.dtype).max)
        if len(fill) > 1:
            fill = fill.reshape([-1 if c == "C" else 1 for c in layout])
        fill = np.broadcast_to(fill.astype(x.dtype), x.shape)
        out = x.copy()
        for first, size in zip(anchor, shape):
            at = [slice(None)] * x.ndim
            for d, b, n in zip(axes, first, size):
                at[d] = slice(max(int(b), 0), max(int(b + n), 0))
            out[tuple(at)] = fill[tuple(at)]
        return out

    return erase


TWO = {"anchor": [1.0, 1.0], "shape": [2.0, 2.0]}
ARGS = [
    {},
    TWO,
    {"shape": [3.0, 2.0], "fill_value": [7.6]},
    {"anchor": [1.0, 1.0, 0.0, 3.0], "shape": [1.0, 2.0, 3.0, 1.0], "fill_value": [1.0, 2.0, 3.0]},
    {"anchor": [0.5, 0.25], "shape": [0.25, 0.5], "normalized": True, "fill_value": 9.0},
    {"anchor": [0.5, 0.3], "shape": [2.0, 2.0], "normalized_anchor": True},
    {"anchor": [1.0, 2.0], "shape": [0.3, 0.6], "normalized_shape": True},
    {"anchor": [1.4, 1.6], "shape": [1.4, 1.6]},
    {"anchor": [2.0, 3.0], "shape": [3.0, 3.0], "centered_anchor": True},
    {"anchor": [0.5, 0.5], "shape": [0.7, 0.3], "centered_anchor": True, "normalized": True},
    {"anchor": [-1.5, -3.0], "shape": [3.0, 300.0], "fill_value": 5.0},
    {"anchor": [1.0, 0.0], "shape": [2.0, 3.0], "axis_names": "WH"},
    {"anchor": [1.0], "shape": [2.0], "axis_names": "W"},
    {"anchor": [1.0], "shape": [2.0], "axis_names": "C", "fill_value": 3.0},
    {"anchor": [0.2, 0.5], "shape": [0.3, 0.7], "axis_names": "CH", "normalized": True},
    {"anchor": [1.0, 2.0], "shape": [-2.0, 2.0]},
    {**TWO, "fill_value": []},
    {"anchor": [], "shape": []},
    {"anchor": per_sample(-3, 20, (2,)), "shape": per_sample(0, 20, (2,))},
    {"anchor": per_sample(0, 1, (6,)), "shape": per_sample(0, 0.4, (6,)), "normalized": True,
     "fill_value": per_sample(0, 100, (3,))},
    {"anchor": per_sample(0, 1, (2,)), "shape": per_sample(0, 1, (2,)), "normalized": True, "centered_anchor": True},
]  # fmt: skip
CLAMPED = {"fill_value=300": "a fill value beyond the type's range is clamped; DALI wraps it around"}
ERRORS = [
    ({"anchor": [1.0, 1.0]}, RuntimeError, "`anchor` needs a `shape`"),
    ({"anchor": [1.0, 1.0, 1.0, 1.0], "shape": [2.0, 2.0]}, RuntimeError, "got 4 and 2"),
    ({"shape": [2.0, 2.0, 1.0]}, RuntimeError, "2 values for each region, one for each axis; got 3"),
    ({**TWO, "axes": [0, 3]}, RuntimeError, r"out of range. Expected range is \[-3, 2\]"),
    ({**TWO, "axis_names": "XY"}, RuntimeError, "Axis 'X' is not present in the input layout"),
    ({**TWO, "fill_value": [1.0, 2.0]}, RuntimeError, "2 values for 3 channels"),
    ({"ancor": [1.0]}, TypeError, "Did you mean 'anchor'"),
]
TestErase = op_test("erase", reference("HWC"), args=ARGS, errors=ERRORS)
TestPlanes = op_test("erase", reference("CHW"), layouts=("CHW",), args=ARGS[:17])
TestSequence = op_test(
    "erase",
    reference("FHWC"),
    layouts=("FHWC",),
    args=[
        *({"axis_names": "HW", **kw} for kw in ARGS[1:6]),
        TWO,
        {"anchor": [1.0, 2.0], "shape": [1.0, 4.0], "axis_names": "FW"},
    ],
    dali_differs={"FHWC-anchor=[1.0,1.0],shape=[2.0,2.0]": "DALI has no default axes for sequences"},
)
TestVolume = op_test(
    "erase",
    reference("DHWC"),
    layouts=("DHWC",),
    args=[{"anchor": [1.0, 2.0, 0.0], "shape": [1.0, 4.0, 3.0], "axis_names": "DHW", "fill_value": [1.0, 2.0, 3.0]}],
)
TestTypes = op_test("erase", reference("HWC"), dtypes=TYPES, args=[{**TWO, "fill_value": 7.6}, ARGS[3]])
TestClamped = op_test(
    "erase", reference("HWC"), args=[{**TWO, "fill_value": 300.0}, {**TWO, "fill_value": -3.0}],
    dali_differs={**CLAMPED, "fill_value=-3": CLAMPED["fill_value=300"]},
)  # fmt: skip
TestAxes = op_test(
    "erase",
    reference(""),
    layouts=("",),
    args=[{**TWO, "axes": [0, 1]}, {"anchor": [1.0], "shape": [2.0], "axes": [1]}],
)


def erase(samples, device="cpu", layout="HWC", **columns):
    @pipeline_def(batch_size=len(samples), num_threads=2, device_id=0 if device == "gpu" else None)
    def pipe():
        x = fn.external_source(source=lambda: samples, layout=layout)
        x = x.gpu() if device == "gpu" else x
        return fn.erase(x, **{k: fn.external_source(source=lambda i, v=v: v) for k, v in columns.items()})

    (out,) = pipe().run()
    out = out.as_cpu()
    return [np.array(out.at(i)) for i in range(len(samples))]


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_numbers_of_regions_that_differ(device):
    rng = np.random.default_rng(0)
    samples = [rng.integers(0, 255, (9, 8, 3)).astype("u1") for _ in range(4)]
    counts = (2, 0, 1, 5)
    anchor = [rng.uniform(0, 8, 2 * c).astype("f4") for c in counts]
    shape = [rng.uniform(0, 5, 2 * c).astype("f4") for c in counts]
    for x, b, s, got in zip(samples, anchor, shape, erase(samples, device, anchor=anchor, shape=shape)):
        np.testing.assert_array_equal(got, reference("HWC")(x, b, s))
    anchor[3] = anchor[3][:-2]
    with pytest.raises(RuntimeError, match="got 8 and 10"):
        erase(samples, anchor=anchor, shape=shape)


def test_other_types():
    for x in (np.zeros((2, 2, 1), "f8"), np.zeros((2, 2, 1), "?")):
        with pytest.raises(RuntimeError, match=f"input type {x.dtype.name} is not supported"):
            erase([x])
