# SPDX-License-Identifier: Apache-2.0
"""Locations of the kernels' headers and the native library, for compiling against them.

>>> from penstock import sysconfig
>>> sysconfig.get_include_flags() == ["-I" + sysconfig.get_include_dir()]
True
"""

import os

from .core.kernels import ROOT

__all__ = ["get_compile_flags", "get_include_dir", "get_include_flags", "get_lib_dir", "get_link_flags"]


def get_include_dir() -> str:
    """Returns the folder of the headers, in which `#include "core/kernel.h"` is found."""
    return ROOT


def get_lib_dir() -> str:
    """Returns the folder of libpenstock.so."""
    return os.path.dirname(os.path.abspath(__file__))


def get_include_flags() -> list[str]:
    """Returns the compiler flags for finding the headers."""
    return ["-I" + get_include_dir()]


def get_compile_flags() -> list[str]:
    """Returns all flags for compiling a kernel."""
    return [*get_include_flags(), "-std=c++17", "-ffp-contract=off"]


def get_link_flags() -> list[str]:
    """Returns the flags for linking with the native library."""
    return ["-L" + get_lib_dir(), "-lpenstock"]
