# SPDX-License-Identifier: Apache-2.0
"""Sources whose arrays on the GPU are made by a stream that they do not name themselves (`cuda_stream`)."""

from __future__ import annotations

from typing import Any

from ..core.capsules import array_of, is_capsule
from .calling import Calling
from .samples import is_on_gpu


def made_by(stream: Any, data: Any) -> Any:
    """What a source gave; what of it lies on the GPU as copies, taken when the stream has made it."""
    if stream is None:
        return data
    if isinstance(data, (list, tuple)):
        return [made_by(stream, d) for d in data]
    if hasattr(data, "is_dense_tensor"):  # a batch, which knows its stream
        return data
    if is_capsule(data):
        try:
            return array_of(data)
        except BufferError:
            return _copy(data, stream)
    return _copy(data, stream) if is_on_gpu(data) else data


def _copy(data: Any, stream: Any) -> Any:
    from ..gpu.interchange import on_host

    return on_host(data, stream)


class CallingOnStream(Calling):
    """A source that makes arrays by a stream."""

    def sample(self, in_epoch: int, in_batch: int, iteration: int, epoch: int) -> Any:
        return made_by(self.stream, super().sample(in_epoch, in_batch, iteration, epoch))

    def batch(self, iteration: int, epoch: int) -> Any:
        return made_by(self.stream, super().batch(iteration, epoch))


def calling_on(stream: Any, *arguments: Any) -> Calling:
    """A `Calling` of these arguments."""
    calling = Calling(*arguments) if stream is None else CallingOnStream(*arguments)
    calling.stream = stream
    return calling
