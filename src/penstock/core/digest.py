# SPDX-License-Identifier: Apache-2.0
"""Names an exact set of kernel sources: the library carries the digest of those it was built from."""

import hashlib
import sys
from pathlib import Path


def digest(root: Path) -> str:
    h = hashlib.sha256()
    for f in sorted(p for p in root.rglob("*") if p.suffix in (".h", ".cpp", ".cu")):
        h.update(f.relative_to(root).as_posix().encode() + b"\0" + f.read_bytes())
    return h.hexdigest()[:16]


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(f'#define KERNELS_DIGEST "{digest(Path(sys.argv[1]))}"\n')
