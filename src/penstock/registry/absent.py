# SPDX-License-Identifier: Apache-2.0
"""DALI's operators that are not in penstock yet, and what does the work until then: for errors and `penstock ops`."""

from __future__ import annotations

import re

from ..core.op import snake_case

_ADVICE = {
    "read the files in Python and bring them in by fn.external_source (docs/sources.md)": (
        "readers.nemo_asr readers.sequence readers.video readers.video_resize "
        "experimental.inputs.video experimental.readers.fits experimental.readers.video"
    ),
}
INSTEAD = {name: advice for advice, names in _ADVICE.items() for name in names.split()}
FORMER = {f"{name.removeprefix('readers.')}_reader": name for name in INSTEAD if name.startswith("readers.")} | {
    "video_reader_resize": "readers.video_resize",
}


def explain(place: str, name: str) -> str:
    """A sentence on operator or module `name` of module `place` ("readers", or "" for fn itself); "" if DALI has none
    of that name."""
    dotted = f"{place}.{name}".lstrip(".")
    # As in fn, as in ops; TFRecord is tfrecord, and TFRecordReader tfrecord_reader.
    for wanted in (dotted, snake_case(dotted), dotted.lower(), re.sub("_?reader$", "_reader", dotted.lower())):
        known = FORMER.get(wanted, wanted)
        if known in INSTEAD:
            return f"DALI's fn.{known} is not there yet: {INSTEAD[known]}."
        within = [known for known in INSTEAD if known.startswith(wanted + ".")]
        if within:
            return f"DALI's fn.{', fn.'.join(within)} are not there yet: {INSTEAD[within[0]]}."
    return ""
