# SPDX-License-Identifier: Apache-2.0
"""Outputs of pipelines: batches, `TensorListCPU` and `TensorListGPU`, and samples, `TensorCPU` and `TensorGPU`."""

from typing import TYPE_CHECKING

from ..core.errors import no_attribute as _no_attribute
from .cpu import TensorCPU as TensorCPU
from .cpu import TensorListCPU as TensorListCPU

__all__ = ["TensorCPU", "TensorGPU", "TensorListCPU", "TensorListGPU"]

if TYPE_CHECKING:
    from .gpu import TensorGPU as TensorGPU
    from .gpu import TensorListGPU as TensorListGPU
else:

    def __getattr__(name):
        if name in ("TensorGPU", "TensorListGPU"):  # the GPU modules are imported only if used
            from . import gpu

            return getattr(gpu, name)
        raise _no_attribute(__name__, name)
