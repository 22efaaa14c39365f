# SPDX-License-Identifier: Apache-2.0
"""Schedules batches: threads, bad samples, checkpoints, statistics."""
