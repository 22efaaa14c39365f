# SPDX-License-Identifier: Apache-2.0
"""References to a pipeline's outputs in a data loader before they are computed. Created in the loader's worker
processes.

A call of the proxy for a sample stores its inputs and returns a `DALIOutputSampleRef`. PyTorch's `default_collate`
converts a list of them to a `DALIOutputBatchRef` and sends the inputs of the whole batch to the process that runs the
pipeline.
"""

from __future__ import annotations

import inspect
import itertools
import os
from typing import Any

import numpy as np
import torch
from torch.utils.data._utils.collate import default_collate_fn_map

from .....core.constructors import of_signature

_NEXT = itertools.count()


Inputs = list[tuple[np.ndarray, ...]]  # by sample


class DALIPipelineRunRef:
    """One run of the pipeline, with an identifier that is unique across processes."""

    def __init__(self, batch_id: Any, inputs: Inputs | None = None):
        self.batch_id, self.inputs = batch_id, inputs

    def __repr__(self) -> str:
        return f"DALIPipelineRunRef({self.batch_id})"


class _Calls:
    """The inputs of the proxy's calls since the last batch, and the runs created from them.

    A batch uses the calls that belong to its samples: calls of failed samples are ignored, and two calls per sample
    create two runs."""

    def __init__(self) -> None:
        self.inputs: Inputs = []
        self.runs: dict[tuple[int, ...], DALIPipelineRunRef] = {}


class DALIOutputSampleRef:
    """One output for one sample."""

    def __init__(self, proxy: DALIProxy, calls: _Calls, output_idx: int, sample_idx: int):
        self.proxy, self.calls, self.output_idx, self.sample_idx = proxy, calls, output_idx, sample_idx

    def __repr__(self) -> str:
        return f"DALIOutputSampleRef(output_idx={self.output_idx}, sample_idx={self.sample_idx})"

    def __reduce__(self) -> Any:
        raise TypeError(
            "a sample of the DALI proxy left its worker process before it was in a batch; let the loader make batches "
            "(batch_size, not None) with default_collate, also inside of your own collate_fn"
        )


class DALIOutputBatchRef:
    """One output for a whole batch; `DALIServer.produce_data` turns it into a tensor."""

    def __init__(self, pipe_run_ref: DALIPipelineRunRef, output_idx: int):
        self.pipe_run_ref, self.output_idx = pipe_run_ref, output_idx

    def __repr__(self) -> str:
        return f"DALIOutputBatchRef({self.pipe_run_ref}, output_idx={self.output_idx})"


class DALIProxy:
    """A function of one sample's inputs that represents the pipeline: a data set's `transform`."""

    def __init__(self, inputs: list[str], n_outputs: int, inbox: Any, deterministic: bool):
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        self.__signature__ = inspect.Signature([inspect.Parameter(n, kind) for n in inputs])
        self.n_outputs, self._inbox, self._deterministic = n_outputs, inbox, deterministic
        self._calls = _Calls()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = of_signature("proxy", self.__signature__, args, kwargs)
        if self._calls.runs:
            self._calls = _Calls()
        row = len(self._calls.inputs)
        self._calls.inputs.append(tuple(map(_as_array, bound.args)))
        samples = tuple(DALIOutputSampleRef(self, self._calls, i, row) for i in range(self.n_outputs))
        return samples if self.n_outputs > 1 else samples[0]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_calls": _Calls()}

    def run(self, calls: _Calls, rows: tuple[int, ...]) -> DALIPipelineRunRef:
        """The run for these calls. Requests it if no other output has done so."""
        if rows not in calls.runs:
            run = DALIPipelineRunRef((os.getpid(), next(_NEXT)), [calls.inputs[i] for i in rows])
            if not self._deterministic:
                self._inbox.put((run.batch_id, run.inputs))
                run.inputs = None
            calls.runs[rows] = run
        return calls.runs[rows]


def _as_array(sample: Any) -> np.ndarray:
    """Converts a sample for transfer to another process, by value: shared memory would end with the worker."""
    return sample.detach().cpu().numpy() if isinstance(sample, torch.Tensor) else np.asarray(sample)


def _collate(samples: list[DALIOutputSampleRef], *, collate_fn_map: Any = None) -> DALIOutputBatchRef:
    first = samples[0]
    if any(s.calls is not first.calls or s.output_idx != first.output_idx for s in samples):
        raise RuntimeError("a batch has to be made of the same output of calls of the DALI proxy since the last batch")
    run = first.proxy.run(first.calls, tuple(s.sample_idx for s in samples))
    return DALIOutputBatchRef(run, first.output_idx)


default_collate_fn_map[DALIOutputSampleRef] = _collate
