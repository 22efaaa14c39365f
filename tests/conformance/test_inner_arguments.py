# SPDX-License-Identifier: Apache-2.0
"""Arguments of operators that programs use through Python syntax: expressions, conditions, shapes and subscripts."""

import numpy as np
import pytest

import penstock
from conformance import oracle
from conformance.test_files_and_facts import side_of

X = [np.arange(12, dtype="i4").reshape(3, 4) + i for i in range(2)]


def branch(fn, x):
    if x[0, 0] > 0:
        y = x + 1
    else:
        y = -x
    return y


def negated(fn, x):
    y = x
    if not x[0, 0] > 0:
        y = x + 7
    return y


def both_sides(fn, x):
    y = x
    if x[0, 0] == 1 and x[0, 1] > 0:
        y = x * 3
    return y


def number_as_condition(fn, x):
    y = x
    if x[0, 0] > 0 and x[0, 1]:
        y = x * 3
    return y


PROGRAMS = {
    "_ArithmeticGenericOp.expression_desc": lambda fn, x: (x + 1) * x,
    "_ArithmeticGenericOp.integer_constants": lambda fn, x: x * 3 - 2,
    "_ArithmeticGenericOp.real_constants": lambda fn, x: x / 2.5 + 0.25,
    "_Shape.dtype": lambda fn, x: x.shape(dtype=penstock.types.INT32 if fn is penstock.fn else _dali_type("INT32")),
    "_SubscriptDimCheck.num_subscripts": lambda fn, x: x[:, 1],
    "_SubscriptDimCheck.num_subscripts, too many": lambda fn, x: x[0, 0, 0],
    "_conditional__Split.predicate": branch,
    "_conditional__Merge.predicate": branch,
    "_conditional__Not_": negated,
    "_conditional__ValidateLogical.expression_name": both_sides,
    "_conditional__ValidateLogical.expression_side": number_as_condition,
}


def _dali_type(name):
    import nvidia.dali.types as types

    return getattr(types, name)


@pytest.mark.parametrize("program", PROGRAMS)
def test_inner_arguments(program):
    results = []
    for side in ("dali", "penstock"):
        fn, define, options = side_of(side)
        graph = PROGRAMS[program]

        @define(batch_size=2, num_threads=1, prefetch_queue_depth=1, enable_conditionals=True, **options)
        def pipe(fn=fn, graph=graph):
            return graph(fn, fn.external_source(source=lambda: X))

        try:
            p = pipe()
            p.build()
            results.append(oracle._collect(p.run()))
        except Exception as e:
            results.append(oracle.Result(error=oracle._cause(e)))
    assert bool(results[0].error) == ("too many" in program or "side" in program)
    assert not oracle.compare(*results, oracle.Bound(), oracle.Tally())
