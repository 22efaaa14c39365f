# SPDX-License-Identifier: Apache-2.0
"""The graph: operator calls (`Node`) joined by their outputs (`DataNode`)."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import ArgumentOverflow, ArgumentTypeError, Site, describe
from ..core.op import REGISTRY
from ..core.plan_memory import Edge as Edge

if TYPE_CHECKING:
    from ..core.op import Operator
    from .scopes import Scope


def edge_of(data: DataNode) -> Edge:
    return data.source.number, data.index


class Node:
    """An operator call in a pipeline. `op.values` are the fixed arguments, `args` those that are data."""

    __slots__ = (
        *("args", "branch", "device", "inputs", "is_unbound", "n_outputs", "name"),
        *("number", "op", "output_type", "scope", "sites"),
    )

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
        op.n_inputs = len(inputs)
        self.scope: Scope | None = None  # the conditional branch in which it runs
        self.branch: Scope | None = None  # the branch that its outputs belong to
        self.is_unbound = False  # defined outside of any pipeline: see unbound.py
        self.n_outputs = op.n_outputs()
        self.output_type: Callable[..., DataNode] = DataNode

    @property
    def outputs(self) -> tuple[DataNode, ...]:
        """Created on each access: they refer to the node, so storing them would create a reference cycle."""
        place, numbers = "gpu" if self.device == "mixed" else self.device, range(self.n_outputs)
        return tuple(self.output_type(f"{self.name}[{i}]" if i else self.name, place, self, i) for i in numbers)

    def arg_nodes(self) -> list[DataNode]:
        """The DataNodes among the arguments, also those inside lists."""
        return [d for v in self.args.values() for d in (v if isinstance(v, list) else [v]) if isinstance(d, DataNode)]

    def reads(self) -> list[DataNode]:
        """Its inputs, and its arguments that are data."""
        return [*self.inputs, *self.arg_nodes()]

    def parents(self) -> list[Node]:
        return [d.source for d in self.reads()]

    def describe(self, cause: str) -> str:
        """The text of an error of this operator."""
        return describe(self.op.display_name(), self.device, self.sites, cause)

    def __repr__(self) -> str:
        where = f" at {self.sites[-1].file}:{self.sites[-1].line}" if self.sites else ""
        return f"<{self.op.display_name()} '{self.name}'{where}>"


class DataNode:
    """An output of an operator while a pipeline is being defined: a batch that is not computed yet.

    It has no data; it can be passed to operators, as an input or as an argument, and returned from the pipeline's
    definition.
    """

    __slots__ = ("device", "index", "name", "source")
    _clamped: int | None = None  # of `types.Constant`: the number given, if its type can't hold it

    def __init__(self, name: str, device: str = "cpu", source: Any = None, index: int = 0):
        self.name, self.device, self.source, self.index = name, device, source, index

    def told(self) -> str:
        """Its name in error messages: the name that the user gave, or the line that created it."""
        sites = getattr(self.source, "sites", ())
        if not self.name.startswith("__") or not sites:
            return f"'{self.name}'"
        text = linecache.getline(sites[-1].file, sites[-1].line).strip()
        return f"the result of line {sites[-1].line} (`{text if len(text) <= 80 else text[:77] + '...'}`)"

    def gpu(self) -> DataNode:
        """Returns the same data on the GPU."""
        from .placement import move  # imported here, as it imports this module

        return move(self, "gpu")

    def cpu(self) -> DataNode:
        """Returns the same data on the CPU."""
        from .placement import move

        return move(self, "cpu")

    def shape(self, *, dtype: Any = None, device: str = "cpu") -> DataNode:
        """Returns the shape of each sample, as a vector of integers. `dtype` is int64 by default."""
        from ..core.op import REGISTRY
        from .trace import call

        shapes = call(REGISTRY["shapes"], (self,), {"device": "cpu"} | ({} if dtype is None else {"dtype": dtype}))
        return shapes.gpu() if device == "gpu" else shapes

    def property(self, key: str, *, device: str = "cpu") -> DataNode:
        """Returns a property of each sample, as a vector of bytes: "source_info", its origin, or "layout"."""
        from ..core.op import REGISTRY
        from .trace import call

        known = call(REGISTRY["get_property"], (self,), {"key": key, "device": "cpu"})
        return known.gpu() if device == "gpu" else known

    def source_info(self, *, device: str = "cpu") -> DataNode:
        """Returns the origin of each sample, such as a file name, as a vector of bytes."""
        return self.property("source_info", device=device)

    __hash__ = object.__hash__  # comparisons are operators of the graph

    def __bool__(self) -> bool:
        raise TypeError(
            f"{self.told()} is a batch that is not computed yet, so it has no truth value. `if`, `and`, `or`, `not` "
            "and `x if c else y` on data work in functions decorated with "
            "@pipeline_def(enable_conditionals=True), and in what these call; `while`, `assert` and bool() do not"
        )

    def __iter__(self) -> Any:
        several = (
            "; its argument num_outputs makes several"
            if hasattr(getattr(self.source, "op", None), "num_outputs")
            else ""
        )
        raise TypeError(f"{self.told()} is one output of an operator and can't be unpacked{several}")

    def __add__(self, other: Any) -> DataNode:
        return arithmetic("add", self, other)

    def __radd__(self, other: Any) -> DataNode:
        return arithmetic("add", other, self)

    def __sub__(self, other: Any) -> DataNode:
        return arithmetic("sub", self, other)

    def __rsub__(self, other: Any) -> DataNode:
        return arithmetic("sub", other, self)

    def __mul__(self, other: Any) -> DataNode:
        return arithmetic("mul", self, other)

    def __rmul__(self, other: Any) -> DataNode:
        return arithmetic("mul", other, self)

    def __truediv__(self, other: Any) -> DataNode:
        return arithmetic("div", self, other)

    def __rtruediv__(self, other: Any) -> DataNode:
        return arithmetic("div", other, self)

    def __floordiv__(self, other: Any) -> DataNode:
        return arithmetic("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> DataNode:
        return arithmetic("floordiv", other, self)

    def __mod__(self, other: Any) -> DataNode:
        return arithmetic("mod", self, other)

    def __rmod__(self, other: Any) -> DataNode:
        return arithmetic("mod", other, self)

    def __pow__(self, other: Any) -> DataNode:
        return arithmetic("pow", self, other)

    def __rpow__(self, other: Any) -> DataNode:
        return arithmetic("pow", other, self)

    def __and__(self, other: Any) -> DataNode:
        return arithmetic("bitand", self, other)

    def __rand__(self, other: Any) -> DataNode:
        return arithmetic("bitand", other, self)

    def __or__(self, other: Any) -> DataNode:
        return arithmetic("bitor", self, other)

    def __ror__(self, other: Any) -> DataNode:
        return arithmetic("bitor", other, self)

    def __xor__(self, other: Any) -> DataNode:
        return arithmetic("bitxor", self, other)

    def __rxor__(self, other: Any) -> DataNode:
        return arithmetic("bitxor", other, self)

    def __lshift__(self, other: Any) -> DataNode:
        return arithmetic("shl", self, other)

    def __rlshift__(self, other: Any) -> DataNode:
        return arithmetic("shl", other, self)

    def __rshift__(self, other: Any) -> DataNode:
        return arithmetic("shr", self, other)

    def __rrshift__(self, other: Any) -> DataNode:
        return arithmetic("shr", other, self)

    def __eq__(self, other: Any) -> DataNode:  # type: ignore[override]
        return arithmetic("eq", self, other)

    def __ne__(self, other: Any) -> DataNode:  # type: ignore[override]
        return arithmetic("ne", self, other)

    def __lt__(self, other: Any) -> DataNode:
        return arithmetic("lt", self, other)

    def __le__(self, other: Any) -> DataNode:
        return arithmetic("le", self, other)

    def __gt__(self, other: Any) -> DataNode:
        return arithmetic("gt", self, other)

    def __ge__(self, other: Any) -> DataNode:
        return arithmetic("ge", self, other)

    def __neg__(self) -> DataNode:
        return arithmetic("neg", self)

    def __abs__(self) -> DataNode:
        return arithmetic("abs", self)

    def __invert__(self) -> DataNode:
        return arithmetic("invert", self)

    def __pos__(self) -> DataNode:
        return self

    def __getitem__(self, key: Any) -> DataNode:
        from . import subscript  # imported here, as it imports this module

        return subscript.subscript(self, key)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: Any, **kwargs: Any) -> DataNode:
        """`array + node`, and the functions of NumPy that are operators, as np.add(node, 1)."""
        operation = OF_UFUNCS.get(ufunc.__name__)
        if operation is None or method != "__call__" or kwargs:
            call = f"np.{ufunc.__name__}" + (f".{method}" if method != "__call__" else "")
            raise TypeError(
                f"{call}({', '.join(f'{k}=...' for k in kwargs) or '...'}) can't be computed on {self.told()}, a batch "
                "that is not computed yet: penstock.math has mathematical functions, fn.reductions sums and their "
                "kind, and fn.python_function(x, function=...) calls any function of NumPy"
            )
        return arithmetic(operation, *map(_as_python_number, operands))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:  # otherwise np.mean(x) would be x / 1
        raise TypeError(
            f"{self.told()} is a batch that is not computed yet, so it can't become an array. Use operators, "
            "fn.reductions and penstock.math on it, fn.python_function(x, function=...) for NumPy's functions, or the "
            "outputs of run()"
        )

    if not TYPE_CHECKING:  # type checkers know what there is

        def __setitem__(self, key: Any, value: Any) -> None:
            raise TypeError(
                f"{self.told()} is a batch that is not computed yet, and operators return new batches instead of "
                "changing one: instead of `x[i] = value`, put parts together by fn.stack, fn.cat or fn.erase"
            )

        def __float__(self) -> float:
            raise TypeError(
                f"{self.told()} is a batch that is not computed yet, so float() and int() can't convert it. fn.cast "
                "converts it in the graph; numbers are `x.at(i)` of what run() returns"
            )

        __int__ = __float__

        def __getattr__(self, name: str) -> Any:  # called only for missing attributes
            from .hints import of_node

            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'{of_node(name)}")

    def __repr__(self) -> str:
        return f"DataNode(name='{self.name}', device='{self.device}', source={self.source!r}, index={self.index})"

    __str__ = __repr__


# NumPy functions that are Python operators, by name.
OF_UFUNCS = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "floor_divide": "floordiv",
    "remainder": "mod",
    "power": "pow",
    "bitwise_and": "bitand",
    "bitwise_or": "bitor",
    "bitwise_xor": "bitxor",
    "left_shift": "shl",
    "right_shift": "shr",
    "equal": "eq",
    "not_equal": "ne",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "negative": "neg",
    "absolute": "abs",
    "invert": "invert",
}


def _as_python_number(operand: Any) -> Any:
    """`np.int64(2) * node` is `2 * node`, an int32, as in DALI; on the right, and beyond 32 bits, NumPy scalars keep
    their type."""
    if not isinstance(operand, (np.generic, np.ndarray)) or operand.ndim:
        return operand
    value = operand.item()
    return operand.dtype.type(value) if isinstance(value, int) and not -(2**31) <= value < 2**31 else value


def arithmetic(operation: str, *operands: Any) -> DataNode:
    """A call of fn.arithmetic with operands that are DataNodes, numbers or arrays."""
    from . import trace  # imported here, as it imports this module

    kwargs: dict[str, Any] = {"operation": operation}
    nodes = []
    for i, operand in enumerate(operands):
        if isinstance(operand, (list, tuple)) and any(isinstance(o, DataNode) for o in operand):
            raise TypeError(
                f"operand {i} of operation '{operation}' must be a DataNode or a constant; got a "
                f"{type(operand).__name__} of DataNodes. Operators with several outputs return a list: take one of "
                "them, as in `out[0]`"
            )
        if (clamped := getattr(operand, "_clamped", None)) is not None:
            type_name = operand.dtype.name.lower()
            raise ArgumentOverflow(f"the constant {clamped} is out of range for {type_name}, the type it was given")
        if hasattr(operand, "__array__") and not isinstance(operand, DataNode) and np.ndim(operand) == 0:
            operand = np.asarray(operand)[()]  # also of types.Constant, with its type
        if isinstance(operand, (bool, int, float, np.generic)) and "constant" not in kwargs:
            kwargs |= {"constant": operand, "constant_at": i}
        else:
            nodes.append(operand)
    if all(isinstance(n, (bool, int, float, np.generic)) for n in nodes):
        raise ArgumentTypeError(
            f"operation '{operation}' needs a DataNode, a list or an array among its operands; got numbers only: "
            f"{', '.join(map(repr, operands))}. Python's own functions compute with these"
        )
    return trace.call(REGISTRY["arithmetic"], tuple(nodes), kwargs)
