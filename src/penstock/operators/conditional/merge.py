# SPDX-License-Identifier: Apache-2.0
"""One batch of the samples of both branches of a conditional."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.batch import Batch, Spec
from ...core.op import Arguments, Operator
from ._condition import is_small, made_by_if, truth


class Merge(Operator):
    """Merges the samples of both branches of a conditional into one batch.

    The first input has the samples for which the third input, a scalar per sample, is true (not 0); the second input
    has the others. Created by `if` in a pipeline with `enable_conditionals=True`. Both branches must return the same
    type, number of dimensions and layout. Samples are not copied unless they are tiny.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=4, enable_conditionals=True)
    ... def pipe():
    ...     x = fn.external_source(source=lambda i: [1, 2, 3, 4])
    ...     if x % 2 == 0:
    ...         y = x
    ...     else:
    ...         y = -x
    ...     return y
    >>> pipe().run()[0].as_array().tolist()
    [-1, 2, -3, 4]
    """

    module = "_conditional"
    devices = ("cpu", "gpu")
    inputs = (3, 3)
    by_frame = False
    is_prompt = True

    @classmethod
    def expand(cls, inputs: tuple, kwargs: dict[str, Any], call: Callable[..., Any]) -> Any:
        raise made_by_if(cls.fn_name)

    def run(self, a: Arguments, *inputs: Batch) -> Batch:
        x, y, condition = inputs
        for whole, other in ((x, y), (y, x)):
            if not len(other):
                return whole
        _check_alike(x, y)
        mask = truth(condition)
        n, places = len(mask), (mask.nonzero()[0], (~mask).nonzero()[0])
        sources = None
        if x.sources is not None and y.sources is not None:
            sources = [""] * n
            for batch, place in zip((x, y), places):
                for i, name in zip(place.tolist(), batch.sources or ()):
                    sources[i] = name
        if is_small(x) and is_small(y) and (x.spec.shape[0] == y.spec.shape[0]).all():
            values = np.empty((n, *x.spec.shape[0]), x.spec.dtype)
            values[places[0]], values[places[1]] = x.array(), y.array()
            return Batch.from_array(values, x.spec.layout, sources)
        shape, rows = np.empty((n, x.spec.ndim), "i8"), np.empty(n, x.rows.dtype)
        for batch, place in zip((x, y), places):
            shape[place], rows[place] = batch.spec.shape, batch.rows
        return x.with_rows(Spec(shape, x.spec.dtype, x.spec.layout), rows, (*x.owners, *y.owners), sources)


def _check_alike(x: Batch, y: Batch) -> None:
    for what, first, second in (
        ("types", x.spec.dtype.name, y.spec.dtype.name),
        ("numbers of dimensions", x.spec.ndim, y.spec.ndim),
        ("layouts", repr(x.spec.layout), repr(y.spec.layout)),
    ):
        if first != second:
            raise ValueError(
                f"the branches of a conditional give different {what}: {first} where the condition is true, {second} "
                "where it is false; both become one batch, so they have to agree (fn.cast, fn.reshape)"
            )
