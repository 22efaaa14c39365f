# SPDX-License-Identifier: Apache-2.0
"""Base of `DALIClassificationIterator` for all frameworks."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.constructors import names_checked
from ..pipeline import Pipeline
from .base_iterator import DaliIterator
from .epochs import LastBatchPolicy


class Classification(DaliIterator):
    """Mixin for pipelines with two outputs, named "data" and "label"; precedes a framework's iterator as a base."""

    @names_checked
    def __init__(
        self,
        pipelines: Pipeline | Sequence[Pipeline],
        size: int = -1,
        reader_name: str | None = None,
        auto_reset: str | bool | None = False,
        fill_last_batch: bool | None = None,
        dynamic_shape: bool | None = False,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy | str = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
    ):
        super().__init__(
            pipelines,
            ["data", "label"],
            size,
            reader_name,
            auto_reset,
            fill_last_batch,
            dynamic_shape,
            last_batch_padded,
            last_batch_policy,
            prepare_first_batch,
        )
