# SPDX-License-Identifier: Apache-2.0
"""Calls on tensors and batches: number of samples, and results."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from ...core.errors import ArgumentValueError, user_sites
from ...graph.node import DataNode
from . import _device
from ._calls import call_of
from ._context import EvalContext
from ._dtype import DType
from ._invocation import Invocation
from ._value import Value

_PLAIN = frozenset((int, float, str, bool, bytes, type(None)))


class Slot:
    """Placeholder for data in arguments."""

    __slots__ = ("number",)

    def __init__(self, number: int):
        self.number = number


def take_out(value: Any, data: list[Value]) -> tuple[Any, Hashable]:
    """Replaces the tensors and batches in a value by slots and appends them to `data`. Returns the value and its
    key."""
    t = type(value)
    if t in _PLAIN:
        return value, (t, value)
    if isinstance(value, Value):
        data.append(value)
        return Slot(len(data) - 1), Slot
    if isinstance(value, (list, tuple)):
        parts = [take_out(v, data) for v in value]
        return t(p[0] for p in parts) if t in (list, tuple) else [p[0] for p in parts], (t, *(p[1] for p in parts))
    if t is slice:
        parts = [take_out(v, data) for v in (value.start, value.stop, value.step)]
        return slice(*(p[0] for p in parts)), (t, *(p[1] for p in parts))
    if t is DType:
        return value.type_id, (t, value.type_id)
    if isinstance(value, np.ndarray):
        return value.copy(), (t, value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, dict):
        return value, (t, id(value))
    try:
        hash(value)
    except TypeError:
        return value, (t, id(value))
    return value, (t, value)


def put_in(value: Any, nodes: Sequence[DataNode]) -> Any:
    """Replaces slots in a value by nodes."""
    t = type(value)
    if t is Slot:
        return nodes[value.number]
    if t is list or t is tuple:
        return t(put_in(v, nodes) for v in value)
    if t is slice:
        return slice(put_in(value.start, nodes), put_in(value.stop, nodes), put_in(value.step, nodes))
    return value


def size_of(data: Sequence[Value], batch_size: int | None, name: str) -> int | None:
    """The common number of samples of the batches in `data` and `batch_size`; None if all are tensors."""
    n = batch_size
    if n is not None:
        if isinstance(n, bool) or not hasattr(n, "__index__"):
            raise TypeError(f"{name}: batch_size is an integer; got {n!r}")
        if n < 0:
            raise ValueError(f"{name}: batch_size can't be negative; got {n}")
        n = n.__index__()
    for x in data:
        if x._is_batch and x._n != n:
            if n is not None:
                raise ArgumentValueError(f"{name}: batches of {n} and of {x._n} samples can't be used together")
            n = x._n
    return n


def invoke(
    key: Hashable,
    build: Callable[[list[DataNode]], Any],
    data: Sequence[Value],
    n: int | None,
    name: str,
    device_id: int | None = None,
    seed: Callable[[], int] | None = None,
    noticed: Callable[[Any], None] | None = None,
) -> Any:
    """Calls the operators that `build` creates from nodes, for `data`. `n`: number of samples; None: one, as all data
    are tensors. `noticed` is called with the first part of a new key."""
    devices = [x._device_type for x in data]
    call = call_of((key, *devices), build, devices, noticed)
    edges = [x._edge() for x in data]
    if call.uses_gpu and device_id is None:
        device_id = next((x._device_id() for x in data if x._device_type == "gpu"), None)
        if device_id is None:
            device_id = _device.Device.default_device_id("gpu")
    for x in data:
        if x._device_type == "gpu" and x._device_id() != device_id:
            raise ValueError(
                f"{name}: data on GPU {x._device_id()} can't be used on GPU {device_id}; copy it with "
                f".to_device('gpu:{device_id}')"
            )
    number = seed() if seed is not None and call.draws else 0
    context = EvalContext.current()
    inv = Invocation(call, edges, 1 if n is None else n, number, user_sites(2), context, device_id)
    made = [Value._of(inv, i, n, d) for i, d in enumerate(call.devices)]
    context.add(inv, call.now or any(x._external for x in data))
    return made[0] if len(made) == 1 else tuple(made)
