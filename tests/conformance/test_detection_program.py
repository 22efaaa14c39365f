# SPDX-License-Identifier: Apache-2.0
"""The example of a detector's input in the real DALI: as here, its boxes match the images, with the same
distribution."""

import numpy as np

from conformance import report
from detection_program import ANCHORS, SIDE, check_boxes, check_targets, example, overlaps, rectangles


def outputs(package, n=16, batches=12):
    pipe = example(package).training(rectangles, ANCHORS, SIDE, batch_size=n, num_threads=2, device_id=None)
    pipe.build()
    for _ in range(batches):
        batch = pipe.run()
        for i in range(n):
            yield [np.array(b.at(i)) for b in batch]


def test_the_example():
    from scipy import stats

    facts = {}
    for package in ("nvidia.dali", "penstock"):
        found = list(outputs(package))
        for image, boxes, labels, offsets, classes in found:
            check_boxes(image, boxes, labels)
            check_targets(boxes, labels, offsets, classes)
        facts[package] = np.array([[len(x[1]), overlaps(ANCHORS, x[1]).max(), (x[4] > 0).sum()] for x in found]).T
    tally = report.tally("random_bbox_crop")
    tally.cases += 1
    for what, a, b in zip(("boxes", "best overlap", "anchors found"), facts["nvidia.dali"], facts["penstock"]):
        assert stats.ks_2samp(a, b).pvalue > 1e-3, f"{what}: {b.mean()}, DALI {a.mean()}"
