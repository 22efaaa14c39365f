# SPDX-License-Identifier: Apache-2.0
"""Arithmetic against the CPU's."""

import numpy as np
import pytest
from segments import Segment, Step

from penstock import fn, pipeline_def
from penstock.core.batch import Spec
from penstock.core.dtypes import from_numpy

RNG = np.random.default_rng(5)
OPERATIONS = (
    "ADD SUB MUL DIV FLOORDIV MOD POW BITAND BITOR BITXOR SHL SHR MIN MAX ATAN2 EQ NE LT LE GT GE NEG ABS INVERT SQRT "
    "RSQRT CBRT EXP LOG LOG2 LOG10 FLOOR CEIL SIN COS TAN ASIN ACOS ATAN SINH COSH TANH ASINH ACOSH ATANH"
).split()
SHAPES = ((3, 5, 3), (1, 1, 3), (0, 4, 3), (17, 9, 3))
_BITS = "BITAND BITOR BITXOR SHL SHR INVERT".split()
_REAL = [o for o in OPERATIONS if o not in _BITS]
_INTEGER = "ADD SUB MUL FLOORDIV MOD POW MIN MAX NEG ABS EQ NE LT LE GT GE".split() + _BITS
# A few of each form. test_compile.py tests all.
INTEGER = "ADD MUL FLOORDIV MOD POW SHL SHR MIN ABS INVERT LT".split()
REAL = "DIV MOD POW MIN ATAN2 SQRT RSQRT LOG GE".split()

# All operations, for compilers.
_CALLS = [f"a[{i}] = arithmetic_of<{o}, float>(a[{i}], b[{i}]);" for i, o in enumerate(OPERATIONS) if o in _REAL]
_CALLS += [f"c[{i}] = arithmetic_of<{o}, int>(c[{i}], d[{i}]);" for i, o in enumerate(OPERATIONS) if o in _INTEGER]
_CALLS += ["c[99] = arithmetic_of<LE, bool>(Wide(c[98]), Wide((uint64_t)c[97]));"]
ARITHMETIC = (
    '#include "math/arithmetic.cu"\nextern "C" __global__ void all(float *a, float *b, int *c, int *d) {'
    + "\n".join(_CALLS)
    + "}\n"
)


def random(shape, dtype, least=0):
    if np.dtype(dtype).kind == "f":
        return RNG.uniform(0.1, 0.9, shape).astype(dtype)
    return RNG.integers(least, 2 if dtype == "?" else 7, shape).astype(dtype)


def check(operation, dtypes, compute, shapes=(SHAPES, SHAPES), constant=None, steps=0, offsets=(0,)):
    least = 1 if operation in ("FLOORDIV", "MOD") else 0  # an integer divided by 0 is an error on the CPU
    inputs = [[random(s, d, least) for s in samples] for d, samples in zip(dtypes, shapes)]
    out = [np.broadcast_shapes(*(x.shape for x in xs)) for xs in zip(*inputs)]
    compares = operation in ("EQ", "NE", "LT", "LE", "GT", "GE")
    wide = compute == "wide"
    dtype = "?" if compares else compute
    specs = {i: Spec(np.array([x.shape for x in xs]), xs[0].dtype) for i, xs in enumerate(inputs)}
    specs[len(inputs)] = Spec(np.array(out), np.dtype(dtype))
    columns = {
        "operation": OPERATIONS.index(operation),
        "compute": 100 if wide else int(from_numpy(compute)),
        "constant_at": -1 if constant is None else constant,
        "integer": 3,
        "real": 2.5,
    }
    step = Step("math/arithmetic", [len(inputs)], list(range(len(inputs))), columns)
    Segment([step], specs, dict(enumerate(inputs)), {len(inputs)}).check(steps, offsets)


@pytest.mark.parametrize("operation", INTEGER)
def test_integers(operation):
    inputs = 1 if operation in ("NEG", "ABS", "INVERT") else 2
    check(operation, ("i4", "u1")[:inputs], "i4")


@pytest.mark.parametrize("operation", REAL)
def test_reals(operation):
    inputs = 1 if OPERATIONS.index(operation) >= OPERATIONS.index("NEG") else 2
    check(operation, ("f4", "f4")[:inputs], "f4", steps=8)


@pytest.mark.parametrize("types", (("u1", "u1", "u1"), ("u1", "f4", "f4"), ("i8", "u2", "i8"), ("f8", "f4", "f8")))
def test_types(types):
    check("ADD", types[:2], types[2], offsets=(0, 1))


def test_booleans_and_wide_comparisons():
    check("BITXOR", ("?", "?"), "?")
    check("INVERT", ("?",), "?")
    check("LT", ("u8", "i4"), "wide")


@pytest.mark.parametrize("at", (0, 1))
def test_constants(at):
    check("SUB", ("u1",), "f4", constant=at)
    check("FLOORDIV", ("i2",), "i4", constant=at)


def test_an_integer_divided_by_zero_is_zero():
    @pipeline_def(batch_size=2, num_threads=1, device_id=0)
    def pipe():
        return fn.constant(idata=[5, -7, 9]).gpu() // fn.constant(idata=[0, 2, 0]).gpu()

    np.testing.assert_array_equal(pipe().run()[0].as_cpu().as_array(), [[0, -3, 0]] * 2)


def test_broadcasting():
    single = ((1,),) * 4
    check("MUL", ("f4", "f4"), "f4", (SHAPES, single))
    check("SUB", ("f4", "u1"), "f4", (((3,),) * 4, SHAPES))
    check("SUB", ("f4", "u1"), "f4", (tuple((s[0], 1, 3) for s in SHAPES), tuple((s[1], 1) for s in SHAPES)))
