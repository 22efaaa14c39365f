# SPDX-License-Identifier: Apache-2.0
"""Batches made by worker processes: `Pipeline(workers=...)`.

The pipeline picks samples in order, which takes microseconds; a worker makes the batch of these picks. A batch depends
only on the data sent to the worker, so any worker can make any batch, and workers have no state to checkpoint.
"""
