# SPDX-License-Identifier: Apache-2.0
"""A detector (SSD) in PyTorch, from COCO annotations to its losses.

    python examples/ssd_coco.py [--images FOLDER --annotations FILE.json --classes N] [--steps N] [--threads N]

Without arguments, it writes annotations of three of the photographs in examples/data in COCO's format, and the model
memorises them: both losses fall. The pipeline after the reader, and the anchors, are those of examples/ssd.py.
"""

import argparse
import json
import tempfile
from pathlib import Path

import torch
import torch.nn.functional as F
from ssd import HERE, OBJECTS, augmented, ssd_anchors

import penstock.fn as fn
from penstock import pipeline_def
from penstock.plugin.pytorch import DALIGenericIterator


def write_annotations(path):
    """Returns the objects of examples/ssd.py in COCO's form: pixels, left, top, width and height."""
    images, annotations = [], []
    sizes = read_sizes(list(OBJECTS))
    for i, (name, objects) in enumerate(OBJECTS.items()):
        height, width = sizes[i]
        images.append({"id": i, "file_name": name, "width": width, "height": height})
        for label, left, top, right, bottom in objects:
            box = [left * width, top * height, (right - left) * width, (bottom - top) * height]
            annotations.append({"id": len(annotations), "image_id": i, "category_id": label, "bbox": box, "iscrowd": 0})
    categories = [{"id": k, "name": name} for k, name in enumerate(("face", "eye", "helmet", "rocket"), 1)]
    Path(path).write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))


def read_sizes(names):
    """Returns (height, width) of photographs."""

    @pipeline_def(batch_size=len(names), num_threads=1, device_id=None)
    def sizes():
        files, _ = fn.readers.file(file_root=str(HERE / "data"), files=names)
        return fn.peek_image_shape(files)

    return [tuple(map(int, shape[:2])) for shape in sizes().run()[0].as_array()]


@pipeline_def(seed=42)
def training(images, annotations, decoder="cpu"):
    """Returns images, and for each of the 8732 anchors the offsets of its box and its class."""
    encoded, boxes, labels = fn.readers.coco(
        file_root=images,
        annotations_file=annotations,
        ratio=True,
        ltrb=True,
        skip_empty=True,
        shuffle="global",
        name="reader",
    )
    pictures, _, _, offsets, classes = augmented(encoded, boxes, labels, decoder=decoder)
    return pictures, offsets, classes


class Detector(torch.nn.Module):
    """SSD300 with a few thin layers: six grids of 38 to 1 cells, and two heads on each."""

    def __init__(self, classes, per_cell=(4, 6, 6, 6, 4, 4)):
        super().__init__()
        self.classes = classes
        layer = lambda a, b, **more: torch.nn.Sequential(torch.nn.Conv2d(a, b, 3, **more), torch.nn.ReLU())
        half = {"stride": 2, "padding": 1}
        self.stem = torch.nn.Sequential(layer(3, 8, **half), layer(8, 16, **half), layer(16, 32, **half))
        self.grids = torch.nn.ModuleList(layer(32, 32, **(half if n < 4 else {})) for n in range(1, 6))
        self.heads = torch.nn.ModuleList(torch.nn.Conv2d(32, k * (4 + classes), 3, padding=1) for k in per_cell)

    def forward(self, x):
        found, x = [], self.stem(x)
        for k, head in enumerate(self.heads):
            x = self.grids[k - 1](x) if k else x
            n, _, h, w = (y := head(x)).shape
            # As ssd_anchors() has them: for each shape of an anchor all cells.
            found.append(y.view(n, -1, 4 + self.classes, h, w).permute(0, 1, 3, 4, 2).reshape(n, -1, 4 + self.classes))
        found = torch.cat(found, 1)
        return found[..., :4], found[..., 4:]


def losses(offsets, scores, wanted_offsets, wanted_classes):
    """Computes the loss of the boxes of anchors that have an object, and of the classes of these and of three times as
    many others, the hardest ones (Liu et al., 2016, section 2.2)."""
    has_object = wanted_classes > 0
    n = has_object.sum(1).clamp(min=1)
    box = F.smooth_l1_loss(offsets, wanted_offsets, reduction="none").sum(2).mul(has_object).sum(1)
    of_class = F.cross_entropy(scores.transpose(1, 2), wanted_classes, reduction="none")
    hardness = of_class.detach().masked_fill(has_object, -1)
    is_hard = hardness.argsort(1, descending=True).argsort(1) < (3 * n)[:, None]
    return (box / n).mean(), (of_class.mul(has_object | is_hard).sum(1) / n).mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", default=str(HERE / "data"))
    parser.add_argument("--annotations")
    parser.add_argument("--classes", type=int, default=4)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        annotations = args.annotations
        if annotations is None:
            annotations = f"{folder}/instances.json"
            write_annotations(annotations)
        pipe = training(args.images, annotations, batch_size=args.batch, num_threads=args.threads, device_id=None)
        batches = DALIGenericIterator(pipe, ["image", "offsets", "classes"])  # without end
        torch.manual_seed(0)
        model = Detector(args.classes + 1)  # 0 is the background
        assert model(torch.zeros(1, 3, 300, 300))[0].shape[1] == len(ssd_anchors())
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
        sums = torch.zeros(2)  # of ten steps
        for step, (batch,) in zip(range(1, args.steps + 1), batches):
            box, of_class = losses(*model(batch["image"]), batch["offsets"], batch["classes"].long())
            optimizer.zero_grad()
            (box + of_class).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            sums += torch.stack([box, of_class]).detach() / 10
            if step % 10 == 0:
                print(f"step {step}: loss of boxes {sums[0]:.3f}, of classes {sums[1]:.3f}")
                sums.zero_()


if __name__ == "__main__":
    main()
