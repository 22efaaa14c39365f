# SPDX-License-Identifier: Apache-2.0
"""The functions of the imperative mode, one for each operator."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.op import REGISTRY, Arg, Operator
from ...graph import trace
from . import _device
from ._dtype import DType, dtype, type_id
from ._invoke import invoke, put_in, size_of, take_out
from ._making import as_tensor, make_tensor, one_sample
from ._tensor import Tensor
from ._value import Value

_CONSTANTS = (int, float, str, bool, bytes, type(None))


def _argument(arg: Arg, value: Any) -> Any:
    """Converts an argument to a form accepted by operators. Values with more dimensions than a vector become
    tensors."""
    if isinstance(value, DType):
        return type_id(value)
    if arg.type.__name__ == "DALIDataType" and not isinstance(value, arg.type):
        return type_id(dtype(value)) if not isinstance(value, (list, tuple)) else [type_id(dtype(v)) for v in value]
    if arg.tensor and not isinstance(value, (list, tuple)) and not hasattr(value, "value"):
        if isinstance(value, np.generic):
            return value.item()
        if hasattr(value, "__array__") or hasattr(value, "__dlpack__"):
            return as_tensor(value)
    if arg.tensor and isinstance(value, (list, tuple)) and any(isinstance(v, (list, tuple)) for v in value):
        return as_tensor(value)
    return value


# Operators whose constants vary between calls; for the others, the number of different calls so far.
_varying: set[type[Operator]] = set()
_seen: dict[type[Operator], int] = {}
_MANY = 16


def _is_new(cls: type[Operator]) -> None:
    """Counts a new call of an operator. After many, constants that may differ between samples are passed as data, so
    that the calls share one plan."""
    _seen[cls] = _seen.get(cls, 0) + 1
    if _seen[cls] >= _MANY:
        _varying.add(cls)


def _as_data(arg: Arg, value: Any) -> Any:
    """Converts a number or a list of numbers to data. Returns other values unchanged."""
    if not arg.tensor or arg.type not in (float, int, bool) or isinstance(value, (str, Value)):
        return value
    try:
        given = arg.convert(value)
        array = np.asarray(given, arg.column_type)
    except (TypeError, ValueError, OverflowError):
        return value  # reported later, where arguments are checked
    if given is None or array.dtype.kind in "iu" and array.tolist() != given:
        return value
    return Tensor._made_of(one_sample(array))


def call(cls: type[Operator], name: str, inputs: tuple, kwargs: dict[str, Any]) -> Any:
    """Calls an operator."""
    batch_size, device, rng = kwargs.pop("batch_size", None), kwargs.pop("device", None), None
    if "seed" in cls.schema:
        if "seed" in kwargs:
            raise TypeError(f"{name}() takes no seed here; give rng=random.RNG(seed), or call random.set_seed")
        from ._rng import drawn

        rng = drawn(kwargs.pop("rng", None), name)
    data: list[Value] = []
    for i, x in enumerate(inputs):
        if not isinstance(x, Value):
            if x is None:
                if any(y is not None for y in inputs[i:]):
                    raise TypeError(f"{name}(): input {i} is None and a later one is not")
                break
            try:
                x = make_tensor(x, None, None, None, False, False)
            except TypeError as e:
                raise TypeError(f"{name}(): input {i}: {e}") from None
        data.append(x)
    n_inputs = len(data)
    lo, hi = cls.inputs
    if not lo <= n_inputs <= hi:
        takes = str(lo) if lo == hi else f"{lo} to {hi}"
        raise TypeError(f"{name}() takes {takes} input{'s' * (hi != 1)}, {n_inputs} given")
    template: dict[str, Any] = {}
    keys: list[Any] = []
    for k, value in kwargs.items():
        if value is None:
            continue
        if k == "name" or k not in cls.schema:
            _unexpected(cls, name, k)
        if type(value) not in _CONSTANTS and not isinstance(value, Value):
            value = _argument(cls.schema[k], value)
        elif isinstance(value, str) and getattr(cls.schema[k].type, "__name__", "") == "DALIDataType":
            value = type_id(dtype(value))
        if cls in _varying:
            value = _as_data(cls.schema[k], value)
        template[k], key = take_out(value, data)
        keys += k, key
    place = device_id = None
    if device is not None:
        on = _device.device(device)
        place, device_id = on.device_type, on.device_id
        if place == "gpu" and "mixed" in cls.devices:
            place = "mixed"
    elif "mixed" in cls.devices and any(x._device_type == "gpu" for x in data[:n_inputs]):
        raise ValueError(f"{name}(): encoded data is read by the CPU; copy it with .cpu() and give device='gpu'")
    n = size_of(data, batch_size, name)
    data = [_for_argument(x) if i >= n_inputs and x._device_type == "gpu" else x for i, x in enumerate(data)]

    def build(nodes: list) -> Any:
        given = {k: put_in(v, nodes) for k, v in template.items()}
        return trace.call(cls, tuple(nodes[:n_inputs]), given if place is None else {**given, "device": place})

    return invoke((cls, name, n_inputs, place, *keys), build, data, n, name, device_id, rng, _is_new)


def _for_argument(x: Value) -> Value:
    """Copies an argument to the CPU, where arguments are read."""
    return x.cpu()


def _unexpected(cls: type[Operator], name: str, given: str) -> None:
    from ...core.errors import suggest
    from ...registry import other_libraries

    valid = [*(k for k in cls.schema if k not in ("seed", "name", "preserve")), "batch_size", "device"]
    known = other_libraries.of_argument(cls.fn_name, given)
    raise TypeError(f"{name}() got an unexpected argument '{given}'.{' ' + known if known else suggest(given, valid)}")


def cast(value: Any, dtype: Any) -> Any:
    """`value` with elements of another type."""
    return call(REGISTRY["cast"], "cast", (value,), {"dtype": dtype})


def call_by_name(name: str, *inputs: Any, **kwargs: Any) -> Any:
    return call(REGISTRY[name], name, inputs, kwargs)
