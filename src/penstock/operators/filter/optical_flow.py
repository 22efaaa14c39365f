# SPDX-License-Identifier: Apache-2.0
"""Motion between frames, by the GPU's optical flow engine."""

from __future__ import annotations

import numpy as np

from ...core.batch import Spec
from ...core.dtypes import DALIImageType
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Operator

_COLORS = (DALIImageType.RGB, DALIImageType.BGR, DALIImageType.GRAY)


class OpticalFlow(Operator):
    """Computes the motion between the frames of a sequence, with the optical flow engine of NVIDIA GPUs (since Turing).

    Input: sequences (FHWC) of uint8 with three channels, or one with `image_type=types.GRAY`. F frames give F - 1
    output frames (FHWC, float): frame i contains, for the pixels of frame i + 1, the displacement (right, down) to the
    same point in frame i, in pixels and in multiples of 1/32. There is one vector for `output_grid` x `output_grid`
    pixels, so a side of n pixels has ceil(n / output_grid) vectors; displacements are always in pixels of the input.

    With `enable_external_hints`, the second input has initial vectors: F - 1 frames (FHWC, float) of ceil(n /
    hint_grid) vectors a side.

    If the GPU has no such engine, or the driver's library is missing, RuntimeError is raised when the pipeline is
    built.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> frames = np.zeros((3, 64, 96, 3), np.uint8)
    >>> @pipeline_def(batch_size=1, device_id=0)
    ... def pipe():
    ...     x = types.Constant(frames, layout="FHWC", device="gpu")
    ...     return fn.optical_flow(x, preset=1.0)
    >>> pipe().run()[0].as_cpu().at(0).shape
    (2, 16, 24, 2)
    """

    devices = ("gpu",)
    inputs = (1, 2)
    layouts = ("FHWC",)
    by_frame = False
    gpu_stage = "penstock.operators.filter.gpu.optical_flow:OpticalFlowStage"
    preset = Arg(
        float,
        0.0,
        "Trade-off between quality (0.0, the best) and speed (1.0, the fastest). There are three levels: below 0.375, "
        "below 0.75, and up to 1.",
    )
    output_grid = Arg(int, 4, "Side of the squares of pixels that share a vector: 1, 2 or 4; on Turing only 4.")
    output_format = Arg(int, None, "A former name of `output_grid`.", deprecated="use `output_grid`")
    hint_grid = Arg(int, 4, "Same for external hints: 1, 2, 4 or 8, at least `output_grid`; on Turing only 4.")
    enable_temporal_hints = Arg(
        bool, False, "Whether the search starts from the vectors of the previous frames of the sequence."
    )
    enable_external_hints = Arg(bool, False, "Whether the search starts from the vectors of the second input.")
    image_type = Arg(DALIImageType, DALIImageType.RGB, "Colour space of the frames: RGB, BGR or GRAY.")

    def setup(self) -> None:
        v = self.values
        if {"output_grid", "output_format"} <= self.given:
            raise ValueError("give `output_grid` only, not `output_format` as well")
        if not 0 <= v["preset"] <= 1:
            raise ValueError(f"preset={v['preset']:g} is not in [0, 1]")
        for name, value, accepted in (
            ("output_grid", self._grid(), (1, 2, 4)),
            ("hint_grid", v["hint_grid"], (1, 2, 4, 8)),
        ):
            if value not in accepted:
                raise ValueError(f"{name}={value} is not supported; supported: {', '.join(map(str, accepted))}")
        if v["enable_external_hints"] and v["hint_grid"] < self._grid():
            raise ValueError(
                f"hint_grid={v['hint_grid']} is less than output_grid={self._grid()}; it has to be as large"
            )
        if v["image_type"] not in _COLORS:
            raise ValueError(f"image_type={v['image_type'].name} is not supported; supported: RGB, BGR, GRAY")

    def n_outputs(self) -> int:
        if self.values["enable_external_hints"] and self.n_inputs < 2:
            raise ValueError("fn.optical_flow: enable_external_hints=True requires the hints as input 1")
        return 1

    def settings(self) -> tuple[int, int, int, bool, bool]:
        """The fields of gpu.optical_flow.Settings."""
        v = self.values
        level = 5 if v["preset"] < 0.375 else 10 if v["preset"] < 0.75 else 20
        hint_grid = v["hint_grid"] if v["enable_external_hints"] else 0
        image_type = v["image_type"]
        return self._grid(), hint_grid, level, image_type == DALIImageType.GRAY, image_type == DALIImageType.BGR

    def _grid(self) -> int:
        v = self.values
        return v["output_grid"] if v["output_format"] is None else v["output_format"]

    def plan(self, a: Arguments, x: Spec, *hints: Spec) -> None:
        if x.dtype.name != "uint8":
            raise TypeError(f"input type {x.dtype.name} is not supported; supported: uint8; fn.cast converts others")
        if x.ndim != 4:
            raise ValueError(f"the input has {x.ndim} dimensions; it takes sequences of frames (FHWC)")
        channels, wanted = x.shape[:, 3], 1 if a.image_type == DALIImageType.GRAY else 3
        SampleErrors.where(
            channels != wanted,
            lambda i: (
                f"{a.image_type.name} frames have {wanted} channel{'s' * (wanted > 1)}; got shape {x.shape[i].tolist()}"
            ),
        )
        SampleErrors.where(x.shape[:, 0] < 1, lambda i: "the sequence has no frames")
        if not a.enable_external_hints:
            return
        given = hints[0]
        if given.dtype.name != "float32" or given.ndim != 4:
            raise TypeError(f"hints are sequences (FHWC) of float; got {given.ndim} dimensions of {given.dtype.name}")
        shape = _vectors(x, a.hint_grid)
        SampleErrors.where(
            (given.shape != shape).any(axis=1),
            lambda i: (
                f"hints for frames of shape {x.shape[i].tolist()} with hint_grid={a.hint_grid} have the shape "
                f"{shape[i].tolist()}; got {given.shape[i].tolist()}"
            ),
        )

    def outputs(self, a: Arguments, x: Spec, *hints: Spec) -> Spec:
        return x.like(shape=_vectors(x, self._grid()), dtype=np.dtype("f4"), layout="FHWC")


def _vectors(x: Spec, grid: int) -> np.ndarray:
    """Shapes (n, 4) of the vectors of sequences."""
    n, height, width = x.shape[:, 0], x.shape[:, 1], x.shape[:, 2]
    return np.stack([n - 1, -(-height // grid), -(-width // grid), np.full_like(n, 2)], axis=1)
