# SPDX-License-Identifier: Apache-2.0
"""The samples of a batch that go into one branch of a conditional."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.batch import Batch
from ...core.op import Arg, Arguments, Operator
from ._condition import is_small, made_by_if, truth


class Split(Operator):
    """Returns the samples of the first input for which the second, a scalar per sample, is true (not 0), or false.

    Created by `if` in a pipeline with `enable_conditionals=True`. Samples are not copied unless they are tiny.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=4, enable_conditionals=True)
    ... def pipe():
    ...     x = fn.external_source(source=lambda i: [1, 2, 3, 4])
    ...     if x > 2:
    ...         x = x * 10
    ...     return x
    >>> pipe().run()[0].as_array().tolist()
    [1, 2, 30, 40]
    """

    module = "_conditional"
    devices = ("cpu", "gpu")
    inputs = (2, 2)
    by_frame = False
    is_prompt = True
    branch = Arg(bool, True, "Whether to return the samples for which the condition is true, or false.")

    @classmethod
    def expand(cls, inputs: tuple, kwargs: dict[str, Any], call: Callable[..., Any]) -> Any:
        raise made_by_if(cls.fn_name)

    def run(self, a: Arguments, *inputs: Batch) -> Batch:
        x, condition = inputs
        rows = (truth(condition) == a.branch).nonzero()[0]
        if len(rows) == len(x):
            return x
        if is_small(x):
            sources = None if x.sources is None else [x.sources[i] for i in rows]
            return Batch.from_array(x.array()[rows], x.spec.layout, sources)
        return x.take(rows)
