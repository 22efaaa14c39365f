# SPDX-License-Identifier: Apache-2.0
"""The part of `Pipeline` that starts workers for `external_source(parallel=True)`."""

from __future__ import annotations

from typing import Any

from ..graph import trace
from .inspection import Inspection


def outputs_of(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


class PythonWorkers(Inspection):
    """Base of `Pipeline`."""

    definition: trace.Definition
    _output_nodes: list[Any] | None
    _workers: Any = None  # the pool

    def _trace(self) -> None:
        """Calls the definition, once."""
        if self._output_nodes is None:
            with self:  # type: ignore[attr-defined]
                self._output_nodes = outputs_of(self.define_graph())  # type: ignore[attr-defined]

    def start_py_workers(self) -> None:
        """Starts the workers of all sources with `parallel=True`; the pipeline need not be built yet.

        `build` does so, too. To be called where workers are forked and CUDA is used: on all pipelines before the first
        one is built.
        """
        self._trace()
        sources = [n.op for n in self.definition.nodes if getattr(n.op, "is_parallel", False)]
        if self._workers is not None or not sources:
            return
        from ..external.start import start_pool

        self._workers = start_pool(sources, self._py_num_workers, self._py_start_method, self._py_callback_pickler)

    def external_source_shm_statistics(self) -> dict[str, list[int]]:
        """Bytes of shared memory per batch on its way: `capacities`, and `per_sample_capacities`, the same over the
        batch size."""
        capacities = [] if self._workers is None else self._workers.memory()
        return {
            "capacities": capacities,
            "per_sample_capacities": [c // max(self._max_batch_size or 1, 1) for c in capacities],
        }
