# SPDX-License-Identifier: Apache-2.0
"""readers.parquet with files of Hugging Face's datasets, compared with that library; and windows of other formats."""

import io
import tarfile

import pytest
from parquet_files import build, read

from penstock import fn, pipeline_def

N = 100


def test_windows_of_files_of_other_formats(tmp_path):
    paths = [str(tmp_path / f"{k}.tar") for k in range(6)]
    for k, path in enumerate(paths):
        with tarfile.open(path, "w") as archive:
            for i in range(5):
                member = tarfile.TarInfo(f"{i}.cls")
                member.size = 2
                archive.addfile(member, io.BytesIO(b"%d%d" % (k, i)))

    @pipeline_def(batch_size=30, num_threads=1, seed=2)
    def pipe():
        return fn.readers.webdataset(paths=paths, ext=["cls"], shuffle="windows", shuffle_window=2)

    out = pipe().run()[0]
    got = [bytes(out.at(i)).decode() for i in range(30)]
    assert sorted(got) == [f"{k}{i}" for k in range(6) for i in range(5)]
    assert [len({x[0] for x in got[k : k + 10]}) for k in (0, 10, 20)] == [2, 2, 2]
    assert got != sorted(got)


def test_windows_need_files_of_several_samples(small_files):
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        return fn.readers.file(files=small_files, shuffle="windows")[0]

    with pytest.raises(ValueError, match="needs samples that lie together in files"):
        pipe().build()


@pytest.fixture
def dataset():
    datasets = pytest.importorskip("datasets", reason="Hugging Face's datasets are not installed")
    image = datasets.Features({"image": datasets.Image(decode=False), "label": datasets.Value("int64")})
    rows = {"image": [{"bytes": b"picture %d" % i, "path": None} for i in range(N)], "label": list(range(N))}
    return datasets.Dataset.from_dict(rows, features=image)


def as_pairs(rows):
    return [(bytes(image), label.item()) for image, label in rows]


def test_dataset(dataset):
    wanted = [(row["image"]["bytes"], row["label"]) for row in dataset]
    assert as_pairs(read(dataset, ("image", "label"))) == wanted
    assert build(dataset, batch_size=3).run()[0][2].source_info() == "row 2"


@pytest.mark.parametrize("change", ["shuffle", "select", "filter", "shard", "concatenate", "saved"])
def test_datasets_of_some_rows(dataset, change, tmp_path):
    import datasets

    changed = {
        "shuffle": lambda d: d.shuffle(seed=3),
        "select": lambda d: d.select([5, 3, 90]),
        "filter": lambda d: d.filter(lambda row: row["label"] % 7 == 2),
        "shard": lambda d: d.shard(4, 1),
        "concatenate": lambda d: datasets.concatenate_datasets([d.select(range(9)), d.select(range(50, 60))]),
        "saved": lambda d: d.save_to_disk(tmp_path / "d") or datasets.load_from_disk(str(tmp_path / "d")),
    }[change](dataset)
    wanted = [(row["image"]["bytes"], row["label"]) for row in changed]
    assert as_pairs(read(changed, ("image", "label"))) == wanted
    assert sorted(as_pairs(read(changed, ("image", "label"), shuffle="global"))) == sorted(wanted)


def test_what_a_dataset_writes_as_parquet(dataset, tmp_path):
    dataset.to_parquet(str(tmp_path / "a.parquet"), batch_size=13)
    wanted = [(row["image"]["bytes"], row["label"]) for row in dataset]
    assert as_pairs(read(str(tmp_path / "a.parquet"), ("image", "label"))) == wanted


def test_windows_of_a_shuffled_dataset(dataset):
    with pytest.raises(ValueError, match="use shuffle='global'"):
        build(dataset.shuffle(seed=1), shuffle="windows").build()


def test_other_objects_of_hugging_face(dataset):
    import datasets

    with pytest.raises(TypeError, match="'path' takes paths, a pyarrow.Table or a datasets.Dataset"):
        build(datasets.DatasetDict({"train": dataset})).build()


def test_a_table_in_memory():
    pa = pytest.importorskip("pyarrow")

    data = {
        "image": [b"picture %d" % i for i in range(N)],
        "text": ["a", "grüße"] * (N // 2),
        "label": list(range(N)),
        "tokens": [list(range(i % 4)) for i in range(N)],
    }
    table = pa.concat_tables([pa.table(data).slice(0, 30), pa.table(data).slice(30)])
    got = read(table, tuple(data))
    assert [(bytes(a), bytes(b).decode(), c.item(), d.tolist()) for a, b, c, d in got] == list(zip(*data.values()))
    shuffled = [c.item() for (c,) in read(table, shuffle="global")]
    assert shuffled != sorted(shuffled) == data["label"]
    shards = [[c.item() for (c,) in read(table, num_shards=4, shard_id=k)][: N // 4] for k in range(4)]
    assert sum(shards, []) == data["label"]


def test_a_table_of_pandas_is_converted_by_the_user():
    frame = type("DataFrame", (), {})()
    with pytest.raises(TypeError, match=r"got DataFrame; pass pyarrow.Table.from_pandas\(df\)"):
        build(frame)


def test_a_table_without_rows_or_columns():
    pa = pytest.importorskip("pyarrow")

    with pytest.raises(ValueError, match="there is no column 'other'; there are label"):
        build(pa.table({"label": [1]}), ("other",)).build()
    with pytest.raises(ValueError, match="there are no rows"):
        build(pa.table({"label": pa.array([], pa.int64())})).build()
