# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from harness import op_test, saturate
from penstock import fn, pipeline_def, types

INTEGERS = ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8")
OUTPUTS = (
    types.UINT8, types.INT8, types.UINT16, types.INT16, types.UINT32, types.INT32,
    types.UINT64, types.INT64, types.FLOAT16, types.FLOAT, types.FLOAT64, types.BOOL,
)  # fmt: skip


def reference(x, keys=(), values=(), default_value=0.0, dtype=types.FLOAT):
    t = np.dtype(types.to_numpy_type(dtype))
    table = dict(zip(keys, values))
    found = np.array([np.float32(table.get(int(v), default_value)) for v in x.ravel()], "f8").reshape(x.shape)
    if t.kind == "b":
        return np.abs(found) >= 0.5
    if t.kind == "f":
        return found.astype(t)
    return saturate(found, t)


def near_keys(rng, case):
    """Few values, so that most have a key, and some beyond all keys."""
    shapes = {"HWC": ((5, 4, 3), (1, 1, 3), (0, 4, 3), (33, 17, 3)), "": ((700,), (1,), (0,), (513,))}
    shapes["FHWC"] = tuple((2, *s) for s in shapes["HWC"])
    info = np.iinfo(case.dtype)
    far = np.array([info.min, info.max, min(info.max, 70000), min(info.max, 65535)], case.dtype)
    out = [rng.integers(0, 12, s).astype(case.dtype) for s in shapes[case.layout]]
    for x in out:
        x.ravel()[:4] = far[: x.size]
    return out


SOME = {"keys": [0, 3, 5, 7, 11], "values": [2.5, -300.75, 3.0, 0.25, 1000.0]}
ARGS = [
    {},
    {**SOME},
    {**SOME, "default_value": -1.5},
    {"keys": [65535, 1], "values": [7.0, 8.0], "default_value": 9.0},
    {"keys": [4, 4, 2], "values": [1.0, 2.0, 3.0]},
]
TestLookupTable = op_test(
    "lookup_table",
    reference,
    INTEGERS,
    ("HWC",),
    ARGS,
    make_input=near_keys,
    errors=[
        ({"keys": [1, 2], "values": [1.0]}, ValueError, "got 2 keys and 1 values"),
        ({"keys": [65536], "values": [1.0]}, ValueError, r"must be in \[0, 65535\]; got 65536"),
        ({"keys": [-1], "values": [1.0]}, ValueError, "got -1"),
        ({"dtype": types.UINT8, "output_dtype": types.UINT8}, ValueError, "give `dtype` only"),
        ({"defaul_value": 1.0}, TypeError, "Did you mean 'default_value'"),
    ],
)
TestTypes = op_test(
    "lookup_table",
    reference,
    ("u1", "i4"),
    ("HWC",),
    [{**SOME, "default_value": -1.5, "dtype": t} for t in OUTPUTS],
    make_input=near_keys,
)
TestLayouts = op_test("lookup_table", reference, ("u1", "i2"), ("", "FHWC"), ARGS[1:3], make_input=near_keys)


def look_up(x, **kwargs):
    pipe = pipeline_def(lambda: fn.lookup_table(types.Constant(x), **kwargs), batch_size=1, num_threads=1)
    return pipe().run()[0].at(0)


@pytest.mark.parametrize("dtype", OUTPUTS)
def test_values_beyond_the_type(dtype):
    values = [3e38, -3e38, 1.8446744e19, 9.223372e18, -9.223372e18, 4294967296.0, 0.49999997, -0.5, 1.5]
    got = look_up(np.arange(len(values), dtype="u1"), keys=list(range(len(values))), values=values, dtype=dtype)
    t = np.dtype(types.to_numpy_type(dtype))
    for v, g in zip(np.float32(values), got):
        if t.kind in "iu":
            info = np.iinfo(t)
            exact = int(abs(float(v)) + 0.5) * (-1 if v < 0 else 1) if abs(v) != np.float32(0.49999997) else 0
            assert int(g) == min(max(exact, int(info.min)), int(info.max))
        elif t.kind == "f":
            with np.errstate(over="ignore"):
                assert g == v.astype(t)


def test_a_former_name():
    with pytest.warns(DeprecationWarning, match="output_dtype"):
        got = look_up(np.uint8([3, 4]), keys=[3], values=[5.0], output_dtype=types.INT16)
    assert got.dtype == np.int16 and got.tolist() == [5, 0]


def test_other_inputs():
    for x in (np.zeros(2, "f4"), np.zeros(2, "?")):
        with pytest.raises(RuntimeError, match=f"input type {x.dtype.name} is not supported"):
            look_up(x)
    assert look_up(np.uint8(3), keys=[3], values=[4.0]).shape == ()


@pytest.mark.parametrize("dtype", (types.UINT8, types.INT16, types.FLOAT))
@pytest.mark.parametrize("n", (512, 575, 1000))
@pytest.mark.parametrize("kind", ("u1", "i1"))
def test_every_byte_of_large_inputs(kind, n, dtype):
    """Many bytes are looked up in vectors, and those behind the last whole vector one by one."""
    rng = np.random.default_rng(n)
    x = np.resize(rng.permutation(256).astype("u1"), n).view(kind)
    keys, values = list(range(3, 256)), [float(v) for v in rng.permutation(253)]
    kwargs = {"keys": keys, "values": values, "default_value": 254.0, "dtype": dtype}
    np.testing.assert_array_equal(look_up(x, **kwargs), reference(x, **kwargs))
