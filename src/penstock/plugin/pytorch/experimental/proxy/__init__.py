# SPDX-License-Identifier: Apache-2.0
"""Pipelines inside `torch.utils.data.DataLoader`: PyTorch's data sets and samplers with the pipeline's transforms.

Worker processes read samples; the pipeline runs once for each batch, in the process of the training.

>>> import numpy as np
>>> from penstock import fn, pipeline_def
>>> from penstock.plugin.pytorch.experimental import proxy
>>> @pipeline_def(batch_size=4, num_threads=2)
... def double():
...     return fn.external_source(name="x") * 2
>>> class Numbers:
...     def __init__(self, transform):
...         self.transform = transform
...     def __len__(self):
...         return 8
...     def __getitem__(self, i):
...         return self.transform(np.float32([i])), i
>>> with proxy.DALIServer(double()) as server:
...     loader = proxy.DataLoader(server, Numbers(server.proxy), batch_size=4)
...     for x, i in loader:
...         print(x.flatten(), i)
tensor([0., 2., 4., 6.]) tensor([0, 1, 2, 3])
tensor([ 8., 10., 12., 14.]) tensor([4, 5, 6, 7])
"""

from __future__ import annotations

import multiprocessing
import queue
import threading
import weakref
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import torch
import torch.utils.data

from .....pipeline import Pipeline
from ...torch_utils import dense_tensor
from .references import DALIOutputBatchRef, DALIOutputSampleRef, DALIPipelineRunRef, DALIProxy

__all__ = ["DALIOutputBatchRef", "DALIOutputSampleRef", "DALIPipelineRunRef", "DALIServer", "DataLoader"]

_STOP = None


class DALIServer:
    """Runs a pipeline for the worker processes of data loaders, in its own thread.

    Parameters
    ----------
    pipeline
        A pipeline with inputs: `fn.external_source(name=...)` without a source. Its batch size is the maximum batch
        size of a loader.
    deterministic
        Whether to run batches in the order in which they are consumed, so that random operators return the same numbers
        in each run of the program. The pipeline then does not overlap with the training.

    Use it in a `with` block, which ends the thread.
    """

    def __init__(self, pipeline: Pipeline, deterministic: bool = False):
        if not isinstance(pipeline, Pipeline):
            raise TypeError(f"DALIServer takes a Pipeline; got {type(pipeline).__name__}")
        pipeline.build()
        plan = pipeline._plan
        assert plan is not None
        fed = [n for n in plan.sources if getattr(plan.source_op(n), "is_fed", bool)()]
        if not fed:
            raise RuntimeError(
                "the pipeline has no inputs; DALIServer feeds data to fn.external_source(name=...) without a source"
            )
        self._pipeline, self._deterministic = pipeline, deterministic
        self._inputs = [n.name for n in sorted(fed, key=lambda n: n.number)]
        # Queues of the "spawn" context can be passed to workers of any start method.
        self._inbox: Any = multiprocessing.get_context("spawn").Queue()
        self._results: dict[Any, Any] = {}  # outputs, or the exception, by batch
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._failed: BaseException | None = None
        self._iterators: weakref.WeakSet[_Iterator] = weakref.WeakSet()
        self._proxy = DALIProxy(self._inputs, pipeline.num_outputs, self._inbox, deterministic)

    @property
    def proxy(self) -> DALIProxy:
        """The callable that represents the pipeline in a data set: takes the inputs of one sample, by position or
        name."""
        return self._proxy

    def produce_data(self, obj: Any) -> Any:
        """Returns `obj` with tensors in place of all `DALIOutputBatchRef`, also inside lists, tuples and
        dictionaries."""
        return self._produced(obj, {})

    def _produced(self, obj: Any, runs: dict[Any, Any]) -> Any:
        if isinstance(obj, DALIOutputBatchRef):
            run = obj.pipe_run_ref
            if run.batch_id not in runs:
                runs[run.batch_id] = self._outputs(run)
            return runs[run.batch_id][obj.output_idx]
        if isinstance(obj, DALIOutputSampleRef):
            raise TypeError("a sample of the DALI proxy is in no batch yet; pass the samples to default_collate first")
        if isinstance(obj, Mapping):
            made = {k: self._produced(v, runs) for k, v in obj.items()}
            return made if type(obj) is dict else type(obj)(made)  # type: ignore[call-arg]
        if isinstance(obj, tuple) and hasattr(obj, "_fields"):
            return type(obj)(*(self._produced(v, runs) for v in obj))
        if isinstance(obj, (list, tuple)):
            return type(obj)(self._produced(v, runs) for v in obj)
        if any(isinstance(v, DALIOutputBatchRef) for v in getattr(obj, "__dict__", {}).values()):
            for name, value in vars(obj).items():
                setattr(obj, name, self._produced(value, runs))
        return obj

    def _outputs(self, run: DALIPipelineRunRef) -> list[torch.Tensor]:
        if self._deterministic:
            if run.inputs is None:
                raise RuntimeError(f"the data of {run} was produced already")
            self._inbox.put((run.batch_id, run.inputs))
            run.inputs = None
        self.start_thread()
        with self._changed:
            self._changed.wait_for(lambda: run.batch_id in self._results or self._failed is not None)
            if run.batch_id not in self._results:
                raise RuntimeError("the thread of the DALI server ended") from self._failed
            outputs = self._results.pop(run.batch_id)
        if isinstance(outputs, BaseException):
            raise outputs
        return [dense_tensor(o, str(i)) for i, o in enumerate(outputs)]

    # The thread ---------------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        running: deque[Any] = deque()
        try:
            while True:
                try:  # blocks only if there is nothing else to do
                    message = self._inbox.get(block=not running)
                except queue.Empty:
                    self._finish(running.popleft())
                    continue
                if message is _STOP:
                    break
                self._begin(running, *message)
                if len(running) >= self._pipeline.cpu_queue_size:
                    self._finish(running.popleft())
            while running:  # completes all batches in the pipeline
                self._finish(running.popleft())
        except BaseException as error:
            with self._changed:
                self._failed = error
                self._changed.notify_all()

    def _begin(self, running: deque[Any], batch_id: Any, samples: list[tuple[Any, ...]]) -> None:
        """Feeds one batch to the pipeline. Invalid data becomes the error of its batch."""
        fed: list[str] = []
        try:
            columns = list(zip(*samples))
            largest = self._pipeline.max_batch_size or 0
            if len(samples) > largest:
                raise ValueError(
                    f"the loader gave a batch of {len(samples)} samples, the pipeline has batch_size={largest}"
                )
            for name, column in zip(self._inputs, columns):
                self._pipeline.feed_input(name, list(column))
                fed.append(name)
            self._pipeline.schedule_run()
        except Exception as error:
            for name in fed:  # keeps the inputs in step
                self._pipeline._input(name).feeding.take_back()
            self._put(batch_id, error)
        else:
            running.append(batch_id)

    def _finish(self, batch_id: Any) -> None:
        try:
            self._put(batch_id, self._pipeline.share_outputs())
        except Exception as error:
            self._put(batch_id, error)

    def _put(self, batch_id: Any, outputs: Any) -> None:
        with self._changed:
            self._results[batch_id] = outputs
            self._changed.notify_all()

    def start_thread(self) -> None:
        """Starts the thread if it is not running."""
        if self._thread is None or not self._thread.is_alive():
            self._failed = None
            self._thread = threading.Thread(target=self._serve, name="DALIServer", daemon=True)
            self._thread.start()

    def stop_thread(self) -> None:
        """Ends the thread. Batches that were not consumed are dropped."""
        if self._thread is not None:
            self._inbox.put(_STOP)
            self._thread.join()
            self._thread = None
        self.forget()

    def forget(self) -> None:
        """Drops the unused batches of an iteration that was ended early."""
        with self._changed:
            self._results.clear()

    def __enter__(self) -> DALIServer:
        self.start_thread()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop_thread()


class DataLoader(torch.utils.data.DataLoader):
    """A `torch.utils.data.DataLoader` whose batches contain the pipeline's outputs.

    The first argument is the `DALIServer` whose `proxy` the data set uses; the others are PyTorch's.
    """

    def __init__(self, dali_server: DALIServer, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.dali_server = dali_server
        if self.batch_size is None and self.batch_sampler is None:
            raise ValueError("proxy.DataLoader needs batches: give a batch_size or a batch_sampler")
        largest = dali_server._pipeline.max_batch_size or 0
        if self.batch_size is not None and self.batch_size > largest:
            raise ValueError(
                f"batch_size={self.batch_size} is more than the pipeline's batch_size={largest}; make the pipeline "
                f"with batch_size={self.batch_size}"
            )

    def ensure_server_listening(self) -> None:
        self.dali_server.start_thread()

    def __iter__(self) -> Any:
        self.ensure_server_listening()
        if not self.dali_server._iterators:
            self.dali_server.forget()
        return _Iterator(super().__iter__(), self)


class _Iterator:
    """The loader's iterator, with the outputs filled in."""

    def __init__(self, batches: Iterator[Any], loader: DataLoader):
        self._batches, self._loader = batches, loader
        loader.dali_server._iterators.add(self)

    def __iter__(self) -> _Iterator:
        return self

    def __len__(self) -> int:
        return len(self._loader)

    def __next__(self) -> Any:
        return self._loader.dali_server.produce_data(next(self._batches))
