# SPDX-License-Identifier: Apache-2.0
"""Where the kernels' headers and the native library are, for those who compile against them.

>>> from penstock import sysconfig
>>> sysconfig.get_include_flags() == ["-I" + sysconfig.get_include_dir()]
True
"""

import os

from .core.kernels import ROOT

__all__ = ["get_compile_flags", "get_include_dir", "get_include_flags", "get_lib_dir", "get_link_flags"]


def get_include_dir() -> str:
    """The folder of the headers: `#include "core/kernel.h"` is found there."""
    return ROOT


def get_lib_dir() -> str:
    """The folder of libpenstock.so."""
    return os.path.dirname(os.path.abspath(__file__))


def get_include_flags() -> list[str]:
    """Flags of a C++ compiler that make it find the headers."""
    return ["-I" + get_include_dir()]


def get_compile_flags() -> list[str]:
    """All flags that compiling a kernel needs."""
    return [*get_include_flags(), "-std=c++17", "-ffp-contract=off"]


def get_link_flags() -> list[str]:
    """Flags that link with the native library."""
    return ["-L" + get_lib_dir(), "-lpenstock"]
