# SPDX-License-Identifier: Apache-2.0
"""The workers of `external_source(parallel=True)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.source import Source
from ..graph import trace
from .settings import Settings

if TYPE_CHECKING:
    from ..external.pool import Pool


def start(definition: trace.Definition, settings: Settings) -> Pool | None:
    """Starts workers for the sources that use them; None if there are none."""
    if settings.policy.on_error != "raise":
        for node in definition.nodes:
            if isinstance(node.op, Source):
                node.op.leave_bad_samples()
    sources = [n.op for n in definition.nodes if getattr(n.op, "is_parallel", False)]
    if not sources:
        return None
    from ..external.start import start_pool

    return start_pool(sources, settings.py_num_workers, settings.py_start_method, settings.py_callback_pickler)


def memory(workers: Pool | None, batch_size: int | None) -> dict[str, list[int]]:
    """Bytes of shared memory per batch in flight, and per sample."""
    capacities = [] if workers is None else workers.memory()
    return {"capacities": capacities, "per_sample_capacities": [c // max(batch_size or 1, 1) for c in capacities]}
