# SPDX-License-Identifier: Apache-2.0
"""Debug mode with GPU operators: the same batches as the graph, with values available immediately."""

from pathlib import Path

import numpy as np
import pytest

from penstock import PipelineError, fn, pipeline_def, types
from penstock.tensors import TensorListCPU

PHOTOS = sorted(map(str, (Path(__file__).parents[2] / "examples" / "data").rglob("*.jpg")))[:3]


def images(i):
    return [np.random.default_rng(i).integers(0, 256, s, np.uint8) for s in ((4, 5, 3), (1, 1, 3), (7, 3, 3))]


def colours():
    x = fn.external_source(source=images, layout="HWC").gpu()
    y = fn.flip(x)
    z = fn.brightness(y, brightness=fn.random.uniform(range=[0.5, 1.5]))
    return y, z + 1, fn.random.uniform(device="gpu"), z.cpu()


def branches():
    x = fn.external_source(source=images, layout="HWC").gpu()
    k = fn.external_source(source=lambda i: [np.int32(k) for k in range(3)])
    if k == 1:
        x = fn.rotate(x, angle=90.0)
    elif k > 1:
        x = fn.brightness(x, brightness=0.5)
    return x, k


def pictures():
    jpegs, labels = fn.readers.file(files=PHOTOS)
    x = fn.decoders.image(jpegs, device="mixed")
    return fn.resize(x, size=[8, 9]), labels


def capsules():
    x = fn.external_source(source=images).gpu()
    return fn.dl_tensor_python_function(x, function=lambda c: c[::-1])


def batches(define, n=2, **kwargs):
    pipe = pipeline_def(define, batch_size=3, num_threads=1, device_id=0, seed=5, enable_conditionals=True, **kwargs)()
    found = []
    for _ in range(n):
        outputs = pipe.run()
        found.append([(o.layout(), [np.array(o.as_cpu().at(i)) for i in range(3)]) for o in outputs])
    return found


@pytest.mark.parametrize("define", [colours, branches, pictures, capsules], ids=lambda f: f.__name__)
def test_same_as_the_graph(define):
    for a, b in zip(batches(define), batches(define, debug=True), strict=True):
        for (layout, x), (other, y) in zip(a, b, strict=True):
            assert layout == other
            for s, t in zip(x, y):
                np.testing.assert_array_equal(s, t)


def test_values_can_be_looked_at(capsys):
    @pipeline_def(batch_size=3, num_threads=1, device_id=0, debug=True)
    def pipe():
        x = fn.external_source(source=images, layout="HWC")
        y = fn.flip(x.gpu())
        assert isinstance(x.get(), TensorListCPU) and y.shape() == [(4, 5, 3), (1, 1, 3), (7, 3, 3)]
        np.testing.assert_array_equal(y.get().as_cpu().at(2), np.array(x.get().at(2))[:, ::-1])
        assert (y.dtype, y.layout()) == (types.UINT8, "HWC")
        print(y)
        return y

    pipe().run()
    assert 'device="gpu"' in capsys.readouterr().out


def test_errors_are_raised_at_the_call():
    lines = []

    @pipeline_def(batch_size=3, num_threads=1, device_id=0, debug=True)
    def pipe():
        x = fn.external_source(source=images, layout="HWC").gpu()
        lines.append("before")
        y = fn.reshape(x, shape=[1, 2])
        lines.append("after")
        return y

    p = pipe()
    with pytest.raises(PipelineError, match="y = fn.reshape"):
        p.run()
    assert lines == ["before"]


def test_no_device():
    with pytest.raises(ValueError, match="no device_id"):
        pipeline_def(colours, batch_size=3, num_threads=1, debug=True)().run()
