# SPDX-License-Identifier: Apache-2.0
"""Identifies an exact set of kernel sources. The library contains two digests: of all the sources it was built from,
and of those shipped in an installed package."""

import os
import sys

SHIPPED = (".h", ".cu")  # used for argument rows and GPU kernels


def digest(root: str, endings: tuple[str, ...] = (*SHIPPED, ".cpp")) -> str:
    import hashlib  # loads OpenSSL, which takes as long as many operators

    h = hashlib.sha256()
    paths = [os.path.join(folder, f) for folder, _, files in os.walk(root) for f in files if f.endswith(endings)]
    for path in sorted(paths):
        with open(path, "rb") as f:
            h.update(os.path.relpath(path, root).replace(os.sep, "/").encode() + b"\0" + f.read())
    return h.hexdigest()[:16]


if __name__ == "__main__":
    with open(sys.argv[2], "w") as header:
        header.write(f'#define KERNELS_DIGEST "{digest(sys.argv[1])}{digest(sys.argv[1], SHIPPED)}"\n')
