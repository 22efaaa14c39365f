# SPDX-License-Identifier: Apache-2.0
"""Idioms of programs written for DALI, one function each: `idioms.py FOLDER [gpu]` prints the shape, type, mean and
deviation of all results as JSON. Nothing depends on random numbers, so DALI and penstock can be compared: see
test_idioms.py. The GPU is used where a program would use it."""

import glob
import json
import os
import pathlib
import sys

import numpy as np
import nvidia.dali as dali
import nvidia.dali.math as dmath
from nvidia.dali import fn, ops, types
from nvidia.dali.pipeline import Pipeline, pipeline_def

FOLDER, GPU = sys.argv[1], sys.argv[2:] == ["gpu"]
DEVICE, MIXED, DEVICE_ID = ("gpu", "mixed", 0) if GPU else ("cpu", "cpu", None)
FILES = sorted(glob.glob(os.path.join(FOLDER, "*", "*.jpg")))
IDIOMS = {}


def idiom(function):
    IDIOMS[function.__name__] = function
    return function


def once(define, batch_size=3):
    pipe = pipeline_def(define)(batch_size=batch_size, num_threads=2, device_id=DEVICE_ID, seed=7)
    pipe.build()
    return pipe.run()


def pictures(size=(24, 32), device=None):
    jpegs, labels = fn.readers.file(file_root=FOLDER, name="Reader")
    decoded = fn.decoders.image(jpegs, device=device or MIXED, output_type=types.RGB)
    return fn.resize(decoded, size=size, interp_type=types.INTERP_TRIANGULAR), labels


class TrainPipe(Pipeline):
    """ImageNet of 2019."""

    def __init__(self, batch_size, num_threads, device_id, data_dir, crop, local_rank=0, world_size=1):
        super(TrainPipe, self).__init__(batch_size, num_threads, device_id, seed=12)  # noqa: UP008
        self.input = ops.FileReader(
            file_root=data_dir, shard_id=local_rank, num_shards=world_size, random_shuffle=False, seed=3
        )
        padding = 1 << 20 if MIXED == "mixed" else 0
        self.decode = ops.ImageDecoder(
            device=MIXED, output_type=types.RGB, device_memory_padding=padding, host_memory_padding=padding
        )
        self.res = ops.Resize(device=DEVICE, resize_x=crop, resize_y=crop, image_type=types.RGB)
        self.cmnp = ops.CropMirrorNormalize(
            device=DEVICE,
            output_dtype=types.FLOAT,
            output_layout=types.NCHW,
            crop=(crop, crop),
            image_type=types.RGB,
            mean=[0.485 * 255, 0.456 * 255, 0.406 * 255],
            std=[0.229 * 255, 0.224 * 255, 0.225 * 255],
        )
        self.coin = ops.CoinFlip(probability=0.0)

    def define_graph(self):
        rng = self.coin()
        self.jpegs, self.labels = self.input(name="Reader")
        return [self.cmnp(self.res(self.decode(self.jpegs)), mirror=rng), self.labels]


@idiom
def class_style():
    pipe = TrainPipe(4, 2, DEVICE_ID, FOLDER, 20, 1, 2)
    pipe.build()
    return [*pipe.run(), np.array(pipe.epoch_size("Reader")), np.array(sum(pipe.epoch_size().values()))]


@idiom
def an_iterator_of_its_own():
    """Requests and releases batches one by one, as the iterators of DALI's first versions."""
    pipe = TrainPipe(4, 2, DEVICE_ID, FOLDER, 20)
    scope = pipe._check_api_type_scope
    with scope(types.PipelineAPIType.ITERATOR):
        pipe.build()
        pipe.schedule_run()
    given = []
    for _ in range(3):
        with scope(types.PipelineAPIType.ITERATOR):
            given.append(np.array(pipe.share_outputs()[1].as_tensor()))
            pipe.release_outputs()
            pipe.schedule_run()
    return given


@idiom
def wrappers_of_iterators():
    from nvidia.dali.plugin.pytorch import DALIClassificationIterator, DALIGenericIterator, LastBatchPolicy

    class Views(DALIGenericIterator):
        def __len__(self):
            size = (
                self._size_no_pad // self._shards_num if self._last_batch_policy == LastBatchPolicy.DROP else self.size
            )
            return size // self.batch_size

        def __next__(self):
            batch = super().__next__()
            return [batch[0][name] for name in self.output_map]

    class Loader:
        def __init__(self, pipe):
            self.it = DALIClassificationIterator(pipe, size=pipe.epoch_size("Reader"), fill_last_batch=False)

        def __len__(self):
            return -(-self.it._size // self.it.batch_size)

        def __iter__(self):
            for data in self.it:
                yield data[0]["data"], data[0]["label"].squeeze(-1).long()
            self.it.reset()

    @pipeline_def(batch_size=4, num_threads=1, device_id=None)
    def labels():
        return fn.readers.file(file_root=FOLDER, name="Reader")[1], fn.constant(idata=[3])

    views = Views(labels(), ["a", "b"], reader_name="Reader", auto_reset=True, last_batch_policy=LastBatchPolicy.DROP)
    pipe = labels()
    pipe.build()
    loader = Loader(pipe)
    given = [np.array([len(views), len(loader), loader.it._num_gpus, len(views._pipes)])]
    for epoch in (views, loader, views, loader):
        given += [part.numpy() for batch in epoch for part in batch]
    return given


@idiom
def fed_by_iter_setup():
    class Fed(Pipeline):
        def __init__(self):
            super().__init__(2, 2, DEVICE_ID)
            self.files = iter(FILES)
            self.input, self.input_label = ops.ExternalSource(), ops.ExternalSource()
            self.decode = ops.ImageDecoder(device=MIXED)

        def iter_setup(self):
            files = [next(self.files) for _ in range(2)]
            self.feed_input(self.jpegs, [np.fromfile(f, dtype=np.uint8) for f in files])
            self.feed_input(self.labels, [np.array([len(os.path.basename(f))], dtype=np.int32) for f in files])

        def define_graph(self):
            self.jpegs, self.labels = self.input(), self.input_label()
            return fn.shapes(self.decode(self.jpegs)), self.labels

    pipe = Fed()
    pipe.build()
    return [out for _ in range(3) for out in pipe.run()]


@idiom
def made_outside_of_the_pipeline():
    reader = fn.readers.file(file_root=pathlib.Path(FOLDER), name="Reader")
    scale = types.Constant(np.array([2.0, 3.0]), dtype=types.FLOAT)
    pipe = Pipeline(batch_size=3, num_threads=2, device_id=DEVICE_ID)
    labels = fn.cast(reader[1], dtype=types.FLOAT, seed=5)
    pipe.set_outputs(labels * scale, reader[1])
    pipe.build()
    return pipe.run()


@idiom
def sources():
    class Batches:
        def __iter__(self):
            self.i = 0
            return self

        def __next__(self):
            self.i += 1
            if self.i > 2:
                raise StopIteration
            return [np.full((2, 2), self.i, np.uint8)] * 3, [np.array([k + self.i]) for k in range(3)]

    def sample(info):
        return np.int32([info.idx_in_epoch, info.idx_in_batch, info.iteration, info.epoch_idx])

    pipe = Pipeline(3, 2, DEVICE_ID)
    with pipe:
        a, b = fn.external_source(source=Batches(), num_outputs=2, layout=["HW", None], cycle="quiet")
        c = fn.external_source(source=sample, batch=False, dtype=types.INT32)
        d = fn.external_source(source=lambda i: np.full((3, 1), i, np.float32), num_outputs=None)
        pipe.set_outputs(a, b, c, d, a[0], fn.python_function(d, function=lambda x: x + 1) if not GPU else d + 1)
    pipe.build()
    return [out for _ in range(4) for out in pipe.run()]


@idiom
def two_views():
    def mux(condition, true_case, false_case):
        return condition * true_case + (condition ^ True) * false_case

    def view(images, probability):
        changed = fn.color_twist(images, device=DEVICE, brightness=1.2, contrast=0.9, saturation=1.1, hue=5.0)
        chosen = fn.random.coin_flip(dtype=types.DALIDataType.BOOL, probability=probability)
        images = mux(chosen, changed, images)
        grey = fn.cast(fn.random.coin_flip(probability=1.0 - probability), dtype=types.FLOAT)
        images = fn.hsv(images, saturation=grey, device=DEVICE)
        blurred = fn.gaussian_blur(images, device=DEVICE, sigma=1.5)
        images = mux(fn.random.coin_flip(dtype=types.BOOL, probability=1.0), blurred, images)
        return fn.crop_mirror_normalize(
            images,
            dtype=types.FLOAT16,
            output_layout="CHW",
            mean=[124.0, 116.0, 104.0],
            std=[58.0, 57.0, 57.0],
            mirror=0,
        )

    def both():
        images, labels = pictures()
        return view(images, 1.0), view(images, 0.0), labels

    return once(both)


@idiom
def encoded_images_of_any_shape():
    """With another number of axes, or signed bytes: only the bytes in memory matter."""
    encoded = [np.fromfile(f, dtype=np.uint8) for f in FILES[:3]]
    forms = [lambda x: x[None], lambda x: x[:, None], lambda x: x.view(np.int8)]

    def decoded():
        sources = [fn.external_source(source=[[form(x) for x in encoded]], cycle=True) for form in forms]
        return tuple(fn.resize(fn.decoders.image(x, device=MIXED), size=(8, 9)) for x in sources)

    return once(decoded)


@idiom
def operators_as_base_classes():
    """With additional arguments of the constructor and the call, in a pipeline that is a method."""

    class Decode(ops.decoders.Image):
        def __init__(self, *args, device=MIXED, side=10, **kwargs):
            super(Decode, self).__init__(*args, device=device, **kwargs)  # noqa: UP008
            self.resize = ops.Resize(device=DEVICE, size=(side, side))

        def __call__(self, data, **kwargs):
            return self.resize(super().__call__(data, **kwargs))

    class Flip(ops.Flip):
        def __call__(self, data, **kwargs):
            return super().__call__(data, horizontal=1, vertical=0, **kwargs)

    class Builder:
        batch_size = 2

        def __init__(self):
            self.decode, self.flip = Decode(side=9, output_type=types.RGB), Flip(device=DEVICE)

        @pipeline_def
        def pipeline(self):
            jpegs, _ = fn.readers.file(file_root=pathlib.Path(FOLDER), name="Reader")
            return self.flip(self.decode(jpegs)), fn.constant(idata=self.batch_size)

    pipe = Builder().pipeline(batch_size=2, num_threads=2, device_id=DEVICE_ID)
    return [*pipe.run(), np.array(isinstance(Flip(), ops.Flip))]


@idiom
def volumes():
    random = np.random.RandomState(0)
    scans = [random.rand(1, 12, 20, 22).astype(np.float32) for _ in range(3)]
    masks = [(scan > 0.9).astype(np.uint8) for scan in scans]
    patch = [8, 12, 14]

    def augmented():
        img, lbl = fn.external_source(source=lambda: (scans, masks), num_outputs=2)
        img, lbl = fn.reshape(img, layout="CDHW"), fn.reshape(lbl, layout="CDHW")
        anchor = fn.slice(
            fn.roi_random_crop(lbl, roi_start=[0, 1, 1, 1], roi_end=[1, 9, 13, 15], crop_shape=[1, *patch]),
            1,
            3,
            axes=[0],
        )
        shape = types.Constant(np.array(patch), dtype=types.INT64)
        img, lbl = fn.slice([img, lbl], anchor, shape, axis_names="DHW", out_of_bounds_policy="pad", device="cpu")
        if GPU:
            img, lbl = img.gpu(), lbl.gpu()
        scale = fn.cast(fn.random.coin_flip(probability=0.0), dtype=types.BOOL) * 0.7 + 0.75
        d, h, w = [scale * x for x in patch]
        img, lbl = [fn.crop(x, crop_h=h, crop_w=w, crop_d=d) for x in (img, lbl)]
        size = types.Constant(np.array(patch), dtype=types.FLOAT)
        img = fn.resize(img, interp_type=types.DALIInterpType.INTERP_CUBIC, size=size)
        lbl = fn.resize(lbl, interp_type=types.DALIInterpType.INTERP_NN, size=size)
        img, lbl = [fn.flip(x, horizontal=1, vertical=0, depthwise=1) for x in (img, lbl)]
        img = fn.gaussian_blur(img, sigma=0.8) * 1.2
        low, high = fn.reductions.min(img), fn.reductions.max(img)
        return dmath.clamp(img * 1.1, low, high), lbl, fn.transpose(img, perm=(1, 0, 2, 3))

    return [np.array(x.shape()) for x in once(augmented)]


@idiom
def boxes():
    def detection():
        images, _ = pictures((40, 60))
        bboxes = types.Constant(np.float32([[0.1, 0.1, 0.5, 0.5], [0.3, 0.3, 0.9, 0.9]]))
        bboxes = fn.bb_flip(bboxes, horizontal=1, ltrb=True)
        images = fn.flip(images, horizontal=1, vertical=0)
        images = fn.paste(images, paste_x=0.3, paste_y=0.4, ratio=2.0, fill_value=(32, 64, 128))
        bboxes = fn.bbox_paste(bboxes, paste_x=0.3, paste_y=0.4, ratio=2.0, ltrb=True)
        encoded, classes = fn.box_encoder(
            bboxes,
            types.Constant(np.int32([1, 2])),
            criteria=0.4,
            anchors=[0.0, 0.0, 1.0, 1.0, 0.2, 0.3, 0.6, 0.7],
            offset=True,
        )
        padded = fn.pad(bboxes, axes=(0,), shape=[4], fill_value=-1)
        cropped = fn.slice(images, (0.1, 0.2), (0.5, 0.5))
        return images, bboxes, encoded, classes, padded, cropped, dali.fn.reshape(encoded, [1, 2, -1])

    return once(detection)


@idiom
def arithmetic():
    def expressions():
        data, labels = pictures()
        low, high = fn.reductions.min(data, axes=[0, 1]), fn.reductions.max(data, axes=[0, 1])
        spread = high - low
        mask = spread > 0
        divisor = spread * mask + types.Constant(255, dtype=types.UINT8) * (mask ^ True)
        stretched = fn.cast_like((data - low * mask) * (255 / divisor), data)
        size = fn.cast(data.shape(device="cpu")[:2], dtype=types.FLOAT)
        return (
            *(
                stretched,
                fn.transpose(data, perm=[2, 0, 1]) / 255,
                fn.cast(255 - data, dtype=types.UINT8),
                data[2:, ::2],
                labels - types.Constant(1).uint8(),
            ),
            *(
                fn.resize(data, size=size / 2),
                dmath.min(40.0 / size[0], 1.5),
                fn.stack(labels, labels),
                fn.one_hot(labels, num_classes=6),
            ),
        )

    return [np.array(x.as_cpu().at(0) if hasattr(x, "as_cpu") else x.at(0)) for x in once(expressions)]


@idiom
def sequences():
    def frames():
        clip = fn.external_source(
            source=lambda: [np.arange(288, dtype=np.uint8).reshape(2, 6, 8, 3)] * 3, layout="FHWC"
        )
        clip = clip.gpu() if GPU else clip
        normal = fn.crop_mirror_normalize(clip, output_layout="FCHW", crop=(4, 4), mean=[1.0, 2, 3], std=[2.0, 2, 2])
        return (
            normal,
            fn.transpose(clip, perm=[3, 0, 1, 2]),
            fn.squeeze(clip[:1], axes=[0]),
            fn.resize(clip, size=(12, 16)),
        )

    return once(frames)


@idiom
def what_pipelines_tell():
    pipe = TrainPipe(4, 2, DEVICE_ID, FOLDER, 20)
    pipe.build()
    name = list(pipe.reader_meta())[0]
    meta = pipe.reader_meta(name)
    deep = Pipeline(1, 1, DEVICE_ID, prefetch_queue_depth={"cpu_size": 3, "gpu_size": 2}).prefetch_queue_depth
    major = int(dali.__version__.split(".")[0])
    return [np.array(list(meta.values())), np.array([pipe.batch_size, pipe.max_batch_size, major, *deep.values()])]


def told(value):
    """[shape, type, mean, deviation] of an array, or of each sample of a batch."""
    if hasattr(value, "as_cpu"):
        value = value.as_cpu()
    if not isinstance(value, np.ndarray):
        return [told(np.array(value.at(i))) for i in range(len(value))]
    numbers = value.astype(np.float64)
    return [list(value.shape), value.dtype.name, float(numbers.mean()), float(numbers.std())] if value.size else []


if __name__ == "__main__":
    import iterator_idioms

    IDIOMS.update(iterator_idioms.idioms(FILES))
    print(json.dumps({name: [told(v) for v in function()] for name, function in IDIOMS.items()}))
