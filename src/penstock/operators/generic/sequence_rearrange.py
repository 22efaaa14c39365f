# SPDX-License-Identifier: Apache-2.0
"""Rearranges frames."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.errors import SampleErrors
from ...core.op import Arguments, Operator, PerSample


class SequenceRearrange(Operator):
    """Rearranges the frames of a sequence: frame i of the output is frame `new_order[i]` of the input. Frames may be
    omitted and repeated.

    The first axis is the frame axis; a layout must begin with F. `new_order` may be data: one vector of integers for
    each sample, of any length.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.sequence_rearrange(types.Constant([[1, 2], [3, 4]]), new_order=[1, 0, 1])
    >>> pipe().run()[0].at(0).tolist()
    [[3, 4], [1, 2], [3, 4]]
    """

    by_frame = False
    kernel = "generic/frames"
    new_order = PerSample([int], doc="Index of a frame of the input for each frame of the output.")

    @classmethod
    def expand(cls, inputs: tuple, kwargs: dict[str, Any], call: Callable[..., Any]) -> Any:
        order = kwargs.get("new_order")
        if order is None or isinstance(order, (list, tuple, int, np.ndarray)):
            return None
        rest = {k: v for k, v in kwargs.items() if k != "new_order"}
        return call(_ByData, (*inputs, order), rest)

    def setup(self) -> None:
        if self.values["new_order"] == []:
            raise ValueError("new_order is empty; a sequence needs at least one frame")

    def plan(self, a: Arguments, x: Spec, *more: Spec) -> None:
        if x.ndim < 2:
            raise ValueError(f"the input needs an axis of frames and one of their own; got {x.ndim} dimensions")
        if x.layout and x.layout[0] != "F":
            raise ValueError(f"the first axis must count frames (F); got the layout '{x.layout}'")
        order, counts = self._order(a)
        SampleErrors.where(counts < 1, lambda i: "new_order is empty; a sequence needs at least one frame")
        used = np.arange(order.shape[1]) < counts[:, None]
        wrong = used & ((order < 0) | (order >= x.shape[:, :1]))
        SampleErrors.where(
            wrong.any(axis=1),
            lambda i: (
                f"new_order[{wrong[i].argmax()}] must be between 0 and input_sequence_length = {x.shape[i, 0]}, "
                f"without it; got {order[i][wrong[i]][0]}"
            ),
        )
        a.order, a.counts = order, counts

    def _order(self, a: Arguments) -> tuple[np.ndarray, np.ndarray]:
        """Indices (n, k) of frames, and the number (n,) of valid ones."""
        return a.new_order, np.full(a.n, a.new_order.shape[1])

    def outputs(self, a: Arguments, x: Spec, *more: Spec) -> Spec:
        shape = x.shape.copy()
        shape[:, 0] = a.counts
        return x.like(shape=shape)

    def params(self, a: Arguments, *specs: Spec) -> dict[str, Any]:
        return {"order": a.order.astype("i4"), "count": a.counts}


class _ByData(SequenceRearrange):
    """The order is the second input."""

    inputs = (2, 2)
    n_named = 1
    peeks = (1,)
    traced = False
    new_order = PerSample([int], None, "Is the second input.")

    @classmethod
    def display_name(cls) -> str:
        return SequenceRearrange.display_name()

    @classmethod
    def expand(cls, inputs: tuple, kwargs: dict[str, Any], call: Callable[..., Any]) -> None:
        return None

    def _order(self, a: Arguments) -> tuple[np.ndarray, np.ndarray]:
        batch = a.peeked(1)
        if batch.spec.ndim > 1 or batch.spec.dtype.kind not in "iu":
            raise ValueError(
                f"new_order takes vectors of integers; got {batch.spec.dtype.name} with {batch.spec.ndim} axes"
            )
        counts = batch.spec.volumes()
        order = np.zeros((a.n, int(counts.max(initial=0))), "i4")
        for i, count in enumerate(counts.tolist()):
            order[i, :count] = np.ravel(batch.sample(i))
        return order, counts
