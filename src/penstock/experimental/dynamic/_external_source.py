# SPDX-License-Identifier: Apache-2.0
"""Data from the program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ...core.errors import InternalError
from ...tensors import TensorListCPU
from ._batch import Batch
from ._making import make_batch, make_tensor

_CYCLES = {"no": "no", False: "no", None: "no", "quiet": "quiet", True: "quiet", "raise": "raise"}


class ExternalSource:
    """Data from the program, one item for each call.

    Parameters
    ----------
    source
        A function without parameters, or an iterable. Each item is accepted by `as_tensor`, a batch, or a tuple of
        these, one for each output.
    num_outputs
        Number of outputs of an item. With more than one, calls return tuples.
    cycle
        What happens at the end of an iterable: "no", the default: StopIteration; "raise": StopIteration once, then it
        starts again; "quiet" or True: it starts again.
    device, layout, dtype
        Properties of the outputs; `layout` and `dtype` may be lists with one for each output.

    >>> import numpy as np
    >>> from penstock.experimental import dynamic as ndd
    >>> source = ndd.ExternalSource([np.float32([1, 2]), np.float32([3, 4])], cycle="quiet")
    >>> [np.asarray(source()).tolist() for _ in range(3)]
    [[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]
    """

    def __init__(
        self,
        source: Callable[[], Any] | Iterable[Any],
        num_outputs: int = 1,
        *,
        cycle: Any = None,
        device: Any = "cpu",
        layout: str | Sequence[str] | None = None,
        dtype: Any = None,
    ):
        if not callable(source) and not isinstance(source, Iterable):
            raise TypeError(f"a source is a function or something to iterate over; got {type(source).__name__}")
        if isinstance(cycle, (list, dict)) or cycle not in _CYCLES:
            raise ValueError(f"cycle takes 'no', 'quiet', 'raise', a boolean or None; got {cycle!r}")
        if num_outputs < 1:
            raise ValueError(f"num_outputs is at least 1; got {num_outputs}")
        self._source, self._num_outputs, self._cycle, self._device = source, num_outputs, _CYCLES[cycle], device
        self._items: Iterator[Any] | None = None
        if callable(source) and not isinstance(source, Iterable):
            import inspect

            if inspect.isgeneratorfunction(source):
                self._is_function = False
            else:
                self._is_function = True
                if self._cycle != "no":
                    raise ValueError("cycle is for something to iterate over; the source is a function")
        else:
            self._is_function = False
        self._layouts = self._each("layout", layout)
        self._dtypes = self._each("dtype", dtype)

    def _each(self, name: str, given: Any) -> list[Any]:
        if not isinstance(given, (list, tuple)):
            return [given] * self._num_outputs
        if len(given) != self._num_outputs:
            raise ValueError(f"{name}: {len(given)} are given for {self._num_outputs} outputs")
        return list(given)

    def _next(self) -> Any:
        if self._is_function:
            return self._source()  # type: ignore[operator]
        for attempt in range(2):
            if self._items is None:
                self._items = iter(self._source() if callable(self._source) else self._source)
            try:
                return next(self._items)
            except StopIteration:
                if self._cycle == "no":
                    raise
                self._items = None
                if self._cycle == "raise" or attempt:
                    raise
        raise InternalError("unreachable")

    def __call__(self, *, batch_size: int | None = None) -> Any:
        """Returns the next item: tensors, or batches if the source returns batches; or, with `batch_size`, batches in
        which a tensor is repeated. Raises StopIteration at the end."""
        item = self._next()
        if self._num_outputs == 1:
            items: Any = [item]
        elif isinstance(item, (tuple, list)) and len(item) == self._num_outputs:
            items = item
        else:
            got = f"{len(item)} of them" if isinstance(item, (tuple, list)) else type(item).__name__
            raise ValueError(f"the source gives items of {self._num_outputs} outputs; got {got}")
        made = [self._output(x, *about) for x, *about in zip(items, self._layouts, self._dtypes)]
        if len({isinstance(m, Batch) for m in made}) > 1:
            raise ValueError(
                "the source returned batches and tensors in one item; all outputs must be of the same kind"
            )
        if batch_size is not None:
            made = [self._sized(m, batch_size) for m in made]
        return made[0] if self._num_outputs == 1 else tuple(made)

    def _output(self, data: Any, layout: str | None, dtype: Any) -> Any:
        is_batch = isinstance(data, (Batch, TensorListCPU)) or type(data).__name__ == "TensorListGPU"
        if is_batch:
            return make_batch(data, dtype, self._device, layout, False)
        return make_tensor(data, dtype, self._device, layout, False, False)

    @staticmethod
    def _sized(made: Any, batch_size: int) -> Any:
        if not isinstance(made, Batch):
            return Batch.broadcast(made, batch_size)
        if made.batch_size != batch_size:
            raise ValueError(f"batches of {batch_size} samples were asked for; the source gave {made.batch_size}")
        return made

    def captured(self, batch_size: int, ctx: Any = None) -> Iterator[Any]:
        """Iterates over the items until the source ends."""
        while True:
            try:
                yield self(batch_size=batch_size)
            except StopIteration:
                return
