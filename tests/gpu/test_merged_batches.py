# SPDX-License-Identifier: Apache-2.0
"""Small GPU batches are computed several at a time if the consumer waits for them. Outputs and errors are the same as
for batches computed one by one."""

import numpy as np
import pytest

import encoded_images
from penstock import fn, pipeline_def, types
from penstock.exec.scheduling.constants import SCHEDULING

BATCH, SAMPLES = 4, 37


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("pictures")
    for i in range(SAMPLES):
        picture = encoded_images.photograph(i, 24 + i % 5 * 8, 40 - i % 3 * 8)
        file = root / f"{i % 3}" / f"{i:02}.jpg"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(encoded_images.encode(picture, "JPEG").tobytes())
    return root


@pytest.fixture
def eager(monkeypatch):
    """Batches are merged as early as possible."""
    monkeypatch.setattr(SCHEDULING, "merges_watched", 1)
    monkeypatch.setattr(SCHEDULING, "waiting_share", -1.0)


@pipeline_def(num_threads=2, device_id=0, seed=7, enable_conditionals=True)
def augmented(root, **reader):
    files, labels = fn.readers.file(file_root=root, name="files", **reader)
    images = fn.decoders.image_random_crop(files, device="mixed", hw_decoder_load=0.0)
    images = fn.resize(images, size=(16, 24))
    if fn.random.coin_flip():
        images = fn.flip(images)
    normal = fn.crop_mirror_normalize(images, mirror=fn.random.coin_flip(), std=64.0, dtype=types.FLOAT)
    return normal, labels, labels.gpu(), fn.random.uniform(range=(0, 1))


@pipeline_def(num_threads=2, device_id=0, seed=7)
def decoded(root, **reader):
    files, labels = fn.readers.file(file_root=root, name="files", **reader)
    images = fn.decoders.image(files, device="mixed", hw_decoder_load=0.0)
    return images, fn.resize(images, resize_x=8 + 8 * (labels % 2)), labels


def taken(outputs):
    """Samples, whether they are one array, and their sources."""
    batches = [o.as_cpu() if hasattr(o, "as_cpu") else o for o in outputs]
    return [
        ([np.array(b.at(i)) for i in range(len(b))], b.is_dense_tensor(), [b[i].source_info() for i in range(len(b))])
        for b in batches
    ]


def same(a, b):
    assert len(a) == len(b)
    for (samples, dense, sources), (others, dense_too, sources_too) in zip(a, b):
        assert (dense, sources, len(samples)) == (dense_too, sources_too, len(others))
        for x, y in zip(samples, others):
            np.testing.assert_array_equal(x, y, strict=True)


def run(pipe, n):
    return [taken(pipe.run()) for _ in range(n)]


def one_by_one(make, n):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SCHEDULING, "most_merged_batches", 1)
        pipe = make()
        out = run(pipe, n)
        assert pipe._executor.merging.size == 1
    return out


READERS = {
    "in order": {},
    "shuffled": {"random_shuffle": True},
    "a shard, padded": {"shard_id": 1, "num_shards": 3, "pad_last_batch": True, "random_shuffle": True},
    "shards in turn": {"shard_id": 0, "num_shards": 2, "stick_to_shard": False, "shuffle_after_epoch": True},
}


@pytest.mark.parametrize("definition", [augmented, decoded])
@pytest.mark.parametrize("reader", READERS)
def test_batches_are_those_made_one_by_one(folder, eager, definition, reader):
    def make(size=BATCH):
        return definition(str(folder), batch_size=size, **READERS[reader])

    pipe = make()
    for out, expected in zip(run(pipe, 40), one_by_one(make, 40)):
        same(out, expected)
    assert pipe._executor.merging.size == 8 and "8 of them made as one" in pipe.explain()
    assert pipe.stats()["batches"] >= 40 and pipe.stats()["samples"] == BATCH * pipe.stats()["batches"]


def test_a_checkpoint_within_merged_batches(folder, eager):
    def make(**options):
        return augmented(str(folder), batch_size=BATCH, random_shuffle=True, enable_checkpointing=True, **options)

    expected = one_by_one(make, 45)
    pipe = make()
    for out, e in zip(run(pipe, 20), expected):
        same(out, e)
    for i in range(20, 33):
        restored = make(checkpoint=pipe.checkpoint())
        for out, e in zip(run(restored, 3), expected[i:]):
            same(out, e)
        restored.close()
        same(taken(pipe.run()), expected[i])


def test_a_reset_within_merged_batches(folder, eager):
    def made(pipe):
        out = run(pipe, 23)
        pipe.reset()
        return out + run(pipe, 13)

    def make():
        return decoded(str(folder), batch_size=BATCH, shuffle_after_epoch=True)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SCHEDULING, "most_merged_batches", 1)
        expected = made(make())
    for out, e in zip(made(make()), expected):
        same(out, e)


@pytest.fixture
def damaged(folder, tmp_path):
    for file in sorted(folder.rglob("*.jpg")):
        copy = tmp_path / file.parent.name / file.name
        copy.parent.mkdir(exist_ok=True)
        content = file.read_bytes()
        number = int(file.stem)
        # One with an invalid header, one with truncated pixels, and one that is deleted after it was listed.
        copy.write_bytes(b"nothing" if number == 9 else content[: len(content) // 2] if number == 23 else content)
    return tmp_path


@pytest.mark.parametrize("on_error", ["raise", "skip", "replace"])
def test_bad_samples_are_those_of_their_batch(damaged, eager, on_error):
    def make():
        pipe = decoded(str(damaged), batch_size=BATCH, on_error=on_error)
        pipe.build()
        (damaged / "1" / "31.jpg").unlink(missing_ok=True)
        return pipe

    def outcomes(pipe):
        out = []
        for _ in range(38):
            try:
                out.append(taken(pipe.run()))
            except RuntimeError as e:
                out.append(str(e))
        return out, pipe.errors()

    (damaged / "1" / "31.jpg").touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SCHEDULING, "most_merged_batches", 1)
        expected, errors = outcomes(make())
    (damaged / "1" / "31.jpg").touch()
    pipe = make()
    outputs, errors_too = outcomes(pipe)
    assert pipe._executor.merging.size == 8
    order = sorted(range(SAMPLES), key=lambda i: (i % 3, i))
    bad = {p // BATCH for p in range(38 * BATCH) if order[p % SAMPLES] in (9, 23, 31)}
    assert {i for i, e in enumerate(expected) if isinstance(e, str)} == (bad if on_error == "raise" else set())
    for out, e in zip(outputs, expected):
        if isinstance(e, str) or isinstance(out, str):
            assert out == e
        else:
            same(out, e)
    first = [e for e in errors if e.iteration < 38]
    assert first and [e for e in errors_too if e.iteration < 38] == first


@pytest.mark.parametrize("why", ["a limit of memory", "code of the user's", "a mixture", "no reader", "no prefetch"])
def test_batches_are_made_one_by_one(folder, eager, why):
    options = {"a limit of memory": {"device_memory_limit": 1 << 30}, "no prefetch": {"exec_async": False}}.get(why, {})
    if why == "no prefetch":
        options["exec_pipelined"] = False

    @pipeline_def(batch_size=BATCH, num_threads=2, device_id=0, **options)
    def pipe():
        files, labels = fn.readers.file(file_root=str(folder))
        if why == "no reader":
            labels = fn.random.uniform(range=(0, 1))
            return labels.gpu()
        if why == "code of the user's":
            labels = fn.python_function(labels, function=lambda x: x)
        images = fn.decoders.image(files, device="mixed")
        if why == "a mixture":
            images = fn.pad(images)
        return images, labels

    made = pipe()
    for _ in range(24):
        made.run()
    assert made._executor.merging.size == 1 or why == "no prefetch" and made._executor.pending == 0
