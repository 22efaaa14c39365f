# SPDX-License-Identifier: Apache-2.0
"""Systematic cases: element types x layouts x arguments, arguments also per sample and per frame."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from deviations import Either
from harness import Case, Column, full_shape, random_array
from penstock.core.op import Arg

SIZES = ((5, 4), (1, 1), (33, 17), (8, 67), (40, 50))


@dataclass
class Recipe:
    """Types x layouts x arguments, and single cases in `more`."""

    types: Sequence[str]
    layouts: Sequence[str]
    args: Sequence[dict[str, Any]]
    more: Sequence[tuple[str, str, dict[str, Any]]] = ()
    channels: int = 3
    sizes: Sequence[tuple[int, ...]] = SIZES
    steps: float = 0
    ulps: float = 16
    vary: dict[str, Callable[[np.random.Generator, Any], Any]] = field(default_factory=dict)  # argument per sample
    data_shape: dict[str, Callable[[Any], tuple[int, ...]]] = field(default_factory=dict)  # of an argument that is data
    extra_inputs: Callable[[np.random.Generator, int], list[list[np.ndarray]]] | None = None
    differs: dict[str, str | Either] = field(
        default_factory=dict
    )  # part of a case's id -> why the difference is deliberate


def cases(recipe: Recipe, schema: dict[str, Arg]) -> Iterator[Case]:
    product = [(t, lay, a) for t, lay, a in itertools.product(recipe.types, recipe.layouts, recipe.args)]
    for dtype, layout, args in [*product, *recipe.more]:
        yield Case(dtype, layout, args)
        varied = {k: _column(recipe, schema[k], v) for k, v in args.items() if k in schema and _can_vary(schema[k], v)}
        if varied:
            yield Case(dtype, layout, {**args, **varied})
        frames = {
            k: Column(c.make, c.shape, True, c.text.replace("sample", "frame"))
            for k, c in varied.items()
            if schema[k].per_frame
        }
        if frames and layout.startswith("F"):
            yield Case(dtype, layout, {**args, **varied, **frames})


def _can_vary(arg: Arg, value: Any) -> bool:
    return arg.tensor and not isinstance(value, (str, Column)) and arg.type in (float, int)


def _column(recipe: Recipe, arg: Arg, value: Any) -> Column:
    """Values around `value`, per sample."""
    flat = np.shape(value)
    shape = recipe.data_shape[arg.name](value) if arg.name in recipe.data_shape else flat
    own = recipe.vary.get(arg.name)

    def make(rng: np.random.Generator, s: tuple[int, ...]) -> np.ndarray:
        outer = s[: len(s) - len(shape)]  # a frame axis, if there is one
        if own is not None:
            values = [own(rng, value) for _ in range(int(np.prod(outer)))]
            return np.asarray(values, arg.column_type).reshape(s)
        base = np.broadcast_to(np.asarray(value, "f8").reshape(shape), s)
        if arg.type is int:
            is_flag = (base >= 0) & (base <= 1)
            return np.where(is_flag, rng.integers(0, 2, s), base + rng.integers(-1, 2, s)).astype("i4")
        return (base * rng.uniform(0.75, 1.25, s)).astype("f4")

    text = f"{value}/sample".replace(" ", "")
    return Column(make, shape, False, text)


def data(recipe: Recipe, case: Case) -> tuple[list[np.ndarray], list[list[np.ndarray]], dict[str, list[np.ndarray]]]:
    """The samples, further inputs and per-sample arguments of a case."""
    rng = np.random.default_rng(5)
    shapes = [full_shape(case.layout, hw, recipe.channels, i) for i, hw in enumerate(recipe.sizes)]
    samples = [random_array(rng, s if case.layout else (*s, 3)[:3], case.dtype) for s in shapes]
    if np.dtype(case.dtype).kind == "f":
        samples = [(s * 2 - 0.5).astype(case.dtype) for s in samples]
    columns = {}
    for k, v in case.kwargs.items():
        if isinstance(v, Column):
            columns[k] = [v.make(rng, (len(s), *v.shape) if v.per_frame else v.shape) for s in samples]
    extra = recipe.extra_inputs(np.random.default_rng(3), len(samples)) if recipe.extra_inputs else []
    return samples, extra, columns


def within(lo: float, hi: float) -> Callable[[np.random.Generator, Any], Any]:
    """An argument that is uniform per sample."""
    return lambda rng, value: rng.uniform(lo, hi, np.shape(value))
