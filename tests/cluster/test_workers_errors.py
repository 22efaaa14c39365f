# SPDX-License-Identifier: Apache-2.0
"""Bad samples and pipelines that workers can't have."""

import re

import numpy as np
import pytest
from pipelines import assert_same, pictures, values, write_pictures

import penstock
from penstock import fn, pipeline_def


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    files = write_pictures(folder)
    for i in (3, 4, 17, 30):
        with open(files[i], "r+b") as f:
            f.truncate(20 if i % 2 else 60)
    return files


@pytest.mark.parametrize("on_error", ["skip", "replace"])
@pytest.mark.parametrize(
    "order", [{}, {"random_shuffle": True, "num_shards": 2, "shard_id": 1}], ids=["plain", "shuffled"]
)
def test_skip_and_replace(files, on_error, order):
    plain, crewed = (pictures(files, on_error=on_error, **order, **w) for w in ({}, {"workers": 2}))
    for i in range(20):
        assert_same(values(plain.run()), values(crewed.run()), i)
        np.testing.assert_array_equal(plain.sample_indices(), crewed.sample_indices())
        assert plain.checkpoint() == crewed.checkpoint()
    listed = [[e for e in p.errors() if e.iteration < 20] for p in (plain, crewed)]
    assert listed[0] == listed[1]
    assert len(listed[0]) > 4
    crewed.close()


def test_raise_names_the_users_line_and_the_pipeline_stays_usable(files):
    plain, crewed = pictures(files), pictures(files, workers=2)
    failed = 0
    for _ in range(16):
        told, batches = [], []
        for pipe in (plain, crewed):
            try:
                batches.append(values(pipe.run()))
            except RuntimeError as e:
                told.append((type(e), str(e), e.__cause__))
        if batches:
            assert_same(*batches)
        else:
            failed += 1
            assert told[0] == told[1]
            assert "pipelines.py" in told[1][1]
    assert failed >= 4
    crewed.close()


def test_errors_of_whole_batches(files):
    @pipeline_def(batch_size=3, seed=1, num_threads=1)
    def pipe():
        data, _ = fn.readers.file(files=files[5:15])
        return fn.crop(fn.decoders.image(data), crop=(500, 500))

    told = []
    for p in (pipe(), pipe(workers=2)):
        with pytest.raises(RuntimeError) as e:
            p.run()
        told.append((e.type, str(e.value)))
        p.close()
    assert told[0] == told[1]
    assert "test_workers_errors.py" in told[1][1]


def test_max_errors(files):
    pipe = pictures(files, on_error="skip", max_errors=2, workers=2)
    with pytest.raises(RuntimeError, match="more than max_errors=2 allows"):
        for _ in range(12):
            pipe.run()
    pipe.close()


def numbers(sample):
    return np.int32(sample.idx_in_epoch)


@pytest.mark.parametrize(
    "source", [lambda info: np.zeros(3), [np.zeros((2, 3))] * 4, None], ids=["lambda", "list", "fed"]
)
def test_sources_of_this_process(source):
    @pipeline_def(batch_size=2, num_threads=1)
    def pipe():
        return fn.external_source(source=source, name="mine")

    with pytest.raises(ValueError, match=r"(?s)external_source.*test_workers_errors.py.*data is in this process") as e:
        pipe(workers=2).build()
    assert "fn.readers" in str(e.value)


def test_functions_that_run_in_order(files):
    @pipeline_def(batch_size=2, num_threads=1)
    def pipe():
        data, _ = fn.readers.file(files=files)
        return fn.python_function(data, function=lambda x: x)

    with pytest.raises(ValueError, match=r"(?s)python_function.*test_workers_errors.py.*in order") as e:
        pipe(workers=1).build()
    assert "leave out workers" in str(e.value)


def test_functions_that_no_module_defines(files, monkeypatch):
    """Functions of operators without a fixed order, such as compiled functions."""
    from penstock.operators.python._function import UserFunction

    monkeypatch.setattr(UserFunction, "in_order", False)

    @pipeline_def(batch_size=2, num_threads=1)
    def pipe():
        data, _ = fn.readers.file(files=files)
        return fn.python_function(data, function=lambda x: x)

    with pytest.raises(TypeError, match=r"(?s)python_function.*test_workers_errors.py.*can't be sent.*Define it") as e:
        pipe(workers=1).build()
    assert "leave out workers" in str(e.value)


@pytest.mark.parametrize("workers", [-1, True, 1.5, "many"])
def test_wrong_numbers(files, workers):
    with pytest.raises(ValueError, match=re.escape(f"got {workers!r}")):
        pictures(files, workers=workers)


def test_autotune(files):
    with pytest.raises(ValueError, match="leave out one of them"):
        pictures(files, workers=2, autotune=True)


def test_another_version_is_refused_by_name(files, monkeypatch):
    mine = penstock.__version__
    monkeypatch.setattr(penstock, "__version__", "9.8.7")
    pipe = pictures(files, workers=2)
    with pytest.raises(RuntimeError, match=rf"it has penstock {re.escape(mine)}, this process 9\.8\.7; install"):
        pipe.run()
    pipe.close()


def test_other_data_at_the_worker_is_refused(tmp_path):
    """A worker finds other files, as may happen on another machine."""
    write_pictures(tmp_path, 8)

    @pipeline_def(batch_size=2, num_threads=1)
    def pipe():
        return fn.readers.file(file_root=str(tmp_path.parent), file_list=str(tmp_path / "list.txt"))

    names = sorted(p.name for p in tmp_path.glob("*.png"))
    lines = [f"{tmp_path.name}/{n} {i}" for i, n in enumerate(names)]
    (tmp_path / "list.txt").write_text("\n".join(lines))
    crewed = pipe(workers=1)
    from penstock.cluster import local_link

    opened = local_link.LocalLink.open

    def later(link):
        (tmp_path / "list.txt").write_text("\n".join(lines[:5]))
        opened(link)

    local_link.LocalLink.open = later
    try:
        with pytest.raises(RuntimeError, match="finds other data than this process"):
            crewed.run()
    finally:
        local_link.LocalLink.open = opened
        crewed.close()
