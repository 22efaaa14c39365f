# SPDX-License-Identifier: Apache-2.0
"""Handling of bad samples: raise, skip, or replace by the next good sample of the same shard."""

from __future__ import annotations

import threading
from typing import Any

from ...core.errors import PipelineError, SampleError
from ...graph.node import Node

# Number of bad samples listed in a checkpoint, and maximum length of each text; a few KB in total.
_LISTED = 8
_TEXT = 240
_TOGETHER = 8  # maximum number of batches in flight at once
_MOST_PENDING = 4096  # more batches than are requested at once


class Policy:
    """`on_error` is "raise", "skip" or "replace"; `max_errors` is a count, a rate of the samples seen (a float below
    1), or None."""

    def __init__(self, on_error: str = "raise", max_errors: int | float | None = None):
        if on_error not in ("raise", "skip", "replace"):
            raise ValueError(f"on_error takes 'raise', 'skip' or 'replace'; got {on_error!r}")
        if max_errors is not None and not (isinstance(max_errors, (int, float)) and max_errors >= 0):
            raise ValueError(f"max_errors takes a count, or a rate below 1.0; got {max_errors!r}")
        if isinstance(max_errors, float) and max_errors >= 1:
            raise ValueError(f"max_errors as a float is a rate below 1.0; got {max_errors!r} (a count is an int)")
        self.on_error, self.max_errors = on_error, max_errors
        self.errors: list[SampleError] = []
        self._known: set[tuple[str, int, int, int]] = set()
        self._before = 0  # bad samples counted in a checkpoint but not listed
        self._requested: dict[int, int] = {}  # by iteration: the samples up to its end
        self._latest = 0  # the last iteration with a bad sample
        self._lock = threading.Lock()

    def requested(self, iteration: int, samples: int) -> None:
        """Call when the samples of an iteration are picked, with the number of all samples up to its last one. The rate
        refers to them: it must not depend on how many batches are requested ahead."""
        self._requested[iteration] = samples
        self._requested.pop(iteration - _MOST_PENDING, None)

    def record(self, samples: dict[int, tuple[Node, str, str]], iteration: int) -> None:
        """Records bad samples, each once per iteration; raises PipelineError if `on_error` is "raise" or there are too
        many."""
        with self._lock:
            for row, (node, reason, source) in sorted(samples.items()):
                # A file may be several samples of a batch; as a replacement, it may be tried again for any bad one.
                key = source, node.number, iteration, -1 if self.on_error == "replace" else row
                if key not in self._known:
                    self._known.add(key)
                    operator = node.op.display_name()
                    self.errors.append(SampleError(source, operator, reason, iteration, row, self.on_error))
            count = self._before + len(self.errors)
            self._latest = max(self._latest, iteration)  # the one before may be recorded later: two are made at once
        if self.on_error == "raise":
            row, (node, reason, source) = min(samples.items())
            n = len(samples) - 1
            more = f"\n({n} more bad sample{'s' * (n > 1)} in this batch)" if n else ""
            here = f"sample {row} of iteration {iteration}"
            where = here.capitalize() if source == here else f"{here.capitalize()}: {source}"
            raise node.op.sample_error(node.describe(f"{reason}\n{where}{more}"))
        limit = self.max_errors
        if limit is None:
            return
        seen = self._requested[self._latest]
        if count > (limit if isinstance(limit, int) else limit * max(seen, 100)):
            last = "\n".join(f"  {e.source}: {e.reason}" for e in self.errors[-5:])
            raise PipelineError(
                f"{count} of {seen} samples were bad, more than max_errors={limit} allows; the last:\n{last}"
            )

    # Checkpoints

    def saved(self, iteration: int) -> dict[str, Any]:
        """The errors to save in a checkpoint before an iteration: the number of bad samples, and the last ones. Empty
        if there are none."""
        with self._lock:
            later = 0
            last: list[SampleError] = []
            for e in reversed(self.errors):  # in order, apart from batches in flight at once
                if e.iteration >= iteration:
                    later += 1
                elif len(last) >= _LISTED and e.iteration < last[-1].iteration - _TOGETHER:
                    break
                else:
                    last.append(e)
            count = self._before + len(self.errors) - later
        if not count:
            return {}
        last = sorted(last, key=lambda e: (e.iteration, e.sample))[-_LISTED:]
        return {"count": count, "last": [[x[:_TEXT] if isinstance(x, str) else int(x) for x in e] for e in last]}

    def restore(self, saved: dict[str, Any]) -> None:
        """Continues counting. Raises ValueError if `saved` is not a result of `Policy.saved`."""
        if not saved:
            return
        count, last = saved.get("count"), saved.get("last")
        kinds = [str, str, str, int, int, str]
        if (
            not isinstance(count, int)
            or not isinstance(last, list)
            or not all(isinstance(e, list) and [type(x) for x in e] == kinds for e in last)
            or count < len(last)
        ):
            raise ValueError(f"the checkpoint is damaged: 'errors' is {saved!r}")
        with self._lock:
            self.errors = [SampleError(*e) for e in last]
            self._before = count - len(last)
