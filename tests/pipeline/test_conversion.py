# SPDX-License-Identifier: Apache-2.0
"""The functions and kinds of callables that `enable_conditionals` rewrites."""

import functools

import numpy as np
import pytest

from penstock import fn, pipeline_def
from penstock.pipeline import do_not_convert
from pipeline.test_conditionals import raises, reference, run_program


def test_do_not_convert():
    @do_not_convert
    def untouched(x):
        return x + 1 if x > 0 else x

    raises(lambda x, p, q: untouched(x), TypeError, "no truth value")
    assert untouched(3) == 4 and untouched is do_not_convert(untouched) and do_not_convert()(untouched) is untouched


def test_do_not_convert_inside_of_the_pipeline():
    def program(x, p, q):
        @do_not_convert
        def untouched(v):
            return v if v > 2 else v

        return untouched(x)

    raises(program, TypeError, "no truth value")


def test_sources_and_functions_passed_on_are_not_rewritten():
    seen = []

    def source(info):
        seen.append(source.__code__)
        return np.int32(info.idx_in_epoch if info.idx_in_epoch > 1 else -1)

    code = source.__code__

    @pipeline_def(batch_size=4, num_threads=1, enable_conditionals=True)
    def pipe():
        return fn.external_source(source=source, batch=False)

    assert pipe().run()[0].as_array().tolist() == [-1, -1, 2, 3]
    assert seen and all(c is code for c in seen)


class Holder:
    __factor = 3

    def __init__(self, limit):
        self.limit = limit

    def scaled(self, x):
        if x > self.limit:
            x = x * self.__factor
        return x

    def __call__(self, x):
        return self.scaled(x) if x > 0 else x


class Derived(Holder):
    def scaled(self, x):
        y = super().scaled(x)
        if x > 4:
            y = y + 1
        return y


def keywords(x, *more, limit=2, **rest):
    if x > limit:
        x = x + rest["plus"] + more[0]
    return x


def recursive(x, depth):
    if x > depth:
        x = x + 10
    return recursive(x, depth - 1) if depth else x


@pytest.mark.parametrize(
    "function",
    [
        Holder(2).scaled,
        Holder(2),
        Derived(2),
        Derived(1).scaled,
        functools.partial(keywords, plus=4),
        lambda x, *more: x + 1 if x > 2 else x,
    ],
    ids=["method", "callable", "derived", "super", "partial", "lambda"],
)
def test_kinds_of_functions(function):
    def program(x, p, q):
        return (function(x, 100) if isinstance(function, functools.partial) else function(x),)

    assert run_program(program) == reference(program)


def test_recursion():
    def program(x, p, q):
        return (recursive(x, 3),)

    assert run_program(program) == reference(program)


def test_without_text():
    scope: dict = {}
    exec("def pipe():\n    return 1\n", scope)
    with pytest.warns(UserWarning, match="needs the source code of the pipeline.*'pipe' can't be found"):
        made = pipeline_def(scope["pipe"], batch_size=1, enable_conditionals=True)
    assert made().run()[0].as_array().tolist() == [1]


def test_the_function_itself_stays_as_it_is():
    def define(x=3, *, y: int = 4):
        """Its text."""
        return fn.random.uniform() if x else y

    made = pipeline_def(define, batch_size=1, enable_conditionals=True)
    assert made.__doc__ == "Its text." and made.__name__ == "define"
    assert len(made().run()) == 1
