# SPDX-License-Identifier: Apache-2.0
"""Element-wise mathematical functions of tensors, batches and numbers: those of `penstock.math`.

Integers are computed in float32, except in `abs`, `min`, `max`, `clamp` and `pow`, which return integers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import math as _graph
from ...core.errors import no_attribute as _no_attribute
from ._operands import arithmetic as _arithmetic

if TYPE_CHECKING:
    from ._operand_types import OfOne, OfThree, OfTwo


def _as_in_graphs(function: Any) -> Any:
    """Copies the docstring of the graph function with the same name."""
    function.__doc__ = getattr(_graph, function.__name__).__doc__
    return function


def _function(name: str) -> OfOne:
    def function(input: Any) -> Any:
        return _arithmetic(name, input)

    function.__name__ = function.__qualname__ = name
    made: OfOne = _as_in_graphs(function)
    return made


def _of_two(function: Any) -> OfTwo:
    made: OfTwo = _as_in_graphs(function)
    return made


def _of_three(function: Any) -> OfThree:
    made: OfThree = _as_in_graphs(function)
    return made


abs, fabs, sqrt, rsqrt, cbrt = map(_function, ("abs", "fabs", "sqrt", "rsqrt", "cbrt"))
exp, log, log2, log10 = map(_function, ("exp", "log", "log2", "log10"))
floor, ceil = map(_function, ("floor", "ceil"))
sin, cos, tan, asin, acos, atan = map(_function, ("sin", "cos", "tan", "asin", "acos", "atan"))
sinh, cosh, tanh, asinh, acosh, atanh = map(_function, ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"))


@_of_two
def min(left: Any, right: Any) -> Any:
    return _arithmetic("min", left, right)


@_of_two
def max(left: Any, right: Any) -> Any:
    return _arithmetic("max", left, right)


@_of_three
def clamp(value: Any, lo: Any, hi: Any) -> Any:
    return _arithmetic("min", hi, _arithmetic("max", lo, value))


@_of_two
def pow(base: Any, exponent: Any) -> Any:
    return _arithmetic("pow", base, exponent)


@_of_two
def fpow(base: Any, exponent: Any) -> Any:
    return _arithmetic("fpow", base, exponent)


@_of_two
def atan2(x: Any, y: Any) -> Any:
    return _arithmetic("atan2", x, y)


if not TYPE_CHECKING:

    def __getattr__(name):
        raise _no_attribute(__name__, name)
