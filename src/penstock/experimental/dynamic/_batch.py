# SPDX-License-Identifier: Apache-2.0
"""`Batch`: samples that are processed together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex, overload

import numpy as np

from ...tensors.arrays import dlpack
from . import _making
from ._invocation import repeated
from ._subscript import BatchedSlice
from ._tensor import Tensor
from ._value import Value, printed, text_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


class _Tensors:
    """The samples of a batch as a list of tensors."""

    def __init__(self, batch: Batch):
        self._batch = batch

    def __len__(self) -> int:
        return self._batch.batch_size

    @overload
    def __getitem__(self, i: SupportsIndex) -> Tensor: ...
    @overload
    def __getitem__(self, i: slice) -> list[Tensor]: ...
    def __getitem__(self, i: SupportsIndex | slice) -> Tensor | list[Tensor]:
        if isinstance(i, slice):
            return [self[k] for k in range(*i.indices(len(self)))]
        return self._batch.select(i)

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return repr(list(self))


class Batch(Value):
    """Samples that are processed together. Their shapes may differ; their type, layout and number of dimensions must
    not.

    Operators return batches; `as_batch` and `batch` create them from the program's data. Arithmetic is done sample by
    sample; `b.slice[...]` indexes each sample, `b.select(...)` and `b.tensors` select samples.

    Parameters
    ----------
    tensors, dtype, device, layout
        As in `as_batch`.
    copy
        Whether to copy the data.

    >>> import numpy as np
    >>> from penstock.experimental import dynamic as ndd
    >>> b = ndd.as_batch([np.float32([1, 2, 3]), np.float32([4, 5])])
    >>> (b * 2).slice[1]
    Batch(
        [4., 10.],
        dtype=f32,
        device="cpu",
        num_samples=2,
        shape=[(), ()])
    >>> np.asarray(ndd.as_tensor(b, pad=True)).tolist()  # or b.torch(pad=True)
    [[1.0, 2.0, 3.0], [4.0, 5.0, 0.0]]
    """

    __slots__ = ()
    _is_batch = True

    def __init__(
        self,
        tensors: Any = None,
        dtype: Any = None,
        device: Any = None,
        layout: str | None = None,
        invocation_result: Any = None,
        copy: bool = False,
    ):
        made = _making.make_batch(tensors, dtype, device, layout, copy)
        self._take(made._samples(), made._external)

    @staticmethod
    def broadcast(sample: Any, batch_size: int, device: Any = None, dtype: Any = None) -> Batch:
        """Returns a batch of the same sample `batch_size` times, without copying large ones.

        >>> from penstock.experimental import dynamic as ndd
        >>> ndd.Batch.broadcast([1, 2], 3).shape
        [(2,), (2,), (2,)]
        """
        if isinstance(sample, Batch):
            raise ValueError("a batch can't be repeated; give one sample")
        if batch_size < 0:
            raise ValueError(f"batch_size can't be negative; got {batch_size}")
        one = _making.make_tensor(sample, dtype, device, None, False, False)
        return Batch._made_of(repeated(one._samples(), batch_size), one._external)

    @property
    def batch_size(self) -> int:
        """The number of samples."""
        return self._n

    @property
    def shape(self) -> list[tuple[int, ...]]:
        """The extents of each sample."""
        return [tuple(s) for s in self._samples().spec.shape.tolist()]

    @property
    def tensors(self) -> _Tensors:
        """The samples, as a list of tensors that share the memory."""
        return _Tensors(self)

    @property
    def slice(self) -> BatchedSlice:
        """`batch.slice[...]` indexes each sample, as `tensor[...]` does; indices may be batches with one index each."""
        return BatchedSlice(self)

    @overload
    def select(self, sample_range: SupportsIndex) -> Tensor: ...  # type: ignore[overload-overlap]
    @overload
    def select(self, sample_range: slice_type | Sequence[SupportsIndex] | NDArray[Any]) -> Batch: ...
    def select(self, sample_range: Any) -> Tensor | Batch:
        """Returns the sample with a given index, as a tensor; or those of a slice or list of indices, as a batch.

        >>> from penstock.experimental import dynamic as ndd
        >>> ndd.as_batch([5, 6, 7]).select([2, 0])
        Batch(
            [7, 5],
            dtype=i32,
            device="cpu",
            num_samples=2,
            shape=[(), ()])
        """
        n = self._n
        if hasattr(sample_range, "__index__") and not isinstance(sample_range, bool):
            one: Tensor = Tensor._made_of(self._samples().take(np.array([self._place(sample_range)])), self._external)
            return one
        if isinstance(sample_range, slice_type):
            places = list(range(*sample_range.indices(n)))
        elif isinstance(sample_range, (list, tuple, np.ndarray)):
            places = [self._place(i) for i in sample_range]
        else:
            raise TypeError(
                f"samples are selected by a number, a slice or a list of numbers; got {type(sample_range).__name__}"
            )
        several: Batch = Batch._made_of(self._samples().take(np.array(places, "i8")), self._external)
        return several

    def _place(self, i: Any) -> int:
        if not hasattr(i, "__index__"):
            raise TypeError(f"the number of a sample is an integer; got {type(i).__name__}")
        i = i.__index__()
        if not -self._n <= i < self._n:
            raise IndexError(f"a batch of {self._n} samples has no sample {i}")
        return i % self._n

    def __getitem__(self, index: Any) -> NoReturn:
        raise TypeError(
            "a batch has no index of its own: batch.tensors[i] is one sample, batch.slice[...] a part of each; the "
            "number of samples is batch.batch_size"
        )

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.tensors)

    def _whole(self, what: str) -> np.ndarray:
        samples = self._samples()
        if not samples.spec.is_dense:
            raise ValueError(
                f"{what}: the samples differ in shape: {samples.spec.shape.tolist()[:4]}...; make them alike (resize, "
                "crop), use as_tensor(batch, pad=True), or go through batch.tensors"
            )
        if not samples.on_host:
            raise TypeError(f"{what}: the batch is on the GPU; copy it with .cpu()")
        return samples.array()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self._whole("NumPy")
        if dtype is not None and np.dtype(dtype) != array.dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, stream: Any = None, **kwargs: Any) -> Any:
        if self._device_type == "gpu":
            return _making.as_tensor(self).__dlpack__(stream=stream)
        return dlpack(self._whole("DLPack"), kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0) if self._device_type == "cpu" else (2, self._device_id() or 0)

    def torch(self, copy: bool | None = None, pad: bool = False) -> Any:
        """Returns the batch as one PyTorch tensor whose first axis is the batch. Requires PyTorch.

        Parameters
        ----------
        copy
            True: always copy; False: ValueError if a copy is needed; None: copy only if needed.
        pad
            Whether to pad samples that differ in shape with zeros. Otherwise it is an error.
        """
        samples = self._samples()
        needed = not (samples.spec.is_dense and samples.is_packed)
        if copy is False and needed:
            raise ValueError("the samples are not contiguous; a copy is needed")
        return _making.as_tensor(self, pad=pad).torch(copy=bool(copy) and not needed)

    def __reduce__(self) -> Any:
        host = self._host()
        return _making.batch, ([np.array(host.sample(i)) for i in range(self._n)], str(self.dtype), None, self.layout)

    def __repr__(self) -> str:
        host, between = self._host(), ", " if self.ndim == 0 else ",\n" + "\n" * (self.ndim - 1)
        shown = between.join(printed(host.sample(i)) for i in range(min(self._n, 8)))
        more = f"{between}... and {self._n - 8} more" if self._n > 8 else ""
        return text_of("Batch", f"[{shown}{more}]", self, f"num_samples={self._n},\n    shape={self.shape}")

    def _repr_html_(self) -> str | None:
        from ...tensors.thumbnails import grid

        host = self._host()
        title = f"Batch of {self._n} {self.layout or ''} {self.dtype}"
        return grid(title, [host.sample(i) for i in range(self._n)], self.layout or "", host.sources or [])


slice_type = slice
Value._kinds[True] = Batch
