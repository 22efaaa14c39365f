# SPDX-License-Identifier: Apache-2.0
"""DALI's operators that do not exist here, and their replacements, for errors and `penstock ops`."""

from __future__ import annotations

import re

from ..core.op import snake_case
from . import other_libraries

INSTEAD: dict[str, str] = {}  # missing operators of DALI, such as "readers.video"; none at present
FORMER: dict[str, str] = {}  # their former names, such as "video_reader"


def explain(place: str, name: str) -> str:
    """A sentence about operator or module `name` in module `place` ("readers", or "" for fn itself); "" if neither DALI
    nor another known library has it."""
    dotted = f"{place}.{name}".lstrip(".")
    # Spellings of fn and ops. TFRecord is tfrecord, and TFRecordReader is tfrecord_reader.
    for wanted in (dotted, snake_case(dotted), dotted.lower(), re.sub("_?reader$", "_reader", dotted.lower())):
        known = FORMER.get(wanted, wanted)
        if known in INSTEAD:
            return f"DALI's fn.{known} is not implemented yet: {INSTEAD[known]}."
        within = [known for known in INSTEAD if known.startswith(wanted + ".")]
        if within:
            are = "is" if len(within) == 1 else "are"
            return f"DALI's fn.{', fn.'.join(within)} {are} not implemented yet: {INSTEAD[within[0]]}."
    return other_libraries.of_name(dotted)
