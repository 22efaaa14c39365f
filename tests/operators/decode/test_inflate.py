# SPDX-License-Identifier: Apache-2.0
"""decoders.inflate against the definition of the format, and against what the lz4 library compresses."""

import itertools

import numpy as np
import pytest

import lz4_blocks as blocks
from harness import Column, op_test, per_sample, random_array
from penstock import fn, ops, pipeline_def, types
from penstock.pipeline import PipelineError

TYPES = ("?", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8")
SHAPES = [(2, 3, 4), (1, 1, 1), (0, 5, 2), (7, 1, 6), (4, 3, 4)]  # at most 48 elements
DEVICES = ("cpu", "gpu")
GPU_ONLY = {"dali_differs": {"-": "DALI has it on the GPU only"}}


def filled(data, shape, dtype):
    """The array that begins with these bytes, followed by zeros."""
    want = np.zeros(int(np.prod(shape)) * dtype.itemsize, "u1")
    want[: len(data)] = np.frombuffer(data, "u1")
    return want.view(dtype).reshape(shape)


def reference(x, shape, dtype=types.UINT8, chunk_offsets=None, chunk_sizes=None, **_):
    dtype, shape = np.dtype(types.to_numpy_type(dtype)), [int(n) for n in np.ravel(shape)]
    if chunk_offsets is None and chunk_sizes is None:
        return filled(blocks.decode(x), shape, dtype)
    if chunk_offsets is None:
        chunk_offsets = np.cumsum([0, *chunk_sizes])[:-1]
    if chunk_sizes is None:
        chunk_sizes = np.diff([*chunk_offsets, len(x)])
    chunks = [filled(blocks.decode(x[o : o + n]), shape, dtype) for o, n in zip(chunk_offsets, chunk_sizes)]
    return np.stack(chunks) if chunks else np.zeros((0, *shape), dtype)


def arrays(dtype):
    def make(rng, case):
        made = [random_array(rng, s, dtype) for s in SHAPES]
        made[3][...] = made[3].ravel()[0]  # a match that overlaps itself
        return [blocks.as_array(blocks.encode(x.tobytes())) for x in made]

    return make


for _type in TYPES:
    _name = "bool" if _type == "?" else np.dtype(_type).name
    globals()[f"Test_{_name}"] = op_test(
        "decoders.inflate",
        reference,
        layouts=("",),
        args=[
            {"shape": [48], "dtype": getattr(types, "FLOAT" if _type == "f4" else _name.upper())},
            {
                "shape": per_sample(4, 7, (3,), "i4"),
                "dtype": getattr(types, "FLOAT" if _type == "f4" else _name.upper()),
                "layout": "HWC",
            },
        ],
        make_input=arrays(_type),
        **GPU_ONLY,
    )


def chunks_of(rng, case):
    """Chunks of fixed sizes: literals only."""
    return [blocks.as_array(b"".join(blocks.sequence(rng.integers(0, 256, 11, "u1").tobytes()) for _ in range(3)))] * 5


TestChunks = op_test(
    "decoders.inflate",
    reference,
    layouts=("",),
    args=[
        {"shape": [11], "chunk_sizes": [12, 12, 12]},
        {"shape": [3, 2], "chunk_sizes": [12, 12], "dtype": types.INT16, "layout": "HW"},
        {"shape": 12, "chunk_offsets": [0, 12, 24], "layout": "X", "sequence_axis_name": "D"},
        {"shape": [2, 2, 3], "chunk_offsets": [12, 24], "layout": "HWC"},
        {"shape": [11], "chunk_offsets": [24, 0, 12, 12], "chunk_sizes": [12] * 4},
        {
            "shape": [11],
            "chunk_offsets": Column(lambda rng, s: rng.permutation(3).astype("i4") * 12, (3,)),
            "chunk_sizes": [12] * 3,
        },
        {"shape": [3], "chunk_sizes": [], "layout": "X"},
        {"shape": [4, 5], "chunk_offsets": []},
    ],
    make_input=chunks_of,
    **GPU_ONLY,
    errors=[
        (
            {"chunk_sizes": [12, 25]},
            RuntimeError,
            r"chunk 1, 25 bytes from 12 on, exceeds the total size of the sample.*has 36 bytes",
        ),
        (
            {"chunk_sizes": [12, 0]},
            RuntimeError,
            r"chunk_sizes\[1\]: chunk size must be positive; got 0; the sample has 36 bytes",
        ),
        ({"chunk_sizes": [37]}, RuntimeError, r"chunk_sizes\[0\] cannot exceed the sample size; got 37"),
        ({"chunk_sizes": [-1]}, RuntimeError, r"chunk_sizes\[0\]: chunk size must be positive; got -1"),
        ({"chunk_offsets": [12, 24]}, RuntimeError, "chunk_offsets has 2 values and chunk_sizes 3"),
        ({"chunk_offsets": [0, 12, 25]}, RuntimeError, "chunk 2, 12 bytes from 25 on, cannot exceed the sample size"),
        ({"chunk_offsets": [-1, 0, 12]}, RuntimeError, r"chunk_offsets\[0\] must be non-negative; got -1"),
        ({"chunk_offsets": [0, 36, 12]}, RuntimeError, r"chunk_offsets\[1\] cannot point past the last byte; got 36"),
        (
            {"chunk_sizes": None, "chunk_offsets": [12, 12]},
            RuntimeError,
            "12 and the next one 12: .*would be non-positive.* have to increase",
        ),
        ({"chunk_sizes": [6, 12, 12]}, RuntimeError, r"chunk 0 \(6 bytes from 0 on\): the data is no block of LZ4"),
        (
            {"shape": [10]},
            RuntimeError,
            r"chunk 0 \(12 bytes from 0 on\): the data becomes 11 bytes, the output has 10",
        ),
        ({"shape": [3, -1]}, RuntimeError, r"extents can't be negative; shape is \[3, -1\]"),
        ({"layout": "HW"}, ValueError, "layout='HW' has 2 names, `shape` 1 extents"),
        ({"sequence_axis_name": "FG"}, ValueError, "sequence_axis_name takes one character; got 'FG'"),
        ({"sequence_axis_name": ""}, ValueError, "sequence_axis_name takes one character; got ''"),
        ({"algorithm": "deflate"}, ValueError, "algorithm takes 'LZ4'; got 'deflate'"),
        ({"dtype": types.DATA_TYPE}, ValueError, "dtype takes a type of numbers"),
    ],
)


def inflate(samples, device="cpu", on_error="raise", operator=fn.decoders.inflate, data=None, **kwargs):
    """The pipeline, its output's layout and samples; `data` are arguments that differ from sample to sample."""

    @pipeline_def(batch_size=len(samples), num_threads=2, device_id=0 if device == "gpu" else None, on_error=on_error)
    def pipe():
        x = fn.external_source(lambda: list(samples))
        more = {k: fn.external_source(lambda _, v=v: [np.asarray(i, "i4") for i in v]) for k, v in (data or {}).items()}
        return operator(x.gpu() if device == "gpu" else x, **kwargs, **more)

    made = pipe()
    (out,) = made.run()
    host = out.as_cpu()
    return made, out.layout(), [np.array(host.at(i)) for i in range(len(host))]


# Sequences of all kinds -----------------------------------------------------------------------------------------------

S = blocks.sequence
LENGTHS = (0, 1, 14, 15, 16, 31, 32, 33, 269, 270, 271, 525, 600, 2100, 5000)
FORMS = {
    "nothing": S(b""),
    "a literal": S(b"x"),
    **{f"{n} literals": S((bytes(range(256)) * 20)[:n]) for n in LENGTHS},
    **{
        f"{4 + n} bytes from {offset} ago": S((bytes(range(1, 256)) * 3)[:offset], offset, 4 + n) + S(b"end..")
        for n in LENGTHS
        for offset in (1, 2, 3, 5, 15, 16, 17, 31, 32, 33, 64, 255, 700)
    },
    "matches alone": S(b"ab", 2, 4) + S(b"", 1, 4) + S(b"", 7, 19) + S(b""),
    "a far match": S(b"0123456789" * 6553 + b"abcde", 65535, 40) + S(b"z"),
    "many": b"".join(S(bytes([i % 251, i % 7]), 1 + i % 2, 4 + i % 40) for i in range(400)) + S(b"last one"),
}


@pytest.mark.parametrize("device", DEVICES)
def test_sequences(device):
    """Each within a batch of all of them, in an output that ends where the data does, and in a larger one."""
    names = list(FORMS)
    wanted = [blocks.decode(b) for b in FORMS.values()]
    for more in (0, 1, 15, 16, 700):
        shapes = [[len(w) + more] for w in wanted]
        _, _, got = inflate([blocks.as_array(b) for b in FORMS.values()], device, data={"shape": shapes})
        for name, g, w, s in zip(names, got, wanted, shapes):
            assert np.array_equal(g, filled(w, s, np.dtype("u1"))), name


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("how", ["default", "high_compression", "fast"])
def test_what_the_library_compresses(device, how):
    block = pytest.importorskip("lz4.block")
    rng = np.random.default_rng(5)
    sizes = [*rng.integers(1, 3000, 20), *rng.integers(1, 90000, 5), 1, 12, 13, 65536, 70000]
    data = [blocks.typical(rng, int(n), k) for n, k in zip(sizes, itertools.cycle(blocks.KINDS))]
    options = {"default": {}, "fast": {"mode": "fast", "acceleration": 9}}.get(how, {"mode": how, "compression": 12})
    coded = [blocks.as_array(block.compress(d, store_size=False, **options)) for d in data]
    _, _, got = inflate(coded, device, data={"shape": [[len(d)] for d in data]})
    assert [g.tobytes() for g in got] == data


def test_the_blocks_of_these_tests_are_blocks():
    block = pytest.importorskip("lz4.block")
    rng = np.random.default_rng(6)
    for kind in blocks.KINDS:
        data = blocks.typical(rng, 3000, kind) + bytes(range(12))
        assert blocks.decode(block.compress(data, store_size=False)) == data
        assert block.decompress(blocks.encode(data), uncompressed_size=len(data)) == data


# Chunks ---------------------------------------------------------------------------------------------------------------


def video(rng, n_chunks, shape, dtype="u1"):
    frames = [random_array(rng, shape, dtype) for _ in range(n_chunks)]
    coded = [blocks.encode(f.tobytes()) for f in frames]
    sizes = [len(c) for c in coded]
    offsets = np.cumsum([0, *sizes])[:-1].tolist()
    return np.array(frames, dtype).reshape(n_chunks, *shape), blocks.as_array(b"".join(coded)), offsets, sizes


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("given", [("chunk_offsets",), ("chunk_sizes",), ("chunk_offsets", "chunk_sizes")])
def test_numbers_of_chunks_and_shapes_differ(device, given):
    rng = np.random.default_rng(8)
    samples = [video(rng, n, (h, 3, 2), "i2") for n, h in ((1, 5), (7, 2), (3, 4), (16, 1), (2, 9), (4, 0))]
    frames, coded, offsets, sizes = zip(*samples)
    data = {"chunk_offsets": offsets, "chunk_sizes": sizes}
    if len(given) == 2:  # any of them, in any order
        order = [rng.permutation(len(f))[: max(1, len(f) - 1)] for f in frames]
        data = {k: [np.array(v)[o] for v, o in zip(values, order)] for k, values in data.items()}
        frames = [f[o] for f, o in zip(frames, order)]
    data = {k: data[k] for k in given} | {"shape": [f.shape[1:] for f in frames]}
    _, layout, got = inflate(coded, device, data=data, dtype=types.INT16, layout="HWC")
    assert layout == "FHWC"
    for g, f in zip(got, frames):
        np.testing.assert_array_equal(g, f, strict=True)


@pytest.mark.parametrize("device", DEVICES)
def test_samples_without_chunks(device):
    coded = [blocks.as_array(S(b"abcd"))] * 3
    _, layout, got = inflate(coded, device, data={"chunk_sizes": [[5], [], [5]]}, shape=[2, 2], layout="HW")
    assert layout == "FHW" and [g.shape for g in got] == [(1, 2, 2), (0, 2, 2), (1, 2, 2)]
    assert got[2].tobytes() == b"abcd"


def test_a_scalar():
    _, layout, got = inflate([blocks.as_array(S(b"\1\2"))], shape=[], dtype=types.INT16)
    assert layout == "" and got[0].shape == () and got[0] == 0x201


def test_layouts():
    x = [blocks.as_array(S(b"abcd"))]
    assert inflate(x, shape=[2, 2], layout="HW", sequence_axis_name="Q")[1] == "HW"
    assert inflate(x, shape=[2, 2], chunk_offsets=[0], sequence_axis_name="Q")[1] == ""
    assert inflate(x, shape=[2, 2], chunk_offsets=[0], layout="HW", sequence_axis_name="Q")[1] == "QHW"


def test_frames_go_on_as_a_sequence():
    frames, coded, _, sizes = video(np.random.default_rng(9), 3, (4, 6, 3))

    @pipeline_def(batch_size=2, num_threads=2)
    def pipe():
        x = fn.decoders.inflate(coded, chunk_sizes=sizes, shape=(4, 6, 3), layout="HWC")
        return fn.flip(x, horizontal=1), fn.crop(x, crop=(2, 2))

    flipped, cropped = pipe().run()
    for i in range(2):
        np.testing.assert_array_equal(flipped.at(i), frames[:, :, ::-1])
        np.testing.assert_array_equal(cropped.at(i), frames[:, 1:3, 2:4])


# Names, arguments -----------------------------------------------------------------------------------------------------


def test_former_names():
    x, want = [blocks.as_array(S(b"abcd"))], b"abcd"
    with pytest.warns(DeprecationWarning, match="fn.experimental.inflate is deprecated; it is now fn.decoders.inflate"):
        assert inflate(x, operator=fn.experimental.inflate, shape=4)[2][0].tobytes() == want
    with pytest.warns(DeprecationWarning, match="ops.experimental.Inflate is deprecated"):
        former = ops.experimental.Inflate(shape=[4])
    assert inflate(x, operator=former)[2][0].tobytes() == want


@pytest.mark.parametrize("arguments", [{"algorithm": "lz4"}, {"check_output_size": True}, {"sequence_axis_name": None}])
def test_arguments_that_change_nothing(arguments):
    assert inflate([blocks.as_array(S(b"abcd"))], shape=4, **arguments)[2][0].tobytes() == b"abcd"


def test_a_shape_is_wanted():
    with pytest.raises(TypeError, match="shape"):
        inflate([blocks.as_array(S(b"abcd"))])


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (np.zeros(4, "f4"), "bytes, uint8 of one dimension; got float32 of 1 dimensions"),
        (np.zeros(4, "i1"), "got int8"),
        (np.zeros((2, 2), "u1"), "got uint8 of 2 dimensions"),
        (np.uint8(3), "got uint8 of 0 dimensions"),
        (np.zeros(0, "u1"), "the sample is empty; a block has one byte at least"),
    ],
)
@pytest.mark.parametrize("device", DEVICES)
def test_inputs_that_are_no_data(x, text, device):
    with pytest.raises(PipelineError, match=text):
        inflate([np.asarray(x)], device, shape=4)
