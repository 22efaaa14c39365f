# SPDX-License-Identifier: Apache-2.0
"""How many batches an epoch has and how much of each batch belongs to it. Arithmetic only: no pipeline, no
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
    """A policy from itself or from its name; also from an enumeration of the same names."""
    name = getattr(value, "name", value)
    if isinstance(name, str) and name.upper() in LastBatchPolicy.__members__:
        return LastBatchPolicy[name.upper()]
    raise ValueError(
        f"last_batch_policy takes a LastBatchPolicy or its name ({', '.join(LastBatchPolicy.__members__)}); got "
        f"{value!r}"
    )


@dataclass(frozen=True)
class Epoch:
    """The epoch at hand: how many batches are given out, and how many more are taken from the pipelines and dropped
    after them."""

    batches: int
    dropped: int = 0


class ReaderEpochs:
    """Epochs of pipelines that read a data set in shards; pipeline i starts with shard `shard_ids[i]`.

    All shards are followed, also those that other processes read, so that every process has the same number of batches.
    Unless `stick`, a pipeline reads the next shard in each epoch. If the reader pads, every epoch starts at the
    beginning of a shard and
    has as many batches as the largest shard; otherwise a full last batch reads ahead into the next epoch.
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
        """The shard i reads is (i + turn) now; `left_over` samples are divided among them first, if it is given."""
        self._turn, self._left_over, self._advanced = turn, left_over, 0
        n = self.n_shards
        # The shard read now by whoever began with shard i.
        self._at = [(i + (0 if self._stick else turn)) % n for i in range(n)]
        self._ahead = [0] * n  # how much of it was read in the epoch before
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
            # An epoch that was read completely ahead has no batch; `advance` goes past it.
            self.epoch = Epoch(max(-(-max(self._left) // size), 0))
        else:
            self.epoch = Epoch(-(-largest // size))
        self._started = True

    @property
    def all_alike(self) -> bool:
        """Whether all epochs have the same number of batches."""
        return not self._reads_ahead or all(s == self._sizes[0] and s % self.batch_size == 0 for s in self._sizes)

    def keep(self, step: int) -> list[int]:
        """How many samples of batch `step` belong to the epoch, per pipeline."""
        if self.policy is not LastBatchPolicy.PARTIAL:
            return [self.batch_size] * len(self._pipelines)
        return self.belonging(step)

    def belonging(self, step: int) -> list[int]:
        """The same whatever the policy: the rest of the batch is padding, or was read ahead."""
        size = self.batch_size
        return [min(max(self._left[p] - step * size, 0), size) for p in self._pipelines]

    def advance(self) -> None:
        """Goes to the next epoch after all batches of this one."""
        self._advanced += 1
        self._next(read=self.epoch.batches * self.batch_size)
        # Every shard that is not empty gives an epoch sooner or later.
        while self._reads_ahead and self.epoch.batches == 0 and max(self._sizes) > 0:
            self._next(read=0)

    def _next(self, read: int) -> None:
        if self._reads_ahead:
            self._ahead = [read - left for left in self._left]
        if not self._stick:
            self._at = [(i + 1) % self.n_shards for i in self._at]
        self._enter()

    def restart(self) -> None:
        """Goes to the beginning of the next epoch in the middle of this one: nothing has been read ahead."""
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
        """Goes to where epochs of as many shards were."""
        self._begin(state["turn"], state["left_over"])
        for _ in range(state["advanced"]):
            self.advance()

    def divide(self, turn: int, left_over: int) -> None:
        """Goes to an epoch in which the number of shards changed: what was left of it is divided among them."""
        self._begin(turn, left_over)


class SizedEpochs:
    """Epochs of `size` samples over all pipelines together, whatever their sources are."""

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
        """How many samples of batch `step` belong to the epoch, for the pipelines that have any: the rest are left
        out."""
        if self.policy is not LastBatchPolicy.PARTIAL:
            return [self.batch_size] * self.n_pipelines
        return [n for n in self.belonging(step) if n]

    def belonging(self, step: int) -> list[int]:
        """How many samples of batch `step` belong to the epoch, per pipeline, whatever the policy."""
        size = self.batch_size
        left = self._left - step * self.n_pipelines * size
        return [min(max(left - p * size, 0), size) for p in range(self.n_pipelines)]

    def advance(self) -> None:
        """Goes to the next epoch after all batches of this one."""
        read = self.epoch.batches * self.n_pipelines * self.batch_size
        # Where a batch is larger than the epochs, whole epochs have been read ahead and are passed over.
        self._enter((read - self._left) % self.size if self._reads_ahead else 0)

    def restart(self) -> None:
        """Goes to the beginning of the next epoch in the middle of this one: nothing has been read ahead."""
        self._enter(0)

    def state(self) -> dict[str, Any]:
        """A few integers, for checkpoints."""
        return {"size": self.size, "n_pipelines": self.n_pipelines, "left": self._left}

    def restore(self, state: dict[str, Any]) -> None:
        """Goes to where epochs of the same size were."""
        for key in ("size", "n_pipelines"):
            if state[key] != getattr(self, key):
                raise ValueError(
                    f"the checkpoint is of an iterator with {key}={state[key]}, this one has {getattr(self, key)}"
                )
        self._enter(self.size - state["left"])
