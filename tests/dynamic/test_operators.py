# SPDX-License-Identifier: Apache-2.0
"""Every operator gives the same results in the imperative mode as in a pipeline, and is in the same module as in
DALI."""

import numpy as np
import pytest

import harness
from conformance.test_operators import DECLARED
from harness import Column
from penstock.core.op import REGISTRY
from penstock.core.source import Source
from penstock.experimental import dynamic as ndd
from penstock.experimental.dynamic import _namespace

# Random operators, which use the mode's own generators.
SAME = sorted(
    n for n in DECLARED if n in REGISTRY and _namespace.places(REGISTRY[n]) and "seed" not in REGISTRY[n].schema
)


def function(name):
    found = ndd
    for part in name.split("."):
        found = getattr(found, part)
    return found


def in_ndd(name, test, case, device=None):
    samples, extra, columns = test.data(case)
    x = ndd.as_batch(samples, layout=case.layout or None)
    kwargs = dict(case.kwargs)
    for k, values in columns.items():
        per_frame = isinstance(case.kwargs[k], Column) and case.kwargs[k].per_frame
        kwargs[k] = ndd.as_batch(values, layout="F" + "N" * (values[0].ndim - 1) if per_frame else None)
    out = function(name)(x, *(ndd.as_batch(e) for e in extra), device=device, **kwargs)
    return out if isinstance(out, (tuple, list)) else (out,)


def assert_same(outputs, expected):
    assert len(outputs) == len(expected)
    for got, want in zip(outputs, expected):
        assert got.layout == (want.layout() or None)
        assert got.batch_size == len(want)
        for i, tensor in enumerate(got.cpu().tensors):
            np.testing.assert_array_equal(np.asarray(tensor), want.at(i), strict=True)


@pytest.mark.parametrize("name", SAME)
def test_as_in_a_pipeline(name):
    for test in DECLARED[name][:2]:
        for case in test.cases[:: max(1, len(test.cases) // 3)]:
            samples, extra, columns = test.data(case)
            want = harness.build(name, samples, case, columns, extra=extra).run()
            assert_same(in_ndd(name, test, case), want)
            with ndd.EvalMode.deferred:
                later = in_ndd(name, test, case)
            assert_same(later, want)


@pytest.mark.parametrize("name", [n for n in SAME if "gpu" in REGISTRY[n].devices][::4])
def test_as_in_a_pipeline_on_the_gpu(name):
    test = DECLARED[name][0]
    case = test.cases[0]
    samples, extra, columns = test.data(case)
    want = harness.build(name, samples, case, columns, extra=extra, device="gpu").run()
    got = in_ndd(name, test, case, "gpu")
    assert all(g.device == ndd.Device("gpu", 0) for g in got)
    assert_same(got, [w.as_cpu() for w in want])


def test_every_operator_is_there():
    for name, cls in REGISTRY.items():
        for path in _namespace.places(cls):
            made = function(".".join([*path, _namespace.spelled(cls)]))
            assert made.__doc__, name
            assert made.__name__ == _namespace.spelled(cls)
            assert isinstance(made, type) == issubclass(cls, Source)
