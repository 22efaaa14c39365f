# SPDX-License-Identifier: Apache-2.0
"""Batches of a source that is called once per sample. Some samples may be bad."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ...core.batch import Batch, Buffer
from ...core.errors import DataError
from ...core.sample_info import SampleInfo
from ...external import samples
from ...external.ahead import Position
from ...external.calling import Calling
from ...external.failure import reason


class Made(NamedTuple):
    """A batch for each output. The contents at bad samples are unspecified."""

    batches: list[Batch]
    bad: dict[int, str]  # reason, by index of the bad sample


def call_each(
    calling: Calling, p: Position, n: int, types: list[Any], on_gpu: Mapping[int, Any]
) -> tuple[list[Any], int, dict[int, str]]:
    """Calls the source for `n` samples in this thread. Returns the good samples of each output, the number of samples
    including bad ones, and the reasons of the bad ones. If the source ends, there are fewer than `n`, or StopIteration
    is raised if these are not kept. `on_gpu`: by output, what accepts samples in GPU memory; they are returned as a
    batch."""
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
                    column.append(arrays.pop(0))  # the only reference, so that no copy is needed
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
                raise type(e)(f"{e}\nfrom {calling.name}, {where}") from None
            else:
                raise
    return _on_gpu(calling, columns, on_gpu), n, bad


def _on_gpu(calling: Calling, columns: list[Any], on_gpu: Mapping[int, Any]) -> list[Any]:
    """The columns; those with samples in GPU memory are batches."""
    for k, taker in on_gpu.items():
        columns[k] = samples.together(columns[k], calling.stream, taker)
    return columns


def batches_of(columns: list[Any], copy: bool, pool: Any, memories: Mapping[int, Any]) -> list[Batch]:
    """A batch for each column of samples; empty batches if all samples are bad."""
    if not len(columns[0]):
        return [Batch.from_array(np.empty((0, 0), "f4")) for _ in columns]
    return [samples.adopt(c, copy, pool, memories.get(i, Buffer)) for i, c in enumerate(columns)]


def _call_on(
    calling: Calling, p: Position, begin: int, n: int, column: list[Any], number_type: Any, on_gpu: Any
) -> int:
    """Appends samples `begin` to `n` of a source with one output to `column`."""
    first, iteration, epoch, call, stream = p.in_epoch, p.iteration, p.epoch, calling.source, calling.stream
    if on_gpu is None and calling.takes_argument and not calling.retries:
        # Calls the source directly: another Python call would cost as much as a fast source.
        for i in range(begin, n):
            column.append(samples.as_array(call(SampleInfo(first + i, i, iteration, epoch)), number_type, stream))
    else:
        for i in range(begin, n):
            data = calling.sample(first + i, i, iteration, epoch)
            column.append(samples.as_sample(data, number_type, stream, on_gpu))
            del data  # leaves the only reference in `column`, so that no copy is needed
    return n


def warn_of_rest(name: str, n_left: int, position: Position, n: int) -> None:
    """Warns that the last samples of an epoch are dropped."""
    warnings.warn(
        f"{name} ended after {position.in_epoch + n_left} samples; the last {n_left} of them don't fill a batch of {n} "
        "and are left out, as in DALI. fn.external_source(last_batch='partial') returns them as a smaller batch, and "
        "last_batch='drop' leaves them out without this warning",
        stacklevel=2,
    )
