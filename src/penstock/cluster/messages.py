# SPDX-License-Identifier: Apache-2.0
"""Messages between trainer and workers."""

from __future__ import annotations

import pickle
import traceback
from typing import NamedTuple

import numpy as np

from ..core.errors import PipelineError
from ..core.kernels import Outcome
from ..core.picks import Picks
from ..exec.context import Timing
from .packing import Names, Packed


class Order(NamedTuple):
    """A batch to make: everything that it depends on besides the pipeline."""

    number: int
    n: int
    epoch: np.ndarray
    position: np.ndarray
    iteration: int
    picks: dict[int, Picks]


class Answer(NamedTuple):
    """The result of an order. `bad`: samples that can't be processed, {row: (node, reason, source)} with the iteration,
    in the order found. `timings`: iteration, number of samples and timings of each pass. Without `outputs`, `error` is
    set, unless the trainer's policy must raise an error for `bad`."""

    number: int
    outputs: list[Packed] | None
    names: list[Names]
    rows: np.ndarray | None
    bad: list[tuple[dict[int, tuple[int, str, str]], int]]
    timings: list[tuple[int, int, list[Timing]]]
    error: tuple[bytes | None, str, str] | None
    spilled: list[tuple[int, int]]
    nbytes: int


class Ran:
    """The data of an `Outcome` after the chain has run; picklable."""

    def __init__(self, outcome: Outcome, first_thread: int):
        self.step_ns, self.spans = outcome.step_ns.copy(), outcome.spans.copy()
        self.threads = outcome.threads + first_thread


def portable(timings: list[Timing], first_thread: int) -> list[Timing]:
    for t in timings:
        if t.outcome is not None:
            t.outcome = Ran(t.outcome, first_thread)  # type: ignore[assignment]
    return timings


def told(error: BaseException) -> tuple[bytes | None, str, str]:
    """Serializes an exception for the trainer: pickled if possible, its text, and its traceback if it does not explain
    itself."""
    trace = "" if isinstance(error, PipelineError) else "".join(traceback.format_exception(error))
    try:
        pickled = pickle.dumps(error, 5)
        if type(pickle.loads(pickled)) is not type(error):
            return None, f"{type(error).__name__}: {error}", trace
    except Exception:
        return None, f"{type(error).__name__}: {error}", trace
    return pickled, "", trace


class InWorker(Exception):
    """The traceback of an exception raised in a worker, as the cause of the same exception here."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def raised(error: tuple[bytes | None, str, str], worker: str) -> BaseException:
    """The exception that a worker sent."""
    pickled, text, trace = error
    found: BaseException = PipelineError(text) if pickled is None else pickle.loads(pickled)
    if trace:
        found.__cause__ = InWorker(f"In {worker}:\n{trace}")
    return found
