# SPDX-License-Identifier: Apache-2.0
import warnings

import numpy as np
import pytest

from harness import Case, op_test, per_sample, random_array, run
from penstock import fn, pipeline_def, types
from sampling_reference import places, sampled

NN, CUBIC = types.INTERP_NN, types.INTERP_CUBIC
NAME = "experimental.warp_perspective"


def reference(
    x,
    extra=None,
    matrix=None,
    size=None,
    border_mode="constant",
    fill_value=0.0,
    interp_type=types.INTERP_LINEAR,
    inverse_map=True,
    pixel_origin="corner",
):
    matrix = np.asarray(matrix if extra is None else extra, "f4").astype("f8").reshape(3, 3)
    matrix = matrix if inverse_map else np.linalg.inv(matrix)
    h, w = x.shape[:2] if size is None else np.floor(np.asarray(size, "f8") + 0.5).astype(int)
    offset = 0.5 if pixel_origin == "corner" else 0.0
    u, v = (c + offset for c in places(h, w))
    with np.errstate(all="ignore"):
        u, v, s = np.einsum("ij,jhw->ihw", matrix, np.stack([u, v, np.ones_like(u)]))
        u, v = u / s, v / s
    back = 0.5 - offset
    image = x if x.ndim == 3 else x[..., None]
    out = sampled(image, u + back, v + back, int(interp_type), border_mode, fill_value)
    return out if x.ndim == 3 else out[..., 0]


def planar(x, *extra, **kwargs):
    size = np.floor(np.asarray(kwargs["size"], "f8") + 0.5).astype(int) if "size" in kwargs else x.shape[1:]
    if x.shape[0] == 0:
        return np.zeros((0, *size), x.dtype)
    return np.ascontiguousarray(np.moveaxis(reference(np.moveaxis(x, 0, -1), *extra, **kwargs), -1, 0))


TILT = [0.9, 0.213, 1.17, -0.117, 0.83, 2.31, 0.002, -0.003, 1.1]
TURN = [-0.9, 0.213, 9.17, -0.117, -0.83, 7.31, 0.004, 0.001, 0.9]
SHIFT = [1, 0, 1.25, 0, 1, -0.75, 0, 0, 1]
BORDERS = ("replicate", "reflect", "reflect_101", "wrap")
FULL = ((5, 4), (2, 3), (33, 17), (8, 67))  # DALI never returns from reflect_101 of a single pixel
COARSE = "DALI rounds coordinates to 1/32 of a pixel for int16 and for two channels (test_dali_rounds_coordinates)"
OPENCV = {"steps": 1, "share": 0.01, "atol": 1e-3}

TestImages = op_test(
    NAME,
    reference,
    ("u1", "f4"),
    args=[
        {"matrix": TILT},
        {"matrix": TILT, "fill_value": [7, 100, 255]},
        {"matrix": TURN, "size": (9, 31)},
        {"matrix": TILT, "inverse_map": False},
        {"matrix": TILT, "pixel_origin": "center"},
        {"matrix": SHIFT, "interp_type": NN, "fill_value": 3},
        {"matrix": SHIFT, "interp_type": CUBIC, "fill_value": 3},
        {"matrix": TILT, "interp_type": CUBIC},
        {"matrix": per_sample(0.5, 1, (3, 3)), "size": per_sample(1, 30, (2,))},
        {"matrix": [1, 0, 0, 0, 1, 0, 0, 0, 1]},
    ],
    errors=[
        ({"matrix": TILT[:8]}, RuntimeError, "needs 9 values"),
        ({"matrix": [float("nan")] * 9}, RuntimeError, "must be finite"),
        ({"matrix": [1] * 9, "inverse_map": False}, RuntimeError, "has no inverse"),
        ({"size": (1, 2, 3)}, RuntimeError, "`size` takes height and width"),
        ({"size": (0, 2)}, RuntimeError, "must be positive"),
        ({"fill_value": [1, 2]}, RuntimeError, "2 values for 3 channels"),
        ({"border_mode": "mirror"}, ValueError, "accepted: constant, replicate"),
        ({"pixel_origin": "middle"}, ValueError, "accepted: corner, center"),
        ({"interp_type": types.INTERP_LANCZOS3}, ValueError, "INTERP_NN, INTERP_LINEAR, INTERP_CUBIC"),
    ],
    **OPENCV,
)
TestBorders = op_test(
    NAME,
    reference,
    args=[
        {"matrix": m, "border_mode": b, "interp_type": i}
        for b in BORDERS
        for m, i in ((TILT, types.INTERP_LINEAR), (SHIFT, CUBIC), (SHIFT, NN))
    ],
    sizes=FULL,
    **OPENCV,
)
TestTypes = op_test(
    NAME,
    reference,
    ("u2", "i2"),
    args=[{"matrix": TILT, "fill_value": -5}, {"matrix": SHIFT, "interp_type": NN}],
    steps=40,  # a coordinate in float32 is off by 1e-5 of a pixel, a step by 65535
    dali_differs={"int16-HWC-matrix=[0.9": COARSE},
    share=1,
)
TestPlanar = op_test(
    NAME,
    planar,
    layouts=("CHW", "FCHW"),
    args=[
        {"matrix": TILT, "fill_value": [7, 100, 255]},
        {"matrix": TURN, "size": (9, 12)},
        {"matrix": SHIFT, "interp_type": CUBIC},
    ],
    dali_differs={"fill_value=[7,100,255]": "DALI takes only one value for planar layouts"},
    **OPENCV,
)
TestGray = op_test(
    NAME, reference, layouts=("HW",), args=[{"matrix": TILT, "fill_value": 9}, {"matrix": SHIFT}], **OPENCV
)
TestTwo = op_test(
    NAME,
    reference,
    args=[{"matrix": TILT, "fill_value": 9}],
    channels=2,
    dali_differs={"": COARSE},
    **OPENCV,
)
TestFour = op_test(NAME, reference, args=[{"matrix": TILT, "fill_value": [1, 2, 3, 4]}], channels=4, **OPENCV)
TestSequences = op_test(
    NAME,
    reference,
    layouts=("FHWC",),
    args=[{"matrix": per_sample(0.5, 1, (3, 3), frames=True)}, {"matrix": TILT, "fill_value": 7}],
    **OPENCV,
)
TestMatrixInput = op_test(
    NAME,
    reference,
    args=[{"fill_value": 7}, {"inverse_map": False, "size": (9, 9)}],
    extra_inputs=lambda rng, case: [[(np.eye(3) + rng.uniform(-0.01, 0.01, (3, 3))).astype("f4") for _ in range(5)]],
    **OPENCV,
)


@pytest.mark.parametrize("dtype, channels", [("i2", 1), ("i2", 3), ("u1", 2), ("u2", 2), ("f4", 2)])
def test_dali_rounds_coordinates(dtype, channels):
    """If DALI's results differ from the definition, they are those for coordinates rounded to 1/32 of a pixel."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dali = pytest.importorskip("nvidia.dali")
        from nvidia.dali import fn as dali_fn
    x = random_array(np.random.default_rng(0), (40, 50, channels), dtype)

    @dali.pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def pipe():
        image = dali_fn.external_source(source=lambda i: [x], layout="HWC")
        return dali_fn.experimental.warp_perspective(image, matrix=TILT)

    theirs = np.array(pipe().run()[0].at(0)).astype("f8")
    u, v = (c + 0.5 for c in places(40, 50))
    u, v, s = np.einsum("ij,jhw->ihw", np.float32(TILT).astype("f8").reshape(3, 3), np.stack([u, v, np.ones_like(u)]))
    exact, coarse = (
        np.abs(theirs - sampled(x, a, b).astype("f8")).max()
        for a, b in ((u / s, v / s), [np.rint((c / s - 0.5) * 32) / 32 + 0.5 for c in (u, v)])
    )
    step = 1e-5 if dtype == "f4" else 1
    assert coarse <= step < exact


def test_an_empty_image_has_no_border():
    case = Case("u1", "HWC", {"matrix": TILT, "border_mode": "wrap", "size": (2, 2)})
    with pytest.raises(RuntimeError, match="no border to repeat"):
        run(NAME, [np.zeros((0, 3, 3), "u1")], case, {})


def test_both_matrices():
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe(values, **kwargs):
        x = fn.external_source(source=lambda: [np.zeros((2, 2, 3), "u1")], layout="HWC")
        return fn.experimental.warp_perspective(x, fn.external_source(source=lambda: [values]), **kwargs)

    with pytest.raises(RuntimeError, match="not both"):
        pipe(np.zeros((3, 3), "f4"), matrix=[0] * 9).run()
    with pytest.raises(RuntimeError, match=r"shape \(3, 3\)"):
        pipe(np.zeros((2, 3), "f4")).run()
    with pytest.raises(RuntimeError, match="float32"):
        pipe(np.zeros((3, 3), "i4")).run()
