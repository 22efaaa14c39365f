# SPDX-License-Identifier: Apache-2.0
"""The time to plan a pipeline grows with the number of its operators, not with its square."""

import collections

import numpy as np

from penstock import fn, pipeline_def
from penstock.exec import plan
from penstock.graph import passes
from penstock.graph.node import Node


def test_each_operator_is_looked_at_a_few_times(monkeypatch):
    calls = collections.Counter()

    def counted(name, function):
        def count(*args):
            calls[name] += 1
            return function(*args)

        return count

    kind_of = counted("kind_of", passes.kind_of)
    for module in (passes, plan):
        monkeypatch.setattr(module, "kind_of", kind_of)
    monkeypatch.setattr(Node, "arg_nodes", counted("arg_nodes", Node.arg_nodes))

    def counts(n):
        @pipeline_def(batch_size=2, num_threads=1)
        def pipe():
            x = fn.external_source(source=lambda: [np.full((1, 1, 1), v, "u1") for v in (1, 2)], layout="HWC")
            for _ in range(n):  # two stages
                x = fn.permute_batch(fn.brightness(x, brightness_shift=0), indices=[1, 0])
            return x

        calls.clear()
        made = pipe()
        assert made.run()[0].as_array().ravel().tolist() == [1, 2]
        return dict(calls)

    few, many = counts(20), counts(120)
    assert few["kind_of"] > 40 and few["arg_nodes"] > 40
    assert all(many[name] < 1.5 * 6 * few[name] for name in few), (few, many)
