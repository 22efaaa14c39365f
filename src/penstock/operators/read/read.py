# SPDX-License-Identifier: Apache-2.0
"""Reads files whose paths are data."""

from __future__ import annotations

import os

import numpy as np

from ...core.batch import Batch, Spec
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Operator
from ._blocks import whole_files


class Read(Operator):
    """Reads one file per sample; the sample is the file's path: bytes, uint8 or int8 of shape (length,).

    Paths can come from an `external_source`, as `np.frombuffer(path.encode(), np.uint8)`; anything after a zero byte is
    ignored. The output is the content, uint8 of shape (size,), with the path as `source_info`; for an empty file it is
    empty. A path that is not a regular file, or a file that can't be read, is a bad sample (see `on_error` of the
    pipeline). The threads of the pipeline read the files.

    >>> import os, tempfile
    >>> import numpy as np
    >>> from penstock import fn, pipeline_def
    >>> path = os.path.join(tempfile.mkdtemp(), "greeting")
    >>> _ = open(path, "w").write("hello")
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.io.file.read(np.frombuffer(path.encode(), np.uint8))
    >>> bytes(pipe().run()[0].at(0))
    b'hello'
    """

    module = "io.file"
    by_frame = False
    is_prompt = True
    dont_use_mmap = Arg(
        bool, False, "Has no effect: files are never mapped, as truncating a mapped file ends the process."
    )
    use_o_direct = Arg(
        bool,
        False,
        "Whether to bypass the system's cache if the file system supports it, for data read once or larger than "
        "memory.",
    )

    def run(self, a: Arguments, x: Batch) -> Batch:
        if x.spec.ndim != 1 or x.spec.dtype.name not in ("uint8", "int8"):
            raise ValueError(
                "a path is a vector of bytes, such as np.frombuffer(path.encode(), np.uint8); got "
                f"{x.spec.ndim} dimensions of {x.spec.dtype.name}"
            )
        paths = [os.fsdecode(x.sample(i).tobytes().partition(b"\0")[0]) for i in range(a.n)]
        contents, owner, reasons = whole_files([x.sample(i) for i in range(a.n)], self.values["use_o_direct"], a.pool)
        if reasons:
            raise SampleErrors({i: f"{paths[i]}: {reason}" for i, reason in reasons.items()}, paths)
        return Batch(Spec(contents["shape"][:, :1], np.dtype("u1")), contents, (owner,), paths)
