# SPDX-License-Identifier: Apache-2.0
"""Names and arguments of torchvision, torchaudio and albumentations: the errors suggest lines of code that run and do
the same."""

import io

import numpy as np
import pytest
from PIL import Image

import penstock
from penstock import fn, math, ops, pipeline_def, types
from penstock.auto_aug import augmentations, auto_augment, rand_augment, trivial_augment
from penstock.core.op import REGISTRY
from penstock.experimental import dynamic as ndd
from penstock.registry.other_libraries import ARGUMENTS, NAMES

PICTURE = np.random.default_rng(3).integers(0, 256, (16, 20, 3), np.uint8)
GRAY_ONLY = {"grayscale_to_rgb"}
GREY = PICTURE.astype(float) @ [0.299, 0.587, 0.114]


def encoded():
    file = io.BytesIO()
    Image.fromarray(PICTURE).save(file, "PNG")
    return np.frombuffer(file.getvalue(), np.uint8)


def scope(tmp_path, name):
    """The variables that the lines of code use."""
    (tmp_path / "a").mkdir(exist_ok=True)
    (tmp_path / "a" / "picture.png").write_bytes(encoded().tobytes())
    const = types.Constant
    picture = PICTURE[..., :1] if name in GRAY_ONLY else PICTURE
    y, x = np.indices(PICTURE.shape[:2]).astype(np.float32)
    audio = const(np.sin(np.arange(4000, dtype=np.float32)))
    return {
        **{"fn": fn, "types": types, "auto_augment": auto_augment, "rand_augment": rand_augment},
        **{
            "trivial_augment": trivial_augment,
            "augmentations": augmentations,
            "h": 8,
            "w": 10,
            "top": 2,
            "left": 3,
            "size": 12,
            "n": 3,
        },
        **{
            "p": 0.5,
            "factor": 1.5,
            "degrees": 36.0,
            "angle": 10.0,
            "gamma": 2.0,
            "quality": 50,
            "low": 0.0,
            "high": 1.0,
        },
        **{"mean": [123.0, 116.0, 103.0], "std": [58.0, 57.0, 57.0], "matrix": np.eye(3, dtype=np.float32)},
        "images": fn.copy(const(picture, layout="HWC")),
        "other": fn.copy(const(255 - picture, layout="HWC")),
        "window": {"anchor": [2, 3], "shape": [8, 10], "axis_names": "HW"},
        "outputs": [penstock.tensors.TensorListCPU(picture[None])],
        **{"Image": Image, "math": math},
        "encoded": const(encoded()),
        "paths": const(np.frombuffer(str(tmp_path / "a" / "picture.png").encode(), np.uint8)),
        "folder": str(tmp_path),
        "files": [str(tmp_path / "a" / "picture.png")] * 2,
        "arrays": np.stack([PICTURE, PICTURE]),
        "labels": [0, 1],
        "kernel": const(np.full((3, 3), 1 / 9, np.float32)),
        "map_x": const(x),
        "map_y": const(y),
        "boxes": const(np.float32([[0.1, 0.2, 0.5, 0.6]])),
        "audio": audio,
        "spectra": fn.spectrogram(audio, nfft=512),
        "on": fn.random.coin_flip(dtype=types.BOOL),
    }


def of_code(code, tmp_path, name=""):
    """The result of a line of code for PICTURE."""

    @pipeline_def(batch_size=2, num_threads=1, device_id=None, seed=1, enable_conditionals=True)
    def pipe():
        given = scope(tmp_path, name)
        text = code.removeprefix("images = ")
        if " if on " in text:
            then, other = text.split(" if on else ")
            on = given["on"]
            a, b = eval(then, given), eval(other, given)
            if on:
                picture = a
            else:
                picture = b
            return picture
        result = eval(text, given)
        return np.asarray(result) if isinstance(result, Image.Image) else result

    outputs = pipe().run()
    return np.asarray(outputs[0].at(1))


@pytest.mark.parametrize("name", NAMES)
def test_the_code_runs(name, tmp_path):
    code, _ = NAMES[name]
    with pytest.raises(AttributeError) as e:
        getattr(fn, name)
    assert f"Here it is {code}" in str(e.value)
    assert of_code(code, tmp_path, name).size


def test_readers_that_do_not_exist():
    with pytest.raises(AttributeError, match=r"Here it is fn.readers.dataset\(arrays\); docs/recipes.md shows"):
        _ = fn.readers.hdf5


def blend(other, factor):
    return np.clip(np.rint(other + (PICTURE - np.asarray(other, float)) * factor), 0, 255)


# NumPy references from torchvision's documentation, with the largest allowed difference
MEANT = {
    "center_crop": (PICTURE[4:12, 5:15], 0),
    "resized_crop": (PICTURE[2:10, 3:13], 0),
    "hflip": (PICTURE[:, ::-1], 0),
    "vflip": (PICTURE[::-1], 0),
    "rot90": (np.rot90(PICTURE), 0),
    "permute": (PICTURE.transpose(2, 0, 1), 0),
    "to_tensor_v2": (PICTURE.transpose(2, 0, 1), 0),
    "adjust_brightness": (np.minimum(PICTURE * 1.5, 255), 0.5),
    "adjust_saturation": (blend(GREY[..., None], 1.5), 2),
    "adjust_gamma": (255 * (PICTURE / 255) ** 2, 0.51),
    "to_gray": (GREY[..., None], 1),
    "invert": (255 - PICTURE, 0),
    "normalize_image": (((PICTURE - [123, 116, 103]) / [58, 57, 57]).transpose(2, 0, 1), 1e-4),
    "convert_image_dtype": (PICTURE / 255, 1e-6),
    "to_dtype": (PICTURE, 0),
    "decode_image": (PICTURE, 0),
    "imread": (PICTURE, 0),
    "elastic": (PICTURE, 0),
    "mixup": (PICTURE, 0.5),
    "cutmix": (np.where(np.pad(np.ones((8, 10, 3)), ((2, 6), (3, 7), (0, 0))), 255 - PICTURE, PICTURE), 0),
    "to_pil_image": (PICTURE, 0),
    "clip": (PICTURE, 0),
    "perspective": (PICTURE, 0),
}


@pytest.mark.parametrize("name", MEANT)
def test_the_code_does_what_is_meant(name, tmp_path):
    want, near = MEANT[name]
    got = of_code(NAMES[name][0], tmp_path, name)
    assert got.shape == np.shape(want) and np.abs(got.astype(float) - want).max() <= near


@pytest.mark.parametrize(
    "name, height, width",
    [("longest_max_size", 10, 12), ("smallest_max_size", 12, 15), ("center_crop", 8, 10), ("random_crop", 8, 10)],
)
def test_sizes(name, height, width, tmp_path):
    assert of_code(NAMES[name][0], tmp_path).shape == (height, width, 3)


@pytest.mark.parametrize(
    "name, here",
    [
        ("ToTensor", "fn.crop_mirror_normalize"),
        ("RandomHorizontalFlip", "fn.random.coin_flip"),
        ("CenterCrop", r"fn.crop\(images, crop=\[h, w\]\)"),
        ("RandomIoUCrop", "fn.random_bbox_crop"),
        ("ImageFolder", "fn.readers.file"),
        ("normalize_image", "times 255"),
        ("MixUp", "penstock.transforms.MixUp"),
        ("cut_mix", "penstock.transforms.CutMix"),
        ("ToPILImage", r"Image.fromarray\(outputs\[0\].at\(0\)\)"),
    ],
)
@pytest.mark.parametrize("module", [fn, ops, ndd])
def test_names_are_found_however_they_are_spelled(module, name, here):
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'. Here it is .*{here}"):
        getattr(module, name)


def test_no_name_or_argument_is_one_of_ours():
    letters = {name.rpartition(".")[2].replace("_", "") for name in REGISTRY}
    assert not {n for n in NAMES if n.replace("_", "") in letters or hasattr(fn, n)}
    for operator, names in ARGUMENTS.items():
        assert not set(names) & REGISTRY[operator].schema.keys(), operator


@pytest.mark.parametrize("operator, name", [(o, n) for o, names in ARGUMENTS.items() for n in names])
def test_arguments(operator, name, tmp_path):
    """The error suggests an argument of the operator and a valid value."""
    code = ARGUMENTS[operator][name]
    cls = REGISTRY[operator]

    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def pipe():
        given = scope(tmp_path, "")
        function = eval(f"fn.{operator}", given)
        inputs = [given["images"]] * cls.inputs[0]
        with pytest.raises(TypeError, match=f"{operator}.* unexpected argument '{name}'. Here it is ") as e:
            function(*inputs, **{name: 1})
        assert code in str(e.value) and "test_other_libraries.py" in str(e.value)
        values = eval(f"dict({code.partition(', torch')[0].partition(', the ')[0].partition(' of the')[0]})", given)
        for argument, value in values.items():
            if " of the pipeline" not in code:
                assert argument in cls.schema
                if not isinstance(value, penstock.data_node.DataNode):
                    cls.schema[argument].convert(value)
        return given["images"]

    pipe().build()


def test_arguments_of_classes_and_of_the_imperative_mode():
    with pytest.raises(TypeError, match="'interpolation'. Here it is interp_type=types.INTERP_LINEAR"):
        ops.Resize(interpolation=2)
    with pytest.raises(TypeError, match="'interpolation'. Here it is interp_type=types.INTERP_LINEAR"):
        ndd.resize(PICTURE, interpolation=2)
    with pytest.raises(TypeError, match="'interp_typo'. Did you mean 'interp_type'"):
        ops.Resize(interp_typo=2)
