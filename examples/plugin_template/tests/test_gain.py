import my_effects  # noqa: F401  (adds fn.gain)
import numpy as np
import pytest

from penstock import fn, pipeline_def
from penstock.backend import GetCUDADeviceCount

HAS_GPU = GetCUDADeviceCount() > 0
DEVICES = ("cpu", pytest.param("gpu", marks=pytest.mark.skipif(not HAS_GPU, reason="no GPU")))


def reference(x, gain):
    wide = x.astype("f4") * np.float32(gain)
    return wide if x.dtype == "f4" else np.clip(np.floor(wide + 0.5), 0, np.iinfo(x.dtype).max).astype(x.dtype)


def run(samples, gains, device):
    @pipeline_def(batch_size=len(samples), num_threads=2, device_id=0 if device == "gpu" else None)
    def pipe():
        images = fn.external_source(lambda: samples, layout="HWC")
        gain = fn.external_source(lambda: [np.float32(g) for g in gains])
        return fn.gain(images.gpu() if device == "gpu" else images, gain=gain)

    (out,) = pipe().run()
    out = out.as_cpu() if device == "gpu" else out
    return [np.array(out.at(i)) for i in range(len(samples))]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ("u1", "u2", "f4"))
def test_values(dtype, device):
    rng = np.random.default_rng(1)
    samples = [rng.integers(0, 256, (h, w, 3)).astype(dtype) for h, w in ((1, 1), (33, 70), (5, 8))]
    gains = [0, 1.5, 300]
    for got, x, gain in zip(run(samples, gains, device), samples, gains):
        np.testing.assert_array_equal(got, reference(x, gain))


def test_a_negative_gain_is_an_error():
    with pytest.raises(RuntimeError, match="gain is -1.0; it has to be at least 0"):
        run([np.zeros((2, 2, 3), "u1")], [-1], "cpu")
