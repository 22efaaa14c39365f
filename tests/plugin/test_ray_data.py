# SPDX-License-Identifier: Apache-2.0
"""Pipelines in Ray Data give the same as in one process: as a source, and as a stage."""

import doctest
import io
import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install penstock[ray]")
pytest.importorskip("ray.data", reason="Ray Data is not installed: pip install penstock[ray]")

import penstock  # noqa: E402
import ray_cluster  # noqa: E402
from penstock import Pipeline, fn, pipeline_def  # noqa: E402
from penstock.plugin.ray import Stage, read_penstock  # noqa: E402
from penstock.plugin.ray.sharing import OPENED  # noqa: E402

N, SIZE = 22, 5


@pytest.fixture(scope="module", autouse=True)
def cluster():
    folders = [Path(penstock.__file__).parents[1], Path(__file__).parent]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray_cluster.start(folders, num_cpus=2, object_store_memory=100 << 20)
        context = ray.data.DataContext.get_current()
        context.execution_options.preserve_order = True
        context.enable_progress_bars = False
        yield
        ray.shutdown()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("pictures"), np.random.default_rng(7)
    for i in range(N):
        shape = (*rng.integers(8, 40, 2), 3)
        Image.fromarray(rng.integers(0, 255, shape, dtype=np.uint8)).save(folder / f"{i:03}.png")
    return [str(p) for p in sorted(folder.glob("*.png"))]


@pytest.fixture(scope="module")
def bad_files(tmp_path_factory, files):
    folder = tmp_path_factory.mktemp("bad")
    for i, f in enumerate(files):
        content = Path(f).read_bytes()
        (folder / Path(f).name).write_bytes(content[:30] if i in (4, 11) else content)
    return [str(p) for p in sorted(folder.glob("*.png"))]


@pipeline_def(batch_size=SIZE, seed=11, num_threads=1)
def pictures(files, **reader):
    data, labels = fn.readers.file(files=files, labels=list(range(len(files))), name="files", **reader)
    whole = fn.decoders.image(data)
    small = fn.crop_mirror_normalize(
        fn.resize(whole, size=(16, 16)), mirror=fn.random.coin_flip(), mean=[fn.random.uniform(range=[90.0, 100.0])]
    )
    return whole, small, labels


NAMES = ["whole", "small", "label"]


def locally(pipe, n, skip=0):
    """`n` samples of a pipeline, after the first `skip`."""
    samples = []
    while len(samples) < skip + n:
        batch = pipe.run()
        samples += [[np.array(o[i]) for o in batch] for i in range(len(batch[0]))]
    return samples[skip : skip + n]


def rows(ds, names=NAMES):
    return [[np.asarray(row[k]) for k in names] for row in ds.iter_rows()]


def assert_same(got, expected):
    assert len(got) == len(expected)
    for a, b in zip(got, expected):
        for x, y in zip(a, b):
            assert x.dtype == y.dtype
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("blocks", [None, 1, 3, 5])
def test_samples_and_their_order_are_those_of_one_process(files, blocks):
    ds = read_penstock(
        pictures, files=files, random_shuffle=True, output_names=NAMES, override_num_blocks=blocks, num_threads=1
    )
    expected = locally(pictures(files, random_shuffle=True), N)
    assert sorted(int(s[2].item()) for s in expected) == list(range(N))
    assert_same(rows(ds), expected)
    assert_same(rows(ds), expected)  # and again


def test_without_an_order_each_sample_comes_once(files):
    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = False
    try:
        ds = read_penstock(pictures, files=files, output_names=NAMES)
        assert sorted(int(r["label"].item()) for r in ds.iter_rows()) == list(range(N))
        assert ds.count() == N
    finally:
        context.execution_options.preserve_order = True


def test_samples_are_pillows(files):
    for row in read_penstock(pictures, files=files, output_names=NAMES).iter_rows():
        np.testing.assert_array_equal(row["whole"], np.asarray(Image.open(files[row["label"].item()])))


@pytest.mark.parametrize("epoch", [1, 2])
@pytest.mark.parametrize("shards", [{}, {"num_shards": 3, "shard_id": 1}])
def test_epochs_and_shards(files, epoch, shards):
    """A pipeline advances to the next shard with each epoch."""
    read = [(1 + e) % 3 for e in range(epoch + 1)]
    sizes = [N * (s + 1) // 3 - N * s // 3 if shards else N for s in read]
    ds = read_penstock(pictures, files=files, random_shuffle=True, epoch=epoch, output_names=NAMES, **shards)
    expected = locally(pictures(files, random_shuffle=True, **shards), sizes[-1], sum(sizes[:-1]))
    assert len({int(s[2].item()) for s in expected}) == sizes[-1]
    assert_same(rows(ds), expected)


def test_padding_is_left_out(files):
    """A reader repeats samples to make its shards equally long."""
    for epoch in range(2):
        parts = [
            rows(
                read_penstock(
                    pictures,
                    files=files,
                    epoch=epoch,
                    output_names=NAMES,
                    num_shards=4,
                    shard_id=i,
                    pad_last_batch=True,
                )
            )
            for i in range(4)
        ]
        assert sorted(int(r[2].item()) for p in parts for r in p) == list(range(N))


def test_a_pipeline_is_left_as_it_is(files):
    pipe = pictures(files)
    first = locally(pictures(files), N)
    assert_same([[np.array(o[0]) for o in pipe.run()]], first[:1])
    assert_same(rows(read_penstock(pipe, output_names=NAMES)), first)
    assert_same([[np.array(o[0]) for o in pipe.run()]], first[SIZE : SIZE + 1])


def test_columns(files):
    batch = read_penstock(pictures, files=files).take_batch(N, batch_format="numpy")
    assert sorted(batch) == ["output_0", "output_1", "output_2"]
    assert batch["output_0"].dtype == object and batch["output_0"][0].dtype == np.uint8
    assert batch["output_1"].shape == (N, 3, 16, 16) and batch["output_1"].dtype == np.float32
    assert batch["output_2"].shape == (N, 1)


@pytest.mark.parametrize("how", ["skip", "replace"])
def test_bad_samples(bad_files, how):
    ds = read_penstock(pictures, files=bad_files, on_error=how, output_names=NAMES)
    expected = N - 2 if how == "skip" else N
    assert_same(rows(ds), locally(pictures(bad_files, on_error=how), expected))


def test_bad_samples_are_raised(bad_files):
    with pytest.raises(Exception, match=r"(?s)004\.png|011\.png") as raised:
        read_penstock(pictures, files=bad_files).materialize()
    assert "test_ray_data.py" in str(raised.value)  # the line of the decoder


@pipeline_def(batch_size=4, num_threads=1)
def stage():
    images = fn.decoders.image(fn.external_source(name="bytes"))
    return images, fn.resize(images, size=(16, 16))


def test_a_stage(files):
    ds = ray.data.read_binary_files(files, include_paths=True)
    ds = ds.map_batches(Stage(stage, output_names=["whole", "small"]), batch_format="numpy", batch_size=7)
    by_label = {int(s[2].item()): s[0] for s in locally(pictures(files), N)}
    resized = stage()
    seen = 0
    for row in ds.iter_rows():
        i = [Path(f).name for f in files].index(Path(row["path"]).name)
        np.testing.assert_array_equal(row["whole"], by_label[i])
        fed = resized.run(bytes=[np.frombuffer(Path(files[i]).read_bytes(), np.uint8)])
        np.testing.assert_array_equal(row["small"], np.array(fed[1][0]))
        assert sorted(row) == ["path", "small", "whole"]
        seen += 1
    assert seen == N


def test_a_stage_in_actors(files):
    """Ray creates one stage in each actor."""
    ds = ray.data.read_binary_files(files)
    ds = ds.map_batches(
        Stage, fn_constructor_args=(stage(),), batch_format="numpy", concurrency=1, batch_size=8, num_cpus=1
    )
    assert ds.take_batch(N)["output_1"].shape == (N, 16, 16, 3)


def test_stages_in_this_process(files):
    """Makes the calls of Ray."""
    data = [Path(f).read_bytes() for f in files]
    column = np.empty(N, object)
    column[:] = data
    made = Stage(stage, output_names=["whole", "bytes"])({"bytes": column, "n": np.arange(N)})
    assert list(made) == ["n", "whole", "bytes"]
    for content, whole in zip(data, made["whole"]):
        np.testing.assert_array_equal(whole, np.asarray(Image.open(io.BytesIO(content))))

    @pipeline_def(batch_size=4)
    def add():
        return fn.external_source(name="a") + fn.external_source(name="b")

    a, b = np.arange(18, dtype="f4").reshape(9, 2), np.ones((9, 2), "f4")
    made = Stage(add, output_names=["sum"], input_columns={"b": "other"})({"a": a, "other": b})
    np.testing.assert_array_equal(made["sum"], a + b)


def test_bad_rows_of_a_stage(bad_files, caplog):
    column = np.empty(N, object)
    column[:] = [Path(f).read_bytes() for f in bad_files]
    batch = {"bytes": column, "n": np.arange(N)}
    made = Stage(stage, on_error="skip")(batch)
    assert list(made["n"]) == [i for i in range(N) if i not in (4, 11)]
    assert len(made["output_0"]) == N - 2
    assert len([r for r in caplog.records if "on_error='skip'" in r.getMessage()]) == 2
    with pytest.raises(RuntimeError, match="test_ray_data.py"):
        Stage(stage)(batch)


def test_random_numbers_differ_between_processes():
    @pipeline_def(batch_size=64, seed=1)
    def noisy():
        return fn.external_source(name="x") * fn.random.uniform(range=[0, 1])

    s, x = Stage(noisy), {"x": np.ones(64, "f4")}
    first = s(x)["output_0"]
    OPENED._free.clear()  # as in another process
    assert not np.array_equal(first, s(x)["output_0"])


class TestMistakes:
    def test_what_has_its_data_here(self):
        @pipeline_def(batch_size=2)
        def pipe():
            return fn.external_source(lambda i: np.zeros(3), batch=False)

        with pytest.raises(ValueError, match=r"(?s)test_ray_data.py.*read_penstock can't be used.*fn.readers"):
            read_penstock(pipe)

    def test_no_reader(self):
        @pipeline_def(batch_size=2)
        def pipe():
            return fn.random.uniform()

        with pytest.raises(ValueError, match="the epoch of one reader; the pipeline has none"):
            read_penstock(pipe)

    def test_names(self, files):
        with pytest.raises(ValueError, match="output_names takes 3 different names"):
            read_penstock(pictures, files=files, output_names=["a", "a", "b"])
        with pytest.raises(ValueError, match="output_names takes 2 different names"):
            Stage(stage, output_names=["a"])

    def test_arguments(self, files):
        with pytest.raises(TypeError, match=r"\['files'\] are for the function"):
            read_penstock(pictures(files), files=files)
        with pytest.raises(TypeError, match="takes a Pipeline or a function made by pipeline_def; got int"):
            read_penstock(3)
        with pytest.raises(TypeError, match="decorate it with @pipeline_def"):
            read_penstock(lambda: 3)
        with pytest.raises(ValueError, match="epoch takes a number from 0; got -1"):
            read_penstock(pictures, files=files, epoch=-1)
        with pytest.raises(ValueError, match="max_errors counts the bad samples of one process"):
            read_penstock(pictures, files=files, on_error="skip", max_errors=3)

    def test_columns_of_stages(self, files):
        s = Stage(stage, output_names=["whole", "small"])
        with pytest.raises(ValueError, match=r"no column 'bytes'; it has \['data'\]"):
            s({"data": np.zeros(3)})
        with pytest.raises(ValueError, match="has a column 'whole' already"):
            s({"bytes": np.zeros(3), "whole": np.zeros(3)})
        with pytest.raises(TypeError, match="row 1 of the column 'bytes' is str"):
            column = np.empty(2, object)
            column[:] = [b"", "text"]
            s({"bytes": column})
        with pytest.raises(TypeError, match='batch_format="numpy"'):
            s([1, 2])
        with pytest.raises(ValueError, match=r"input_columns names \['x'\], but the inputs of the pipeline are"):
            Stage(stage, input_columns={"x": "y"})
        with pytest.raises(ValueError, match="the pipeline has no inputs"):
            Stage(pictures, files=files)

    def test_another_version(self, files, monkeypatch):
        mine = penstock.__version__
        monkeypatch.setattr(penstock, "__version__", "9.8.7")
        ds = read_penstock(pictures, files=files)
        with pytest.raises(Exception, match=rf"this process has penstock {mine}, the one that defined .* 9\.8\.7"):
            ds.materialize()


def test_examples_of_the_docstrings(monkeypatch):
    from penstock.plugin.ray import reading, stage

    monkeypatch.chdir(Path(__file__).parents[2])
    for module in (reading, stage):
        done = doctest.testmod(module)
        assert done.attempted and not done.failed


def test_a_pipeline_of_this_program_can_be_sent(files):
    """Its functions are also pickled by value if no importable module defines them."""

    @pipeline_def(batch_size=SIZE, num_threads=1)
    def local():
        return fn.readers.file(files=files, labels=list(range(N)))[1]

    pipe: Pipeline = local()
    assert [int(r["output_0"].item()) for r in read_penstock(pipe).iter_rows()] == list(range(N))
