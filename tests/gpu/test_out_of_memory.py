# SPDX-License-Identifier: Apache-2.0
"""If GPU memory is insufficient, the error states the operator and the size, and the pipeline continues."""

import os

import numpy as np
import pytest

from penstock import fn, pipeline_def
from penstock.core.errors import PipelineError

N = 4


def fed(define, **kwargs):
    @pipeline_def(batch_size=N, num_threads=1, device_id=0, prefetch_queue_depth=1)
    def pipe():
        return define(fn.external_source(name="x", device="gpu", layout="HWC"))

    return pipe(**kwargs)


def pictures(extent):
    return [np.zeros((extent, extent, 3), "u1")] * N


def test_the_error_names_the_operator_with_the_largest_output():
    pipe = fed(
        lambda x: (fn.crop(x, crop=(8, 8)), fn.resize(x, size=(512, 512)), fn.flip(x)), device_memory_limit=2 << 20
    )
    for _ in range(2):
        for extent in (63, 64):
            with pytest.raises(PipelineError) as error:
                pipe.run(x=pictures(extent))
            text = str(error.value)
            assert text.index("fn.resize") < text.index("test_out_of_memory.py"), text
            assert "the pipeline holds 0 MiB" in text and "device_memory_limit of 2 MiB" in text
            assert "What was asked for: fn.resize 3.0 MiB, fn.flip 0.0 MiB, fn.crop 0.0 MiB, what lies between" in text
            assert "lower batch_size" in text
    pipe.close()


def test_pictures_of_ever_other_sizes():
    """Their plans are computed by a record."""
    pipe = fed(lambda x: fn.rotate(x, angle=45.0), device_memory_limit=12 << 20)
    for extent in range(10, 22):
        pipe.run(x=pictures(extent))
    with pytest.raises(PipelineError, match=r"fn.rotate(?s:.)*What was asked for: fn.rotate 1\d.\d MiB, what"):
        pipe.run(x=pictures(800))
    (chain,) = next(iter(pipe._plan.chains.values()))
    assert chain.plans.counts["by program"] > 0
    assert len(pipe.run(x=pictures(9))[0]) == N


@pytest.mark.skipif(os.environ.get("PENSTOCK_TEST_GPU") == "1", reason="needs a GPU whose memory can be limited")
def test_what_others_hold(monkeypatch):
    pipe = fed(lambda x: fn.resize(x, size=(2048, 2048)))
    monkeypatch.setenv("PENSTOCK_EMULATED_MEMORY", str(40 << 20))
    with pytest.raises(PipelineError, match=r"fn.resize(?s:.)*has \d+ MiB left and a batch needs 48 MiB(?s:.)*Lower"):
        pipe.run(x=pictures(4))
    monkeypatch.delenv("PENSTOCK_EMULATED_MEMORY")
