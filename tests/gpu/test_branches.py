# SPDX-License-Identifier: Apache-2.0
"""Conditionals on batches that are on the GPU."""

from pathlib import Path

import numpy as np
import pytest

from penstock import fn, pipeline_def, types

PHOTOS = sorted(map(str, (Path(__file__).parents[2] / "examples" / "data").rglob("*.jpg")))[:4]
SHAPES = [(4, 5, 3), (1, 1, 3), (7, 3, 3), (2, 6, 3), (5, 5, 3)]


def images(i):
    rng = np.random.default_rng(i)
    return [rng.integers(0, 256, s, np.uint8) for s in SHAPES]


def run(define, choices, device, n=3, size=5, source=images):
    """Batches of samples; `choices` gives the condition of each sample per batch."""

    def define_all():
        x = fn.external_source(source=lambda i: source(i)[:size], layout="HWC")
        p = fn.external_source(source=lambda i: [np.array(c) for c in choices[i % len(choices)][:size]])
        return define(x.gpu() if device == "gpu" else x, p)

    kwargs = {"batch_size": size, "num_threads": 2, "seed": 3, "device_id": 0 if device == "gpu" else None}
    pipe = pipeline_def(define_all, enable_conditionals=True, **kwargs)()
    out = []
    for _ in range(n):
        batches = [o.as_cpu() if hasattr(o, "as_cpu") else o for o in pipe.run()]
        out.append([[np.array(b.at(i)) for i in range(size)] for b in batches])
    return out


def same(a, b):
    for batch_a, batch_b in zip(a, b, strict=True):
        for x, y in zip(batch_a, batch_b, strict=True):
            for s, t in zip(x, y, strict=True):
                assert s.shape == t.shape and (s == t).all()


MIXED = [[0, 1, 2, 1, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0], [2, 0, 0, 0, 0]]


def two_ways(x, p):
    if p == 0:
        y = fn.brightness(x, brightness=2.0)
    else:
        y = fn.flip(x)
    return y, p


def nested(x, p):
    if p > 0:
        if p == 1:
            x = fn.flip(x, horizontal=0, vertical=1)
        else:
            x = fn.rotate(x, angle=90.0)
        x = fn.brightness(x, brightness=0.5)
    return fn.flip(x)


def untouched(x, p):
    if p == 1:
        x = fn.cast(x + 1, dtype=types.UINT8)
    return x


def returned(x, p):
    """The merged batch is used again as a whole."""
    y = x
    if p == 0:
        y = fn.contrast(x, contrast=0.5)
    return fn.crop_mirror_normalize(y, crop=(1, 1)), x, y


@pytest.mark.parametrize("define", [two_ways, nested, untouched, returned], ids=lambda f: f.__name__)
def test_as_on_the_cpu(define):
    same(run(define, MIXED, "gpu", 4), run(define, MIXED, "cpu", 4))


def test_a_batch_of_one():
    same(run(nested, MIXED, "gpu", 4, 1), run(nested, MIXED, "cpu", 4, 1))


def test_a_branch_on_the_cpu_is_sent_to_the_gpu():
    def define(x, p):
        y = fn.external_source(source=lambda i: images(i), layout="HWC")
        if p == 0:
            z = fn.flip(y)
        else:
            z = y.gpu()
        return z

    def on_cpu(x, p):
        y = fn.external_source(source=lambda i: images(i), layout="HWC")
        if p == 0:
            z = fn.flip(y)
        else:
            z = y
        return z

    same(run(define, MIXED, "gpu", 4), run(on_cpu, MIXED, "cpu", 4))


def test_what_a_branch_sends_to_the_gpu():
    def upload(x, p):
        y = fn.external_source(source=lambda i: images(i), layout="HWC")
        if p == 0:
            z = fn.brightness(y.gpu(), brightness=0.5)
        else:
            z = fn.brightness(fn.flip(y).gpu(), brightness=0.5)
        return z

    def same_on_cpu(x, p):
        if p == 0:
            z = fn.brightness(x, brightness=0.5)
        else:
            z = fn.brightness(fn.flip(x), brightness=0.5)
        return z

    same(run(upload, MIXED, "gpu", 4), run(same_on_cpu, MIXED, "cpu", 4))


@pytest.mark.parametrize("device", ["mixed", "cpu"])
def test_decoded_pictures(device):
    @pipeline_def(batch_size=4, num_threads=2, seed=1, device_id=0, enable_conditionals=True)
    def pipe():
        jpegs, _ = fn.readers.file(files=PHOTOS)
        decoder = {"hw_decoder_load": 0.0} if device == "mixed" else {}
        x = fn.resize(fn.decoders.image(jpegs, device=device, **decoder), size=[8, 8])
        if fn.random.coin_flip(dtype=types.BOOL):
            x = fn.flip(x)
        return x

    p = pipe()
    out = [o.as_cpu() if device == "mixed" else o for (o,) in (p.run() for _ in range(2))]
    assert all(np.asarray(o.as_array()).shape == (4, 8, 8, 3) for o in out)


def test_sequences():
    def source(i):
        rng = np.random.default_rng(i)
        return [rng.integers(0, 256, (f, 4, 5, 3), np.uint8) for f in (1, 3, 2, 4, 1)]

    def run_on(device):
        @pipeline_def(batch_size=5, num_threads=1, device_id=0 if device == "gpu" else None, enable_conditionals=True)
        def pipe():
            x = fn.external_source(source=source, layout="FHWC")
            p = fn.external_source(source=lambda i: [np.array(c) for c in MIXED[0]])
            x = x.gpu() if device == "gpu" else x
            if p == 0:
                x = fn.brightness(x, brightness=0.25)
            return x

        (out,) = pipe().run()
        out = out.as_cpu() if device == "gpu" else out
        return [np.array(out.at(i)) for i in range(5)]

    for a, b in zip(run_on("gpu"), run_on("cpu")):
        assert a.shape == b.shape and (a == b).all()


def test_a_merged_batch_shares_no_memory_with_the_next_one():
    """Batches that are kept do not change while others are computed."""

    @pipeline_def(batch_size=5, num_threads=1, device_id=0, enable_conditionals=True)
    def pipe():
        x = fn.external_source(source=images, layout="HWC").gpu()
        p = fn.external_source(source=lambda i: [np.array(c) for c in MIXED[0]])
        if p == 0:
            x = fn.flip(x)
        return x

    p = pipe()
    kept = [p.run()[0] for _ in range(4)]
    for i, batch in enumerate(kept):
        host = batch.as_cpu()
        for j, (want, c) in enumerate(zip(images(i), MIXED[0])):
            assert (np.array(host.at(j)) == (want[:, ::-1] if c == 0 else want)).all()


def test_a_condition_on_the_gpu_is_refused():
    def define(x, p):
        if p.gpu() == 0:
            x = fn.flip(x)
        return x

    with pytest.raises(RuntimeError, match=r"is on the GPU and can't be a condition"):
        run(define, MIXED, "gpu")


def test_bad_samples_in_a_branch_are_named():
    def define(x, p):
        if p == 0:
            x = fn.crop(x, crop=(100, 100))
        return x

    with pytest.raises(RuntimeError, match=r"fn\.crop"):
        run(define, MIXED, "gpu")


def test_operators_with_a_kernel_stay_on_the_gpu():
    """Only conditionals, which have no kernel, run on the CPU."""

    @pipeline_def(batch_size=5, num_threads=1, device_id=0, enable_conditionals=True)
    def pipe():
        x = fn.external_source(source=images, layout="HWC").gpu()
        if fn.external_source(source=lambda i: [np.array(c) for c in MIXED[0]]):
            x = fn.flip(x)
        return x, fn.random.uniform(device="gpu"), fn.random.uniform(x, device="gpu")

    text = pipe().explain()
    assert "chain, sample by sample" not in text and text.count("batch-wise") == 3, text
