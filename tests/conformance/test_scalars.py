# SPDX-License-Identifier: Apache-2.0
"""Numbers of all NumPy and Python types, and `types.Constant`, on both sides of arithmetic operators: result and type
are DALI's. Also indices that are data."""

import operator

import numpy as np
import pytest
from test_mistakes_in_expressions import Twice

import penstock
from conformance import oracle

OPERATIONS = (operator.add, operator.mul, operator.truediv, operator.floordiv, operator.pow, operator.lt)
DTYPES = ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f4", "f8")
NODES = (*DTYPES, "?")
INTEGERS = np.arange(12, dtype="i4").reshape(3, 4)


def scalars(lib):
    """DALI rejects np.float64 on the right; we keep its type."""
    of_numpy = {f"np.{t}": np.dtype(t).type(2) for t in DTYPES if t != "f8"}
    constants = {f"Constant.{t}": lib.types.Constant(2, getattr(lib.types, t)) for t in ("INT64", "UINT8", "FLOAT64")}
    return {**of_numpy, "an array": np.array(2, "i8"), "int": 2, "float": 2.0, "bool": True, **constants}


def run(lib, define):
    pipe = lib.Pipeline(batch_size=2, num_threads=1, device_id=None, prefetch_queue_depth=1)
    with pipe:
        pipe.set_outputs(*define(lib))
    pipe.build()
    return oracle._collect(pipe.run())


@pytest.mark.parametrize("dtype", NODES)
def test_results(dtype):
    import nvidia.dali as dali

    def define(lib):
        x = lib.fn.external_source(source=Twice(np.array([1, 3], dtype)))
        for name, scalar in scalars(lib).items():
            for operation in OPERATIONS:
                of_bools = dtype == "?" and name == "bool" and operation is not operator.mul
                if not of_bools and not (name == "an array" and operation is operator.lt):
                    yield operation(x, scalar)
                    yield operation(scalar, x)
        if dtype != "?":
            yield np.float64(2) * x

    problem = oracle.compare(run(dali, define), run(penstock, define), oracle.Bound(), oracle.Tally())
    assert not problem, problem


REFUSED = {
    "a vector": np.int32([1]),
    "a matrix": np.int32([[1]]),
    "a bool": np.bool_(True),
    "a float": np.float32(1),
}


@pytest.mark.parametrize("key", REFUSED)
@pytest.mark.parametrize("define", (lambda x, i: x[i], lambda x, i: x[i:], lambda x, i: x[:, ::i]))
def test_refused_indices(key, define):
    import nvidia.dali as dali

    for lib in (dali, penstock):
        pipe = lib.Pipeline(batch_size=2, num_threads=1, device_id=None, prefetch_queue_depth=1)
        with pipe:
            x, i = (lib.fn.external_source(source=Twice(a)) for a in (INTEGERS, REFUSED[key]))
            pipe.set_outputs(define(x, i))
        pipe.build()
        wanted = "must be scalar .0D." if np.ndim(REFUSED[key]) else "must be of integral type"
        with pytest.raises(RuntimeError, match=wanted):
            pipe.run()


@pytest.mark.parametrize("divide", (lambda x, y: x // y, lambda x, y: 5 // y, lambda x, y: x // 0))
def test_division_by_zero(divide):
    import nvidia.dali as dali

    for lib in (dali, penstock):
        pipe = lib.Pipeline(batch_size=2, num_threads=1, device_id=None, prefetch_queue_depth=1)
        with pipe:
            x, y = (lib.fn.external_source(source=Twice(np.int32(a))) for a in ([1, 2], [1, 0]))
            pipe.set_outputs(divide(x, y))
        pipe.build()
        with pytest.raises(ValueError, match="Integer division by zero"):
            pipe.run()


CONSTANTS = {
    "halves": np.float32([0.5, 1.5, 2.5, -0.5, -1.5]),
    "far": np.float32([300, -300, 1e10, -1e10, 70000]),
    "not finite": [float("inf"), float("-inf")],
    "float64": np.float64([1.7, 2.2, -1.7]),
    "integers": np.int32([300, -1, 70000, 5]),
    "flags": np.array([True, False]),
    "list": [1.7, 0.4, -2.6],
    "number": 1.7,
    "small number": 0.4,
    "far number": 300.7,
    "negative integer": -3,
    "number of NumPy's": np.float32(-1.7),
    "array of no dimensions": np.array(300),
}
INTEGER_TYPES = ("UINT8", "INT8", "UINT16", "INT16", "INT32", "UINT32", "UINT64", "BOOL")


@pytest.mark.parametrize("value", CONSTANTS)
def test_constants_of_another_type(value):
    """Elements of arrays are rounded, single numbers truncated, and both clamped to the type."""
    import nvidia.dali as dali

    def define(lib):
        for name in INTEGER_TYPES:
            yield lib.fn.copy(lib.types.Constant(CONSTANTS[value], dtype=getattr(lib.types, name)))
        if np.ndim(CONSTANTS[value]) == 0:
            number = lib.types.Constant(CONSTANTS[value])
            yield lib.fn.copy(number.uint8())
            yield lib.fn.copy(number.int16())

    problem = oracle.compare(run(dali, define), run(penstock, define), oracle.Bound(), oracle.Tally())
    assert not problem, problem


@pytest.mark.parametrize("number", [300, -129, 300.5, np.int64(2**40)])
@pytest.mark.parametrize("is_outside", [False, True])
def test_operands_beyond_their_type(number, is_outside):
    """They raise OverflowError, but still can become a type that holds them."""
    import nvidia.dali as dali

    results = []
    for lib in (dali, penstock):
        outside = lib.types.Constant(number, lib.types.INT8)

        def define(lib, convert, outside=outside):
            x = lib.fn.external_source(source=Twice(np.uint8([1, 200])))
            yield x + convert(outside if is_outside else lib.types.Constant(number, lib.types.INT8))

        assert outside.value == int(number)
        with pytest.raises(OverflowError, match="out of range for int8"):
            run(lib, lambda lib, define=define: define(lib, lambda c: c))
        results.append(run(lib, lambda lib, define=define: define(lib, lambda c: c.int64())))
    problem = oracle.compare(*results, oracle.Bound(), oracle.Tally())
    assert not problem, problem


def test_single_numbers_of_numpy_keep_their_type():
    import nvidia.dali as dali

    def define(lib):
        x = lib.fn.external_source(source=Twice(np.uint8([1, 200])))
        for value in (np.int64(2**40), np.array(3), np.uint64(1), np.int8(1), np.float16(1), np.array([3])):
            yield lib.fn.copy(lib.types.Constant(value))
        for value in (np.int64(1), np.array(1, "u8"), np.float64(0.5)):  # DALI converts float64 through float32
            yield x + lib.types.Constant(value)

    problem = oracle.compare(run(dali, define), run(penstock, define), oracle.Bound(), oracle.Tally())
    assert not problem, problem
