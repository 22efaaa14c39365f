# SPDX-License-Identifier: Apache-2.0
"""Memory that native code allocated from the pool, for sizes that are known only while reading."""

from collections.abc import Sequence

import numpy as np

from ...core import kernels
from ...core.batch import Batch
from ...core.dtypes import DALIDataType
from ...core.rows import TENSOR, allocate


class Blocks:
    """Owns the memory of tensors, one block of the pool each."""

    __slots__ = ("address", "give", "rows")

    def __init__(self, rows: np.ndarray, address: int):
        """`rows`: tensor rows, stored at `address`."""
        # Looked up here, as `__del__` may run during interpreter shutdown.
        self.rows, self.address, self.give = rows, address, kernels.library().memory_give_all

    def __del__(self) -> None:
        self.give(self.address, len(self.rows))


def whole_files(
    paths: Sequence[np.ndarray], direct: bool, pool: kernels.Pool
) -> tuple[np.ndarray, Blocks, dict[int, str]]:
    """The contents of files, read by the threads of `pool`. Returns rows of 1-D uint8 tensors, the owner of their
    memory, and the reasons for unreadable files by index. Paths are uint8 arrays."""
    n = len(paths)
    names, places = Batch.from_samples(paths).rows, np.zeros(n, TENSOR)
    contents, at = allocate(n, TENSOR)
    contents["ndim"], contents["dtype"] = 1, DALIDataType.UINT8
    places["data"] = at + TENSOR.itemsize * np.arange(n, dtype="u8")
    owner = Blocks(contents, at)
    reasons: dict[int, str] = {}
    if n:
        kernel = kernels.kernel("read/whole_file")
        rows, _ = kernel.rows(n, {"direct": int(direct)})
        outcome = kernels.Outcome(np.zeros(n, "i4"), n, 1)
        pool.run([kernels.Step(kernel, rows, [(places, -1)], [(names, -1)])], n, outcome)
        if outcome.failed:
            reasons = {i: outcome.reason(i) for i in outcome.status.nonzero()[0].tolist()}
    return contents, owner, reasons
