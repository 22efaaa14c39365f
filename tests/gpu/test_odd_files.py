# SPDX-License-Identifier: Apache-2.0
"""Odd and damaged files in mixed batches: for any engine, pixels, errors and the effect of `on_error` are the same as
with the CPU's decoder."""

import numpy as np
import pytest
from test_mixed import _Engine, on_a_real_gpu

import encoded_images
from penstock import fn, pipeline_def, types
from penstock.gpu.session import GpuPass
from penstock.operators.decode.gpu import decoding as mixed


def jpeg(seed, h, w, mode="RGB", **options):
    return encoded_images.encode(encoded_images.photograph(seed, h, w, mode), "JPEG", **options).tobytes()


def changed(data, marker, at, value):
    """Bytes behind a marker replaced."""
    i = data.index(marker) + at
    return data[:i] + value + data[i + len(value) :]


WHOLE = jpeg(1, 100, 130, quality=95)
MIDDLE = len(WHOLE) * 2 // 3
FRAME = b"\xff\xc0"
FILES = {
    "turned": jpeg(2, 30, 40, exif=encoded_images.oriented(6)),
    "mirrored and turned": jpeg(3, 30, 40, exif=encoded_images.oriented(5)),
    "progressive, turned": jpeg(4, 33, 41, progressive=True, exif=encoded_images.oriented(8)),
    "restarts": jpeg(5, 30, 40, restart_marker_blocks=2),
    "gray": jpeg(6, 30, 40, "L"),
    "CMYK": jpeg(7, 30, 40, "CMYK"),
    "4:4:4": jpeg(8, 31, 43, subsampling="4:4:4"),
    "4:2:2": jpeg(9, 31, 43, subsampling="4:2:2"),
    "one pixel": jpeg(10, 1, 1),
    "lossless, 12 bits": encoded_images.lossless_jpeg(np.arange(600).reshape(20, 30) * 6, bits=12).tobytes(),
    "whole": WHOLE,
    "no end": WHOLE[:-2],
    "bytes behind the end": WHOLE + b"more" * 20,
    "cut in the header": WHOLE[:150],
    "cut in the middle": WHOLE[: len(WHOLE) // 2],
    "cut before the end": WHOLE[: len(WHOLE) * 95 // 100],
    **{f"{n} bytes missing": WHOLE[:MIDDLE] + WHOLE[MIDDLE + n :] for n in (1, 2, 3, 20, 50)},
    "bytes changed": WHOLE[:MIDDLE] + bytes(range(30)) + WHOLE[MIDDLE + 30 :],
    "12 bits": changed(WHOLE, FRAME, 4, b"\x0c"),
    "arithmetic coding": changed(WHOLE, FRAME, 0, b"\xff\xc9"),
    "larger than the data": changed(WHOLE, FRAME, 5, b"\xff\xff\xff\xff"),
    "impossible codes": changed(WHOLE, b"\xff\xc4", 6, b"\xff"),
    "empty": b"",
    "no picture": b"hello world",
    **{f"format {i}": f.tobytes() for i, f in enumerate(encoded_images.mixed())},
}
# Windows include the damaged rows, as rows below a window are not read.
DECODERS = {
    "image": {},
    "image_crop": {"crop": (12, 14), "crop_pos_x": 0.3, "crop_pos_y": 0.9},
    "image_slice": {"rel_start": [0.1, 0.2], "rel_shape": [0.8, 0.6], "axis_names": "HW"},
    "image_random_crop": {},
}


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    folder = tmp_path_factory.mktemp("odd")
    for name, data in FILES.items():
        (folder / name.replace(":", "")).write_bytes(data)
    return [str(folder / name.replace(":", "")) for name in FILES]


def run(names, decoder, device, on_error, batch_size, load, **kwargs):
    """For each batch the samples and labels, or the error; and all errors of these batches."""

    @pipeline_def(batch_size=batch_size, num_threads=2, seed=4, device_id=0, on_error=on_error)
    def pipe():
        files, labels = fn.readers.file(files=names, labels=list(range(len(names))), name="reader")
        kwargs_of_all = {"device": device, "hw_decoder_load": load, **DECODERS[decoder], **kwargs}
        return getattr(fn.decoders, decoder)(files, **kwargs_of_all), labels

    made, batches = pipe(), []
    for _ in range(-(-len(names) // batch_size)):
        try:
            images, labels = made.run()
            images = images.as_cpu() if device == "mixed" else images
            batches.append({int(labels.at(k)[0]): np.array(images.at(k)) for k in range(len(images))})
        except Exception as e:
            batches.append(str(e).partition("encountered:")[2])
    errors = {(e.iteration, e.source, e.reason) for e in made.errors() if e.iteration < len(batches)}
    return batches, errors, made


def assert_alike(got, want):
    assert got[1] == want[1]
    for a, b in zip(got[0], want[0], strict=True):
        assert type(a) is type(b) and (a == b if isinstance(a, str) else list(a) == list(b))
        for k in a if isinstance(a, dict) else ():
            np.testing.assert_array_equal(a[k], b[k], err_msg=list(FILES)[k])


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("on_error", ["raise", "skip", "replace"])
def test_as_on_the_cpu(names, decoder, on_error, monkeypatch):
    doubts, found = GpuPass.doubts, []
    monkeypatch.setattr(GpuPass, "doubts", lambda self: found.append(doubts(self)) or found[-1])
    how = on_error, 1 if on_error == "raise" else 7, 0.0
    got, want = (run(names, decoder, device, *how) for device in ("mixed", "cpu"))
    assert_alike(got, want)
    assert len(want[1]) >= 8 or on_error == "raise" and sum(type(b) is str for b in want[0]) >= 8
    assert any(found), "nothing was found irregular by the GPU"
    shares = got[2].stats()["gpu"]["decoders"]
    assert shares["GPU"] and shares["CPU and GPU"] and shares["CPU"]


@pytest.mark.parametrize("kwargs", [{"output_type": t} for t in (types.GRAY, types.YCbCr, types.ANY_DATA)])
def test_other_colours(names, kwargs):
    assert_alike(*(run(names, "image", device, "skip", 9, 0.0, **kwargs) for device in ("mixed", "cpu")))


@pytest.mark.skipif(on_a_real_gpu, reason="writes to the GPU's memory as if it were the host's")
@pytest.mark.parametrize("share", [1.0, 0.5])
def test_with_the_jpeg_engine(names, monkeypatch, share):
    """It gets all images that it decodes exactly; the others go to other engines."""
    monkeypatch.setattr(mixed, "HardwareDecoder", _Engine)
    monkeypatch.setattr(mixed.Sharing, "share", lambda self, nbytes: share)
    monkeypatch.setattr(_Engine, "refuses", False)
    monkeypatch.setattr(_Engine, "decoded", 0)
    assert_alike(*(run(names, "image", device, "skip", 7, 0.65) for device in ("mixed", "cpu")))
    assert _Engine.decoded
