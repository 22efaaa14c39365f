# SPDX-License-Identifier: Apache-2.0
"""Base of the operators that call a user's function."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from ...core.batch import Batch, Buffer
from ...core.dtypes import from_numpy
from ...core.op import Arg, Arguments, Operator
from ._on_gpu import OfCuPy

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))


class UserFunction(Operator, abstract=True):
    """Base class. `give` converts a sample to an argument of the function, `take` converts its result to an array."""

    inputs = (0, 256)
    by_frame = False
    in_order = True  # the function may keep state between calls
    runs_on_gpu = True
    batchwise: ClassVar[bool] = False

    function = Arg(object, doc="What is called.")
    num_outputs = Arg(int, 1, "Number of outputs of the function, which returns several as a tuple.")
    output_layouts = Arg(object, None, "Layout of the outputs: one string for all, or a list, which may be shorter.")
    batch_processing = Arg(
        bool,
        False,
        "Calls the function once per batch, with a list of samples for each input; it returns a list for each output.",
    )

    def setup(self) -> None:
        v = self.values
        if not callable(v["function"]):
            raise TypeError(f"{self.display_name()}: function takes a callable; got {type(v['function']).__name__}")
        if v["num_outputs"] < 0:
            raise ValueError(f"{self.display_name()}: num_outputs takes 0 or more; got {v['num_outputs']}")
        layouts = v["output_layouts"]
        self.layouts_out = [layouts] * v["num_outputs"] if isinstance(layouts, str) else list(layouts or ())
        if len(self.layouts_out) > v["num_outputs"]:
            raise ValueError(
                f"{self.display_name()}: {len(self.layouts_out)} output_layouts for {v['num_outputs']} outputs"
            )
        self.layouts_out += [""] * (v["num_outputs"] - len(self.layouts_out))
        self.mixes_samples = v["batch_processing"]  # type: ignore[misc]
        v["preserve"] = True  # as in DALI, functions are called even if nothing uses their results

    def n_outputs(self) -> int:
        return self.values["num_outputs"]

    def give(self, sample: np.ndarray) -> Any:
        return sample

    def take(self, result: Any) -> np.ndarray:
        if isinstance(result, (np.ndarray, np.generic)):
            return np.asarray(result)
        raise TypeError(f"it has to return NumPy arrays; got {type(result).__name__}")

    def gpu_arrays(self) -> Any:
        """Converts samples on the GPU to arguments of the function, and its results back; see _on_gpu.py."""
        made = getattr(self.values["function"], "gpu_arrays", None)
        return OfCuPy() if made is None else made()

    def run(self, a: Arguments, *inputs: Batch) -> tuple[Batch, ...]:
        return self._run(a, inputs) if a.gpu is None else self._run_on_gpu(a, inputs)

    def _run_on_gpu(self, a: Arguments, inputs: tuple[Batch, ...]) -> tuple[Batch, ...]:
        v, gpu, arrays = self.values, a.gpu, self.gpu_arrays()
        own = [gpu.writable(b) for b in inputs]
        if arrays.waits:
            gpu.stream.synchronize()
        rows: list[list[Any]] = []
        with arrays.on_stream(gpu.stream.handle):
            columns = [[arrays.give(gpu.lend(b, i)) for i in range(a.n)] for b in own]
            if v["batch_processing"]:
                results = self._columns(self._results(self._called(columns, None), None), a.n)
                rows = [[self._kept(gpu, arrays, c[i], k) for k, c in enumerate(results)] for i in range(a.n)]
            else:
                for i in range(a.n):
                    outputs = self._results(self._called([c[i] for c in columns], i), i)
                    rows.append([self._kept(gpu, arrays, r, k) for k, r in enumerate(outputs)])
        made = [[row[k] for row in rows] for k in range(v["num_outputs"])]
        return tuple(self._laid_out(gpu.batch(column), k) for k, column in enumerate(made))

    def _kept(self, gpu: Any, arrays: Any, result: Any, output: int) -> Any:
        """Copies a result immediately, as the function may reuse its arrays."""
        try:
            return gpu.copy(arrays.take(result), arrays.waits)
        except (TypeError, ValueError) as e:
            raise type(e)(f"output {output} of {self._name()}: {e}") from None

    def _laid_out(self, batch: Batch, output: int) -> Batch:
        layout = self.layouts_out[output]
        if len(layout) not in (0, batch.spec.ndim):
            raise ValueError(
                f"output {output} of {self._name()} has {batch.spec.ndim} dimensions, which the layout '{layout}' does "
                "not fit"
            )
        batch.spec.layout = layout
        return batch

    def _columns(self, results: Sequence[Any], n: int) -> Sequence[Any]:
        """Checks that there is a list of `n` samples per output; raises ValueError otherwise."""
        for k, column in enumerate(results):
            if not isinstance(column, (list, tuple)) or len(column) != n:
                got = len(column) if isinstance(column, (list, tuple)) else type(column).__name__
                raise ValueError(f"{self._name()}: output {k} has to be a list of {n} samples; got {got}")
        return results

    def _run(self, a: Arguments, inputs: tuple[Batch, ...]) -> tuple[Batch, ...]:
        v = self.values
        # The function may write to its arguments, but must not change the user's memory or a constant.
        own = [b if all(isinstance(o, Buffer) for o in b.owners) else b.packed_copy() for b in inputs]
        columns = [[self.give(b.sample(i)) for i in range(a.n)] for b in own]
        if v["batch_processing"]:
            results = self._columns(self._results(self._called(columns, None), None), a.n)
        else:
            # Copied immediately, as the function may reuse its arrays for the next sample.
            rows = []
            for i in range(a.n):
                outputs = self._results(self._called([c[i] for c in columns], i), i)
                rows.append([self._array(r, k).copy() for k, r in enumerate(outputs)])
            results = [[row[k] for row in rows] for k in range(v["num_outputs"])]
        return tuple(self._batch(column, k) for k, column in enumerate(results))

    def _name(self) -> str:
        return getattr(self.values["function"], "__qualname__", repr(self.values["function"]))

    def _called(self, arguments: list[Any], sample: int | None) -> Any:
        function: Callable[..., Any] = self.values["function"]
        try:
            return function(*arguments)
        except Exception as e:
            # Without columns: `traceback` parses the source for them, which is not thread-safe in CPython before 3.13.
            frames = [f[:3] for f in traceback.extract_tb(e.__traceback__) if not f.filename.startswith(_PACKAGE)]
            where = "".join(traceback.format_list([traceback.FrameSummary(*f) for f in frames]))
            which = "" if sample is None else f" for sample {sample}"
            text = str(e) or repr(e)
            raise RuntimeError(f"{self._name()} raised {type(e).__name__}{which}: {text}\n{where}".rstrip()) from e

    def _results(self, result: Any, sample: int | None) -> Sequence[Any]:
        """The results of a call, one per output."""
        n = self.values["num_outputs"]
        if n == 0:
            return ()
        if n == 1 and not (isinstance(result, tuple) and len(result) == 1):
            return (result[0] if isinstance(result, tuple) and not self.values["batch_processing"] else result,)
        if not isinstance(result, tuple) or len(result) != n:
            got = f"a tuple of {len(result)}" if isinstance(result, tuple) else type(result).__name__
            which = "" if sample is None else f" for sample {sample}"
            raise ValueError(f"{self._name()} has to return a tuple of {n} outputs (num_outputs={n}); got {got}{which}")
        return result

    def _array(self, result: Any, output: int) -> np.ndarray:
        try:
            array = self.take(result)
            from_numpy(array.dtype)
        except (TypeError, ValueError) as e:
            raise type(e)(f"output {output} of {self._name()}: {e}") from None
        return array

    def _batch(self, samples: Sequence[Any], output: int) -> Batch:
        arrays = [self._array(s, output) for s in samples]
        try:
            batch = Batch.from_samples(arrays, self.layouts_out[output])
        except (TypeError, ValueError) as e:
            raise type(e)(f"output {output} of {self._name()}: {e}") from None
        batch = self._laid_out(batch, output)
        return batch.packed_copy() if self.values["batch_processing"] else batch
