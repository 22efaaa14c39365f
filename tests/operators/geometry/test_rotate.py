# SPDX-License-Identifier: Apache-2.0
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import op_test, per_sample
from operators.geometry.test_warp_affine import NN, NOT_EMPTY, sampled
from penstock import fn, pipeline_def, types


def rotation(angle, axis=None):
    """Output to input, on (x, y) or (x, y, z)."""
    radians = float(np.float32(angle) * np.float32(np.pi / 180))
    c, s = np.cos(radians), np.sin(radians)
    if axis is None:
        return np.array([[c, -s], [s, c]])
    x, y, z = np.asarray(axis, "f8") / np.linalg.norm(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    turned = np.eye(3) * c + s * cross + (1 - c) * np.outer([x, y, z], [x, y, z])
    return np.linalg.inv(turned).astype("f4")


def canvas_of(matrix, extent):
    """Extents (x, y(, z)) of the smallest output, centres aligned."""
    size = np.abs(matrix.T).astype("f8")  # the inverse of a rotation: from input to output
    out = []
    for d in range(len(extent)):
        n = int(np.ceil(size[d] @ extent - 1e-2))
        main = d if size[d, d] >= size[d].max() else int(size[d].argmax())
        out.append(n + (n - extent[main]) % 2)
    return out


def reference(x, angle, axis=None, size=None, keep_size=False, **kwargs):
    dims = x.ndim - 1
    matrix, extent = rotation(angle, axis if dims == 3 else None), np.array(x.shape[-2::-1])
    if size is not None:
        canvas = [int(np.floor(s + 0.5)) for s in size][::-1]
    else:
        canvas = list(extent) if keep_size else canvas_of(matrix, extent)
    shift = extent / 2 - matrix.astype("f8") @ (np.array(canvas) / 2)
    return sampled(x, np.column_stack([matrix, shift]), canvas[::-1], **kwargs)


FEW = {"steps": 1, "share": 0.01, "atol": 0.01}
TestRotate = op_test(
    "rotate",
    reference,
    args=[
        {"angle": 30.0, "fill_value": 0},
        {"angle": per_sample(-400, 400), "fill_value": 7},
        {"angle": per_sample(-400, 400), "fill_value": 7, "keep_size": True},
        {"angle": per_sample(-400, 400), "fill_value": 7, "size": (9.5, 20.4), "keep_size": True},
        {"angle": 90, "fill_value": 7},
        {"angle": -180, "fill_value": 7, "dtype": types.FLOAT},
        {"angle": 0, "fill_value": 7},
        {"angle": 17.7, "fill_value": 7, "interp_type": NN},
    ],
    errors=[({"size": (3,)}, RuntimeError, "needs 2"), ({"angle": None}, TypeError, "angle")],
    **FEW,
)
TestBorder = op_test(
    "rotate", reference, args=[{"angle": per_sample(-400, 400)}, {"angle": 45}], sizes=NOT_EMPTY, **FEW
)
TestTypes = op_test(
    "rotate", reference, dtypes=("i2", "f4"), args=[{"angle": 30.0, "fill_value": -7}], steps=4, share=0.2, atol=0.01
)
TestVolumes = op_test(
    "rotate",
    reference,
    layouts=("DHWC",),
    args=[
        {"angle": per_sample(-400, 400), "axis": per_sample(-1, 1, (3,)), "fill_value": 7},
        {"angle": 40, "axis": (0, 0, 2), "fill_value": 7},
        {"angle": 40, "axis": (0, -1, 0), "fill_value": 7, "keep_size": True},
        {"angle": 40, "axis": (1, 0, 0), "fill_value": 7, "size": (5, 6, 7)},
    ],
    errors=[
        ({"axis": None}, RuntimeError, "needs `axis`"),
        ({"axis": (0, 1)}, RuntimeError, "three values"),
        ({"axis": (0, 0, 0)}, RuntimeError, "must have a length"),
    ],
    **FEW,
)
TestSequences = op_test(
    "rotate",
    reference,
    layouts=("FHWC",),
    args=[
        {"angle": per_sample(-400, 400), "fill_value": 7},
        {"angle": per_sample(-400, 400, frames=True), "fill_value": 7, "keep_size": True},
        {"angle": per_sample(-400, 400, frames=True), "fill_value": 7, "size": (9, 20)},
    ],
    **FEW,
)


def _run(samples, layout="HWC", angles=None, **kwargs):
    @pipeline_def(batch_size=len(samples), num_threads=1)
    def pipe():
        x = fn.external_source(source=lambda: samples, layout=layout)
        angle = fn.external_source(source=lambda: angles, layout="F" if angles[0].ndim else None)
        return fn.rotate(x, angle=angle, **kwargs)

    out = pipe().run()[0]
    return [np.array(out.at(i)) for i in range(len(samples))]


@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 300),
    st.integers(0, 300),
    st.floats(-720, 720, width=32).filter(lambda a: abs((a % 90) - 45) > 1e-3 and abs(a % 90) > 1e-3),
)
def test_size(height, width, angle):
    got = _run([np.zeros((height, width, 1), "u1")], angles=[np.array(angle, "f4")], fill_value=0)[0].shape[1::-1]
    assert list(got) == canvas_of(rotation(angle), np.array([width, height]))
    c, s = abs(rotation(angle)[0])
    for n, reach in zip(got, (c * width + s * height, s * width + c * height)):
        assert reach - 0.01 <= n < reach + 2


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.lists(st.integers(-170, 170), min_size=1, max_size=4))
def test_size_of_a_sequence(height, width, angles):
    """The largest of its frames, odd if most of them are."""
    angles = [float(a) + 0.25 for a in angles]
    extent = np.array([width, height])
    sizes = np.array([np.ceil(np.abs(rotation(a).T) @ extent - 1e-2) for a in angles])
    odd = np.array([canvas_of(rotation(a), extent) for a in angles]) % 2
    largest = sizes.max(axis=0)
    want = largest + (largest % 2 != (2 * odd.sum(axis=0) > len(angles)))
    out = _run([np.zeros((len(angles), height, width, 1), "u1")], "FHWC", [np.array(angles, "f4")], fill_value=0)
    assert out[0].shape == (len(angles), *want[::-1], 1)
