# SPDX-License-Identifier: Apache-2.0
"""Memory that native code took from the pool, as it learnt only then how much it needs."""

from collections.abc import Sequence

import numpy as np

from ...core import kernels
from ...core.dtypes import DALIDataType
from ...core.rows import TensorRows


class Blocks:
    """Owns the memory of tensors, each a block of the pool."""

    __slots__ = ("address", "give", "rows")

    def __init__(self, rows: np.ndarray, address: int):
        """`rows` of tensors, which lie at `address`."""
        # Looked up now, as the interpreter may be shutting down when the memory is given back.
        self.rows, self.address, self.give = rows, address, kernels.library().memory_give_all

    def __del__(self) -> None:
        self.give(self.address, len(self.rows))


def whole_files(
    paths: Sequence[np.ndarray], direct: bool, pool: kernels.Pool
) -> tuple[np.ndarray, Blocks, dict[int, str]]:
    """The contents of files, read by the threads of `pool`: rows of uint8 tensors of one dimension, what owns their
    memory, and of those that can't be read the reasons. Paths are bytes, uint8 of any length."""
    n = len(paths)
    names, contents, places = TensorRows(n), TensorRows(n), TensorRows(n)
    names.array["ndim"], names.array["dtype"] = 1, DALIDataType.UINT8
    names.array["data"], names.array["shape"][:, 0] = [p.ctypes.data for p in paths], [len(p) for p in paths]
    contents.array["ndim"], contents.array["dtype"] = 1, DALIDataType.UINT8
    places.data[...] = contents.address + kernels.TENSOR.itemsize * np.arange(n, dtype="u8")
    owner = Blocks(contents.array, contents.address)
    reasons: dict[int, str] = {}
    if n:
        kernel = kernels.kernel("read/whole_file")
        rows, _ = kernel.rows(n, {"direct": int(direct)})
        outcome = kernels.Outcome(np.zeros(n, "i4"), n, 1)
        pool.run([kernels.Step(kernel, rows, [(places.array, -1)], [(names.array, -1)])], n, outcome)
        if outcome.failed:
            reasons = {i: outcome.reason(i) for i in outcome.status.nonzero()[0].tolist()}
    return contents.array, owner, reasons
