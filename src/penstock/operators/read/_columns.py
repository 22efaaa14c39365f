# SPDX-License-Identifier: Apache-2.0
"""The data set of `readers.dataset`: an indexed object, or a tuple of them with one for each output."""

from __future__ import annotations

import copy
import mmap
from typing import Any

import numpy as np

from ...core import dtypes
from ...core.batch import Batch, Spec
from ...core.memory import Kept
from ...core.rows import MAX_DIMS, address
from ...core.sample_info import SampleInfo

# Smaller samples are copied, so that the batch is dense; reading larger ones where they are saves more.
_MOST_COPIED = 4096

_HINTS = {
    "DataFrame": "pass its columns, as in (df['a'].to_numpy(), df['b'].tolist()), or to "
    "fn.readers.parquet(path=pyarrow.Table.from_pandas(df), columns=['a', 'b'])",
    "Series": "pass series.to_numpy() or series.tolist()",
    "Table": "pass it to fn.readers.parquet(path=table, columns=[...])",
    "Dataset of Hugging Face": "pass it to fn.readers.parquet(path=dataset, columns=[...])",
    "DataLoader": "pass its data set, loader.dataset; the reader shuffles and makes batches",
}


class Columns:
    """Returns single samples when it is called, in any process, and whole batches of what is an array in memory."""

    def __init__(self, source: Any, n_outputs: int | None):
        self.is_tuple = isinstance(source, tuple)
        given: tuple[Any, ...] = source if isinstance(source, tuple) else (source,)
        for data in given:
            _check(data)
        self._data = tuple(_in_memory(data) for data in given)
        if not self._data:
            raise ValueError("'source' is an empty tuple")
        lengths = [_length(data) for data in self._data]
        self._length = lengths[0] if lengths else 0
        if len(set(lengths)) > 1:
            raise ValueError(f"the data sets of the tuple have {lengths} samples; all need the same number")
        if n_outputs is not None and (n_outputs < 1 or (self.is_tuple and n_outputs != len(self._data))):
            wanted = f"a tuple of {len(self._data)} data sets has {len(self._data)}" if self.is_tuple else "at least 1"
            raise ValueError(f"num_outputs={n_outputs} is not possible; {wanted}")
        self.returns_list = self.is_tuple or n_outputs is not None
        self.n_outputs = len(self._data) if self.is_tuple else n_outputs or 1
        self._splits = not self.is_tuple and n_outputs is not None
        self._arrays = {k: a for k, a in enumerate(self._data) if not self._splits and _is_rows(a)}
        self.by_call = [k for k in range(self.n_outputs) if k not in self._arrays]

    def __len__(self) -> int:
        return self._length

    def to_call(self) -> Columns:
        """A copy without the arrays in memory, for workers, which only call it."""
        other = copy.copy(self)
        other._data, other._arrays = tuple(None if k in self._arrays else d for k, d in enumerate(self._data)), {}
        return other

    def __getstate__(self) -> dict[str, Any]:
        """Mapped files are mapped again in other processes, not sent."""
        state = {**vars(self), "_data": tuple(_Mapped(d) if _is_mapped(d) else d for d in self._data)}
        return {**state, "_arrays": list(self._arrays)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._data = tuple(d.open() if isinstance(d, _Mapped) else d for d in self._data)
        self._arrays = {k: self._data[k] for k in state["_arrays"]}

    @property
    def described_as(self) -> str:
        """Its name in error messages."""
        kinds = [type(d).__name__ for d in self._data]
        return f"({', '.join(kinds)})" if self.is_tuple else kinds[0]

    @property
    def kinds(self) -> list[Any]:
        """What is known of the outputs without reading."""
        return [(a.dtype.str, a.shape) for a in self._arrays.values()]

    def __call__(self, info: SampleInfo) -> list[Any]:
        """A sample: the outputs that are not in memory."""
        i = info.idx_in_epoch
        if not self._splits:
            return [_as_array(self._data[k][i]) for k in self.by_call]
        sample = self._data[0][i]
        if not isinstance(sample, (tuple, list)) or len(sample) < self.n_outputs:
            got = f"a {type(sample).__name__}" + (f" of {len(sample)}" if isinstance(sample, (tuple, list)) else "")
            raise TypeError(
                f"the data set gave {got}; num_outputs={self.n_outputs} needs a tuple with an item for each"
            )
        return [_as_array(x) for x in sample[: self.n_outputs]]

    def rows(self, k: int, index: np.ndarray) -> Batch:
        """The samples (n,) of output k, in the memory of the array unless they are small."""
        array = self._arrays[k]
        spec = Spec.uniform(len(index), array.shape[1:], array.dtype)
        rows = spec.packed()
        rows["data"] = address(array) + array.strides[0] * index
        batch = Batch(spec, rows, (Kept(array),))
        return batch.packed_copy() if array[:1].nbytes <= _MOST_COPIED else batch


def _check(data: Any) -> None:
    kind = type(data)
    name = "Dataset of Hugging Face" if hasattr(data, "features") and hasattr(data, "_indices") else kind.__name__
    if name in _HINTS:
        raise TypeError(f"{name} is not indexed by the number of the sample; {_HINTS[name]}")
    if isinstance(data, (str, bytes, dict)) or not (_has_length(data) and hasattr(kind, "__getitem__")):
        is_source = callable(data) or hasattr(kind, "__iter__")
        hint = "; pass what is called or only iterated to fn.external_source" if is_source else ""
        hint = "; pass a tuple of its values" if isinstance(data, dict) else hint
        raise TypeError(f"'source' takes an object with len() and [i], or a tuple of them; got {kind.__name__}{hint}")


class _Mapped:
    """A mapped file, to be pickled."""

    def __init__(self, array: np.memmap):
        order = "C" if array.flags.c_contiguous else "F"
        self._how: Any = (array.filename, array.dtype, "r", array.offset, array.shape, order)

    def open(self) -> np.memmap:
        return np.memmap(*self._how)


def _is_mapped(data: Any) -> bool:
    """Whether it is a whole mapped file; a part of one is pickled as its elements."""
    return isinstance(data, np.memmap) and isinstance(data.base, mmap.mmap) and data.filename is not None


def _has_length(data: Any) -> bool:
    return hasattr(type(data), "__len__") or bool(getattr(data, "shape", ()))


def _length(data: Any) -> int:
    return len(data) if hasattr(type(data), "__len__") else int(data.shape[0])  # Zarr's arrays have no len()


def _in_memory(data: Any) -> Any:
    """An array of another library in host memory as one of NumPy's; anything else as it is."""
    if isinstance(data, np.ndarray) or not hasattr(data, "__dlpack_device__") or int(data.__dlpack_device__()[0]) != 1:
        return data
    try:
        return np.from_dlpack(data)
    except (BufferError, TypeError, RuntimeError):  # a type that NumPy doesn't have
        return data


def _is_rows(data: Any) -> bool:
    """Whether each sample is a contiguous part of an array in memory."""
    if not isinstance(data, np.ndarray) or not 1 <= data.ndim <= MAX_DIMS or not data.flags.aligned:
        return False
    return data.dtype in dtypes._FROM_NUMPY and data[:1].flags.c_contiguous


def _as_array(sample: Any) -> Any:
    """Text as bytes; anything else as it is."""
    if isinstance(sample, str):
        sample = sample.encode()
    return np.frombuffer(sample, np.uint8) if isinstance(sample, bytes) else sample
