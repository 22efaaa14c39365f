# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from encoded_images import decoded, encode, jpegs, mixed, photograph
from harness import Case, op_test
from penstock import fn, ops, pipeline_def, types

COLOURS = [{"output_type": t} for t in (types.BGR, types.GRAY, types.YCbCr, types.ANY_DATA)]
# Rounding of colour differences, and of a rescaling in float32.
TestJpeg = op_test(
    "decoders.image",
    decoded,
    layouts=("",),
    args=[{}, *COLOURS, {"adjust_orientation": False}, {"dtype": types.FLOAT}, {"dtype": types.INT16}],
    make_input=lambda rng, case: jpegs(),
    steps=1,
    dali_steps=1,
    share=0.02,
    errors=[
        ({"dtype": types.INT64}, ValueError, "dtype=INT64 is not supported; supported: UINT8, INT8"),
        ({"max_pixels": 4000}, RuntimeError, "130 x 99 = 12870 pixels, more than max_pixels=4000 allows"),
        ({"max_pixels": 0}, ValueError, "max_pixels takes a positive number, got 0"),
        ({"dct_scaling": True}, ValueError, "dct_scaling takes the smallest side in pixels"),
        ({"fast_idct": True}, TypeError, "unexpected argument 'fast_idct'. Did you mean 'use_fast_idct'"),
    ],
)
TestOtherFormats = op_test(
    "decoders.image",
    decoded,
    layouts=("",),
    args=[{}, *COLOURS, {"dtype": types.UINT16, "output_type": types.ANY_DATA}],
    make_input=lambda rng, case: mixed(),
    steps=1,
    dali_steps=1,
    share=0.02,
    dali_differs={"ANY_DATA": "DALI does not turn a PNG with alpha as its EXIF orientation says, and scrambles it"},
)


def run(files, num_threads=2, **kwargs):
    @pipeline_def(batch_size=len(files), num_threads=num_threads)
    def pipe():
        return fn.decoders.image(fn.external_source(source=lambda i: list(files)), **kwargs)

    out = pipe().run()[0]
    return [np.array(out.at(i)) for i in range(len(files))]


def test_layout_and_old_names():
    file = jpegs()[2]

    @pipeline_def(batch_size=1)
    def pipe():
        x = fn.external_source(source=lambda i: [file])
        with pytest.warns(DeprecationWarning, match="fn.image_decoder is deprecated"):
            old = fn.image_decoder(x)
        with pytest.warns(DeprecationWarning, match="fn.experimental.decoders.image is now fn.decoders.image"):
            former = fn.experimental.decoders.image(x)
        return fn.decoders.image(x), old, former, ops.decoders.Image(device="cpu")(x)

    outs = pipe().run()
    assert outs[0].layout() == "HWC"
    for o in outs:
        np.testing.assert_array_equal(o.at(0), decoded(file))


@pytest.mark.parametrize(
    ("bad", "reason"),
    (
        (b"", "empty file"),
        (b"no image at all", "not an image that can be decoded"),
        (jpegs()[2][:1000].tobytes(), "Premature end of JPEG file"),
        (mixed()[0][:1000].tobytes(), "PNG: the file ends before its pixels do"),
    ),
)
def test_bad_files_leave_the_pipeline_usable(bad, reason):
    good = jpegs()[2]
    rounds = [[good, np.frombuffer(bad, "u1")], [good, good]]

    @pipeline_def(batch_size=2, num_threads=2, prefetch_queue_depth=1)
    def pipe():
        return fn.decoders.image(fn.external_source(source=lambda i: rounds[min(i, 1)]))

    p = pipe()
    with pytest.raises(RuntimeError, match=reason):
        p.run()
    np.testing.assert_array_equal(p.run()[0].at(1), decoded(good))


def test_a_header_that_promises_too_much_takes_no_memory():
    file = jpegs()[2].copy()
    at = file.tobytes().index(b"\xff\xc2")
    file[at + 5 : at + 9] = (0xEA, 0x60, 0xEA, 0x60)  # 60000 x 60000
    with pytest.raises(RuntimeError, match="60000 x 60000 = 3600000000 pixels, more than max_pixels=268435456 allows"):
        run([file])
    with pytest.raises(RuntimeError, match="60000 x 60000 pixels, which take at least 7031250 bytes; there are"):
        run([file], max_pixels=2**32)


def test_input_must_be_bytes():
    with pytest.raises(RuntimeError, match="array of bytes .*; got float32 with 1 dimensions"):
        run([np.zeros(10, "f4")])


def test_a_crop_behind_decodes_only_its_window():
    file = encode(photograph(3, 130, 99), "JPEG")

    @pipeline_def(batch_size=1)
    def pipe():
        x = fn.external_source(source=lambda i: [file])
        image = fn.decoders.image(x)
        return image, fn.crop(fn.decoders.image(x), crop=(30, 41), crop_pos_x=0.3, crop_pos_y=0.9)

    if not hasattr(fn, "crop"):
        pytest.skip("no fn.crop")
    full, part = (np.array(o.at(0)) for o in pipe().run())
    np.testing.assert_array_equal(part, full[90:120, 17:58])


@pytest.mark.parametrize(("side", "scale"), ((0, 1), (300, 1), (200, 1), (150, 2), (100, 2), (75, 4), (38, 8), (8, 8)))
def test_dct_scaling(side, scale):
    image = photograph(9, 300, 401)
    h, w = -(-300 // scale), -(-401 // scale)
    got = run([encode(image, "JPEG", quality=95, subsampling="4:4:4"), encode(image, "PNG")], dct_scaling=side)
    assert got[0].shape == (h, w, 3)
    assert got[1].shape == (300, 401, 3)
    box = np.asarray(image).astype("f8")
    box = np.pad(box, ((0, h * scale - 300), (0, w * scale - 401), (0, 0)), "edge")
    box = box.reshape(h, scale, w, scale, 3).mean((1, 3))
    assert np.abs(got[0] - box).mean() < 2.5


def test_fast_idct_is_near():
    file = jpegs()[2]
    exact, fast = run([file])[0], run([file], use_fast_idct=True)[0]
    assert 0 < np.abs(exact.astype(int) - fast).max() <= 12


def test_threads_agree_on_real_files(data):
    files = [np.fromfile(f, "u1") for f in sorted(data.glob("photos500/class_0/*.jpg"))[:16]]
    for a, b in zip(run(files, num_threads=1), run(files, num_threads=8)):
        np.testing.assert_array_equal(a, b)
    for f, a in zip(files, run(files)):
        np.testing.assert_array_equal(a, decoded(f))


def test_case_ids_are_unique():
    ids = [c.id for c in TestJpeg.declaration.cases]
    assert len(set(ids)) == len(ids) and isinstance(TestJpeg.declaration.cases[0], Case)
