# SPDX-License-Identifier: Apache-2.0
"""The native library exports no names of the libraries it uses: these would call ours instead of their own, for example
libpng a kernel named `inflate`."""

import ctypes
import os
import re
from pathlib import Path

from penstock.core import kernels


def exported():
    """Names of functions declared in the sources."""
    for path in Path(kernels.ROOT).rglob("*.cpp"):
        text = path.read_text()
        yield from re.findall(r"\bEXPORT_KERNEL\((\w+)", text)
        yield from re.findall(r"^EXPORT \w[\w \*:]*?(\w+)\(", text, re.M)


def test_no_library_has_them():
    lib = kernels.library()
    names = sorted({*exported()})
    assert len(names) > 100 and all(lib.address(n) for n in names)
    maps = Path("/proc/self/maps").read_text()
    used = {
        m[1]
        for m in re.finditer(
            r"(/\S*/lib(?:z|png|jpeg|tiff|webp|sharpyuv|openjp2|c|m|stdc\+\+|gcc_s)[\d.-]*\.so\S*)", maps
        )
    }
    assert {"libz", "libc"} <= {re.split(r"[.-]", os.path.basename(p))[0] for p in used}
    # libz is Python's where the library has its own codecs, as that of the wheel does.
    handles = {path: ctypes.CDLL(path) for path in sorted(used)}
    assert [(n, path) for path, handle in handles.items() for n in names if hasattr(handle, n)] == []
