# SPDX-License-Identifier: Apache-2.0
"""Arrays from the bytes of .npy files."""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np

from ...core.batch import Batch
from ...core.dtypes import DALIDataType, from_numpy, to_numpy
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Operator
from ...core.rows import address, check_dims

_MAGIC = b"\x93NUMPY"
# Regular expressions, as `ast.literal_eval`, which NumPy uses, is not thread-safe in CPython before 3.13.
_BEGIN, _END = re.compile(r"\s*\{"), re.compile(r"\s*\}\s*\Z")
_ENTRY = re.compile(
    r"""\s*(?:
    (?P<q1>['"])descr(?P=q1)\s*:\s*(?P<q2>['"])(?P<descr>[^'"\\]*)(?P=q2)
    |(?P<q3>['"])fortran_order(?P=q3)\s*:\s*(?P<fortran_order>True|False)
    |(?P<q4>['"])shape(?P=q4)\s*:\s*\(\s*(?P<shape>(?:\d{1,18}L?\s*,\s*)*(?:(?<=[,\s])\d{1,18}L?\s*)?)\)
    )\s*(?:,|(?=\}))""",
    re.VERBOSE,
)


class Numpy(Operator):
    """Decodes .npy files, as written by `np.save` and read by `io.file.read`, to arrays.

    Inputs are uint8 (or int8), of any shape. Files must have version 1 to 3 and contain numbers or booleans in the byte
    order of this machine, in C or Fortran order, with nothing after the array. All samples of a batch must have the
    same type, unless `dtype` is given, and the same number of dimensions. The output has no layout; `fn.reshape` can
    set one.

    >>> from penstock import fn, pipeline_def
    >>> import io
    >>> import numpy as np
    >>> file = io.BytesIO()
    >>> np.save(file, np.float32([[1, 2], [3, 4]]))
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.decoders.numpy(np.frombuffer(file.getvalue(), np.uint8))
    >>> pipe().run()[0].at(0).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """

    module = "decoders"
    by_frame = False
    is_prompt = True
    dtype = Arg(DALIDataType, None, "Type of the output; values are rounded and clamped. By default that of the files.")

    def run(self, a: Arguments, *inputs: Batch) -> Batch:
        files = inputs[0]
        if files.spec.dtype.name not in ("uint8", "int8"):
            raise TypeError(f"an encoded array is bytes (uint8); got {files.spec.dtype.name}")
        arrays, wrong = [], {}
        for i in range(a.n):
            try:
                arrays.append(_array(files.sample(i).reshape(-1).view("u1")))
            except ValueError as e:
                wrong[i] = str(e)
        if wrong:
            raise SampleErrors(wrong)
        first = arrays[0] if arrays else np.zeros(0, "f4")
        for i, x in enumerate(arrays):
            if x.ndim != first.ndim:
                other = f"{first.ndim} in sample 0, {x.ndim} in sample {i}"
                raise ValueError(f"arrays of a batch need one number of dimensions; got {other}")
            if a.dtype is None and x.dtype != first.dtype:
                other = f"{first.dtype} in sample 0, {x.dtype} in sample {i}"
                raise ValueError(f"arrays of a batch need one type; got {other}; `dtype` converts them")
        if a.dtype is not None:
            arrays = [_converted(x, to_numpy(a.dtype)) for x in arrays]
        return Batch.from_samples([np.ascontiguousarray(x).reshape(x.shape) for x in arrays], "", files.sources)


def _array(file: np.ndarray) -> np.ndarray:
    """An array that is a view of the bytes `file` (n,), or a copy if it is not aligned. Raises ValueError."""
    head = file[:12].tobytes()
    if len(head) < 10 or head[:6] != _MAGIC:
        raise ValueError(f"not a .npy file: {file.size} bytes that begin with {head[:8].hex(' ') or 'nothing'}")
    wide = head[6] > 1
    if head[6] not in (1, 2, 3):
        raise ValueError(f"a .npy file of version {head[6]}.{head[7]}; supported: 1.0, 2.0, 3.0")
    begin = 12 if wide else 10
    end = begin + int.from_bytes(head[8:begin], "little")
    dtype, columns_first, shape = _header(file[begin:end].tobytes(), head[6] > 2)
    nbytes = dtype.itemsize
    for extent in shape:
        nbytes *= extent
    if end + nbytes != file.size:
        raise ValueError(f"an array of {dtype} {list(shape)} needs a file of {end + nbytes} bytes; got {file.size}")
    data = file[end:]
    if address(data) % dtype.alignment:
        data = data.copy()
    return data.view(dtype).reshape(shape, order="F" if columns_first else "C")


@lru_cache(256)
def _header(text: bytes, unicode: bool) -> tuple[np.dtype, bool, tuple[int, ...]]:
    """Type, order and shape. Raises ValueError."""
    found = _entries(text.decode("utf-8" if unicode else "latin1", "replace"))
    try:
        dtype, columns_first = np.dtype(found["descr"]), found["fortran_order"] == "True"
        shape = tuple(int(n) for n in re.findall(r"\d+", found["shape"]))
    except (ValueError, TypeError, KeyError, SyntaxError):
        raise ValueError(f"the header of a .npy file can't be read: {text[:80]!r}") from None
    check_dims(len(shape))
    if not dtype.isnative:
        raise ValueError(f"an array of {dtype.newbyteorder('=')} in the other byte order; save it in this machine's")
    try:
        from_numpy(dtype)
    except TypeError as e:
        raise ValueError(str(e)) from None
    return dtype, columns_first, shape


def _entries(text: str) -> dict[str, str]:
    """Entries of a header (https://numpy.org/neps/nep-0001-npy-format.html): a Python literal of a dictionary with a
    string, a boolean and a tuple of integers. Empty for anything else."""
    found: dict[str, str] = {}
    begin = _BEGIN.match(text)
    at = begin.end() if begin else len(text)
    while entry := _ENTRY.match(text, at):
        found.update((key, entry[key]) for key in ("descr", "fortran_order", "shape") if entry[key] is not None)
        at = entry.end()
    return found if _END.match(text, at) else {}


def _converted(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Integers are rounded, halves away from zero, and clamped; NaN becomes 0."""
    if dtype.kind == "b":
        return x != 0
    if dtype.kind == "f" or x.dtype.kind == "b" or x.dtype == dtype:
        with np.errstate(over="ignore"):
            return x.astype(dtype)
    limits = np.iinfo(dtype)
    if x.dtype.kind in "iu":
        own = np.iinfo(x.dtype)
        return np.clip(x, max(limits.min, own.min), min(limits.max, own.max)).astype(dtype)
    whole = np.trunc(np.nan_to_num(x.astype("f8"), nan=0.0))
    rest = np.nan_to_num(x.astype("f8"), nan=0.0) - whole
    whole += (rest >= 0.5).astype("f8") - (rest <= -0.5)
    low, high = whole <= float(limits.min), whole >= float(limits.max)
    out: np.ndarray = np.where(low | high, 0, whole).astype(dtype)
    out[low], out[high] = limits.min, limits.max
    return out
