# SPDX-License-Identifier: Apache-2.0
"""Properties of samples."""

from __future__ import annotations

import os

import numpy as np

from ...core.batch import Batch
from ...core.op import Arg, Arguments, Operator
from ...core.source_name import given_name

_KEYS = ("source_info", "layout")


class GetProperty(Operator):
    """Returns a property of each sample, as a vector of bytes (uint8). Same as `DataNode.property()`.

    `"source_info"` is the origin of the sample: the path of a file as given to the reader, or relative to its
    `file_root`; the function and the index of the sample for `external_source` (empty in DALI); empty for constants.
    `"layout"` is the layout. The data of the sample is not read.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.get_property(types.Constant(np.zeros((4, 5, 3), np.uint8), layout="HWC"), key="layout")
    >>> bytes(pipe().run()[0].at(0))
    b'HWC'
    """

    devices = ("cpu", "gpu")
    metadata = (0,)
    by_frame = False
    is_prompt = True
    key = Arg(str, doc="The property: source_info or layout.")

    def setup(self) -> None:
        if self.values["key"] not in _KEYS:
            raise ValueError(f"{self.display_name()}: key takes {' or '.join(_KEYS)}; got {self.values['key']!r}")

    def run(self, a: Arguments, x: Batch) -> Batch:
        if self.values["key"] == "layout":
            layout = np.frombuffer(x.spec.layout.encode(), "u1")
            return Batch.from_array(np.repeat(layout[None], a.n, axis=0))
        sources = [""] * a.n if x.sources is None else x.sources
        return Batch.from_samples([np.frombuffer(os.fsencode(given_name(s or "")), "u1") for s in sources])
