# SPDX-License-Identifier: Apache-2.0
"""Modules that are experimental in DALI."""
