# SPDX-License-Identifier: Apache-2.0
"""The host never waits inside a batch, and a batch needs at most one launch per operator, for any number of samples.
tests/harness.py checks the same for single operators."""

import os
import threading
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from test_reuse import held

from emulated_work import work_of
from penstock import fn, math, pipeline_def, types
from penstock.operators.decode.gpu.jpeg_scans import DeferredErrors

if os.environ.get("PENSTOCK_TEST_GPU") == "1":
    pytest.skip("only the emulated device counts what it is asked for", allow_module_level=True)

PHOTOS = sorted(map(str, (Path(__file__).parents[2] / "examples" / "data").rglob("*.jpg")))


def first_batch(define, n):
    # With a memory limit, no other batch uses the first one's stream yet.
    options = {"prefetch_queue_depth": 1, "device_memory_limit": 1 << 30}
    made = pipeline_def(define, batch_size=n, num_threads=2, device_id=0, seed=3, **options)()
    return made, made.run(-1)


def ragged(n):
    rng = np.random.default_rng(2)
    images = [rng.integers(0, 256, (20 + 3 * i, 41 - 2 * i, 3), "u1") for i in range(n)]
    return fn.external_source(source=lambda: images, layout="HWC", device="gpu")


def normalized(x, **kwargs):
    mirror = fn.random.coin_flip()
    return fn.crop_mirror_normalize(x, mirror=mirror, mean=[120.0] * 3, std=[60.0] * 3, dtype=types.FLOAT, **kwargs)


CHAINS = {
    "resize, crop, mirror, normalise": lambda x: normalized(fn.resize(x, resize_shorter=24), crop=(16, 16)),
    "random_resized_crop, normalise": lambda x: normalized(fn.random_resized_crop(x, size=(16, 16))),
    "colours, cast, flip": lambda x: fn.flip(
        fn.cast(fn.color_twist(fn.brightness_contrast(x, brightness=1.3), hue=30.0), dtype=types.FLOAT), vertical=1
    ),
    "warp, colours, normalise": lambda x: normalized(fn.hsv(fn.rotate(x, angle=30.0), saturation=1.5)),
    "arithmetic": lambda x: math.sqrt(math.clamp(x * 2 + 1, 3, 200)) / 2,
}


@pytest.mark.parametrize("chain", CHAINS)
def test_a_chain_is_one_launch(chain):
    for n in (1, 4):
        _, outputs = first_batch(lambda n=n: CHAINS[chain](ragged(n)), n)
        assert work_of(outputs[0].stream) == (1, 0)


def test_several_outputs_of_a_batch():
    """One launch per output, without waiting in between."""

    def define():
        x = ragged(3)
        small = fn.resize(x, size=(16, 16))
        return small, fn.gaussian_blur(small, sigma=1.0), fn.reductions.mean(small), fn.cat(small, small), fn.shapes(x)

    _, outputs = first_batch(define, 3)
    launches, waits = work_of(outputs[0].stream)
    assert launches <= 8 and not waits


@pytest.mark.parametrize("n", [2, 7])
def test_decoding_waits_once_when_all_is_asked_for(n, monkeypatch):
    """It waits for the status of damaged images, after all work of the batch was launched. One of the seven is
    progressive, which the CPU decodes."""
    before, wait = [], DeferredErrors.wait

    def and_count(self, *args):
        before.append((self.stream.handle, work_of(self.stream.handle)))
        return wait(self, *args)

    monkeypatch.setattr(DeferredErrors, "wait", and_count)

    def define():
        jpegs, _ = fn.readers.file(files=PHOTOS, name="reader")
        images = fn.decoders.image(jpegs, device="mixed", hw_decoder_load=0.0)
        return normalized(fn.resize(images, resize_shorter=24), crop=(16, 16))

    _, outputs = first_batch(define, n)
    assert work_of(outputs[0].stream) == (4, 1)  # Huffman codes, blocks, pixels, and the chain
    assert dict(before)[outputs[0].stream] == (4, 0)


def test_batches_are_prepared_while_the_gpu_works():
    """The CPU's part of the next batches is complete, and their GPU work enqueued, before the GPU has started the
    first."""
    calls, got = [], []

    def source(i):
        calls.append(i)
        return [np.full((20, 30, 3), i, "u1")] * 2

    @pipeline_def(batch_size=2, num_threads=1, device_id=0)
    def pipe():
        x = fn.external_source(source=source, layout="HWC").gpu()
        return fn.gaussian_blur(fn.flip(x), sigma=1.0)

    made = pipe()
    made.build()
    streams = list(made._plan.session._streams)
    thread = threading.Thread(target=lambda: got.extend(made.run(-1)[0] for _ in range(6)), daemon=True)
    with ExitStack() as holding:
        for stream in streams:
            holding.enter_context(held(stream))
        thread.start()
        thread.join(60)
        assert len(got) == 6 and len(calls) >= 6
        assert not any(out._batch.ready.done() for out in got)
        tensor = got[0].as_tensor()
        assert tensor.__cuda_array_interface__["stream"] == tensor.stream in [s.handle for s in streams]
    assert [int(out.as_cpu().as_array().max()) for out in got] == list(range(6))
    assert got[0].as_tensor().__cuda_array_interface__["stream"] is None
