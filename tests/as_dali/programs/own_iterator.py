# SPDX-License-Identifier: Apache-2.0
"""An iterator derived from DALI's base class, for custom tensors: the base determines the end of an epoch and the
padding."""

import numpy as np
import torch
from nvidia.dali.plugin.base_iterator import LastBatchPolicy, _DaliBaseIterator
from nvidia.dali.plugin.pytorch import feed_ndarray, to_torch_type


class Own(_DaliBaseIterator):
    def __init__(self, pipelines, output_map, size=-1, reader_name=None, auto_reset=False, **more):
        self.output_map = output_map
        policy = more.get("last_batch_policy", LastBatchPolicy.FILL)
        first = more.get("prepare_first_batch", True)
        _DaliBaseIterator.__init__(
            self, pipelines, size, reader_name, auto_reset, None, False, policy, prepare_first_batch=first
        )
        self._first_batch = None
        if self._prepare_first_batch:
            try:
                self._first_batch = Own.__next__(self)
                self._ever_consumed = False
            except StopIteration:
                self._report_no_data_in_pipeline()

    def __next__(self):
        self._ever_consumed = True
        if self._first_batch is not None:
            batch, self._first_batch = self._first_batch, None
            return batch
        batches = []
        for outputs in self._get_outputs():
            batch = {}
            for name, out in zip(self.output_map, outputs):
                tensor = out.as_tensor()
                batch[name] = torch.empty(tensor.shape(), dtype=to_torch_type[tensor.dtype])
                feed_ndarray(tensor, batch[name])
            batches.append(batch)
        self._schedule_runs()
        self._advance_and_check_drop_last()
        if self._reader_name:
            is_cut, left = self._remove_padded()
            if np.any(is_cut):
                batches = [{k: v[:n] for k, v in b.items()} for b, n in zip(batches, left)]
        elif self._last_batch_policy == LastBatchPolicy.PARTIAL and 0 < self._size < self._counter:
            rest = self._num_gpus * self.batch_size - (self._counter - self._size)
            keep = [min(max(rest - i * self.batch_size, 0), self.batch_size) for i in range(self._num_gpus)]
            batches = [{k: v[:n] for k, v in b.items()} for b, n in zip(batches, keep) if n]
        return batches
