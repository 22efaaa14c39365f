# SPDX-License-Identifier: Apache-2.0
"""What is traced with a few numbers of samples, made good for any number: whole numbers follow it in proportion
(extents, distances, places), and arrays that are constant have the same elements, or a series of numbers, for each
sample. What fits two traces has to give a third one, so that what depends on the number otherwise is found out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from .traced import Untraceable

_Made = TypeVar("_Made")


@dataclass(frozen=True)
class Size:
    """constant + each * n, of n samples."""

    constant: int
    each: int

    def of(self, n: int) -> int:
        return self.constant + self.each * n

    def __repr__(self) -> str:
        n = ("-" if self.each < 0 else "") + (str(abs(self.each)) if abs(self.each) != 1 else "") + "n"
        return n + (f"{self.constant:+d}" if self.constant else "")


@dataclass(frozen=True, eq=False)
class Series:
    """An array whose elements along one axis, one for each sample, begin with `first` and grow by `step`; both are
    (numbers for no sample, what is added for each). In the end it has the extents `shape`."""

    dtype: np.dtype
    axis: int
    before: tuple[int | Size, ...]  # the extents with that axis
    shape: tuple[int | Size, ...]
    first: tuple[np.ndarray, Any]
    step: tuple[Any, Any]

    def of(self, n: int) -> np.ndarray:
        shape = [x.of(n) if isinstance(x, Size) else x for x in self.before]
        made = np.empty([shape.pop(self.axis), *shape], self.dtype)
        made[...] = self.first[0]
        if self.dtype.kind in "iu":
            step = np.asarray(self.step[0] + self.step[1] * n)
            numbers = self.first[0] + self.first[1] * n + np.arange(len(made)).reshape(-1, *(1,) * step.ndim) * step
            made[...] = numbers.astype(self.dtype)
        shape = [x.of(n) if isinstance(x, Size) else x for x in self.shape]
        return np.ascontiguousarray(np.moveaxis(made, 0, self.axis)).reshape(shape)

    def __repr__(self) -> str:
        return f"{self.of(2).tolist()[:2]} and so on, {list(self.shape)}"


class ForAnyNumber(Generic[_Made]):
    """What was `made` for three numbers of samples, `sizes`; raises Untraceable if it is not in proportion. It may
    consist of data classes, tuples, lists, dicts, whole numbers and arrays; other objects have to be the same."""

    def __init__(self, made: Sequence[_Made], sizes: tuple[int, int, int]):
        self._sizes = sizes[:2]
        self._known: dict[int, Any] = {}
        self._same: set[int] = set()  # the ids of what is the same for any number
        self.made: _Made = self._fitted(made[0], made[1])
        self._alive, same = made[0], self._same.copy()  # whose ids stay theirs
        self._sizes, self._known = (sizes[2], sizes[2]), {}
        self._fitted(self.of(sizes[2]), made[2])
        self._same, self._known = same, {}

    def of(self, n: int) -> _Made:
        """The same for n samples."""
        return self._at(self.made, n, {})

    def _at(self, x: Any, n: int, known: dict[int, Any]) -> Any:
        if isinstance(x, (Size, Series)):
            return x.of(n)
        if id(x) in self._same or not isinstance(x, (tuple, list, dict)) and not is_dataclass(x):
            return x
        if id(x) not in known:
            made: Any
            if isinstance(x, dict):
                made = {k: self._at(v, n, known) for k, v in x.items()}
            elif isinstance(x, (tuple, list)):
                made = type(x)([self._at(v, n, known) for v in x])
            else:
                made = object.__new__(type(x))
                made.__dict__.update({k: self._at(v, n, known) for k, v in vars(x).items()})
            known[id(x)] = made
        return known[id(x)]

    def _fitted(self, a: Any, b: Any) -> Any:
        if type(a) is not type(b):
            raise Untraceable(f"{a!r} becomes {b!r} for another number of samples")
        if type(a) is int:
            return a if a == b else self._size(a, b)
        if isinstance(a, np.ndarray):
            return self._array(a, b)
        if not isinstance(a, (tuple, list, dict)) and not is_dataclass(a):
            return self._other(a, b)
        if id(a) not in self._known:
            self._known[id(a)] = self._parts(a, b)
        return self._known[id(a)]

    def _parts(self, a: Any, b: Any) -> Any:
        made: Any
        if isinstance(a, dict):
            if list(a) != list(b):
                raise Untraceable(f"{list(a)} become {list(b)} for another number of samples")
            made = {k: self._fitted(v, b[k]) for k, v in a.items()}
            same = all(made[k] is v for k, v in a.items())
        elif isinstance(a, (tuple, list)):
            if len(a) != len(b):
                raise Untraceable(f"{len(a)} of a kind become {len(b)} for another number of samples")
            made = type(a)([self._fitted(v, w) for v, w in zip(a, b)])
            same = all(v is w for v, w in zip(a, made))
        else:
            parts = {f.name: self._fitted(getattr(a, f.name), getattr(b, f.name)) for f in fields(a)}
            same = all(getattr(a, name) is part for name, part in parts.items())
            made = type(a)(**parts)
        if same:
            self._same.add(id(a))
            return a
        return made

    def _size(self, a: int, b: int) -> Size:
        n, m = self._sizes
        if n == m or (b - a) % (m - n):
            raise Untraceable(f"{a} is no sum of a constant and a multiple of the number of samples")
        each = (b - a) // (m - n)
        return Size(a - each * n, each)

    def _other(self, a: Any, b: Any) -> Any:
        if a is b or (isinstance(a, np.generic) and a.tobytes() == b.tobytes()):
            return a
        if isinstance(a, np.generic) or not (a == b or (a != a and b != b)):
            raise Untraceable(f"{a!r} becomes {b!r} for another number of samples")
        return a

    def _array(self, a: np.ndarray, b: np.ndarray) -> Any:
        if a.dtype != b.dtype or a.ndim != b.ndim:
            raise Untraceable(f"an array {a.dtype}{list(a.shape)} becomes {b.dtype}{list(b.shape)}")
        if a.shape == b.shape and a.tobytes() == b.tobytes():
            return a
        n, m = self._sizes
        axes = [d for d in range(a.ndim) if a.shape[d] != b.shape[d]]
        shapes = [((1, *a.shape), (1, *b.shape), 0)]
        if n != m and len(axes) <= 1:
            if axes:
                (d,) = axes
                shapes = [(a.shape, b.shape, d)]
                p, q = a.shape[d], b.shape[d]
            if (
                axes and p % n == 0 and q % m == 0 and p // n == q // m > 1
            ):  # several for each sample, side by side or apart
                k = p // n
                before, behind = a.shape[:d], a.shape[d + 1 :]
                shapes.append(((*before, n, k, *behind), (*before, m, k, *behind), d))
                shapes.append(((*before, k, n, *behind), (*before, k, m, *behind), d + 1))
            shape = tuple(self._fitted(x, y) for x, y in zip(a.shape, b.shape))
            for of_a, of_b, axis in shapes:
                made = self._series(a.reshape(of_a), b.reshape(of_b), axis, shape)
                if made is not None:
                    return made
        raise Untraceable(f"an array of constants of the shape {a.shape} differs from sample to sample")

    def _series(self, a: np.ndarray, b: np.ndarray, axis: int, shape: tuple) -> Series | None:
        before = tuple(self._fitted(x, y) for x, y in zip(a.shape, b.shape))
        a, b = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)
        if not len(a) or not len(b):
            return None
        if a.dtype.kind not in "iu":
            one = a[:1].tobytes()
            if all(x.tobytes() == one for x in (*a, *b)):
                return Series(a.dtype, axis, before, shape, (a[0], 0), (0, 0))
            return None
        (first, step), (other, other_step) = _line(a), _line(b)
        n, m = self._sizes
        for x, begin, grows in ((a, first, step), (b, other, other_step)):
            if (begin + np.arange(len(x)).reshape(-1, *(1,) * begin.ndim) * grows != x).any():
                return None
        if ((other - first) % (m - n)).any() or ((other_step - step) % (m - n)).any():
            return None
        each, step_each = (other - first) // (m - n), (other_step - step) // (m - n)
        return Series(a.dtype, axis, before, shape, (first - each * n, each), (step - step_each * n, step_each))


def _line(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x = x[:2].astype("i8")
    return x[0], (x[1] - x[0] if len(x) > 1 else np.zeros_like(x[0]))
