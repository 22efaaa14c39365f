# SPDX-License-Identifier: Apache-2.0
"""Philox against the known answers of its authors, and the independence of the numbers of core.rng."""

import numpy as np
import pytest
from scipy import stats

from penstock import fn, pipeline_def
from penstock.core import rng
from penstock.core.kernels import library


def philox(counter, key):
    """The block of a counter, as four words."""
    position = np.array([counter[1] | counter[2] << 32], "u8")
    epoch, out = np.array([counter[3]], "u4"), np.zeros((1, 4), "u4")
    library().philox(
        key[0] | key[1] << 32, epoch.ctypes.data, position.ctypes.data, 1, 0, 4 * counter[0], 4, out.ctypes.data
    )
    return [f"{w:08x}" for w in out[0].tolist()]


# kat_vectors of Random123 (Salmon, Moraes, Dror, Shaw), philox4x32 with 10 rounds.
@pytest.mark.parametrize(
    "counter, key, answer",
    [
        ([0] * 4, [0] * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
)
def test_known_answers(counter, key, answer):
    assert philox(counter, key) == answer.split()


def random(seed=1, operator=0, epoch=0, n=2000, first=0):
    return rng.Random(rng.key(seed, operator), np.full(n, epoch, "u4"), np.arange(first, first + n))


def test_pure():
    r = random()
    np.testing.assert_array_equal(r.bits(8), r.bits(8))
    np.testing.assert_array_equal(r.bits(8)[:, 3:7], r.bits(4, first=3))
    np.testing.assert_array_equal(r.uniform(5)[:, 2:], r.uniform(3, first=2))
    np.testing.assert_array_equal(r.bits(3)[100:], random(first=100, n=1900).bits(3))


def test_distribution():
    r = random(n=20000)
    assert stats.kstest(r.uniform(3).ravel(), "uniform").pvalue > 1e-4
    assert stats.kstest(r.normal(3).ravel(), "norm").pvalue > 1e-4
    bits = np.unpackbits(r.bits(2).view("u1")).mean()
    assert abs(bits - 0.5) < 5 * 0.5 / np.sqrt(32 * 40000)


def test_independent():
    """Adjacent seeds, operators, epochs, samples, streams and positions in the sequence."""
    base = random()
    columns = [
        base.uniform(1),
        base.uniform(1, first=1),
        base.uniform(1, stream=1),
        base.uniform(1, stream=2),
        random(seed=2).uniform(1),
        random(operator=1).uniform(1),
        random(epoch=1).uniform(1),
        random(first=1).uniform(1),
        random(seed=2, operator=1).uniform(1),
    ]
    table = np.concatenate(columns, axis=1).T
    correlations = np.corrcoef(table)[np.triu_indices(len(table), 1)]
    assert np.abs(correlations).max() < 5 / np.sqrt(2000)
    distinct = np.delete(table, 7, axis=0)  # without the samples that begin one later
    assert len(np.unique(distinct)) == distinct.size


def test_keys():
    """Operators with the same explicit seed draw the same numbers; all other keys differ."""
    assert rng.key(5, None) == rng.key(5, None)
    keys = {rng.key(seed, operator) for seed in range(100) for operator in (None, *range(100))}
    assert len(keys) == 100 * 101


def test_frames_share_the_numbers_of_their_sample():
    """All frames of a sequence are cropped at the same random position, which differs for the next sequence."""
    frame = np.arange(64 * 64 * 3, dtype="f4").reshape(64, 64, 3)

    @pipeline_def(batch_size=3, num_threads=1, seed=1)
    def pipe():
        clips = fn.external_source(lambda i: [np.repeat(frame[None], k, axis=0) for k in (2, 0, 3)], layout="FHWC")
        return fn.random_resized_crop(clips, size=(8, 8))

    first, _, last = (np.array(pipe().run()[0].at(i)) for i in range(3))
    assert (first == first[:1]).all() and (last == last[:1]).all() and (first[0] != last[0]).any()
