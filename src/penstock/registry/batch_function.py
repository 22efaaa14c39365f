# SPDX-License-Identifier: Apache-2.0
"""Operator that calls a function with whole batches. Plugins use it for functions of their frameworks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.batch import Batch, Borrowed, Spec
from ..core.dtypes import from_numpy
from ..core.op import Arg, Arguments, Operator
from ..graph import trace
from ..graph.node import DataNode

_MOST_INPUTS = 64


class BatchFunction(Operator, abstract=True):
    """Calls `function` with one array (n, ...) per input, which shares the memory of the batch. It returns a tuple of
    `num_outputs` arrays (n, ...), which are not copied and must not be changed afterwards.

    On the GPU, it is called with `TensorGPU`s and the GPU's index as `device_id`, and returns objects with DLPack.

    Calls don't overlap. They are made by threads of the pipeline, for batches in any order.
    """

    devices = ("cpu", "gpu")
    runs_on_gpu = True
    inputs = (0, _MOST_INPUTS)
    by_frame = False
    mixes_samples = True
    called = "function"  # the user's name for it, in errors
    function = Arg(object, doc="What is called.")
    num_outputs = Arg(int, 1, "Number of arrays that it returns.")
    output_layouts = Arg(object, None, "Layouts of the outputs' samples: one for all, or a list.")

    @classmethod
    def display_name(cls) -> str:
        return cls.called

    def setup(self) -> None:
        v = self.values
        if not callable(v["function"]):
            raise TypeError(f"takes a function; got {type(v['function']).__name__}")
        if v["num_outputs"] < 0:
            raise ValueError(f"num_outputs can't be negative; got {v['num_outputs']}")
        layouts = v["output_layouts"]
        if layouts is not None and not isinstance(layouts, str):
            layouts = list(layouts)
            if len(layouts) != v["num_outputs"] or not all(isinstance(x, str) for x in layouts):
                raise ValueError(
                    f"output_layouts takes one layout, or one for each of the {v['num_outputs']} outputs; got {layouts}"
                )
        self.layouts_of_outputs = layouts
        self.lock = threading.Lock()

    def n_outputs(self) -> int:
        n: int = self.values["num_outputs"]
        return n

    def run(self, a: Arguments, *inputs: Batch) -> tuple[Batch, ...]:
        stream = None if a.gpu is None else a.gpu.stream
        arrays: list[Any] = []
        for i, x in enumerate(inputs):
            if not x.spec.is_dense:
                raise ValueError(
                    f"input {i}: a batch whose samples differ in shape can't become one array; make them alike first "
                    f"(resize, crop, pad). Shapes: {x.spec.shape.tolist()[:4]}..."
                )
            arrays.append(x.array() if stream is None else _given(x, stream))
        with self.lock:
            try:
                where = {} if stream is None else {"device_id": stream.device.id}
                results = self.values["function"](*arrays, **where)
            except Exception as e:
                raise RuntimeError(f"the function raised {type(e).__name__}: {e}") from e
        if len(results) != self.n_outputs():
            raise ValueError(f"the function returned {len(results)} arrays, num_outputs is {self.n_outputs()}")
        if stream is not None:
            return tuple(self._on_gpu(r, i, a.n, inputs, stream) for i, r in enumerate(results))
        own = {array.ctypes.data for array in arrays if array.size}
        return tuple(self._batch(r, i, a.n, inputs, own) for i, r in enumerate(results))

    def _batch(self, result: np.ndarray, i: int, n: int, inputs: tuple[Batch, ...], own: set[int]) -> Batch:
        try:
            from_numpy(result.dtype)
        except (KeyError, TypeError, ValueError) as e:
            raise TypeError(f"output {i} of the function: {e}") from None
        layout = self._layout(result.shape, i, n, inputs)
        result = np.ascontiguousarray(result)
        spec = Spec.uniform(n, result.shape[1:], result.dtype, layout)
        rows = spec.packed()
        step = result.strides[0] if n > 1 and result.size else 0
        rows["data"] = result.ctypes.data + step * np.arange(n, dtype="u8")
        # Receivers may write to outputs, so an input that is returned unchanged is marked as shared.
        shared = result.ctypes.data in own
        return Batch(spec, rows, (Borrowed(result) if shared else result,))

    def _on_gpu(self, result: Any, i: int, n: int, inputs: tuple[Batch, ...], stream: Any) -> Batch:
        from ..gpu.interchange import taken

        try:
            batch = taken(result, lambda shape: self._layout(shape, i, n, inputs), stream)
            from_numpy(batch.spec.dtype)
        except (KeyError, TypeError) as e:
            raise TypeError(f"output {i} of the function: {e}") from None
        return batch

    def _layout(self, shape: tuple[int, ...], i: int, n: int, inputs: tuple[Batch, ...]) -> str:
        """The layout of output i. Raises ValueError if its shape does not fit."""
        if not shape or shape[0] != n:
            raise ValueError(
                f"output {i} of the function has the shape {shape}; its first axis has to be the batch of {n} samples"
            )
        layout = self.layouts_of_outputs
        if layout is not None:
            layout = layout if isinstance(layout, str) else layout[i]
        elif i < len(inputs) and inputs[i].spec.ndim == len(shape) - 1:
            layout = inputs[i].spec.layout
        if layout and len(layout) != len(shape) - 1:
            raise ValueError(
                f"output {i} of the function has samples of {len(shape) - 1} dimensions, which the layout '{layout}' "
                f"does not fit"
            )
        return layout or ""


def _given(batch: Batch, stream: Any) -> Any:
    from ..tensors import TensorListGPU  # imported only for GPU pipelines

    return TensorListGPU.of_work(batch, stream).as_tensor()


def call(cls: type[BatchFunction], inputs: tuple[Any, ...], **arguments: Any) -> DataNode | list[DataNode] | None:
    """Adds a call of the function to the pipeline being defined. Returns its output, a list of them, or None if it has
    none."""
    made = trace.call(cls, inputs, arguments)
    return None if isinstance(made, list) and not made else made


def checked(function: Any, who: str) -> Callable[..., Any]:
    if not callable(function):
        raise TypeError(f"{who} decorates a function; got {type(function).__name__}")
    return function
