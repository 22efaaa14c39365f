# SPDX-License-Identifier: Apache-2.0
"""Transforms one after the other."""

from ...core.batch import Batch
from ...core.op import Arg, Arguments, Operator
from ._transform import as_batch, compose, matrices


class Combine(Operator):
    """The transform that applies those of the inputs one after the other, the first input first.

    Inputs are transforms, float32 (d, d + 1), all of one shape. Where one of them is a sequence of transforms, the
    output is a sequence, and inputs that are none count for each of its frames.

    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     t = fn.transforms
    ...     return t.combine(t.translation(offset=[1, 2]), t.scale(scale=[2, 2]))
    >>> pipe().run()[0].at(0).tolist()
    [[2.0, 0.0, 2.0], [0.0, 2.0, 4.0]]
    """

    module = "transforms"
    devices = ("cpu",)
    inputs = (2, 99)
    runs_frames = True
    reverse_order = Arg(bool, False, "Applies the last input first.")

    def run(self, a: Arguments, *inputs: Batch) -> Batch:
        transforms = [matrices(x, f"input {i}") for i, x in enumerate(inputs)]
        shapes = {t.shape[1:] for t in transforms}
        if len(shapes) > 1:
            raise ValueError(f"all transforms need the same shape; got {sorted(shapes)}")
        if self.values["reverse_order"]:
            transforms.reverse()
        product = transforms[0]
        for t in transforms[1:]:
            product = compose(t, product)
        return as_batch(product)
