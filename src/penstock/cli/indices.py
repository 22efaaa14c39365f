# SPDX-License-Identifier: Apache-2.0
"""The commands that write index files, with DALI's arguments and output: `tfrecord2idx` and `rec2idx`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import numpy as np


def tfrecord2idx(arguments: Sequence[str] | None = None) -> int:
    """tfrecord2idx <tfrecord filename> <index filename>: writes a line "offset size" for each record."""
    return _write("tfrecord2idx", "tfrecord", "tfrecord_records", "{1} {2}\n", arguments)


def rec2idx(arguments: Sequence[str] | None = None) -> int:
    """rec2idx <record filename> <index filename>: writes a line "number offset" for each record."""
    return _write("rec2idx", "record", "recordio_records", "{0}\t{1}\n", arguments)


def _write(command: str, what: str, scan: str, line: str, arguments: Sequence[str] | None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    if len(arguments) != 2:
        print(f"usage: {command} <{what} filename> <index filename>", file=sys.stderr)
        return 2
    from ..core.new_files import replacing
    from ..operators.read._indices import scan_file

    try:
        rows: np.ndarray = scan_file(scan, arguments[0])
        text: Callable[..., str] = line.format
        with replacing(arguments[1], "w") as f:
            f.writelines(text(i, offset, size) for i, (offset, size) in enumerate(rows.tolist()))
    except (OSError, ValueError) as e:
        print(f"{command}: {e}", file=sys.stderr)
        return 1
    return 0
