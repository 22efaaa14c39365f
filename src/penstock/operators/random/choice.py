# SPDX-License-Identifier: Apache-2.0
"""Random choices."""

from __future__ import annotations

import math

import numpy as np

from ...core.batch import Batch, Spec
from ...core.errors import SampleErrors
from ...core.op import Arguments, PerSample, Seeded
from ...core.rng import Random
from ._distribution import INDEX, WEIGHTED, fill, rows

_SUM_TOLERANCE = 1e-4
_INT64 = np.dtype("i8")


class Choice(Seeded):
    """Chooses randomly, with replacement, from the numbers 0 .. a - 1 (a scalar input `a`) or from the slices of the
    input along its first axis.

    The output has the type of the input. It is one choice, unless the shape of the choices is given by `shape` or by a
    second input of that shape; the extents of a slice follow. The layout is that of the input if it fits.

    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=3, seed=1)
    ... def pipe():
    ...     return fn.random.choice([10, 20, 30], p=[0.0, 1.0, 0.0]), fn.random.choice(5, shape=[2])
    >>> x, y = pipe().run()
    >>> x.as_array().tolist(), y.as_array().shape
    ([20, 20, 20], (3, 2))
    """

    module = "random"
    inputs = (1, 2)
    by_frame = False
    metadata = (1,)
    is_prompt = True
    p = PerSample(
        [float], None, "Probability of each choice; their sum must be 1. By default all are equal.", ragged=True
    )
    shape = PerSample([int], None, "Shape of the choices. By default a single one.")

    def setup(self) -> None:
        self._shared: np.ndarray | None = None  # the table, if probabilities are constant
        # Caches for consecutive batches with the same input: (tensor rows, the sample that all of them share), and
        # (number of choices, its argument row).
        self._seen: tuple[np.ndarray, np.ndarray] | None = None
        self._row: tuple[int, np.ndarray] | None = None
        shape = self.values["shape"]
        if shape is not None and min(shape, default=0) < 0:
            raise ValueError(f"fn.random.choice: extents of the shape can't be negative; got {shape}")

    def run(self, a: Arguments, x: Batch, like: Batch | None = None) -> Batch:
        try:
            return self._chosen(a, x, like)
        except MemoryError:
            shapes = self._shapes(a, like)
            slices = x.spec.shape[:, 1:].prod(axis=1).tolist() if x.spec.ndim else [1] * a.n
            # Bytes of the choices, and of their indices.
            nbytes = sum(math.prod(s) * (k * x.spec.dtype.itemsize + 8) for s, k in zip(shapes, slices))
            shown = f"{[list(s) for s in shapes[:4]]}{'...' * (a.n > 4)}"
            raise MemoryError(f"could not allocate {nbytes} bytes for choices of the shapes {shown}") from None

    def _chosen(self, a: Arguments, x: Batch, like: Batch | None) -> Batch:
        if like is not None and "shape" in a.given:
            raise ValueError("the shape is given twice: by 'shape' and by an input")
        drawn = self._drawn(a, self._counts(x))
        if like is None and self.values["shape"] is not None or "shape" not in a.given and like is None:
            shape = tuple(self.values["shape"] or ())
            filled = fill(drawn, a.random, math.prod(shape), _INT64)
            if x.spec.is_dense:
                return self._of_dense(x, filled, shape)
            return self._of_ragged(x, list(filled), [shape] * a.n)
        shapes = self._shapes(a, like)
        for i, s in enumerate(shapes):
            if min(s, default=0) < 0:
                raise SampleErrors({i: f"negative extents: shape is {list(s)}"})
        index: list[np.ndarray] = []
        for i, s in enumerate(shapes):
            random = Random(a.random.key, a.random.epoch[i : i + 1], a.random.position[i : i + 1])
            index.append(fill(drawn if len(drawn) == 1 else drawn[i : i + 1], random, math.prod(s), _INT64)[0])
        return self._of_ragged(x, index, shapes)

    def _shapes(self, a: Arguments, like: Batch | None) -> list[tuple[int, ...]]:
        """Shape of the choices of each sample."""
        if like is None and (self.values["shape"] is not None or "shape" not in a.given):
            return [tuple(self.values["shape"] or ())] * a.n
        return [tuple(s) for s in (like.spec.shape if like is not None else np.asarray(a.shape)).tolist()]

    def _counts(self, x: Batch) -> np.ndarray:
        """Number (n,) of options to choose from; (1,) if it is the same for all samples."""
        if x.spec.ndim:
            return x.spec.shape[:, 0]
        if x.spec.dtype.kind not in "iu":
            raise ValueError(f"a scalar input is a number of choices and must be an integer; got {x.spec.dtype.name}")
        return self._values(x).astype(_INT64)

    def _values(self, x: Batch) -> np.ndarray:
        """The samples (n, ...), of one shape; (1, ...) if all share the same memory, as constants do."""
        if self._seen is not None and self._seen[0] is x.rows:
            return self._seen[1]
        address = x.rows["data"]
        if not len(x) or (address != address[0]).any():
            return x.array()
        values = x.sample(0)[None]
        if len(x) > 1:
            self._seen = x.rows, values
        return values

    def _drawn(self, a: Arguments, counts: np.ndarray) -> np.ndarray:
        """The kernel's argument rows: one per sample, or one for all."""
        row = self._row
        if row is not None and len(counts) == 1 and row[0] == counts[0]:
            return row[1]
        each = np.broadcast_to(counts, (a.n,))
        bad = each <= 0
        SampleErrors.where(bad, lambda i: f"there must be at least one thing to choose from; got {each[i]}")
        drawn = self._rows(a, each)
        if len(counts) == 1 and (a.p is None or a.table is self._shared):
            self._row = int(counts[0]), drawn[:1].copy()
        return drawn

    def _rows(self, a: Arguments, counts: np.ndarray) -> np.ndarray:
        if a.p is None:
            return rows(a, INDEX, counts)
        given = a.lengths("p")
        SampleErrors.where(counts != given, lambda i: f"there are {given[i]} probabilities for {counts[i]} choices")
        a.table = self._table(a.p) if self._shared is None else self._shared
        if self.values["p"] is not None and a.n and self._shared is None:
            self._shared = a.table[:1].copy()
        return rows(a, WEIGHTED, table=a.table)

    def _table(self, p: np.ndarray) -> np.ndarray:
        """Cumulative probabilities (n, k)."""
        p = p.astype("f8")
        bad = ((p < 0) | (p > 1) | np.isnan(p)).any(axis=1)
        SampleErrors.where(bad, lambda i: f"probabilities must be in [0, 1]; got {p[i].tolist()}")
        total = p.sum(axis=1)
        bad = np.abs(total - 1) >= _SUM_TOLERANCE
        SampleErrors.where(bad, lambda i: f"the probabilities must add up to 1; their sum is {total[i]:.6g}")
        table = np.cumsum(p, axis=1)
        # So that rounding of the sum can't select anything after the last option with a non-zero probability.
        table[table >= table[:, -1:]] = np.inf
        return table

    def _of_dense(self, x: Batch, index: np.ndarray, shape: tuple[int, ...]) -> Batch:
        n = len(index)
        if not x.spec.ndim:
            return Batch.from_array(index.astype(x.spec.dtype).reshape(n, *shape), sources=x.sources)
        values = self._values(x)
        chosen = values[np.arange(n)[:, None] if len(values) == n else 0, index].reshape(n, *shape, *values.shape[2:])
        return Batch.from_array(chosen, _layout(x.spec, chosen.ndim - 1), x.sources)

    def _of_ragged(self, x: Batch, index: list[np.ndarray], shapes: list[tuple[int, ...]]) -> Batch:
        samples = []
        for i, (chosen, shape) in enumerate(zip(index, shapes)):
            one = x.sample(i)[chosen] if x.spec.ndim else chosen.astype(x.spec.dtype)
            samples.append(one.reshape((*shape, *one.shape[1:])))
        return Batch.from_samples(samples, _layout(x.spec, samples[0].ndim if samples else 0), x.sources)


def _layout(spec: Spec, ndim: int) -> str:
    """The layout of the input, without its first axis for a single choice; "" if it does not fit."""
    if ndim == spec.ndim:
        return spec.layout
    return spec.layout[1:] if ndim == spec.ndim - 1 else ""
