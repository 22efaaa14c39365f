# SPDX-License-Identifier: Apache-2.0
"""Training as on ImageNet, from shards: TFRecord files or WebDataset tar archives, random crops, a classifier in
PyTorch.

    python examples/imagenet_shards.py [--format tfrecord|webdataset] [--shards FILE...] [--classes N] [--epochs N]

Without --shards, it writes shards of the photographs in examples/data, and the model memorises them: the loss falls.
Your own shards need the features "image/encoded" and "image/class/label" (which counts from 1, as in TensorFlow's
scripts for ImageNet), or the members .jpg and .cls (a number as text, as in WebDataset).
"""

import argparse
import io
import struct
import tarfile
import tempfile
from pathlib import Path

import torch

import penstock.fn as fn
import penstock.tfrecord as tfrec
import penstock.types as types
from penstock import pipeline_def
from penstock.plugin.pytorch import DALIGenericIterator, LastBatchPolicy

DATA = Path(__file__).resolve().parent / "data"
MEAN, STD = [0.485 * 255, 0.456 * 255, 0.406 * 255], [0.229 * 255, 0.224 * 255, 0.225 * 255]


# Shards ---------------------------------------------------------------------------------------------------------------


def photographs():
    """Returns the encoded photographs of examples/data and their classes."""
    for label, folder in enumerate(sorted(p for p in DATA.iterdir() if p.is_dir())):
        for path in sorted(folder.glob("*.jpg")):
            yield path.read_bytes(), label


def field(number, data):
    """Encodes a field of a protobuf message: bytes, or a number."""

    def varint(n):
        return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)

    if isinstance(data, int):
        return varint(number << 3) + varint(data)
    return varint(number << 3 | 2) + varint(len(data)) + data


def crc32c(data):
    table = []
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ 0x82F63B78 * (i & 1)
        table.append(i)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def write_tfrecord(path, samples):
    with open(path, "wb") as file:
        for image, label in samples:
            features = {
                "image/encoded": field(1, field(1, image)),
                "image/class/label": field(3, field(1, label + 1)),
            }
            entries = b"".join(field(1, field(1, k.encode()) + field(2, v)) for k, v in features.items())
            record = field(1, entries)
            length = struct.pack("<Q", len(record))
            file.write(length + masked(length) + record + masked(record))


def write_webdataset(path, samples):
    with tarfile.open(path, "w") as archive:
        for i, (image, label) in enumerate(samples):
            for extension, content in (("jpg", image), ("cls", str(label).encode())):
                member = tarfile.TarInfo(f"{i:06}.{extension}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))


def write_shards(folder, kind):
    """Writes two shards with every other photograph."""
    samples = list(photographs())
    write, extension = {"tfrecord": (write_tfrecord, "tfrecord"), "webdataset": (write_webdataset, "tar")}[kind]
    paths = [Path(folder) / f"train-{k}.{extension}" for k in (0, 1)]
    for k, path in enumerate(paths):
        write(path, samples[k::2])
    return list(map(str, paths))


# The pipeline ---------------------------------------------------------------------------------------------------------


def from_tfrecord(paths, **reader):
    features = {
        "image/encoded": tfrec.FixedLenFeature((), tfrec.string, ""),
        "image/class/label": tfrec.FixedLenFeature([1], tfrec.int64, -1),
    }
    found = fn.readers.tfrecord(path=paths, features=features, **reader)
    return found["image/encoded"], found["image/class/label"] - 1


def from_webdataset(paths, **reader):
    images, texts = fn.readers.webdataset(
        paths=paths, ext=["jpg;jpeg", "cls"], missing_component_behavior="skip", **reader
    )
    return images, number(texts)


def number(text, digits=4):
    """Converts digits as text, up to a maximum length, to the number."""
    text = fn.cast(fn.pad(text, shape=[digits]), dtype=types.INT64)
    value = 0
    for k in range(digits):
        is_digit = text[k] >= ord("0")  # what was padded is 0
        value = value * (1 + 9 * is_digit) + (text[k] - ord("0")) * is_digit
    return value


READERS = {"tfrecord": from_tfrecord, "webdataset": from_webdataset}


@pipeline_def(seed=7)
def training(kind, paths, size=64, decoder="cpu"):
    jpegs, labels = READERS[kind](paths, name="reader", shuffle="global")
    images = fn.decoders.image_random_crop(jpegs, device=decoder, random_area=[0.25, 1.0])
    images = fn.resize(images, size=[size, size])
    images = fn.crop_mirror_normalize(
        images, mirror=fn.random.coin_flip(), mean=MEAN, std=STD, dtype=types.FLOAT, output_layout="CHW"
    )
    return images, labels


def classifier(classes):
    layers, channels = [], 3
    for more in (16, 32, 64):
        layers += [torch.nn.Conv2d(channels, more, 3, 2, 1), torch.nn.BatchNorm2d(more), torch.nn.ReLU()]
        channels = more
    return torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(64, classes))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", choices=list(READERS), default="tfrecord")
    parser.add_argument("--shards", nargs="*")
    parser.add_argument("--classes", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--batch", type=int, default=21)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = args.shards or write_shards(folder, args.format)
        pipe = training(args.format, paths, batch_size=args.batch, num_threads=args.threads, device_id=None)
        batches = DALIGenericIterator(
            pipe, ["image", "label"], reader_name="reader", last_batch_policy=LastBatchPolicy.DROP, auto_reset=True
        )
        torch.manual_seed(0)
        model = classifier(args.classes)
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
        for epoch in range(args.epochs):
            total, n = 0.0, 0
            for (batch,) in batches:
                loss = torch.nn.functional.cross_entropy(model(batch["image"]), batch["label"].flatten())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total, n = total + loss.item(), n + 1
            if epoch % 10 == 0 or epoch == args.epochs - 1:
                print(f"epoch {epoch}: loss {total / n:.3f}")


if __name__ == "__main__":
    main()
