# SPDX-License-Identifier: Apache-2.0
"""The graph: operator calls (`Node`) joined by their outputs (`DataNode`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.errors import NO_GPU, Site, describe

if TYPE_CHECKING:
    from ..core.op import Operator


class Node:
    """One call of an operator in a pipeline: its fixed arguments are in `op.values`, those that are data in `args`."""

    __slots__ = ("args", "device", "inputs", "name", "number", "op", "outputs", "sites")

    def __init__(
        self,
        op: Operator,
        inputs: tuple[DataNode, ...],
        args: dict[str, Any],
        name: str,
        number: int,
        device: str,
        sites: tuple[Site, ...],
    ):
        self.op, self.inputs, self.args, self.name, self.number, self.device, self.sites = (
            op,
            inputs,
            args,
            name,
            number,
            device,
            sites,
        )
        self.outputs = tuple(DataNode(f"{name}[{i}]" if i else name, device, self, i) for i in range(op.n_outputs()))

    def arg_nodes(self) -> list[DataNode]:
        """The DataNodes among the arguments, also those inside lists."""
        return [d for v in self.args.values() for d in (v if isinstance(v, list) else [v]) if isinstance(d, DataNode)]

    def parents(self) -> list[Node]:
        return [d.source for d in (*self.inputs, *self.arg_nodes())]

    def describe(self, cause: str) -> str:
        """The text of an error of this operator."""
        return describe(self.op.display_name(), self.device, self.sites, cause)

    def __repr__(self) -> str:
        where = f" at {self.sites[-1].file}:{self.sites[-1].line}" if self.sites else ""
        return f"<{self.op.display_name()} '{self.name}'{where}>"


class DataNode:
    """An output of an operator while a pipeline is being defined: a batch that is not there yet.

    It has no data; it can be passed to operators, as an input or as an argument, and returned from the pipeline's
    definition.
    """

    __slots__ = ("device", "index", "name", "source")

    def __init__(self, name: str, device: str = "cpu", source: Any = None, index: int = 0):
        self.name, self.device, self.source, self.index = name, device, source, index

    def gpu(self) -> DataNode:
        """The same data on the GPU."""
        raise RuntimeError(f"DataNode.gpu(): {NO_GPU}")

    def cpu(self) -> DataNode:
        """The same data on the CPU."""
        return self

    def __bool__(self) -> bool:
        raise TypeError(
            f"'{self.name}' is a batch that is not computed yet, so it has no truth value; "
            "an `if` on data needs conditional execution, which this version does not have"
        )

    def __iter__(self):
        raise TypeError(f"'{self.name}' is one output of an operator and can't be unpacked")

    def __repr__(self) -> str:
        return f"DataNode(name='{self.name}', device='{self.device}', source={self.source!r}, index={self.index})"

    __str__ = __repr__
