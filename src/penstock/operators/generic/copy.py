# SPDX-License-Identifier: Apache-2.0
"""A copy."""

from collections.abc import Callable
from typing import Any

from ...core.op import Pointwise


class Copy(Pointwise):
    """Copies its input, of any type and layout, to new memory.

    If `device` differs from the input's, the input is copied to that device, as by `.cpu()` and `.gpu()`.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.copy(types.Constant([1, 2, 3]))
    >>> pipe().run()[0].at(0).tolist()
    [1, 2, 3]
    """

    kernel = "generic/copy"
    copied = (0,)

    @classmethod
    def expand(cls, inputs: tuple, kwargs: dict[str, Any], call: Callable[..., Any]) -> Any:
        wanted = kwargs.get("device")
        if wanted in ("cpu", "gpu") and len(inputs) == 1 and getattr(inputs[0], "device", wanted) != wanted:
            return getattr(inputs[0], wanted)()
        return None
