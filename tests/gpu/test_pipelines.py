# SPDX-License-Identifier: Apache-2.0
"""Whole pipelines on the GPU compared with the same on the CPU."""

import gc
from pathlib import Path

import numpy as np
import pytest

import encoded_images
from penstock import fn, pipeline_def, types
from penstock.gpu.driver import CudaError, Device
from penstock.gpu.memory import OutOfDeviceMemory, pool
from penstock.gpu.stream import Stream
from penstock.pipeline import PipelineError

PHOTOS = Path(__file__).parents[2] / "examples" / "data"
FILES = sorted(map(str, PHOTOS.rglob("*.jpg")))[:6]


def both(define, n=2, batch_size=3, **kwargs):
    """Outputs of `define(device)` on the GPU (copied to the CPU) and on the CPU, n batches of each."""
    pipes = [
        pipeline_def(lambda d=d: define(d), batch_size=batch_size, num_threads=2, seed=5, **kwargs)(device_id=i)
        for d, i in (("gpu", 0), ("cpu", None))
    ]
    for _ in range(n):
        gpu, cpu = (p.run() for p in pipes)
        yield [g.as_cpu() for g in gpu], cpu


def assert_close(got, want, steps=0.0):
    assert len(got) == len(want) and got.layout() == want.layout() and got.dtype == want.dtype
    for i in range(len(got)):
        a, b = np.asarray(got.at(i)), np.asarray(want.at(i))
        assert a.shape == b.shape
        assert np.abs(a.astype("f8") - b.astype("f8")).max(initial=0) <= steps


def decoder_of(device):
    """Without the GPU's JPEG engine, as its pixels differ."""
    return {"device": "mixed", "hw_decoder_load": 0.0} if device == "gpu" else {"device": "cpu"}


def decoded(device, **kwargs):
    jpegs, _ = fn.readers.file(files=FILES, random_shuffle=True, name="reader")
    return fn.decoders.image(jpegs, **decoder_of(device), **kwargs)


def moved(node, device):
    return node.gpu() if device == "gpu" else node


@pytest.mark.parametrize("output_type", [types.RGB, types.BGR, types.GRAY, types.YCbCr, types.ANY_DATA])
def test_decoding(output_type):
    for got, want in both(lambda d: decoded(d, output_type=output_type)):
        assert_close(got[0], want[0])


@pytest.mark.parametrize("operator", ["image_crop", "image_random_crop", "image_slice"])
def test_decoding_a_part(operator):
    def define(device):
        jpegs, _ = fn.readers.file(files=FILES, name="reader")
        kwargs = {"image_crop": {"crop": (40, 50)}, "image_slice": {"start": [10, 20], "shape": [30, 40]}}
        return getattr(fn.decoders, operator)(jpegs, **decoder_of(device), **kwargs.get(operator, {}))

    for got, want in both(define):
        assert_close(got[0], want[0])


def test_files_of_other_formats_and_damaged_headers(tmp_path):
    """Other files than plain JPEG are decoded by the CPU and copied."""
    names = []
    for i, kind in enumerate(("PNG", "BMP", "PPM", "JPEG", "TIFF")):
        path = tmp_path / f"{i}.img"
        path.write_bytes(encoded_images.encode(encoded_images.photograph(i, 20 + i, 30), kind).tobytes())
        names.append(str(path))

    def define(device):
        data, _ = fn.readers.file(files=names, name="reader")
        return fn.decoders.image(data, **decoder_of(device))

    for got, want in both(define, batch_size=5):
        assert_close(got[0], want[0])


def test_validation_and_training():
    def define(device):
        x = decoded(device)
        y = fn.resize(x, resize_shorter=64)
        kwargs = {"dtype": types.FLOAT, "output_layout": "CHW", "mean": [120.0] * 3, "std": [60.0] * 3}
        z = fn.random_resized_crop(x, size=(48, 40), random_area=[0.2, 1.0])
        mirror = fn.random.coin_flip()
        return (
            fn.crop_mirror_normalize(y, crop=(56, 48), mirror=mirror, **kwargs),
            fn.crop_mirror_normalize(z, mirror=mirror, **kwargs),
            fn.flip(y, horizontal=mirror),
        )

    for got, want in both(define):
        assert_close(got[0], want[0], 1.01 / 60)
        assert_close(got[1], want[1], 1.01 / 60)
        assert_close(got[2], want[2], 1)


def test_a_chain_of_colours_is_that_of_the_cpu():
    def define(device):
        x = fn.brightness_contrast(decoded(device), brightness=1.2, contrast=0.8)
        x = fn.color_twist(x, hue=20.0, saturation=1.3)
        return fn.cast(fn.flip(x, vertical=1), dtype=types.FLOAT)

    for got, want in both(define):
        assert_close(got[0], want[0], 1)


def test_copies_between_the_devices():
    def define(device):
        x = fn.random.uniform(range=(0, 1), shape=(4, 5))
        y = moved(x, device)
        z = (y * 2 + 1).cpu() if device == "gpu" else y * 2 + 1
        return moved(z - 1, device), moved(x, device)

    for got, want in both(define):
        assert_close(got[0], want[0])
        assert_close(got[1], want[1])


def test_sources_for_the_gpu():
    def define(device):
        return fn.external_source(lambda: np.arange(6, dtype="f4").reshape(3, 2), device=device, batch=True)

    for got, want in both(define):
        assert_close(got[0], want[0])


@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_bad_pictures(on_error, tmp_path):
    names = list(FILES)
    whole = Path(FILES[1]).read_bytes()
    names[1] = str(tmp_path / "cut.jpg")
    Path(names[1]).write_bytes(whole[: len(whole) // 2])

    def define(device):
        jpegs, labels = fn.readers.file(files=names, labels=list(range(6)), name="reader")
        return fn.decoders.image(jpegs, **decoder_of(device)), moved(labels, device)

    for got, want in both(define, on_error=on_error):
        assert_close(got[0], want[0])
        assert_close(got[1], want[1])


@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_pictures_damaged_inside(on_error, tmp_path):
    """The GPU decodes them and detects the damage at the end; then the CPU decides and provides the reasons."""
    names, rng = list(FILES) * 2, np.random.default_rng(1)
    for i in (1, 4, 6, 7):
        data = bytearray(Path(names[i]).read_bytes())
        at = int(rng.integers(len(data) * 2 // 3, len(data) - 60))
        del data[at : at + 50]
        names[i] = str(tmp_path / f"damaged{i}.jpg")
        Path(names[i]).write_bytes(data)

    def define(device):
        jpegs, labels = fn.readers.file(files=names, labels=list(range(len(names))), name="reader")
        images = fn.decoders.image(jpegs, **decoder_of(device))
        return fn.resize(images, size=(20, 30)), images, moved(labels, device)

    pipes = [
        pipeline_def(lambda d=d: define(d), batch_size=4, num_threads=2, seed=5, on_error=on_error)(device_id=i)
        for d, i in (("gpu", 0), ("cpu", None))
    ]
    for _ in range(3):
        gpu, cpu = (p.run() for p in pipes)
        for got, want, steps in zip(gpu, cpu, (1, 0, 0)):
            assert_close(got.as_cpu(), want, steps)
    errors = [{(e.source, e.operator, e.reason) for e in p.errors() if e.iteration < 3} for p in pipes]
    assert errors[0] == errors[1] and errors[0]


def test_a_bad_picture_is_raised_and_the_pipeline_runs_on(tmp_path):
    bad = tmp_path / "bad.jpg"
    bad.write_bytes(Path(FILES[0]).read_bytes()[:2000])

    @pipeline_def(batch_size=2, num_threads=2, device_id=0)
    def pipe():
        jpegs, _ = fn.readers.file(files=[FILES[0], str(bad), FILES[1], FILES[2]], name="reader")
        return fn.decoders.image(jpegs, device="mixed")

    p = pipe()
    with pytest.raises(PipelineError, match=r"bad\.jpg"):
        p.run()
    assert len(p.run()[0]) == 2


def test_what_cannot_be():
    with pytest.raises(ValueError, match="no device_id"):
        pipeline_def(lambda: decoded("gpu"), batch_size=1)().build()
    with pytest.raises(CudaError, match="device_id=99 can't be used"):
        pipeline_def(lambda: decoded("gpu"), batch_size=1, device_id=99)().build()
    with pytest.raises(ValueError, match=r"arguments are read by the CPU"):
        pipeline_def(
            lambda: fn.brightness(decoded("gpu"), brightness=fn.random.uniform(device="gpu")), batch_size=1, device_id=0
        )()
    with pytest.raises(ValueError, match=r"copy it with \.cpu\(\)|use device='gpu'"):
        pipeline_def(lambda: fn.brightness(decoded("gpu"), device="cpu"), batch_size=1, device_id=0)()
    with pytest.raises(ValueError, match="can't be used: it takes 'cpu'"):
        pipeline_def(lambda: fn.readers.file(files=FILES, device="gpu")[0], batch_size=1, device_id=0)()


def test_memory_is_bounded_counted_and_given_back():
    def pipe(limit=None):
        return pipeline_def(lambda: fn.resize(decoded("gpu"), size=(64, 64)), batch_size=4, device_id=0, num_threads=2)(
            device_memory_limit=limit
        )

    p = pipe(1 << 16)
    with pytest.raises((OutOfDeviceMemory, PipelineError), match="device_memory_limit"):
        p.run()
    p.close()
    device = Device.get(0)
    with device:
        pool(device).trim()
    held = pool(device).held
    p = pipe()
    for _ in range(3):
        out = p.run()
    assert p.stats()["gpu"]["memory_mb"] > 0
    p.close()
    del p, out
    gc.collect()
    with device:
        pool(device).trim()
    assert pool(device).held <= held


def test_containers():
    p = pipeline_def(lambda: decoded("gpu"), batch_size=3, device_id=0, num_threads=1)()
    (out,) = p.run()
    assert len(out) == 3 and out.layout() == "HWC" and out.ndim() == 3 and not out.is_dense_tensor()
    one = out[1]
    assert one.shape() == list(out.shape()[1]) and one.dtype == types.UINT8 and one.source_info().endswith(".jpg")
    interface = one.__cuda_array_interface__
    assert interface["shape"] == tuple(one.shape()) and interface["data"][0] == one.data_ptr()
    assert one.__dlpack_device__() == (2, 0)
    assert "TensorListGPU" in repr(out) and 'device="gpu"' in repr(out)
    with pytest.raises(ValueError, match="differ in shape"):
        out.as_tensor()
    again = type(out)([out[0], out[2]])
    assert again.shape() == [out.shape()[0], out.shape()[2]]
    np.testing.assert_array_equal(again.as_cpu().at(1), out.as_cpu().at(2))
    taken = type(one)(one.__dlpack__())
    np.testing.assert_array_equal(np.asarray(taken.as_cpu()), np.asarray(one.as_cpu()))


def test_several_pipelines_and_a_small_last_batch():
    pipes = [pipeline_def(lambda: decoded("gpu"), batch_size=4, device_id=0, num_threads=1, seed=3)() for _ in range(2)]
    for _ in range(3):
        a, b = (p.run()[0].as_cpu() for p in pipes)
        assert_close(a, b)
    text = pipes[0].explain()
    assert "decoding by CPU and GPU" in text
    assert "decoded by" in str(pipes[0].stats())


def test_the_engines_agree_on_average():
    """With all engines, colours at sharp edges may differ, as the JPEG engine interpolates chroma differently."""
    jpegs = lambda: fn.readers.file(files=FILES, name="reader")[0]
    shared = pipeline_def(
        lambda: fn.decoders.image(jpegs(), device="mixed", hw_decoder_load=0.65), batch_size=6, device_id=0
    )()
    alone = pipeline_def(lambda: fn.decoders.image(jpegs()), batch_size=6)()
    for _ in range(3):
        got, want = shared.run()[0].as_cpu(), alone.run()[0]
        for i in range(6):
            assert np.abs(got.at(i).astype("f4") - want.at(i)).mean() < 3


def test_memory_may_outlive_the_stream_that_used_it():
    """In a garbage cycle, a stream may be destroyed before memory blocks that it used."""
    device = Device.get(0)
    with device:
        stream = Stream(device)
        block = pool(device).take(1 << 20, stream)
        stream.fill(block.address, 1, 1 << 20)
    stream.__del__()
    address = block.address
    del block
    assert pool(device)._returned[-1][0] == address and not pool(device)._returned[-1][2]
    stream.handle = None


def test_a_batch_that_is_repeated_is_uploaded_once():
    images = [np.full((20 + k, 30, 3), 10 * k, "u1") for k in range(3)]
    uploads = []

    @pipeline_def(batch_size=3, num_threads=1, device_id=0)
    def pipe():
        x = fn.external_source(name="x", layout="HWC", repeat_last=True, device="gpu")
        y = types.Constant(np.float32([1, 2]), device="cpu").gpu()
        return x, fn.flip(x), y * 2

    def run(p):
        before = len(uploads)
        x, flipped, y = (o.as_cpu() for o in p.run())
        return [np.array(x.at(k)) for k in range(3)], flipped, np.array(y.at(2)), len(uploads) - before

    p = pipe()
    p.build()
    p.feed_input("x", images)
    upload = Stream.upload
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stream, "upload", lambda s, *a: uploads.append(a[2]) or upload(s, *a))
        results = [run(p) for _ in range(6)]
        p.feed_input("x", [i + 1 for i in images])
        later = [run(p) for _ in range(6)][-1]
    for x, flipped, y, _ in results:
        assert all(np.array_equal(a, b) for a, b in zip(x, images)) and y.tolist() == [2, 4]
        assert all(np.array_equal(np.asarray(flipped.at(k)), i[:, ::-1]) for k, i in enumerate(images))
    assert all(np.array_equal(a, b + 1) for a, b in zip(later[0], images))
    nbytes = sum(i.nbytes for i in images)
    assert sum(n >= nbytes for n in uploads) == 2  # once per fed batch


def test_a_repeated_batch_can_be_written_to():
    """A consumer that gets an address has a copy of the data that the pipeline keeps on the GPU."""

    @pipeline_def(batch_size=2, num_threads=1, device_id=0)
    def pipe():
        return fn.external_source(name="x", repeat_last=True, device="gpu")

    p = pipe()
    p.build()
    p.feed_input("x", [np.arange(5, dtype="f4")] * 2)
    outputs = [p.run()[0] for _ in range(3)]
    places = {o[k].data_ptr() for o in outputs for k in range(2)}
    assert len(places) == 6


def test_kernels_of_one_scheme_in_one_segment():
    """Their launch code looks the same, but they are different kernels."""

    def define(device):
        x = moved(
            fn.external_source(source=lambda i: np.random.default_rng(i).integers(0, 256, (3, 24, 32, 3), "u1")), device
        )
        r = fn.reductions
        return r.sum(x, dtype=types.FLOAT), r.mean_square(x), r.mean(x), r.rms(x), r.min(x), r.max(x), r.sum(x)

    for got, want in both(define, n=1):
        for a, b in zip(got, want):
            np.testing.assert_allclose(a.as_array(), b.as_array(), rtol=1e-6)
        assert (got[1].as_array() < got[0].as_array() / 2).all()
