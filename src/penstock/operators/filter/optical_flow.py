# SPDX-License-Identifier: Apache-2.0
"""Optical flow, which is refused."""

from ...core.batch import Spec
from ...core.dtypes import DALIImageType
from ...core.op import Arg, Arguments, Operator


class OpticalFlow(Operator):
    """Motion between the frames of a sequence (FHWC), by the GPU's optical flow engine: not supported.

    The engine is reached through a library of NVIDIA's Optical Flow SDK that this library does not drive. The operator
    takes DALI's arguments and is refused with a NotImplementedError when the pipeline is defined, so that a program
    fails in its first second and at the line that has to change.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1, device_id=0)
    ... def pipe():
    ...     x = types.Constant(np.zeros((2, 64, 64, 3), "u1"), layout="FHWC", device="gpu")
    ...     return fn.optical_flow(x)
    >>> try:
    ...     pipe()
    ... except NotImplementedError as e:
    ...     print("refused")
    refused
    """

    devices = ("gpu",)
    inputs = (1, 2)
    layouts = ("FHWC",)
    frames = False
    preset = Arg(float, 0.0, "Speed and quality: 0.0, 0.5 or 1.0, the fastest.", hidden=True)
    output_grid = Arg(int, 4, "How many pixels each way have a common vector.", hidden=True)
    output_format = Arg(int, None, "An old name.", deprecated="use output_grid")
    hint_grid = Arg(int, 4, "The same for hints.", hidden=True)
    enable_temporal_hints = Arg(bool, False, "Whether the flow before is a hint.", hidden=True)
    enable_external_hints = Arg(bool, False, "Whether a second input has hints.", hidden=True)
    image_type = Arg(DALIImageType, DALIImageType.RGB, "Colours of the frames.", hidden=True)

    def setup(self) -> None:
        raise NotImplementedError(
            "fn.optical_flow is not supported: this library does not drive the GPU's optical flow engine; compute the "
            "flow before (by OpenCV, say) and read it by fn.external_source, or call a function on the GPU by "
            "fn.dl_tensor_python_function"
        )

    def outputs(self, a: Arguments, *inputs: Spec) -> Spec:
        raise NotImplementedError
