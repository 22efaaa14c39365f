# SPDX-License-Identifier: Apache-2.0
import numpy as np
from signals import signals

from harness import op_test, per_sample, saturate
from penstock import fn, pipeline_def, types


def reference(x, preemph_coeff=0.97, border="clamp", dtype=types.FLOAT):
    if not x.size:
        return x.astype(types.to_numpy_type(dtype))
    x, c = x.astype("f8" if x.dtype == "f8" else "f4"), np.float32(preemph_coeff)
    before = {"clamp": x[0], "zero": 0, "reflect": x[1] if len(x) > 1 else 0}[border]
    return saturate(x - c * np.concatenate([[before], x[:-1]]), types.to_numpy_type(dtype))


TestBorders = op_test(
    "preemphasis_filter",
    reference,
    dtypes=("f4", "i2"),
    layouts=("",),
    args=[{}, {"border": "zero"}, {"preemph_coeff": per_sample(0.1, 0.9)}],
    make_input=signals(1, 2, 3, 17, 1025, 4000),
    errors=[
        ({"border": "wrap"}, ValueError, "border takes 'zero', 'clamp', 'reflect'"),
        ({"dtype": types.FLOAT16}, ValueError, "output type float16"),
    ],
)
TestReflected = op_test(
    "preemphasis_filter",
    reference,
    dtypes=("f4", "i2"),
    layouts=("",),
    args=[{"border": "reflect"}],
    make_input=signals(2, 3, 1025),  # for a single element, DALI reads out of bounds
)
TestTypes = op_test(
    "preemphasis_filter",
    reference,
    dtypes=("u1", "i1", "u2", "u4", "i4", "u8", "i8", "f8"),
    layouts=("",),
    args=[{}],
    make_input=signals(1, 9, 2100, scale=0.4),
    ulps=16,
)
TestOutputTypes = op_test(
    "preemphasis_filter",
    reference,
    dtypes=("f4",),
    layouts=("",),
    args=[{"dtype": t} for t in (types.INT8, types.UINT8, types.INT16, types.UINT16, types.INT32, types.FLOAT64)],
    make_input=signals(1, 9, 2100, scale=100),
    steps=1,
    share=0.01,
)


def test_an_empty_signal_stays_empty():  # where DALI writes to its neighbour
    samples = [np.zeros(0, "f4"), np.float32([1, 2])]

    @pipeline_def(batch_size=2, num_threads=1)
    def pipe():
        return fn.preemphasis_filter(fn.external_source(source=lambda i: samples), preemph_coeff=0.5)

    (out,) = pipe().run()
    assert out.at(0).tolist() == [] and out.at(1).tolist() == [0.5, 1.5]


def test_outputs_that_pass_the_caches():  # where they are larger than these, they are made block by block
    x = np.random.default_rng(0).standard_normal(5_000_001).astype("f4")
    out = pipeline_def(lambda: fn.preemphasis_filter(types.Constant(x), preemph_coeff=0.5), batch_size=1)().run()[0]
    np.testing.assert_array_equal(out.at(0), x - np.float32(0.5) * np.concatenate([x[:1], x[:-1]]))
