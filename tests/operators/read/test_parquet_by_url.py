# SPDX-License-Identifier: Apache-2.0
"""Parquet files by URL: the number of requests for row groups, and what is cached."""

import pytest

from object_server import serving
from optional_packages import Package, needs
from penstock import fn, pipeline_def

pa = Package("pyarrow")
pytestmark = needs("pyarrow", "obstore")

GROUPS, ROWS = 6, 10
ALL = GROUPS * ROWS


@pytest.fixture
def server(tmp_path):
    """Each row group has two adjacent columns, a long one, and a third that only pyarrow can read."""
    import pyarrow.parquet as pq

    columns = {
        "image": [b"%04d" % i + bytes(500) for i in range(ALL)],
        "label": list(range(ALL)),
        "long": [(b"%d" % i) * 40_000 for i in range(ALL)],
        "boxes": [[i, i + 1] for i in range(ALL)],
    }
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=ROWS, compression="none", use_dictionary=False)
    with serving({"a.parquet": path.read_bytes()}) as server:
        yield server


def build(server, columns, **settings):
    @pipeline_def(**{"batch_size": ROWS, "num_threads": 2, **settings})
    def pipe():
        return tuple(fn.readers.parquet(path=f"{server.url}/a.parquet", columns=columns, name="reader"))

    pipe = pipe()
    pipe.build()
    return pipe


def epoch(pipe):
    return [[[bytes(column.at(i)) for i in range(ROWS)] for column in pipe.run()] for _ in range(GROUPS)]


@pytest.mark.parametrize(
    "columns, of_a_group", [(["image", "label"], 1), (["label", "image"], 1), (["image", "label", "boxes"], 2)]
)
def test_neighbours_in_one_request(server, columns, of_a_group):
    pipe = build(server, columns)
    before = server.asked["a.parquet"]
    got = epoch(pipe)
    assert [s[:4] for batch in got for s in batch[columns.index("image")]] == [b"%04d" % i for i in range(ALL)]
    assert server.asked["a.parquet"] - before == GROUPS * of_a_group
    assert pipe.stats()["remote"]["requests"] >= GROUPS * of_a_group
    pipe.close()


def test_a_second_epoch_from_the_cache(server, tmp_path, monkeypatch):
    from penstock.operators.read import _row_groups

    monkeypatch.setattr(_row_groups, "MOST_BYTES", 0)  # row groups are not kept in memory
    pipe = build(server, ["image", "label", "boxes"], cache=str(tmp_path / "cache"))
    first, asked = epoch(pipe), server.asked["a.parquet"]
    assert epoch(pipe) == first and server.asked["a.parquet"] == asked
    pipe.close()


def test_a_file_that_has_changed(server):
    pipe = build(server, ["image", "label"])
    server.objects["a.parquet"] = server.objects["a.parquet"][:-1] + b"2"
    with pytest.raises(RuntimeError, match="row group can't be read: the object has changed since it was found"):
        pipe.run()
    pipe.close()


def test_row_groups_are_read_ahead(server):
    """All row groups, if responses are slow."""
    pipe = build(server, ["image", "label"])
    before = server.asked["a.parquet"]
    server.gated, server.wanted_at_once = (lambda path: True), GROUPS
    assert len(epoch(pipe)) == GROUPS and server.asked["a.parquet"] - before == GROUPS
    pipe.close()
