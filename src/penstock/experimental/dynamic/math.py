# SPDX-License-Identifier: Apache-2.0
"""Mathematical functions of tensors, batches and numbers, element by element: those of `penstock.math`.

Integers are computed in float32, but for `abs`, `min`, `max`, `clamp` and `pow`, which keep them.
"""

from typing import Any

from ... import math as _graph
from ._operands import arithmetic as _arithmetic


def _as_in_graphs(function: Any) -> Any:
    """Gives it the text of the graph's function of its name."""
    function.__doc__ = getattr(_graph, function.__name__).__doc__
    return function


def _function(name: str) -> Any:
    def function(input: Any) -> Any:
        return _arithmetic(name, input)

    function.__name__ = function.__qualname__ = name
    return _as_in_graphs(function)


abs, fabs, sqrt, rsqrt, cbrt = map(_function, ("abs", "fabs", "sqrt", "rsqrt", "cbrt"))
exp, log, log2, log10 = map(_function, ("exp", "log", "log2", "log10"))
floor, ceil = map(_function, ("floor", "ceil"))
sin, cos, tan, asin, acos, atan = map(_function, ("sin", "cos", "tan", "asin", "acos", "atan"))
sinh, cosh, tanh, asinh, acosh, atanh = map(_function, ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"))


@_as_in_graphs
def min(left: Any, right: Any) -> Any:
    return _arithmetic("min", left, right)


@_as_in_graphs
def max(left: Any, right: Any) -> Any:
    return _arithmetic("max", left, right)


@_as_in_graphs
def clamp(value: Any, lo: Any, hi: Any) -> Any:
    return _arithmetic("min", _arithmetic("max", value, lo), hi)


@_as_in_graphs
def pow(base: Any, exponent: Any) -> Any:
    return _arithmetic("pow", base, exponent)


@_as_in_graphs
def fpow(base: Any, exponent: Any) -> Any:
    return _arithmetic("fpow", base, exponent)


@_as_in_graphs
def atan2(x: Any, y: Any) -> Any:
    return _arithmetic("atan2", x, y)
