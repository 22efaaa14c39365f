# SPDX-License-Identifier: Apache-2.0
"""Columns that rules compute with while they are traced (tracing.py): NumPy functions accept them like arrays, and
each operation adds an instruction to a program.

A traced column is not an array: NumPy can't convert it to one unnoticed. Values that reach Python, by `if`, `int()`
or an index, are checked for later batches. All other arrays in a rule are constants: they are the same for all
batches of a kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .program import Value
    from .tracing import Tracer


class Untraceable(Exception):
    """A rule does something that a program can't do; the text says what."""


# Functions that move elements without changing them.
MOVING = frozenset(
    getattr(np, name)
    for name in (
        "repeat delete insert pad moveaxis swapaxes transpose reshape ravel squeeze expand_dims flip roll tile "
        "take_along_axis take concatenate stack hstack vstack column_stack broadcast_to atleast_2d rot90"
    ).split()
)
# Of these functions, the arguments whose elements are moved; of all others, the first.
ELEMENTS = {np.insert: (0, 2), np.pad: (0, "constant_values")}
_METHODS = {getattr(np, name): name for name in "any all sum prod max min clip nonzero".split()}
_ABOUT = frozenset((np.ndim, np.shape, np.size))
_FILLED = {np.zeros_like: 0, np.ones_like: 1, np.empty_like: 0}
# Attributes of arrays: those that are the same for all batches of a size; those that pass values to Python; NumPy
# functions.
_KNOWN_BEFORE = frozenset("dtype shape ndim size itemsize nbytes strides flags".split())
_LEARNED = frozenset("item tolist tobytes nonzero".split())
_MOVED = {name: getattr(np, name) for name in "repeat squeeze swapaxes ravel".split()} | {"flatten": np.ravel}


def plain(x: Any) -> Any:
    """The current values, not recorded in the program; use only if the result does not depend on them. Also of lists,
    tuples and dictionaries."""
    if isinstance(x, Traced):
        return x.array
    if type(x) is dict:
        return {k: plain(v) for k, v in x.items()}
    return type(x)(map(plain, x)) if type(x) in (list, tuple) else x


def is_constant(x: Any) -> bool:
    """Whether x is the same for all batches."""
    if type(x) in (list, tuple):
        return all(map(is_constant, x))
    return not isinstance(x, Traced) or x.value is None or not x.array.size


class Traced(np.lib.mixins.NDArrayOperatorsMixin):
    """A column of the current batch: `array` are its values, in the memory of `value`; for constants, `value` is
    None."""

    __slots__ = ("array", "tracer", "value")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, tracer: Tracer, array: np.ndarray, value: Value | None):
        self.tracer, self.array, self.value = tracer, array, value

    # Array interface
    # -----------------------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        if name in _KNOWN_BEFORE:
            return getattr(self.array, name)
        if name in _LEARNED:
            return getattr(self.known(), name)
        if name in _MOVED:
            return partial(_MOVED[name], self)
        if name.startswith("_"):  # Python and NumPy probe these to find out the kind of object
            raise AttributeError(name)
        raise Untraceable(f"'{name}' of a column is not among the instructions")

    def __len__(self) -> int:
        return len(self.array)

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        if is_constant(self):
            return np.array(self.array, *args, **kwargs)
        raise Untraceable("it makes an array of a column (np.asarray, or writing it to an array)")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if kwargs.get("out") is not None:
            (out,) = kwargs.pop("out")
            out[...] = getattr(ufunc, method)(*inputs, **kwargs)
            return out
        tracer, name = self.tracer, ufunc.__name__
        result = getattr(ufunc, method)(*plain(inputs), **plain(kwargs))
        if is_constant(inputs):
            return tracer.constant(result)
        if method == "__call__" and not kwargs:
            return tracer.compute(name, result, inputs)
        if method == "reduce" and kwargs.keys() <= {"axis", "dtype", "keepdims", "initial"}:
            return tracer.reduce(name, result, inputs[0], kwargs)
        raise Untraceable(f"np.{name}.{method} with {', '.join(kwargs)} is not among the instructions")

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        tracer, name = self.tracer, function.__name__
        if function in _ABOUT:
            return function(*plain(args), **kwargs)
        if is_constant((args, tuple(kwargs.values()))):
            return tracer.constant(function(*plain(args), **plain(kwargs)))
        if function in _METHODS:
            return getattr(tracer.constant(args[0]), _METHODS[function])(*args[1:], **kwargs)
        if function is np.array_equal and len(args) == 2 and not kwargs:
            return np.shape(args[0]) == np.shape(args[1]) and bool((args[0] == args[1]).all())
        if function is np.cumsum and len(args) == 1 and not kwargs:
            return tracer.running_sums(args[0])
        if function in MOVING:
            return tracer.move(function, args, kwargs)
        if function is np.where and len(args) == 3 and not kwargs:
            return tracer.compute("where", function(*plain(args)), args)
        if function in _FILLED or function is np.full_like:
            made = function(*plain(args), **kwargs)
            return tracer.filled(made.shape, made.dtype, args[1] if function is np.full_like else _FILLED[function])
        raise Untraceable(f"np.{name} is not among the instructions")

    # Operations that return columns -----------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Any:
        index = known_values(index)
        whole = (*index, ...) if isinstance(index, tuple) else (index, ...)
        is_name = isinstance(index, str)  # a record field
        choose = lambda x: x[index] if is_name or isinstance(x[index], np.ndarray) else x[whole]
        return self.tracer.move(choose, (self,), {})

    def __setitem__(self, index: Any, values: Any) -> None:
        self.tracer.write(self, index, values)

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        if self.dtype == dtype and not copy:
            return self
        if is_constant(self):
            return self.tracer.constant(self.array.astype(dtype))
        return self.tracer.converted(self, np.dtype(dtype))

    def copy(self, order: str = "C") -> Any:
        return self.tracer.converted(self, self.dtype)  # writable, even if this is a constant

    def view(self, dtype: Any) -> Any:
        return Traced(self.tracer, self.array.view(dtype), self.value)

    T = property(lambda self: np.transpose(self))

    def reshape(self, *shape: Any, **kwargs: Any) -> Any:
        return np.reshape(self, shape[0] if len(shape) == 1 else shape, **kwargs)

    def transpose(self, *axes: Any) -> Any:
        return np.transpose(self, axes[0] if len(axes) == 1 else axes or None)

    def clip(self, low: Any = None, high: Any = None) -> Any:
        raised = self if low is None else np.maximum(self, low)
        return raised if high is None else np.minimum(raised, high)

    sum, prod = (lambda self, axis=None, f=f, **k: f.reduce(self, axis=axis, **k) for f in (np.add, np.multiply))
    max, min = (lambda self, axis=None, f=f, **k: f.reduce(self, axis=axis, **k) for f in (np.maximum, np.minimum))
    any, all = (
        lambda self, axis=None, f=f, **k: f.reduce(self, axis=axis, **k) for f in (np.logical_or, np.logical_and)
    )

    # Values passed to Python ------------------------------------------------------------------------------------------

    def known(self) -> np.ndarray:
        """Returns the values, and adds a check that later batches have the same."""
        if not is_constant(self):
            self.tracer.expect(self)
        return self.array

    def __bool__(self) -> bool:
        if self.dtype.kind != "b" and self.size == 1 and not is_constant(self):
            return bool(self != 0)  # any nonzero number will do
        return bool(self.known())

    def __int__(self) -> int:
        return int(self.known())

    def __index__(self) -> int:
        return self.known().__index__()

    def __float__(self) -> float:
        return float(self.known())

    def __iter__(self) -> Iterator:
        return (self[i] for i in range(len(self)))

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    def __format__(self, spec: str) -> str:
        return format(self.known().item(), spec) if not self.ndim else format(self.known(), spec)

    def __str__(self) -> str:
        return str(self.known())

    def __repr__(self) -> str:
        return f"Traced({self.array!r})"


def known_values(x: Any) -> Any:
    """Returns a column, or an index, with columns replaced by their values, which are checked for later batches."""
    if isinstance(x, tuple):
        return tuple(map(known_values, x))
    return x.known() if isinstance(x, Traced) else x


Moving = Callable[..., Any]
