# SPDX-License-Identifier: Apache-2.0
"""Computes the number of batches of an epoch and the samples of each batch that belong to it. Uses no pipeline and no
framework."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from ..core.constructors import NearestMembers


class LastBatchPolicy(Enum, metaclass=NearestMembers):
    """What to do with the last batch of an epoch if there are not enough samples to fill it.

    For samples 0...6 and batches of 3, the last batch is (6, 0, 1) with FILL, or (6, 6, 6) if the reader pads; with
    DROP there is none, and with PARTIAL it is (6,).

    >>> LastBatchPolicy("partial")
    <LastBatchPolicy.PARTIAL: 2>
    """

    FILL = 0
    """The batch is filled with the first samples of the next epoch, which is then shorter, or with padding if the
    reader pads."""
    DROP = 1
    """Left out."""
    PARTIAL = 2
    """The batch is omitted."""

    @classmethod
    def _missing_(cls, value: object) -> LastBatchPolicy | None:
        return cls.__members__.get(value.upper()) if isinstance(value, str) else None


def policy_of(value: Any) -> LastBatchPolicy:
    """Converts a policy, its name, or a member of another enumeration with the same names."""
    name = getattr(value, "name", value)
    if isinstance(name, str) and name.upper() in LastBatchPolicy.__members__:
        return LastBatchPolicy[name.upper()]
    raise ValueError(
        f"last_batch_policy takes a LastBatchPolicy or its name ({', '.join(LastBatchPolicy.__members__)}); got "
        f"{value!r}"
    )


@dataclass(frozen=True)
class Epoch:
    """The current epoch: number of batches returned, and of further batches that are taken from the pipelines and
    dropped."""

    batches: int
    dropped: int = 0


class ReaderEpochs:
    """Epochs of pipelines that read a data set in shards; pipeline i starts with shard `shard_ids[i]`.

    Tracks all shards, including those of other processes, so that every process has the same number of batches. Unless
    `stick`, a pipeline reads the next shard in each epoch. If the reader pads, every epoch starts at the beginning of a
    shard and has as many batches as the largest shard; otherwise a full last batch reads ahead into the next epoch.
    """

    def __init__(
        self,
        size: int,
        n_shards: int,
        shard_ids: list[int],
        batch_size: int,
        policy: LastBatchPolicy,
        padded: bool,
        stick: bool,
    ):
        self.batch_size, self.policy, self.n_shards = batch_size, policy, n_shards
        self._sizes = [size * (i + 1) // n_shards - size * i // n_shards for i in range(n_shards)]
        self.shard_sizes, self.shard_ids = tuple(self._sizes), tuple(shard_ids)
        self._pipelines = shard_ids
        self._reads_ahead = policy is LastBatchPolicy.FILL and not padded
        self._stick = stick
        self._begin(0, None)

    def _begin(self, turn: int, left_over: int | None) -> None:
        """Starts an epoch in which pipeline i reads shard i + turn. `left_over`: samples to distribute among the shards
        first, or None."""
        self._turn, self._left_over, self._advanced = turn, left_over, 0
        n = self.n_shards
        # Current shard of the pipeline that started with shard i.
        self._at = [(i + (0 if self._stick else turn)) % n for i in range(n)]
        self._ahead = [0] * n  # samples of it that were read in the previous epoch
        self._started = False
        self._enter([(left_over - i + n - 1) // n for i in range(n)] if left_over else None)

    def _enter(self, left: list[int] | None = None) -> None:
        sizes = self._sizes if left is None else left
        size, largest = self.batch_size, max(sizes)
        self._left = left or [sizes[i] - ahead for i, ahead in zip(self._at, self._ahead)]
        if self.policy is LastBatchPolicy.DROP:
            smallest = min(sizes)
            self.epoch = Epoch(smallest // size, int(smallest % size > 0))
        elif self._reads_ahead and self._started:
            # An epoch that was completely read ahead has no batches; `advance` skips it.
            self.epoch = Epoch(max(-(-max(self._left) // size), 0))
        else:
            self.epoch = Epoch(-(-largest // size))
        self._started = True

    @property
    def all_alike(self) -> bool:
        """Whether all epochs have the same number of batches."""
        return not self._reads_ahead or all(s == self._sizes[0] and s % self.batch_size == 0 for s in self._sizes)

    def keep(self, step: int) -> list[int]:
        """Number of samples of batch `step` to return, per pipeline."""
        if self.policy is not LastBatchPolicy.PARTIAL:
            return [self.batch_size] * len(self._pipelines)
        return self.belonging(step)

    def belonging(self, step: int) -> list[int]:
        """Number of samples of batch `step` that belong to the epoch, for any policy. The others are padding, or read
        ahead."""
        size = self.batch_size
        return [min(max(self._left[p] - step * size, 0), size) for p in self._pipelines]

    def advance(self) -> None:
        """Goes to the next epoch after all batches of this one."""
        self._advanced += 1
        self._next(read=self.epoch.batches * self.batch_size)
        # Terminates, as every non-empty shard eventually has an epoch with batches.
        while self._reads_ahead and self.epoch.batches == 0 and max(self._sizes) > 0:
            self._next(read=0)

    def _next(self, read: int) -> None:
        if self._reads_ahead:
            self._ahead = [read - left for left in self._left]
        if not self._stick:
            self._at = [(i + 1) % self.n_shards for i in self._at]
        self._enter()

    def restart(self) -> None:
        """Starts the next epoch in the middle of this one, with nothing read ahead."""
        self._begin(self._at[0] + (not self._stick), None)

    def state(self) -> dict[str, Any]:
        """A few integers, for checkpoints."""
        return {
            "n_shards": self.n_shards,
            "turn": self._turn,
            "left_over": self._left_over,
            "advanced": self._advanced,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restores a state with the same number of shards."""
        self._begin(state["turn"], state["left_over"])
        for _ in range(state["advanced"]):
            self.advance()

    def divide(self, turn: int, left_over: int) -> None:
        """Starts at an epoch in which the number of shards changed: its `left_over` samples are distributed among the
        shards."""
        self._begin(turn, left_over)


class SizedEpochs:
    """Epochs of `size` samples over all pipelines, for any sources."""

    def __init__(self, size: int, n_pipelines: int, batch_size: int, policy: LastBatchPolicy, padded: bool):
        self.size, self.n_pipelines, self.batch_size, self.policy = size, n_pipelines, batch_size, policy
        self._reads_ahead = policy is LastBatchPolicy.FILL and not padded
        self.restart()

    def _enter(self, ahead: int) -> None:
        self._left = self.size - ahead
        step = self.n_pipelines * self.batch_size
        if self.policy is LastBatchPolicy.DROP:
            self.epoch = Epoch(self.size // step, int(self.size % step > 0))
        else:
            self.epoch = Epoch(-(-self._left // step))

    @property
    def all_alike(self) -> bool:
        """Whether all epochs have the same number of batches."""
        return not self._reads_ahead or self.size % (self.n_pipelines * self.batch_size) == 0

    def keep(self, step: int) -> list[int]:
        """Number of samples of batch `step` to return, per pipeline. Pipelines without any are omitted."""
        if self.policy is not LastBatchPolicy.PARTIAL:
            return [self.batch_size] * self.n_pipelines
        return [n for n in self.belonging(step) if n]

    def belonging(self, step: int) -> list[int]:
        """Number of samples of batch `step` that belong to the epoch, per pipeline, for any policy."""
        size = self.batch_size
        left = self._left - step * self.n_pipelines * size
        return [min(max(left - p * size, 0), size) for p in range(self.n_pipelines)]

    def advance(self) -> None:
        """Goes to the next epoch after all batches of this one."""
        read = self.epoch.batches * self.n_pipelines * self.batch_size
        # If a batch is larger than an epoch, whole epochs were read ahead and are skipped.
        self._enter((read - self._left) % self.size if self._reads_ahead else 0)

    def restart(self) -> None:
        """Starts the next epoch in the middle of this one, with nothing read ahead."""
        self._enter(0)

    def state(self) -> dict[str, Any]:
        """A few integers, for checkpoints."""
        return {"size": self.size, "n_pipelines": self.n_pipelines, "left": self._left}

    def restore(self, state: dict[str, Any]) -> None:
        """Restores a state of epochs of the same size."""
        for key in ("size", "n_pipelines"):
            if state[key] != getattr(self, key):
                raise ValueError(
                    f"the checkpoint is of an iterator with {key}={state[key]}, this one has {getattr(self, key)}"
                )
        self._enter(self.size - state["left"])
