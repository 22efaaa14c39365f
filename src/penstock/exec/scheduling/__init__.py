# SPDX-License-Identifier: Apache-2.0
"""The order of batches: threads, the native pool, bad samples, checkpoints, statistics."""
