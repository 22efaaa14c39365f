# SPDX-License-Identifier: Apache-2.0
"""`Pipeline.ceiling`: the same batch, returned repeatedly."""

import time

import numpy as np
import pytest

from penstock import fn, pipeline_def


def counting(**kwargs):
    state = iter(range(10**6))
    calls = []

    def source():
        calls.append(1)
        return [np.int64(next(state))] * 4

    @pipeline_def(batch_size=4, num_threads=2, **kwargs)
    def numbers():
        return fn.external_source(source=source)

    return numbers(), calls


def number(pipe):
    return int(pipe.run()[0].as_array()[0])


@pytest.mark.parametrize("ahead", [False, True])
def test_one_batch_is_repeated(ahead):
    pipe, calls = counting(exec_pipelined=ahead)
    assert [number(pipe) for _ in range(3)] == [0, 1, 2]
    with pipe.ceiling():
        made = len(calls)
        assert [number(pipe) for _ in range(50)] == [3] * 50
        assert len(calls) == made
    assert [number(pipe) for _ in range(3)] == [4, 5, 6]


def test_what_it_says():
    pipe, _ = counting()
    for _ in range(20):
        pipe.run()
        time.sleep(0.01)
    given = []
    with pipe.ceiling() as ceiling:
        for _ in range(20):
            pipe.run()
            given.append(time.monotonic())
            time.sleep(0.05)
    assert ceiling.samples_per_s == pytest.approx(19 * 4 / (given[-1] - given[0]), rel=0.2)
    # What was made until then: the 20 batches that were taken, between which 19 pauses lay, and the two made ahead.
    assert 0 < ceiling.before < 4 * (20 + 2) / (19 * 0.01)
    assert ceiling.lost == pytest.approx(1 - ceiling.before / ceiling.samples_per_s)
    assert str(ceiling).endswith(f"the pipeline costs {max(ceiling.lost, 0):.1%} of the speed.")


def test_nothing_taken():
    pipe, _ = counting()
    with pipe.ceiling() as ceiling:
        pass
    assert ceiling.samples_per_s == 0 and str(ceiling).startswith("Nothing was measured yet")


def test_epochs():
    pipe, _ = counting()
    with pipe.ceiling(batches=3):
        for _ in range(2):
            taken = 0
            with pytest.raises(StopIteration):
                while True:
                    pipe.run()
                    taken += 1
            assert taken == 3
            pipe.reset()


def test_not_twice_at_once():
    pipe, _ = counting()
    with pipe.ceiling(), pytest.raises(RuntimeError, match="being measured already"), pipe.ceiling():
        pass
    with pipe.ceiling():
        pass


def test_an_error_within_leaves_the_pipeline_as_it_was():
    pipe, _ = counting()
    with pytest.raises(KeyError), pipe.ceiling():
        raise KeyError
    assert [number(pipe) for _ in range(2)] == [1, 2]


def test_steps_of_dalis_programs():
    pipe, _ = counting()
    with pipe.ceiling():
        pipe.schedule_run()
        pipe.schedule_run()
        assert [int(pipe.outputs()[0].as_array()[0]) for _ in range(2)] == [0, 0]


def test_iterators():
    torch = pytest.importorskip("torch")
    from penstock.plugin.pytorch import DALIGenericIterator

    pipe, _ = counting()
    it = DALIGenericIterator(pipe, ["x"], size=12, auto_reset=True)
    with pipe.ceiling():
        seen = torch.cat([b[0]["x"] for _ in range(2) for b in it])
    assert len(seen) == 24 and len(set(seen[4:].tolist())) == 1


def test_checkpoints_are_of_the_pipeline_itself():
    def numbers():
        return fn.random.uniform()

    define = pipeline_def(numbers, batch_size=2, num_threads=1, seed=3, enable_checkpointing=True)
    pipe = define()
    with pipe.ceiling():
        for _ in range(5):
            pipe.run()
        saved = pipe.checkpoint()
    after = pipe.run()[0].as_array()
    assert (define(checkpoint=saved).run()[0].as_array() == after).all()
