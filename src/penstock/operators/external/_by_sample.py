# SPDX-License-Identifier: Apache-2.0
"""Batches of a source that is called once per sample, in which some samples could not be made."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ...core.batch import Batch, Buffer, Spec
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


def call_each(
    calling: Calling, p: Position, n: int, types: list[Any], on_gpu: Mapping[int, Any]
) -> tuple[list[Any], int, dict[int, str]]:
    """Calls the source for `n` samples in this thread: the good ones for each output, how many samples there are with
    the bad ones, and why those are bad. Fewer than `n` if it ends; StopIteration if those are not kept. `on_gpu`: by
    output, what takes samples that lie on the GPU, which come as a batch."""
    columns: list[list[Any]] = [[] for _ in types]
    bad: dict[int, str] = {}
    i = 0
    while i < n:
        try:
            if calling.n_outputs is None:
                i = _call_on(calling, p, i, n, columns[0], types[0], on_gpu.get(0))
            else:
                given: Any = calling.outputs(calling.sample(p.in_epoch + i, i, *p[1::-1]))
                arrays: Any = [
                    samples.as_sample(data, of_numbers, calling.stream, on_gpu.get(k))
                    for k, (data, of_numbers) in enumerate(zip(given, types))
                ]
                given = None
                for column in columns:
                    column.append(arrays.pop(0))  # what nobody else has need not be copied
                i += 1
        except StopIteration:
            i = sum(map(len, columns[:1])) + len(bad)
            if i and calling.keeps_rest:
                return _on_gpu(calling, columns, on_gpu), i, bad
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
    return _on_gpu(calling, columns, on_gpu), n, bad


def _on_gpu(calling: Calling, columns: list[Any], on_gpu: Mapping[int, Any]) -> list[Any]:
    """The columns, with batches for those whose samples lie on the GPU."""
    for k, taker in on_gpu.items():
        columns[k] = samples.together(columns[k], calling.stream, taker)
    return columns


def batches_of(columns: list[Any], copy: bool, pool: Any, memories: Mapping[int, Any]) -> list[Batch]:
    """A batch for each column of samples; without any if none could be made."""
    if not len(columns[0]):
        return [Batch.from_array(np.empty((0, 0), "f4")) for _ in columns]
    return [samples.adopt(c, copy, pool, memories.get(i, Buffer)) for i, c in enumerate(columns)]


def _call_on(
    calling: Calling, p: Position, begin: int, n: int, column: list[Any], number_type: Any, on_gpu: Any
) -> int:
    """The samples from `begin` on of a source with one output."""
    first, iteration, epoch, call, stream = p.in_epoch, p.iteration, p.epoch, calling.source, calling.stream
    if on_gpu is None and calling.takes_argument and not calling.retries:
        # Without a call in between, which would cost as much as a quick source.
        for i in range(begin, n):
            column.append(samples.as_array(call(SampleInfo(first + i, i, iteration, epoch)), number_type, stream))
    else:
        for i in range(begin, n):
            data = calling.sample(first + i, i, iteration, epoch)
            column.append(samples.as_sample(data, number_type, stream, on_gpu))
            del data  # what nobody else has need not be copied
    return n


def spread(batch: Batch, n: int, bad: dict[int, str]) -> Batch:
    """The good samples at their places in a batch of `n`; memory of its own at the others."""
    if not bad:
        return batch
    at = np.array(sorted(bad))
    good = np.setdiff1d(np.arange(n), at)
    spec = batch.spec
    blank = batch.blank(len(at), tuple(spec.shape[0].tolist() if len(batch) else [0] * spec.ndim))
    shapes = np.empty((n, spec.ndim), np.int64)
    rows = np.empty(n, batch.rows.dtype)
    shapes[good], rows[good] = spec.shape, batch.rows
    shapes[at], rows[at] = blank.spec.shape, blank.rows
    return batch.with_rows(Spec(shapes, spec.dtype, spec.layout), rows, (*batch.owners, *blank.owners))


def warn_of_rest(name: str, n_left: int, position: Position, n: int) -> None:
    """Says that the last samples of an epoch are left out."""
    warnings.warn(
        f"{name} ended after {position.in_epoch + n_left} samples; the last {n_left} of them don't fill a batch of {n} "
        "and are left out, as in DALI. fn.external_source(last_batch='partial') returns them as a smaller batch, and "
        "last_batch='drop' leaves them out without this warning",
        stacklevel=2,
    )
