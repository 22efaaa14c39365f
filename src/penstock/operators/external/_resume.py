# SPDX-License-Identifier: Apache-2.0
"""State of the user's source, for checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...external.ahead import Position


class Resumable:
    """Mixin of `ExternalSource`: saves the state of a source in a checkpoint, and restores it.

    A callable with an index argument needs only the count. An iterable is iterated again, skipping the samples that
    were already returned. An object with `state_dict()` and `load_state_dict(state)` saves its own state, which must be
    serialisable as JSON.
    """

    values: dict[str, Any]
    calling: Any
    run_ahead: Any
    called: Any
    keeps_state: bool
    position: Position
    ended: bool
    ended_early: bool

    def saved(self) -> dict[str, Any] | None:
        return self.called.place(self)[1] if self.called is not None and self.keeps_state else self._saved()

    def _saved(self) -> dict[str, Any] | None:
        if self.calling is None:
            return {}  # the user feeds the data and resumes it
        source = self.values["source"]
        state = {**self.position._asdict(), "ended": int(self.ended)}
        if self.calling.takes_argument:
            return state
        if self.run_ahead is not None:  # the source runs in a worker process
            return None
        if hasattr(source, "state_dict") and hasattr(source, "load_state_dict"):
            return {**state, "state_dict": source.state_dict()}
        return {**state, "given": self.calling.given} if self.calling.starts_anew else None

    def resume(self, state: dict[str, Any], shards: Sequence[tuple[dict[str, Any], int]] = ()) -> None:
        if self.calling is None:
            return
        if self.called is not None:
            self.called.clear()
        self.position = Position(state["epoch"], state["iteration"], state["in_epoch"])
        self.ended, self.ended_early = bool(state["ended"]), False
        if "state_dict" in state:
            self.values["source"].load_state_dict(state["state_dict"])
        if "given" in state:
            self.calling.pass_over(state["given"], self.position.epoch)
