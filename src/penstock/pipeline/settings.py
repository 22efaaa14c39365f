# SPDX-License-Identifier: Apache-2.0
"""The arguments of a `Pipeline`, checked, and the properties that tell them."""

from __future__ import annotations

import inspect
import os
from enum import IntEnum
from typing import Any

from ..core.constructors import names_checked
from ..exec.scheduling.checkpoint import Checkpoint
from ..exec.scheduling.policy import Policy


def available_cpus() -> int:
    """Those this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _plain(value: Any) -> Any:
    """Types as their numbers, for JSON."""
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return int(value) if isinstance(value, IntEnum) else value


class Settings:
    """Base of `Pipeline`, which documents the arguments."""

    @names_checked
    def __init__(
        self,
        batch_size: int | None = None,
        num_threads: int | None = None,
        device_id: int | None = None,
        seed: int | None = None,
        exec_pipelined: bool = True,
        prefetch_queue_depth: int | dict[str, int] | tuple[int, int] = 2,
        exec_async: bool = True,
        bytes_per_sample: int = 0,
        set_affinity: bool = False,
        max_streams: int | None = None,
        default_cuda_stream_priority: int | None = None,
        *,
        enable_memory_stats: bool = False,
        enable_checkpointing: bool = False,
        checkpoint: Any = None,
        py_num_workers: int = 1,
        py_start_method: str = "fork",
        py_callback_pickler: Any = None,
        output_dtype: Any = None,
        output_ndim: Any = None,
        output_layout: Any = None,
        exec_dynamic: bool | None = None,
        experimental_exec_dynamic: bool | None = None,
        stream_policy: Any = None,
        concurrency: Any = None,
        max_batch_size: int | None = None,
        on_error: str = "raise",
        max_errors: int | float | None = None,
        device_memory_limit: int | None = None,
    ):
        batch_size = max_batch_size if batch_size is None else batch_size
        if batch_size is not None and (isinstance(batch_size, bool) or int(batch_size) != batch_size or batch_size < 1):
            raise ValueError(f"batch_size takes a positive integer; got {batch_size!r}")
        if num_threads is not None and num_threads < 1:
            raise ValueError(f"num_threads takes a positive integer; got {num_threads!r}")
        self._queue_depths = prefetch_queue_depth
        if isinstance(prefetch_queue_depth, dict):
            prefetch_queue_depth = prefetch_queue_depth.get("cpu_size", 2)
        elif isinstance(prefetch_queue_depth, tuple):
            prefetch_queue_depth = prefetch_queue_depth[0]
        if int(prefetch_queue_depth) != prefetch_queue_depth or prefetch_queue_depth < 1:
            raise ValueError(f"prefetch_queue_depth takes a positive integer; got {prefetch_queue_depth!r}")
        self._max_batch_size = None if batch_size is None else int(batch_size)
        self._num_threads = int(num_threads or available_cpus())
        self._device_id = None if device_id is None or device_id < 0 else device_id
        self._checkpoint = None if checkpoint is None else Checkpoint(checkpoint)
        self._enable_checkpointing = bool(enable_checkpointing) or checkpoint is not None
        if self._checkpoint is not None and (seed is None or seed < 0):
            seed = self._checkpoint.seed
        # Random seeds are drawn once per pipeline, so that a run can be repeated from what `seed` tells.
        self._seed = int.from_bytes(os.urandom(4), "little") >> 1 if seed is None or seed < 0 else int(seed)
        self._depth = int(prefetch_queue_depth) if exec_pipelined and exec_async else 1
        self._ahead = bool(exec_pipelined and exec_async)
        self._prefetch_queue_depth = int(prefetch_queue_depth)
        self._exec_pipelined, self._exec_async, self._set_affinity = exec_pipelined, exec_async, set_affinity
        self._py_num_workers, self._py_start_method = py_num_workers, py_start_method
        self._device_memory_limit = device_memory_limit
        self._py_callback_pickler = py_callback_pickler
        self._wanted = {"dtype": output_dtype, "ndim": output_ndim, "layout": output_layout}
        self._policy = Policy(on_error, max_errors)
        self._of_the_gpu = {
            "max_streams": max_streams,
            "default_cuda_stream_priority": default_cuda_stream_priority,
            "enable_memory_stats": enable_memory_stats,
            "stream_policy": stream_policy,
            "concurrency": concurrency,
        }
        self._begin()

    def _begin(self) -> None:
        """What a pipeline does when its arguments are known. Its constructor is the one above, with all their names."""
        raise NotImplementedError

    def _arguments(self) -> dict[str, Any]:
        """What a pipeline is made with again, as values of JSON."""
        return {
            "batch_size": self._max_batch_size,
            "num_threads": self._num_threads,
            "device_id": self._device_id,
            "seed": self._seed,
            "prefetch_queue_depth": self._prefetch_queue_depth,
            "exec_pipelined": self._exec_pipelined,
            "exec_async": self._exec_async,
            "set_affinity": self._set_affinity,
            "py_num_workers": self._py_num_workers,
            "py_start_method": self._py_start_method,
            "enable_checkpointing": self._enable_checkpointing,
            "on_error": self._policy.on_error,
            "max_errors": self._policy.max_errors,
            **{f"output_{k}": _plain(v) for k, v in self._wanted.items()},
        }

    @property
    def max_batch_size(self) -> int | None:
        return self._max_batch_size

    @property
    def batch_size(self) -> int | None:
        """The largest number of samples in a batch."""
        return self._max_batch_size

    @property
    def num_threads(self) -> int:
        return self._num_threads

    @property
    def device_id(self) -> int | None:
        return self._device_id

    @property
    def seed(self) -> int:
        """The seed in use, also when none was given."""
        return self._seed

    @property
    def prefetch_queue_depth(self) -> int | dict[str, int] | tuple[int, int]:
        """As it was given."""
        return self._queue_depths

    @property
    def exec_pipelined(self) -> bool:
        return self._exec_pipelined

    @property
    def exec_async(self) -> bool:
        return self._exec_async

    @property
    def exec_dynamic(self) -> bool:
        return True

    @property
    def exec_separated(self) -> bool:
        return False

    @property
    def set_affinity(self) -> bool:
        return self._set_affinity

    @property
    def py_num_workers(self) -> int:
        return self._py_num_workers

    @property
    def py_start_method(self) -> str:
        return self._py_start_method

    @property
    def cpu_queue_size(self) -> int:
        return self._prefetch_queue_depth

    @property
    def gpu_queue_size(self) -> int:
        depths = self._queue_depths
        if isinstance(depths, dict):
            return depths.get("gpu_size", 2)
        return depths[1] if isinstance(depths, tuple) else self._prefetch_queue_depth

    @property
    def is_restored_from_checkpoint(self) -> bool:
        return self._checkpoint is not None

    @property
    def max_streams(self) -> int | None:
        return self._of_the_gpu["max_streams"]

    @property
    def default_cuda_stream_priority(self) -> int | None:
        return self._of_the_gpu["default_cuda_stream_priority"]

    @property
    def enable_memory_stats(self) -> bool:
        return self._of_the_gpu["enable_memory_stats"]

    @property
    def stream_policy(self) -> Any:
        return self._of_the_gpu["stream_policy"]

    @property
    def concurrency(self) -> Any:
        return self._of_the_gpu["concurrency"]


NAMES = frozenset(inspect.signature(Settings.__init__).parameters) - {"self"}
