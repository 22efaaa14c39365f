# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from harness import op_test
from penstock import fn, pipeline_def, types


def reference(x, dtype=None, shape=None, rel_shape=None, layout=None):
    flat = np.frombuffer(x.tobytes(), types.to_numpy_type(dtype) if dtype is not None else x.dtype)
    if shape is None and rel_shape is None:
        shape = [*x.shape[:-1], -1 if flat.size else x.shape[-1] * x.dtype.itemsize // flat.itemsize]
    elif rel_shape is not None:
        shape = [-1 if r < 0 else int(r * n) for r, n in zip(rel_shape, x.shape)]
    return flat.reshape([int(n) for n in shape])


SAME = {"sizes": ((4, 6),) * 3, "channels": 4}
TestTypes = op_test(
    "reinterpret",
    reference,
    dtypes=("u1", "i4", "f4"),
    args=[
        {"dtype": types.UINT8},
        {"dtype": types.INT8},
        {"dtype": types.UINT16},
        {"dtype": types.INT32},
        {"dtype": types.FLOAT},
        {"dtype": types.UINT16, "layout": "XYZ"},
        {"dtype": types.INT16, "shape": [-1]},
        {"dtype": types.UINT32, "rel_shape": [1, -1]},
        {"shape": [-1, 8]},
        {"layout": "ABC"},
    ],
    errors=[({"shape": [7, 3]}, RuntimeError, "can't become"), ({"layout": "AB"}, RuntimeError, "does not fit")],
    **SAME,
)
TestRagged = op_test(
    "reinterpret", reference, dtypes=("i4", "f8"), args=[{"dtype": types.UINT8}, {"dtype": types.INT16}]
)


def test_bytes_that_are_no_elements():
    pipe = pipeline_def(
        lambda: fn.reinterpret(types.Constant(np.zeros((2, 3), "u1")), dtype=types.UINT16), batch_size=1
    )
    with pytest.raises(
        RuntimeError, match=r"the last axis of \[2, 3\] has 3 bytes, no multiple of the 2 bytes of uint16"
    ):
        pipe().run()


def test_scalars_keep_their_size():
    pipe = pipeline_def(lambda: fn.reinterpret(types.Constant(np.float32(1)), dtype=types.INT32), batch_size=1)
    assert pipe().run()[0].at(0) == 0x3F800000
    pipe = pipeline_def(lambda: fn.reinterpret(types.Constant(np.float32(1)), dtype=types.UINT8), batch_size=1)
    with pytest.raises(RuntimeError, match="of another size"):
        pipe().run()


def test_nothing_to_do():
    with pytest.raises(RuntimeError, match="nothing to do"):
        pipeline_def(lambda: fn.reinterpret(types.Constant([1])), batch_size=1)().run()
