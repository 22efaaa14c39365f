# SPDX-License-Identifier: Apache-2.0
"""Operators with GPU plans computed by a record give the same results as with rules."""

import numpy as np
import pytest
from planned_batches import check, checks_of_launches, planted

from penstock import fn
from penstock.core.batch import Batch
from penstock.exec.gpu import chain as gpu_chain
from penstock.pipeline import PipelineError
from traced_cases import AUDIO, CASES, ON_CPU, images

NEVER_AGAIN = list(range(14))


ON_GPU = [name for name in CASES if name not in ON_CPU and name not in AUDIO]
SIZES = [5, 5, 5, 1, 2, 5, 3, 4, 1, 2, 5, 3, 4, 5]  # numbers of samples


def defined(name, cut=lambda k, samples: samples):
    def define(feed):
        def f(make, layout=None, side=False):
            layout = layout or ("HWC" if make(0)[0].ndim == 3 and not side else None)
            return feed(lambda k: cut(k, make(k)), layout, device="cpu" if side else "gpu")

        return CASES[name](f)

    return define


@pytest.mark.parametrize("name", ON_GPU)
def test_same_as_by_rules(name, monkeypatch):
    check(defined(name), NEVER_AGAIN, monkeypatch, computes=True)


@pytest.mark.parametrize("name", ON_GPU)
def test_one_program_is_for_any_number_of_samples(name, monkeypatch):
    check(defined(name, lambda k, samples: samples[: SIZES[k]]), NEVER_AGAIN, monkeypatch, computes=True)


MIXED, LARGE = 6, 16  # first batches with small samples, and with large samples
MANY = list(range(24))


def sizes(k, some, small, large):
    of_all = some if k < MIXED else small if k < LARGE else large
    return [max(x - k % 4, 1) for x in of_all]  # consecutive batches have different shapes


def tall(k):
    """From 4 to 33 rows."""
    heights = sizes(k, (4, 33, 17, 9, 33), (6, 7), (33, 29))
    return [(np.random.default_rng(k).random((h, 7, 3)) * 250).astype("u1") for h in heights]


def boxes(k):
    """From 1 to 33 of a sample."""
    counts = sizes(k, (1, 33, 17, 9, 33), (4, 3), (33, 29))
    made = [np.sort(np.random.default_rng(k).random((n, 2, 2)), axis=1).astype("f4") for n in counts]
    return [x.reshape(-1, 4) for x in made]


def signals(k):
    """From 100 to 4000 samples long."""
    lengths = sizes(k, (100, 4000, 300, 900, 4000), (100, 120), (4000, 3900))
    return [np.random.default_rng(k).uniform(-1, 1, n).astype("f4") for n in lengths]


BOUNDED = {
    "normalize": lambda f: fn.normalize(f(tall, "HWC"), axes=[1]),
    "sums": lambda f: fn.reductions.sum(f(tall, "HWC"), axes=[1]),
    "mean": lambda f: fn.reductions.mean(f(tall, "HWC"), axes=[0]),
    "equalize": lambda f: fn.equalize(f(tall, "HWC")),
    "dilate": lambda f: fn.experimental.dilate(f(tall, "HWC"), mask_size=3, iterations=3),
    "gaussian_blur": lambda f: fn.gaussian_blur(f(tall, "HWC"), window_size=5),
    "box_encoder": lambda f: fn.box_encoder(
        f(boxes), f(lambda k: [np.arange(len(x), dtype="i4") for x in boxes(k)]), anchors=[0.1, 0.2, 0.6, 0.7] * 3
    ),
    "nonsilent_region": lambda f: fn.nonsilent_region(f(signals), window_length=64),
    "loudness": lambda f: fn.audio.loudness(f(signals), sample_rate=8000.0),
    "spectrogram": lambda f: fn.spectrogram(f(signals), nfft=64, window_length=64, window_step=32),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_plans_made_for_small_samples_are_good_for_large_ones(name, monkeypatch):
    """Bounds are compiled into kernels, and memory is allocated for them."""
    check(BOUNDED[name], MANY, monkeypatch, computes=None)


def wide(k):
    """Images with runs of elements that are long enough to affect the choice of kernel."""
    return images(k, lo=14, hi=18, channels=3 if k < 6 else (2, 3)[k % 2])


def operand(k):
    """Operands of the images' shape, or one number per sample."""
    return [x if k < 6 or k % 2 else x[:1, :1, :1].copy() for x in wide(k)]


ODD = {
    "sums": lambda f: fn.reductions.sum(f(wide, "HWC"), axes=[0, 1]),
    "normalize": lambda f: fn.normalize(f(wide, "HWC"), axes=[0, 1]),
    "arithmetic": lambda f: f(wide, "HWC") + f(operand, "HWC"),
    "cat": lambda f: fn.cat(x := f(wide, "HWC"), x, axis=2),
    "gaussian_blur": lambda f: fn.gaussian_blur(f(wide, "HWC"), sigma=0.6),
    "erase": lambda f: fn.erase(f(wide, "HWC"), anchor=[3.0, 2.0], shape=[5.0, 6.0]),
}


@pytest.mark.parametrize("name", ODD)
def test_batches_that_need_other_launches(name, monkeypatch):
    check(ODD[name], NEVER_AGAIN, monkeypatch)


@pytest.mark.parametrize("name", ["arithmetic", "sums", "normalize"])
def test_launches_are_checked(name, monkeypatch):
    assert checks_of_launches(ODD[name], NEVER_AGAIN, monkeypatch) > 0


SEEN_ONLY = {
    "reshape": lambda f: fn.reshape(f(wide, "HWC"), rel_shape=[1, -1], layout="HW"),
    "reshape, src_dims": lambda f: fn.reshape(f(wide, "HWC"), src_dims=[1, -1, 0, 2]),
    "squeeze by name": lambda f: fn.squeeze(f(lambda k: images(k, channels=1), "HWC"), axis_names="C"),
}


@pytest.mark.parametrize("name", SEEN_ONLY)
def test_what_is_only_seen(name, monkeypatch):
    check(SEEN_ONLY[name], NEVER_AGAIN, monkeypatch, computes=True)


def misplaced(monkeypatch):
    """All samples of views, read by kernels or returned, get the address of the first one."""
    lay_out, relabel = gpu_chain.GpuChain.lay_out, Batch.relabel

    def laid_out(self, segment, called):
        lay_out(self, segment, called)
        for e in segment.to.rows.keys() - {*self.inputs, *self.wiring.root.values()}:
            segment.to.rows[e]["data"][...] = 0

    def relabelled(self, spec):
        batch = relabel(self, spec)
        batch.rows["data"] = batch.rows["data"][:1]
        return batch

    monkeypatch.setattr(gpu_chain.GpuChain, "lay_out", laid_out)
    monkeypatch.setattr(Batch, "relabel", relabelled)


@pytest.mark.parametrize("name", ["reshape, of an inner tensor", "squeeze"])
def test_samples_that_are_misplaced_are_noticed(name, monkeypatch):
    with pytest.raises((AssertionError, PipelineError)):
        planted(misplaced, test_same_as_by_rules, (name,), monkeypatch)
