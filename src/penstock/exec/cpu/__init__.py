# SPDX-License-Identifier: Apache-2.0
"""Chains on the CPU: planned once per batch, run by the native pool sample by sample."""
