# SPDX-License-Identifier: Apache-2.0
"""Base class for users' own iterators, as in DALI: their `__next__` gets the outputs from the base class, converts
them, and signals the end of the iteration."""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Sequence
from typing import Any

from ..pipeline import Pipeline
from .base_iterator import DaliIterator
from .epochs import LastBatchPolicy


class DaliBaseIterator(DaliIterator[Any], metaclass=ABCMeta):
    """Replaces `nvidia.dali.plugin.base_iterator._DaliBaseIterator`: without names of outputs and without `__next__`.
    All penstock iterators are instances of it for `isinstance`."""

    def __init__(
        self,
        pipelines: Pipeline | Sequence[Pipeline],
        size: int = -1,
        reader_name: str | None = None,
        auto_reset: str | bool | None = None,
        fill_last_batch: bool | None = None,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy | str = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
    ):
        own = vars(self).get("output_map")
        first = pipelines if isinstance(pipelines, Pipeline) else next(iter(pipelines), None)
        if isinstance(first, Pipeline):
            first.build()
        names = [str(i) for i in range(getattr(first, "num_outputs", 1))]
        super().__init__(
            pipelines,
            names,
            size,
            reader_name,
            auto_reset,
            fill_last_batch,
            last_batch_padded=last_batch_padded,
            last_batch_policy=last_batch_policy,
            prepare_first_batch=False,  # the subclass prepares it, by its `__next__`
        )
        if own is not None:
            self.output_map = own
        self._prepare_first_batch = prepare_first_batch
        self._ever_consumed = self._ever_scheduled = False
        self._without_waiting = [()] * len(self._pipes)  # subclasses may copy by address, without a stream

    @classmethod
    def __subclasshook__(cls, other: type) -> bool:
        return DaliIterator in other.__mro__ if cls is DaliBaseIterator else NotImplemented

    def reset(self) -> None:
        """Starts the next epoch. Has no effect before the first batch was taken."""
        self._given = self._step - len(self._first)
        super().reset()

    def __next__(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has to define __next__")
