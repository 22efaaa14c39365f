# SPDX-License-Identifier: Apache-2.0
"""What operators exchange: `Spec` (shapes, type and layout of a batch) and `Batch` (its samples in memory)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from . import dtypes, kernels, source_name
from .array_rows import rows_of
from .memory import Borrowed, Buffer, Kept, view
from .rows import TENSOR, address, allocate, check_dims, copied, reserve
from .traced import Traced

_INT64 = np.dtype("i8")
_WORTH_THREADS = 1 << 18  # bytes above which a copy takes longer than waking threads
_WORTH_STREAMING = 4 << 20  # bytes above which a copy bypasses the caches, as it is evicted before it is read

if TYPE_CHECKING:
    from typing_extensions import Self


@lru_cache(64)
def _zeros(shape: tuple[int, int]) -> np.ndarray:
    zeros = np.zeros(shape, _INT64)
    zeros.setflags(write=False)
    return zeros


@lru_cache(64)
def _alike(n: int, shape: tuple[int, ...]) -> np.ndarray:
    """Shapes of n equal samples, shared by many batches."""
    shapes = np.full((n, len(shape)), shape, _INT64)
    shapes.setflags(write=False)
    return shapes


def _extents(x: Any) -> Any:
    """Returns x as an int64 array; not copied if it is one."""
    if isinstance(x, (np.ndarray, Traced)):
        return x if x.dtype is _INT64 else x.astype(_INT64)
    return np.array(x, _INT64)


@lru_cache(64)
def _extent(n: int, value: int) -> np.ndarray:
    """An extent column (n,) with equal values."""
    column = np.full(n, value, _INT64)
    column.setflags(write=False)
    return column


class Spec:
    """Shapes (n, ndim), element type and layout of the n samples of a batch.

    A batch may hold only a window of each sample if nothing else is needed: then `origin` (n, ndim) is
    its start and `stored` (n, ndim) its size; otherwise `origin` is zero and `stored` is `shape`.
    """

    __slots__ = ("_dense", "_origin", "dtype", "layout", "shape", "stored")

    def __init__(self, shape, dtype, layout: str = "", origin=None, stored=None):
        self.shape = _extents(shape)
        self.dtype = dtypes.to_numpy(dtype)
        self.layout = layout
        self._origin = origin
        self.stored = self.shape if stored is None else stored
        self._dense: bool | None = None

    @classmethod
    def uniform(cls, n: int, shape: Sequence[int], dtype, layout: str = "") -> Spec:
        """n samples of one shape."""
        # Bypasses `__init__`, as this is on the path of many calls that take only a few microseconds.
        spec = cls.__new__(cls)
        spec.shape = spec.stored = _alike(n, shape if type(shape) is tuple else tuple(shape))
        spec.dtype = dtypes.to_numpy(dtype)
        spec.layout, spec._origin, spec._dense = layout, None, True
        return spec

    def like(self, shape=None, dtype=None, layout: str | None = None) -> Spec:
        """A copy with the given fields replaced; always of whole samples. A `dtype` of None keeps the type."""
        return Spec(
            self.shape if shape is None else shape,
            self.dtype if dtype is None else dtype,
            self.layout if layout is None else layout,
        )

    def copy(self) -> Spec:
        """A copy without a window, with its own shape array."""
        spec = Spec.__new__(Spec)  # as in `uniform`
        spec.shape = spec.stored = copied(self.shape)
        spec.dtype, spec.layout, spec._origin, spec._dense = self.dtype, self.layout, None, None
        return spec

    def windowed(self, origin: np.ndarray, stored: np.ndarray) -> Spec:
        """The same samples, with only a window of each stored."""
        return Spec(self.shape, self.dtype, self.layout, _extents(origin), _extents(stored))

    @property
    def origin(self) -> np.ndarray:
        if self._origin is None:
            self._origin = _zeros(self.shape.shape)
        return self._origin

    @property
    def n(self) -> int:
        return self.shape.shape[0]

    @property
    def ndim(self) -> int:
        return self.shape.shape[1]

    def axis(self, name: str) -> int:
        """The index of an axis of the layout; -1 if the layout does not have it."""
        return self.layout.find(name)

    def extent(self, name: str, default: int = 1) -> np.ndarray:
        """Sizes along the axis `name`, shape (n,); `default` if there is no such axis."""
        return self.shape[:, i] if (i := self.layout.find(name)) >= 0 else _extent(self.n, default)

    @property
    def is_dense(self) -> bool:
        """Whether all samples have the same shape."""
        if self._dense is None:
            self._dense = self.n < 2 or bool((self.stored == self.stored[0]).all())
        return self._dense

    def volumes(self) -> np.ndarray:
        """Number of stored elements per sample, shape (n,)."""
        return self.stored.prod(axis=1)

    def packed(self, data_of: int = 0) -> np.ndarray:
        """Rows for native code, with the data addresses of the rows at `data_of`, if given, else with zeros."""
        stored = np.ascontiguousarray(self.stored)
        check_dims(self.ndim)
        rows, at = reserve(self.n, TENSOR)
        kernels.library().describe_rows(address(stored), *stored.shape, dtypes.from_numpy(self.dtype), data_of, at)
        return rows

    def __repr__(self) -> str:
        return f"Spec({self.dtype.name}, {self.layout!r}, {self.shape.tolist()})"


class Batch:
    """Samples in memory. `rows` describe them to kernels, `owners` keep the memory alive, `sources` say where each came
    from."""

    __slots__ = ("_array", "_data_of", "_packed", "_rows", "_rows_address", "owners", "sources", "spec")

    on_host: ClassVar[bool] = True  # whether the CPU can read the samples
    guard_bytes: ClassVar[int] = 0  # set by tests: number of _GUARD bytes behind every allocated sample
    _GUARD: ClassVar[int] = 0xA5

    def __init__(
        self, spec: Spec, rows: np.ndarray | None, owners: tuple, sources: Sequence[str] | None = None, array=None
    ):
        self.spec, self._rows, self.owners, self.sources, self._array = spec, rows, owners, sources, array
        self._packed: bool | None = None  # None: not known yet
        self._rows_address = 0  # 0: not known yet
        self._data_of: np.ndarray | None = None  # rows with the same addresses, of which `rows` are made

    @classmethod
    def allocate(cls, spec: Spec, sources: Sequence[str] | None = None, memory: Any = Buffer) -> Self:
        """Allocates all samples in one pooled block: packed if they have one shape, otherwise each 64-byte aligned.

        `memory(nbytes)` returns the block, an object with an `address`."""
        rows, at = allocate(spec.n, TENSOR)
        nbytes, spec._dense = kernels.lay_out_batch(spec.stored, dtypes.from_numpy(spec.dtype), cls.guard_bytes, at)
        return cls.in_block(spec, rows, at, nbytes, sources, memory)

    @classmethod
    def in_block(
        cls, spec: Spec, rows: np.ndarray, at: int, nbytes: int, sources: Sequence[str] | None, memory: Any
    ) -> Self:
        """Samples in a new block of `memory(nbytes)`, where `rows`, at address `at`, are laid out from 0 on."""
        try:
            buffer = memory(nbytes)
        except MemoryError as e:
            raise MemoryError(f"{e} for {spec.n} samples of the shapes {spec.stored.tolist()[:4]}...") from None
        kernels.library().move_batch(at, spec.n, buffer.address)
        if cls.guard_bytes:
            view(buffer.address, (nbytes,), np.dtype("u1"), buffer)[...] = cls._GUARD
        batch = cls(spec, rows, (buffer,), sources)
        batch._rows_address = at
        batch._packed = spec._dense and not cls.guard_bytes
        return batch

    @classmethod
    def from_array(cls, array: np.ndarray, layout: str = "", sources: Sequence[str] | None = None) -> Batch:
        """Samples of one shape, from an array (n, ...); not copied if it is contiguous."""
        if not array.flags.c_contiguous or not array.ndim:
            array = np.ascontiguousarray(array)
        shape = array.shape
        return cls(Spec.uniform(shape[0], shape[1:], array.dtype, layout), None, (array,), sources, array)

    @classmethod
    def from_samples(
        cls, samples: Sequence[np.ndarray], layout: str = "", sources: Sequence[str] | None = None
    ) -> Batch:
        """One array per sample, all of one type and number of dimensions; not copied if contiguous."""
        if (found := rows_of(samples)) is not None:
            batch = cls(Spec(found[2], samples[0].dtype, layout), found[0], (tuple(samples),), sources)
            batch._rows_address = found[1]
            return batch
        arrays = [np.asarray(s, order="C") for s in samples]
        ndims, types = {a.ndim for a in arrays}, {a.dtype for a in arrays}
        if len(ndims) > 1 or len(types) > 1:
            raise ValueError(
                "all samples of a batch need the same number of dimensions and the same type; got "
                f"{sorted(ndims)} dimensions and types {sorted(t.name for t in types)}"
            )
        ndim = arrays[0].ndim if arrays else len(layout)
        shape = np.array([a.shape for a in arrays], "i8").reshape(len(arrays), ndim)
        spec = Spec(shape, arrays[0].dtype if arrays else np.dtype("f4"), layout)
        rows = spec.packed()
        rows["data"] = [address(a) for a in arrays]
        return cls(spec, rows, (arrays,), sources)

    def __len__(self) -> int:
        return self.spec.n

    def guards_intact(self) -> bool:
        """Whether nothing wrote beyond the end of a sample; for batches allocated while `guard_bytes` was set."""
        ends = self.rows["data"] + (self.spec.volumes() * self.spec.dtype.itemsize).astype("u8")
        ends = ends[self.rows["data"] != 0]  # sequences without frames have no memory
        guards = [view(e, (self.guard_bytes,), np.dtype("u1"), self) for e in ends]
        return all((g == self._GUARD).all() for g in guards)

    @property
    def rows(self) -> np.ndarray:
        if self._rows is None and self._data_of is not None:
            data_of = np.ascontiguousarray(self._data_of)
            self._rows = self.spec.packed(address(data_of))
        elif self._rows is None:
            array = self._array
            self._rows = self.spec.packed()
            step = array.strides[0] if len(array) > 1 and array.size else 0  # one sample may have a negative stride
            self._rows["data"] = address(array) + step * np.arange(len(array), dtype="u8")
        return self._rows

    @property
    def rows_address(self) -> int:
        """The address of `rows`."""
        if not self._rows_address:
            rows = self.rows
            self._rows = np.ascontiguousarray(rows)
            self._rows_address = address(self._rows)
        return self._rows_address

    @rows_address.setter
    def rows_address(self, address: int) -> None:
        """Set by callers that made the rows and know their address."""
        self._rows_address = address

    def sample(self, i: int) -> np.ndarray:
        """Sample i as an array that shares the memory."""
        if self._array is not None:
            return self._array[i, ...]
        shape = tuple(map(int, self.spec.stored[i]))
        return view(self.rows["data"][i], shape, self.spec.dtype, self, self.is_read_only)

    @property
    def is_packed(self) -> bool:
        """Whether the samples have one shape and are contiguous."""
        if self._array is not None:
            return True
        if self._packed is None:
            data, step = self.rows["data"], 0
            if self.spec.is_dense and len(data):
                step = int(self.spec.volumes()[0]) * self.spec.dtype.itemsize
            places = data[:1] + step * np.arange(len(data), dtype="u8")
            self._packed = self.spec.is_dense and bool((data == places).all())
        return self._packed

    def array(self) -> np.ndarray:
        """All samples as one array (n, ...): a view if they are packed, a copy if they only have one shape, else
        ValueError."""
        if self._array is None:
            if not self.spec.is_dense:
                raise ValueError(
                    f"the samples differ in shape: {self.spec.stored.tolist()[:4]}...; make them alike "
                    "(resize, crop, pad) first"
                )
            n = len(self)
            shape = (n, *map(int, self.spec.stored[0])) if n else (0,) * (1 + self.spec.ndim)
            if self.is_packed and n:
                self._array = view(self.rows["data"][0], shape, self.spec.dtype, self.owners, self.is_read_only)
            else:
                self._array = np.stack([self.sample(i) for i in range(n)]) if n else np.empty(shape, self.spec.dtype)
                self._rows, self._rows_address, self._data_of, self.owners = None, 0, None, (self._array,)
        return self._array

    def with_rows(
        self, spec: Spec, rows: np.ndarray | None, owners: tuple, sources: Sequence[str] | None = None
    ) -> Self:
        """Other samples in memory of the same kind."""
        return type(self)(spec, rows, owners, sources)

    def blank(self, n: int, shape: tuple[int, ...]) -> Batch:
        """Placeholder samples of the same type and kind of memory, whose values are not used."""
        return Batch.from_array(np.zeros((n, *shape), self.spec.dtype))

    def shorten(self) -> None:
        """Sets the spec to the shapes that a kernel has written to `rows`. Call before `rows` is read by anything
        else."""
        spec = self.spec
        self.spec = Spec(self.rows["shape"][:, : spec.ndim].copy(), spec.dtype, spec.layout)
        self._packed = None

    def relabel(self, spec: Spec) -> Self:
        """The same memory with another shape or layout."""
        other = self.with_rows(spec, None, self.owners, self.sources)
        other._data_of = self.rows
        return other

    def take(self, indices: np.ndarray) -> Self:
        """The samples at `indices`, without a copy."""
        s = self.spec
        spec = Spec(s.shape[indices], s.dtype, s.layout)
        if s.stored is not s.shape:
            spec = Spec(spec.shape, s.dtype, s.layout, s.origin[indices], s.stored[indices])
        spec._dense = s._dense or None
        sources = None if self.sources is None else source_name.take(self.sources, indices)
        return self.with_rows(spec, self.rows[indices], self.owners, sources)

    def part(self, begin: int, end: int) -> Self:
        """The samples from `begin` to `end`, without a copy."""
        part = self.take(np.arange(begin, end))
        if self.is_packed:
            part._packed = part.spec._dense = True
        return part

    @property
    def is_borrowed(self) -> bool:
        for owner in self.owners:  # faster than any()
            if isinstance(owner, Borrowed):
                return True
        return False

    @property
    def is_read_only(self) -> bool:
        """Whether receivers may not write to the samples."""
        for owner in self.owners:
            if type(owner) is Kept:
                return True
        return False

    def protect(self) -> None:
        """Makes the samples read-only for receivers."""
        self.owners = (Kept(self.owners),)
        if self._array is not None:
            self._array = self._array.view()
            self._array.setflags(write=False)

    @property
    def changes(self) -> bool:
        """Whether the memory belongs to an owner that may still write to it."""
        for owner in self.owners:
            if isinstance(owner, Borrowed) and not isinstance(owner, Kept):
                return True
        return False

    def packed_copy(self, pool: kernels.Pool | None = None, memory: Any = Buffer) -> Batch:
        """Copies the samples into a new block of `memory(nbytes)`, using the threads of `pool` if given."""
        out = Batch.allocate(self.spec, self.sources, memory)
        to, source, n, nbytes = out.rows_address, self.rows_address, len(self), out.owners[0].nbytes
        if nbytes < _WORTH_THREADS:
            kernels.library().copy_rows(to, source, n)
            return out
        handle = None if pool is None else pool.handle()
        if not kernels.library().copy_rows_by_threads(handle, to, source, n, nbytes >= _WORTH_STREAMING):
            raise MemoryError(f"no memory is left to copy {n} samples")
        return out

    def used_on(self, stream: Any) -> None:
        """Records that a GPU stream uses the memory, and makes it wait until the samples are valid."""

    def wait(self) -> None:
        """Blocks the calling thread until the samples are valid, if a GPU computes them."""

    def put(self, indices: np.ndarray, other: Batch) -> Batch:
        """Returns this batch with the samples at `indices` replaced by those of `other`: in place if the shapes are
        equal and the memory is from the pool, not the user's."""
        pooled = self._array is None and all(isinstance(o, Buffer) for o in self.owners)
        if pooled and (self.spec.stored[indices] == other.spec.stored).all():
            for j, i in enumerate(indices):
                self.sample(i)[...] = other.sample(j)
            merged = self
        else:
            shape, rows = self.spec.shape.copy(), self.rows.copy()
            shape[indices], rows[indices] = other.spec.shape, other.rows
            merged = Batch(
                Spec(shape, self.spec.dtype, self.spec.layout), rows, (*self.owners, *other.owners), self.sources
            )
        if self.sources is not None and other.sources is not None:
            merged.sources = source_name.put(self.sources, indices, other.sources)
        return merged
