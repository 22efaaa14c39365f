# SPDX-License-Identifier: Apache-2.0
"""Iterators for training frameworks. Each module imports its framework; nothing else does."""
