# SPDX-License-Identifier: Apache-2.0
"""The command `wds2idx`: writes the index file of a WebDataset archive for `fn.readers.webdataset`.

The reader does not require it: it scans the archive itself, and keeps the result.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

from ..core.new_files import replacing
from ..operators.read._table import scan

_VERSION = "v1.2"
_REPORT_STEP = 100000


class IndexCreator:
    """Writes the index of the archive `uri` to `idx_path`: a line for each sample, of its members' extensions, offsets,
    sizes and names. Also a context manager."""

    def __init__(self, uri: str, idx_path: str, verbose: bool = True):
        self.uri, self.idx_path, self.verbose = uri, idx_path, verbose

    def __enter__(self) -> IndexCreator:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Has no effect: no file stays open between calls."""

    @staticmethod
    def split_name(filepath: str) -> tuple[str, str]:
        """The base name, before the first dot of the file's own name, and the extension behind it."""
        dot = filepath.find(".", filepath.rfind("/") + 1)
        return filepath[:dot], filepath[dot + 1 :]

    def create_index(self) -> None:
        """Scans the archive and writes the index. Raises ValueError for what is no archive or has no samples."""
        begin, count = time.time(), 0

        def report(stage: str) -> None:
            if self.verbose:
                print(f"time: {time.time() - begin:.2f} count: {count} stage: {stage}")

        report("collect")
        try:
            table = scan("tar_members", os.fsencode(self.uri), offset="i8", size="i8", name_end="i8", names="u1")
        except ValueError as e:
            raise ValueError(f"{self.uri}: {e}") from None
        names, ends = table["names"].tobytes(), table["name_end"].tolist()
        samples: list[list[str]] = []
        last, start = None, 0
        for offset, size, end in zip(table["offset"].tolist(), table["size"].tolist(), ends):
            name, start = os.fsdecode(names[start:end]), end
            count += 1
            base, extension = self.split_name(name)
            if not base or base.endswith("/"):  # hidden files and folders
                continue
            if base != last:
                samples.append([])
                last = base
            samples[-1].append(f"{extension} {offset} {size} {name}")
            if count % _REPORT_STEP == 0:
                report("collect")
        if not samples:
            raise ValueError(f"{self.uri}: the archive has no samples, which are files with an extension")
        with replacing(self.idx_path, "w", errors="surrogateescape") as f:
            f.write(f"{_VERSION} {len(samples)}\n")
            f.writelines(" ".join(s) + "\n" for s in samples)
        report("done")


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="wds2idx",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        description="Writes the index file of a WebDataset archive, for fn.readers.webdataset.",
    )
    parser.add_argument("archive", help="path of the .tar file")
    parser.add_argument("index", nargs="?", help="path of the index file (default: the archive's with .idx)")
    args = parser.parse_args()
    if args.index is None:
        args.index = args.archive[: args.archive.find(".", args.archive.rfind("/") + 2)] + ".idx"
    args.archive, args.index = os.path.abspath(args.archive), os.path.abspath(args.index)
    return args


def main() -> None:
    args = parse_args()
    try:
        with IndexCreator(args.archive, args.index) as creator:
            creator.create_index()
    except (ValueError, OSError) as e:
        sys.exit(f"wds2idx: {e}")
