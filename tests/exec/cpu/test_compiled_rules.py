# SPDX-License-Identifier: Apache-2.0
"""Operators with traced rules give the rules' results, for images whose sizes repeat at times."""

import numpy as np
import pytest

from more_traced_cases import CASES, FRAMES, N, images, one_for_all, per_frame, sequences
from penstock import fn, pipeline_def
from penstock.core import plan_cache, plan_memory
from penstock.core.batch import Batch, view
from penstock.exec.cpu import plan
from penstock.pipeline import PipelineError

BATCHES = 14
ALIKE = [N] * BATCHES
SHAPES = [0, 1, 2, 3, 3, 4, 4, 4, 3, 5, 6, 6, 7, 8]  # by batch: what its images are made from; other data never repeats
DIFFERENT = [N, 1, 2, N, 1, 2, N, 2, 1, 1, N, 2, N, 1]  # numbers of samples; each has its own programs


def run(define, sizes=ALIKE):
    """All outputs of all batches."""

    def feed(make, layout=None, side=False):
        layout = layout or ("HWC" if make(0)[0].ndim == 3 and not side else None)
        seeds = range(BATCHES) if side and make not in (per_frame, one_for_all) else SHAPES
        batches = [(make(k) + make(k + BATCHES))[:n] for k, n in zip(seeds, sizes)]
        return fn.external_source(source=batches, **({"layout": layout} if layout else {}))

    pipe = pipeline_def(lambda: define(feed), batch_size=2 * N, num_threads=2, device_id=None, seed=7)()
    return [[[np.array(out.at(i)) for i in range(n)] for out in pipe.run()] for n in sizes]


def check(define, sizes, monkeypatch, guards):
    """Checks that programs plan all but the first few batches, with the same results as rules."""
    caches, by_program = set(), []
    take = plan_cache.PlanCache.take

    def counted(self, kind, ctx):
        caches.add(self)
        by_program.append(take(self, kind, ctx))
        return by_program[-1]

    with monkeypatch.context() as m:
        m.setattr(plan_cache.PlanCache, "take", counted)
        ours = run(define, sizes)
    assert caches and not any(c.untraceable for c in caches), [c.untraceable for c in caches]
    assert sum(plan is not None for plan in by_program) > len(sizes) // 2, "rules ran for what could be traced"
    assert guards and intact(guards), "a kernel wrote behind an output"
    monkeypatch.setenv("PENSTOCK_PLAN", "rules")
    for iteration, (a, b) in enumerate(zip(ours, run(define, sizes))):
        for output, (x, y) in enumerate(zip(a, b)):
            for i, (p, q) in enumerate(zip(x, y)):
                np.testing.assert_array_equal(p, q, err_msg=f"batch {iteration}, output {output}, sample {i}")


@pytest.fixture
def guards(monkeypatch):
    """The bytes after all samples of allocated batches, as arrays; of sequences after the last frame of each."""
    behind = []
    in_block = Batch.in_block.__func__

    def guarded(cls, *arguments):
        batch = in_block(cls, *arguments)
        ends = batch.rows["data"] + (batch.spec.volumes() * batch.spec.dtype.itemsize).astype("u8")
        ends = ends[~np.isin(ends, batch.rows["data"])]
        behind.extend(view(end, (Batch.guard_bytes,), np.dtype("u1"), batch.owners) for end in ends)
        return batch

    monkeypatch.setattr(Batch, "guard_bytes", 64)
    monkeypatch.setattr(Batch, "in_block", classmethod(guarded))
    return behind


def intact(guards):
    return all((g == Batch._GUARD).all() for g in guards)


@pytest.mark.parametrize("name", CASES)
def test_same_as_by_rules(name, monkeypatch, guards):
    check(CASES[name], ALIKE, monkeypatch, guards)


@pytest.mark.parametrize("name", FRAMES)
def test_sequences_as_by_rules(name, monkeypatch, guards):
    check(FRAMES[name], ALIKE, monkeypatch, guards)


def test_plans_are_made_for_numbers_of_frames_that_come_again(monkeypatch):
    """Making one takes longer than the rules."""
    made = []
    begin = plan_memory.TracedPlan.__init__
    monkeypatch.setattr(
        plan_memory.TracedPlan, "__init__", lambda self, kind, n: made.append(n) or begin(self, kind, n)
    )
    run(lambda f: fn.flip(f(sequences, "FHWC"), device="cpu"), [N, 1, N, 2, 2 * N, N, 3, 4, 2 * N, 2 * N, N])
    assert set(made) == {12, 24}


def test_arguments_of_too_many_frames_are_an_error_in_any_batch():
    counts = [1] * BATCHES + [0]

    def define():
        x = fn.external_source(source=[sequences(3) for _ in counts], layout="FHWC")
        more = [[np.append(a, a[:1])[: len(a) + (not k)] for a in per_frame(3)] for k in counts]
        return fn.rotate(x, angle=10 * fn.external_source(source=more, layout="F"))

    pipe = pipeline_def(define, batch_size=N, num_threads=2, device_id=None)()
    for _ in range(BATCHES):
        pipe.run()
    with pytest.raises(PipelineError, match=r"argument 'angle' has \d+ values for the \d+ frames of sample 0"):
        pipe.run()


def test_sequences_that_frames_of_none_are_among(monkeypatch):

    def some(seed):
        clips = sequences(seed)
        return [clips[0][:0], *clips[1:]] if seed % 3 == 0 else clips

    def define(feed):
        return fn.resize(feed(some, "FHWC"), size=(5, 4))

    ours = run(define)
    monkeypatch.setenv("PENSTOCK_PLAN", "rules")
    for a, b in zip(ours, run(define)):
        for p, q in zip(a[0], b[0]):
            np.testing.assert_array_equal(p, q)


@pytest.mark.parametrize("name", CASES)
def test_batches_of_several_sizes(name, monkeypatch, guards):
    check(CASES[name], DIFFERENT, monkeypatch, guards)


def test_samples_that_are_misplaced_are_noticed(monkeypatch, guards):
    """Kernels get the samples in reverse order."""
    refill = plan_memory.TracedPlan.refill

    class Misplaced:
        def __init__(self, data):
            self.data = data

        def __setitem__(self, index, places):
            self.data[index] = places[::-1]

    def misplaced(self, ctx):
        seen = self.made._seen
        self.made._seen = [(Misplaced(data.data if isinstance(data, Misplaced) else data), root) for data, root in seen]
        return refill(self, ctx)

    monkeypatch.setattr(plan_memory.TracedPlan, "refill", misplaced)
    with pytest.raises((AssertionError, PipelineError)):
        test_same_as_by_rules("reshape in front", monkeypatch, guards)


def test_writing_behind_a_planned_output_is_noticed(monkeypatch, guards):
    """Kernels get addresses of outputs that are 8 bytes too large."""
    allocated, execute = plan.CpuPlan._allocated, plan.CpuPlan._execute
    made = []

    def kept(*arguments):
        made.append(allocated(*arguments))
        return made[-1]

    def misplaced(*arguments):
        now = made.copy()
        made.clear()
        for batch in now:
            batch.rows["data"] += np.uint64(8)
        execute(*arguments)
        for batch in now:
            batch.rows["data"] -= np.uint64(8)

    monkeypatch.setattr(plan.CpuPlan, "_allocated", kept)
    monkeypatch.setattr(plan.CpuPlan, "_execute", misplaced)
    run(CASES["of two images"])
    assert guards and not intact(guards)


def test_the_rules_plan_every_batch_if_the_environment_says_so(monkeypatch):
    def unasked(*arguments):
        raise AssertionError("rules were traced")

    monkeypatch.setattr(plan_memory.TracedPlan, "__init__", unasked)
    monkeypatch.setenv("PENSTOCK_PLAN", "rules")
    run(CASES["of two images"])
    monkeypatch.setenv("PENSTOCK_PLAN", "rule")
    with pytest.raises(ValueError, match="PENSTOCK_PLAN may be 'rules' or not be set; it is 'rule'"):
        run(CASES["of two images"])


def test_outputs_of_a_record_do_not_change_later():
    """Also of outputs that are views of other memory."""

    def define(feed):
        x = fn.flip(feed(images, "HWC"))
        return x, fn.expand_dims(x, axes=[0])

    def feed(make, layout):
        return fn.external_source(source=[make(k) for k in range(BATCHES)], layout=layout)

    pipe = pipeline_def(lambda: define(feed), batch_size=N, num_threads=1, device_id=None)()
    outputs = [pipe.run() for _ in range(BATCHES)]
    for x, y in outputs:
        assert [(1, *s) for s in x.shape()] == list(map(tuple, y.shape()))
