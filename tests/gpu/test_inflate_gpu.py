# SPDX-License-Identifier: Apache-2.0
"""Decompression on the GPU: for any size of the window in shared memory, the bytes are the same as on the CPU and as
before compression. The kernel's status of bad samples is handled wherever the operator is used."""

import numpy as np
import pytest
from segments import Segment, Step

import encoded_images
import lz4_blocks as blocks
from penstock import fn, pipeline_def, types
from penstock.core.batch import Spec
from penstock.gpu import forms
from penstock.gpu.session import Session
from penstock.pipeline import PipelineError

S = blocks.sequence
beside = forms.beside("decode/lz4_chunks")
GOOD, BAD = S(bytes(range(20)), 3, 60) + S(b"end"), S(bytes(range(20)), 3, 60)


def typical():
    """Launches with all compile-time options."""
    for n in (1, 500, 1000, 3000):
        specs = {0: Spec.uniform(1, (40,), np.dtype("u1")), 1: Spec.uniform(1, (n, 3), np.dtype("u1"))}
        yield Segment([Step("decode/lz4_chunks", [1], [0], {"chunks": np.full(1, n, "i8")})], specs, {}, {1})


def test_typical_launches_are_all_there_are():
    sizes = {x.shared for s in typical() for x in s.launches()[1]}
    assert sizes == {w + beside._INPUT for w in (*beside._WINDOWS.values(), beside._SMALLEST)}


def test_types_and_axes_share_what_is_compiled(monkeypatch):
    sources = set()
    function = Session.function

    def noted(self, source, *more):
        sources.add(source)
        return function(self, source, *more)

    monkeypatch.setattr(Session, "function", noted)

    @pipeline_def(batch_size=1, num_threads=1, device_id=0)
    def pipe():
        x = fn.external_source(lambda: [blocks.as_array(S(bytes(range(24))))]).gpu()
        kinds = ((types.FLOAT, [6]), (types.UINT8, [2, 3, 4]), (types.INT16, [3, 4]))
        return tuple(fn.decoders.inflate(x, dtype=dtype, shape=shape) for dtype, shape in kinds)

    assert [np.array(t.as_cpu().at(0)).tobytes() for t in pipe().run()] == [bytes(range(24))] * 3
    assert len(sources) == 1


def far_matches(rng, n):
    """About n bytes: matches of all lengths from just within and beyond what may be kept, and from 65535 bytes ago."""
    data = rng.integers(0, 256, 66000, "u1").tobytes()
    block = b""
    near = [w + d for w in (4096, 8192, 16384, 32768) for d in (-513, -512, -511, -16, -1, 0, 1, 511)]
    made = 66000
    while made < n:
        offset = int(rng.choice([*near, 65535, 65000, rng.integers(1, 65536)]))
        match = int(rng.choice([4, 31, 511, 512, 513, 700, 3000]))
        literals = rng.integers(0, 256, int(rng.integers(0, 40)), "u1").tobytes()
        block += S(data + literals, offset, match)
        made, data = made + len(literals) + match, b""
    return block + S(b"the end")


@pytest.mark.parametrize("multiprocessors", [132, 1, 0.5, 0.25, 0.1])
@pytest.mark.parametrize("ahead", [0, 1, 7])
def test_what_is_kept_does_not_matter(multiprocessors, ahead, monkeypatch):
    """Three chunks at odd places of input and output."""
    monkeypatch.setattr(beside, "_MULTIPROCESSORS", multiprocessors)
    coded = [far_matches(np.random.default_rng([k, 5]), 90_000) for k in range(3)]
    wanted = [blocks.decode(c) for c in coded]
    size = max(map(len, wanted)) + 1 - max(map(len, wanted)) % 2
    sample = blocks.as_array(bytes(ahead) + b"".join(coded))
    offsets = ahead + np.cumsum([0, *map(len, coded)])[:-1]

    @pipeline_def(batch_size=1, num_threads=1, device_id=0)
    def pipe():
        chunks = {"chunk_offsets": offsets.tolist(), "chunk_sizes": [len(c) for c in coded]}
        return fn.decoders.inflate(fn.external_source(lambda: [sample]).gpu(), shape=[size], **chunks)

    got = np.array(pipe().run()[0].as_cpu().at(0))
    assert [g.tobytes() for g in got] == [w.ljust(size, b"\0") for w in wanted]


def image(seed):
    return encoded_images.encode(encoded_images.photograph(seed, 24, 32), "JPEG")


@pytest.mark.parametrize("bad_image", [False, True])
def test_beside_a_decoder(bad_image):
    """Two kinds of stages with deferred status."""
    images = [image(i) for i in range(3)]
    if bad_image:
        data = image(7).tobytes()
        images[0] = np.frombuffer(data[: len(data) // 2], "u1")
    data = [blocks.as_array(b) for b in (GOOD, GOOD, BAD)]

    @pipeline_def(batch_size=3, num_threads=2, device_id=0, on_error="skip")
    def pipe():
        pixels = fn.decoders.image(fn.external_source(lambda: images), device="mixed", hw_decoder_load=0.0)
        return pixels, fn.decoders.inflate(fn.external_source(lambda: data).gpu(), shape=83)

    made = pipe()
    pixels, out = made.run()
    kept = [1] if bad_image else [0, 1]
    assert made.sample_indices().tolist() == kept and len(pixels) == len(kept)
    assert [np.array(out.as_cpu().at(i)).tobytes() for i in range(len(kept))] == [blocks.decode(GOOD)] * len(kept)
    told = {(e.sample, e.operator) for e in made.errors() if e.iteration == 0}
    assert told == {(2, "fn.decoders.inflate")} | ({(0, "fn.decoders.image")} if bad_image else set())


def test_in_a_branch():
    """Sample indices refer to the batch, not to the branch."""
    data = [blocks.as_array(b) for b in (GOOD, BAD, GOOD, BAD, BAD)]
    compressed = [np.bool_(x) for x in (1, 0, 1, 0, 1)]

    @pipeline_def(batch_size=5, num_threads=2, device_id=0, enable_conditionals=True, on_error="skip")
    def pipe():
        x = fn.external_source(lambda: data).gpu()
        if fn.external_source(lambda: compressed):
            out = fn.decoders.inflate(x, shape=83)
        else:
            out = x
        return out

    made = pipe()
    (out,) = made.run()
    assert [e.sample for e in made.errors() if e.iteration == 0] == [4]
    got = [np.array(out.as_cpu().at(i)).tobytes() for i in range(len(out))]
    assert got == [blocks.decode(GOOD), BAD, blocks.decode(GOOD), BAD]


def test_operators_behind_it_and_data_that_goes_back():
    """The batch's outputs are on the CPU; their inputs were checked before."""
    for data in ([GOOD, GOOD], [GOOD, BAD]):

        @pipeline_def(batch_size=2, num_threads=2, device_id=0)
        def pipe(data=data):
            x = fn.external_source(lambda: [blocks.as_array(b) for b in data]).gpu()
            out = fn.decoders.inflate(x, shape=[1, 83, 1], layout="HWC")
            return (fn.flip(out, horizontal=1) + 1).cpu()

        if data[1] is BAD:
            with pytest.raises(PipelineError, match="ends within a sequence.*\nSample 1 of"):
                pipe().run()
        else:
            want = np.frombuffer(blocks.decode(GOOD), "u1")[::-1] + 1
            assert np.array_equal(pipe().run()[0].at(1).ravel(), want)


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_who_is_given_what_is_bad_is_not_blamed(on_error):
    """The second sample's extents are arbitrary memory content."""
    extents = [blocks.as_array(S(np.int32([2, 3]).tobytes())), blocks.as_array(S(np.int32([3, 2]).tobytes())[:-1])]

    @pipeline_def(batch_size=2, num_threads=2, device_id=0, on_error=on_error)
    def pipe():
        shape = fn.decoders.inflate(fn.external_source(lambda: extents).gpu(), shape=2, dtype=types.INT32).cpu()
        return fn.reshape(fn.external_source(lambda: [np.zeros(6, "u1")] * 2), shape=shape)

    made = pipe()
    if on_error == "skip":
        (out,) = made.run()
        assert [out.at(i).shape for i in range(len(out))] == [(2, 3)]
        assert {e.operator for e in made.errors()} == {"fn.decoders.inflate"}
    else:
        with pytest.raises(PipelineError, match="(?s)decoders.inflate.*ends within a sequence.*Sample 1"):
            made.run()


def test_debugging_tells_it_where_it_is():
    def define():
        x = fn.external_source(lambda: [blocks.as_array(b) for b in (GOOD, BAD)]).gpu()
        return fn.decoders.inflate(x, shape=83)

    made = pipeline_def(define, batch_size=2, num_threads=1, device_id=0, debug=True)()
    with pytest.raises(PipelineError, match="(?s)inflate.*ends within a sequence.*Sample 1"):
        made.run()


def test_the_imperative_mode():
    import penstock.experimental.dynamic as ndd

    good, bad = (ndd.as_tensor(blocks.as_array(b), device="gpu") for b in (GOOD, BAD))
    out = ndd.decoders.inflate(good, shape=[83])
    assert np.asarray(out.cpu()).tobytes() == blocks.decode(GOOD)
    with pytest.raises(Exception, match="inflate.*(?s:.*)ends within a sequence"):
        ndd.decoders.inflate(bad, shape=[83]).evaluate()


def test_explain_names_the_stage():
    @pipeline_def(batch_size=1, num_threads=1, device_id=0)
    def pipe():
        return fn.decoders.inflate(fn.external_source(lambda: [blocks.as_array(GOOD)]).gpu(), shape=83)

    made = pipe()
    made.build()
    assert "a kernel on the GPU that finds bad samples" in str(made.explain())
