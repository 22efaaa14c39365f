# SPDX-License-Identifier: Apache-2.0
"""Reads images from paths."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ._functions import call_by_name
from ._making import as_batch, as_tensor
from ._value import Value

if TYPE_CHECKING:
    from ._batch import Batch
    from ._device import Device
    from ._tensor import Tensor


def _encoded(path: Any) -> np.ndarray:
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"a path is a string or a pathlib.Path; got {type(path).__name__}")
    name = np.frombuffer(os.fsencode(path), "u1")
    if not len(name):
        raise ValueError("a path is empty")
    return name


@overload
def imread(
    filepaths: str | bytes | os.PathLike[str] | Tensor, /, *, device: Device | str | None = None, **kwargs: Any
) -> Tensor: ...
@overload
def imread(
    filepaths: Sequence[str | bytes | os.PathLike[str]] | Batch,
    /,
    *,
    device: Device | str | None = None,
    **kwargs: Any,
) -> Batch: ...
def imread(filepaths: Any, /, *, device: Any = None, **kwargs: Any) -> Any:
    """Reads and decodes images.

    Parameters
    ----------
    filepaths
        A path gives a tensor, a list of paths a batch. Paths may also be a tensor or batch of their bytes.
    device
        "gpu" decodes on the GPU.
    **kwargs
        As in `decoders.image`.

    >>> import numpy as np, tempfile, os
    >>> from penstock.experimental import dynamic as ndd
    >>> path = os.path.join(tempfile.mkdtemp(), "grey.ppm")
    >>> _ = open(path, "wb").write(b"P6 2 1 255 " + bytes([9] * 6))
    >>> ndd.imread(path).shape
    (1, 2, 3)
    """
    paths: Any = filepaths
    if not isinstance(paths, Value):
        several = isinstance(paths, (list, tuple))
        paths = as_batch([_encoded(p) for p in paths]) if several else as_tensor(_encoded(paths))
    return call_by_name("decoders.image", call_by_name("io.file.read", paths), device=device, **kwargs)
