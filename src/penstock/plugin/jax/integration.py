# SPDX-License-Identifier: Apache-2.0
"""Equivalent of DALI's module of this name."""

from __future__ import annotations

from typing import Any

import jax

from . import placement


def _to_jax_array(dali_tensor: Any, copy: bool) -> jax.Array:
    """Returns a sample, or a batch whose samples have the same shape, as an array on its device; shares its memory
    unless `copy`."""
    array = placement.to_jax(placement.tensor(dali_tensor, "tensor") if hasattr(dali_tensor, "at") else dali_tensor)
    return array.copy() if copy else array


def _jax_device(jax_array: jax.Array) -> jax.Device:
    """The device of an array that is on one."""
    (device,) = jax_array.devices()
    return device
