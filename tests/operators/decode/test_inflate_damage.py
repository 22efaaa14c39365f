# SPDX-License-Identifier: Apache-2.0
"""decoders.inflate of damaged data: an error of the sample with a reason, on both devices, and nothing else."""

import numpy as np
import pytest

import lz4_blocks as blocks
from harness import ON_REAL_GPU
from operators.decode.test_inflate import DEVICES, FORMS, inflate, video
from penstock import fn, pipeline_def
from penstock.core import kernels
from penstock.core.batch import Batch, Spec
from penstock.pipeline import PipelineError

S = blocks.sequence
LONG = S(bytes(range(40)), 7, 300) + S(b"the end")
DAMAGED = {
    "ends within literals": (LONG[:-1], "it ends within a sequence, at byte 47 of 53"),
    "ends with a match": (S(b"abcd", 4, 8), "it ends within a sequence"),
    "ends within an offset": (S(b"abcd", 4, 8)[:-1], "it ends within a sequence"),
    "ends within a length": (S(b"abcd", 4, 900)[:-1], "it ends within a sequence"),
    "ends within a length of literals": (b"\xf0\xff\xff", "it ends within a sequence"),
    "ends within the last token's length": (b"\xf0", "it ends within a sequence"),
    "an offset of 0": (S(b"abcd", 0, 8) + S(b"ab"), "a match begins before the output"),
    "an offset too far": (S(b"abcd", 5, 8) + S(b"ab"), "a match begins before the output"),
    "an offset before all": (b"\0\1\0\0", "a match begins before the output"),
    "more literals": (S(bytes(401)), "the data becomes 401 bytes, the output has 400"),
    "a longer match": (S(b"a", 1, 400) + S(b""), "the data becomes 401 bytes, the output has 400"),
    "a very long match": (S(b"a", 1, 2**20) + S(b""), f"the data becomes {2**20 + 1} bytes"),
    "too long, and damaged": (S(b"a", 1, 400) + S(b"a", 500, 4), "more than the output has room for"),
    "a frame": (bytes.fromhex("04224d186040825f"), r"a frame of LZ4: take out the blocks, or use lz4.block"),
    "with its size": ((400).to_bytes(4, "little") + S(bytes(400)), "begins with its size: .*store_size=False"),
    "of zlib": (bytes.fromhex("789c4b4c4a06000274 0127".replace(" ", "")), "compressed by zlib; supported is LZ4"),
    "of gzip": (bytes.fromhex("1f8b08000000000002ff"), "compressed by gzip; supported is LZ4"),
    "of Zstandard": (bytes.fromhex("28b52ffd0458"), "compressed by Zstandard"),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", DAMAGED)
def test_damage_is_told(name, device):
    """The error states the sample, on both devices; the rest of the batch is correct."""
    damaged, text = DAMAGED[name]
    good = blocks.as_array(LONG)
    samples = [good, blocks.as_array(damaged), good]
    with pytest.raises(PipelineError, match=f"(?s)inflate.*{text}.*Sample 1 of iteration 0") as told:
        inflate(samples, device, shape=400)
    assert device.upper() in str(told.value)
    made, _, got = inflate(samples, device, "skip", shape=400)
    assert [g.tobytes() for g in got] == [blocks.decode(LONG).ljust(400, b"\0")] * 2
    assert [(e.sample, e.operator) for e in made.errors()[:1]] == [(1, "fn.decoders.inflate")]


def spoiled(rng, block):
    """The block with some bytes changed, cut out, put in, or its end cut."""
    b = bytearray(block)
    for _ in range(int(rng.integers(1, 4))):
        i, kind = int(rng.integers(0, len(b))), int(rng.integers(0, 4))
        if kind == 0:
            b[i] = int(rng.choice([0, 15, 240, 255, rng.integers(0, 256)]))
        elif kind == 1:
            del b[i : i + int(rng.integers(1, 4))]
        elif kind == 2:
            b[i:i] = bytes(rng.integers(0, 256, int(rng.integers(1, 4)), "u1"))
        else:
            del b[i:]
        b = b or bytearray(1)
    return bytes(b)


def decoded(block, room):
    try:
        return blocks.decode(block, room).ljust(room, b"\0")
    except ValueError:
        return None


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("seed", range(3))
def test_spoiled_blocks_are_errors_or_what_they_say(device, seed):
    """Compared with the definition, byte by byte: errors are the same, and so are the results."""
    rng = np.random.default_rng([seed, 1])
    n, room = (300, 700) if device == "cpu" or ON_REAL_GPU else (60, 700)
    coded = []
    for i in range(n):
        data = blocks.typical(rng, int(rng.integers(1, 700)), blocks.KINDS[i % 5])
        block = blocks.encode(data) if i % 3 else rng.integers(0, 256, 30, "u1").tobytes()
        coded.append(spoiled(rng, block))
    want = [decoded(b, room) for b in coded]
    assert 0.2 < np.mean([w is None for w in want]) < 0.95
    made, _, got = inflate([blocks.as_array(b) for b in coded], device, "skip", shape=room)
    assert sorted(e.sample for e in made.errors() if e.iteration == 0) == [i for i, w in enumerate(want) if w is None]
    assert [g.tobytes() for g in got] == [w for w in want if w is not None]


def test_nothing_is_written_behind_an_output_that_is_too_small(monkeypatch):
    """Whatever the data says."""
    monkeypatch.setattr(Batch, "guard_bytes", 64)
    rng = np.random.default_rng(4)
    many = b"".join(S(b"abcdefg"[: i % 8], 1 + i % 3, 4 + i % 23) if i else S(b"abc", 1, 4) for i in range(60)) + S(b"")
    coded = [blocks.as_array(b) for b in (*FORMS.values(), *(v[0] for v in DAMAGED.values()), many)]
    kernel, n = kernels.kernel("decode/lz4_chunks"), len(coded)
    failed = 0
    for _ in range(40):
        x = Batch.from_samples(coded)
        out = Batch.allocate(Spec(rng.integers(0, 300, (n, 1)), np.dtype("u1")))
        sizes = x.spec.volumes().reshape(n, 1)
        args, alive = kernel.rows(n, {"offsets": np.zeros((n, 1), "i8"), "sizes": sizes, "chunks": 1})
        outcome = kernels.Outcome(np.zeros(n, "i4"), n, 1)
        kernels.Pool(1).run([kernels.Step(kernel, args, [(out.rows, -1)], [(x.rows, -1)])], n, outcome)
        assert out.guards_intact()
        failed += outcome.failed
        del alive
    assert failed > 10 * n


@pytest.mark.parametrize("device", DEVICES)
def test_a_damaged_chunk_is_named(device):
    _, coded, offsets, sizes = video(np.random.default_rng(3), 4, (5,))
    bad = coded.copy()
    bad[offsets[2]] = 0xF0
    data = {"chunk_sizes": [sizes, sizes]}
    with pytest.raises(PipelineError, match=rf"chunk 2 \({sizes[2]} bytes from {offsets[2]} on\): .*damaged"):
        inflate([coded, bad], device, data=data, shape=5)


@pytest.mark.parametrize("device", DEVICES)
def test_good_batches_after_a_damaged_one(device):
    good, bad = blocks.as_array(LONG), blocks.as_array(LONG[:-1])
    batches = [[good, good], [good, bad], [good, good], [bad, bad], [good, good]]

    @pipeline_def(batch_size=2, num_threads=2, device_id=0 if device == "gpu" else None)
    def pipe():
        x = fn.external_source(batches)
        return fn.decoders.inflate(x.gpu() if device == "gpu" else x, shape=400)

    made = pipe()
    for batch in batches:
        if any(b is bad for b in batch):
            with pytest.raises(PipelineError, match="ends within a sequence"):
                made.run()
        else:
            host = made.run()[0].as_cpu()
            assert [np.array(host.at(i)).tobytes()[:340] for i in range(2)] == [blocks.decode(LONG)[:340]] * 2
