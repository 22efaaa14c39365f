# SPDX-License-Identifier: Apache-2.0
"""Base of operators that accept only float32."""

from ...core.batch import Spec
from ...core.op import Arguments, Operator


class FloatOnly(Operator, abstract=True):
    """Base of operators that accept only float32, as in DALI."""

    by_frame = False

    def plan(self, a: Arguments, x: Spec) -> None:
        if x.dtype.name != "float32":
            raise TypeError(f"the input has the type {x.dtype.name}; fn.cast it to float32")
