# SPDX-License-Identifier: Apache-2.0
"""The steps of an iteration under DALI's names, for `__next__` of users' subclasses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from .epochs import LastBatchPolicy


class Steps:
    """Base of the iterators. Their own `__next__` does not use these methods."""

    if TYPE_CHECKING:
        _auto_reset: str
        _ended: bool
        _epochs: Any
        _given: int
        _last_batch_policy: LastBatchPolicy
        _step: int
        batch_size: int

        def _run_in_epoch(self) -> list[tuple[Any, ...]]: ...
        def reset(self) -> None: ...

    def _get_outputs(self) -> list[tuple[Any, ...]]:
        """The outputs of each pipeline. Raises StopIteration at the end of the epoch."""
        try:
            return self._run_in_epoch()
        except StopIteration:
            self._end_iteration()

    def _schedule_runs(self, release_outputs: bool = True) -> None:
        """Has no effect: batches are prepared in advance, and outputs stay valid."""

    def _advance_and_check_drop_last(self, dry_run: bool = False, end_iteration: bool = True) -> bool:
        """Counts the batch. Returns whether it is dropped: always False without `dry_run`, as `_get_outputs` never
        returns such batches."""
        if dry_run:
            return self._epochs is not None and self._step >= self._epochs.epoch.batches
        self._step += 1
        self._given += 1
        return False

    def _remove_padded(self) -> tuple[Any, Any]:
        """For the last counted batch and each pipeline: whether some of its samples do not belong to the epoch, and the
        number of samples that do."""
        if self._last_batch_policy is not LastBatchPolicy.PARTIAL or self._epochs is None:
            return False, -1
        left = np.array(self._epochs.belonging(self._step - 1))
        return left < self.batch_size, left

    def _end_iteration(self) -> NoReturn:
        self._ended = True
        if self._auto_reset == "yes":
            self.reset()
        raise StopIteration

    def _report_no_data_in_pipeline(self) -> None:
        raise RuntimeError("there is no data in the pipeline: it ended before the first batch")
