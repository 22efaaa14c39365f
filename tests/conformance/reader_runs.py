# SPDX-License-Identifier: Apache-2.0
"""The same reader through penstock and through the real DALI."""

import itertools

import numpy as np

# Deterministic ways to divide and order a data set.
ORDERS = [
    {"num_shards": n, "shard_id": i, "stick_to_shard": stick, "pad_last_batch": pad}
    for n, i in ((1, 0), (2, 1), (3, 0), (3, 2))
    for stick, pad in itertools.product((False, True), repeat=2)
]


def run(dali, name, kwargs, batch_size=4, iterations=5, sources=True):
    """Runs the reader `name`, such as "readers.file". Returns type, shape, bytes, layout and source by iteration,
    output and sample; and its metadata. With `sources="first"`, only sources of output 0 are included, as other outputs
    have none in DALI."""
    if dali:
        from nvidia.dali import fn, pipeline_def

        options = {"device_id": None}
    else:
        from penstock import fn, pipeline_def

        options = {}
    face = fn
    for part in name.split("."):
        face = getattr(face, part)

    @pipeline_def(batch_size=batch_size, num_threads=2, **options)
    def pipe():
        outputs = face(name="r", **kwargs)
        return tuple(outputs) if isinstance(outputs, (list, tuple)) else outputs

    p = pipe()
    p.build()
    batches = []
    for _ in range(iterations):
        outputs = p.run()
        named = [sources is True or (sources == "first" and k == 0) for k in range(len(outputs))]
        batches.append([[_described(o, i, n) for i in range(len(o))] for o, n in zip(outputs, named)])
    return batches, dict(p.reader_meta("r"))


def _described(output, i, sources):
    x = np.array(output.at(i))
    return x.dtype.name, x.shape, x.tobytes(), output.layout(), output[i].source_info() if sources else None


def compare(name, kwargs, **options):
    """Asserts that both results are equal."""
    ours, dalis = run(False, name, kwargs, **options), run(True, name, kwargs, **options)
    assert ours[1] == dalis[1]
    for iteration, (a, b) in enumerate(zip(ours[0], dalis[0])):
        assert len(a) == len(b), f"{len(a)} outputs, {len(b)} of DALI"
        for k, (x, y) in enumerate(zip(a, b)):
            assert x == y, f"iteration {iteration}, output {k}"


def refuses(name, kwargs, **options):
    """Whether penstock and DALI raise an error."""
    answers = []
    for dali in (False, True):
        try:
            run(dali, name, kwargs, **options)
            answers.append(False)
        except (RuntimeError, ValueError, TypeError):
            answers.append(True)
    return tuple(answers)
