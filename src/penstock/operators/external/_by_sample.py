# SPDX-License-Identifier: Apache-2.0
"""Batches of a source that is called once per sample, in which some samples could not be made."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from ...core.batch import Batch, Spec
from ...core.errors import DataError
from ...core.sample_info import SampleInfo
from ...external import samples
from ...external.ahead import Position
from ...external.calling import Calling
from ...external.failure import reason


class Made(NamedTuple):
    """A batch for each output; what they have in the place of bad samples is not meant to be used."""

    batches: list[Batch]
    bad: dict[int, str]  # by sample, why it could not be made


def call_each(calling: Calling, p: Position, n: int, types: list[Any]) -> tuple[list[list[Any]], int, dict[int, str]]:
    """Calls the source for `n` samples in this thread: the good ones for each output, how many samples there are with
    the bad ones, and why those are bad. Fewer than `n` if it ends; StopIteration if those are not kept."""
    columns: list[list[Any]] = [[] for _ in types]
    bad: dict[int, str] = {}
    i = 0
    while i < n:
        try:
            if calling.n_outputs is None:
                i = _call_on(calling, p, i, n, columns[0], types[0])
            else:
                given: Any = calling.outputs(calling.sample(p.in_epoch + i, i, *p[1::-1]))
                arrays: Any = [samples.as_array(data, of_numbers) for data, of_numbers in zip(given, types)]
                given = None
                for column in columns:
                    column.append(arrays.pop(0))  # what nobody else has need not be copied
                i += 1
        except StopIteration:
            i = sum(map(len, columns[:1])) + len(bad)
            if i and calling.keeps_rest:
                return columns, i, bad
            raise StopIteration(i) from None
        except Exception as e:
            i = len(columns[0]) + len(bad)
            if calling.leaves_out:
                bad[i] = reason(e)
                i += 1
            elif isinstance(e, DataError):
                where = f"sample {i} of iteration {p.iteration}, epoch {p.epoch}"
                raise DataError(f"{e}\nfrom {calling.name}, {where}") from None
            else:
                raise
    return columns, n, bad


def _call_on(calling: Calling, p: Position, begin: int, n: int, column: list[Any], number_type: Any) -> int:
    """The samples from `begin` on of a source with one output."""
    first, iteration, epoch, call = p.in_epoch, p.iteration, p.epoch, calling.source
    if calling.takes_argument and not calling.retries and type(calling) is Calling:
        # Without a call in between, which would cost as much as a quick source.
        for i in range(begin, n):
            column.append(samples.as_array(call(SampleInfo(first + i, i, iteration, epoch)), number_type))
    else:
        for i in range(begin, n):
            column.append(samples.as_array(calling.sample(first + i, i, iteration, epoch), number_type))
    return n


def spread(batch: Batch, n: int, bad: dict[int, str]) -> Batch:
    """The good samples at their places in a batch of `n`; zeros of its own memory at the others."""
    if not bad:
        return batch
    at = np.array(sorted(bad))
    good = np.setdiff1d(np.arange(n), at)
    spec = batch.spec
    shape = spec.shape[0] if len(batch) else np.zeros(spec.ndim, np.int64)
    zeros = Batch.from_array(np.zeros((len(at), *shape), spec.dtype))
    shapes = np.empty((n, spec.ndim), np.int64)
    rows = np.empty(n, batch.rows.dtype)
    shapes[good], rows[good] = spec.shape, batch.rows
    shapes[at], rows[at] = zeros.spec.shape, zeros.rows
    return Batch(Spec(shapes, spec.dtype, spec.layout), rows, (*batch.owners, *zeros.owners))


def warn_of_rest(name: str, n_left: int, position: Position, n: int) -> None:
    """Says that the last samples of an epoch are left out."""
    warnings.warn(
        f"{name} ended after {position.in_epoch + n_left} samples; the last {n_left} of them don't fill a batch of {n} "
        "and are left out, as in DALI. fn.external_source(last_batch='partial') gives them as a smaller batch, and "
        "last_batch='drop' leaves them out without this warning",
        stacklevel=2,
    )
