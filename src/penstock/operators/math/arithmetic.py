# SPDX-License-Identifier: Apache-2.0
"""Arithmetic between batches, and between batches and constants."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core import dtypes
from ...core.batch import Spec
from ...core.errors import ArgumentOverflow, PipelineValueError, SampleErrors
from ...core.op import Arg, Arguments, Operator, Pointwise

# In the order of enum Operation of the kernel.
OPERATIONS = (
    "add sub mul div floordiv mod pow bitand bitor bitxor shl shr min max atan2 "
    "eq ne lt le gt ge "
    "neg abs invert sqrt rsqrt cbrt exp log log2 log10 floor ceil sin cos tan asin acos atan "
    "sinh cosh tanh asinh acosh atanh fpow fabs"
).split()
_COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
_BITWISE = frozenset(("bitand", "bitor", "bitxor", "shl", "shr", "invert"))
_ON_BOOL = frozenset(("mul", "bitand", "bitor", "bitxor", "shl", "shr", "invert")) | _COMPARISONS
# Operations computed in floats for all operands: name, and name in the kernel.
_REAL = {"fpow": "pow", "fabs": "abs", "div": "div", "atan2": "atan2"}
_REAL |= {name: name for name in OPERATIONS[OPERATIONS.index("sqrt") : OPERATIONS.index("fpow")]}
_UNARY = frozenset(OPERATIONS[OPERATIONS.index("neg") : OPERATIONS.index("fpow")]) | {"fabs"}
_SIGNS = dict(add="+", sub="-", mul="*", div="/", floordiv="//", mod="%", neg="-", bitand="&", bitor="|", bitxor="^")
_SIGNS |= {"shl": "<<", "shr": ">>", "invert": "~"}
_WIDE = 100  # kWide of the kernel: 128 bits, to compare uint64 with signed integers


def promote(a: np.dtype, b: np.dtype) -> np.dtype:
    """The common type of two types.

    Floats take precedence over integers, wider types over narrower ones, all types over bool. Signed and unsigned
    integers give the signed type that contains both (int64 for uint64).

    >>> promote(np.dtype("u1"), np.dtype("i1"))
    dtype('int16')
    """
    if a == b or b.kind == "b":
        return a
    if a.kind == "b":
        return b
    if "f" in (a.kind, b.kind):
        return max((t for t in (a, b) if t.kind == "f"), key=lambda t: t.itemsize)
    if a.kind == b.kind:
        return max(a, b, key=lambda t: t.itemsize)
    unsigned, signed = (a, b) if a.kind == "u" else (b, a)
    return np.dtype(f"i{min(8, max(2 * unsigned.itemsize, signed.itemsize))}")


def constant_type(value: Any) -> np.dtype:
    """The type of a constant: int32 or float32 for Python numbers; the scalar's own for NumPy."""
    if isinstance(value, np.generic):
        if value.dtype.kind not in "biuf" or value.dtype.itemsize > 8:
            raise TypeError(f"operands can't have the type {value.dtype.name}, that of {value!r}")
        return value.dtype
    if isinstance(value, bool):
        return np.dtype("?")
    if isinstance(value, int):
        if not -(2**31) <= value < 2**31:
            raise ArgumentOverflow(
                f"Integer constant {value} out of range for int32; give it a type: np.int64({value})"
            )
        return np.dtype("i4")
    if isinstance(value, float):
        return np.dtype("f4")
    raise TypeError(f"operands are DataNodes, numbers or arrays, not {type(value).__name__}")


class Arithmetic(Operator):
    """Computes an element-wise operation of two batches, of a batch and a constant, or of one batch.

    Called by operators such as `+` and `<` and by functions such as `penstock.math.sqrt`.

    Shapes are broadcast as in NumPy. Integers are computed in the common type of both operands, and wrap around. `div`,
    `fpow`, `atan2` and the mathematical functions of integers are computed in float32. `floordiv` truncates integers
    towards 0 and is a plain division for floats. Division of an integer by 0 is an error on the CPU; on the GPU it is
    not checked and gives 0. Comparisons return bool. float16 is not supported.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return types.Constant([1, 2, 3]) * 2.5 + types.Constant([1])
    >>> pipe().run()[0].at(0).tolist()
    [3.5, 6.0, 8.5]
    """

    inputs = (1, 2)
    by_frame = False
    kernel = "math/arithmetic"
    is_light = True
    sample_error = PipelineValueError
    operation = Arg(str, doc="What is computed: " + ", ".join(OPERATIONS) + ".")
    constant = Arg(object, None, "The constant operand.")
    constant_at = Arg(int, -1, "Index of the constant operand, 0 or 1; -1: none.")

    @classmethod
    def expand(cls, inputs: tuple, kwargs: dict[str, Any], call: Callable[..., Any]) -> Any:
        return call(_Single, inputs, kwargs) if len(inputs) == 1 else None

    def setup(self) -> None:
        if self.values["operation"] not in OPERATIONS:
            raise ValueError(f"there is no operation '{self.values['operation']}'; there are: {', '.join(OPERATIONS)}")
        if self.values["constant_at"] >= 0:
            constant_type(self.values["constant"])

    def plan(self, a: Arguments, *inputs: Spec) -> None:
        types = [x.dtype for x in inputs]
        if a.constant_at >= 0:
            types.insert(a.constant_at, constant_type(a.constant))
        for t in types:
            if t == np.float16:
                raise TypeError("arithmetic on float16 is not supported; convert with fn.cast(x, dtype=types.FLOAT)")
        both = promote(types[0], types[-1])
        name = a.operation
        if both.kind == "b" and name not in _ON_BOOL:
            one = (
                "Input to arithmetic operator `{}` cannot be a boolean"
                if name in _UNARY
                else ("Inputs to arithmetic operator `{}` cannot be booleans")
            )
            raise TypeError(f"{one.format(_SIGNS.get(name, name))}; convert with fn.cast")
        if both.kind == "f" and name in _BITWISE:
            given = " and ".join(t.name for t in types)
            raise TypeError(f"Inputs to bitwise operator `{_SIGNS[name]}` must be of integral type; got {given}")
        if name in _REAL and both.kind != "f":
            both = np.dtype("f4")
        if name in ("floordiv", "mod") and both.kind in "iu" and a.constant_at == 1 and a.constant == 0:
            raise ValueError("Integer division by zero.")
        computed = "bitand" if both.kind == "b" and name == "mul" else _REAL.get(name, name)
        a.kernel_operation = OPERATIONS.index(computed)
        a.compute = dtypes.from_numpy(both)
        if name in _COMPARISONS and np.dtype("u8") in types and both == np.int64:
            a.compute = _WIDE
        if name == "mod" and both == np.float32 and any(t.kind in "iu" for t in types):
            a.compute = dtypes.from_numpy(np.dtype("f8"))  # remainders of integers beyond 2^24 would differ
        a.result = np.dtype("?") if name in _COMPARISONS else both

    def outputs(self, a: Arguments, x: Spec, y: Spec) -> Spec:
        first, second = (s.layout for s in (x, y))
        if not (first.endswith(second) or second.endswith(first)):
            raise ValueError(f"the layouts '{first}' and '{second}' do not match; one has to be the end of the other")
        ndim = max(x.ndim, y.ndim)
        one, other = (_with_axes(s, ndim) for s in (x, y))
        SampleErrors.where(
            ((one != other) & (one != 1) & (other != 1)).any(axis=1),
            lambda i: (
                f"Can't broadcast shapes {x.shape[i].tolist()} and {y.shape[i].tolist()}: they differ in an extent "
                "that is not 1"
            ),
        )
        layout = max(first, second, key=len)
        return Spec(np.where(one == 1, other, one), a.result, layout if len(layout) == ndim else "")

    def params(self, a: Arguments, *specs: Spec) -> dict[str, Any]:
        columns = {"operation": a.kernel_operation, "compute": int(a.compute), "constant_at": a.constant_at}
        if a.constant_at >= 0:
            value = np.array(a.constant, constant_type(a.constant))
            columns |= {"real": float(value), "integer": value.astype("i8") if value.dtype.kind != "f" else 0}
        return columns


def _with_axes(x: Spec, ndim: int) -> np.ndarray:
    """Shapes with `ndim` axes; additional leading axes have extent 1."""
    missing = np.ones((x.n, ndim - x.ndim), "i8")
    return np.concatenate([missing, x.shape], axis=1) if ndim > x.ndim else x.shape


class _Single(Arithmetic, Pointwise):
    """Arithmetic with one batch operand: each output element depends on one input element only."""

    inputs = (1, 1)
    by_frame = True

    @classmethod
    def expand(cls, inputs: tuple, kwargs: dict[str, Any], call: Callable[..., Any]) -> None:
        return None

    def setup(self) -> None:
        super().setup()
        needed = 1 if self.values["operation"] in _UNARY else 2
        if needed != 1 + (self.values["constant_at"] >= 0):
            raise ValueError(f"operation '{self.values['operation']}' takes {needed} operand{'s' * (needed > 1)}")

    def outputs(self, a: Arguments, x: Spec) -> Spec:  # type: ignore[override]
        return x.like(dtype=a.result)

    def region(self, a: Arguments, x: Spec, out: Spec) -> tuple[np.ndarray, np.ndarray]:
        return out.origin, out.stored
