# SPDX-License-Identifier: Apache-2.0
"""Shapes of encoded images."""

from __future__ import annotations

from ...core.batch import Batch
from ...core.dtypes import DALIDataType, DALIImageType, to_numpy
from ...core.op import Arg, Arguments, Operator
from ._headers import read_headers

_TYPES = ("INT32", "UINT32", "INT64", "UINT64", "FLOAT", "FLOAT64")


class PeekImageShape(Operator):
    """Reads the shape (height, width, channels) of encoded images from their headers, without decoding them.

    The shape is that of the output of `decoders.image` with the same orientation and colour space.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> file = np.frombuffer(b"P5 3 1 255 abc", np.uint8)
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.peek_image_shape(types.Constant(file))
    >>> pipe().run()[0].at(0).tolist()
    [1, 3, 3]
    """

    experimental = True
    is_prompt = True

    dtype = Arg(DALIDataType, DALIDataType.INT64, f"Type of the output, one of {', '.join(_TYPES)}.")
    adjust_orientation = Arg(bool, True, "Whether to return the shape after the EXIF orientation is applied.")
    image_type = Arg(
        DALIImageType, DALIImageType.RGB, "Colour space, which sets the number of channels; ANY_DATA: as stored."
    )

    def setup(self) -> None:
        if self.values["dtype"].name not in _TYPES:
            raise ValueError(
                f"fn.peek_image_shape: dtype={self.values['dtype'].name} is not supported; "
                f"supported: {', '.join(_TYPES)}"
            )

    def run(self, a: Arguments, *inputs: Batch) -> Batch:
        _, shape = read_headers(inputs[0], a.image_type, a.adjust_orientation)
        return Batch.from_array(shape.astype(to_numpy(a.dtype), copy=False))
