# SPDX-License-Identifier: Apache-2.0
"""Checks the arguments of a `Pipeline`."""

from __future__ import annotations

import inspect
import os
from contextlib import AbstractContextManager, nullcontext
from enum import IntEnum
from typing import Any

import numpy as np

from ..core.dtypes import DALIDataType
from ..core.errors import ArgumentTypeError, ArgumentValueError
from ..core.storage import StorageSettings
from ..exec.scheduling.checkpoint import Checkpoint
from ..exec.scheduling.policy import Policy
from ..exec.scheduling.tuning import PLACES
from .outputs import demanded, per_output


def available_cpus() -> int:
    """Number of CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _plain(value: Any) -> Any:
    """Converts types to their numbers, for JSON."""
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return int(value) if isinstance(value, IntEnum) else value


_THREADS_OF_A_WORKER = 4  # default for clusters, whose machines differ


def _workers(given: Any) -> tuple[int, str]:
    """Number of workers, 0 for none; and the Ray cluster, "" for processes of this machine."""
    if given is None:
        return 0, ""
    if isinstance(given, str) and (given == "auto" or given.startswith("ray://") and given[6:]):
        return 1, given
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise ValueError(
            'workers takes a number of processes, 0 or None for none, "auto" for the Ray cluster that the program is '
            f'connected to, or the address of one as "ray://host:10001"; got {given!r}'
        )
    return given, ""


def _check_positive(name: str, value: Any) -> None:
    number = not isinstance(value, bool) and isinstance(value, (int, float, np.integer))
    if not number or int(value) != value:
        raise ArgumentTypeError(f"{name} takes a positive integer; got {value!r}")
    if value < 1:
        raise ArgumentValueError(f"{name} takes a positive integer; got {value!r}")


def _limits(least: int | None, most: int | None, workers: Any) -> None:
    """Raises ValueError if the limits are not valid."""
    for name, given in (("min_workers", least), ("max_workers", most)):
        if given is None:
            continue
        if isinstance(given, bool) or not isinstance(given, int) or given < 1:
            raise ValueError(f"{name} takes a positive integer, or None; got {given!r}")
        if not workers:
            raise ValueError(f"{name}={given} requires workers")
    if least is not None and most is not None and least > most:
        raise ValueError(f"min_workers={least} is more than max_workers={most}")
    if workers and isinstance(workers, int) and not (least or 1) <= workers <= (most or workers):
        raise ValueError(f"workers={workers} is not between min_workers={least} and max_workers={most}")


class Settings:
    """`Pipeline` documents the arguments."""

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
        storage_options: dict[str, Any] | None = None,
        cache: str | os.PathLike | None = None,
        cache_bytes: int | None = None,
        autotune: bool = False,
        cpu_budget: int | None = None,
        memory_budget: int | None = None,
        decode_on: str = "auto",
        workers: int | str | None = None,
        min_workers: int | None = None,
        max_workers: int | None = None,
    ):
        batch_size = max_batch_size if batch_size is None else batch_size
        if batch_size is not None:
            _check_positive("batch_size", batch_size)
        if num_threads is not None:
            _check_positive("num_threads", num_threads)
        self.prefetch_queue_depth = prefetch_queue_depth  # as given by the user
        depth = prefetch_queue_depth
        if isinstance(depth, dict):
            depth = depth.get("cpu_size", 2)
        elif isinstance(depth, tuple):
            depth = depth[0]
        _check_positive("prefetch_queue_depth", depth)
        self.cpu_queue_size = int(depth)
        self.max_batch_size = None if batch_size is None else int(batch_size)
        self.workers, self.cluster = _workers(workers)
        _limits(min_workers, max_workers, workers)
        self.min_workers, self.max_workers = min_workers, max_workers
        if self.cluster and not num_threads:
            num_threads = min(available_cpus(), _THREADS_OF_A_WORKER)
        self.num_threads = int(num_threads or max(available_cpus() // max(self.workers, 1), 1))
        if device_id is not None and not hasattr(device_id, "__index__"):
            raise TypeError(f"device_id takes the number of a GPU, or None for none; got {device_id!r}")
        self.device_id = None if device_id is None or device_id < 0 else int(device_id)
        if seed is not None and not hasattr(seed, "__index__"):
            raise TypeError(f"seed takes an integer, or None for a random one; got {seed!r}")
        self.checkpoint = None if checkpoint is None else Checkpoint(checkpoint)
        self.enable_checkpointing = bool(enable_checkpointing) or checkpoint is not None
        if self.checkpoint is not None and (seed is None or seed < 0):
            seed = self.checkpoint.seed
        # A random seed is drawn once per pipeline, so that a run can be repeated with the value of `seed`.
        self.seed = int.from_bytes(os.urandom(4), "little") >> 1 if seed is None or seed < 0 else int(seed)
        self.ahead = bool(exec_pipelined and exec_async)  # whether batches are made ahead of requests
        self.depth = self.cpu_queue_size if self.ahead else 1
        self.scheduled_at_first = self.cpu_queue_size if exec_pipelined else 1  # by the first `schedule_run`
        self.exec_pipelined, self.exec_async, self.set_affinity = exec_pipelined, exec_async, set_affinity
        self.py_num_workers, self.py_start_method = py_num_workers, py_start_method
        self.py_callback_pickler = py_callback_pickler
        self.device_memory_limit = device_memory_limit
        # Never stored, as options may contain secrets.
        self.storage = StorageSettings.checked(storage_options, cache, cache_bytes)
        self.demanded = demanded(output_dtype, output_ndim, output_layout)
        self.policy = Policy(on_error, max_errors)
        for name, budget in (("cpu_budget", cpu_budget), ("memory_budget", memory_budget)):
            if budget is not None and not (isinstance(budget, (int, float)) and budget >= 1):
                raise ValueError(f"{name} takes a positive number; got {budget!r}")
        self.autotune = bool(autotune) or cpu_budget is not None or memory_budget is not None
        self.cpu_budget, self.memory_budget = cpu_budget, memory_budget
        if decode_on not in (*PLACES, "auto"):
            raise ValueError(f"decode_on takes 'auto', 'gpu', 'cpu' or 'both'; got {decode_on!r}")
        self.chooses_decoding = decode_on == "auto"
        self.decode_on = "gpu" if self.chooses_decoding else decode_on  # the current choice
        if self.autotune and self.workers:
            raise ValueError("autotune is for pipelines without workers: leave out one of them")
        self.max_streams, self.default_cuda_stream_priority = max_streams, default_cuda_stream_priority
        self.enable_memory_stats, self.stream_policy, self.concurrency = enable_memory_stats, stream_policy, concurrency

    def set_tuned(self, num_threads: int, depth: int) -> None:
        """Replaces the given settings by those chosen by `autotune`."""
        self.num_threads = num_threads
        self.depth = self.cpu_queue_size = self.prefetch_queue_depth = depth

    exec_dynamic, exec_separated = True, False  # the values of the DALI executor that is most like this one

    @property
    def is_restored(self) -> bool:
        return self.checkpoint is not None

    @property
    def gpu_queue_size(self) -> int:
        given = self.prefetch_queue_depth
        if isinstance(given, dict):
            return given.get("gpu_size", 2)
        return given[1] if isinstance(given, tuple) else self.cpu_queue_size

    def arguments(self) -> dict[str, Any]:
        """The arguments to create the pipeline again, as JSON values."""
        same = (
            *("num_threads", "device_id", "seed", "exec_pipelined", "exec_async", "set_affinity"),
            *("py_num_workers", "py_start_method", "enable_checkpointing"),
        )
        return {
            "batch_size": self.max_batch_size,
            "prefetch_queue_depth": self.cpu_queue_size,
            **{name: getattr(self, name) for name in same},
            "decode_on": "auto" if self.chooses_decoding else self.decode_on,
            "on_error": self.policy.on_error,
            "max_errors": self.policy.max_errors,
            **{f"output_{k}": _plain(v) for k, v in self.demanded.items()},
        }


def _setting(name: str, doc: str = "") -> Any:
    """A property that returns an argument."""
    return property(lambda pipe: getattr(pipe._settings, name), doc=doc)


class Configured:
    """Base of `Pipeline`: its arguments as properties."""

    _settings: Settings

    max_batch_size: int | None = _setting("max_batch_size", "Maximum number of samples in a batch.")
    batch_size: int | None = _setting("max_batch_size", "Maximum number of samples in a batch.")
    num_threads: int = _setting("num_threads", "Number of native threads that process samples.")
    device_id: int | None = _setting("device_id", "The GPU in use; None for none.")
    seed: int = _setting("seed", "The seed in use, also if none was given.")
    decode_on: str = _setting("decode_on", 'Where mixed decoders now decode images: "gpu", "cpu" or "both".')
    prefetch_queue_depth: int | dict[str, int] | tuple[int, int] = _setting("prefetch_queue_depth", "As it was given.")
    is_restored_from_checkpoint: bool = _setting("is_restored")
    exec_dynamic: bool = _setting("exec_dynamic")
    exec_separated: bool = _setting("exec_separated")
    exec_pipelined: bool = _setting("exec_pipelined")
    exec_async: bool = _setting("exec_async")
    set_affinity: bool = _setting("set_affinity")
    py_num_workers: int = _setting("py_num_workers")
    py_start_method: str = _setting("py_start_method")
    cpu_queue_size: int = _setting("cpu_queue_size")
    gpu_queue_size: int = _setting("gpu_queue_size")
    max_streams: int | None = _setting("max_streams")
    default_cuda_stream_priority: int | None = _setting("default_cuda_stream_priority")
    enable_memory_stats: bool = _setting("enable_memory_stats")
    stream_policy: Any = _setting("stream_policy")
    concurrency: Any = _setting("concurrency")

    @property
    def num_outputs(self) -> int:
        raise NotImplementedError

    def output_dtype(self) -> list[DALIDataType | None]:
        """The required types of the outputs."""
        return per_output(self._settings.demanded["dtype"], self.num_outputs)

    def output_ndim(self) -> list[int | None]:
        """The required numbers of dimensions of the outputs."""
        return per_output(self._settings.demanded["ndim"], self.num_outputs)

    def executor_statistics(self) -> dict[str, Any]:
        return {}

    def enable_api_check(self, enable: bool) -> None:
        """Accepted for compatibility: `run` and `schedule_run` may be mixed."""

    def _check_api_type_scope(self, api_type: Any) -> AbstractContextManager[None]:
        """Accepted for compatibility, for iterators written after DALI's."""
        return nullcontext()


NAMES = frozenset(inspect.signature(Settings.__init__).parameters) - {"self"}
