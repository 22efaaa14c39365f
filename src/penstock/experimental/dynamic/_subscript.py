# SPDX-License-Identifier: Apache-2.0
"""`tensor[...]` and `batch.slice[...]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._value import Value

if TYPE_CHECKING:
    from ._batch import Batch


def subscript(value: Value, key: Any) -> Any:
    """Applies `[key]` to each sample. Integers of the key may be tensors, or batches with one per sample."""
    from ...graph.subscript import subscript as of_nodes
    from ._invoke import invoke, put_in, size_of, take_out

    items = key if isinstance(key, tuple) else (key,)
    for item in items:
        if isinstance(item, str) or isinstance(item, (list, bytes)):
            raise TypeError(
                "an index is an integer, a slice, ..., None, or a tensor or batch of integers; got "
                f"{type(item).__name__}"
            )
    data: list[Value] = [value]
    template, parts = take_out(items, data)
    return invoke(
        ("subscript", parts),
        lambda nodes: of_nodes(nodes[0], put_in(template, nodes)),
        data,
        size_of(data, None, "[...]"),
        "[...]",
    )


class BatchedSlice:
    """The type of `batch.slice`: `batch.slice[...]` is the batch of `sample[...]`."""

    def __init__(self, batch: Batch):
        self._batch = batch

    def __getitem__(self, ranges: Any) -> Batch:
        part: Batch = subscript(self._batch, ranges)
        return part
