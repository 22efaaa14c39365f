# SPDX-License-Identifier: Apache-2.0
"""Work that remains in the pipeline's own process: GPU operators and those that depend on them."""

import os

import numpy as np
import pytest
from pipelines import SIZE, N, all_ready, assert_same, processes, write_pictures

from penstock import fn, pipeline_def, types


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    from PIL import Image

    rng = np.random.default_rng(3)
    made = write_pictures(folder)
    for i in range(0, N, 2):
        made[i] = str(folder / f"{i:03}.jpg")
        Image.fromarray(rng.integers(0, 255, (48 + i, 64, 3), dtype=np.uint8)).save(made[i])
    return made


def on_host(batch):
    return [[np.array(s) for s in (o.as_cpu() if hasattr(o, "as_cpu") else o)] for o in batch]


def defined(body, **given):
    @pipeline_def(
        **{"batch_size": SIZE, "seed": 11, "num_threads": 1, "device_id": 0, "enable_checkpointing": True, **given}
    )
    def pipe(files, **reader):
        data, labels = fn.readers.file(
            files=files, labels=list(range(len(files))), name="files", random_shuffle=True, **reader
        )
        return body(data, labels)

    return pipe


def normalised(data, labels):
    small = fn.resize(fn.decoders.image(data), size=(16, 20))
    return fn.crop_mirror_normalize(
        small.gpu(),
        mirror=fn.random.coin_flip(),
        crop=(12, 12),
        crop_pos_x=fn.random.uniform(range=(0, 1)),
        mean=[100.0],
        std=50.0,
    ), labels


def mixed(data, labels):
    images = fn.decoders.image(data, device="mixed")
    return fn.resize(images, size=(16, 16)), labels.gpu(), images


def back(data, labels):
    """To the GPU, back to the CPU, and further there."""
    x = fn.resize(fn.decoders.image(data), size=(8, 8))
    y = fn.flip(x.gpu(), horizontal=fn.random.coin_flip()).cpu()
    return fn.cast(y, dtype=types.INT32) + labels, fn.random.normal(shape=(2,)), x


def both(data, labels):
    """An output of the workers that is also read here and returned twice."""
    x = fn.resize(fn.decoders.image(data), size=(9, 7))
    return x, x.gpu(), x, fn.reductions.sum(x.gpu())


def branches(data, labels):
    """A branch of which one side is on the GPU."""
    x = fn.resize(fn.decoders.image(data), size=(10, 10))
    if fn.random.coin_flip(probability=0.4):
        y = fn.rotate(x.gpu(), angle=90.0)
    else:
        y = x.gpu()
    return y, labels


BODIES = [normalised, mixed, back, both]


@pytest.mark.parametrize("body", BODIES, ids=lambda b: b.__name__)
@pytest.mark.parametrize("options", [{}, {"on_error": "skip"}, {"exec_pipelined": False}], ids=str)
def test_bytes_and_checkpoints(files, body, options):
    pipe = defined(body, **options)
    plain, crewed = pipe(files), pipe(files, workers=2)
    for i in range(2 * N // SIZE):
        a, b = plain.run(), crewed.run()
        assert [type(x) for x in a] == [type(x) for x in b]
        assert_same(on_host(a), on_host(b), i)
        assert plain.checkpoint() == crewed.checkpoint()
    again = pipe(files, workers=1, checkpoint=crewed.checkpoint())
    assert_same(on_host(plain.run()), on_host(again.run()))
    for p in (plain, crewed, again):
        p.close()


def test_conditionals(files):
    pipe = defined(branches, enable_conditionals=True)
    plain, crewed = pipe(files), pipe(files, workers=2)
    for i in range(N // SIZE):
        assert_same(on_host(plain.run()), on_host(crewed.run()), i)
    crewed.close()


def test_workers_decode(files):
    """Only GPU work is done here."""
    pipe = defined(normalised)(files, workers=1)
    pipe.build()
    producer = pipe._executor._production.producer
    assert [n.op.fn_name for n in producer.rest.nodes] == ["gpu", "crop_mirror_normalize"]
    assert {n.op.fn_name for n in producer.away.nodes} >= {"readers.file", "decoders.image", "resize"}
    text = pipe.explain()
    assert text.index("workers make") < text.index("fn.resize") < text.index("this process") < text.index("normalize")
    pipe.close()


@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_bad_samples_of_both_parts(files, tmp_path, on_error):
    """A file that no worker can decode, and images too small for the crop, which is detected here."""
    damaged = tmp_path / "damaged.jpg"
    damaged.write_bytes(b"no picture")

    def windows(data, labels):
        x = fn.decoders.image(data)
        return fn.crop(x.gpu(), crop=(30, 30), out_of_bounds_policy="error"), labels

    pipe = defined(windows, on_error=on_error)
    some = [*files[:9], str(damaged), *files[9:]]
    plain, crewed = pipe(some), pipe(some, workers=2)
    for i in range(2 * N // SIZE):
        assert_same(on_host(plain.run()), on_host(crewed.run()), i)
        assert (plain.sample_indices() == crewed.sample_indices()).all()
    listed = {e.operator for e in crewed.errors()}
    assert listed == {"fn.decoders.image", "fn.crop"}
    last = 2 * N // SIZE - 1  # others may be in progress
    assert [e for e in crewed.errors() if e.iteration <= last] == [e for e in plain.errors() if e.iteration <= last]
    crewed.close()


def test_errors_name_the_users_line(files):
    def windows(data, labels):
        return fn.crop(fn.decoders.image(data).gpu(), crop=(300, 300), out_of_bounds_policy="error")

    pipe = defined(windows)(files, workers=1)
    with pytest.raises(RuntimeError, match=r"(?s)fn.crop.*test_rest.py") as crewed:
        pipe.run()
    with pytest.raises(RuntimeError) as plain:
        defined(windows)(files).run()
    assert str(crewed.value) == str(plain.value)
    pipe.close()


def test_without_any_worker_left(files, monkeypatch):
    pipe = defined(normalised)
    plain, crewed = pipe(files), pipe(files, workers=1)
    all_ready(crewed)
    assert_same(on_host(plain.run()), on_host(crewed.run()))
    from penstock.cluster import local_link, worker_link

    def refuses(*_):
        raise worker_link.WorkerLost("can't be started")

    monkeypatch.setattr(local_link.LocalLink, "open", refuses)
    for pid in processes(crewed):
        os.kill(pid, 9)
    with pytest.warns(UserWarning, match="no worker is left"):
        for _ in range(9):
            assert_same(on_host(plain.run()), on_host(crewed.run()))
    crewed.close()


def test_readers_whose_outputs_are_on_the_gpu(tmp_path):
    for i in range(7):
        np.save(tmp_path / f"{i}.npy", np.full((2, i + 1), i, np.float32))

    @pipeline_def(batch_size=2, num_threads=1, device_id=0)
    def pipe():
        return fn.readers.numpy(device="gpu", file_root=str(tmp_path), file_filter="*.npy")

    crewed = pipe(workers=2)
    seen = [np.array(s) for _ in range(3) for s in crewed.run()[0].as_cpu()]
    for i, s in enumerate(seen):
        np.testing.assert_array_equal(s, np.full((2, i + 1), i, np.float32))
    crewed.close()


def test_nothing_for_workers():
    @pipeline_def(batch_size=2, num_threads=1, device_id=0)
    def pipe():
        return fn.random.uniform(range=(0, 1), shape=(3,), device="gpu")

    with pytest.raises(ValueError, match="workers=2 have nothing to make"):
        pipe(workers=2).build()
