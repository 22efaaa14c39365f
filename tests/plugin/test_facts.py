# SPDX-License-Identifier: Apache-2.0
"""Attributes, including private ones, that wrappers and subclasses of DALI's iterators in programs read and write."""

import math

import pytest

from penstock import types
from penstock.plugin.base_iterator import LastBatchPolicy

torch = pytest.importorskip("torch")
from penstock.plugin.pytorch import DALIClassificationIterator, DALIGenericIterator  # noqa: E402

FILL, DROP, PARTIAL = LastBatchPolicy

# 13 files, batches of 4: the sizes of three epochs of the first shard in DALI 2.4, by the number of shards.
SIZES = {
    (False, 1, FILL): [16, 12, 12],
    (False, 1, DROP): [13, 13, 13],
    (False, 1, PARTIAL): [16, 16, 16],
    (False, 2, FILL): [8, 8, 4],
    (False, 2, DROP): [6, 6, 6],
    (False, 2, PARTIAL): [8, 8, 8],
    (True, 1, FILL): [13, 13, 13],
    (True, 1, DROP): [13, 13, 13],
    (True, 2, FILL): [7, 7, 7],
    (True, 2, DROP): [6, 6, 6],
    (True, 2, PARTIAL): [7, 7, 7],
}


@pytest.mark.parametrize("pad,n_shards,policy", SIZES)
def test_size(make, pad, n_shards, policy):
    pipe = make.reader(13, 4, n_shards=n_shards, pad_last_batch=pad)
    it = DALIGenericIterator(pipe, ["data", "label"], reader_name="reader", last_batch_policy=policy)
    sizes = []
    for _ in range(3):
        sizes.append(it.size)
        assert it._size == it.size
        # The lengths that wrappers compute from it.
        assert len(it) == (it.size // it.batch_size if policy is DROP else math.ceil(it._size / it.batch_size))
        assert len(list(it)) == len(it)
        it.reset()
    assert sizes == SIZES[pad, n_shards, policy]
    assert (it._size_no_pad, it._shards_num, list(it._shards_id), it._num_gpus) == (13, n_shards, [0], 1)
    assert (it._reader_name, it._last_batch_policy, it.output_map) == ("reader", policy, ["data", "label"])


def test_sizes_without_a_reader(make):
    it = DALIClassificationIterator([make.reader(), make.reader()], size=12)
    assert (it.size, it._size, it._num_gpus, len(it._pipes), it.output_map) == (12, 12, 2, 2, ["data", "label"])
    assert it._counter == 4 and it._output_categories == {"data", "label"} and not it._ever_consumed
    assert next(it) and it._ever_consumed
    for name in ("_shards_num", "_size_no_pad"):
        with pytest.raises(AttributeError, match="no reader_name"):
            getattr(it, name)
    with pytest.raises(AttributeError, match="'DALIClassificationIterator' object has no attribute '_sizes'"):
        assert it._sizes


def test_the_first_batch_is_given_out_once(make):
    """Older subclasses return the iterator's first batch themselves."""

    class Wrapper(DALIGenericIterator):
        def __init__(self, pipelines, size, output_map):
            super().__init__(pipelines, output_map, size, auto_reset=True)
            self.output_map = output_map

        def __len__(self):
            return int(self._size / self.batch_size)

        def __next__(self):
            if self._first_batch is not None:
                batch, self._first_batch = self._first_batch, None
                return batch[0][self.output_map[1]].squeeze(-1).tolist()
            return super().__next__()[0][self.output_map[1]].squeeze(-1).tolist()

    it = Wrapper(make.reader(8, 2), 8, ["data", "label"])
    assert len(it) == 4
    for _ in range(2):
        assert list(it) == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_lightning_wrapper(make):
    class Wrapper(DALIClassificationIterator):
        def __next__(self):
            out = super().__next__()[0]
            return [out[k] if k != "label" else torch.squeeze(out[k]) for k in self.output_map]

    data, label = next(iter(Wrapper(make.reader(), reader_name="reader", auto_reset=True)))
    assert data.shape == (2, 8) and label.tolist() == [0, 1]


def test_sub_classes_may_have_attributes_of_these_names(make):
    class Wrapper(DALIGenericIterator):
        def __init__(self, pipe):
            super().__init__(pipe, ["data", "label"], 6)
            self._size, self._counter, self._num_gpus = 100, 0, 8

    it = Wrapper(make.reader())
    assert (it._size, it._counter, it._num_gpus, len(list(it))) == (100, 0, 8, 3)


def test_an_iterator_of_a_programs_own(make):
    """Written like DALI's first iterators."""
    pipe = make.reader(6, 2)
    scope = pipe._check_api_type_scope
    with scope(types.PipelineAPIType.ITERATOR):
        pipe.build()
        pipe.schedule_run()
    labels = []
    for _ in range(3):
        with scope(types.PipelineAPIType.ITERATOR):
            labels += pipe.share_outputs()[1].as_array().ravel().tolist()
            pipe.release_outputs()
            pipe.schedule_run()
    assert labels == list(range(6))
