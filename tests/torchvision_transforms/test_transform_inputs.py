# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs: kinds, layouts, memory, devices, user-defined transforms, mistakes."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")

from picture_forms import forms, picture_of  # noqa: E402

import penstock.experimental.torchvision as tv  # noqa: E402
from penstock import PipelineError, fn  # noqa: E402
from penstock.core.batch import Borrowed  # noqa: E402
from penstock.experimental.torchvision.v2 import _interchange, compose, functional, operator  # noqa: E402

RGB = np.random.default_rng(1).integers(0, 256, (13, 20, 3), dtype=np.uint8)
CHW = torch.from_numpy(RGB.transpose(2, 0, 1).copy())


@pytest.mark.parametrize("name", ["chw", "nchw", "last", "deep"])
def test_tensors_are_not_copied(name):
    x = forms(RGB)[name]
    taken = _interchange.take(x)
    assert taken.batch.rows["data"][0] == x.data_ptr()
    assert taken.kind.layout == ("HWC" if name == "last" else "CHW")
    assert len(taken.batch) == x[..., 0, 0, 0].numel()


def test_inputs_are_not_written_to_and_outputs_own_their_memory():
    x = CHW.clone()
    for transforms in ([], [tv.RandomHorizontalFlip(0.0)], [tv.RandomApply([tv.Pad(0)], 0.5)], [tv.Resize((13, 20))]):
        transform = tv.Compose(transforms)
        y = transform(x)
        assert y.data_ptr() != x.data_ptr()
        kept = y.clone()
        assert y.add_(1).data_ptr() != transform(x).data_ptr()
        assert torch.equal(x, CHW) and torch.equal(y, kept + 1)


def test_channels_last_stay_so():
    x = torch.stack([CHW, CHW]).contiguous(memory_format=torch.channels_last)
    for transforms in ([tv.Resize(7)], [tv.ColorJitter(0.5), tv.Normalize([1.0], [2.0])]):
        y = tv.Compose(transforms)(x)
        assert y.is_contiguous(memory_format=torch.channels_last)
    assert tv.Compose([tv.ColorJitter(0.5)])(CHW).is_contiguous()


def test_forms_of_the_result():
    image = Image.fromarray(RGB)
    tensor = tv.Compose([tv.Resize(7), tv.PILToTensor()])(image)
    assert tensor.shape == (3, 7, 10) and tensor.dtype == torch.uint8 and tensor.is_contiguous()
    assert tv.Compose([tv.ToPureTensor(), tv.Normalize([1.0], [2.0])])(image).dtype == torch.float32
    assert tv.Compose([tv.ToPureTensor(), tv.ToPILImage()])(image).mode == "RGB"
    made = tv.Compose([tv.ToPILImage(), tv.Pad(1)])(torch.stack([CHW, CHW]))
    assert [m.size for m in made] == [(22, 15)] * 2
    assert (picture_of(tv.ToPILImage()(CHW.float() / 255)) == RGB).all()
    assert (picture_of(tv.ToPILImage()(torch.full((1, 1, 1), 1.5)))) == 255
    with pytest.raises(TypeError, match="uint8 or float32, got int16"):
        tv.ToPILImage()(CHW.short())
    with pytest.raises(ValueError, match="1, 3 or 4 channels"):
        tv.ToPILImage()(CHW[:2])


def test_batches_larger_than_said_and_empty_ones():
    x = CHW.expand(40, 3, 13, 20).contiguous()
    assert tv.Compose([tv.Resize(7)], batch_size=2)(x).shape == (40, 3, 7, 10)
    assert tv.Compose([tv.Resize(7)])(x[:0]).shape == (0, 3, 7, 10)
    assert tv.Compose([tv.Resize(7)])(x[:0].reshape(2, 0, 3, 13, 20)).shape == (2, 0, 3, 7, 10)
    assert tv.Compose([tv.ToPILImage()])(x[:0]) == []


def test_one_transform_takes_all_kinds():
    transform = tv.Compose([tv.Resize((4, 6)), tv.RandomGrayscale(1.0)])
    for x in (Image.fromarray(RGB), CHW, Image.fromarray(RGB[..., 0]), CHW.float(), CHW[:1], torch.stack([CHW] * 3)):
        assert picture_of(transform(x)).shape[:2] == (4, 6)


def test_pictures_of_different_sizes_in_a_batch():
    some = tv.Compose([tv.RandomApply([tv.Pad(1)], 0.5)], seed=1)
    with pytest.raises(ValueError, match="have different sizes now"):
        some(torch.stack([CHW] * 12))
    whole = tv.Compose([tv.RandomApply([tv.Pad(1)], 0.5), tv.Resize((5, 5))], seed=1)
    assert whole(torch.stack([CHW] * 12)).shape == (12, 3, 5, 5)


@pytest.mark.parametrize("op", [tv.Grayscale(), tv.Normalize([1.0], [1.0])])
def test_some_pictures_can_not_be_of_another_kind(op):
    with pytest.raises(ValueError, match="RandomApply: the transforms change the (channels|dtype) of some pictures"):
        tv.RandomApply([op], 0.5)(CHW)


def test_lists_in_lists():
    inner = tv.Compose([tv.Pad(1), tv.RandomHorizontalFlip(1.0)])
    for outer in (tv.Compose([inner, tv.Pad(1)]), tv.Compose([tv.RandomApply(inner, 1.0), tv.Pad(1)])):
        assert (picture_of(outer(CHW))[2:-2, 2:-2] == RGB[:, ::-1]).all()
    assert "RandomHorizontalFlip(p=1.0" in repr(inner)


class UpsideDown(operator.Operator):
    def _kernel(self, data_input):
        return fn.flip(data_input, horizontal=0, vertical=1)


class UpperHalf(operator.Operator):
    preprocess_data = operator.get_HWC_from_layout_pipeline

    def _kernel(self, data_input):
        height, width, _, pictures = data_input
        return fn.crop(pictures, crop_h=fn.cast(height // 2, dtype=9), crop_w=fn.cast(width, dtype=9), crop_pos_y=0.0)


class OnlySmall(operator.DataValidateRule):
    @classmethod
    def verify(cls, data):
        if functional.get_size(data)[0] > 13:
            raise ValueError("too high")


class EvenOnly(operator.ArgumentValidateRule):
    @classmethod
    def verify(cls, *, n, **kwargs):
        if n % 2:
            raise ValueError(f"n has to be even, got {n}")


class Checked(UpsideDown):
    arg_rules, input_rules = (EvenOnly,), (OnlySmall,)

    def __init__(self, n, device="cpu"):
        super().__init__(device, n=n)


@pytest.mark.parametrize("name", sorted(forms(RGB)))
def test_transforms_of_your_own(name):
    x = forms(RGB)[name]
    assert (picture_of(UpsideDown()(x)) == RGB[::-1]).all()
    assert (picture_of(tv.Compose([UpperHalf(), UpsideDown()])(x)) == RGB[:6][::-1]).all()


def test_rules_of_your_own():
    with pytest.raises(ValueError, match="n has to be even, got 3"):
        Checked(3)
    transform = tv.Compose([Checked(2), tv.Pad(1)])
    transform(CHW)
    with pytest.raises(ValueError, match="too high"):
        transform(torch.zeros(3, 14, 5))
    with pytest.raises(NotImplementedError, match="Nothing has no _kernel"):
        type("Nothing", (operator.Operator,), {})()(CHW)


def test_adjust_input():
    from penstock.experimental import dynamic

    seen = []

    @operator.adjust_input
    def shrunk(picture, size):
        seen.append((type(picture), picture.layout))
        return dynamic.resize(picture, size=size)

    for name, x in forms(RGB).items():
        y = shrunk(x, [4, 5])
        assert type(y) is type(x) and picture_of(y).shape == (4, 5, 3)
        assert np.abs(picture_of(y).astype(int) - picture_of(functional.resize(x, [4, 5]))).max() <= 1, name
    assert {t for t, _ in seen} == {dynamic.Tensor, dynamic.Batch} and {lay for _, lay in seen} == {"CHW", "HWC"}


def test_shapes_of_tensors_of_the_imperative_mode():
    from penstock.experimental import dynamic

    one = dynamic.as_tensor(RGB, layout="HWC")
    assert operator.get_input_shape_dynamic(one) == (13, 20, 3)
    assert operator.get_HWC_from_layout_dynamic(one) == (13, 20, 3)
    batch = dynamic.as_batch([CHW.numpy()] * 2, layout="CHW")
    assert operator.get_input_shape_dynamic(batch) == (3, 13, 20)
    assert operator.get_HWC_from_layout_dynamic(batch) == (13, 20, 3)
    with pytest.raises(ValueError, match="need a layout"):
        operator.get_HWC_from_layout_dynamic(dynamic.as_tensor(RGB))


def test_target_sizes_in_a_graph():
    from penstock import Pipeline

    sizes = np.random.default_rng(1).integers(1, 60, (40, 2)).astype("i4")
    for size, limit in ((10, None), (10, 12), (None, 30), ([4, 5], None), ([7], 7)):
        pipe = Pipeline(40, 1, None)
        with pipe:
            h, w = fn.external_source([[sizes[:, 0], sizes[:, 1]]], num_outputs=2)
            pipe.set_outputs(*tv.Resize.calculate_target_size_pipeline_mode((h, w), size, limit))
        found = [list(map(int, x.as_array().ravel())) for x in pipe.run()]
        expected = [tv.Resize.calculate_target_size_dynamic_mode(s, size, limit) for s in sizes.tolist()]
        clipped = [tuple(max(v, 1) for v in pair) for pair in zip(*found)]
        assert clipped == expected


def test_pipelines_of_one_layout():
    images, tensors = compose.PipelineHWC([tv.Resize(5)]), compose.PipelineCHW([tv.Resize(5), tv.ToPureTensor()])
    assert images.run(Image.fromarray(RGB)).size == (7, 5)
    assert tensors.run(CHW).shape == (3, 5, 7)
    assert (images.get_layout(), images.get_channel_reverse_idx()) == ("HWC", -1)
    assert (tensors.get_layout(), tensors.get_channel_reverse_idx()) == ("CHW", -3)
    assert tensors.is_conversion_to_tensor() and not images.is_conversion_to_tensor()
    with pytest.raises(TypeError, match="PipelineHWC takes PIL.Image.Image, got Tensor"):
        images.run(CHW)
    with pytest.raises(TypeError, match="PipelineCHW takes torch.Tensor, got Image"):
        tensors.run(Image.fromarray(RGB))
    assert images.output_to_tensor(torch.zeros(4, 5, 3)).shape == (3, 4, 5)
    assert tensors.output_to_pil(torch.zeros(3, 4, 5)).size == (5, 4)
    assert len(tensors.output_to_pil(torch.zeros(2, 3, 4, 5))) == 2


def test_the_gpu_gives_what_the_cpu_gives():
    image = Image.fromarray(RGB)

    def transforms(device, **more):
        return [
            tv.Resize(9, device=device),
            tv.CenterCrop((8, 9), device=device),
            tv.RandomHorizontalFlip(1.0, device=device),
            tv.ColorJitter((1.2, 1.2), hue=(0.1, 0.1), device=device),
            tv.GaussianBlur(3, 1.0, device=device),
            tv.Pad(1, 9, device=device),
            tv.RandomCrop((9, 10), device=device),
            tv.Grayscale(3, device=device),
        ]

    cpu, gpu = (tv.Compose(transforms(d), seed=3) for d in ("cpu", "gpu"))
    made = gpu(image)
    assert isinstance(made, Image.Image)
    assert np.abs(picture_of(made).astype(int) - picture_of(cpu(image))).max() <= 2
    mixed = tv.Compose([tv.Resize(9, device="gpu"), tv.Pad(1), tv.RandomVerticalFlip(1.0, device="gpu")])
    there = tv.Compose([tv.Resize(9), tv.Pad(1), tv.RandomVerticalFlip(1.0)])
    assert np.abs(picture_of(mixed(image)).astype(int) - picture_of(there(image))).max() <= 1
    again = tv.Compose([*transforms("gpu"), tv.ToPILImage()], seed=3)(CHW)
    assert np.abs(picture_of(again).astype(int) - picture_of(made)).max() <= 2
    assert functional.resize(image, [5, 6], device="gpu").size == (6, 5)


WRONG_INPUTS = [
    (lambda: tv.Resize(5)(RGB), TypeError, "has to be a PIL.Image.Image or a torch.Tensor, got ndarray"),
    (lambda: tv.Resize(5)([CHW]), TypeError, "got list"),
    (lambda: tv.Resize(5)(CHW[0]), TypeError, r"at least three axes, \(..., C, H, W\); got one of shape \(13, 20\)"),
    (lambda: tv.Resize(5)(CHW.bfloat16()), TypeError, "tensors of torch.bfloat16 are not supported; supported: uint8"),
    (lambda: tv.Resize(5)(CHW.long()), ValueError, "Resize takes pictures of uint8, .*; these are of int64"),
    (lambda: tv.RandomResizedCrop(5)(CHW.double()), ValueError, "RandomResizedCrop takes pictures of .* of float64"),
    (lambda: tv.Normalize([1.0], [1.0])(CHW.double()), ValueError, "Normalize takes pictures of .* of float64"),
    (lambda: tv.GaussianBlur(3)(CHW > 3), ValueError, "any type but bool"),
    (lambda: tv.Grayscale()(CHW.long()), ValueError, "Grayscale takes pictures of uint8"),
    (lambda: tv.ColorJitter(0.5)(CHW[:2]), ValueError, "ColorJitter takes pictures of one channel .* got 2 channels"),
    (lambda: tv.Grayscale()(CHW[:2]), ValueError, "Grayscale takes pictures of one channel .* got 2 channels"),
    (lambda: tv.Resize(5)(CHW.float().requires_grad_()), ValueError, "requires a gradient.* use .detach"),
    (lambda: tv.Resize(5)(Image.new("P", (4, 4))), ValueError, "mode P are not supported; supported: L, RGB, RGBA"),
    (lambda: tv.Normalize([1.0] * 2, [1.0] * 2)(CHW), ValueError, "mean has 2 numbers and the pictures have 3"),
    (lambda: tv.Normalize([1.0], [1.0] * 4)(CHW), ValueError, "std has 4 numbers and the pictures have 3"),
    (lambda: tv.Pad(1, (1, 2))(CHW), PipelineError, "2 fill_values for 3 channels"),
    (
        lambda: tv.RandomCrop(14)(CHW),
        PipelineError,
        r"crop of size \(14, 14\) is larger than the picture of \[13, 20\]",
    ),
    (lambda: functional.normalize(Image.new("L", (4, 4)), [1.0], [1.0]), TypeError, "input_data has to be a torch"),
    (lambda: functional.crop(CHW, 1.5, 0, 3, 3), TypeError, "top must be an integer, got 1.5"),
    (lambda: functional.crop(CHW, 0, 0, 0, 3), ValueError, "height must be positive, got 0"),
    (lambda: functional.resized_crop(CHW, 0, 0, 3, -1, 4), ValueError, "width must be positive, got -1"),
    (lambda: functional.resize(CHW, 4, device="xpu"), ValueError, "device takes 'cpu', 'gpu' or a torch.device"),
    (lambda: functional.get_size(3), TypeError, "got int"),
    (lambda: functional.pil_to_tensor(CHW), TypeError, "pil_to_tensor takes a PIL.Image.Image, got Tensor"),
    (lambda: functional.to_tensor(CHW), TypeError, "or a NumPy array, got Tensor"),
    (lambda: functional.to_tensor(RGB[None]), ValueError, "two or three axes"),
    (lambda: functional.to_pil_image(RGB), TypeError, "takes a torch.Tensor, got ndarray"),
    (lambda: functional.to_pil_image(CHW, "L"), ValueError, "mode='L' does not fit 3 channels; accepted: RGB"),
    (lambda: functional.to_pil_image(CHW, input_layout="X"), ValueError, "input_layout takes 'CHW' or 'HWC'"),
]
WRONG_ARGUMENTS = [
    (lambda: tv.CenterCrop(-1), ValueError, "size takes a positive integer.* got -1"),
    (lambda: tv.CenterCrop((5.5, 6)), ValueError, "size takes a positive integer"),
    (lambda: tv.Resize((0, 4)), ValueError, "size takes a positive integer"),
    (lambda: tv.Resize(None), ValueError, "size=None needs a max_size"),
    (lambda: tv.Resize(9, max_size=0), ValueError, "max_size takes a positive integer or None, got 0"),
    (lambda: tv.Resize(9, max_size=8), ValueError, "max_size=8 is smaller than size=9"),
    (lambda: tv.Resize((9, 9), max_size=20), ValueError, "max_size=20 goes with the length of the shorter edge"),
    (lambda: tv.Resize(9, tv.InterpolationMode.HAMMING), NotImplementedError, "supported: NEAREST, BILINEAR, BICUBIC"),
    (lambda: tv.Resize(9, "bilinear"), ValueError, "interpolation takes an InterpolationMode .* got 'bilinear'"),
    (lambda: tv.Resize(9, device="cuda"), ValueError, "device takes 'cpu' or 'gpu', got 'cuda'"),
    (lambda: tv.RandomHorizontalFlip(1.1), ValueError, r"p is a probability, a number in \[0.0, 1.0\]; got 1.1"),
    (lambda: tv.RandomVerticalFlip(-0.1), ValueError, "p is a probability"),
    (lambda: tv.RandomVerticalFlip(float("nan")), ValueError, "p is a probability"),
    (lambda: tv.RandomApply([], "a"), ValueError, "p is a probability"),
    (lambda: tv.RandomApply(None), TypeError, "RandomApply takes a list of transforms, got NoneType"),
    (lambda: tv.Compose([tv.Pad(1), abs]), TypeError, "number 1 of the list is builtin_function"),
    (lambda: tv.Compose(tv.Pad(1)), TypeError, "Compose takes a list of transforms, got Pad"),
    (lambda: tv.Compose([], batch_size=0), ValueError, "batch_size takes a positive integer, got 0"),
    (lambda: tv.Compose([], num_threads="2"), ValueError, "num_threads takes a positive integer, got '2'"),
    (lambda: tv.Compose([], sed=3), TypeError, "'sed' is not an argument of Compose.* Did you mean 'seed'"),
    (lambda: tv.Pad((1, 2, 3)), TypeError, "padding takes a non-negative integer"),
    (lambda: tv.Pad((-1, 2)), ValueError, "padding takes a non-negative integer"),
    (lambda: tv.Pad((1.5, 2)), TypeError, "padding takes a non-negative integer"),
    (lambda: tv.Pad(1, "red"), TypeError, "fill takes a number, a sequence of one number per channel"),
    (
        lambda: tv.Pad(1, padding_mode="wrap"),
        ValueError,
        "padding_mode takes 'constant', 'edge', 'reflect', 'symmetric'",
    ),
    (lambda: tv.RandomCrop(4, padding_mode="wrap"), ValueError, "padding_mode takes"),
    (lambda: tv.RandomCrop(4, pad_if_needed=1), TypeError, "pad_if_needed takes True or False, got 1"),
    (lambda: tv.RandomResizedCrop(4, scale=(0.0, 1.0)), ValueError, "scale takes two positive numbers"),
    (lambda: tv.RandomResizedCrop(4, ratio=(2, 1)), ValueError, "ratio takes .* where min <= max"),
    (lambda: tv.RandomResizedCrop(4, ratio=2), TypeError, "ratio takes a sequence of two numbers"),
    (lambda: tv.GaussianBlur(4), ValueError, "kernel_size takes a positive odd integer.* got 4"),
    (lambda: tv.GaussianBlur((3, 5, 7)), ValueError, "kernel_size takes"),
    (lambda: tv.GaussianBlur(3, 0), ValueError, "sigma takes a positive number"),
    (lambda: tv.GaussianBlur(3, seed=1.5), TypeError, "seed must be an integer"),
    (lambda: tv.ColorJitter(-1), ValueError, "brightness takes a non-negative number"),
    (lambda: tv.ColorJitter(contrast=(2, 1)), ValueError, "contrast takes"),
    (lambda: tv.ColorJitter(saturation="a"), ValueError, "saturation takes"),
    (lambda: tv.ColorJitter(hue=0.7), ValueError, r"hue takes a number in \[0, 0.5\]"),
    (lambda: tv.Grayscale(2), ValueError, "num_output_channels takes 1 or 3, got 2"),
    (lambda: tv.Normalize([1.0], [0.0]), ValueError, "std takes numbers that are not 0"),
    (lambda: tv.Normalize([], []), ValueError, "mean takes a sequence of numbers.* got none"),
    (lambda: tv.Normalize([1.0] * 3, [1.0] * 2), ValueError, "mean and std need .* got 3 and 2"),
    (lambda: tv.Normalize(0.5, 0.5), TypeError, "mean takes a sequence of numbers"),
    (lambda: tv.Normalize([1.0], [1.0], True), NotImplementedError, "inplace=True is not supported"),
]


@pytest.mark.parametrize("call, error, text", WRONG_INPUTS + WRONG_ARGUMENTS)
def test_mistakes(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_a_mistake_leaves_a_transform_usable():
    crop = tv.Compose([tv.RandomCrop(13)])
    with pytest.raises(PipelineError):
        crop(CHW[:, :5])
    assert crop(CHW).shape == (3, 13, 13)


@pytest.mark.parametrize("name", ["chw", "last"])
def test_pictures_on_the_gpu(name):
    """Images on the GPU are read without a copy."""
    from penstock import Pipeline
    from penstock.experimental.torchvision.v2._graph import Graph

    there = _interchange.take(forms(RGB)[name])
    pipe = Pipeline(1, 1, 0)
    with pipe:
        pipe.set_outputs(fn.external_source([there.batch.array()], layout=there.kind.layout).gpu())
    batch = pipe.run()[0]._batch
    taken = there._replace(kind=there.kind._replace(device=0), batch=batch)
    for device in ("cpu", "gpu"):
        transforms = [tv.Pad(1, device=device), tv.RandomHorizontalFlip(1.0, device=device)]
        pipeline = compose.PipelineCHW(transforms)
        graph = Graph(pipeline._apply, taken.kind, "image", pipeline._arguments)
        if device == "gpu":
            kinds = [stage.kind for stage in graph._direct.plan.stages]
            assert "upload" not in kinds
        assert (picture_of(graph.run(taken))[1:-1, 1:-1] == RGB[:, ::-1]).all()
    borrowed = batch.with_rows(batch.spec, batch.rows, (Borrowed(batch.owners),))
    (same,) = Graph(lambda x, _: x, taken.kind, "tensor", {"batch_size": 1, "num_threads": 1})._direct.run(
        {"input_data": borrowed}
    )
    assert same.rows["data"][0] != batch.rows["data"][0]  # what is given out is its own
