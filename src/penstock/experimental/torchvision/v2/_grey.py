# SPDX-License-Identifier: Apache-2.0
"""Operator that converts to grey with three exactly equal channels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.batch import Spec
from ....core.op import Arguments, PerSample
from ....graph import trace
from ....operators.color._color_matrix import ColorMatrix

LUMA = np.array([0.299, 0.587, 0.114])


class _Grey(ColorMatrix):
    """Replaces every channel by the luma, or keeps it."""

    devices = ("cpu", "gpu")
    share = PerSample(float, 1.0, "1 for grey, 0 for the colours there are.")

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        share = a.share.astype("f8")[:, None, None]
        matrix = ((1 - share) * np.eye(3) + share * np.tile(LUMA, (3, 1))).reshape(a.n, 9)
        return {"matrix": matrix}


def grey(data: Any, share: Any = 1.0) -> Any:
    return trace.call(_Grey, (data,), {"share": share})
