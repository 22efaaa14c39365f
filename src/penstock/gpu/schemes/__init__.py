# SPDX-License-Identifier: Apache-2.0
"""Companions of block and own kernels: how a call becomes launches. `plan(task) -> list[Phase]`, see launch.py."""
