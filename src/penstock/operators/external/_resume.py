# SPDX-License-Identifier: Apache-2.0
"""Where the user's own source is, for checkpoints."""

from __future__ import annotations

import itertools
from typing import Any


class Resumable:
    """Mixin of `ExternalSource`: what a checkpoint holds of a source, and going on from it.

    Callables that are told which sample or batch is wanted need only the count; what is iterated is iterated anew and
    the batches already seen are passed over; an object with `state_dict()` and `load_state_dict(state)` says itself
    where it is, in values that JSON can hold.
    """

    values: dict[str, Any]
    call: Any
    iterator: Any
    takes_info: bool
    iteration: int
    epoch: int
    in_epoch: int

    def is_fed(self) -> bool:
        raise NotImplementedError

    def _start_iterator(self) -> None:
        raise NotImplementedError

    def saved(self) -> dict[str, Any] | None:
        source = self.values["source"]
        counts = {"epoch": self.epoch, "iteration": self.iteration, "in_epoch": self.in_epoch}
        if self.is_fed():
            return {}
        if hasattr(source, "state_dict") and hasattr(source, "load_state_dict"):
            return {**counts, "state_dict": source.state_dict()}
        is_told = self.call is not None and self.takes_info
        starts_anew = self.iterator is not None and self.iterator is not source
        return counts if is_told or starts_anew else None

    def resume(self, state: dict[str, Any]) -> None:
        if self.is_fed():
            return
        self.epoch, self.iteration, self.in_epoch = (state[k] for k in ("epoch", "iteration", "in_epoch"))
        if "state_dict" in state:
            self.values["source"].load_state_dict(state["state_dict"])
            if self.iterator is not None:
                self._start_iterator()
        elif self.iterator is not None:
            self._start_iterator()
            skipped = sum(1 for _ in itertools.islice(self.iterator, self.iteration))
            if skipped < self.iteration:
                raise ValueError(
                    f"the source ended after {skipped} batches of the epoch; {self.iteration} had been taken when the "
                    "checkpoint was saved"
                )
