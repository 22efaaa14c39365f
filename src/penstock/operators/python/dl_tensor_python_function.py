# SPDX-License-Identifier: Apache-2.0
"""Calls a user's function with DLPack capsules."""

from typing import Any

import numpy as np

from ...core.op import Arg
from ._function import UserFunction
from ._on_gpu import OfDLPack


class _Capsule:
    """Wraps a bare DLPack capsule for `np.from_dlpack`."""

    def __init__(self, capsule: Any):
        self.capsule = capsule

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class DLTensorPythonFunction(UserFunction):
    """Calls a Python function with the samples as DLPack capsules, by default once per batch, with lists of them.

    The function returns capsules, or objects with `__dlpack__`, in the same form.

    >>> import numpy as np
    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=2)
    ... def pipe():
    ...     x = fn.external_source(source=lambda i: [np.array([1, 2]), np.array([3, 4])])
    ...     return fn.dl_tensor_python_function(x, function=lambda capsules: capsules[::-1])
    >>> pipe().run()[0].as_array().tolist()
    [[3, 4], [1, 2]]
    """

    batch_processing = Arg(bool, True, UserFunction.schema["batch_processing"].doc)
    synchronize_stream = Arg(bool, True, "On the GPU the stream is always waited for.", hidden=True)

    def gpu_arrays(self) -> OfDLPack:
        return OfDLPack()

    def give(self, sample: np.ndarray) -> Any:
        return sample.__dlpack__()

    def take(self, result: Any) -> np.ndarray:
        if type(result).__name__ == "PyCapsule":
            return np.from_dlpack(_Capsule(result))
        if hasattr(result, "__dlpack__"):
            return np.from_dlpack(result)
        raise TypeError(f"it has to return DLPack capsules; got {type(result).__name__}")
