# SPDX-License-Identifier: Apache-2.0
import io

import numpy as np
import pytest

from harness import op_test, random_array, saturate
from penstock import fn, pipeline_def, types

SHAPES = [(2, 3, 4), (1, 1, 1), (0, 5, 2), (7, 1, 30), (4, 4, 4)]
TYPES = ("?", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8")


def encoded(x, version=(1, 0)):
    file = io.BytesIO()
    np.lib.format.write_array(file, x, version=version)
    return np.frombuffer(file.getvalue(), "u1")


def decoded(x):
    return np.load(io.BytesIO(x.tobytes()), allow_pickle=False)


def reference(x, dtype=None):
    x = decoded(x)
    return x if dtype is None else saturate(x, types.to_numpy_type(dtype))


def files(dtype, ndim=3):
    def make(rng, case):
        scale = 300 if np.dtype(dtype).kind == "f" else 1
        return [encoded((random_array(rng, s[:ndim], dtype) * scale).astype(dtype)) for s in SHAPES]

    return make


for _type in TYPES:
    _name = "bool" if _type == "?" else np.dtype(_type).name
    globals()[f"Test_{_name}"] = op_test(
        "decoders.numpy", reference, layouts=("",), args=[{}, {"dtype": types.FLOAT}], make_input=files(_type)
    )
TestScalars = op_test("decoders.numpy", reference, layouts=("",), make_input=files("f4", 0))
TestVectors = op_test("decoders.numpy", reference, layouts=("",), make_input=files("i2", 1))
TestConverted = op_test(
    "decoders.numpy",
    reference,
    layouts=("",),
    args=[{"dtype": t} for t in (types.UINT8, types.INT16, types.INT64, types.FLOAT16, types.BOOL)],
    make_input=files("f8"),
)


def load(*samples, **kwargs):
    @pipeline_def(batch_size=len(samples))
    def pipe():
        return fn.decoders.numpy(fn.external_source(lambda i: list(samples)), **kwargs)

    (out,) = pipe().run()
    return [np.array(out.at(i)) for i in range(len(samples))]


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("order", "CF")
def test_orders_and_versions(version, order):
    x = np.asarray(np.arange(24, dtype="f4").reshape(2, 3, 4), order=order)
    np.testing.assert_array_equal(load(encoded(x, version))[0], x, strict=True)


def test_odd_addresses_and_types_of_bytes():
    x = np.arange(5, dtype="f8")
    file = np.concatenate([np.zeros(3, "u1"), encoded(x)])[3:]
    np.testing.assert_array_equal(load(file, file.view("i1").view("u1"))[0], x, strict=True)
    np.testing.assert_array_equal(load(file.view("i1"))[0], x, strict=True)


def test_types_that_differ():
    got = load(encoded(np.float32([1.5, -3])), encoded(np.int64([2, 300])), dtype=types.UINT8)
    assert [g.tolist() for g in got] == [[2, 0], [2, 255]]
    big = load(encoded(np.float64([1e30, -1e30, np.nan, np.inf])), dtype=types.INT64)[0]
    assert big.tolist() == [2**63 - 1, -(2**63), 0, 2**63 - 1]


GOOD = encoded(np.float32([1, 2]))


@pytest.mark.parametrize(
    "samples, text",
    [
        ([np.arange(100, dtype="u1")], "not a .npy file: 100 bytes that begin with 00 01 02"),
        ([np.zeros(0, "u1")], "not a .npy file: 0 bytes that begin with nothing"),
        ([GOOD[:-1]], r"an array of float32 \[2\] needs a file of 136 bytes; got 135"),
        ([np.append(GOOD, np.uint8(0))], "needs a file of 136 bytes; got 137"),
        ([GOOD[:40]], "header of a .npy file can't be read"),
        ([encoded(np.complex64([1]))], "elements of type complex64 are not supported"),
        ([encoded(np.array(["a"]))], "elements of type <U1 are not supported"),
        ([encoded(np.array([{}], object))], "elements of type object are not supported"),
        ([encoded(np.ones(2, ">f4"))], "in the other byte order"),
        ([np.where(np.arange(GOOD.size) == 6, 9, GOOD).astype("u1")], "a .npy file of version 9.0"),
        ([GOOD, encoded(np.ones((2, 2), "f4"))], "one number of dimensions; got 1 in sample 0, 2 in sample 1"),
        ([GOOD, encoded(np.ones(2, "u1"))], "one type; got float32 in sample 0, uint8 in sample 1; `dtype` converts"),
        ([GOOD.astype("f4")], "an encoded array is bytes"),
    ],
)
def test_errors(samples, text):
    with pytest.raises(RuntimeError, match=text):
        load(*samples)


def test_what_the_header_says_is_not_believed():
    """Shapes that are too large, negative shapes, code."""
    for shape in ("(99999999999999, 99999999)", "(-1, -8)", "(2.0,)", "[8]", "(__import__('os'),)"):
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
        file = np.frombuffer(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(8), "u1")
        with pytest.raises(RuntimeError, match="npy file|needs a file"):
            load(file)


def header(text):
    text = text.encode().ljust(117) + b"\n"
    return np.frombuffer(
        b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + np.float32(range(6)).tobytes(), "u1"
    )


@pytest.mark.parametrize(
    "text",
    [
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L), }",
        '{"shape":(2,3),"descr":"<f4","fortran_order":False}',
        "  { 'fortran_order' : False ,\t'shape' : ( 2 , 3 , ) , 'descr' : '<f4' } ",
    ],
)
def test_a_header_may_be_written_otherwise(text):
    (array,) = load(header(text))
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "}",
        "{'descr': '<f4', 'fortran_order': False, }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (6), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (,), }",
        "{'descr': '<f4', 'fortran_order': False 'shape': (6,), }",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (6,), }",
        "{'descr': (6,), 'fortran_order': False, 'shape': '<f4', }",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), } more",
    ],
)
def test_a_header_that_is_none_is_refused(text):
    with pytest.raises(RuntimeError, match="header of a .npy file can't be read"):
        load(header(text))
