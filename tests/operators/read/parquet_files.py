# SPDX-License-Identifier: Apache-2.0
"""What a pipeline reads from Parquet files."""

import numpy as np

from penstock import fn, pipeline_def


def build(path, names=("label",), batch_size=1, on_error="raise", num_threads=2, pipeline=None, **kwargs):
    @pipeline_def(batch_size=batch_size, num_threads=num_threads, on_error=on_error, **{"seed": 1, **(pipeline or {})})
    def pipe():
        outputs = fn.readers.parquet(path=path, columns=list(names), name="r", **kwargs)
        return tuple(outputs) if isinstance(outputs, list) else outputs

    return pipe()


def read(path, names=("label",), **kwargs):
    """All rows of an epoch, as tuples of arrays."""
    pipe = build(path, names, **kwargs)
    return [tuple(np.array(x.at(0)) for x in pipe.run()) for _ in range(pipe.epoch_size("r"))]


def resumed(kwargs, checkpoint):
    return {**kwargs, "pipeline": {"enable_checkpointing": True, "checkpoint": checkpoint}}


def labels(path, n_epochs=1, **kwargs):
    pipe = build(path, **kwargs)
    return [[pipe.run()[0].at(0).item() for _ in range(pipe.epoch_size("r"))] for _ in range(n_epochs)]
