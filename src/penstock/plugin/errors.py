# SPDX-License-Identifier: Apache-2.0
"""Errors of the iterators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..pipeline import Pipeline
    from .base_iterator import DaliIterator


class IteratorError(ValueError, RuntimeError, AssertionError):
    """A wrong argument of an iterator, or a batch that it can't return. Also an AssertionError and a RuntimeError,
    which DALI raises for them."""


class IteratorTypeError(TypeError, AssertionError):
    """A thing of a wrong type; also an AssertionError, as in DALI."""


def check_size(it: DaliIterator[Any], pipe: Pipeline, n: int) -> None:
    """Raises IteratorError if the iterator counts batches and one has `n` samples only, as in DALI, unless the pipeline
    was told that some have fewer: by `on_error`, or by `last_batch="partial"` of a source."""
    if n != it.batch_size and it._epochs is not None and not _may_be_smaller(pipe):
        given = f"reader_name='{it._reader_name}'" if it._reader_name else "size"
        raise IteratorError(
            f"the pipeline returned a batch of {n} samples, batch_size is {it.batch_size}: an iterator with {given} "
            f"counts full batches. Return full batches, or leave {given} out: then an epoch ends when the source does"
        )


def _may_be_smaller(pipe: Pipeline) -> bool:
    plan = pipe._runner.plan
    sources = [plan.source_op(node) for node in plan.sources] if plan is not None else []
    return pipe._settings.policy.on_error != "raise" or any(s.values.get("last_batch") == "partial" for s in sources)
