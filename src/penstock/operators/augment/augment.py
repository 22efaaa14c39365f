# SPDX-License-Identifier: Apache-2.0
"""Automatic augmentation: one kernel applies different steps to each sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.dtypes import DALIInterpType
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, PerSample, Seeded
from ._steps import CHANNELS, CONTRAST, FLOATS, NAMES, PROBABILITY, STEPS, WARP, rows_of


class Augment(Seeded):
    """Applies augmentation steps, drawn at random or given, to each image. `penstock.auto_aug` creates this operator.

    `table` has one row for each way to change an image: for each item and each of `bins` magnitudes, one row for the
    positive and one for the negative sign. An item, a bin and a sign are drawn for each of `stages`; with `policies`,
    the items are groups of `stages` consecutive ones, and one group is drawn for the sample. A step is applied with the
    probability stored in its row. If `item` and `bin` are given, nothing is drawn; `bin` is twice the magnitude's
    index, plus one for the negative sign. Alternatively, `kind` names a single way and `parameter` has its values.
    Images must be uint8; the output has the same shape. Contrast requires one or three channels, colour requires three.
    All frames of a sequence are changed in the same way.

    >>> from penstock import pipeline_def, types
    >>> from penstock.auto_aug import augmentations
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     x = types.Constant(np.uint8([[[10, 200, 255]]]), layout="HWC")
    ...     return augmentations.posterize(x, magnitude_bin=4, num_magnitude_bins=5)
    >>> pipe().run()[0].at(0).tolist()
    [[[0, 192, 240]]]
    """

    traced = False
    module = "_auto_aug"
    layouts = ("HWC", "FHWC")
    kernel = "augment/augment"
    table = Arg(object, None, "The ways to change an image, an array of rows; see `_steps.py`.")
    stages = Arg(int, 1, "Number of steps per sample.")
    bins = Arg(int, 1, "Number of magnitudes of each item in the table.")
    policies = Arg(bool, False, "Whether the items of all stages are drawn together.")
    item = PerSample([int], None, "Index of the item for each stage.")
    bin = PerSample([int], None, "Signed magnitude for each stage; see above.")
    kind = Arg(str, None, "Name of the single way to change images.")
    parameter = PerSample([float], None, "Values of the way named by `kind`.")
    shape = PerSample([float], None, "Height and width of the image, for translations relative to them.")
    fill_value = Arg(float, None, "Value outside the image. By default the border is repeated.")
    interp_type = Arg(DALIInterpType, DALIInterpType.INTERP_LINEAR, "INTERP_LINEAR or INTERP_NN.")

    def setup(self) -> None:
        v = self.values
        self.array = np.asarray(() if v["table"] is None else v["table"], "f4").reshape(-1, FLOATS)
        if v["interp_type"] not in (DALIInterpType.INTERP_LINEAR, DALIInterpType.INTERP_NN):
            raise ValueError(f"interp_type={v['interp_type']!r} is not supported; supported: INTERP_LINEAR, INTERP_NN")
        kinds = set(self.array[:, 0].astype(int).tolist())
        if v["kind"] is not None:
            kinds.add(STEPS[v["kind"]][0])
        self.channels = {k: n for k, n in CHANNELS.items() if k in kinds}
        self.relative = (
            bool((self.array[:, 8] != 0)[self.array[:, 0] == WARP].any()) or v["kind"] == "translate_relative"
        )
        items = len(self.array) // (2 * v["bins"])
        self.choices = items // v["stages"] if v["policies"] else items
        self.certain = bool((self.array[:, PROBABILITY] == 1).all())

    def plan(self, a: Arguments, x: Spec) -> None:
        if x.dtype != np.uint8:
            raise TypeError(f"images are uint8, got {x.dtype.name}; convert them first (fn.cast)")
        channels = x.shape[:, -1]
        for kind, accepted in self.channels.items():
            what = f"{NAMES[kind]} needs {' or '.join(map(str, accepted))} channels, got "
            SampleErrors.where(~np.isin(channels, accepted), lambda i, what=what: f"{what}{channels[i]}")
        if self.relative and (a.shape is None or a.shape.shape[1] < 2):
            raise ValueError("a translation relative to the size of the image needs `shape`, its height and width")
        if a.parameter is not None:
            a.steps = rows_of(self.values["kind"], a.parameter)
            return
        a.steps = self._given(a) if a.item is not None else self._drawn(a)

    def _given(self, a: Arguments) -> np.ndarray:
        rows = a.item * (2 * self.values["bins"])
        if a.bin is not None:
            rows = rows + a.bin
        bad = ((rows < 0) | (rows >= len(self.array))).any(axis=1)
        SampleErrors.where(bad, lambda i: f"item {a.item[i].tolist()} with bin {a.bin[i].tolist()} is out of range")
        return self.array[rows]

    def _drawn(self, a: Arguments) -> np.ndarray:
        """The drawn steps (n, stages, FLOATS)."""
        stages, bins = self.values["stages"], self.values["bins"]
        bits = a.random.bits(3 * stages + 1).astype("u8")
        if self.values["policies"]:
            rows = _choose(bits[:, -1:], self.choices) * stages + np.arange(stages)
        else:
            rows = _choose(bits[:, :stages], self.choices)
        # The sign is the lowest bit of the word whose highest bits determine the bin.
        word = bits[:, stages : 2 * stages]
        rows = (rows * bins + _choose(word, bins)) * 2 + (word & np.uint64(1)).astype("i8")
        steps = self.array[rows]
        if not self.certain:
            u = bits[:, 2 * stages : 3 * stages].astype("f8") * 2.0**-32
            steps[..., 0] *= u < steps[..., PROBABILITY]
        return steps

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        return x.like()

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        fill, counts = self.values["fill_value"], (a.steps[..., 0] >= CONTRAST).any(axis=0)
        return {
            "steps": a.steps,
            "n_steps": a.steps.shape[1],
            "fill": 0.0 if fill is None else fill,
            "clamp": fill is None,
            "linear": self.values["interp_type"] == DALIInterpType.INTERP_LINEAR,
            "shape": np.zeros((1, 2), "f4") if a.shape is None else a.shape[:, :2],
            "image_bytes": int(x.volumes().max(initial=0)) + 15 & ~15,
            "channels": int(x.shape[:, -1].max(initial=1)),
            "counted": int(counts @ (1 << np.arange(len(counts)))),
        }


def _choose(bits: np.ndarray, n: int) -> np.ndarray:
    """Integers below n from 32-bit words, uniform up to a relative error of 2^-32 n."""
    return ((bits * np.uint64(n)) >> np.uint64(32)).astype("i8")
