# SPDX-License-Identifier: Apache-2.0
"""Names an exact set of kernel sources: the library carries the digest of those it was built from, and that of those
which an installed package has, too."""

import os
import sys

SHIPPED = (".h", ".cu")  # what argument rows and the GPU's kernels are made of


def digest(root: str, endings: tuple[str, ...] = (*SHIPPED, ".cpp")) -> str:
    import hashlib  # OpenSSL, which takes as long to load as many operators

    h = hashlib.sha256()
    paths = [os.path.join(folder, f) for folder, _, files in os.walk(root) for f in files if f.endswith(endings)]
    for path in sorted(paths):
        with open(path, "rb") as f:
            h.update(os.path.relpath(path, root).replace(os.sep, "/").encode() + b"\0" + f.read())
    return h.hexdigest()[:16]


if __name__ == "__main__":
    with open(sys.argv[2], "w") as header:
        header.write(f'#define KERNELS_DIGEST "{digest(sys.argv[1])}{digest(sys.argv[1], SHIPPED)}"\n')
