# SPDX-License-Identifier: Apache-2.0
"""Memory that native code took from the pool, as it learnt only then how much it needs."""

import numpy as np

from ...core import kernels


class Blocks:
    """Owns the memory of tensors, each a block of the pool."""

    __slots__ = ("address", "give", "rows")

    def __init__(self, rows: np.ndarray, address: int):
        """`rows` of tensors, which lie at `address`."""
        # Looked up now, as the interpreter may be shutting down when the memory is given back.
        self.rows, self.address, self.give = rows, address, kernels.library().memory_give_all

    def __del__(self) -> None:
        self.give(self.address, len(self.rows))
