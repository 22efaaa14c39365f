# SPDX-License-Identifier: Apache-2.0
"""Devices of operators and their inputs; copies between devices are operators too."""

from __future__ import annotations

from typing import Any

from ..core import kernels
from ..core.op import Operator
from ..core.source import Source
from .node import DataNode, Node
from .unbound import UNBOUND, adopt


class Transfer(Operator, abstract=True):
    """Copies a batch to the other device. Created by `DataNode.gpu()` and `.cpu()`, and for GPU operators with inputs
    on the CPU."""

    to = ""
    devices = ("cpu", "gpu")

    @classmethod
    def display_name(cls) -> str:
        return f"DataNode.{cls.to}()"


class ToGpu(Transfer, abstract=True):
    to = fn_name = "gpu"


class ToCpu(Transfer, abstract=True):
    to = fn_name = "cpu"


def origin(node: DataNode) -> DataNode:
    """The DataNode that was copied to the other device; the node itself if it is not a copy."""
    return node.source.inputs[0] if isinstance(node.source.op, Transfer) else node


def move(node: DataNode, to: str) -> DataNode:
    """The same batch on the device "cpu" or "gpu"; copied only once."""
    if node.device == to:
        return node
    from .trace import stack  # imported here, as it imports this module

    definition = stack()[-1].definition if stack() else UNBOUND
    node = adopt(definition, node)
    key = node.source.number, node.index, to
    if key not in definition.moved:
        cls = ToGpu if to == "gpu" else ToCpu
        number = definition.next_number()
        copy = Node(cls({}), (node,), {}, f"__{cls.__name__}_{number}", number, to, node.source.sites)
        copy.scope = copy.branch = node.source.branch
        definition.add(copy)
        if copy.is_unbound:
            return copy.outputs[0]
        definition.moved[key] = copy.outputs[0]
    return definition.moved[key]


def choose(cls: type[Operator], device: str | None, inputs: tuple) -> str:
    """The device of a call: the requested one; otherwise the GPU if an input is on the GPU."""
    name = cls.display_name()
    if device is None:
        on_gpu = any(isinstance(i, DataNode) and i.device == "gpu" for i in inputs)
        device = "gpu" if on_gpu and "gpu" in cls.devices else "cpu"
    if device not in cls.devices:
        accepted = " or ".join(map(repr, cls.devices))
        hint = " Its outputs can be sent to the GPU with .gpu()." if device == "gpu" and not cls.inputs[1] else ""
        raise ValueError(f"{name}: device='{device}' can't be used: it takes {accepted}.{hint}")
    for i, x in enumerate(inputs):
        if not isinstance(x, DataNode) or i in cls.metadata:
            continue
        if device != "gpu" and x.device == "gpu":
            raise ValueError(
                f"{name}: input {i}, {x.told()}, is on the GPU and device='{device}' reads from the CPU; "
                + ("use device='gpu'" if "gpu" in cls.devices else "copy it with .cpu()")
            )
    return device


def check_inputs(cls: type[Operator], device: str | None, inputs: tuple) -> None:
    """Rejects CPU inputs of a GPU operator, as DALI does: there are no implicit copies. Constants are allowed and
    copied once."""
    nodes = [(i, x) for i, x in enumerate(inputs) if isinstance(x, DataNode)]
    if (device or ("gpu" if any(x.device == "gpu" for _, x in nodes) else "cpu")) != "gpu":
        return
    for i, x in nodes:
        is_free = i in (*cls.metadata, *cls.peeks, *cls.copied) or x.source.op.fn_name == "constant"
        if x.device == "cpu" and not is_free and "gpu" in cls.devices:
            raise ValueError(
                f'{cls.display_name()}: input {i}, {x.told()}, is stored on incompatible device "cpu": the operator '
                "runs on the GPU. Copy the input there with .gpu()"
            )


def place(cls: type[Operator], device: str, inputs: tuple[DataNode, ...], arguments: dict[str, Any]) -> tuple:
    """Moves the inputs to the device that the operator reads them on: for a GPU operator the GPU, except inputs needed
    to plan its work; for a CPU operator the CPU. Metadata may be on either."""
    for name, value in arguments.items():
        for d in value if isinstance(value, list) else [value]:
            if isinstance(d, DataNode) and d.device == "gpu":
                raise ValueError(
                    f"{cls.display_name()}: argument '{name}' is on the GPU; arguments are read by the CPU: compute "
                    f"them there, or copy them with .cpu()"
                )
    # A CPU operator has inputs on the GPU if it was requested there, but runs on the CPU.
    where = "gpu" if device == "gpu" else "cpu"
    return tuple(x if i in cls.metadata else move(x, "cpu" if i in cls.peeks else where) for i, x in enumerate(inputs))


def is_made_on_cpu(cls: type[Operator], device: str) -> bool:
    """Whether an operator requested on the GPU runs on the CPU and its outputs are copied: sources, operators without a
    GPU kernel, and mixed decoders without a GPU form."""
    if device == "mixed":
        return not cls.gpu_stage
    if device != "gpu" or cls.runs_on_gpu:
        return False
    runs = cls.is_native() or cls.regroups or kernels.has_gpu_form(cls.kernel)
    return issubclass(cls, Source) or not runs
