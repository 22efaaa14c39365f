# SPDX-License-Identifier: Apache-2.0
"""`and`, `or` and `not` of batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.batch import Batch
from ...core.op import Arg, Arguments, Operator
from ._condition import truth


class Logical(Operator):
    """Computes `and` or `or` of two bool scalars per sample, or `not` of one scalar of any type.

    Created by these keywords in a pipeline with `enable_conditionals=True`.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=4, enable_conditionals=True)
    ... def pipe():
    ...     x = fn.external_source(source=lambda i: [1, 2, 3, 4])
    ...     return x > 1 and not x > 3
    >>> pipe().run()[0].as_array().tolist()
    [False, True, True, False]
    """

    module = "_conditional"
    inputs = (1, 2)
    by_frame = False
    is_prompt = True
    operation = Arg(str, doc='"and", "or" or "not".')

    @classmethod
    def expand(cls, inputs: tuple, kwargs: dict[str, Any], call: Callable[..., Any]) -> None:
        if len(inputs) != (1 if kwargs.get("operation") == "not" else 2):
            raise ValueError(f"{cls.display_name()}: {len(inputs)} inputs for operation {kwargs.get('operation')!r}")

    def run(self, a: Arguments, *inputs: Batch) -> Batch:
        operation = a.operation
        columns = []
        for side, x in zip(("left", "right"), inputs):
            who = f"the {side} operand of `{operation}`" if operation != "not" else "the operand of `not`"
            if operation != "not" and x.spec.dtype.kind != "b":
                raise ValueError(
                    f"{who} has to be of type bool; got {x.spec.dtype.name}. Compare it (x != 0), or use & and | for "
                    "tensors"
                )
            columns.append(truth(x, who))
        if operation == "not":
            return Batch.from_array(~columns[0])
        return Batch.from_array(columns[0] & columns[1] if operation == "and" else columns[0] | columns[1])
