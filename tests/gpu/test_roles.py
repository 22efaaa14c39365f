# SPDX-License-Identifier: Apache-2.0
"""The roles of fields declared by kernels are respected when launches are selected: otherwise these results would be
wrong."""

import numpy as np
import pytest
from segments import Segment, Step
from test_resample_gpu import LINEAR, three

from penstock.core.batch import Spec
from penstock.gpu import forms

RNG = np.random.default_rng(8)


def images(*shape, dtype="u1"):
    return [RNG.integers(0, 200, shape).astype(dtype) for _ in range(2)]


def spec(*shape, dtype="u1"):
    return Spec.uniform(2, shape, np.dtype(dtype), "HWC")


def window(start, origin=(0, 0, 0), extent=(6, 9, 3), border=0):
    columns = {"start": start, "origin": origin, "extent": extent}
    columns = {k: np.tile(np.int64(v), (2, 1)) for k, v in columns.items()}
    return {**columns, "border": border, "channels": -1, "fill": np.float32([[7]])}


def shifted_channels(**where):
    """A window with the same number of channels, but shifted: a pixel can't be moved as a whole."""
    steps = [Step("color/linear", [1], [0], {"mul": 0.5, "add": 3}), Step("geometry/window", [2], [1], window(**where))]
    return Segment(steps, {0: spec(6, 9, 3), 1: spec(6, 9, 3), 2: spec(6, 9, 3)}, {0: images(6, 9, 3)}, {2})


def resampled(columns, to, *more, specs):
    x = {"roi_start": three([[0, 0, 0]] * 2), "min_filter": LINEAR, "mag_filter": LINEAR, "antialias": 1, **columns}
    steps = [Step("resample/resample", [1], [0], x), *more]
    return Segment(steps, specs, {0: images(*specs[0].shape[0])}, {to})


def reflected_border():
    """Neighbours after a resampling are not neighbours in its input, so the two can't share tiles."""
    columns = {"roi_end": three([[20.0, 30.0]] * 2), "in_size": three([[20, 30]] * 2)}
    columns |= {"out_size": three([[6, 9]] * 2), "first_axis": 0, "n_axes": 2}
    behind = Step("geometry/window", [2], [1], window((-4, -6, 0), border=1))
    return resampled(columns, 2, behind, specs={0: spec(20, 30, 3), 1: spec(6, 9, 3), 2: spec(13, 20, 3)})


def resampled_channels():
    """Channels computed from other channels are not a unit."""
    columns = {"roi_end": three([[6.0, 9, 4]] * 2), "in_size": three([[6, 9, 4]] * 2)}
    columns |= {"out_size": three([[5, 4, 3]] * 2), "first_axis": 0, "n_axes": 3}
    return resampled(columns, 1, specs={0: spec(6, 9, 4), 1: spec(5, 4, 3)})


CASES = {
    "begin": lambda: shifted_channels(start=(0, 0, 1)),
    "border": reflected_border,
    "first_axis": resampled_channels,
}


@pytest.mark.parametrize("role", CASES)
def test_as_on_the_cpu(role):
    CASES[role]().check(1)


@pytest.mark.parametrize("role", CASES)
def test_without_it_another_launch_is_chosen(role, monkeypatch):
    """So the role matters in the case above."""
    right = [x.source for x in CASES[role]().launches()[1]]
    described = forms.described
    monkeypatch.setattr(forms, "described", lambda kernel: described(kernel)._replace(**{role: ""}))
    assert [x.source for x in CASES[role]().launches()[1]] != right
