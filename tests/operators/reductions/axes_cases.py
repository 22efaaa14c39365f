# SPDX-License-Identifier: Apache-2.0
"""The cases that all reductions share: types, layouts, axes, shapes."""

from dataclasses import dataclass

import numpy as np

from harness import Case

TYPES = ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4")
AXES = [
    {},
    {"axes": [0]},
    {"axes": [1], "keep_dims": True},
    {"axes": 2},
    {"axes": [1, 0]},
    {"axes": [0, 2]},
    {"axis_names": "WC"},
    {"axis_names": "C", "keep_dims": True},
    {"axes": [-1, 0], "keep_dims": True},
]
ERRORS = [
    ({"axes": [0], "axis_names": "H"}, ValueError, "'axes' and 'axis_names' exclude each other"),
    ({"axes": [1, 1]}, ValueError, "has an axis twice"),
    ({"axes": [1, -2]}, RuntimeError, "has an axis twice"),
    ({"axes": [3]}, RuntimeError, r"Axis index out of range: 3 of 'axes' not in range"),
    ({"axes": [-4]}, RuntimeError, r"Axis index out of range: -4 of 'axes' not in range"),
    ({"axis_names": "HX"}, RuntimeError, "Axis 'X' is not present in the input layout 'HWC'"),
]
# Many axes, some of them reduced; long rows; one axis; many short rows.
SHAPES = {
    "many": ([(2, 3, 1, 4, 2, 5), (1, 2, 3, 2, 3, 2)], [{"axes": [0, 2, 4]}, {"axes": [1, 3, 5]}, {"axes": [2, 3]}]),
    "wide": ([(7, 1030), (3, 64), (300, 50)], [{"axes": [0]}, {"axes": [1]}, {}]),
    "flat": ([(1,), (70001,), (5,), (197,)], [{}, {"axes": [0], "keep_dims": True}]),
    "stacks": ([(5, 70, 5), (2, 3, 7), (4, 100, 6)], [{"axes": [1]}, {"axes": [0, 1]}, {"axes": [2]}]),
}
NO_AXES = {"axes": []}


@dataclass
class ShapedCase(Case):
    """Samples with the shapes SHAPES[name]."""

    name: str = ""

    @property
    def id(self) -> str:
        return f"{self.name}-{super().id}"


def photographs(types=TYPES, args=()):
    """Every type with every way to specify axes, and with `args`, which are pairs of types and arguments."""
    cases = [Case(dtype, "HWC", dict(axes)) for dtype in types for axes in AXES]
    return cases + [Case(d, "HWC", dict(more)) for dtypes, more in args for d in dtypes]


def shapes(types=("u1", "f4", "i2", "i8")):
    """Every kind of shape; types alternate."""
    found = []
    for i, (name, (_, ways)) in enumerate(SHAPES.items()):
        for j, axes in enumerate(ways):
            found += [ShapedCase(dtype, "", dict(axes), name) for dtype in types[(i + j) % 2 :: 2]]
    return found


def shaped_input(rng, case):
    """Samples of both signs whose sums and squares fit into 64 bits."""
    made = (
        SHAPES[case.name][0]
        if isinstance(case, ShapedCase)
        else [(5, 4, 3), (1, 1, 3), (0, 4, 3), (33, 17, 3), (8, 67, 3)]
    )
    if np.dtype(case.dtype).kind == "f":
        return [rng.normal(3, 100, s).astype(case.dtype) for s in made]
    info = np.iinfo(case.dtype)
    lo, hi = max(info.min, -(2**23)), min(info.max, 2**23)
    return [rng.integers(lo, hi, s, endpoint=True).astype(case.dtype) for s in made]


def axes_of(ndim, axes=None, axis_names=None, layout="HWC"):
    """The reduced axes as a tuple."""
    if axis_names is not None:
        return tuple(layout.find(c) for c in axis_names)
    return (
        tuple(range(ndim))
        if axes is None
        else tuple(a + ndim * (a < 0) for a in np.atleast_1d(np.array(axes, int)).tolist())
    )


def count_of(x, axes):
    """Number of elements reduced to one."""
    return int(np.prod([x.shape[a] for a in axes], dtype="i8"))


def near_means(case):
    """An approximate mean for each sample of `shaped_input`, with the output's shape."""
    kwargs = {k: v for k, v in case.kwargs.items() if k in ("axes", "axis_names")}
    found = []
    for x in shaped_input(np.random.default_rng(7), case):
        along = axes_of(x.ndim, **kwargs)
        if len(set(along)) < len(along) or not set(along) <= set(range(x.ndim)):  # cases of errors
            found.append(np.zeros(1, "f4"))
            continue
        total = x.sum(axis=along, keepdims=case.kwargs.get("keep_dims", False), dtype="f8")
        found.append(np.asarray(total / max(count_of(x, along), 1) + 0.25, "f4"))
    return found
