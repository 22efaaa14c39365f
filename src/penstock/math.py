# SPDX-License-Identifier: Apache-2.0
"""Element-wise mathematical functions of batches (DataNodes) and constants, for use in pipeline definitions.

Integers are computed in float32, except in `abs`, `min`, `max`, `clamp` and `pow`, which return integers.
"""

from __future__ import annotations

from collections.abc import Callable as _Callable
from typing import TYPE_CHECKING

from .core.errors import no_attribute as _no_attribute
from .graph.node import DataNode
from .graph.node import arithmetic as _arithmetic

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from numpy import generic
    from numpy.typing import NDArray

    from .types import ScalarConstant

    _Operand: TypeAlias = DataNode | ScalarConstant | NDArray[Any] | generic | float


def _function(name: str, doc: str) -> _Callable[[_Operand], DataNode]:
    def function(input: _Operand) -> DataNode:
        return _arithmetic(name, input)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


abs = _function("abs", "The absolute value.")
fabs = _function("fabs", "The absolute value, as a float.")
sqrt = _function("sqrt", "The square root.")
rsqrt = _function("rsqrt", "One divided by the square root.")
cbrt = _function("cbrt", "The cube root.")
exp = _function("exp", "e to the power of the input.")
log = _function("log", "The natural logarithm.")
log2 = _function("log2", "The logarithm to the base 2.")
log10 = _function("log10", "The logarithm to the base 10.")
floor = _function("floor", "The largest integer not above the input, as a float.")
ceil = _function("ceil", "The smallest integer not below the input, as a float.")
sin = _function("sin", "The sine of an angle in radians.")
cos = _function("cos", "The cosine of an angle in radians.")
tan = _function("tan", "The tangent of an angle in radians.")
asin = _function("asin", "The angle in radians that has this sine.")
acos = _function("acos", "The angle in radians that has this cosine.")
atan = _function("atan", "The angle in radians that has this tangent.")
sinh = _function("sinh", "The hyperbolic sine.")
cosh = _function("cosh", "The hyperbolic cosine.")
tanh = _function("tanh", "The hyperbolic tangent.")
asinh = _function("asinh", "The inverse of the hyperbolic sine.")
acosh = _function("acosh", "The inverse of the hyperbolic cosine.")
atanh = _function("atanh", "The inverse of the hyperbolic tangent.")


def min(left: _Operand, right: _Operand) -> DataNode:
    """The smaller of two values."""
    return _arithmetic("min", left, right)


def max(left: _Operand, right: _Operand) -> DataNode:
    """The larger of two values."""
    return _arithmetic("max", left, right)


def clamp(value: _Operand, lo: _Operand, hi: _Operand) -> DataNode:
    """The value limited to the range from `lo` to `hi`. NaN stays NaN."""
    return _arithmetic("min", hi, _arithmetic("max", lo, value))


def pow(base: _Operand, exponent: _Operand) -> DataNode:
    """`base` to the power of `exponent`; an integer for integers, 0 if the exponent is negative."""
    return _arithmetic("pow", base, exponent)


def fpow(base: _Operand, exponent: _Operand) -> DataNode:
    """`base` to the power of `exponent`, computed in floats."""
    return _arithmetic("fpow", base, exponent)


def atan2(x: _Operand, y: _Operand) -> DataNode:
    """The angle in radians whose tangent is x / y, in the quadrant given by the signs of x and y."""
    return _arithmetic("atan2", x, y)


if not TYPE_CHECKING:

    def __getattr__(name):
        raise _no_attribute(__name__, name)
