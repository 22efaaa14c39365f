# SPDX-License-Identifier: Apache-2.0
"""Pipelines for the tests of iterators."""

from types import SimpleNamespace

import numpy as np
import pytest

from penstock import fn, pipeline_def


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    paths = [folder / f"{i:02d}.bin" for i in range(16)]
    for i, p in enumerate(paths):
        p.write_bytes(bytes([i] * 8))
    return [str(p) for p in paths]


@pytest.fixture(scope="session")
def make(files):
    """Makers of pipelines."""

    def reader(n=7, batch_size=2, shard=0, n_shards=1, **kwargs):
        """(file content, label) of n files. The label is the number of the file."""
        reader_args = {k: kwargs.pop(k) for k in ("pad_last_batch", "stick_to_shard", "random_shuffle") if k in kwargs}

        @pipeline_def(batch_size=batch_size, num_threads=1, **kwargs)
        def pipe():
            data, label = fn.readers.file(
                files=files[:n],
                labels=list(range(n)),
                name="reader",
                shard_id=shard,
                num_shards=n_shards,
                **reader_args,
            )
            return data, label

        return pipe()

    def source(of, batch_size=2, is_copied=False, **kwargs):
        """One output with the data of `of`, a callable or an iterable. A copy is in the pool's memory, not the
        user's."""
        source_args = {k: kwargs.pop(k) for k in ("cycle", "layout", "batch") if k in kwargs}

        @pipeline_def(batch_size=batch_size, num_threads=1, **kwargs)
        def pipe():
            x = fn.external_source(source=of, **source_args)
            return fn.copy(x) if is_copied else x

        return pipe()

    def ragged(**kwargs):
        samples = [np.full((1, 3), 1, "i4"), np.full((2, 3), 2, "i4")]
        return source(lambda i: samples, **kwargs)

    return SimpleNamespace(reader=reader, source=source, ragged=ragged)
