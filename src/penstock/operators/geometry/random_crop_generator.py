# SPDX-License-Identifier: Apache-2.0
"""Random crop windows for images of known size."""

from __future__ import annotations

import numpy as np

from ...core.batch import Batch
from ...core.errors import SampleErrors
from ...core.kernels import library
from ...core.op import Arguments, Seeded
from ...core.rows import allocate
from ._random_window import RandomWindow

_INT32 = np.dtype("i4")


class RandomCropGenerator(Seeded, RandomWindow):
    """Generates a random crop window for an image of a given shape, as in `random_resized_crop`.

    Input: a vector of integers that begins with height and width, for example the output of `peek_image_shape`.
    Outputs: the window's anchor (y, x) and shape (height, width), int32, for `slice` or `decoders.image_slice`.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=1, seed=1)
    ... def pipe():
    ...     return tuple(fn.random_crop_generator(types.Constant([200, 300, 3]), random_area=[0.25, 0.5]))
    >>> anchor, shape = (x.at(0) for x in pipe().run())
    >>> bool((anchor >= 0).all() and (anchor + shape <= [200, 300]).all() and shape.prod() < 31000)
    True
    """

    is_prompt = True

    def setup(self) -> None:
        super().setup()
        self.area_and_ratio = [r.tobytes() for r in self._ranges]

    def n_outputs(self) -> int:
        return 2

    def run(self, a: Arguments, x: Batch) -> tuple[Batch, Batch]:
        spec = x.spec
        if spec.dtype.kind not in "iu":
            raise TypeError(f"image shapes must be integers; got {spec.dtype.name}; fn.cast them")
        if spec.ndim != 1:
            raise ValueError(f"an image shape must be a vector (height, width, ...); got {spec.ndim} dimensions")
        SampleErrors.where(
            spec.shape[:, 0] < 2,
            lambda i: f"an image shape needs height and width; got {spec.shape[i, 0]} values",
        )
        (anchor, at_anchor), (shape, at_shape) = (allocate((a.n, 2), _INT32) for _ in range(2))
        if library().windows_of_shapes(
            *a.random.columns(), a.n, x.rows_address, *self.area_and_ratio, a.num_attempts, at_anchor, at_shape
        ):
            sizes = np.array([x.sample(i)[:2] for i in range(a.n)]).astype("i8")
            SampleErrors.where((sizes < 0).any(axis=1), lambda i: f"negative height or width: {sizes[i].tolist()}")
        return Batch.from_array(anchor), Batch.from_array(shape)
