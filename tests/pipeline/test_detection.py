# SPDX-License-Identifier: Apache-2.0
"""Input of a detector: boxes are transformed like their images and assigned to anchors."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from detection_program import ANCHORS, EXAMPLE, SIDE, check_boxes, check_targets, example, rectangles, samples
from penstock import fn, pipeline_def

ROOT = Path(__file__).parents[2]


def run(n=12, batches=4, num_threads=3, **kwargs):
    gpu = kwargs.get("decoder") == "mixed"
    options = {"batch_size": n, "num_threads": num_threads, "device_id": 0 if gpu else None}
    pipe = example().training(rectangles, ANCHORS, SIDE, **options, **kwargs)
    return list(samples([pipe.run() for _ in range(batches)]))


@pytest.mark.parametrize("colours", [False, True])
def test_boxes_follow_the_pictures(colours):
    found = run(colours=colours)
    for image, boxes, labels, offsets, classes in found:
        assert image.shape == (3, SIDE, SIDE) and len(boxes)
        check_boxes(image, boxes, labels)
        check_targets(boxes, labels, offsets, classes)
    assert len({x[1].tobytes() for x in found}) > 40, "nothing was cropped"


def test_threads_do_not_matter():
    for a, b in zip(run(batches=2, num_threads=1), run(batches=2, num_threads=4)):
        for x, y in zip(a, b):
            np.testing.assert_array_equal(x, y)


def test_on_the_gpu():
    for cpu, gpu in zip(run(3, 1), run(3, 1, decoder="mixed")):
        for x, y, atol in zip(cpu, gpu, (0.06, 0, 0, 1e-5, 0)):  # a step of uint8 is 1/58
            np.testing.assert_allclose(y, x, atol=atol, rtol=1e-5)


def test_the_decoder_makes_only_the_crop():
    pipe = example().training(rectangles, ANCHORS, SIDE, batch_size=2, num_threads=1, device_id=None)
    pipe.build()
    chain = next(c for c in pipe._executor.plan.stages if any(n.op.fn_name == "decoders.image" for n in c.nodes))
    assert [n.op.fn_name for n in chain.nodes][:4] == ["decoders.image", "slice", "flip", "resize"]


def test_ssd_random_crop():
    @pipeline_def(batch_size=12, num_threads=2, seed=3)
    def pipe():
        encoded, boxes, labels = fn.external_source(source=rectangles, num_outputs=3, batch=False)
        images, boxes, labels = fn.ssd_random_crop(fn.decoders.image(encoded), boxes, labels, num_attempts=50)
        mirror, flop = fn.random.coin_flip(), fn.random.coin_flip()
        images = fn.resize(fn.flip(images, horizontal=mirror, vertical=flop), size=SIDE)
        boxes = fn.bb_flip(boxes, ltrb=True, horizontal=mirror, vertical=flop)
        return fn.transpose(images, perm=[2, 0, 1]), boxes, labels

    with pytest.warns(DeprecationWarning, match="ssd_random_crop is deprecated"):
        p = pipe()
    for image, boxes, labels in samples([p.run() for _ in range(3)]):
        check_boxes(image, boxes, labels)


def python(*args):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, *map(str, args)], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_example_runs_also_with_the_names_of_dali(tmp_path):
    ours = python(EXAMPLE, "--batches", 2, "--out", tmp_path / "sheet.png")
    assert ours.count("found by") == 6 and (tmp_path / "sheet.png").stat().st_size > 100_000
    text = EXAMPLE.read_text().replace("penstock", "nvidia.dali")
    assert "nvidia.dali.fn" in text and "penstock" not in text
    (tmp_path / "program.py").write_text(text.replace("__file__", repr(str(EXAMPLE))))
    theirs = python("-m", "penstock.as_dali", tmp_path / "program.py", "--batches", 2)
    assert theirs.splitlines() == ours.splitlines()[:6]
