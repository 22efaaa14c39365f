# SPDX-License-Identifier: Apache-2.0
"""Functions of `ops`, in addition to the operators' classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.errors import suggest
from ..core.op import REGISTRY


class _Composed:
    def __init__(self, operators: Sequence[Callable[..., Any]]):
        self._operators = tuple(operators)

    def __call__(self, *inputs: Any) -> Any:
        for operator in self._operators:
            outputs = operator(*inputs)
            inputs = tuple(outputs) if isinstance(outputs, (list, tuple)) else (outputs,)
        return outputs

    def __repr__(self) -> str:
        return f"ops.Compose({list(self._operators)!r})"


def Compose(op_list: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    """Composes operators into one callable that calls them one after the other, each with all outputs of the previous
    one.

    CPU data is copied to the GPU for operators that require it. Raises TypeError for elements that are not callable.

    >>> from penstock import ops
    >>> ops.Compose([ops.Brightness(brightness=2.0), ops.Flip()])
    ops.Compose([ops.Brightness(brightness=2.0), ops.Flip()])
    """
    operators = list(op_list)
    if not operators:
        raise ValueError("ops.Compose needs one operator at least; got an empty list")
    for i, operator in enumerate(operators):
        if not callable(operator):
            raise TypeError(f"ops.Compose: element {i} of op_list is not an operator or other callable: {operator!r}")
    return _Composed(operators)


def Reload() -> None:
    """Has no effect: operators declared later are found when they are requested."""


def _schema_names(device: str) -> list[str]:
    found = (c for c in REGISTRY.values() if device in c.devices)
    return sorted("__".join([*filter(None, c.module.split(".")), c.__name__]) for c in found)


def cpu_ops() -> set[str]:
    """Returns the operators that run on the CPU, by the names of DALI's schemas: "readers__File"."""
    return set(_schema_names("cpu"))


def gpu_ops() -> set[str]:
    """Returns the operators that run on the GPU."""
    return set(_schema_names("gpu"))


def mixed_ops() -> set[str]:
    """Returns the operators that take data on the CPU and return it on the GPU."""
    return set(_schema_names("mixed"))


def python_op_factory(
    name: str, schema_name: str, internal_schema_name: str | None = None, generated: bool = True
) -> type:
    """Returns a class with the given name for the operator that DALI registers as `schema_name`: "Resize",
    "readers__File".

    Raises KeyError if there is no such operator.

    >>> python_op_factory("Shrink", "Resize")(size=8)
    ops.Resize(size=8)
    """
    from ..core.op import snake_case
    from .functions import _class

    *modules, class_name = (internal_schema_name or schema_name).split("__")
    found = REGISTRY.get(".".join([*modules, snake_case(class_name)]))
    if found is None:
        known = [".".join(n.split("__")) for n in REGISTRY]
        near = suggest(".".join([*modules, snake_case(class_name)]), known)
        raise KeyError(f"there is no operator with the schema '{schema_name}'.{near}")
    return _class(found, name)
