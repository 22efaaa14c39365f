# SPDX-License-Identifier: Apache-2.0
"""`Pipeline`: a graph of operators; combines its definition, runner, checkpoints and reports."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..core.batch import Batch
from ..core.constructors import names_checked, with_signature_of
from ..core.errors import SampleError
from ..exec import report, timeline
from ..exec.plan import Plan
from ..exec.scheduling.executor import Executor
from ..graph.node import DataNode
from ..graph.unbound import input_name
from ..tensors import TensorListCPU
from . import distributed, outputs, page, python_workers, reports, running, serialization
from .ceiling import Ceiling
from .checkpoints import Checkpoints
from .runner import Runner
from .settings import Configured, Settings
from .traced import GraphBuilder, outputs_of


class Pipeline(Configured, GraphBuilder):
    """A graph of operators that prepares batches in the background. Define it with `pipeline_def`, inside
    `with pipeline:` followed by `set_outputs`, or by overriding `define_graph`.

    Parameters
    ----------
    batch_size
        Maximum number of samples in a batch.
    num_threads
        Number of native threads that process samples. By default the number of CPUs of this process.
    device_id
        The GPU to use; None for none. A pipeline without GPU operators also runs on a machine without a GPU.
    seed
        Seed of all random operators. With None or a negative number, a random seed is chosen; `seed` returns it.
    prefetch_queue_depth
        Number of batches prepared ahead.
    exec_pipelined, exec_async
        False: batches are made when they are requested, not ahead of time.
    on_error
        What happens to a sample that can't be read, decoded or processed (see `errors`): "raise" an error (the pipeline
        stays usable), "skip" it (the batch gets smaller), or "replace" it by the next good one of the same shard.
    max_errors
        With "skip" and "replace": the most bad samples, as a count (int) or a share of the samples seen so far (float).
    enable_checkpointing
        Enables `checkpoint()`; the cost is negligible. Warns about sources whose position cannot be saved.
    checkpoint
        The result of `checkpoint()` of a pipeline with the same definition: this one continues from there, with the
        same seed if none is given. If the number of shards changes, a list of the checkpoints of all shards. A
        checkpoint of another definition raises a ValueError that names the difference.
    output_dtype, output_ndim, output_layout
        Required properties of the outputs: one value for all, or a list. A batch that differs raises PipelineError.
    device_memory_limit
        Maximum number of bytes of GPU memory that the pipeline may hold; None for no limit.
    autotune, cpu_budget, memory_budget
        True, or limits on CPUs and bytes: threads and depth are set while it runs; `explain` lists what was tried.
    decode_on
        Where mixed decoders decode images, with equal pixels: "gpu"; "cpu", which leaves the GPU to the training;
        "both", in turns; or "auto": what the training turns out to be fastest with.
    workers, min_workers, max_workers
        Number of processes that make the batches, with `num_threads` threads each; "auto" or "ray://host:10001" for Ray
        actors. With a minimum or maximum, their number is adjusted to how long the program waits for batches.
    storage_options
        Settings of object stores, by obstore's names, and limits: see the guide. Never serialised, nor in checkpoints.
    cache, cache_bytes
        A folder on a local disk that keeps data read from URLs, shared by all processes, and its maximum size in bytes
        (no limit by default); the least recently used data is removed first. Not saved in serialised pipelines either.

    DALI's other arguments, about CUDA streams, executors and memory statistics, are accepted and have no effect.
    """

    @names_checked
    @with_signature_of(Settings.__init__)
    def __init__(self, *args: Any, **kwargs: Any):
        self._settings = Settings(*args, **kwargs)
        super().__init__()
        self._runner = Runner(self._settings)
        self._checkpoints = Checkpoints(self._settings)
        self._workers: Any = None  # worker pool of sources with `parallel=True`
        self._has_iter_setup = type(self).iter_setup is not Pipeline.iter_setup

    @property
    def _is_built(self) -> bool:
        return self._plan is not None

    @property
    def num_outputs(self) -> int:
        """The number of outputs of a batch."""
        return len(self._built().outputs)

    def start_py_workers(self) -> None:
        """Starts the workers of all sources with `parallel=True`; the pipeline need not be built yet.

        `build` does this too. If workers are forked and CUDA is used, call this for all pipelines before the first one
        is built.
        """
        if self._graph.outputs is None:
            with self:
                self._graph.outputs = outputs_of(self.define_graph())
        if self._workers is None:
            self._workers = python_workers.start(self.definition, self._settings)

    def build(self) -> None:
        """Traces and plans the graph. `run` calls it if needed."""
        if self._executor is not None:
            return
        with self._runner.lock:
            if self._executor is None:
                self._build()

    def _build(self) -> None:
        if self.max_batch_size is None:
            raise ValueError("a pipeline needs a batch_size before it can be built")
        self.start_py_workers()
        with self:
            nodes, sinks = self._graph.output_nodes(), self._graph.adopt_sinks()
        plan = Plan(distributed.arrange_nodes(self.definition, self._settings), nodes, sinks, self.seed)
        crew = distributed.producer_starter(plan, self.definition, sinks, self._settings)
        self._runner.start(plan, self._graph.defined_at, self._checkpoints.start, crew)
        running.add(self, self._graph.name)

    # Running ------------------------------------------------------------------------------------------------------

    @property
    def _plan(self) -> Plan | None:
        """None until the pipeline is built."""
        return self._runner.plan

    @property
    def _executor(self) -> Executor | None:
        return self._runner.executor

    def _built(self) -> Plan:
        self.build()
        assert self._plan is not None
        return self._plan

    def _ready(self) -> Executor:
        self.build()
        assert self._executor is not None
        self._executor.check_not_busy()
        return self._executor

    def run(self, cuda_stream: Any = None, /, **pipeline_inputs: Any) -> tuple[TensorListCPU, ...]:
        """Returns the next batch, a `TensorListCPU` or `TensorListGPU` per output. Keyword arguments feed named inputs.

        By default, GPU outputs are complete when it returns. With a `cuda_stream`, the host does not wait; later work
        on that stream does. With -1, nothing waits here; a consumer that uses DLPack waits, on the GPU."""
        for name, data in pipeline_inputs.items():
            self.feed_input(name, data)
        self._ready()  # checked before taking the lock, whose holder may wait for this thread
        with self._runner.lock:
            return self._wrapped(self._next(), cuda_stream)

    def _next(self) -> list[Batch]:
        """The next batch, not wrapped. Requires the runner's lock, and that the pipeline is ready."""
        return self._runner.next(self.iter_setup if self._has_iter_setup else None)

    def _wrapped(self, batches: list[Batch], cuda_stream: Any) -> tuple[TensorListCPU, ...]:
        wrapped = tuple(outputs.wrap(b, cuda_stream) for b in batches)
        outputs.check(wrapped, self._settings.demanded)
        return wrapped

    def set_batch_size(self, batch_size: int) -> None:
        """Sets the size of the batches scheduled from now on, at most `max_batch_size`."""
        self._runner.set_batch_size(batch_size)

    def schedule_run(self) -> None:
        """Requests one batch without waiting for it; the first call also fills the prefetch queue."""
        self._ready()
        self._runner.schedule(self.iter_setup if self._has_iter_setup else None)

    def share_outputs(self, cuda_stream: Any = None) -> tuple[TensorListCPU, ...]:
        """Returns the oldest requested batch when it is complete; for `cuda_stream` see `run`."""
        self._ready()
        return self._wrapped(self._runner.share(), cuda_stream)

    def release_outputs(self) -> None:
        """Accepted for compatibility: the memory of a batch is reused when nothing refers to it any more."""

    def outputs(self, cuda_stream: Any = None) -> tuple[TensorListCPU, ...]:
        """Returns the oldest requested batch, and releases the one before."""
        return self.share_outputs(cuda_stream)

    def feed_input(
        self,
        data_node: Any,
        data: Any,
        layout: str | None = None,
        cuda_stream: Any = None,
        use_copy_kernel: bool = False,
    ) -> None:
        """Passes the next batch to an `external_source` without a source, given by its name or DataNode. `cuda_stream`
        (a handle, or a stream of PyTorch or CuPy) is the stream that produces GPU arrays which do not name one."""
        self._ready().withdraw()
        self._input(data_node).feed(data, layout, cuda_stream)

    def _input(self, data_node: Any) -> Any:
        if isinstance(data_node, (list, tuple)) and data_node and isinstance(data_node[0], DataNode):
            data_node = data_node[0]
        self.build()
        name = input_name(self.definition, data_node) if isinstance(data_node, DataNode) else data_node
        return self._runner.input(name)

    def input_feed_count(self, input_name: str) -> int:
        """Number of `feed_input` calls before the first `schedule_run` that fill the queue; fewer are allowed."""
        self._input(input_name)
        return self._settings.cpu_queue_size

    def iter_setup(self) -> None:
        """Called before each batch is requested; override it to call `feed_input`. StopIteration ends the epoch."""

    def empty(self) -> bool:
        """Whether all requested batches have been taken. The end of a source is no batch."""
        return self._runner.empty()

    def reset(self) -> None:
        """Starts the next epoch, even in the middle of one; batches prepared ahead are dropped.

        It has no effect on readers that are already at the beginning of an epoch, or whose last batch extended into it,
        on data passed to `feed_input`, and on sources that cannot be restarted."""
        self._runner.reset()

    def sample_indices(self) -> np.ndarray | None:
        """The indices, in ascending order, of the samples that the last batch contains: fewer than the batch size if
        on_error="skip" omitted some. None before the first batch."""
        rows = None if self._executor is None else self._executor.rows
        return None if rows is None else rows.copy()

    def close(self) -> None:
        """Stops the threads and releases the memory. Called automatically when the pipeline is deleted, and at exit."""
        running.remove(self)
        self._runner.close()

    # Checkpoints and serialisation --------------------------------------------------------------------------------

    def checkpoint(self, filename: str | os.PathLike | None = None) -> bytes:
        """Returns the position of the pipeline, a few hundred bytes of JSON, and writes it to `filename` if given.

        Another pipeline with the same definition that gets it as `checkpoint=` continues after the last batch that was
        taken, regardless of what was prepared ahead, with the same random numbers, for any number of threads and any
        prefetch depth. The number of shards may change: the rest of the epoch is then divided among the new shards.
        Each of them takes the checkpoint of any old shard, or a list of all if their seeds were different.

        >>> from penstock import fn, pipeline_def
        >>> @pipeline_def(batch_size=2, seed=7, enable_checkpointing=True)
        ... def pipe():
        ...     return fn.random.uniform()
        >>> a = pipe()
        >>> _, saved, after = a.run(), a.checkpoint(), a.run()[0].as_array()
        >>> bool((pipe(checkpoint=saved).run()[0].as_array() == after).all())
        True
        """
        return serialization.written(self._save_checkpoint(self._state()), filename)

    def _state(self) -> Any:
        """The position of the pipeline, for `_save_checkpoint`."""
        self._checkpoints.check_enabled()
        return self._checkpoints.state(self._ready())

    def _save_checkpoint(self, state: Any, iterator: dict[str, Any] | None = None) -> bytes:
        return self._checkpoints.save(self._built(), state, iterator)

    def serialize(
        self,
        define_graph: Any = None,
        filename: str | os.PathLike | None = None,
        *,
        embed_functions: bool = False,
        pickler: Any = None,
    ) -> bytes:
        """Returns the arguments and the graph of the pipeline as JSON, and writes them to `filename` if given.

        The user's functions and sources are stored by name ("module:qualname"). With `embed_functions` they are
        pickled into the JSON, by `pickler` (any object with `dumps`, such as the module cloudpickle); then load it only
        if you trust its author.

        >>> from penstock import Pipeline, fn, pipeline_def
        >>> @pipeline_def(batch_size=2, seed=1)
        ... def pipe():
        ...     return fn.random.uniform()
        >>> again = Pipeline.deserialize(pipe().serialize())
        >>> bool((again.run()[0].as_array() == pipe().run()[0].as_array()).all())
        True
        """
        if define_graph is not None:
            if self._graph.outputs is not None:
                raise RuntimeError("the pipeline has a definition already; leave define_graph out")
            self._graph.define = define_graph
        return serialization.written(serialization.text_of(self, embed_functions, pickler), filename)

    @classmethod
    def deserialize(
        cls,
        serialized_pipeline: str | bytes | None = None,
        filename: str | os.PathLike | None = None,
        *,
        functions: Mapping[str, Any] | None = None,
        import_functions: bool = False,
        unpickle: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Creates a pipeline from its text or file, serialised here or by DALI. `kwargs` replace its arguments.

        By default, nothing is executed. If the text names the user's functions, pass them in `functions`, by these
        names, or set `import_functions` to import them, or `unpickle` if they are embedded. The last two execute code
        chosen by the author of the text.
        """
        content = serialization.parsed(serialized_pipeline, filename)
        known = serialization.functions_of(content, functions or {}, import_functions, unpickle)
        return serialization.made_of(Pipeline, content, known, kwargs)

    def deserialize_and_build(self, serialized_pipeline: str | bytes) -> None:
        """Replaces this pipeline by a serialised one and builds it."""
        pipe = type(self).deserialize(serialized_pipeline)
        self.__dict__.update(pipe.__dict__)
        self.build()

    def __reduce__(self) -> Any:
        functions: dict[str, Any] = {}
        return serialization.made_of, (Pipeline, serialization.content_of(self, functions), functions, {})

    # Reports ------------------------------------------------------------------------------------------------------

    def _metas(self) -> dict[str, reports.Meta]:
        plan = self._built()
        return reports.metas((n, plan.source_op(n)) for n in plan.sources)

    def epoch_size(self, name: str | None = None) -> Any:
        """The number of samples in an epoch of the reader `name`, over all shards; without a name, a dictionary of all
        readers. Samples that `pad_last_batch` adds to make all shards equally long are included."""
        metas = self._metas()
        if name is not None:
            return reports.meta(metas, name)["epoch_size_padded"]
        return {k: m["epoch_size_padded"] for k, m in metas.items()}

    def reader_meta(self, name: str | None = None) -> dict[str, Any]:
        """A reader's epoch_size, epoch_size_padded, number_of_shards, shard_id, pad_last_batch and stick_to_shard;
        without a name, those of all readers by name."""
        metas = self._metas()
        return dict(metas if name is None else reports.meta(metas, name))

    def errors(self) -> list[SampleError]:
        """All bad samples so far: source, operator, reason, iteration, sample and action of each. After a checkpoint is
        restored, the list begins with the last eight from before it; `max_errors` counts all of them."""
        return sorted(self._settings.policy.errors, key=lambda e: (e.iteration, e.sample))

    def explain(self, program: bool = False) -> str:
        """Describes the plan: stages, chains, results that stay in scratch memory, and samples that are decoded or
        computed only in part. With `program`, also the column programs, once a few batches were made."""
        plan, r = self._built(), self._runner
        return report.explain(plan, r.threads, r.made_ahead(), r.together, program, r.tried, r.parts)

    def stats(self) -> Any:
        """Returns the time and share of every operator, samples per second, waiting times, and a sentence about what
        limits the speed. Prints as a table; `as_dict()` returns a dictionary."""
        return report.table(self._built(), self._runner.statistics, self._runner.threads)

    def reset_stats(self) -> None:
        self._runner.statistics.reset()

    def ceiling(self, batches: int | None = None) -> Ceiling:
        """Measures how fast training would be if the pipeline cost nothing (`Ceiling`); an epoch has `batches`."""
        self._ready()
        return Ceiling(self._runner, batches)

    def trace(self, path: str | os.PathLike) -> None:
        """Writes a trace of the last batches, with all stages and threads, for Perfetto or chrome://tracing."""
        timeline.write_trace(self._built(), self._runner.statistics, path)

    def report(self, path: str | os.PathLike, outputs: Sequence[Any] = ()) -> None:
        """Writes an HTML report: what limits the speed, times, graph, plan, bad samples, images of `outputs`."""
        page.write(self, path, outputs)

    def _repr_html_(self) -> str:
        return page.short(self)

    def save_graph_to_dot_file(self, filename: str, **kwargs: Any) -> None:
        """Writes the graph of operators for Graphviz."""
        reports.write_dot(self._built(), filename)

    def external_source_shm_statistics(self) -> dict[str, list[int]]:
        """Bytes of shared memory of each batch in flight (`capacities`), and per sample (`per_sample_capacities`)."""
        return python_workers.memory(self._workers, self.max_batch_size)

    def __repr__(self) -> str:
        state = "not built" if self._plan is None else " | ".join(map(repr, self._plan.stages))
        fixed = f"batch_size={self.max_batch_size} num_threads={self.num_threads} device_id={self.device_id}"
        return f"<Pipeline {fixed} seed={self.seed}: {state}>"
