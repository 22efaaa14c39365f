# SPDX-License-Identifier: Apache-2.0
"""Which arguments of `external_source` can be combined."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import DALIDataType, to_numpy
from ...external.calling import Calling


def check(values: dict[str, Any], calling: Calling | None) -> None:
    """Raises ValueError for arguments that this source does not support. `calling` is None if it is fed."""
    retries, last_batch = values["retries"], values["last_batch"]
    if calling is None and values["cycle"] not in (None, False, "no"):
        raise ValueError(f"cycle={values['cycle']!r} needs an iterable or a generator function as the source; got none")
    for i in range(values["num_outputs"] or 1):
        _check_ndim(i, of_output(values["ndim"], i), of_output(values["layout"], i))
    if retries < 0:
        raise ValueError(f"retries takes the number of times that a call is repeated; got {retries}")
    if retries and (calling is None or calling.is_iterable):
        raise ValueError(f"retries={retries} needs a callable as the source: what is iterated can't be asked again")
    if last_batch not in (None, "drop", "partial"):
        raise ValueError(f"last_batch takes 'drop' or 'partial'; got {last_batch!r}")
    if last_batch is not None and (calling is None or not calling.per_sample):
        raise ValueError("last_batch is for sources with batch=False; in batch mode they give batches of any size")
    if values["timeout"] is not None and not values["parallel"]:
        raise ValueError("timeout needs parallel=True: a call in this process can't be stopped")


def _check_ndim(output: int, ndim: Any, layout: str | None) -> None:
    if ndim is None:
        return
    if isinstance(ndim, bool) or not isinstance(ndim, (int, np.integer)) or ndim < 0:
        raise ValueError(f"ndim takes a number of dimensions, or a list with one for each output; got {ndim!r}")
    if layout and len(layout) != ndim:
        raise ValueError(f"output {output}: the layout '{layout}' has {len(layout)} dimensions, but ndim={ndim}")


def check_parallel(values: dict[str, Any], calling: Calling | None) -> None:
    """The same for a source that worker processes call."""
    depth, timeout = values["prefetch_queue_depth"], values["timeout"]
    if values["background"]:
        raise ValueError("background=True is for sources without parallel=True, which workers call ahead anyway")
    if calling is None:
        raise ValueError("parallel=True needs a source; data of feed_input comes from this process")
    if calling.is_iterable and calling.per_sample:
        raise TypeError(
            "parallel=True and batch=False need a callable that takes a SampleInfo; an iterable can give batches only "
            "(batch=True), as its items come one after the other"
        )
    if not calling.is_iterable and not calling.takes_argument:
        what = "a SampleInfo" if calling.per_sample else "the number of the iteration, or a BatchInfo with batch_info"
        raise TypeError(
            f"parallel=True needs a callable that takes one argument, {what}: the calls come in any order, and the "
            "result may depend on nothing else"
        )
    if depth is not None and depth < 1:
        raise ValueError(f"prefetch_queue_depth takes a positive integer; got {depth}")
    if timeout is not None and not timeout > 0:
        raise ValueError(f"timeout takes a positive number of seconds; got {timeout}")


def of_output(value: Any, i: int) -> Any:
    """The value of an argument for output `i`: the value itself, or an element of a list, which may be too short."""
    if not isinstance(value, (list, tuple)):
        return value
    return value[i] if i < len(value) else None


def number_type(dtype: Any) -> np.dtype | None:
    """The type of Python numbers in an output of type `dtype`; None for the 32-bit default types."""
    return None if dtype in (None, DALIDataType.NO_TYPE) else to_numpy(dtype)
