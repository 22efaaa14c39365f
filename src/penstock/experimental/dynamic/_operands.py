# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of tensors and batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._operand_types import Binary

_NUMBERS = (bool, int, float, np.generic)


def arithmetic(operation: str, *operands: Any) -> Any:
    """`operation` of tensors, batches, numbers and arrays, element by element; shapes are broadcast as in NumPy."""
    from ...graph.node import arithmetic as of_nodes
    from ._invoke import invoke, put_in, size_of, take_out
    from ._making import as_tensor
    from ._value import Value

    if not any(isinstance(x, Value) for x in operands):
        operands = (as_tensor(operands[0]), *operands[1:])
    data: list[Value] = []
    values, keys = [], []
    numbers = 0
    for x in operands:
        if isinstance(x, _NUMBERS) and not isinstance(x, Value):
            numbers += 1
            if numbers > 1:
                x = as_tensor(x)
        elif not isinstance(x, Value):
            x = as_tensor(x)
        value, key = take_out(x, data)
        values.append(value)
        keys.append(key)
    name = f"operation '{operation}'"
    return invoke(
        ("arithmetic", operation, *keys),
        lambda nodes: of_nodes(operation, *put_in(values, nodes)),
        data,
        size_of(data, None, name),
        name,
    )


def _unary(operation: str) -> Any:
    def method(self: Any) -> Any:
        return arithmetic(operation, self)

    return method


def _binary(operation: str) -> Binary:
    def method(self: Any, other: Any) -> Any:
        return arithmetic(operation, self, other)

    return method


def _reflected(operation: str) -> Binary:
    def method(self: Any, other: Any) -> Any:
        return arithmetic(operation, other, self)

    return method


class Operands:
    """Base of classes with arithmetic operators."""

    __slots__ = ()

    def __pos__(self) -> Self:
        return self

    if TYPE_CHECKING:

        def __neg__(self) -> Self: ...
        def __abs__(self) -> Self: ...
        def __invert__(self) -> Self: ...

    else:
        __neg__, __abs__, __invert__ = _unary("neg"), _unary("abs"), _unary("invert")
    __add__, __radd__ = _binary("add"), _reflected("add")
    __sub__, __rsub__ = _binary("sub"), _reflected("sub")
    __mul__, __rmul__ = _binary("mul"), _reflected("mul")
    __truediv__, __rtruediv__ = _binary("div"), _reflected("div")
    __floordiv__, __rfloordiv__ = _binary("floordiv"), _reflected("floordiv")
    __mod__, __rmod__ = _binary("mod"), _reflected("mod")
    __pow__, __rpow__ = _binary("pow"), _reflected("pow")
    __and__, __rand__ = _binary("bitand"), _reflected("bitand")
    __or__, __ror__ = _binary("bitor"), _reflected("bitor")
    __xor__, __rxor__ = _binary("bitxor"), _reflected("bitxor")
    __lshift__, __rlshift__ = _binary("shl"), _reflected("shl")
    __rshift__, __rrshift__ = _binary("shr"), _reflected("shr")
    __eq__, __ne__ = _binary("eq"), _binary("ne")
    __lt__, __le__, __gt__, __ge__ = _binary("lt"), _binary("le"), _binary("gt"), _binary("ge")
    __hash__ = None  # type: ignore[assignment]
