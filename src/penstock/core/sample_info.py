# SPDX-License-Identifier: Apache-2.0
"""Information about the requested sample or batch, passed to callbacks of `external_source`."""


class SampleInfo:
    """`idx_in_epoch`, `idx_in_batch`, `iteration` in the epoch, and `epoch_idx`; all count from 0."""

    def __init__(self, idx_in_epoch: int, idx_in_batch: int, iteration: int, epoch_idx: int):
        self.idx_in_epoch, self.idx_in_batch, self.iteration, self.epoch_idx = (
            idx_in_epoch,
            idx_in_batch,
            iteration,
            epoch_idx,
        )

    def __repr__(self) -> str:
        fields = ", ".join(f"{k}={v}" for k, v in vars(self).items())
        return f"SampleInfo({fields})"


class BatchInfo:
    """`iteration` in the epoch, and `epoch_idx`; both count from 0."""

    def __init__(self, iteration: int, epoch_idx: int):
        self.iteration, self.epoch_idx = iteration, epoch_idx

    def __repr__(self) -> str:
        return f"BatchInfo(iteration={self.iteration}, epoch_idx={self.epoch_idx})"
