# SPDX-License-Identifier: Apache-2.0
"""What a pipeline returns: `TensorListCPU` and `TensorListGPU`, batches; `TensorCPU` and `TensorGPU`, samples."""

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
        if name in ("TensorGPU", "TensorListGPU"):  # only who asks for them pays for the GPU's modules
            from . import gpu

            return getattr(gpu, name)
        raise _no_attribute(__name__, name)
