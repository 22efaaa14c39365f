# SPDX-License-Identifier: Apache-2.0
"""A copy."""

from collections.abc import Callable
from typing import Any

from ...core.op import Pointwise


class Copy(Pointwise):
    """Copies its input, of any type and layout, into memory of its own.

    With `device="cpu"` and an input on the GPU it copies to the CPU, as `.cpu()` does.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.copy(types.Constant([1, 2, 3]))
    >>> pipe().run()[0].at(0).tolist()
    [1, 2, 3]
    """

    kernel = "generic/copy"
    replays = True

    @classmethod
    def expand(cls, inputs: tuple, kwargs: dict[str, Any], call: Callable[..., Any]) -> Any:
        if kwargs.get("device") == "cpu" and len(inputs) == 1 and getattr(inputs[0], "device", "cpu") == "gpu":
            return inputs[0].cpu()
        return None
