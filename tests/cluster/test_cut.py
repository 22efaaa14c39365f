# SPDX-License-Identifier: Apache-2.0
"""The cut of a pipeline's graph: workers on other machines send as little data as possible."""

import numpy as np
import pytest
from PIL import Image
from pipelines import SIZE, N, assert_same, values, write_pictures

from penstock import fn, pipeline_def, types
from penstock.pipeline import distributed


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Pictures of 60 x 80, and some smaller ones."""
    folder = tmp_path_factory.mktemp("pictures")
    made = write_pictures(folder, N)
    rng = np.random.default_rng(5)
    for path in made[:-4]:
        Image.fromarray(rng.integers(0, 255, (60, 80, 3), dtype=np.uint8)).save(path)
    return made


@pytest.fixture(autouse=True)
def far_away(monkeypatch):
    """Local processes whose batches are treated as if they came from another machine."""
    monkeypatch.setattr(distributed, "sends_over_network", lambda settings: bool(settings.workers))


def parts(pipe):
    pipe.build()
    return pipe._executor._production.producer


def names(plan):
    return [n.op.fn_name for n in plan.nodes]


def validation(data, labels):
    """The usual end of a pipeline for images."""
    x = fn.resize(fn.decoders.image(data), size=(50, 60))
    return fn.crop_mirror_normalize(x, crop=(40, 40), mirror=fn.random.coin_flip(), mean=[100.0], std=[50.0]), labels


def random_windows(data, labels):
    x = fn.decoders.image(data)
    place = fn.random.uniform(range=(0, 1))
    return fn.crop_mirror_normalize(
        x,
        crop_h=8.0,
        crop_w=fn.random.uniform(range=(4, 8)),
        crop_pos_x=place,
        rounding="truncate",
        dtype=types.FLOAT16,
    )


def trimmed(data, labels):
    return fn.crop_mirror_normalize(
        fn.decoders.image(data), crop=(50, 50), out_of_bounds_policy="trim_to_shape", std=[2.0]
    )


def filled(data, labels):
    """Filled values are not normalised, so the window can't be applied before."""
    return fn.crop_mirror_normalize(
        fn.decoders.image(data), crop=(90, 90), out_of_bounds_policy="pad", fill_values=[7.0], std=[2.0]
    )


def arithmetic(data, labels):
    x = fn.resize(fn.decoders.image(data), size=(20, 30))
    y = fn.transpose((x / 255.0 - 0.5) * fn.random.uniform(range=(0.5, 2)), perm=[2, 0, 1])
    return y, fn.flip(fn.cast(x, dtype=types.FLOAT), horizontal=1)


def nothing_to_gain(data, labels):
    x = fn.resize(fn.decoders.image(data), size=(20, 30))
    return x, fn.reductions.mean(fn.cast(x, dtype=types.FLOAT), axes=[0, 1]), labels


def used_twice(data, labels):
    x = fn.decoders.image(data)
    return fn.crop_mirror_normalize(x, crop=(8, 8)), x


def to_the_gpu(data, labels):
    x = fn.resize(fn.decoders.image(data), size=(50, 60))
    return fn.crop_mirror_normalize(x.gpu(), crop=(40, 40), mirror=fn.random.coin_flip(), mean=[100.0])


def in_a_branch(data, labels):
    x = fn.resize(fn.decoders.image(data), size=(9, 9))
    if fn.random.coin_flip():
        y = fn.crop_mirror_normalize(x, crop=(5, 5))
    else:
        y = fn.crop_mirror_normalize(x, crop=(5, 5), mirror=1)
    return y


BODIES = [
    *(validation, random_windows, trimmed, filled, arithmetic),
    *(nothing_to_gain, used_twice, to_the_gpu, in_a_branch),
]


def defined(body):
    @pipeline_def(batch_size=SIZE, seed=3, num_threads=1, device_id=0, enable_conditionals=body is in_a_branch)
    def pipe(files, **options):
        data, labels = fn.readers.file(files=files, labels=list(range(len(files))), random_shuffle=True, **options)
        return body(data, labels)

    return pipe


def on_host(batch):
    return values([o.as_cpu() for o in batch])


@pytest.mark.parametrize("body", BODIES, ids=lambda b: b.__name__)
def test_bytes(files, body):
    pipe = defined(body)
    plain, crewed = pipe(files, on_error="replace"), pipe(files, on_error="replace", workers=2)
    for i in range(N // SIZE):
        assert_same(on_host(plain.run()), on_host(crewed.run()), i)
    crewed.close()


HERE = {
    validation: ["crop_mirror_normalize"],
    random_windows: ["crop_mirror_normalize"],
    trimmed: ["crop_mirror_normalize"],
    filled: ["crop_mirror_normalize"],
    nothing_to_gain: [],
    to_the_gpu: ["gpu", "crop_mirror_normalize"],
    in_a_branch: [],
}


@pytest.mark.parametrize("body", HERE, ids=lambda b: b.__name__)
def test_where_it_is_cut(files, body):
    pipe = defined(body)(files, workers=1)
    producer = parts(pipe)
    assert names(producer.rest) == HERE[body]
    assert names(producer.away).count("crop") == (body in (validation, random_windows, trimmed, to_the_gpu))
    pipe.close()


def test_conversions_are_done_here(files):
    pipe = defined(arithmetic)(files, workers=1)
    producer = parts(pipe)
    assert sorted(names(producer.rest)) == ["arithmetic", "arithmetic", "arithmetic", "cast", "flip", "transpose"]
    assert len(producer.away.outputs) == 2  # the resized images, and a random factor
    assert names(producer.away) == ["readers.file", "decoders.image", "resize", "random.uniform"]
    pipe.close()


def test_a_quarter_of_float32_is_sent(files, monkeypatch):
    from penstock.cluster import local_link

    got = []
    receive = local_link.LocalLink.receive

    def counted(link):
        answer, batches = receive(link)
        got.append(answer.nbytes)
        return answer, batches

    monkeypatch.setattr(local_link.LocalLink, "receive", counted)

    def nbytes():
        pipe = defined(validation)(files[:-4], workers=1)
        for _ in range(4):
            images, _ = pipe.run()
        pipe.close()
        assert images.as_array().nbytes == SIZE * 40 * 40 * 3 * 4
        return got[0]

    less = nbytes()
    got.clear()
    monkeypatch.setattr(distributed, "sends_over_network", lambda settings: False)
    all_of_it = nbytes()
    assert all_of_it >= SIZE * 40 * 40 * 3 * 4
    assert less <= SIZE * (40 * 40 * 3 + 4096)  # plus a few numbers


def test_errors_name_the_operator_that_was_called(files):
    def too_large(data, labels):
        return fn.crop_mirror_normalize(fn.decoders.image(data), crop=(300, 300))

    pipe, plain = defined(too_large)(files, workers=1), defined(too_large)(files)
    with pytest.raises(RuntimeError) as a:
        pipe.run()
    with pytest.raises(RuntimeError) as b:
        plain.run()
    assert str(a.value) == str(b.value)
    pipe.close()


def test_unreadable_files_leave_the_cut_as_it_is(tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"no picture")
    pipe = defined(validation)([str(tmp_path / "a.jpg")] * 9, workers=1, on_error="skip")
    assert names(parts(pipe).rest) == []
    pipe.close()
