# SPDX-License-Identifier: Apache-2.0
"""Base of tensors and batches: existing data, or the output of a call that is computed when needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...core.batch import Batch as Samples
from ...core.batch import Spec
from ...graph.hints import of_value
from . import _device
from ._dtype import DType, of_numpy
from ._invocation import Edge, Invocation, handle
from ._operands import Operands

if TYPE_CHECKING:
    from typing_extensions import Self


class Value(Operands):
    """Base of `Batch` and `Tensor`, which internally is a batch of one sample."""

    __slots__ = ("__weakref__", "_device_type", "_external", "_index", "_invocation", "_known", "_n")

    _is_batch: ClassVar[bool] = False
    _kinds: ClassVar[dict[bool, Any]] = {}  # {False: Tensor, True: Batch}

    _known: Samples | None  # None until computed
    _invocation: Invocation | None  # None once computed
    _index: int
    _n: int
    _device_type: str
    _external: bool  # memory that the program may write to

    @staticmethod
    def _of(inv: Invocation, index: int, n: int | None, device: str) -> Any:
        """Creates the handle of a call's output: a batch of n, or a tensor if n is None."""
        cls = Value._kinds[n is not None]
        self = object.__new__(cls)
        self._known, self._invocation, self._index = None, inv, index
        self._n, self._device_type, self._external = 1 if n is None else n, device, False
        return handle(inv, self)

    @classmethod
    def _made_of(cls, samples: Samples, external: bool = False) -> Any:
        """Creates a value with these samples."""
        self = object.__new__(cls)
        self._take(samples, external)
        return self

    if not TYPE_CHECKING:  # type checkers know what there is

        def __getattr__(self, name: str) -> Any:  # for missing attributes
            if hasattr(type(self), name):  # shows the AttributeError raised by a property
                return object.__getattribute__(self, name)
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'{of_value(name)}")

    def _take(self, samples: Samples, external: bool) -> None:
        self._known, self._invocation, self._index = samples, None, 0
        self._n, self._device_type = len(samples), "cpu" if samples.on_host else "gpu"
        self._external = external

    def _samples(self) -> Samples:
        """The data; computes it if necessary."""
        known = self._known
        if known is None:
            inv = self._invocation
            if inv is not None:
                self._known = known = inv.result(self._index)
                self._invocation = None
            else:  # another thread was faster
                known = self._known
                assert known is not None
        return known

    def _edge(self) -> Samples | Edge:
        """The data, or the call that computes it."""
        inv = self._invocation
        if self._known is not None or inv is None:
            assert self._known is not None
            return self._known
        if inv.done and inv.error is None:  # errors are raised when results are read
            return self._samples()
        return inv, self._index

    def _device_id(self) -> int | None:
        if self._device_type == "cpu":
            return None
        known, inv = self._known, self._invocation
        return known.device.id if known is not None else inv.device_id if inv is not None else None  # type: ignore[attr-defined]

    @property
    def device(self) -> _device.Device:
        """The device of the data, which may not have been computed yet."""
        number = self._device_id()
        return _device.Device.CPU if number is None else _device.Device("gpu", number)

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return of_numpy(self._samples().spec.dtype)

    @property
    def layout(self) -> str | None:
        """The meaning of the axes of a sample, such as "HWC"; None if not known."""
        return self._samples().spec.layout or None

    @property
    def ndim(self) -> int:
        """The number of dimensions of a sample."""
        return self._samples().spec.ndim

    def evaluate(self) -> Self:
        """Computes the data, if it is not computed yet. Returns the same object."""
        self._samples()
        return self

    def cpu(self) -> Self:
        """Returns the data on the CPU."""
        return self.to_device(_device.Device.CPU)

    def gpu(self, index: int | None = None) -> Self:
        """Returns the data on a GPU: the one with the given `index`, by default its own or the current one."""
        if index is None and self._device_type == "gpu":
            return self
        return self.to_device(_device.Device("gpu", index))

    def to_device(self, device: Any, force_copy: bool = False) -> Self:
        """Returns the data on the device: this object if it is already there, unless `force_copy` requests a copy."""
        device = _device.device(device)
        if device is None:
            raise TypeError("to_device takes a device; got None")
        if device == self.device:
            return self._made_of(self._samples().packed_copy()) if force_copy else self
        return moved(self, device)

    def _host(self) -> Samples:
        """The data in host memory."""
        samples = self._samples()
        return samples if samples.on_host else samples.download()  # type: ignore[attr-defined]

    # Makes NumPy defer to the operators defined here.
    __array_ufunc__: Any = None


def moved(value: Value, device: _device.Device) -> Any:
    """Copies a value to another device."""
    from ._invoke import invoke

    n = value._n if value._is_batch else None
    on_gpu = value._device_type == "gpu"
    if device.device_type == "cpu":
        return invoke("to cpu", lambda nodes: nodes[0].cpu(), [value], n, "cpu()", value._device_id())
    if on_gpu:  # from GPU to GPU through the host
        value = moved(value, _device.Device.CPU)
    return invoke("to gpu", lambda nodes: nodes[0].gpu(), [value], n, "gpu()", device.device_id)


def relabelled(samples: Samples, layout: str) -> Samples:
    """The same samples with another layout."""
    spec = samples.spec
    return samples.relabel(Spec(spec.shape, spec.dtype, layout))


def text_of(kind: str, values: str, value: Value, rest: str) -> str:
    """The text of `repr`."""
    lines = ["    " + line if line else line for line in values.split("\n")]
    lines[-1] += ","
    lines.append(f"    dtype={value.dtype},")
    lines += [f'    layout="{value.layout}",'] * (value.layout is not None)
    lines.append(f'    device="{value.device}",')
    return "\n".join([f"{kind}(", *lines, f"    {rest})"])


def printed(array: np.ndarray) -> str:
    return np.array2string(array, threshold=16 if array.ndim < 2 else 100, edgeitems=2)
