# SPDX-License-Identifier: Apache-2.0
"""Operators between all types, also bool, and Python's and NumPy's numbers: result, type or error are DALI's."""

import operator
import warnings

import numpy as np
import pytest

import penstock
from conformance import oracle

TYPES = ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f4", "f8", "?")
ARITHMETIC = {
    **{"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv},
    **{"//": operator.floordiv, "%": operator.mod, "**": operator.pow},
}
BITWISE = {
    **{"&": operator.and_, "|": operator.or_, "^": operator.xor},
    **{"<<": operator.lshift, ">>": operator.rshift},
}
COMPARISONS = {
    **{"==": operator.eq, "!=": operator.ne, "<": operator.lt},
    **{"<=": operator.le, ">": operator.gt, ">=": operator.ge},
}
CONSTANTS = {
    **{"True": True, "False": False, "2": 2, "-2": -2, "2**31 - 1": 2**31 - 1, "1.5": 1.5, "-0.5": -0.5},
    **{"np.bool_": np.bool_(True), "np.uint8": np.uint8(200), "np.int64": np.int64(-3), "np.float32": np.float32(1.5)},
}


@pytest.fixture(scope="module")
def theirs():
    return pytest.importorskip("nvidia.dali", reason="the real DALI is not installed")


def values(dtype):
    """Not the least integer: its quotient by -1 ends DALI's process."""
    t = np.dtype(dtype)
    if t.kind == "b":
        return np.array([True, False])
    if t.kind == "f":
        return np.array([1, 2, 3, 0.5, -0.5, -1, -2, -7.5, 2.5, 100.25, np.inf, np.nan, 3e4], t)
    most = np.iinfo(t).max
    return np.array([1, 2, 3, 7, 8, 9, 31, 33, 40, most, most - 1] + [-1, -2, -7, 1 - most] * (t.kind == "i"), t)


class Always:
    def __init__(self, sample):
        self.batch = [sample]

    def __call__(self):
        return self.batch


def outcomes(lib, operations, *samples):
    """The result of each operation, or its exception. They are outputs of one pipeline, as most of the time goes into
    pipelines; if that fails, each has its own."""
    pipe = lib.Pipeline(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
    try:
        with pipe, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            inputs = [lib.fn.external_source(source=Always(x)) for x in samples]
            pipe.set_outputs(*(operation(lib, *inputs) for operation in operations))
        pipe.build()
        found = oracle._collect(pipe.run())
        return [oracle.Result([x], [layout]) for x, layout in zip(found.outputs, found.layouts, strict=True)]
    except Exception as e:
        return [e] if len(operations) == 1 else [outcomes(lib, [one], *samples)[0] for one in operations]


def assert_alike(theirs, operations, *samples):
    """`operations`: functions of the library and DataNodes, by what they are called in messages."""
    calls = list(operations.values())
    for what, want, got in zip(
        operations, *(outcomes(lib, calls, *samples) for lib in (theirs, penstock)), strict=True
    ):
        if isinstance(want, Exception) or isinstance(got, Exception):
            kinds = [c for c in type(want).__mro__ if c.__module__ == "builtins"]
            assert isinstance(got, kinds[0]), (what, want, got)
        else:
            problem = oracle.compare(want, got, oracle.Bound(ulps=16), oracle.Tally())
            assert not problem, (what, problem)


def is_mistaken(sign, *numbers):
    """DALI says that a negative integer is smaller than all floats, and equal to none."""
    kinds = {np.asarray(n).dtype.kind for n in numbers}
    return sign in COMPARISONS and kinds == {"i", "f"} and any((np.asarray(n) < 0).any() for n in numbers)


@pytest.mark.parametrize("right", TYPES)
@pytest.mark.parametrize("left", TYPES)
def test_batches(theirs, left, right):
    x, y = values(left)[:, None], values(right)[None]
    # The largest uint64 is -1 as int64: see `values`.
    left_out = ("//", "%") if {left, right} - {"i1", "i2", "i4", "i8"} == {"u8"} else ()
    for kind in (ARITHMETIC, BITWISE, COMPARISONS):
        mistaken = any(is_mistaken(sign, x, y) for sign in kind)
        a, b = (np.abs(v) if mistaken and v.dtype.kind == "i" else v for v in (x, y))
        signs = {sign: f for sign, f in kind.items() if sign not in left_out}
        calls = {f"{left} {sign} {right}": lambda m, a, b, f=f: f(a, b) for sign, f in signs.items()}
        assert_alike(theirs, calls, a, b)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("constant", CONSTANTS)
def test_constants(theirs, constant, dtype):
    x, c = values(dtype), CONSTANTS[constant]
    left_out = ("//", "%") if dtype == "u8" and np.asarray(c).dtype.kind == "i" else ()
    for kind in (ARITHMETIC, BITWISE, COMPARISONS):
        signs = {sign: f for sign, f in kind.items() if not is_mistaken(sign, x, c)}
        calls = {f"{dtype} {sign} {constant}": lambda m, a, f=f: f(a, c) for sign, f in signs.items()}
        signs = {sign: f for sign, f in signs.items() if sign not in left_out}
        calls |= {f"{constant} {sign} {dtype}": lambda m, a, f=f: f(c, a) for sign, f in signs.items()}
        if calls:
            assert_alike(theirs, calls, x)


@pytest.mark.parametrize("dtype", TYPES)
def test_zeros(theirs, dtype):
    signs = {sign: {**ARITHMETIC, **BITWISE}[sign] for sign in ("/", "//", "%", "**", "<<", ">>")}
    for other in TYPES:
        for kind in (ARITHMETIC, BITWISE):
            calls = {f"{dtype} {sign} 0": lambda m, a, b, f=f: f(a, b) for sign, f in signs.items() if sign in kind}
            assert_alike(theirs, calls, values(dtype), np.zeros(1, other))


LIMITS = [(0.5, 2.0), (5.0, 1.0), (np.nan, 1.0), (0.0, np.nan), (1, 2), (5, 1)]


@pytest.mark.parametrize("limits", LIMITS, ids=str)
@pytest.mark.parametrize("dtype", TYPES)
def test_clamp(theirs, dtype, limits):
    assert_alike(theirs, {limits: lambda m, a: m.math.clamp(a, *limits)}, values(dtype))
