# SPDX-License-Identifier: Apache-2.0
"""Runs pipelines on the GPU with plans computed by programs, and with rules only, for comparison."""

import numpy as np

from penstock import fn, pipeline_def
from penstock.core import plan_cache, tracing
from penstock.gpu.launch import Fusion

N = 5


def images(seed, dtype="u1", ndim=2, channels=3, lo=6, hi=12):
    r = np.random.default_rng(seed)
    shape = [(*r.integers(lo, hi, ndim), *([channels] if channels else [])) for _ in range(N)]
    return [(r.random(s) * 250).astype(dtype) for s in shape]


def columns(seed, low=0.0, high=1.0, shape=()):
    return list(np.random.default_rng(seed).uniform(low, high, (N, *shape)).astype("f4"))


class Feed:
    """Sources of a pipeline: for each, one list of samples per iteration."""

    def __init__(self, order):
        self.order = order

    def __call__(self, make, layout=None, device="gpu"):
        batches = {k: make(k) for k in self.order}
        kwargs = {"layout": layout} if layout else {}
        return fn.external_source(source=[batches[k] for k in self.order], device=device, **kwargs)


def run(define, order, monkeypatch, programs=True):
    """The outputs of all batches, as lists of arrays, and the number of batches planned by a program."""
    computed = []
    with monkeypatch.context() as m:
        take = plan_cache.PlanCache.take

        def planned(*arguments):
            plan = take(*arguments) if programs else None
            computed.append(plan is not None)
            return plan

        m.setattr(plan_cache.PlanCache, "take", planned)
        pipe = pipeline_def(lambda: define(Feed(order)), batch_size=N, num_threads=2, device_id=0, seed=7)()
        results = []
        for _ in order:
            outputs = [out.as_cpu() if hasattr(out, "as_cpu") else out for out in pipe.run()]
            results.append([[np.array(out.at(i)) for i in range(len(out))] for out in outputs])
    return results, sum(computed)


def check(define, order, monkeypatch, computes=True):
    """Checks that batches are the same as with rules. `computes`: whether programs plan any; None: not checked."""
    want, none = run(define, order, monkeypatch, programs=False)
    got, computed = run(define, order, monkeypatch)
    assert none == 0
    assert computes is None or bool(computed) == computes, f"{computed} batches were planned by a program"
    for iteration, (a, b) in enumerate(zip(got, want)):
        for output, (x, y) in enumerate(zip(a, b)):
            for i, (p, q) in enumerate(zip(x, y)):
                np.testing.assert_array_equal(p, q, err_msg=f"batch {iteration}, output {output}, sample {i}")
    return want


def planted(plant, test, arguments, monkeypatch):
    """Runs a test with a bug in batches planned without rules."""
    real = run

    def run_with_it(define, order, patch, programs=True):
        with monkeypatch.context() as m:
            if programs:
                plant(m)
            return real(define, order, patch, programs)

    monkeypatch.setitem(globals(), "run", run_with_it)
    test(*arguments, monkeypatch)


def checks_of_launches(define, order, monkeypatch):
    """Number of columns checked by programs, as launches depend on them. Running without these checks can't be tested:
    kernels would write to arbitrary addresses."""
    launches, expect, n = Fusion.plan, tracing.Tracer.expect, [0]

    def counted(tracer, column):
        n[0] += not tracing.is_constant(column)
        expect(tracer, column)

    def counting(*arguments):
        with monkeypatch.context() as m:
            m.setattr(tracing.Tracer, "expect", counted)
            return launches(*arguments)

    monkeypatch.setattr(Fusion, "plan", counting)
    run(define, order, monkeypatch)
    return n[0]
