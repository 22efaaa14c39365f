# SPDX-License-Identifier: Apache-2.0
"""Conditionals, subscripts and Python functions: the same program gives the same values in both libraries."""

import numpy as np
import pytest

import conditional_loops as loops
import conditional_places as places
import conditional_programs as programs
from made_up_conditionals import compiled, made_up


@pytest.fixture(scope="module")
def theirs():
    return pytest.importorskip("nvidia.dali", reason="the real DALI is not installed")


def column(module, values, dtype):
    return module.fn.external_source(source=lambda i: [np.array(v, dtype) for v in values])


def result(module, define, n=6, **kwargs):
    """Per output the values, type and layout; or "error"."""
    try:
        pipe = module.pipeline_def(define, batch_size=n, num_threads=1, device_id=None, **kwargs)()
        outputs = pipe.run()
    except (RuntimeError, ValueError, TypeError, IndexError):
        return "error"
    return [([np.asarray(o.at(i)).tolist() for i in range(n)], o.dtype.name, o.layout()) for o in outputs]


def of_program(module, program):
    def define():
        return program(
            column(module, programs.X, "i4"), column(module, programs.P, "?"), column(module, programs.Q, "?")
        )

    return result(module, define, enable_conditionals=True)


@pytest.mark.parametrize("program", programs.PROGRAMS + places.PROGRAMS + loops.PROGRAMS, ids=lambda f: f.__name__)
def test_conditionals(theirs, program):
    import penstock

    want = of_program(theirs, program)
    assert want != "error" and of_program(penstock, program) == want


@pytest.mark.parametrize("seed", range(100, 160))
def test_made_up_programs(theirs, tmp_path, seed):
    """Branches, loops, containers and attributes."""
    import penstock

    text = made_up(seed, beyond=False)
    program = compiled(text, tmp_path, f"made_up_{seed}")
    want = of_program(theirs, program)
    assert want != "error" and of_program(penstock, program) == want, text


# Rejected programs: functions of (module, x, p, q).


def different_types(m, x, p, q):
    if p:
        y = m.fn.cast(x, dtype=m.types.FLOAT)
    else:
        y = x
    return y


def different_dimensions(m, x, p, q):
    if p:
        y = m.fn.reshape(x, shape=[1])
    else:
        y = x
    return y


def different_layouts(m, x, p, q):
    y = m.fn.reshape(x, shape=[1], layout="C")
    if p:
        y = m.fn.reshape(x, shape=[1], layout="H")
    return y


def different_structures(m, x, p, q):
    if p:
        y = [x, x]
    else:
        y = [x]
    return y[0]


def number_or_none(m, x, p, q):
    y = None
    if p:
        y = x
    return y


def condition_with_dimensions(m, x, p, q):
    if m.fn.reshape(p, shape=[1]):
        x = x + 1
    return x


def words_on_integers(m, x, p, q):
    return x and p


def word_with_integer(m, x, p, q):
    return p and 5


def while_on_data(m, x, p, q):
    while x > 1:
        x = x - 1
    return x


def break_on_data(m, x, p, q):
    for i in range(3):
        if x > i:
            break
    return x


def break_after_continue(m, x, p, q):
    for i in range(3):
        if p:
            continue
        if i == 1:
            break
        x = x + 1
    return x


def return_in_a_loop(m, x, p, q):
    for _ in range(3):
        if p:
            return x
        x = x + 1
    return x


def return_after_continue(m, x, p, q):
    for i in range(3):
        if p:
            continue
        if i == 5:
            return x
        x = x + 1
    return x


def assert_on_data(m, x, p, q):
    assert p
    return x


REFUSED = [different_types, different_dimensions, different_layouts, different_structures, number_or_none]
REFUSED += [condition_with_dimensions, words_on_integers, word_with_integer]
REFUSED += [while_on_data, break_on_data, assert_on_data]
REFUSED += [break_after_continue, return_in_a_loop, return_after_continue]


@pytest.mark.parametrize("program", REFUSED, ids=lambda f: f.__name__)
def test_refused(theirs, program):
    import penstock

    for module in (theirs, penstock):
        assert of_program(module, lambda x, p, q, m=module: program(m, x, p, q)) == "error", module.__name__


# Subscripts: functions of (module, image x, integer i per sample).


def _subscripts():
    yield from (lambda m, x, i, k=k: x[k] for k in (0, -1, True, np.int64(1), None, slice(1, None), slice(-3, -1)))
    yield from (lambda m, x, i, k=k: x[k] for k in (slice(100, None), slice(None, -100), slice(3, 1), (0, 0, 0), ()))
    yield from (lambda m, x, i, k=k: x[::k, 1] for k in (1, 2, 3, -1, -2))
    yield from (lambda m, x, i, k=k: x[k] for k in (slice(-2, None, -2), slice(None, 1, -1), slice(5, 2, -1)))
    yield lambda m, x, i: x[i]
    yield lambda m, x, i: x[i:, 0]
    yield lambda m, x, i: x[: i + 1, i]
    yield lambda m, x, i: x[0][0]
    yield lambda m, x, i: x[m.newaxis]
    yield lambda m, x, i: x[m.newaxis("N")]
    yield lambda m, x, i: x[:, m.newaxis]
    yield lambda m, x, i: x[m.newaxis("A"), :, m.newaxis("B"), 0]
    yield lambda m, x, i: x[0, m.newaxis]
    yield lambda m, x, i: x[0, 0, i, m.newaxis("A")]
    yield lambda m, x, i: x[m.newaxis("A"), i, 0, m.newaxis("B"), 0]
    # Refused:
    yield from (lambda m, x, i, k=k: x[k] for k in (10, -6, (0, 0, 0, 0), (slice(None),) * 4, 1.5, "a", [0, 1]))
    yield lambda m, x, i: x[m.fn.cast(i, dtype=m.types.FLOAT)]


@pytest.mark.parametrize("k, subscript", enumerate(_subscripts()))
@pytest.mark.parametrize("layout", ["HWC", None])
def test_subscripts(theirs, k, subscript, layout):
    import penstock

    rng = np.random.default_rng(0)
    samples = [rng.integers(0, 100, (5 + i, 6, 3)).astype("u1") for i in range(3)]

    def of(module):
        def define():
            x = module.fn.external_source(source=lambda i: samples, layout=layout)
            return subscript(module, x, column(module, range(1, 4), "i4"))

        return result(module, define, n=3)

    assert of(penstock) == of(theirs)


# Bitwise operators and comparisons: type promotion and values.

TYPES = ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "?", "f4")


@pytest.mark.parametrize("right", [*TYPES, 3, True, 2.5])
@pytest.mark.parametrize("left", TYPES)
def test_operators(theirs, left, right):
    import penstock

    rng = np.random.default_rng(1)

    def values(dtype):
        return [rng.integers(0, 2 if dtype == "?" else 100, 5).astype(dtype) for _ in range(3)]

    x = values(left)
    y = values(right) if isinstance(right, str) else right

    def of(module, operations):
        """The result of each. They are outputs of one pipeline; if that fails, each has its own."""

        def define():
            a = column(module, x, left)
            b = column(module, y, right) if isinstance(right, str) else y
            return tuple(operation(a, b) for operation in operations)

        found = result(module, define, n=3)
        if found == "error" and len(operations) > 1:
            return [of(module, [operation])[0] for operation in operations]
        return [found] if found == "error" else found

    for operations in (
        [lambda a, b: a & b, lambda a, b: a | b, lambda a, b: a ^ b, lambda a, b: b & a, lambda a, b: ~a],
        [lambda a, b: a == b, lambda a, b: a != b, lambda a, b: a < b, lambda a, b: a <= b, lambda a, b: b > a]
        + [lambda a, b: a >= b],
        [lambda a, b: a << (b & 7), lambda a, b: a >> (b & 7)],
    ):
        want, got = of(theirs, operations), of(penstock, operations)
        assert len(want) == len(operations) and got == want


# Python functions.


def _two(a):
    return a + 1, (a * 2).astype("f4")


FUNCTIONS = [
    {"function": lambda a: a + 1},
    {"function": lambda a: a.T, "output_layouts": "AB"},
    {"function": _two, "num_outputs": 2, "output_layouts": ["AB"]},
    {"function": _two, "num_outputs": 2, "output_layouts": ["AB", "CD"]},
    {"function": lambda a: (a, a)},
    {"function": lambda a: [s + 1 for s in a[::-1]], "batch_processing": True},
    {"function": lambda a: ([s + 1 for s in a], [s * 2 for s in a]), "batch_processing": True, "num_outputs": 2},
    # Refused:
    {"function": lambda a: None},
    {"function": lambda a: 1.5},
    {"function": lambda a: [1, 2]},
    {"function": lambda a: a, "num_outputs": 2},
    {"function": lambda a: a.astype("f4") if len(a) > 1 else a},
    {"function": lambda a: [a[0]], "batch_processing": True},
    {"function": lambda a: a[100, 100]},
]


@pytest.mark.parametrize("k, kwargs", enumerate(FUNCTIONS))
def test_python_functions(theirs, k, kwargs):
    import penstock

    samples = [np.full((i + 1, 2), i, np.uint8) for i in range(3)]

    def of(module):
        def define():
            out = module.fn.python_function(module.fn.external_source(source=lambda i: samples, layout="HW"), **kwargs)
            return tuple(out) if isinstance(out, (list, tuple)) else out

        return result(module, define, n=3)

    assert of(penstock) == of(theirs)


def _unused(m, x, call):
    m.fn.python_function(x, function=call)


def _in_a_branch(m, x, call):
    if x > 1:
        if x > 2:
            m.fn.python_function(x, function=call)
    else:
        m.fn.python_function(-x, function=call)


def _beside_continue(m, x, call):
    for _ in range(2):
        if x > 1:
            continue
        m.fn.python_function(x, function=call)


UNUSED = {
    "alone": _unused,
    "preserve=False": lambda m, x, call: m.fn.python_function(x, function=call, preserve=False),
    "of an unused operator": lambda m, x, call: m.fn.python_function(x, function=call) + 1,
    "whole batches": lambda m, x, call: m.fn.python_function(x, function=call, batch_processing=True),
    "class": lambda m, x, call: m.ops.PythonFunction(function=call)(x),
    "DLPack": lambda m, x, call: m.fn.dl_tensor_python_function(x, function=call),
    "without inputs": lambda m, x, call: m.fn.python_function(function=lambda: call(np.int32([7]))),
    "in a branch": _in_a_branch,
    "beside continue": _beside_continue,
}


@pytest.mark.parametrize("kind", UNUSED)
def test_functions_are_called_though_nothing_uses_their_results(theirs, kind):
    import penstock

    def calls(module):
        called = []

        def call(v):
            called.append(np.shape(v) if kind == "DLPack" else np.array(v).tolist())
            return v

        def define():
            x = column(module, [1, 2, 3], "i4")
            UNUSED[kind](module, x, call)
            return x

        out = result(module, define, n=3, enable_conditionals=True, prefetch_queue_depth=1)
        return out, sorted(called, key=str)

    want = calls(theirs)
    assert want[0] != "error" and want[1] and calls(penstock) == want
