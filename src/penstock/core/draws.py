# SPDX-License-Identifier: Apache-2.0
"""Random numbers of kernels that draw their own (kernels/random/draws.h)."""

from __future__ import annotations

from .op import Arguments


def draws(a: Arguments) -> dict[str, object]:
    """The kernel argument fields that determine its random numbers."""
    return a.random.fields()
