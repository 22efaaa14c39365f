# SPDX-License-Identifier: Apache-2.0
"""Operators whose rules are replayed give what the rules give, for pictures of sizes that never come again."""

import numpy as np
import pytest

from penstock import fn, pipeline_def
from penstock.exec import replay
from penstock.pipeline import PipelineError
from replayed_cases import CASES, N, images

BATCHES = 14


def run(define):
    """All outputs of all batches."""

    def feed(make, layout=None, side=False):
        layout = layout or ("HWC" if make(0)[0].ndim == 3 and not side else None)
        batches = [make(k) for k in range(BATCHES)]
        return fn.external_source(source=batches, **({"layout": layout} if layout else {}))

    pipe = pipeline_def(lambda: define(feed), batch_size=N, num_threads=2, device_id=None, seed=7)()
    return [[[np.array(out.at(i)) for i in range(N)] for out in pipe.run()] for _ in range(BATCHES)]


@pytest.mark.parametrize("name", CASES)
def test_same_as_by_rules(name, monkeypatch):
    replayed, faults = [], []
    plan, keep = replay.Replay.plan, replay.Replays._keep

    def counted(self, ctx):
        replayed.append(plan(self, ctx))
        return replayed[-1]

    def kept(self, kind, segment, record):
        keep(self, kind, segment, record)
        faults.append(record.fault)

    with monkeypatch.context() as m:
        m.setattr(replay.Replay, "plan", counted)
        m.setattr(replay.Replays, "_keep", kept)
        ours = run(CASES[name])
    assert not any(faults) and faults, faults
    assert sum(replayed) > BATCHES // 2, "rules ran for what could be replayed"
    monkeypatch.setattr(replay.Replays, "suit", staticmethod(lambda links: False))
    for iteration, (a, b) in enumerate(zip(ours, run(CASES[name]))):
        for output, (x, y) in enumerate(zip(a, b)):
            for i, (p, q) in enumerate(zip(x, y)):
                np.testing.assert_array_equal(p, q, err_msg=f"batch {iteration}, output {output}, sample {i}")


def test_samples_that_are_misplaced_are_noticed(monkeypatch):
    begin = replay.Replay.__init__

    def without(self, *arguments):
        begin(self, *arguments)
        self._seen = []

    monkeypatch.setattr(replay.Replay, "__init__", without)
    with pytest.raises((AssertionError, PipelineError)):
        test_same_as_by_rules("reshape in front", monkeypatch)


def test_outputs_of_a_record_do_not_change_later():
    """Of what is seen in the memory of others, too."""

    def define(feed):
        x = fn.flip(feed(images, "HWC"))
        return x, fn.expand_dims(x, axes=[0])

    def feed(make, layout):
        return fn.external_source(source=[make(k) for k in range(BATCHES)], layout=layout)

    pipe = pipeline_def(lambda: define(feed), batch_size=N, num_threads=1, device_id=None)()
    outputs = [pipe.run() for _ in range(BATCHES)]
    for x, y in outputs:
        assert [(1, *s) for s in x.shape()] == list(map(tuple, y.shape()))
