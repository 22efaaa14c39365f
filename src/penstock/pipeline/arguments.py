# SPDX-License-Identifier: Apache-2.0
"""Types of the arguments of a `Pipeline`, for functions that forward them. Imported only by type checkers."""

from __future__ import annotations

import os
from typing import Any, TypedDict


class PipelineArguments(TypedDict, total=False):
    """The same arguments as `Settings`."""

    batch_size: int | None
    num_threads: int | None
    device_id: int | None
    seed: int | None
    exec_pipelined: bool
    prefetch_queue_depth: int | dict[str, int] | tuple[int, int]
    exec_async: bool
    bytes_per_sample: int
    set_affinity: bool
    max_streams: int | None
    default_cuda_stream_priority: int | None
    enable_memory_stats: bool
    enable_checkpointing: bool
    checkpoint: Any
    py_num_workers: int
    py_start_method: str
    py_callback_pickler: Any
    output_dtype: Any
    output_ndim: Any
    output_layout: Any
    exec_dynamic: bool | None
    experimental_exec_dynamic: bool | None
    stream_policy: Any
    concurrency: Any
    max_batch_size: int | None
    on_error: str
    max_errors: int | float | None
    device_memory_limit: int | None
    storage_options: dict[str, Any] | None
    cache: str | os.PathLike | None
    cache_bytes: int | None
    autotune: bool
    cpu_budget: int | None
    memory_budget: int | None
    decode_on: str
    workers: int | str | None
    min_workers: int | None
    max_workers: int | None
