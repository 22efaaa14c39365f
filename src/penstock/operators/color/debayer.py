# SPDX-License-Identifier: Apache-2.0
"""Converts the Bayer pattern of a sensor to colours."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Operator, PerFrame

# enum DebayerAlgorithm of the kernel.
_ALGORITHMS = {"bilinear_ocv": 0, "edgeaware_ocv": 1, "gray_ocv": 2, "default_npp": 3, "vng_ocv": 4}


class Debayer(Operator):
    """Converts raw sensor images with a Bayer pattern (tiles of 2 x 2) to RGB.

    Images are HW, or HWC with one channel, uint8 or uint16, with an even height and width; the output is HWC. A missing
    red or blue value is the mean of the two or four nearest elements of that colour. `algorithm` selects how green is
    computed:

    * `bilinear_ocv`: the mean of the four neighbours; the default on the CPU;
    * `edgeaware_ocv`: the mean of the two vertical or the two horizontal neighbours, whichever differ less;
    * `vng_ocv`: variable number of gradients, uint8 only. The missing colours are the element's own value plus their
      mean difference from it along those of the eight directions in which the image changes least. The border is
      mirrored. Images of less than 8 rows or columns are computed as with `bilinear_ocv`;
    * `default_npp`: the mean of the two neighbours along the direction in which the element's own colour, two elements
      away, differs less, or of all four if both differ equally. The border is mirrored (`dcb|abcd|cba`). The default on
      the GPU;
    * `gray_ocv`: returns one channel, the luma of the bilinear colours (0.299 R + 0.587 G + 0.114 B).

    With the other OpenCV algorithms, the outermost rows and columns repeat their inner neighbours, and images of 2 rows
    or columns, which have no inner ones, are black. All algorithms run on the CPU and the GPU.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     mosaic = np.tile(np.uint8([[200, 100], [100, 50]]), (2, 2))  # red 200, green 100, blue 50
    ...     return fn.debayer(types.Constant(mosaic, layout="HW"), blue_position=[0, 0])
    >>> pipe().run()[0].at(0)[1, 2].tolist()
    [200, 100, 50]
    """

    kernel = "color/debayer"
    layouts = ("HW", "HWC", "FHW", "FHWC")
    experimental = True
    blue_position = PerFrame(
        [int],
        doc="Row and column of blue in the 2 x 2 tile that begins at the second row and column of the image: [0, 0] "
        "is BGGR, [0, 1] GBRG, [1, 0] GRBG, [1, 1] RGGB.",
    )
    algorithm = Arg(str, None, f"One of {', '.join(_ALGORITHMS)}; see above.")

    @classmethod
    def expand(cls, inputs: tuple, kwargs: dict[str, Any], call: Callable[..., Any]) -> Any:
        device = kwargs.get("device") or next((getattr(x, "device", "cpu") for x in inputs), "cpu")
        if device == "gpu" and kwargs.get("algorithm") is None:
            return call(cls, inputs, {**kwargs, "algorithm": "default_npp"})
        return None

    def setup(self) -> None:
        name = self.values["algorithm"]
        if name is not None and name not in _ALGORITHMS:
            raise ValueError(f"algorithm='{name}' is not known; known are {', '.join(_ALGORITHMS)}")

    def plan(self, a: Arguments, x: Spec) -> None:
        if x.dtype.name not in ("uint8", "uint16"):
            raise TypeError(f"input type {x.dtype.name} is not supported; supported: uint8, uint16")
        if a.algorithm == "vng_ocv" and x.dtype.name != "uint8":
            raise TypeError(
                f"VNG debayering only supported with UINT8, got {x.dtype.name}; 'edgeaware_ocv' takes uint16"
            )
        if x.ndim not in (2, 3):
            raise ValueError(f"input 0 has {x.ndim} dimensions; images are HW, or HWC with one channel")
        if x.ndim == 3:
            SampleErrors.where(
                x.shape[:, 2] != 1,
                lambda i: f"the image has {x.shape[i, 2]} channels; a sensor's mosaic has one (HW or HWC)",
            )
        SampleErrors.where(
            (x.shape[:, :2] % 2 != 0).any(axis=1),
            lambda i: f"the image of shape {x.shape[i, :2].tolist()} must have an even height and width",
        )
        if a.blue_position.shape[1] not in (1, 2):
            raise ValueError(f"argument 'blue_position' takes row and column, got {a.blue_position.shape[1]} values")
        a.blue = np.broadcast_to(a.blue_position, (x.n, 2))
        SampleErrors.where(
            ((a.blue < 0) | (a.blue > 1)).any(axis=1),
            lambda i: f"`blue_position` must lie in a tile of 2 x 2, got {a.blue[i].tolist()}",
        )

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        channels = np.full((x.n, 1), 1 if a.algorithm == "gray_ocv" else 3)
        return x.like(shape=np.concatenate([x.shape[:, :2], channels], axis=1), layout="HWC")

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        # The kernel takes the position of red, which is diagonal to blue. It equals `blue_position`, as this counts
        # from the second row and column.
        return {"algorithm": _ALGORITHMS[a.algorithm or "bilinear_ocv"], "row": a.blue[:, 0], "column": a.blue[:, 1]}
