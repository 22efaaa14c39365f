# SPDX-License-Identifier: Apache-2.0
"""Random numbers of kernels that draw by themselves (kernels/random/draws.h)."""

from __future__ import annotations

from .op import Arguments


def draws(a: Arguments) -> dict[str, object]:
    """The fields of a kernel's arguments that its random numbers follow from."""
    return a.random.fields()
