# SPDX-License-Identifier: Apache-2.0
"""Tracing: a call of an operator while a pipeline is being defined becomes a node."""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import Any

import numpy as np

from ..core.dtypes import DALIDataType, saturated, to_numpy
from ..core.errors import ArgumentTypeError, ArgumentValueError, of_argument, user_sites, warn_deprecated
from ..core.op import REGISTRY, Operator, PerSample
from ..core.source import Source
from . import hints, placement
from .definition import Definition
from .node import DataNode, Node
from .scopes import Scope, bring
from .unbound import UNBOUND

_NARROW = {"int64": "i4", "uint64": "u4", "float64": "f4"}
_local = threading.local()


def stack() -> list:
    """The pipelines being defined by this thread, innermost last; each has a `definition`."""
    if not hasattr(_local, "stack"):
        _local.stack = []
    return _local.stack


def check_constants(
    cls: type[Operator], kwargs: dict[str, Any], warned: Collection[str] = ()
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Splits keyword arguments into checked constants and DataNodes. Raises TypeError or ValueError.

    Warns about deprecated arguments, except those in `warned`."""
    values: dict[str, Any] = {}
    data: dict[str, Any] = {}
    for name, value in kwargs.items():
        if name == "seed" and name not in cls.schema:  # formerly an argument of all operators
            if name not in warned:
                warn_deprecated(f"{cls.display_name()} draws no random numbers: its 'seed' has no effect")
            continue
        arg = cls.find_arg(name)
        if arg.deprecated and name not in warned:
            warn_deprecated(f"{cls.display_name()}: argument '{name}' is deprecated: {arg.deprecated}")
        if isinstance(value, np.ndarray) and isinstance(arg, PerSample) and name not in cls.tensors:
            # An array with more axes than the argument's type is a tensor that is the same for all samples.
            value = constant(value) if value.ndim > arg.vector and value.size > 1 else value
        is_data = isinstance(value, DataNode)
        if name in cls.tensors and not is_data and np.ndim(value):
            values[name] = value
            continue
        is_mixed = isinstance(value, (list, tuple)) and any(isinstance(v, DataNode) for v in value)
        if is_data or is_mixed:
            if not isinstance(arg, PerSample):
                raise TypeError(
                    f"{cls.display_name()}: argument '{name}' is fixed when the pipeline is built and takes "
                    f"{arg.accepts()}, not a DataNode"
                )
            data[name] = value if is_data else [v if isinstance(v, DataNode) else arg._scalar(v) for v in value]
        else:
            try:
                converted = arg.convert(value)
            except (TypeError, ValueError) as e:
                raise of_argument(e, f"{cls.display_name()}: {e}") from None
            if converted is not DALIDataType.NO_TYPE or arg.default is not None:  # otherwise treated as not given
                values[name] = converted
    return values, data


def _brought(definition: Definition, value: Any, scope: Scope | None) -> Any:
    if isinstance(value, list):
        return [_brought(definition, v, scope) for v in value]
    return bring(definition, value, scope) if isinstance(value, DataNode) else value


def constant_array(value: Any, dtype: Any = None) -> np.ndarray:
    """The value as an array of type `dtype`; if not given, 64-bit numbers, Python's default, become 32-bit ones.

    Values are clamped to the range of `dtype`. For integer types, elements of arrays are rounded, halves away from
    zero, and scalars are truncated, like `int`."""
    try:
        array = np.asarray(value)
    except ValueError:
        raise ArgumentValueError("a constant is an array of numbers; got lists of different lengths") from None
    if array.dtype.kind not in "biuf":
        reads = "; fn.readers.file(files=[...]) reads files and URLs, such as s3://" if array.dtype.kind in "US" else ""
        raise ArgumentTypeError(f"a constant is an array of numbers; got {value!r}{reads}")
    if dtype is not None:
        wanted = to_numpy(dtype)
        if array.dtype == wanted:
            return array
        if not array.ndim and array.dtype.kind == "f":
            array = array != 0 if wanted.kind == "b" else np.trunc(array) if wanted.kind in "iu" else array
        return np.asarray(saturated(array, wanted))
    narrow = array.astype(_NARROW.get(array.dtype.name, array.dtype), copy=False)
    if narrow.dtype.kind in "iu" and (narrow != array).any():
        raise ValueError(
            f"a constant beyond the range of {narrow.dtype.name}; give its type: types.Constant(..., dtype=types.INT64)"
        )
    return narrow


def constant(value: Any) -> DataNode:
    """A constant as a DataNode."""
    return call(REGISTRY["constant"], (), {"value": constant_array(value)})


def _check_unbound(cls: type[Operator], inputs: tuple) -> None:
    """Raises RuntimeError for batches as inputs outside of a pipeline; numbers, lists and arrays are constants
    there."""
    data = next((i for i in inputs if hasattr(i, "as_tensor")), None)
    if data is not None:
        raise RuntimeError(
            f"{cls.display_name()}: operators take data of type {type(data).__name__} only while a pipeline is being "
            "defined: inside a function decorated with @pipeline_def, inside `with pipeline:`, or in `define_graph`. "
            "To process data at once, call the operator of the same name in penstock.experimental.dynamic"
        )


def _check_devices(cls: type[Operator], device: str | None, inputs: tuple) -> None:
    try:
        placement.check_inputs(cls, device, inputs)
    except ValueError as e:
        raise of_argument(e, "\n".join([str(e), "", *map(str, user_sites())])) from None


def call(
    cls: type[Operator],
    inputs: tuple,
    kwargs: dict[str, Any],
    warned: Collection[str] = (),
    by_program: bool = False,
) -> Any:
    """Adds a call of operator `cls` to the pipeline being defined. Returns its output, or a list of them.

    Inputs of calls in the user's program must be on the operator's device; those of internal calls are copied there.

    If an input is a list of DataNodes, the operator is called for each element and a list is returned, unless it
    has only one element.
    """
    lists = [i for i in inputs if isinstance(i, (list, tuple)) and any(isinstance(d, DataNode) for d in i)]
    if lists:
        sizes = {len(i) for i in lists}
        if len(sizes) > 1:
            raise ValueError(f"{cls.display_name()}: the lists of inputs differ in length: {sorted(sizes)}")
        results = [
            call(cls, tuple(i[k] if any(i is x for x in lists) else i for i in inputs), kwargs, warned, by_program)
            for k in range(sizes.pop())
        ]
        if len(results) == 1:
            return results[0]
        return [list(r) for r in zip(*results)] if results and isinstance(results[0], list) else results
    if not stack():
        _check_unbound(cls, inputs)
    if by_program:
        _check_devices(cls, kwargs.get("device"), inputs)
    expanded = cls.expand(inputs, dict(kwargs), call)
    if expanded is not None:
        return expanded
    definition: Definition = stack()[-1].definition if stack() else UNBOUND
    name, device = kwargs.pop("name", None), kwargs.pop("device", None)
    sites = user_sites()
    if name is not None and "name" in cls.schema:
        kwargs["name"] = name

    try:
        device = placement.choose(cls, device, inputs)
        lo, hi = cls.inputs
        if not lo <= len(inputs) <= hi:
            raise ValueError(
                f"{cls.display_name()} takes {lo if lo == hi else f'{lo} to {hi}'} input{'s' * (hi != 1)}, "
                f"{len(inputs)} given{hints.by_position(cls, inputs[hi:], kwargs)}"
            )
        values, data = check_constants(cls, {k: v for k, v in kwargs.items() if v is not None}, warned)
        missing = [n for n, a in cls.schema.items() if a.required and n not in values and n not in data]
        if missing:
            raise TypeError(
                f"{cls.display_name()}: required argument{'s' * (len(missing) > 1)} not given: {', '.join(missing)}"
            )
        scope = definition.scope if data or any(isinstance(i, DataNode) for i in inputs) else None
        if scope is not None and issubclass(cls, Source):
            raise ValueError(
                f"arguments that are data ({', '.join(data)}) can't be given in a branch of a conditional: a source "
                "brings in whole batches; call it before the `if`"
            )
        edges = tuple(bring(definition, i if isinstance(i, DataNode) else constant(i), scope) for i in inputs)
        data = {n: _brought(definition, v, scope) for n, v in data.items()}
        made_on_cpu = placement.is_made_on_cpu(cls, device)
        edges = placement.place(cls, "cpu" if made_on_cpu else device, edges, data)
        # Omitted arguments keep their default, so that `given` contains only what the user passed.
        op = cls(
            {n: values.get(n, None if n in data or a.required else a.default) for n, a in cls.schema.items()},
            {*values, *data},
        )
    except (TypeError, ValueError) as e:
        # Errors of `setup` do not name the operator.
        who = "" if str(e).startswith(cls.display_name()) else f"{cls.display_name()}: "
        where = "\n\n" + "\n".join(map(str, sites)) if sites else ""
        raise of_argument(e, f"{who}{e}{where}") from None
    number = definition.next_number()  # constants among the inputs already have numbers
    where = "cpu" if made_on_cpu else device
    node = Node(op, edges, data, name or f"__{cls.__name__.lstrip('_')}_{number}", number, where, sites)
    node.scope = node.branch = scope
    definition.add(node)
    outputs = tuple(placement.move(d, "gpu") for d in node.outputs) if made_on_cpu else node.outputs
    if (names := node.op.output_names()) is not None:
        return dict(zip(names, outputs))
    return outputs[0] if len(outputs) == 1 and not node.op.returns_list() else list(outputs)
