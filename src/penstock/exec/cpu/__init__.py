# SPDX-License-Identifier: Apache-2.0
"""Chains on the CPU: planned once per batch, run sample by sample by the native pool."""
