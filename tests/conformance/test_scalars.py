# SPDX-License-Identifier: Apache-2.0
"""Numbers of all of NumPy's and Python's types, and `types.Constant`, on either side of an operator of arithmetic: the
result, and its type, is DALI's; indices that are data, too."""

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
    """DALI refuses np.float64 on the right, where ours keeps its type."""
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
