# SPDX-License-Identifier: Apache-2.0
"""Operators that are not there, and what does their work: those of DALI, for errors and `penstock ops`."""

from __future__ import annotations

import re

from ..core.op import snake_case
from . import other_libraries

INSTEAD: dict[str, str] = {}  # operators of DALI that are not there, such as "readers.video": none at present
FORMER: dict[str, str] = {}  # their former names, such as "video_reader"


def explain(place: str, name: str) -> str:
    """A sentence on operator or module `name` of module `place` ("readers", or "" for fn itself); "" if neither DALI
    nor a library that is known here has one of that name."""
    dotted = f"{place}.{name}".lstrip(".")
    # As in fn, as in ops; TFRecord is tfrecord, and TFRecordReader tfrecord_reader.
    for wanted in (dotted, snake_case(dotted), dotted.lower(), re.sub("_?reader$", "_reader", dotted.lower())):
        known = FORMER.get(wanted, wanted)
        if known in INSTEAD:
            return f"DALI's fn.{known} is not implemented yet: {INSTEAD[known]}."
        within = [known for known in INSTEAD if known.startswith(wanted + ".")]
        if within:
            are = "is" if len(within) == 1 else "are"
            return f"DALI's fn.{', fn.'.join(within)} {are} not implemented yet: {INSTEAD[within[0]]}."
    return other_libraries.of_name(dotted)
