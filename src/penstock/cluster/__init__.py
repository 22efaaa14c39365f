# SPDX-License-Identifier: Apache-2.0
"""Batches made by other processes: `Pipeline(workers=...)`.

The pipeline picks samples in order, which takes microseconds; a worker makes a batch of the picks. So a batch is a
function of what travels to a worker, any worker can make any of them, and nothing that a checkpoint holds is there.
"""
