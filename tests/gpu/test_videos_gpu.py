# SPDX-License-Identifier: Apache-2.0
"""Video readers with device="gpu": decoded on the CPU, returned on the GPU."""

import numpy as np
import pytest

from penstock import fn, pipeline_def, types

pytest.importorskip("av", reason="PyAV is not installed")
CLIP = "examples/clips/clock.mp4"


@pytest.mark.parametrize("dtype", [types.UINT8, types.FLOAT])
def test_readers_on_the_gpu(dtype):
    arguments = {"filenames": [CLIP], "labels": [3], "sequence_length": 4}

    @pipeline_def(batch_size=2, num_threads=2, device_id=0)
    def pipe():
        outputs = []
        for device in ("cpu", "gpu"):
            outputs += fn.readers.video(device=device, dtype=dtype, normalized=dtype == types.FLOAT, **arguments)
            outputs += fn.readers.video_resize(device=device, dtype=dtype, resize_shorter=20, **arguments)
            outputs += fn.experimental.readers.video(device=device, **arguments)
        return tuple(outputs)

    outputs = pipe().run()
    for cpu, gpu in zip(outputs[:6], outputs[6:]):
        assert type(gpu).__name__ == "TensorListGPU"
        a, b = cpu.as_array(), gpu.as_cpu().as_array()
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a.astype("f8"), b, atol=1 if dtype == types.UINT8 else 1e-2)
