# SPDX-License-Identifier: Apache-2.0
"""Pipelines as sources of Ray datasets."""

from __future__ import annotations

import collections
import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ...pipeline import Pipeline, portable
from .sharing import OPENED, column_of, defined, imported, names_of, pickled, warn

_AT_ONCE = 2  # threads: one batch runs in the native threads while the next is planned and the previous is stored
_READ_AHEAD = 2
_STEPS_OF_A_TASK = 8
_TASKS_PER_CPU = 2


def read_penstock(
    pipeline: Pipeline | Callable[..., Pipeline],
    *,
    output_names: Sequence[str] | None = None,
    reader_name: str | None = None,
    epoch: int = 0,
    num_threads: int = 1,
    concurrency: int | None = None,
    override_num_blocks: int | None = None,
    ray_remote_args: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> Any:
    """Returns a `ray.data.Dataset` of the samples that a pipeline returns in one epoch, each exactly once.

    Ray's read tasks make the batches, and each opens the data itself. The samples are the same as those of the pipeline
    in one process, and so is their order if `DataContext.execution_options.preserve_order` is set. Later stages of the
    dataset run concurrently.

    Parameters
    ----------
    pipeline
        A Pipeline, which is not changed, or a function made by `pipeline_def`, called with `arguments`. It reads by
        `fn.readers` and runs on the CPU. A reader with `num_shards` returns only its shard.
    output_names
        The columns, one name for each output. By default output_0, output_1 and so on. A column of samples of one shape
        is a tensor of (samples, *shape); samples of several shapes are Ray's tensors of variable shape, which
        `batch_format="numpy"` shows as arrays of objects.
    reader_name
        The reader that defines the epoch. Required if the pipeline has several.
    epoch
        The epoch, from 0: readers that shuffle have a different order for each.
    num_threads
        Number of native threads of a read task, and of CPUs that Ray reserves for it unless `ray_remote_args` sets it.
    concurrency, override_num_blocks, ray_remote_args
        As in `ray.data.read_datasource`. By default there are at most two tasks for each CPU of the cluster, or as many
        as have eight batches each, whichever is more. A task returns one block per batch, which Ray may join.

    The pipeline's `on_error` applies to bad samples: with "raise" the dataset raises; with "skip" or "replace" tasks
    log a warning for each. Raises ValueError for a pipeline that can't be created in other processes.

    >>> import ray
    >>> from penstock import fn, pipeline_def
    >>> from penstock.plugin.ray import read_penstock
    >>> @pipeline_def(batch_size=16, seed=1)
    ... def pictures(folder):
    ...     files, labels = fn.readers.file(file_root=folder, random_shuffle=True)
    ...     return fn.resize(fn.decoders.image(files), size=(64, 64)), labels
    >>> ds = read_penstock(pictures, folder="examples/data", output_names=["image", "label"])
    >>> ds.take_batch(4)["image"].shape
    (4, 64, 64, 3)
    """
    data = imported("ray.data")
    if isinstance(epoch, bool) or not isinstance(epoch, int) or epoch < 0:
        raise ValueError(f"read_penstock: epoch takes a number from 0; got {epoch!r}")
    pipe = defined("read_penstock", pipeline, arguments)
    try:
        portable_pipeline = portable.portable(pipe, num_threads, "read_penstock")
        if pipe._settings.policy.max_errors is not None:
            raise ValueError(
                "read_penstock: max_errors counts the bad samples of one process, and read tasks are many: leave it "
                'out, and filter or count by on_error="skip"'
            )
        names = names_of("read_penstock", output_names, pipe.num_outputs)
        orders = portable.orders(pipe, _sizes(pipe, reader_name, epoch))
    finally:
        pipe.close()
    payload = pickled("read_penstock", portable_pipeline)
    remote: dict[str, Any] = {"num_cpus": num_threads, **(ray_remote_args or {})}
    tasks = override_num_blocks or _number_of_tasks(len(orders))
    source = _source_class(data)(payload, orders, names)
    if "num_cpus" not in inspect.signature(data.read_datasource).parameters:  # older versions of Ray
        remote = {"ray_remote_args": remote}
    # With another number, Ray would split the tasks' blocks into many small ones.
    return data.read_datasource(source, concurrency=concurrency, override_num_blocks=max(tasks, 1), **remote)


def _sizes(pipe: Pipeline, reader_name: str | None, epoch: int) -> list[list[int]]:
    """Sizes of the batches of epochs 0 to `epoch`. Each sample of an epoch is in exactly one batch."""
    metas = pipe.reader_meta()
    if reader_name is None:
        if len(metas) != 1:
            raise ValueError(
                f"read_penstock takes the epoch of one reader; the pipeline has {sorted(metas) or 'none'}"
                + (": select one with reader_name" if metas else ", and no other source defines its end")
            )
        reader_name = next(iter(metas))
    meta = pipe.reader_meta(reader_name)
    size, shards, most = meta["epoch_size"], meta["number_of_shards"], pipe.max_batch_size or 1
    found = []
    for e in range(epoch + 1):
        shard = (meta["shard_id"] + (0 if meta["stick_to_shard"] else e)) % shards
        n = size * (shard + 1) // shards - size * shard // shards
        found.append([min(most, n - at) for at in range(0, n, most)])
    return found


def _number_of_tasks(steps: int) -> int:
    """Limited so that a task has several batches and can prepare the next ones concurrently. Connects to Ray, as the
    cluster's resources are needed."""
    ray = imported("ray")
    if not ray.is_initialized():
        ray.init()
    cpus = int(ray.cluster_resources().get("CPU", 1))
    return min(steps, max(_TASKS_PER_CPU * cpus, steps // _STEPS_OF_A_TASK))


def _source_class(data: Any) -> Any:
    """Defines the class of the source. Requires Ray."""
    ray = imported("ray")
    block = imported("ray.data.block")

    class PenstockDatasource(data.Datasource):
        def __init__(self, payload: bytes, orders: list[Any], names: list[str]):
            super().__init__()
            self._payload, self._orders, self._names = payload, orders, names

        def get_name(self) -> str:
            return "Penstock"

        def estimate_inmemory_data_size(self) -> int | None:
            return None

        def get_read_tasks(self, parallelism: int, per_task_row_limit: int | None = None, *_: Any, **__: Any) -> Any:
            """A range of consecutive steps for each task."""
            steps = len(self._orders)
            n = min(parallelism, steps)
            payload = ray.put(self._payload)  # stored once, not in every task
            cuts = [steps * i // n for i in range(n + 1)] if n else []
            return [self._task(payload, self._orders[a:b], per_task_row_limit) for a, b in zip(cuts, cuts[1:])]

        def _task(self, payload: Any, orders: list[Any], limit: int | None) -> Any:
            names, make = self._names, _blocks
            known = {"num_rows": None, "size_bytes": None, "input_files": None, "exec_stats": None}
            if "schema" in getattr(block.BlockMetadata, "__dataclass_fields__", {}):  # Ray before 2.47
                known["schema"] = None
            task = data.ReadTask(lambda: make(payload, orders, names), block.BlockMetadata(**known))
            if limit is not None:
                task._per_task_row_limit = limit
            return task

    return PenstockDatasource


def _blocks(payload: Any, orders: list[Any], names: list[str]) -> Generator[Any, None, None]:
    """Runs in a read task: yields the blocks of its batches, in order, while preparing the next ones."""
    to_block = imported("ray.data.block").BlockAccessor.batch_to_block
    todo, making = collections.deque(orders), collections.deque[Any]()
    with (
        OPENED.lent(imported("ray").get(payload), _open_pipeline) as opened,
        ThreadPoolExecutor(_AT_ONCE, "penstock-batch") as threads,
    ):
        while todo or making:
            while todo and len(making) < _AT_ONCE + _READ_AHEAD:
                making.append(threads.submit(opened.finish, opened.begin(todo.popleft())))
            outputs, _, errors = making.popleft().result()
            warn(errors)
            if outputs and len(outputs[0]):
                yield to_block({name: column_of([o]) for name, o in zip(names, outputs)})


def _open_pipeline(payload: bytes) -> Any:
    return imported("ray.cloudpickle").loads(payload).open()
