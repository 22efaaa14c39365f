# SPDX-License-Identifier: Apache-2.0
"""Counts of bad samples continue across checkpoints."""

import json

import pytest

from penstock import PipelineError, fn, pipeline_def

N, BATCH = 40, 4


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> list[str]:
    """Paths, every fourth of which is missing."""
    root = tmp_path_factory.mktemp("files")
    for i in range(N):
        if i % 4 != 2:
            (root / f"{i:02}.bin").write_bytes(bytes([i]))
    return [str(root / f"{i:02}.bin") for i in range(N)]


def reading(files, depth=2, threads=1, **kwargs):
    @pipeline_def(batch_size=BATCH, num_threads=threads, prefetch_queue_depth=depth, seed=1, enable_checkpointing=True)
    def pipe():
        return fn.readers.file(files=files, name="reader")[1]

    return pipe(**kwargs)


@pytest.mark.parametrize("on_error", ["skip", "replace"])
@pytest.mark.parametrize("depth", [1, 5])
def test_errors_are_those_of_one_run(files, on_error, depth):
    """One bad sample per batch, resumed from every step, whatever was prefetched at the checkpoint."""
    whole = reading(files, depth, on_error=on_error)
    for step in range(7):
        saved = json.loads(whole.checkpoint())
        assert saved.get("errors", {"count": 0})["count"] == step
        other = reading(files, 1, 2, on_error=on_error, checkpoint=json.dumps(saved))
        other.run()
        seen = [e for e in whole.errors() if e.iteration <= step]
        want = reading(files, 1, on_error=on_error)
        for _ in range(step + 1):
            want.run()
        assert [e for e in other.errors() if e.iteration <= step] == [e for e in want.errors() if e.iteration <= step]
        assert [e for e in seen if e.iteration < step] == other.errors()[:step]
        whole.run()


@pytest.mark.parametrize("limit", [5, 0.2])
def test_max_errors_counts_those_before(files, limit):
    """The limit is reached at the same batch, however often the run was interrupted."""

    def batches(pipe, times):
        for i in range(times):
            try:
                pipe.run()
            except PipelineError as e:
                assert "bad, more than max_errors" in str(e)
                return i, str(e).splitlines()[0]
        return None

    longer = files * 5
    whole = batches(reading(longer, 1, on_error="skip", max_errors=limit), 40)
    assert whole is not None
    pipe, at = reading(longer, 1, on_error="skip", max_errors=limit), 0
    while (found := batches(pipe, 2)) is None and at < 60:
        pipe, at = reading(longer, 1, on_error="skip", max_errors=limit, checkpoint=pipe.checkpoint()), at + 2
    assert found is not None
    assert (at + found[0], found[1].split(" of ")[0]) == (whole[0], whole[1].split(" of ")[0])


def test_many_and_long_ones_stay_small(tmp_path):
    missing = [str(tmp_path / f"{i}" / ("x" * 200)) for i in range(800)]
    (tmp_path / "one").write_bytes(b"1")
    pipe = reading([f for m in missing for f in (m, str(tmp_path / "one"))], on_error="skip")
    for _ in range(300):
        pipe.run()
    saved = pipe.checkpoint()
    assert len(saved) < 10_000 and json.loads(saved)["errors"]["count"] == 600
    other = reading([f for m in missing for f in (m, str(tmp_path / "one"))], on_error="skip", checkpoint=saved)
    other.build()
    assert len(other.errors()) == 8 and other.errors()[-1].iteration == 299
    assert json.loads(other.checkpoint())["errors"] == json.loads(saved)["errors"]


@pytest.mark.parametrize("errors", [[], {"count": "many", "last": []}, {"count": 1, "last": [["a", 1]]}, {"last": []}])
def test_damaged(files, errors):
    content = json.loads(reading(files).checkpoint()) | {"errors": errors}
    with pytest.raises(ValueError, match="the checkpoint is damaged"):
        reading(files, checkpoint=json.dumps(content)).build()
