# SPDX-License-Identifier: Apache-2.0
"""Conditionals, subscripts and Python functions: the same program in both libraries gives the same values."""

import conditional_programs as programs
import numpy as np
import pytest


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


@pytest.mark.parametrize("program", programs.PROGRAMS, ids=lambda f: f.__name__)
def test_conditionals(theirs, program):
    import penstock

    want = of_program(theirs, program)
    assert want != "error" and of_program(penstock, program) == want


# What is refused: functions of the module and x, p, q.


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


def assert_on_data(m, x, p, q):
    assert p
    return x


REFUSED = [different_types, different_dimensions, different_layouts, different_structures, number_or_none]
REFUSED += [condition_with_dimensions, words_on_integers, word_with_integer]
REFUSED += [while_on_data, break_on_data, assert_on_data]


@pytest.mark.parametrize("program", REFUSED, ids=lambda f: f.__name__)
def test_refused(theirs, program):
    import penstock

    for module in (theirs, penstock):
        assert of_program(module, lambda x, p, q, m=module: program(m, x, p, q)) == "error", module.__name__
