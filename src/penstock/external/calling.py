# SPDX-License-Identifier: Apache-2.0
"""How a source is called: per sample or per batch, with or without an argument, restartable or not."""

from __future__ import annotations

import os
import time
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..core.errors import OutputsError
from ..core.sample_info import BatchInfo, SampleInfo

# Pause before a failed call is repeated, in seconds: doubled each time.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0

CYCLES = (None, False, True, "no", "quiet", "raise")


class Calling:
    """One source and how to call it. Only for an iterable does it keep state, its position."""

    def __init__(
        self,
        source: Any,
        per_sample: bool,
        n_outputs: int | None,
        cycle: Any,
        batch_info: bool,
        number_types: Sequence[np.dtype | None] = (None,),
        retries: int = 0,
        keeps_rest: bool = False,
    ):
        """`number_types`: for each output, the type of Python numbers; None for 32-bit types. `retries`: how often a
        call that raises is repeated. `keeps_rest`: whether an incomplete last batch is kept."""
        self.number_types = tuple(number_types)
        self.source, self.per_sample, self.n_outputs, self.batch_info = source, per_sample, n_outputs, batch_info
        self.cycle = {"no": None, False: None, True: "quiet"}.get(cycle, cycle)
        self.is_iterable = is_generator_function(source) or _can_be_iterated(source)
        self.takes_argument = False
        self.retries, self.keeps_rest = retries, keeps_rest
        self.stream: Any = None  # CUDA stream of its GPU arrays that don't name one
        self.leaves_out = False  # whether failing samples are handled by the pipeline's on_error
        self._iterator: Iterator[Any] | None = None
        self._given = 0  # items taken from the iterator since it was started
        self._epoch = 0
        if not self.is_iterable:
            if not callable(source):
                raise TypeError(f"source takes a callable or an iterable; got {type(source).__name__}")
            if cycle is not None:
                raise ValueError(
                    f"cycle={cycle!r} needs an iterable or a generator function as the source; got a callable, which "
                    "says itself when it ends, by StopIteration"
                )
            self.takes_argument = _takes_argument(source)
        elif self.cycle and type(source) is types.GeneratorType:
            raise TypeError("cycle can't start a generator again; give the generator function itself")

    @property
    def name(self) -> str:
        """The source's name and location, for messages."""
        return describe_source(self.source)

    @property
    def restarts(self) -> bool:
        return not self.is_iterable or self.cycle is not None

    def sample(self, in_epoch: int, in_batch: int, iteration: int, epoch: int) -> Any:
        if self.is_iterable:
            return self._next(epoch)
        if self.takes_argument:
            return self._call(SampleInfo(in_epoch, in_batch, iteration, epoch))
        return self._call()

    def batch(self, iteration: int, epoch: int) -> Any:
        if self.is_iterable:
            return self._next(epoch)
        if not self.takes_argument:
            return self._call()
        return self._call(BatchInfo(iteration, epoch) if self.batch_info else iteration)

    def _call(self, *argument: Any) -> Any:
        """Calls the source; repeats failed calls after a pause, up to `retries` times."""
        for attempt in range(self.retries):
            try:
                return self.source(*argument)
            except StopIteration:
                raise
            except Exception:
                time.sleep(min(_FIRST_PAUSE * 2**attempt, _LONGEST_PAUSE))
        return self.source(*argument)

    def outputs(self, data: Any) -> list[Any]:
        """The result of a call, one item per output. Raises OutputsError if there are too few."""
        if self.n_outputs is None:
            return [data]
        if data is None:
            raise OutputsError(f"the source gave None; num_outputs={self.n_outputs} asks for a tuple or list")
        try:
            by_number = isinstance(data, dict)
            outputs = [data[i] for i in range(self.n_outputs) if i in data] if by_number else list(data)
        except TypeError:
            raise OutputsError(
                f"the source gave a {type(data).__name__}; num_outputs={self.n_outputs} asks for a tuple or list"
            ) from None
        if len(outputs) < self.n_outputs:
            rows = f" (the rows of an array of shape {tuple(data.shape)})" if hasattr(data, "shape") else ""
            raise OutputsError(f"the source gave {len(outputs)} outputs{rows}, num_outputs is {self.n_outputs}")
        return outputs[: self.n_outputs]  # further items are ignored, as in DALI

    def begin(self) -> None:
        """Starts an iterable. Without this, the first call starts it."""
        if self.is_iterable:
            self._begin()

    def restart(self) -> None:
        """Restarts an iterable at the next call, if it can be restarted."""
        if self.is_iterable and self.cycle is not None and self._given:
            self._iterator = None

    def _next(self, epoch: int) -> Any:
        if epoch != self._epoch:
            self._epoch = epoch
            self.restart()
        if self._iterator is None:
            self._begin()
        assert self._iterator is not None
        try:
            data = next(self._iterator)
        except StopIteration:
            is_empty = not self._given
            if self.cycle is not None:
                self._begin()
            if self.cycle != "quiet" or is_empty:  # restarting an empty one would loop forever
                raise
            return self._next(epoch)
        self._given += 1
        return data

    def _begin(self) -> None:
        self._iterator = iter(self.source() if is_generator_function(self.source) else self.source)
        self._given = 0

    # Continuing from a checkpoint

    @property
    def starts_anew(self) -> bool:
        """Whether it can be iterated again from its beginning."""
        return self.is_iterable and (is_generator_function(self.source) or not hasattr(self.source, "__next__"))

    @property
    def given(self) -> int:
        """Number of items taken since it was last started."""
        return 0 if self._iterator is None else self._given

    def pass_over(self, given: int, epoch: int) -> None:
        """Starts it in this epoch and skips the `given` items that were already taken."""
        self._epoch, self._iterator = epoch, None
        if not given:
            return
        self._begin()
        assert self._iterator is not None
        for i in range(given):
            try:
                next(self._iterator)
            except StopIteration:
                raise ValueError(
                    f"the source gave {i} times only; {given} had been taken of it when the checkpoint was saved"
                ) from None
        self._given = given


def _can_be_iterated(source: Any) -> bool:
    """Includes data sets with only __getitem__, which iter() accepts, and what can be called, too, as in DALI."""
    return hasattr(type(source), "__iter__") or hasattr(type(source), "__getitem__")


def is_generator_function(source: Any) -> bool:
    """Includes functools.partial of one, and objects whose __call__ is one."""
    import inspect  # imported only when needed

    function = getattr(source, "func", source)
    call = getattr(type(function), "__call__", None)  # noqa: B004  of the class, as calls look it up
    return inspect.isgeneratorfunction(function) or inspect.isgeneratorfunction(call)


def _takes_argument(source: Callable[..., Any]) -> bool:
    import inspect

    # Python before 3.13 takes the first parameter of a static method for `self`.
    is_static = isinstance(inspect.getattr_static(source, "__call__", None), staticmethod)
    try:
        parameters = inspect.signature(getattr(source, "__call__") if is_static else source).parameters.values()  # noqa: B004, B009
    except (TypeError, ValueError):  # a built-in function
        return False
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [p for p in positional if p.default is p.empty]
    if len(needed) > 1:
        raise TypeError(
            f"the source takes {len(needed)} arguments ({', '.join(p.name for p in needed)}); it can take none, or "
            "one: a SampleInfo, a BatchInfo, or the number of the iteration"
        )
    return bool(positional) or any(p.kind is p.VAR_POSITIONAL for p in parameters)


def describe_source(source: Any) -> str:
    if (text := getattr(source, "described_as", None)) is not None:
        return str(text)
    code = getattr(source, "__code__", None)
    if code is None and not isinstance(source, type):
        code = getattr(vars(type(source)).get("__call__"), "__code__", None)
        name = type(source).__name__ if code or not hasattr(source, "__name__") else source.__name__
    else:
        name = getattr(source, "__qualname__", type(source).__name__)
    return f"{name} ({os.path.basename(code.co_filename)}:{code.co_firstlineno})" if code else name
