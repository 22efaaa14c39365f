# SPDX-License-Identifier: Apache-2.0
"""`on_error` and `max_errors` for samples that can't be read, or with damaged header or pixels."""

import io
import itertools
import os
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from penstock import fn, pipeline_def
from penstock.core.kernels import library
from penstock.exec.scheduling.policy import Policy
from penstock.pipeline import PipelineError

KINDS = ("missing", "header", "pixels")  # fail in the reader, in planning, and in the kernel
REASONS = {"missing": "No such file", "header": "", "pixels": ""}
OPERATORS = {"missing": "fn.readers.file", "header": "fn.decoders.image", "pixels": "fn.decoders.image"}


def jpeg(value, size=32):
    noise = np.random.default_rng(value).integers(0, 40, (size, size, 3), "u1")
    noise[:] = noise + value  # noise makes the file long enough to truncate it within the pixels
    buffer = io.BytesIO()
    Image.fromarray(noise).save(buffer, "JPEG", quality=95)
    return buffer.getvalue()


@pytest.fixture
def dataset(tmp_path):
    """dataset("gmghp"): one file per letter; g(ood), m(issing), h(eader damaged), p(ixels damaged)."""

    def make(letters, folder="d", size=32):
        paths = []
        (tmp_path / folder).mkdir(exist_ok=True)
        for i, letter in enumerate(letters):
            path = tmp_path / folder / f"{i:03d}.jpg"
            content = jpeg(i, size)
            if letter == "h":
                content = b"not an image at all" + bytes(100)
            elif letter == "p":
                content = content[: len(content) // 2]
            if letter != "m":
                path.write_bytes(content)
            paths.append(str(path))
        return paths

    return make


def images(files, batch_size=4, threads=2, depth=2, seed=1, resize=True, reader=None, **policy):
    @pipeline_def(batch_size=batch_size, num_threads=threads, prefetch_queue_depth=depth, seed=seed, **policy)
    def pipe():
        data, label = fn.readers.file(files=files, name="reader", **(reader or {}))
        image = fn.decoders.image(data)
        if resize:
            image = fn.resize(image, size=(8, 8))
        return image, label, fn.random.uniform()

    return pipe()


def snapshot(outputs):
    pixels, labels, numbers = outputs
    return (
        [np.array(pixels.at(i)).tobytes() for i in range(len(pixels))],
        [int(labels.at(i)[0]) for i in range(len(labels))],
        [float(numbers.at(i)) for i in range(len(numbers))],
    )


def labels(outputs):
    return snapshot(outputs)[1]


LETTER = {"missing": "m", "header": "h", "pixels": "p"}
POSITIONS = {"first": (0,), "last": (3,), "middle": (1, 2), "all but one": (0, 1, 3), "all": (0, 1, 2, 3)}


def with_bad(kind, places, n=8):
    return "".join(LETTER[kind] if i in places else "g" for i in range(n))


def test_a_file_that_is_several_samples_of_a_batch(dataset):
    bad, good = dataset("hg")
    pipe = images([bad, good, bad, bad], on_error="skip", depth=1)
    assert labels(pipe.run()) == [1]
    assert [e.sample for e in pipe.errors() if e.iteration == 0] == [0, 2, 3]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("places", POSITIONS.values(), ids=POSITIONS)
class TestWhereAndWhen:
    def test_raise(self, dataset, kind, places):
        files = dataset(with_bad(kind, places))
        pipe = images(files)
        for k in range(3):
            with pytest.raises(PipelineError) as caught:
                pipe.run()
            text = str(caught.value)
            assert (
                f"penstock.{OPERATORS[kind]}" in text and os.path.basename(__file__) in text and REASONS[kind] in text
            )
            assert f"Sample {places[0]} of iteration {2 * k}: {files[places[0]]}" in text
            assert ("more bad sample" in text) == (len(places) > 1)
            assert labels(pipe.run()) == [4, 5, 6, 7]
        first = [e for e in pipe.errors() if e.iteration == 0]
        assert [(e.source, e.sample, e.action) for e in first] == [(files[i], i, "raise") for i in places]

    def test_skip(self, dataset, kind, places):
        files = dataset(with_bad(kind, places))
        pipe, clean = images(files, on_error="skip"), images(dataset("g" * 8, "clean"))
        for _ in range(2):
            got, want = snapshot(pipe.run()), snapshot(clean.run())
            keep = [i for i in range(4) if i not in places]
            assert [[column[i] for i in keep] for column in want] == list(map(list, got))
            assert snapshot(pipe.run()) == snapshot(clean.run())
        first = [e for e in pipe.errors() if e.iteration == 0]
        assert [(e.source, e.operator, e.sample, e.action) for e in first] == [
            (files[i], OPERATORS[kind], i, "skip") for i in places
        ]
        assert all(e.reason for e in first)

    def test_replace(self, dataset, kind, places):
        files = dataset(with_bad(kind, places))
        pipe, clean = images(files, on_error="replace"), images(dataset("g" * 8, "clean"))
        pixels = sum((snapshot(clean.run())[0] for _ in range(2)), [])

        def stand_in(i):
            while i in places:
                i = (i + 1) % 8
            return i

        for k in range(2):
            got = snapshot(pipe.run())
            assert got[1] == [stand_in(i) for i in range(4)]
            assert got[0] == [pixels[stand_in(i)] for i in range(4)]
            assert labels(pipe.run()) == [4, 5, 6, 7]
            mine = [e for e in pipe.errors() if e.iteration == 2 * k]
            assert [e.source for e in mine] == [files[i] for i in places]
            assert {e.action for e in mine} == {"replace"}


def test_random_numbers_stay(dataset):
    """Skipped or replaced samples do not move the random numbers of the others."""
    letters = "gmgghgpg" * 2
    clean = images(dataset("g" * 16, "clean"))
    want = [snapshot(clean.run())[2] for _ in range(4)]
    pipe = images(dataset(letters), on_error="replace")
    assert [snapshot(pipe.run())[2] for _ in range(4)] == want
    pipe = images(dataset(letters), on_error="skip")
    kept = [[v for v, c in zip(row, letters[4 * i :]) if c == "g"] for i, row in enumerate(want)]
    assert [snapshot(pipe.run())[2] for _ in range(4)] == kept


@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_same_for_any_threads_and_depth(dataset, on_error):
    files = dataset("ggmghpggphgmgmgpghgg")
    results, errors = [], []
    for threads, depth in ((1, 1), (2, 2), (8, 5)):
        pipe = images(files, 5, threads, depth, on_error=on_error, reader={"random_shuffle": True})
        results.append([snapshot(pipe.run()) for _ in range(8)])
        errors.append([(e.iteration, e.sample, e.source) for e in pipe.errors() if e.iteration < 8])
    assert results[0] == results[1] == results[2]
    assert errors[0] == errors[1] == errors[2] and errors[0]


def test_replacements_are_of_the_same_shard(dataset):
    files = dataset("gmmgghggpgpg")
    for shards, shard in ((2, 0), (2, 1), (3, 1)):
        reader = {"num_shards": shards, "shard_id": shard, "stick_to_shard": True}
        pipe = images(files, 3, on_error="replace", reader=reader)
        mine = range(12 * shard // shards, 12 * (shard + 1) // shards)
        seen = set(itertools.chain(*(labels(pipe.run()) for _ in range(8))))
        assert seen == {i for i in mine if "gmmgghggpgpg"[i] == "g"}


@pytest.mark.parametrize("kind", KINDS)
class TestNothingButBadSamples:
    def test_replace_is_an_error(self, dataset, kind):
        pipe = images(dataset(LETTER[kind] * 6), on_error="replace")
        for _ in range(2):
            with pytest.raises(PipelineError, match="all 6 samples of the shard are bad"):
                pipe.run()
        assert len({e.source for e in pipe.errors()}) == 6

    def test_skip_gives_empty_batches(self, dataset, kind):
        pipe = images(dataset(LETTER[kind] * 6), on_error="skip")
        for _ in range(4):
            assert [len(o) for o in pipe.run()] == [0, 0, 0]
        assert len([e for e in pipe.errors() if e.iteration < 3]) == 12

    def test_skip_with_a_limit_ends(self, dataset, kind):
        pipe = images(dataset(LETTER[kind] * 6), on_error="skip", max_errors=10)
        with pytest.raises(
            PipelineError, match="samples were bad, more than max_errors=10 allows; the last:\n  .*jpg: "
        ):
            for _ in range(10):
                pipe.run()


class TestLimits:
    def run(self, dataset, letters, batches, reads_ahead=1, **policy):
        reader = {"prefetch_queue_depth": reads_ahead}
        pipe = images(dataset(letters), 5, 2, 1, reader=reader, on_error="skip", **policy)
        done = 0
        try:
            for _ in range(batches):
                pipe.run()
                done += 1
        except PipelineError as e:
            return done, str(e)
        return done, ""

    def test_count(self, dataset):
        letters = "gggmg" + "ggpgg" + "hgggg" + "ggggg"
        assert self.run(dataset, letters, 4, max_errors=3) == (4, "")
        done, text = self.run(dataset, letters, 4, max_errors=2)
        assert done == 2 and "3 of 15 samples were bad, more than max_errors=2" in text
        done, text = self.run(dataset, letters, 4, max_errors=0)
        assert done == 0 and "1 of 5 samples were bad" in text

    @pytest.mark.parametrize("reads_ahead", [1, 5])
    def test_rate(self, dataset, reads_ahead):
        """The rate refers to the samples so far, at least 100, as the first samples are not representative. Those that
        are read ahead don't count."""
        letters = "gggmg" * 20
        assert self.run(dataset, letters, 40, reads_ahead, max_errors=0.21) == (40, "")
        done, text = self.run(dataset, letters, 40, reads_ahead, max_errors=0.1)
        assert done == 10 and "11 of 55 samples were bad, more than max_errors=0.1" in text

    def test_batches_made_at_once(self):
        """The bad samples of the second are counted with its samples, although the first ends later."""
        policy = Policy("skip", max_errors=3)
        node = SimpleNamespace(number=0, op=SimpleNamespace(display_name=lambda: "fn.x"))
        policy.requested(0, 4)
        policy.requested(1, 8)
        policy.record({i: (node, "why", f"b{i}") for i in (0, 1)}, 1)
        with pytest.raises(PipelineError, match="4 of 8 samples were bad"):
            policy.record({i: (node, "why", f"a{i}") for i in (0, 1)}, 0)

    def test_goes_on_where_all_is_well(self, dataset):
        pipe = images(dataset("gmgg" + "gggg"), 4, 2, 1, on_error="skip", max_errors=0)
        for _ in range(2):
            with pytest.raises(PipelineError, match="more than max_errors=0"):
                pipe.run()
            assert labels(pipe.run()) == [4, 5, 6, 7]

    @pytest.mark.parametrize(
        "policy, text",
        [
            ({"on_error": "ignore"}, "on_error takes 'raise', 'skip' or 'replace'; got 'ignore'"),
            ({"max_errors": -1}, "max_errors takes a count, or a rate below 1.0; got -1"),
            ({"max_errors": 1.5}, "max_errors as a float is a rate below 1.0; got 1.5"),
            ({"max_errors": "all"}, "max_errors takes a count"),
        ],
    )
    def test_arguments(self, policy, text):
        with pytest.raises(ValueError, match=text):
            images(["x"], **policy)


class TestSeveralReaders:
    def pipe(self, first, second, **policy):
        @pipeline_def(batch_size=4, num_threads=2, seed=1, **policy)
        def pipe():
            a, i = fn.readers.file(files=first, name="a")
            b, j = fn.readers.file(files=second, name="b")
            return fn.resize(fn.decoders.image(a), size=(8, 8)), i, fn.decoders.image(b), j

        return pipe()

    @pytest.mark.parametrize("kind", KINDS)
    def test_pairs_stay_pairs(self, dataset, kind):
        """A bad sample of one reader also removes its partner."""
        letter = LETTER[kind]
        first, second = dataset("g" + letter + "ggggg" + letter, "a"), dataset("ggg" + letter + "gggg", "b", 16)
        pipe = self.pipe(first, second, on_error="skip")
        _, i, _, j = pipe.run()
        assert i.as_array().ravel().tolist() == j.as_array().ravel().tolist() == [0, 2]
        assert [e.source for e in pipe.errors() if e.iteration == 0] == [first[1], second[3]]
        pipe = self.pipe(first, second, on_error="replace")
        seen = []
        for _ in range(2):
            _, i, _, j = pipe.run()
            assert i.as_array().tolist() == j.as_array().tolist()
            seen += i.as_array().ravel().tolist()
        assert seen == [0, 2, 2, 4, 4, 5, 6, 0]


class TestStages:
    def test_failure_before_a_later_stage(self, dataset):
        """Partial results of failed samples do not reach later batch operators."""
        files = dataset("gpgg" + "gggg")

        @pipeline_def(batch_size=4, num_threads=2, seed=1, on_error="skip")
        def pipe():
            data, label = fn.readers.file(files=files)
            image = fn.decoders.image(data)
            return fn.random.choice(image), label

        out = pipe().run()
        assert out[1].as_array().ravel().tolist() == [0, 2, 3] and len(out[0]) == 3

    def test_images_of_many_sizes(self, dataset):
        """Without a resize, the outputs are ragged; replacements have their own shapes."""
        small, large = dataset("gpgm", "small", 16), dataset("pggg", "large", 48)
        files = [f for pair in zip(small, large) for f in pair]  # g p p g g g m g
        pipe = images(files, 8, resize=False, on_error="replace")
        pixels, label, _ = pipe.run()
        assert label.as_array().ravel().tolist() == [0, 3, 3, 3, 4, 5, 7, 7]
        assert [s[0] for s in pixels.shape()] == [16, 48, 48, 48, 16, 48, 48, 48]
        for i, k in enumerate((0, 3, 3, 3, 4, 5, 7, 7)):
            want = np.asarray(Image.open(files[k])).astype(int)
            assert np.abs(pixels.at(i).astype(int) - want).max() <= 2

    def test_the_users_memory_is_left_alone(self, dataset):
        files = dataset("gpgg")
        extra = np.arange(8, dtype="i4").reshape(4, 2)

        @pipeline_def(batch_size=4, num_threads=2, seed=1, on_error="replace")
        def pipe():
            data, _ = fn.readers.file(files=files)
            return fn.decoders.image(data), fn.external_source(source=lambda i: extra, no_copy=True)

        for _ in range(2):
            pipe().run()
        assert extra.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_without_a_reader(dataset):
    @pipeline_def(batch_size=3, num_threads=1)
    def pipe(**kwargs):
        x = fn.external_source(source=lambda i: [np.frombuffer(b"junk" * 9, "u1"), *[np.frombuffer(jpeg(1), "u1")] * 2])
        return fn.decoders.image(x)

    assert len(pipe(on_error="skip").run()[0]) == 2
    assert len(pipe(on_error="replace").run()[0]) == 3
    with pytest.raises(PipelineError, match="Sample 0 of iteration 0"):
        pipe().run()


def test_memory_and_time(dataset):
    """Damaged samples in every batch do not leak memory or time."""
    pipe = images(dataset("gmghpggg" * 4), 8, on_error="replace")
    for _ in range(10):
        pipe.run()
    used = library().memory_used()
    for _ in range(60):
        pipe.run()
    assert library().memory_used() <= used + 2_000_000


def test_a_raising_pipeline_in_another_thread(dataset):
    pipe, seen = images(dataset("gmgg" + "gggg")), []

    def work():
        for _ in range(6):
            try:
                seen.append(labels(pipe.run()))
            except PipelineError:
                seen.append("error")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)
    assert seen == ["error", [4, 5, 6, 7]] * 3
