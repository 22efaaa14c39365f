# SPDX-License-Identifier: Apache-2.0
"""Base of image decoders: arguments, reading of headers, the window to decode."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ...core.batch import Spec
from ...core.dtypes import DALIDataType, DALIImageType, to_numpy
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Operator
from ._headers import read_headers

_TYPES = ("UINT8", "INT8", "UINT16", "INT16", "UINT32", "INT32", "FLOAT")
_NO_EFFECT = "Accepted for compatibility."
_REMOVED = "it was removed and has no effect"


class Decoder(Operator, abstract=True):
    """Decodes a window of an image, which `place` selects."""

    traced = False
    module = "decoders"
    kernel = "decode/decode"
    gpu_stage = "penstock.operators.decode.gpu.decoding:Decoding"
    devices = ("cpu", "mixed")
    windowed = "HW"
    peeks: ClassVar[tuple[int, ...]] = (0,)
    experimental = True

    output_type = Arg(
        DALIImageType,
        DALIImageType.RGB,
        "Colour space of the output: RGB, BGR, GRAY, YCbCr (ITU-R BT.601, 16..235 and 16..240), or ANY_DATA for the "
        "channels as stored (palettes are resolved, YCbCr of JPEG is converted to RGB). Only ANY_DATA keeps alpha.",
    )
    dtype = Arg(
        DALIDataType,
        DALIDataType.UINT8,
        f"Type of the output, one of {', '.join(_TYPES)}. Values are scaled so that the largest value of the file "
        "becomes the largest of the type, 1.0 for FLOAT.",
    )
    adjust_orientation = Arg(bool, True, "Whether to rotate and flip the image according to its EXIF orientation.")
    use_fast_idct = Arg(bool, False, "Decodes JPEG with libjpeg's less exact integer DCT. It is not faster here.")
    jpeg_fancy_upsampling = Arg(
        bool, False, "Has no effect: as in DALI, chroma of JPEG is always interpolated on the CPU."
    )
    max_pixels = Arg(
        int,
        1 << 28,
        "Maximum number of pixels (height x width). Images with more according to their header are rejected before "
        "memory is allocated.",
        bits=64,
    )
    affine = Arg(bool, True, _NO_EFFECT, hidden=True)
    device_memory_padding = Arg(int, 16777216, _NO_EFFECT, hidden=True)
    device_memory_padding_jpeg2k = Arg(int, 0, _NO_EFFECT, hidden=True)
    host_memory_padding = Arg(int, 8388608, _NO_EFFECT, hidden=True)
    host_memory_padding_jpeg2k = Arg(int, 0, _NO_EFFECT, hidden=True)
    hw_decoder_load = Arg(
        float,
        0.65,
        "A value above 0 allows the use of the GPU's hardware JPEG engine. The engine leaves the multiprocessors to "
        "training, but its pixels differ from those of the CPU, and which images it decodes depends on measured "
        "speeds, so results differ between runs. By default, or with 0, all pixels are those of the CPU, the same in "
        "every run.",
    )
    hybrid_huffman_threshold = Arg(int, 1000000, _NO_EFFECT, hidden=True)
    memory_stats = Arg(bool, False, _NO_EFFECT, hidden=True, deprecated=_REMOVED)
    preallocate_height_hint = Arg(int, 0, _NO_EFFECT, hidden=True)
    preallocate_width_hint = Arg(int, 0, _NO_EFFECT, hidden=True)
    split_stages = Arg(bool, False, _NO_EFFECT, hidden=True, deprecated=_REMOVED)
    use_chunk_allocator = Arg(bool, False, _NO_EFFECT, hidden=True, deprecated=_REMOVED)

    def setup(self) -> None:
        if self.values["dtype"].name not in _TYPES:
            raise ValueError(
                f"{self.display_name()}: dtype={self.values['dtype'].name} is not supported; "
                f"supported: {', '.join(_TYPES)}"
            )
        self.type = to_numpy(self.values["dtype"])
        if self.values["max_pixels"] < 1:
            raise ValueError(
                f"{self.display_name()}: max_pixels takes a positive number, got {self.values['max_pixels']}"
            )

    def mixed_on_cpu(self) -> bool:
        # Pixels of the JPEG engine differ from those of the kernels and the CPU, and its share of the pictures depends
        # on measured speed: it is used only if `hw_decoder_load` was given.
        return not ("hw_decoder_load" in self.given and self.values["hw_decoder_load"] > 0)

    def plan(self, a: Arguments, *inputs: Spec) -> None:
        a.info, a.whole = read_headers(a.batches[0], a.output_type, a.adjust_orientation, a.max_pixels, a.native)
        a.scale = self.scale(a, a.info)
        if a.scale is not None:
            a.whole[:, :2] = -(-a.whole[:, :2] // a.scale[:, None])
        a.height, a.width = a.whole[:, 0], a.whole[:, 1]
        a.y = a.x = 0
        a.h, a.w = a.height, a.width
        self.place(a)

    def scale(self, a: Arguments, info: np.ndarray) -> np.ndarray | None:
        """Denominators (n,), 1, 2, 4 or 8, for downscaling JPEG in the DCT domain. None: 1 for all."""
        return None

    def place(self, a: Arguments) -> None:
        """Sets the window `a.y`, `a.x`, `a.h`, `a.w`, each (n,) or a number. By default, the whole image."""

    def outputs(self, a: Arguments, *inputs: Spec) -> Spec:
        shape = a.whole
        if a.h is not a.height or a.w is not a.width:
            shape = shape.copy()
            shape[:, 0], shape[:, 1] = a.h, a.w
        return Spec(shape, self.type, "HWC")

    def params(self, a: Arguments, *specs: Spec) -> dict[str, Any]:
        out = specs[-1]
        return {
            "y": out.origin[:, 0] if a.h is a.height else a.y + out.origin[:, 0],
            "x": out.origin[:, 1] if a.w is a.width else a.x + out.origin[:, 1],
            **{k: a.info[k] for k in ("format", "height", "width", "orientation")},
            "output_type": a.output_type,
            "scale_denom": 1 if a.scale is None else a.scale,
            "fancy_upsampling": 1,
            "fast_idct": a.use_fast_idct,
        }

    def refuse_outside(self, a: Arguments) -> None:
        """Raises SampleErrors for windows that exceed the image."""
        bad = (a.y < 0) | (a.x < 0) | (a.h < 0) | (a.w < 0) | (a.y + a.h > a.height) | (a.x + a.w > a.width)
        SampleErrors.where(
            bad,
            lambda i: (
                f"the window [{a.y[i]}..{a.y[i] + a.h[i]}, {a.x[i]}..{a.x[i] + a.w[i]}] (height, width) is not inside "
                f"the image of {a.height[i]} x {a.width[i]} pixels"
            ),
        )
