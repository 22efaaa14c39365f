# SPDX-License-Identifier: Apache-2.0
"""`@pipeline_def(debug=True)`: runs the definition for every batch; operators return values at once."""

from __future__ import annotations

import weakref
from collections import deque
from functools import partial
from typing import Any

from ..core.batch import Batch
from ..core.storage import using
from ..exec.eager import Again, Eager
from ..graph import trace
from ..graph.node import DataNode, Node
from ..tensors import TensorListCPU
from . import outputs, reports
from .pipeline import Pipeline
from .runner import open_session
from .traced import outputs_of

__all__ = ["DataNodeDebug", "DebugPipeline"]


class DataNodeDebug(DataNode):
    """Returned by operators in debug mode: a DataNode that has its batch. `get()` returns it, `print` shows it."""

    __slots__ = ("_eager",)

    def __init__(self, eager: weakref.ref[Eager], *args: Any):
        super().__init__(*args)
        self._eager = eager

    def get(self) -> Any:
        """The batch as a `TensorListCPU` or `TensorListGPU`; in a branch of a conditional, its samples."""
        eager = self._eager()
        if eager is None:
            raise RuntimeError(f"the pipeline of '{self.name}' no longer exists; keep it while its values are used")
        return _given(eager.value(self.source, self.index))

    def shape(self) -> list[tuple[int, ...]]:  # type: ignore[override]  # shapes, where a graph has a node for them
        """The shape of each sample."""
        return self.get().shape()

    @property
    def dtype(self) -> Any:
        return self.get().dtype

    def layout(self) -> str:
        return self.get().layout()

    def __str__(self) -> str:
        return f"{self.name}: {self.get()}"

    def __repr__(self) -> str:
        return f"{self.name}: {self.get()!r}"


def _given(batch: Batch) -> Any:
    if type(batch) is Batch:
        return TensorListCPU(batch)
    from ..tensors import TensorListGPU

    return TensorListGPU.given_out(batch, None)


class _Definition(trace.Definition):
    """Runs each node when it is added. Sources persist from the first batch, so that only those of it are started."""

    def __init__(self, eager: Eager):
        super().__init__()
        self._eager = eager

    def add(self, node: Node) -> None:
        self._register(node)
        node.output_type = partial(DataNodeDebug, weakref.ref(self._eager))
        self._eager.evaluate(node)


class DebugPipeline(Pipeline):
    """A pipeline that runs its definition again for every batch, in the caller's thread, with the same results as the
    graph. Errors are raised where the operator is called. Slow: nothing is fused or prepared ahead."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        if self.max_batch_size is None:
            raise ValueError("a pipeline needs a batch_size before it can be run")
        if self._checkpoints.is_enabled:
            raise ValueError("checkpoints can't be saved in debug mode; leave out debug=True or enable_checkpointing")
        settings, graph = self._settings, weakref.ref(self._graph)  # weak, to avoid a reference cycle

        def session() -> Any:
            known = graph()
            return open_session(settings, known.defined_at if known is not None else "")

        self._eager = Eager(self.max_batch_size, self.seed, self.num_threads, session)
        self._batches: deque[tuple[TensorListCPU, ...]] = deque()
        self._count: int | None = None

    def build(self) -> None:
        """Does nothing."""

    def _produce(self) -> tuple[TensorListCPU, ...]:
        graph = self._graph
        assert graph.define is not None
        self.iter_setup()
        while True:
            assert self._runner.batch_size is not None
            self._eager.begin(self._runner.batch_size)
            graph.definition = _Definition(self._eager)
            try:
                with self, using(self._settings.storage):
                    nodes = [graph.as_output(o, i) for i, o in enumerate(outputs_of(graph.define()))]
                break
            except Again:
                continue
            except StopIteration:
                raise
            except Exception:
                self._eager.end()
                raise
        self._count = len(nodes)
        made = tuple(_given(self._eager.value(d.source, d.index)) for d in nodes)
        self._eager.end()
        outputs.check(made, self._settings.demanded)
        return made

    def run(self, cuda_stream: Any = None, /, **pipeline_inputs: Any) -> tuple[TensorListCPU, ...]:
        for name, data in pipeline_inputs.items():
            self.feed_input(name, data)
        with self._runner.lock:
            return self._batches.popleft() if self._batches else self._produce()

    def schedule_run(self) -> None:
        with self._runner.lock:
            self._batches.append(self._produce())

    def share_outputs(self, cuda_stream: Any = None) -> tuple[TensorListCPU, ...]:
        return self.run()

    @property
    def num_outputs(self) -> int:
        if self._count is None:
            self.schedule_run()
        assert self._count is not None
        return self._count

    def feed_input(
        self,
        data_node: Any,
        data: Any,
        layout: str | None = None,
        cuda_stream: Any = None,
        use_copy_kernel: bool = False,
    ) -> None:
        self._eager.feed(getattr(data_node, "name", data_node), data, layout, cuda_stream)

    def reset(self) -> None:
        self._batches.clear()
        self._eager.reset()

    def empty(self) -> bool:
        return not self._batches

    def _metas(self) -> dict[str, reports.Meta]:
        if self._count is None:
            self.schedule_run()
        return reports.metas(self._eager.sources)

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("this is not available in debug mode, which makes no plan; leave out debug=True")

    explain = stats = trace = report = ceiling = checkpoint = serialize = save_graph_to_dot_file = _refuse

    def close(self) -> None:
        self._eager.close()

    def __repr__(self) -> str:
        return f"<DebugPipeline batch_size={self.max_batch_size} seed={self.seed}>"
