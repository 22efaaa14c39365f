# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from scipy import ndimage

from harness import Case, op_test, per_sample, saturate
from penstock import fn, pipeline_def, types

NN = types.INTERP_NN
NOT_EMPTY = ((5, 4), (1, 1), (2, 3), (33, 17), (8, 67))


def sampled(x, matrix, size, interp_type=types.INTERP_LINEAR, fill_value=None, dtype=None):
    """x (..., C) at matrix @ p for the centres p of the elements of an output of `size`; rows and columns x, y(, z)."""
    dims = len(size)
    matrix = np.asarray(matrix, "f4").reshape(dims, dims + 1).astype("f8")
    centres = np.stack(np.meshgrid(*[np.arange(n) + 0.5 for n in size], indexing="ij"))[::-1]
    at = np.tensordot(matrix[:, :dims], centres, 1) + matrix[:, dims].reshape([-1] + [1] * dims)
    at = at[::-1] - 0.5
    fill = 0.0 if fill_value is None else fill_value if interp_type == NN else float(saturate(fill_value, x.dtype))
    if x.size == 0:
        values = np.full((*size, x.shape[-1]), fill)
    elif interp_type == NN:
        index = [np.floor(c + 0.5).astype(int) for c in at]
        inside = np.all([(i >= 0) & (i < n) for i, n in zip(index, x.shape)], axis=0)
        values = x[tuple(np.clip(i, 0, n - 1) for i, n in zip(index, x.shape))].astype("f8")
        values = values if fill_value is None else np.where(inside[..., None], values, fill)
    else:
        mode = "nearest" if fill_value is None else "grid-constant"
        channels = [
            ndimage.map_coordinates(x[..., c].astype("f8"), at, order=1, mode=mode, cval=fill)
            for c in range(x.shape[-1])
        ]
        values = np.stack(channels, axis=-1)
    return saturate(values, x.dtype if dtype is None else types.to_numpy_type(dtype))


def reference(x, extra=None, matrix=None, size=None, inverse_map=True, **kwargs):
    dims = x.ndim - 1
    matrix = np.asarray(matrix if extra is None else extra, "f4").reshape(dims, dims + 1)
    if not inverse_map:
        full = np.vstack([matrix, [0] * dims + [1]]).astype("f8")
        matrix = np.linalg.inv(full)[:dims]
    size = x.shape[:-1] if size is None else [int(np.floor(s + 0.5)) for s in size]
    return sampled(x, matrix, size, **kwargs)


SHEAR = [0.9, 0.213, 1.17, -0.117, 0.83, 2.31]
TURN = [-0.9, 0.213, 9.17, -0.117, -0.83, 7.31]
STEEP = [0.3, -2.13, 1.17, 1.9, 0.13, -2.31]

TestWarpAffine = op_test(
    "warp_affine",
    reference,
    args=[
        {"matrix": SHEAR, "fill_value": 7.4},
        {"matrix": per_sample(-1.5, 1.5, (2, 3)), "fill_value": 255},
        {"matrix": TURN, "fill_value": 0, "size": (9.5, 31.2)},
        {"matrix": STEEP, "fill_value": 900, "size": per_sample(1, 30, (2,)), "dtype": types.FLOAT},
        {"matrix": SHEAR, "fill_value": 1, "inverse_map": False},
        {"matrix": [1, 0, 0.75, 0, 1, -0.25], "fill_value": 3, "interp_type": NN},
        {"matrix": [0.25, 0, -0.7, 0, 0.31, -0.6], "fill_value": 9, "size": (70, 80)},
        {"matrix": [0, 0, 1e30, 0, 0, 0], "fill_value": 9},
    ],
    errors=[
        ({"matrix": SHEAR[:5]}, RuntimeError, "6 values"),
        ({"matrix": []}, RuntimeError, "give a `matrix`"),
        ({"matrix": [0] * 6, "inverse_map": False}, RuntimeError, "no inverse"),
        ({"size": (1, 2, 3)}, RuntimeError, "needs 2"),
        ({"size": (0, 2)}, RuntimeError, "must be positive"),
        ({"interp_type": types.INTERP_CUBIC}, ValueError, "INTERP_LINEAR, INTERP_NN"),
        ({"dtype": types.INT16}, RuntimeError, "no conversion from uint8"),
        ({"fill_value": None, "size": (3, 3)}, RuntimeError, "no border to repeat"),
    ],
    steps=1,
    share=0.01,
    atol=0.01,  # a coordinate in float32 is off by 1e-5 of a pixel, a step by 255
    dali_differs={
        "form:size=per_sample": "DALI cuts sizes that are data to integers, and rounds those that are constant",
        "1e+30": "DALI takes what is far outside for the first pixel",
    },
)

TestBorder = op_test(
    "warp_affine",
    reference,
    args=[
        {"matrix": SHEAR},
        {"matrix": per_sample(-1.5, 1.5, (2, 3))},
        {"matrix": TURN, "size": (40, 60)},
        {"matrix": [1, 0, 0, 0, 1, 0]},
        {"matrix": SHEAR, "interp_type": NN},
    ],
    sizes=NOT_EMPTY,
    steps=1,
    share=0.01,
)
TestTypes = op_test(
    "warp_affine",
    reference,
    cases=[
        Case(i, "HWC", {"matrix": m, "fill_value": f, "dtype": o, "interp_type": interp})
        for i, outs in {"u1": "f4", "i4": "i4 f4", "f4": "f4 u1 i2 i4"}.items()
        for o in [{"u1": types.UINT8, "i2": types.INT16, "i4": types.INT32, "f4": types.FLOAT}[o] for o in outs.split()]
        for interp in (types.INTERP_LINEAR, NN)
        for m, f in ((SHEAR, 3.0), (STEEP, -2.5))
    ],
    steps=2**17,  # neighbours differ by up to 2**32, and added steps are off by 3e-5 of a pixel
    share=1,
    ulps=512,  # as many of 2**31
    atol=0.01,
)
TestShort = op_test(
    "warp_affine",
    reference,
    dtypes=("i2",),
    args=[{"matrix": SHEAR, "fill_value": -2.5, "dtype": o} for o in (types.INT16, types.FLOAT)],
    steps=2,  # a coordinate in float32 is off by 1e-5 of a pixel, a step by 65535
    share=0.1,
    atol=2,
)
TestGray = op_test("warp_affine", reference, args=[{"matrix": SHEAR, "fill_value": 7}], channels=1, steps=1, share=0.01)
TestFour = op_test("warp_affine", reference, args=[{"matrix": SHEAR, "fill_value": 7}], channels=4, steps=1, share=0.01)
VOLUME = [0.9, 0.1, 0.2, 0.31, -0.1, 0.8, 0.17, 1.1, 0.05, -0.13, 0.95, 0.2]
TestVolumes = op_test(
    "warp_affine",
    reference,
    layouts=("DHWC",),
    args=[
        {"matrix": VOLUME, "fill_value": 7},
        {"matrix": VOLUME, "fill_value": 7, "interp_type": NN, "size": (5, 6.5, 7)},
        {"matrix": VOLUME, "fill_value": 7, "inverse_map": False, "dtype": types.FLOAT},
        {"matrix": per_sample(-1, 1, (3, 4)), "fill_value": 7},
    ],
    steps=1,
    share=0.01,
    atol=0.01,
)
TestVolumeBorder = op_test(
    "warp_affine", reference, layouts=("DHWC",), args=[{"matrix": VOLUME}], sizes=NOT_EMPTY, steps=1, share=0.01
)
TestSequences = op_test(
    "warp_affine",
    reference,
    layouts=("FHWC",),
    args=[{"matrix": per_sample(-1, 1, (2, 3), frames=True), "fill_value": 7}, {"matrix": SHEAR, "fill_value": 7}],
    steps=1,
    share=0.01,
)
TestMatrixInput = op_test(
    "warp_affine",
    reference,
    args=[{"fill_value": 7}, {"fill_value": 7, "inverse_map": False, "size": (9, 9)}],
    extra_inputs=lambda rng, case: [[rng.uniform(-1.5, 1.5, (2, 3)).astype("f4") for _ in range(5)]],
    steps=1,
    share=0.01,
)


def test_both_matrices():
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe(values, **kwargs):
        x = fn.external_source(source=lambda: [np.zeros((2, 2, 3), "u1")], layout="HWC")
        return fn.warp_affine(x, fn.external_source(source=lambda: [values]), **kwargs)

    with pytest.raises(RuntimeError, match="not both"):
        pipe(np.zeros((2, 3), "f4"), matrix=[0] * 6).run()
    with pytest.raises(RuntimeError, match=r"shape \(2, 3\)"):
        pipe(np.zeros((3, 3), "f4")).run()
    with pytest.raises(RuntimeError, match="float32"):
        pipe(np.zeros((2, 3), "i4")).run()
