# SPDX-License-Identifier: Apache-2.0
"""Operations that NumPy and PyTorch allow on arrays but a graph does not: the errors say what to write instead."""

import warnings

import numpy as np
import pytest

from penstock import PipelineError, fn, ops, pipeline_def, types
from penstock.experimental import dynamic as ndd


def batch():
    return types.Constant(np.float32([1, 2]))


@pytest.mark.parametrize(
    ("mistake", "error", "told"),
    [
        (lambda x: np.mean(x), TypeError, "can't become an array.*fn.reductions"),
        (lambda x: np.asarray([1.0, x]), TypeError, "can't become an array"),
        (
            lambda x: fn.decoders.image("s3://shop/a.jpg"),
            TypeError,
            r"'s3://shop/a.jpg'; fn.readers.file\(files=.*URLs",
        ),
        (lambda x: x.astype(np.float32), AttributeError, r"no attribute 'astype'; write fn.cast\(x"),
        (lambda x: x.resize(4), AttributeError, r"write fn.resize\(x"),
        (lambda x: x.mean(), AttributeError, r"write fn.reductions.mean\(x"),
        (lambda x: x.dtype, AttributeError, r"what run\(\) returns"),
        (lambda x: x.nonsense, AttributeError, "no attribute 'nonsense'$"),
        (lambda x: fn.cast(x, dtype="float32"), TypeError, "a DALIDataType such as types.FLOAT, got 'float32'"),
        (lambda x: fn.cast(x, dtype=object()), TypeError, "is not a type that is known; use those of penstock.types"),
        (lambda x: x.__setitem__(0, 3), TypeError, "`x\\[i\\] = value`.*fn.stack, fn.cat or fn.erase"),
        (lambda x: float(x), TypeError, r"not computed yet, so float\(\) and int\(\) .* `x.at\(i\)` of what run\(\)"),
        (lambda x: fn.decoders.image(["a.jpg", "b.jpg"]), TypeError, r"fn.readers.file\(files="),
        (lambda x: [*fn.external_source(source=abs)], TypeError, "can't be unpacked; its argument num_outputs"),
        (lambda x: [*fn.copy(x)], TypeError, "can't be unpacked$"),
        (lambda x: None, TypeError, "got NoneType. Is its return missing"),
    ],
)
def test_when_the_graph_is_defined(mistake, error, told):
    with pytest.raises(error, match=told):
        pipeline_def(lambda: mistake(batch()), batch_size=2, num_threads=1)().build()


def test_operators_of_numpy_stay_operators_of_the_graph():
    @pipeline_def(batch_size=2, num_threads=1)
    def pipe():
        return np.float32(3) * batch(), np.arange(2) + batch()

    product, total = pipe().run()
    assert product.at(0).tolist() == [3, 6] and total.at(1).tolist() == [1, 3]


def test_bytes_of_files_are_no_images():
    @pipeline_def(batch_size=2, num_threads=1)
    def pipe():
        return fn.resize(types.Constant(np.zeros(9, np.uint8)), size=4)

    with pytest.raises(PipelineError, match="1 dimension and no layout.*by fn.decoders.image"):
        pipe().run()


def test_a_constant_is_a_fixed_argument():
    five = types.Constant(5)  # a number needs no pipeline, as in DALI

    @pipeline_def(batch_size=3, num_threads=1)
    def pipe():
        return fn.pad(batch(), axes=[0], shape=five), fn.pad(batch(), axes=[0], shape=[five])

    for _ in range(2):
        assert [out.at(0).tolist() for out in pipe().run()] == [[1, 2, 0, 0, 0]] * 2


def test_constants_outside_of_a_pipeline_keep_their_type():
    two, small = types.Constant(2), types.Constant(7, dtype=types.UINT8)
    assert (two.dtype, two.value, small.dtype) == (types.INT32, 2, types.UINT8)

    @pipeline_def(batch_size=3, num_threads=1)
    def pipe():
        return batch() * two, two, small, fn.cast(two, dtype=types.FLOAT)

    scaled, number, byte, cast = pipe().run()
    assert scaled.at(2).tolist() == [2, 4] and byte.dtype == types.UINT8 and cast.dtype == types.FLOAT
    assert number.as_array().tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    ("mistake", "error", "told"),
    [
        (lambda x: x.astype("f4"), AttributeError, r"'Tensor' object has no attribute 'astype'; write ndd.cast\(x"),
        (lambda x: x.numpy(), AttributeError, r"write np.asarray\(x\)"),
        (lambda x: x.clip(0, 1), AttributeError, "write ndd.math.clamp"),
        (lambda x: ndd.as_batch([x, x])[0], TypeError, r"batch.tensors\[i\] is one sample"),
        (lambda x: ndd.as_batch([x, x]).mean(), AttributeError, r"'Batch' .* write ndd.reductions.mean\(x"),
        (lambda x: ndd.decoders.image("photo.jpg"), TypeError, "ndd.imread reads an image"),
    ],
)
def test_in_the_imperative_mode(mistake, error, told):
    with pytest.raises(error, match=told):
        mistake(ndd.as_tensor(np.float32([1, 2])))


def test_transforms_that_are_not_there():
    tv = pytest.importorskip("penstock.experimental.torchvision", reason="needs torch")
    with pytest.raises(AttributeError, match="Did you mean 'PILToTensor'"):
        _ = tv.ToTensor
    with pytest.raises(AttributeError, match="'RandomRotation'. There are CenterCrop, "):
        _ = tv.RandomRotation
    with pytest.raises(ImportError):
        from penstock.experimental.torchvision import RandomRotation  # noqa: F401


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda x: fn.resize(x, 224), "given by name: size=224"),
        (lambda x: fn.crop(x, [2, 2]), r"given by name: crop=\[2, 2\]"),
        (lambda x: fn.rotate(x, 30.0), "given by name: angle=30.0"),
        (lambda x: fn.brightness(x, 2.0), "given by name: brightness=2.0"),
        (lambda x: fn.cast(x, types.FLOAT), r"given by name: dtype=types.FLOAT"),
        (lambda x: fn.gaussian_blur(x, 3), "given by name: window_size=3"),
        (lambda x: fn.transpose(x, [2, 0, 1]), r"given by name: perm=\[2, 0, 1\]"),
        (lambda x: fn.reductions.mean(x, 0), "given by name: axes=0"),
        (lambda x: fn.ones([2]), r"given by name: shape=\[2\]"),
        (lambda x: fn.flip(x, 1), "given by name: horizontal=1"),
        (lambda x: fn.readers.file("photos"), "given by name: file_root='photos'"),
        (lambda x: fn.erase(x, [2, 2]), r"given by name: anchor=\[2, 2\]"),
        (lambda x: fn.erase(x, x), r"given by name: anchor=\.\.\."),
        (lambda x: fn.decoders.image(x, types.RGB), "given by name: output_type=types.RGB"),
        (lambda x: fn.decoders.image(x, "mixed"), "given by name: device='mixed'"),
        (lambda x: fn.resize(x, types.INTERP_NN), "given by name: interp_type=types.INTERP_NN"),
        (lambda x: fn.color_space_conversion(x, types.RGB, types.GRAY), "given by name: image_type=types.RGB"),
        (lambda x: fn.one_hot(x, 10), "given by name: num_classes=10"),
        (lambda x: fn.brightness_contrast(x, 0.5), "given by name: brightness=0.5"),
        (lambda x: fn.spectrogram(x, 512), "given by name: nfft=512"),
        (lambda x: fn.audio_resample(x, 16000.0), "given by name: out_rate=16000.0"),
        (lambda x: fn.pad(x, 0.5), "takes 1 input, 2 given$|takes 1 input, 2 given\n"),
        (lambda x: fn.resize(x, None, size=2), "takes 1 input, 2 given$|takes 1 input, 2 given\n"),
    ],
)
def test_arguments_by_position(call, text):
    @pipeline_def(batch_size=1)
    def pipe():
        return call(types.Constant(np.zeros((4, 4, 3), np.uint8), layout="HWC"))

    with pytest.raises(ValueError, match=text):
        pipe()


def test_classes_take_arguments_by_name():
    with pytest.raises(TypeError, match="fn.resize takes arguments by name; got 1 positional arguments"):
        ops.Resize(224)


FRACTIONS = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
_OF_NORMALIZE = {
    "mean": np.float32(FRACTIONS["mean"]).reshape(1, 1, 3),
    "stddev": np.float32(FRACTIONS["std"]).reshape(1, 1, 3),
}


@pytest.mark.parametrize(
    "operator, arguments, dtype, told",
    [
        (fn.crop_mirror_normalize, FRACTIONS, "u1", "mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375]"),
        (fn.crop_mirror_normalize, {"mean": 0.5, "std": 0.25}, "u1", "mean=[127.5], std=[63.75]"),
        (fn.normalize, {"mean": 0.5, "stddev": 0.25}, "u1", "mean=[127.5], stddev=[63.75]"),
        (fn.normalize, _OF_NORMALIZE, "u1", "mean=[123.675, 116.28, 103.53], stddev=[58.395, 57.12, 57.375]"),
        (fn.crop_mirror_normalize, FRACTIONS, "f4", None),
        (fn.crop_mirror_normalize, {**FRACTIONS, "scale": 1 / 255}, "u1", None),
        (fn.crop_mirror_normalize, {"mean": 127.5, "std": 63.75}, "u1", None),
        (fn.crop_mirror_normalize, {"mean": 0.0, "std": 1.0}, "u1", None),
        (fn.crop_mirror_normalize, {"mean": 0.0, "std": 0.5}, "u1", None),
        (fn.normalize, {"mean": 1.0}, "u1", None),
        (fn.normalize, _OF_NORMALIZE, "f4", None),
    ],
)
def test_a_mean_for_pixels_between_0_and_1_is_told_once(operator, arguments, dtype, told):
    @pipeline_def(batch_size=2, num_threads=1)
    def pipe():
        image = types.Constant(np.full((4, 5, 3), 100, dtype), layout="HWC")
        return operator(fn.copy(image), **arguments)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        p = pipe()
        for _ in range(3):
            p.run()
    texts = [str(w.message) for w in caught]
    assert len(texts) == (told is not None), texts
    if told:
        assert texts[0].startswith(f"fn.{operator.__name__}: mean and std") and texts[0].endswith(f"255: {told}")


@pytest.mark.parametrize("seed", ["a", 1.5, [1]])
def test_a_seed_is_an_integer(seed):
    with pytest.raises(TypeError, match="seed takes an integer, or None for a random one; got"):
        pipeline_def(batch, batch_size=2, num_threads=1, seed=seed)()
