# SPDX-License-Identifier: Apache-2.0
"""`Pipeline`: defining a graph of operators and running it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ..core.batch import Batch
from ..core.clocks import clocks
from ..core.dtypes import DALIDataType
from ..core.errors import PipelineError, suggest
from ..exec.plan import Plan
from ..exec.scheduling.executor import Executor
from ..exec.scheduling.statistics import Statistics
from ..graph import trace
from ..graph.effects import Unmerged
from ..graph.loose import adopt, input_name
from ..graph.node import DataNode
from ..graph.scopes import bring
from ..tensors import TensorListCPU
from .python_workers import PythonWorkers
from .serialization import Serialization
from .settings import available_cpus

# The JPEG engine's thread, Python, and the driver's own work.
_CORES_FOR_GPU = 4


@cache
def _gpu_tensors() -> Any:
    from ..tensors import TensorListGPU  # only pipelines with a GPU pay for its modules

    return TensorListGPU


def _holds_data(values: Any) -> bool:
    return any(_holds_data(v) if isinstance(v, (list, tuple)) else isinstance(v, DataNode) for v in values)


class Pipeline(PythonWorkers, Serialization):
    """A graph of operators that produces batches in the background.

    Define the graph with `pipeline_def`, in `with pipeline:` followed by `set_outputs`, or by overriding
    `define_graph`.

    Parameters
    ----------
    batch_size
        The largest number of samples in a batch.
    num_threads
        Native threads that process samples; by default as many as there are CPUs for this process.
    device_id
        The GPU to use; None for none. Without a GPU, a pipeline that needs none runs whatever is given.
    seed
        Seed of all random operators; None or a negative number takes a random one, kept in `seed`.
    prefetch_queue_depth
        How many batches are prepared ahead.
    exec_pipelined, exec_async
        False makes batches when they are asked for instead of ahead.
    on_error
        What happens to a sample that can't be read, decoded or processed: "raise" an error (the pipeline stays
        usable), "skip" it (the batch gets smaller), or "replace" it by the next good sample of the same shard. See
        `errors`.
    max_errors
        With "skip" and "replace": how many bad samples are too many, as a count (int) or as a rate of the samples
        seen (float).
    enable_checkpointing
        Makes `checkpoint()` possible, at no cost worth mentioning. Warns of sources whose place it can't hold.
    checkpoint
        What `checkpoint()` of a pipeline of the same definition returned: goes on from there. ValueError that names the
        difference if it is of another one. Without a `seed`, that of the checkpoint is taken. A list of the checkpoints
        of all shards where their number changes.
    output_dtype, output_ndim, output_layout
        What the outputs have to be; one value for all or a list. A batch that differs raises PipelineError.
    device_memory_limit
        The most bytes of GPU memory the pipeline may hold; None for no limit.

    The other arguments of DALI, about CUDA streams, executors and memory statistics, are accepted without effect.
    """

    definition: trace.Definition

    def _begin(self) -> None:
        self._statistics, self.definition = Statistics(), trace.Definition()
        self._output_nodes: list[DataNode] | None = None
        self._sinks: list[DataNode] = []
        self._define: Callable[[], Any] | None = None
        self._defined_at = ""
        self._executor: Executor | None = None
        self._plan: Plan | None = None
        self._current_batch_size = self._max_batch_size
        self._has_iter_setup = type(self).iter_setup is not Pipeline.iter_setup
        self._iter_setup_ended = self._primed = False
        self._lock = threading.RLock()  # of building and running: several threads may ask for batches

    @property
    def num_outputs(self) -> int:
        """How many outputs a batch has."""
        self.build()
        assert self._plan is not None
        return len(self._plan.outputs)

    def output_dtype(self) -> list[DALIDataType | None]:
        """The types demanded of the outputs on construction."""
        return self._per_output("dtype")

    def output_ndim(self) -> list[int | None]:
        """The numbers of dimensions demanded of the outputs on construction."""
        return self._per_output("ndim")

    def _per_output(self, key: str) -> list[Any]:
        value = self._wanted[key]
        return list(value) if isinstance(value, (list, tuple)) else [value] * self.num_outputs

    # Definition ---------------------------------------------------------------------------------------------------

    @staticmethod
    def current() -> Pipeline | None:
        """The pipeline that is being defined by this thread."""
        return trace.stack()[-1] if trace.stack() else None

    @staticmethod
    def push_current(pipeline: Pipeline) -> None:
        trace.stack().append(pipeline)

    @staticmethod
    def pop_current() -> None:
        trace.stack().pop()

    def __enter__(self) -> Pipeline:
        if self._plan is not None:
            raise RuntimeError("the pipeline is built; its definition can't be changed any more")
        Pipeline.push_current(self)
        return self

    def __exit__(self, *exc: object) -> None:
        Pipeline.pop_current()

    def set_outputs(self, *output_data_nodes: Any) -> None:
        """Sets what the pipeline returns: DataNodes, or constants."""
        if self._plan is not None:
            raise RuntimeError("the pipeline is built; its outputs can't be changed any more")
        self._output_nodes = list(output_data_nodes)

    def add_sink(self, edge: DataNode) -> None:
        """Keeps what `edge` depends on in the graph although it is no output."""
        self._sinks.append(edge)

    def define_graph(self) -> Any:
        """Overridden by sub-classes: builds the graph and returns its outputs."""
        if self._define is not None:
            return self._define()
        raise NotImplementedError(
            "the pipeline has no definition: use @pipeline_def, `with pipe:` and set_outputs(), or override "
            "define_graph()"
        )

    def build(self) -> None:
        """Traces and plans the graph. Called by `run` if it was not called before."""
        if self._executor is not None:
            return
        with self._lock:
            if self._executor is None:
                self._build()

    def _build(self) -> None:
        if self._max_batch_size is None:
            raise ValueError("a pipeline needs a batch_size before it can be built")
        self.start_py_workers()
        with self:
            if not self._output_nodes:
                raise ValueError(f"the pipeline{self._defined_at} has no outputs")
            outputs = [self._as_output(o, i) for i, o in enumerate(self._output_nodes)]
            self._sinks = [adopt(self.definition, s) for s in self._sinks]
        plan = Plan(self.definition.nodes, outputs, self._sinks, self._seed)
        if plan.uses_gpu:
            plan.session = self._gpu_session()
            plan.session.worked = self._statistics.worked
            plan.check_device()
        for node in plan.sources:
            try:
                plan.source_op(node).open(self._max_batch_size, self._seed)
            except (ValueError, OSError, RuntimeError, TypeError) as e:
                raise (type(e) if isinstance(e, (ValueError, TypeError)) else RuntimeError)(
                    node.describe(str(e))
                ) from None
        executor = Executor(plan, self._native_threads(plan), self._policy, self._statistics)
        self._start(plan, executor)
        self._plan, self._executor = plan, executor

    def _native_threads(self, plan: Plan) -> int:
        """As many as asked for; a pipeline that uses the GPU leaves cores to what feeds it, or it would starve."""
        return min(self._num_threads, max(available_cpus() - _CORES_FOR_GPU, 1)) if plan.uses_gpu else self._num_threads

    def _gpu_session(self) -> Any:
        if self._device_id is None:
            raise ValueError(
                f"the pipeline{self._defined_at} has operators on the GPU and no device_id: say which GPU, for "
                "instance device_id=0"
            )
        from ..gpu.session import Session  # only pipelines with a GPU pay for its modules

        return Session(self._device_id, self._device_memory_limit)

    def _as_output(self, value: Any, i: int) -> DataNode:
        if isinstance(value, DataNode):
            return bring(self.definition, value, None)
        if isinstance(value, Unmerged):
            value.complain()
        wrong = f"output {i} of the pipeline{self._defined_at} must be a DataNode or a constant"
        if isinstance(value, (list, tuple)) and _holds_data(value):
            raise TypeError(
                f"{wrong}; got a {type(value).__name__} with DataNodes in it. Unpack it: return *values, more"
            )
        if not isinstance(value, (int, float, list, tuple)) and not hasattr(value, "__array__"):
            raise TypeError(f"{wrong}; got {type(value).__name__}" + ". Is its return missing?" * (value is None))
        return trace.constant(np.asarray(value))

    # Running ------------------------------------------------------------------------------------------------------

    def _ready(self) -> Executor:
        self.build()
        assert self._executor is not None
        self._executor.check_not_busy()
        return self._executor

    def run(self, cuda_stream: Any = None, /, **pipeline_inputs: Any) -> tuple[TensorListCPU, ...]:
        """The next batch: one `TensorListCPU` or `TensorListGPU` per output. Keyword arguments feed the pipeline's
        inputs of these names.

        Outputs on the GPU are there when it returns. With a `cuda_stream` it does not wait: work of that stream waits
        for them, on the GPU. With -1 nothing waits; whoever takes them by DLPack then does, on the GPU."""
        for name, data in pipeline_inputs.items():
            self.feed_input(name, data)
        self._ready()  # refuses those whom the holder of the lock waits for
        with self._lock:
            return self._give_out(self._next(), cuda_stream)

    def _next(self) -> list[Batch]:
        """The next batch, as it is; `_lock` is held. The one behind it is begun before the GPU is waited for, unless it
        needs something of the user first."""
        executor = self._ready()
        if executor.pending == 0:
            self._schedule(executor, at_once=True)
        if not self._has_iter_setup and executor.comes_back():
            return self._share(executor)
        self._fill_queue(executor)
        batches = self._share(executor)
        if self._ahead and not self._has_iter_setup:
            executor.schedule_ahead(self._batch_size_now(), self._most_pending(executor.plan))
        return batches

    def _fill_queue(self, executor: Executor) -> None:
        """Asks for as many batches as may be on their way, without waiting for `feed_input`."""
        most = self._most_pending(executor.plan)
        while executor.pending < most and (self._has_iter_setup or executor.has_data()) and self._schedule(executor):
            ...

    def _schedule(self, executor: Executor, at_once: bool = False) -> bool:
        """Asks for one batch; False if `iter_setup` says that there is none."""
        if self._iter_setup_ended:
            return False
        try:
            self.iter_setup()
        except StopIteration:
            self._iter_setup_ended = True
            return False
        executor.schedule(self._batch_size_now(), at_once=at_once)
        return True

    def _batch_size_now(self) -> int:
        assert self._current_batch_size is not None
        return self._current_batch_size

    def set_batch_size(self, batch_size: int) -> None:
        """The size of the batches scheduled from now on; at most `max_batch_size`."""
        assert self._max_batch_size is not None
        if not 0 < batch_size <= self._max_batch_size:
            raise ValueError(f"the batch size of an iteration is 1 to {self._max_batch_size}; got {batch_size}")
        self._current_batch_size = batch_size

    def schedule_run(self) -> None:
        """Asks for one batch without waiting for it; the first call also fills the prefetch queue."""
        executor = self._ready()
        self._schedule(executor)
        if self._ahead and not self._primed:
            self._fill_queue(executor)
        self._primed = True

    def share_outputs(self, cuda_stream: Any = None) -> tuple[TensorListCPU, ...]:
        """The oldest batch asked for; waits for it, on the GPU only if there is a `cuda_stream`, as `run` does."""
        return self._give_out(self._share(self._ready()), cuda_stream)

    def _share(self, executor: Executor) -> list[Batch]:
        if self._iter_setup_ended and executor.pending == 0:
            raise StopIteration
        return executor.share()

    def _give_out(self, batches: list[Batch], cuda_stream: Any) -> tuple[TensorListCPU, ...]:
        begin = clocks()
        outputs = tuple(self._wrap(b, cuda_stream) for b in batches)
        self._statistics.worked(begin)
        for key in ("dtype", "ndim", "layout"):
            if self._wanted[key] is not None:
                self._check_outputs(outputs, key)
        return outputs

    def _wrap(self, batch: Batch, cuda_stream: Any) -> Any:
        return TensorListCPU.of(batch) if type(batch) is Batch else _gpu_tensors().given_out(batch, cuda_stream)

    def _check_outputs(self, outputs: tuple[TensorListCPU, ...], key: str) -> None:
        for i, (out, want) in enumerate(zip(outputs, self._per_output(key))):
            got = getattr(out, key)
            got = got() if callable(got) else got
            if want is not None and got != want:
                raise PipelineError(f"output {i} has {key} {got}, but output_{key} asks for {want}")

    def release_outputs(self) -> None:
        """Lets go of the batch that `share_outputs` gave; its memory is reused when nothing refers to it."""

    def outputs(self, cuda_stream: Any = None) -> tuple[TensorListCPU, ...]:
        """The oldest batch asked for, releasing the one before."""
        return self.share_outputs(cuda_stream)

    def feed_input(
        self,
        data_node: Any,
        data: Any,
        layout: str | None = None,
        cuda_stream: Any = None,
        use_copy_kernel: bool = False,
    ) -> None:
        """Gives the next batch to an `external_source` without a source, by its name or DataNode."""
        self._ready().withdraw()
        self._input(data_node).feed(data, layout)

    def _input(self, data_node: Any) -> Any:
        self.build()
        assert self._plan is not None
        if isinstance(data_node, (list, tuple)) and data_node and isinstance(data_node[0], DataNode):
            data_node = data_node[0]
        name = input_name(self.definition, data_node) if isinstance(data_node, DataNode) else data_node
        feeds = {n.name: n.op for n in self._plan.sources if hasattr(n.op, "feed")}
        if name not in feeds:
            raise KeyError(
                f"the pipeline has no input '{name}'; it has {sorted(feeds) or 'none'}.{suggest(str(name), feeds)}"
            )
        return feeds[name]

    def reset(self) -> None:
        """Starts the next epoch, also in the middle of one: what was prepared ahead is dropped.

        Where the readers are at the beginning of an epoch already, or their last batch ran on into it, nothing happens;
        nor to data given by `feed_input`, and to sources that can't start again.
        """
        self._iter_setup_ended = False
        self._primed &= self._executor is None or not self._ready().reset()

    def sample_indices(self) -> np.ndarray | None:
        """Which samples of its iteration the last batch has, in ascending order: fewer than were asked for if some were
        left out by on_error="skip". None before the first batch."""
        rows = None if self._executor is None else self._executor.rows
        return None if rows is None else rows.copy()

    def input_feed_count(self, input_name: str) -> int:
        """How often to call `feed_input` before the first `schedule_run` for a full prefetch queue; fewer will do."""
        self._input(input_name)
        return self._most_pending(self._ready().plan)

    def empty(self) -> bool:
        """Whether no batch has been asked for that was not taken."""
        return self._executor is None or self._executor.pending == 0

    def iter_setup(self) -> None:
        """Called before each batch is asked for; override it to call `feed_input`. StopIteration ends the epoch."""

    def close(self) -> None:
        """Stops the threads and gives the memory back. Done by itself when the pipeline is deleted, and at exit."""
        if self._executor is not None:
            self._executor.close()
        if self._plan is not None and self._plan.session is not None:
            self._plan.session.close()

    def __repr__(self) -> str:
        state = "not built" if self._plan is None else " | ".join(map(repr, self._plan.stages))
        fixed = f"batch_size={self._max_batch_size} num_threads={self._num_threads} device_id={self._device_id}"
        return f"<Pipeline {fixed} seed={self._seed}: {state}>"
