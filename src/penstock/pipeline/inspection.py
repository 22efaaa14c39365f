# SPDX-License-Identifier: Apache-2.0
"""What a `Pipeline` tells about itself: its readers, its bad samples, its plan, where the time goes."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ..core.errors import SampleError, suggest
from ..exec.plan import Plan
from ..exec.report import explain, table, write_trace
from ..exec.scheduling.statistics import Statistics
from .settings import Settings


class Inspection(Settings):
    """Base of `Pipeline`."""

    _plan: Plan | None
    _statistics: Statistics

    def build(self) -> None:
        raise NotImplementedError

    # Readers ------------------------------------------------------------------------------------------------------

    def _metas(self) -> dict[str, dict[str, int]]:
        self.build()
        assert self._plan is not None
        metas = {n.name: self._plan.source_op(n).meta() for n in self._plan.sources}
        return {name: meta for name, meta in metas.items() if meta is not None}

    def _meta(self, name: str) -> dict[str, int]:
        metas = self._metas()
        if name not in metas:
            raise RuntimeError(
                f"the pipeline has no reader called '{name}'; it has {sorted(metas) or 'none'}.{suggest(name, metas)}"
            )
        return metas[name]

    def epoch_size(self, name: str | None = None) -> Any:
        """Samples in an epoch of the reader called `name`, over all shards; without a name a dictionary of all readers.

        With `pad_last_batch` the samples that make all shards equally long are counted too."""
        if name is not None:
            return self._meta(name)["epoch_size_padded"]
        return {k: m["epoch_size_padded"] for k, m in self._metas().items()}

    def reader_meta(self, name: str | None = None) -> dict[str, Any]:
        """What a reader tells about itself: epoch_size, epoch_size_padded, number_of_shards, shard_id,
        pad_last_batch, stick_to_shard."""
        return self._metas() if name is None else self._meta(name)

    # Where the time goes ------------------------------------------------------------------------------------------

    def errors(self) -> list[SampleError]:
        """All bad samples so far: source, operator, reason, iteration, sample, action. A pipeline that goes on from a
        checkpoint lists the last eight of those before it; `max_errors` counts them all."""
        return sorted(self._policy.errors, key=lambda e: (e.iteration, e.sample))

    def explain(self) -> str:
        """The plan: stages, chains, what stays in scratch memory, what is decoded or computed only in part."""
        self.build()
        assert self._plan is not None
        return explain(self._plan, self._num_threads, self._most_pending(self._plan))

    def _most_pending(self, plan: Any) -> int:
        """How many batches may be on their way."""
        return self._depth + self._ahead * plan.ahead

    def stats(self) -> Any:
        """Time and share of every operator, images/s, waiting time. Prints as a table; a dictionary by `as_dict()`."""
        self.build()
        assert self._plan is not None
        return table(self._plan, self._statistics, self._num_threads)

    def reset_stats(self) -> None:
        self._statistics.reset()

    def trace(self, path: str | os.PathLike) -> None:
        """Writes when each stage of the last batches ran, on which thread, to `path`: for Perfetto or chrome://tracing."""
        self.build()
        assert self._plan is not None
        write_trace(self._plan, self._statistics, path)

    def save_graph_to_dot_file(self, filename: str, **kwargs: Any) -> None:
        """Writes the graph of operators for Graphviz."""
        self.build()
        assert self._plan is not None
        lines = [f'  n{n.number} [label="{n.op.display_name()}\\n{n.name}"];' for n in self._plan.nodes]
        lines += [f"  n{p.number} -> n{n.number};" for n in self._plan.nodes for p in n.parents()]
        with open(filename, "w") as f:
            f.write("digraph pipeline {\n" + "\n".join(lines) + "\n}\n")

    def enable_api_check(self, enable: bool) -> None:
        """Accepted for compatibility: `run` and `schedule_run` may be mixed."""

    def _check_api_type_scope(self, api_type: Any) -> AbstractContextManager[None]:
        """The same, for iterators that programs have written after the pattern of DALI's own."""
        return nullcontext()

    def executor_statistics(self) -> dict[str, Any]:
        return {}

    def start_py_workers(self) -> None:
        """Starts the processes of parallel external sources; there are none to start in this version."""
